"""Read HDF5 in the form of NeXus: files of this program, and the default plot of other files.

In a file of this program the original axis is read, not the calibrated one, so that an analysis
gives the same answer again. In others ``default``, ``signal`` and ``axes`` are followed as in the
NeXus manual (NXroot, NXentry, NXdata).
"""

import io
from typing import TYPE_CHECKING

import numpy as np

from labharness.analysis.arrays import Array
from labharness.analysis.formats.nexus import PLACE
from labharness.analysis.formats.recording import BadFile, Recording
from labharness.analysis.formats.table import laser_of

if TYPE_CHECKING:
    import h5py

NAME = "NeXus"
MARK = b"\x89HDF\r\n\x1a\n"
ELEMENTS_MAX = 64_000_000
"""Half a gigabyte of memory as doubles."""

UNITS = {
    "1/cm": "1/cm",
    "cm-1": "1/cm",
    "cm^-1": "1/cm",
    "cm⁻¹": "1/cm",
    "1/centimeter": "1/cm",
    "nm": "nm",
    "nanometer": "nm",
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
        raise BadFile(f"{NAME}: the HDF5 file is damaged or cut short") from None


def _recording(file: "h5py.File") -> Recording:
    entry = _default(file, "NXentry")
    if entry is None:
        raise BadFile(f"{NAME}: it is HDF5, and holds no NeXus entry with spectra")
    raw = _group(entry, "instrument/detector_raman/raw_data")
    shown = _default(entry, "NXdata")
    if raw is not None and {"raw", "axis_in_file"} <= set(raw):
        axis, rows = raw["axis_in_file"], raw["raw"]
    elif shown is not None:
        axis, rows = _plotted(shown)
    else:
        raise BadFile(f"{NAME}: the entry has no data to plot")
    unit = UNITS.get(_attribute(axis, "units").lower())
    if unit is None:
        raise BadFile(
            f"{NAME}: the axis is in {_attribute(axis, 'units')[:30]!r}; known are 1/cm and nm"
        )
    counts = _numbers(rows)
    points = _numbers(axis)
    if points.ndim != 1 or counts.size == 0 or counts.shape[-1] != points.size:
        raise BadFile(
            f"{NAME}: {points.size} points of an axis do not fit intensities of shape "
            f"{'x'.join(map(str, counts.shape))}"
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
    found = _group(parent, named) if named else None
    if found is not None:
        return found
    groups = (_group(parent, name) for name in parent)
    return next((g for g in groups if g is not None and _attribute(g, "NX_class") == kind), None)


def _plotted(data: "h5py.Group") -> "tuple[h5py.Dataset, h5py.Dataset]":
    """Return axis and intensity of a default plot; the last of its axes is the spectrum's."""
    signal = data.get(_attribute(data, "signal") or "intensity")
    axes = data.attrs.get("axes", ())
    axes = [axes] if isinstance(axes, str | bytes) else list(axes)
    axis = data.get(_text(axes[-1])) if axes else None
    if signal is None or axis is None or not (hasattr(signal, "shape") and hasattr(axis, "shape")):
        raise BadFile(f"{NAME}: the default plot names no signal on an axis")
    return axis, signal


def _numbers(stored: "h5py.Dataset") -> Array:
    """Read a dataset, unless its stated size exceeds the memory.

    Raises:
        BadFile: When it is too large, or does not hold real numbers.
    """
    if stored.shape is None or int(np.prod(stored.shape, dtype=object)) > ELEMENTS_MAX:
        raise BadFile(f"{NAME}: {stored.name} states a shape of {stored.shape}")
    if stored.dtype.kind not in "fiu":
        raise BadFile(f"{NAME}: {stored.name} holds {stored.dtype}, not numbers")
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


def _group(parent: "h5py.Group", path: str) -> "h5py.Group | None":
    found = parent.get(path)
    return found if found is not None and hasattr(found, "keys") else None


def _attribute(node: "h5py.Group | h5py.Dataset", name: str) -> str:
    return _text(node.attrs.get(name, ""))


def _text(value: object) -> str:
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return value if isinstance(value, str) else ""
