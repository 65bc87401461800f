"""What is written as HDF5 satisfies NXraman as released, opens elsewhere, and invents nothing."""

import io
import re
import shutil
import sys
from pathlib import Path

import h5py
import nexusformat
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nexusformat.nexus import NXdata, NXentry, nxopen
from nexusformat.nexus.validate import validate_application

from labharness.analysis.formats import BadFile, NexusNotes, Recording, nexus_bytes, read_spectra

AXIS = np.linspace(100.0, 600.0, 60)
ROWS = np.arange(120.0).reshape(2, 60)
PLACES = {"x_um": np.array([1.0, 2.0]), "y_um": np.array([0.0, 0.0])}
MAP = Recording("a test", AXIS, "1/cm", ROWS, 532.0, PLACES, {"Grating": "1800"})
NOTES = NexusNotes(program="labharness 1", offset_cm1=-0.25, sample="flake 7")

DEFINITIONS = Path(nexusformat.__file__).parent / "definitions"
PARTLY_NAMED = {
    "beam_TYPE": "beam_incident",
    "detector_TYPE": "detector_raman",
    "source_TYPE": "source_laser",
    "software_TYPE": "software_writer",
    "measurement_data_calibration_TYPE": "measurement_data_calibration_silicon",
}


@pytest.fixture(scope="module")
def definitions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The released definitions, said so that the validator of nexusformat 2.1 understands them.

    It takes a name such as ``beam_TYPE`` literally, where any name that begins so will do, and
    takes no other word where a list of words is open.
    """
    folder = tmp_path_factory.mktemp("nexus") / "definitions"
    shutil.copytree(DEFINITIONS, folder, ignore=shutil.ignore_patterns("*.py", "__pycache__"))
    for name in ("NXraman", "NXoptical_spectroscopy"):
        path = folder / "applications" / f"{name}.nxdl.xml"
        text = path.read_text("utf-8")
        for part, whole in PARTLY_NAMED.items():
            text = text.replace(f'name="{part}"', f'name="{whole}"')
        text = re.sub(r'<enumeration open="true">.*?</enumeration>', "", text, flags=re.DOTALL)
        path.write_text(text, "utf-8")
    return folder


def opened(recording: Recording, notes: NexusNotes = NOTES) -> h5py.File:
    return h5py.File(io.BytesIO(nexus_bytes(recording, notes)), "r")


def written(folder: Path, recording: Recording, notes: NexusNotes = NOTES) -> Path:
    path = folder / "spectra.nxs"
    path.write_bytes(nexus_bytes(recording, notes))
    return path


def errors(path: Path, definitions: Path) -> int:
    counts: tuple[int, int] = validate_application(str(path), definitions=str(definitions))
    return counts[1]


@pytest.mark.parametrize(
    "recording",
    [
        MAP,
        Recording("one", AXIS, "1/cm", ROWS[:1], 532.0),
        Recording("of wavelengths", np.linspace(535.0, 560.0, 60), "nm", ROWS, 532.0),
    ],
    ids=lambda recording: recording.format,
)
def test_the_validator_of_nexusformat_finds_no_error_against_the_released_definition(
    tmp_path: Path, definitions: Path, recording: Recording
) -> None:
    assert errors(written(tmp_path, recording), definitions) == 0


@pytest.mark.parametrize(
    "taken",
    [
        "title",
        "experiment_type",
        "raman_experiment_type",
        "instrument/scattering_configuration",
        "instrument/beam_incident/wavelength",
        "instrument/beam_incident/parameter_reliability",
        "instrument/detector_raman/detector_channel_type",
        "instrument/software_writer/program",
        "sample/name",
        "data",
    ],
)
def test_each_field_that_is_required_is_missed_when_it_is_gone(
    tmp_path: Path, definitions: Path, taken: str
) -> None:
    path = written(tmp_path, MAP)
    with h5py.File(path, "a") as file:
        del file["entry"][taken]
    assert errors(path, definitions) == (0 if taken == "title" else 1)  # a title is recommended


def test_nexusformat_opens_the_file_and_finds_what_to_plot(tmp_path: Path) -> None:
    with nxopen(str(written(tmp_path, MAP))) as root:
        entry = root[root.attrs["default"]]
        assert isinstance(entry, NXentry)
        data = entry[entry.attrs["default"]]
        assert isinstance(data, NXdata)
        assert np.array_equal(data.nxsignal.nxvalue, ROWS)
        assert [axis.nxname for axis in data.nxaxes] == ["spectrum", "raman_shift"]
        assert entry["instrument/beam_incident/wavelength"].nxdata == 532.0


def test_the_fields_of_the_definition_are_there() -> None:
    with opened(MAP) as file:
        entry = file["entry"]
        assert entry.attrs["NX_class"] == "NXentry"
        assert entry["definition"].asstr()[()] == "NXraman"
        assert entry["definition"].attrs["version"] == "v2026.01"
        assert entry["experiment_type"].asstr()[()] == "Raman spectroscopy"
        assert entry["raman_experiment_type"].asstr()[()] == "Raman imaging"
        instrument = entry["instrument"]
        assert instrument["beam_incident/wavelength"].attrs["units"] == "nm"
        assert instrument["scattering_configuration"].asstr()[()] == "unknown"
        assert instrument["software_writer/program"].asstr()[()] == "labharness 1"
        kinds = {
            "header": "NXnote",
            "instrument": "NXinstrument",
            "instrument/beam_incident": "NXbeam",
            "instrument/source_laser": "NXsource",
            "instrument/software_writer": "NXprogram",
            "instrument/detector_raman": "NXdetector",
            "instrument/detector_raman/raw_data": "NXdata",
            "sample": "NXsample",
            "measurement_data_calibration_silicon": "NXprocess",
            "measurement_data_calibration_silicon/wavelength_calibration": "NXcalibration",
            "data": "NXdata",
        }
        assert {name: entry[name].attrs["NX_class"] for name in kinds} == kinds
        assert "Grating=1800" in entry["header/data"].asstr()[()]
        assert np.array_equal(entry["data/place_x"], [1.0, 2.0])


def test_raw_and_calibrated_axis_stand_side_by_side_with_the_offset() -> None:
    with opened(Recording("a test", AXIS, "1/cm", ROWS)) as file:
        data = file["entry/data"]
        assert data.attrs["signal"] == "intensity"
        assert list(data.attrs["axes"]) == ["spectrum", "raman_shift"]
        assert np.array_equal(data["intensity"], ROWS)
        raw = file["entry/instrument/detector_raman/raw_data"]
        assert raw.attrs["signal"] == "raw"
        assert np.array_equal(raw["raw"], ROWS)
        assert np.array_equal(raw["axis_in_file"], AXIS)
        assert np.array_equal(data["raman_shift"], AXIS - 0.25)
        calibration = file["entry/measurement_data_calibration_silicon/wavelength_calibration"]
        assert calibration["offset"][()] == -0.25
        assert np.array_equal(calibration["original_axis"], AXIS)
        assert np.array_equal(calibration["calibrated_axis"], AXIS - 0.25)


def test_a_wavelength_is_kept_beside_the_shift_made_of_it() -> None:
    nm = np.linspace(535.0, 560.0, 60)
    with opened(Recording("a test", nm, "nm", ROWS[:1], 532.0)) as file:
        raw = file["entry/instrument/detector_raman/raw_data"]
        assert raw["axis_in_file"].attrs["units"] == "nm"
        assert file["entry/data/raman_shift"].attrs["units"] == "1/cm"
        assert file["entry/data/raman_shift"][0] == pytest.approx(1e7 / 532 - 1e7 / 535 - 0.25)


def test_what_nobody_stated_is_left_out_or_called_unknown() -> None:
    with opened(Recording("a test", AXIS, "1/cm", ROWS), NexusNotes(program="p")) as file:
        assert "wavelength" not in file["entry/instrument/beam_incident"]
        assert not [name for name in file["entry"] if "calibration" in name]
        assert file["entry/raman_experiment_type"].asstr()[()] == "unknown"
        assert file["entry/raman_experiment_type"].attrs["custom"]
        assert file["entry/sample/name"].asstr()[()] == "unknown"
        assert set(file["entry/sample"]) == {"name"}
    with pytest.raises(BadFile, match="--laser-nm"):
        nexus_bytes(Recording("a test", np.linspace(535, 560, 60), "nm", ROWS), NOTES)


TEXT = st.text(max_size=12)
PLACE_NAMES = st.sampled_from(
    ["x_um", "y_um", "z_um", "time_s", "column_1", "column_2", "x", "X/Y", "", ".", "a b", "x_mm"]
)


@given(
    places=st.dictionaries(PLACE_NAMES | TEXT, st.integers(0, 9), max_size=4),
    header=st.dictionaries(TEXT, TEXT, max_size=3),
    laser_nm=st.one_of(st.none(), st.floats(300, 1100)),
    unit_stated=st.booleans(),
    offset_cm1=st.one_of(st.none(), st.floats(-5, 5)),
    unit=st.sampled_from(["1/cm", "nm"]),
)
@settings(deadline=None, max_examples=8)
def test_what_is_written_is_read_back_whatever_a_file_calls_its_columns(
    places: dict[str, int],
    header: dict[str, str],
    laser_nm: float | None,
    unit_stated: bool,
    offset_cm1: float | None,
    unit: str,
) -> None:
    axis = AXIS if unit == "1/cm" else np.linspace(500.25, 560.5, 60)
    columns = {name: np.array([value, value + 0.5]) for name, value in places.items()}
    laser_nm = laser_nm or (None if unit == "1/cm" else 532.0)
    given_one = Recording("a test", axis, unit, ROWS, laser_nm, columns, header, unit_stated)
    notes = NexusNotes(program="labharness 1", offset_cm1=offset_cm1, sample="film\x00 \udc80")
    found = read_spectra(nexus_bytes(given_one, notes))
    assert (found.format, found.axis_unit, found.laser_nm) == ("a test", unit, laser_nm)
    assert np.array_equal(found.axis, axis)
    assert np.array_equal(found.intensity, ROWS)
    assert found.unit_stated == unit_stated
    assert len(found.places) == len(columns)
    for name, column in columns.items():
        if name.isprintable() and name.isascii() and name:
            assert np.array_equal(found.places[name], column)


def test_settings_and_what_was_left_out_come_back_with_the_spectra() -> None:
    rows = np.vstack([ROWS, np.full(60, np.nan)])
    given_one = Recording("a test", AXIS, "1/cm", rows, header={"Grating": "1800"})
    found = read_spectra(nexus_bytes(given_one, NOTES))
    assert found.header == {"Grating": "1800"}
    assert found.notes == ("spectrum 3 is left out: NaN or infinity among the numbers",)


def foreign(**attributes: str) -> bytes:
    """Write a NeXus file of somebody else: a default plot, nothing else."""
    memory = io.BytesIO()
    with h5py.File(memory, "w") as file:
        entry = file.create_group("run")
        entry.attrs["NX_class"] = "NXentry"
        data = entry.create_group("plot")
        data.attrs.update({"NX_class": "NXdata", "signal": "counts", "axes": [".", "shift"]})
        data.attrs.update(attributes)
        data["counts"] = ROWS
        data["shift"] = AXIS
        data["shift"].attrs["units"] = attributes.get("units", "cm^-1")
    return memory.getvalue()


def test_the_default_plot_of_another_program_is_read() -> None:
    found = read_spectra(foreign())
    assert (found.format, found.axis_unit) == ("NeXus", "1/cm")
    assert np.array_equal(found.intensity, ROWS)


def empty() -> bytes:
    memory = io.BytesIO()
    h5py.File(memory, "w").close()
    return memory.getvalue()


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (empty(), "no NeXus entry with spectra"),
        (foreign(units="eV"), "'eV'"),
        (foreign(signal="nothing"), "no signal on an axis"),
        (foreign(signal="shift", axes="counts"), "do not fit|eV|axis is in"),
        (foreign()[:1000], "damaged or cut short"),
        (b"\x89HDF\r\n\x1a\n", "damaged or cut short"),
    ],
)
def test_hdf5_without_spectra_is_refused_in_one_line(data: bytes, words: str) -> None:
    with pytest.raises(BadFile, match=words):
        read_spectra(data)


def test_without_h5py_one_line_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    data = nexus_bytes(MAP, NOTES)
    monkeypatch.setitem(sys.modules, "h5py", None)
    with pytest.raises(BadFile, match=r"reading HDF5 needs h5py: pip install"):
        read_spectra(data)
