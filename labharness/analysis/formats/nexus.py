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

from labharness.analysis.arrays import Array
from labharness.analysis.formats.recording import BadFile, Recording
from labharness.analysis.formats.table import laser_of

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
    """

    program: str
    offset_cm1: float | None = None
    sample: str = UNKNOWN


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
        _plot(data, "intensity", recording.intensity, "raman_shift", calibrated, "1/cm")
        for name, column in recording.places.items():
            _place(data, name, column)
    return memory.getvalue()


def _instrument(entry: "h5py.Group", recording: Recording, notes: NexusNotes) -> None:
    instrument = _group(entry, "instrument", "NXinstrument")
    instrument["scattering_configuration"] = UNKNOWN
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
    _plot(raw, "raw", recording.intensity, "axis_in_file", recording.axis, recording.axis_unit)


def _plot(
    data: "h5py.Group", signal: str, counts: Array, axis: str, points: Array, unit: str
) -> None:
    """Write spectra on an axis as NeXus plots them."""
    data.attrs["signal"] = signal
    data.attrs["axes"] = ["spectrum", axis]
    _number(data, signal, counts, "counts")
    _number(data, "spectrum", np.arange(len(counts)), "")
    _number(data, axis, points, unit)


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


# ---- reading

NAME = "NeXus"
MARK = b"\x89HDF\r\n\x1a\n"
ELEMENTS_MAX = 64_000_000
"""Half a gigabyte of memory as doubles."""

UNITS = {
    **dict.fromkeys(("1/cm", "cm-1", "cm^-1", "cm⁻¹", "1/centimeter"), "1/cm"),
    **dict.fromkeys(("nm", "nanometer"), "nm"),
}
# Exceptions that h5py raises on damaged files (tried on thousands), and similar ones.
BROKEN = (
    *(OSError, RuntimeError, LookupError, ValueError, TypeError, AttributeError, MemoryError),
    *(ArithmeticError, EOFError, SystemError),
)


def parse_nexus(data: bytes) -> Recording:
    """Read the spectra of an HDF5 file.

    Raises:
        ModuleNotFoundError: When h5py is missing; the extra ``formats`` installs it.
        BadFile: When it is damaged, or holds no plot of spectra.
    """
    import h5py

    try:
        with h5py.File(io.BytesIO(data), "r") as file:
            return _recording(file)
    except BadFile:
        raise
    except BROKEN:
        raise BadFile("spectra.hdf5_damaged", format=NAME) from None


def _recording(file: "h5py.File") -> Recording:
    entry = _default(file, "NXentry")
    if entry is None:
        raise BadFile("spectra.no_nexus", format=NAME)
    raw = _found(entry, "instrument/detector_raman/raw_data")
    shown = _default(entry, "NXdata")
    if raw is not None and {"raw", "axis_in_file"} <= set(raw):
        axis, rows = raw["axis_in_file"], raw["raw"]
    elif shown is not None:
        axis, rows = _plotted(shown)
    else:
        raise BadFile("spectra.no_plot", format=NAME)
    unit = UNITS.get(_attribute(axis, "units").lower())
    if unit is None:
        raise BadFile("spectra.nexus_units", format=NAME, unit=_attribute(axis, "units")[:30])
    counts = _numbers(rows)
    points = _numbers(axis)
    if points.ndim != 1 or counts.size == 0 or counts.shape[-1] != points.size:
        raise BadFile(
            "spectra.shape", format=NAME, points=points.size, shape="x".join(map(str, counts.shape))
        )
    places = {} if shown is None else _places(shown, counts.size // points.size)
    title = entry.get("title")
    stated = True if raw is None else bool(raw.attrs.get("axis_stated", True))
    return Recording(
        "NeXus" if title is None else _attribute(title, "format") or "NeXus",
        points,
        unit,
        counts.reshape(-1, points.size),
        laser_nm=_laser(entry),
        places=places,
        header=_header(entry),
        unit_stated=stated,
        notes=() if raw is None else _reading(raw),
    )


def _default(parent: "h5py.Group", kind: str) -> "h5py.Group | None":
    """Follow ``default``; without it return the first group of this NeXus class."""
    named = _attribute(parent, "default")
    found = _found(parent, named) if named else None
    if found is not None:
        return found
    groups = (_found(parent, name) for name in parent)
    return next((g for g in groups if g is not None and _attribute(g, "NX_class") == kind), None)


def _plotted(data: "h5py.Group") -> "tuple[h5py.Dataset, h5py.Dataset]":
    """Return axis and intensity of a default plot; the last of its axes is the spectrum's."""
    signal = data.get(_attribute(data, "signal") or "intensity")
    axes = data.attrs.get("axes", ())
    axes = [axes] if isinstance(axes, str | bytes) else list(axes)
    axis = data.get(_text(axes[-1])) if axes else None
    if signal is None or axis is None or not (hasattr(signal, "shape") and hasattr(axis, "shape")):
        raise BadFile("spectra.no_signal", format=NAME)
    return axis, signal


def _numbers(stored: "h5py.Dataset") -> Array:
    """Read a dataset, unless its stated size exceeds the memory.

    Raises:
        BadFile: When it is too large, or does not hold real numbers.
    """
    if stored.shape is None or int(np.prod(stored.shape, dtype=object)) > ELEMENTS_MAX:
        raise BadFile("spectra.states_shape", format=NAME, name=stored.name, shape=stored.shape)
    if stored.dtype.kind not in "fiu":
        raise BadFile("spectra.no_numbers", format=NAME, name=stored.name, found=stored.dtype)
    return np.asarray(stored[()], dtype=np.float64)


def _places(shown: "h5py.Group", spectra: int) -> dict[str, Array]:
    found = {}
    for name in shown:
        if not name.startswith(PLACE):
            continue
        column = shown[name]
        if getattr(column, "shape", None) == (spectra,):
            unit = _attribute(column, "units")
            plain = name.removeprefix(PLACE) + (f"_{unit}" if unit else "")
            found[_attribute(column, "long_name") or plain] = _numbers(column)
    return found


def _laser(entry: "h5py.Group") -> float | None:
    for path in ("instrument/beam_incident", "instrument/source_laser"):
        for name in ("incident_wavelength", "wavelength"):
            stored = entry.get(f"{path}/{name}")
            if stored is not None and getattr(stored, "shape", None) == ():
                found = float(_numbers(stored))
                return laser_of(repr(found)) and found
    return None


def _header(entry: "h5py.Group") -> dict[str, str]:
    stored = entry.get("header/data")
    if stored is None or getattr(stored, "shape", None) != ():
        return {}
    pairs = (line.partition("=") for line in _text(stored[()]).splitlines() if "=" in line)
    return {key: value for key, _, value in pairs}


def _reading(raw: "h5py.Group") -> tuple[str, ...]:
    found = raw.attrs.get("reading", ())
    return tuple(_text(note) for note in np.atleast_1d(found)) if np.size(found) else ()


def _found(parent: "h5py.Group", path: str) -> "h5py.Group | None":
    found = parent.get(path)
    return found if found is not None and hasattr(found, "keys") else None


def _attribute(node: "h5py.Group | h5py.Dataset", name: str) -> str:
    return _text(node.attrs.get(name, ""))


def _text(value: object) -> str:
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return value if isinstance(value, str) else ""
