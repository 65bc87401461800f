"""Write spectra as HDF5 in the NeXus form ``NXraman``, with the raw and the calibrated axis.

Names are from the released definitions ``NXraman`` and ``NXoptical_spectroscopy``, which it extends
(nexusformat/definitions, applications, v2026.01). Unknown facts are not invented: an optional field
is left out and a required one says ``unknown``. Without a laser the wavelength of the beam, a
number, is missing, and the file does not satisfy the definition.
"""

import io
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from labharness.analysis.formats.recording import Recording

if TYPE_CHECKING:
    import h5py

DEFINITION_VERSION = "v2026.01"
DEFINITION_URL = (
    "https://github.com/nexusformat/definitions/blob/"
    f"{DEFINITION_VERSION}/applications/NXraman.nxdl.xml"
)
UNKNOWN = "unknown"
PLACE = "place_"
"""Prefix of the columns with the place of each spectrum."""

PLACE_UNITS = ("um", "mm", "s")
NAME_MAX = 40
"""NeXus allows 63 characters in a name."""


@dataclass(frozen=True, slots=True)
class NexusNotes:
    """Facts that the file of spectra does not hold.

    Attributes:
        offset_cm1: Shift of the axis by the calibration to silicon; None without one.
        sample: Name of the sample.
        program: Program that wrote this file, with its version.
        scattering_configuration: In Porto's notation, as ``z(xx)-z``; None if not stated.
    """

    program: str
    offset_cm1: float | None = None
    sample: str = UNKNOWN
    scattering_configuration: str | None = None


def nexus_bytes(recording: Recording, notes: NexusNotes) -> bytes:
    """Return spectra as the bytes of an HDF5 file with one ``NXraman`` entry.

    Raises:
        ModuleNotFoundError: When h5py is missing; the extra ``formats`` installs it.
        BadFile: When the axis is a wavelength and the laser is unknown.
    """
    import h5py

    memory = io.BytesIO()
    with h5py.File(memory, "w", track_order=True) as file:
        file.attrs["default"] = "entry"
        entry = _group(file, "entry", "NXentry")
        entry.attrs["default"] = "data"
        definition = entry.create_dataset("definition", data="NXraman")
        definition.attrs["version"] = DEFINITION_VERSION
        definition.attrs["URL"] = DEFINITION_URL
        entry["title"] = f"{recording.format}, {len(recording.intensity)} spectra"
        entry["title"].attrs["format"] = recording.format
        entry["experiment_type"] = "Raman spectroscopy"
        if recording.places:
            entry["raman_experiment_type"] = "Raman imaging"
        else:  # an open list: the file does not say whether the excitation is resonant
            entry["raman_experiment_type"] = UNKNOWN
            entry["raman_experiment_type"].attrs["custom"] = True
        header = _group(entry, "header", "NXnote")
        header["type"] = "text/plain"
        header["description"] = f"header of the {recording.format} file"
        header["data"] = _plain(
            "\n".join(f"{key}={value}" for key, value in recording.header.items())
        )
        _instrument(entry, recording, notes)
        _group(entry, "sample", "NXsample")["name"] = _plain(notes.sample)
        shift_cm1 = recording.shift_cm1()
        calibrated = shift_cm1 + (notes.offset_cm1 or 0.0)
        if notes.offset_cm1 is not None:
            process = _group(entry, "measurement_data_calibration_silicon", "NXprocess")
            calibration = _group(process, "wavelength_calibration", "NXcalibration")
            calibration["description"] = "silicon line put at 520.7 1/cm"
            _number(calibration, "offset", notes.offset_cm1, "1/cm")
            _number(calibration, "original_axis", shift_cm1, "1/cm")
            _number(calibration, "calibrated_axis", calibrated, "1/cm")
        data = _group(entry, "data", "NXdata")
        data.attrs["signal"] = "intensity"
        data.attrs["axes"] = ["spectrum", "raman_shift"]
        _number(data, "intensity", recording.intensity, "counts")
        _number(data, "spectrum", np.arange(len(recording.intensity)), "")
        _number(data, "raman_shift", calibrated, "1/cm")
        for name, column in recording.places.items():
            _place(data, name, column)
    return memory.getvalue()


def _instrument(entry: "h5py.Group", recording: Recording, notes: NexusNotes) -> None:
    instrument = _group(entry, "instrument", "NXinstrument")
    instrument["scattering_configuration"] = notes.scattering_configuration or UNKNOWN
    beam = _group(instrument, "beam_incident", "NXbeam")
    beam["parameter_reliability"] = "nominal"
    if recording.laser_nm is not None:
        _number(beam, "wavelength", recording.laser_nm, "nm")
        _number(beam, "incident_wavelength", recording.laser_nm, "nm")
    source = _group(instrument, "source_laser", "NXsource")
    source["type"] = "Laser"
    source["associated_beam"] = beam.name
    software = _group(instrument, "software_writer", "NXprogram")
    software["program"] = notes.program
    detector = _group(instrument, "detector_raman", "NXdetector")
    # One of two words is required; all formats read here come from instruments with a camera.
    detector["detector_channel_type"] = "multichannel"
    raw = _group(detector, "raw_data", "NXdata")
    raw.attrs["axis_stated"] = recording.unit_stated
    raw.attrs["reading"] = [_plain(note) for note in recording.notes]
    raw.attrs["signal"] = "raw"
    raw.attrs["axes"] = ["spectrum", "axis_in_file"]
    _number(raw, "raw", recording.intensity, "counts")
    _number(raw, "spectrum", np.arange(len(recording.intensity)), "")
    _number(raw, "axis_in_file", recording.axis, recording.axis_unit)


def _place(data: "h5py.Group", name: str, column: ArrayLike) -> None:
    """Write a column of places; ``x_um`` becomes ``place_x`` in µm.

    Column names of a file are free; NeXus allows letters, digits and underscores, and each name
    once. The file's own name is stored beside it.
    """
    quantity, _, unit = name.rpartition("_")
    if not quantity or unit not in PLACE_UNITS:
        quantity, unit = name, ""
    plain = PLACE + (re.sub(r"[^A-Za-z0-9_]", "_", quantity)[:NAME_MAX] or "unnamed")
    free = plain
    while free in data:
        free = f"{plain}_{len(data)}"
    _number(data, free, column, unit)
    data[free].attrs["long_name"] = _plain(name)


def _plain(text: str) -> str:
    """Return a text without characters that HDF5 refuses: null characters, or none in UTF-8."""
    return text.replace("\0", "").encode("utf-8", "replace").decode("utf-8")


def _group(parent: "h5py.Group", name: str, kind: str) -> "h5py.Group":
    group = parent.create_group(name, track_order=True)
    group.attrs["NX_class"] = kind
    return group


def _number(parent: "h5py.Group", name: str, value: ArrayLike, unit: str) -> None:
    parent[name] = value
    if unit:
        parent[name].attrs["units"] = unit
