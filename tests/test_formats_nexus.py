"""What is written as HDF5 has the fields of NXraman, and invents nothing."""

import io

import h5py
import numpy as np
import pytest

from labharness.analysis.formats import BadFile, NexusNotes, Recording, nexus_bytes

AXIS = np.linspace(100.0, 600.0, 60)
ROWS = np.arange(120.0).reshape(2, 60)
NOTES = NexusNotes(program="labharness 1", offset_cm1=-0.25, sample="flake 7")


def opened(recording: Recording, notes: NexusNotes = NOTES) -> h5py.File:
    return h5py.File(io.BytesIO(nexus_bytes(recording, notes)), "r")


def test_the_fields_of_the_definition_are_there() -> None:
    recording = Recording(
        "a test", AXIS, "1/cm", ROWS, 532.0, {"x_um": np.array([1.0, 2.0])}, {"Grating": "1800"}
    )
    with opened(recording) as file:
        entry = file["entry"]
        assert entry.attrs["NX_class"] == "NXentry"
        assert entry["definition"].asstr()[()] == "NXraman"
        assert entry["experiment_type"].asstr()[()] == "Raman imaging"
        instrument = entry["instrument"]
        assert instrument["incident_source_wavelength"][()] == 532.0
        assert instrument["incident_source_wavelength"].attrs["units"] == "nm"
        assert instrument["scattering_configuration"].asstr()[()] == "unknown"
        assert instrument["software/program"].asstr()[()] == "labharness 1"
        assert entry["data_collection/data_type"].asstr()[()] == "Integrated single spectrum"
        kinds = {
            "instrument": "NXinstrument",
            "instrument/software": "NXprocess",
            "instrument/source": "NXsource",
            "instrument/opt_source": "NXbeam_device",
            "instrument/opt_detector": "NXbeam_device",
            "instrument/incident_light_optics": "NXbeam_device",
            "instrument/scattered_light_optics": "NXbeam_device",
            "instrument/incident_light_lens": "NXlens_opt",
            "instrument/scattered_light_lens": "NXlens_opt",
            "instrument/detector": "NXdetector",
            "instrument/monochromator": "NXmonochromator",
            "instrument/Sample_as_beam_element": "NXbeam_device",
            "sample": "NXsample",
            "data_collection": "NXprocess",
            "data": "NXdata",
        }
        assert {name: entry[name].attrs["NX_class"] for name in kinds} == kinds
        assert "Grating=1800" in entry["data_collection/source_header/data"].asstr()[()]


def test_raw_and_calibrated_axis_stand_side_by_side_with_the_offset() -> None:
    with opened(Recording("a test", AXIS, "1/cm", ROWS)) as file:
        data = file["entry/data"]
        assert data.attrs["signal"] == "intensity"
        assert list(data.attrs["axes"]) == ["spectrum", "raman_shift"]
        assert np.array_equal(data["intensity"], ROWS)
        assert np.array_equal(data["axis_in_file"], AXIS)
        assert np.array_equal(data["raman_shift"], AXIS - 0.25)
        assert file["entry/calibration/offset"][()] == -0.25


def test_a_wavelength_is_kept_beside_the_shift_made_of_it() -> None:
    nm = np.linspace(535.0, 560.0, 60)
    with opened(Recording("a test", nm, "nm", ROWS[:1], 532.0)) as file:
        assert file["entry/data/axis_in_file"].attrs["units"] == "nm"
        assert file["entry/data/raman_shift"].attrs["units"] == "1/cm"
        assert file["entry/data/raman_shift"][0] == pytest.approx(1e7 / 532 - 1e7 / 535 - 0.25)
        assert file["entry/experiment_type"].asstr()[()] == "non-resonant Raman spectroscopy"


def test_what_nobody_stated_is_left_out_or_called_unknown() -> None:
    with opened(Recording("a test", AXIS, "1/cm", ROWS), NexusNotes(program="p")) as file:
        assert "incident_source_wavelength" not in file["entry/instrument"]
        assert "calibration" not in file["entry"]
        assert file["entry/sample/name"].asstr()[()] == "unknown"
        assert "numerical_aperture" not in file["entry/instrument/incident_light_lens"]
    with pytest.raises(BadFile, match="--laser-nm"):
        nexus_bytes(Recording("a test", np.linspace(535, 560, 60), "nm", ROWS), NOTES)
