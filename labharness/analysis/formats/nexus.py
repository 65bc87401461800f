"""Spectra as HDF5 in the shape of NeXus ``NXraman``: raw and calibrated axis side by side.

Names as in the draft definition (FAIRmat-NFDI/nexus_definitions, contributed_definitions/
NXraman.nxdl.xml, commit 24956f5e). What nobody stated is not invented: an optional field is left
out and a required one says ``unknown``.
"""

import io
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from labharness.analysis.formats.recording import Recording

if TYPE_CHECKING:
    import h5py

__all__ = ["NexusNotes", "nexus_bytes"]

DEFINITION_URL = (
    "https://github.com/FAIRmat-NFDI/nexus_definitions/blob/"
    "24956f5e28f4ae7147a1da222da96ad8acb0084b/contributed_definitions/NXraman.nxdl.xml"
)
UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class NexusNotes:
    """What the file of spectra does not say itself.

    Attributes:
        offset_cm1: What the calibration to silicon adds to the axis; None when there was none.
        sample: Name of the sample.
        program: Program that wrote this file, with its version.
        scattering_configuration: In Porto's notation, as ``z(xx)-z``; None when not stated.
    """

    program: str
    offset_cm1: float | None = None
    sample: str = UNKNOWN
    scattering_configuration: str | None = None


def nexus_bytes(recording: Recording, notes: NexusNotes) -> bytes:
    """Write spectra as the bytes of an HDF5 file with one ``NXraman`` entry.

    Raises:
        ModuleNotFoundError: When h5py is missing; it comes with the extra ``formats``.
        BadFile: When the axis is a wavelength and the laser is unknown.
    """
    import h5py

    shift_cm1 = recording.shift_cm1()
    many = len(recording.intensity) > 1
    memory = io.BytesIO()
    with h5py.File(memory, "w", track_order=True) as file:
        file.attrs["default"] = "entry"
        entry = _group(file, "entry", "NXentry")
        entry.attrs["default"] = "data"
        definition = entry.create_dataset("definition", data="NXraman")
        definition.attrs["version"] = "2024-03 draft"
        definition.attrs["url"] = DEFINITION_URL
        entry["title"] = f"{recording.format}, {len(recording.intensity)} spectra"
        entry["experiment_type"] = "Raman imaging" if many else "non-resonant Raman spectroscopy"

        instrument = _group(entry, "instrument", "NXinstrument")
        if recording.laser_nm is not None:
            _number(instrument, "incident_source_wavelength", recording.laser_nm, "nm")
        instrument["scattering_configuration"] = notes.scattering_configuration or UNKNOWN
        software = _group(instrument, "software", "NXprocess")
        software["program"] = notes.program
        source = _group(instrument, "source", "NXsource")
        source["source_type"] = "laser"
        for name, device in (
            ("opt_source", "source"),
            ("opt_detector", "detector"),
            ("incident_light_optics", "incident_light_lens"),
            ("scattered_light_optics", "scattered_light_lens"),
        ):
            _group(instrument, name, "NXbeam_device")["device"] = device
        for name in ("incident_light_lens", "scattered_light_lens"):
            _group(instrument, name, "NXlens_opt")["type"] = "other"
        _group(instrument, "detector", "NXdetector")
        _group(instrument, "monochromator", "NXmonochromator")
        sample_beam = _group(instrument, "Sample_as_beam_element", "NXbeam_device")
        sample_beam["device"] = "sample"

        _group(entry, "sample", "NXsample")["name"] = notes.sample
        collection = _group(entry, "data_collection", "NXprocess")
        collection["data_type"] = "Integrated single spectrum"
        collection["source_format"] = recording.format
        header = _group(collection, "source_header", "NXnote")
        header["data"] = "\n".join(f"{key}={value}" for key, value in recording.header.items())

        data = _group(entry, "data", "NXdata")
        data.attrs["signal"] = "intensity"
        data.attrs["axes"] = ["spectrum", "raman_shift"]
        _number(data, "intensity", recording.intensity, "counts")
        _number(data, "spectrum", np.arange(len(recording.intensity)), "")
        calibrated = shift_cm1 + (notes.offset_cm1 or 0.0)
        _number(data, "raman_shift", calibrated, "1/cm")
        _number(data, "axis_in_file", recording.axis, recording.axis_unit)
        if notes.offset_cm1 is not None:
            calibration = _group(entry, "calibration", "NXcalibration")
            calibration["description"] = "silicon line put at 520.7 1/cm"
            _number(calibration, "offset", notes.offset_cm1, "1/cm")
        for name, column in recording.places.items():
            quantity, _, unit = name.rpartition("_")
            _number(data, f"place_{quantity or name}", column, unit if quantity else "")
    return memory.getvalue()


def _group(parent: "h5py.Group", name: str, kind: str) -> "h5py.Group":
    group = parent.create_group(name, track_order=True)
    group.attrs["NX_class"] = kind
    return group


def _number(parent: "h5py.Group", name: str, value: ArrayLike, unit: str) -> None:
    parent[name] = value
    if unit:
        parent[name].attrs["units"] = unit
