"""The places of spectra, and their arrangement: a grid, scattered spots, a line or a series."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

APART_SHARE: Final = 0.25
"""Of the widest step: places nearer than this are one column, for stages do not stop exactly."""

UNEVEN_MAX: Final = 0.3
"""Steps of a grid differ by no more than this share; a grid has no column left out."""

UNITS: Final = {"um": "µm", "mm": "mm", "nm": "nm", "m": "m", "s": "s"}

FILLED_MIN: Final = 0.5
"""A round wafer fills π/4 of its square; scattered spots fill far fewer cells."""


@dataclass(frozen=True, slots=True, eq=False)
class SpotLayout:
    """The place of each spectrum.

    Attributes:
        x: One value a spectrum: a place, a time or its number.
        y: The other coordinate; None where there is but one.
        x_name: Name and unit of x.
        y_name: Name and unit of y.
    """

    x: Array
    y: Array | None
    x_name: str
    y_name: str


@dataclass(frozen=True, slots=True, eq=False)
class Grid:
    """Places in rows and columns at even steps.

    Attributes:
        columns: Column of each spectrum.
        rows: Row of each spectrum, from low y to high.
        x: Middle of each column.
        y: Middle of each row.
    """

    columns: NDArray[np.intp]
    rows: NDArray[np.intp]
    x: Array
    y: Array


def places_of(columns: Mapping[str, Array], count: int) -> SpotLayout:
    """Find the coordinates that vary, x and y before others; a series has its numbers.

    Two columns without a name are taken as places in the order of the file.

    Args:
        columns: Values of each spectrum in the file, by names such as ``x_um``.
        count: Number of spectra.
    """
    varying = [name for name, column in columns.items() if np.ptp(column) > 0]
    varying.sort(key=lambda name: "xy".find(name.split("_")[0]) % 3)
    plane = [name for name in varying if name.split("_")[0] in ("x", "y")]
    plane = plane if len(plane) >= 2 else varying
    if len(plane) >= 2:
        x, y = plane[:2]
        return SpotLayout(columns[x], columns[y], _titled(x), _titled(y))
    if varying:
        return SpotLayout(columns[varying[0]], None, _titled(varying[0]), "")
    return SpotLayout(np.arange(1.0, count + 1), None, "spectrum", "")


def grid_of(places: SpotLayout) -> Grid | None:
    """Return rows and columns, where the places are a grid; else None."""
    if places.y is None:
        return None
    columns, x = _levels(places.x)
    rows, y = _levels(places.y)
    cells = x.size * y.size
    if min(x.size, y.size) < 2 or places.x.size < FILLED_MIN * cells:
        return None
    if not (_is_even(x) and _is_even(y)):
        return None
    if np.unique(rows * x.size + columns).size < places.x.size:
        return None
    return Grid(columns, rows, x, y)


def _levels(values: Array) -> tuple[NDArray[np.intp], Array]:
    order = np.argsort(values, kind="stable")
    steps = np.diff(values[order])
    new = steps > APART_SHARE * steps.max(initial=0.0)
    level = np.concatenate([[0], np.cumsum(new)])
    index = np.empty(values.size, dtype=np.intp)
    index[order] = level
    middle = np.bincount(index, weights=values) / np.bincount(index)
    return index, middle


def _is_even(levels: Array) -> bool:
    steps = np.diff(levels)
    return bool(np.ptp(steps) <= UNEVEN_MAX * steps.mean())


def _titled(name: str) -> str:
    quantity, _, unit = name.rpartition("_")
    return f"{quantity}, {UNITS[unit]}" if quantity and unit in UNITS else name.replace("_", " ")
