"""A quantity or a class of each spectrum, drawn where it was measured: grid, spots or profile."""

import math
import struct
import zlib
from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from labharness.analysis.arrays import Array, Rows
from labharness.faces.report import markup
from labharness.faces.report.figures import LegendEntry, legend_parts
from labharness.faces.report.markup import Html, el, joined

Cells = NDArray[np.uint8]

MAP_WIDTH_PX, MAP_HEIGHT_PX = 340.0, 350.0
LEFT_PX, RIGHT_PX, TOP_PX, FLOOR_PX = 54.0, 268.0, 28.0, 268.0
BAR_PX: Final = (278.0, 290.0)
"""Where the key to the colours stands."""

LEGEND_PX: Final = 320.0
LEGEND_Y_PX: Final = FLOOR_PX + 50

# "viridis" of matplotlib (CC0), nine of its 256 colours: even to the eye, also without colour.
_VIRIDIS: Final = (
    "440154", "472d7b", "3b528b", "2c728e", "21918c", "28ae80", "5ec962", "addc30", "fde725"
)  # fmt: skip
NO_VALUE: Final = (225, 228, 232)
"""Light grey: a spectrum without this line."""

MIDDLE_PERCENT: Final = (2.0, 98.0)
"""Colours span these percentiles: one wild spot shall not make a map of one colour."""

PICTURE_PX_MIN: Final = 400
"""Cells are enlarged to so many pixels, so that no viewer blurs one into the next."""

BAR_STEPS: Final = 48
RADIUS_PX: Final = (2.0, 11.0)


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

    columns: Rows
    rows: Rows
    x: Array
    y: Array


@dataclass(frozen=True, slots=True, eq=False)
class MappedQuantity:
    """A measured number of each spectrum; NaN where there is none.

    Attributes:
        title: Name and unit.
        sigma: Its error, for a line of places.
    """

    title: str
    values: Array
    sigma: Array | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Classes:
    """The class of each spectrum.

    Attributes:
        title: The name of the classification.
        names: The name of each class.
        colours: The colour of each class, as ``#rrggbb``.
        index: Class of each spectrum; -1 where there is none.
    """

    title: str
    names: Sequence[str]
    colours: Sequence[str]
    index: Rows


def map_parts(places: SpotLayout, shown: MappedQuantity | Classes) -> Html:
    """Draw one map, or one profile where the places have but one coordinate.

    The parts of a drawing of ``MAP_WIDTH_PX`` by ``MAP_HEIGHT_PX``, without its ``svg``.
    """
    title = markup.words_at(LEFT_PX, 16.0, shown.title, font_weight="bold")
    if places.y is None:
        return joined(title, _profile(places, shown))
    frame = _frame(places.x, places.y)
    if isinstance(shown, Classes):
        colours, key = _class_colours(shown), _legend(shown)
    else:
        low, high = _span(shown.values)
        colours, key = _value_colours(shown.values, low, high), _bar(low, high)
    grid = grid_of(places)
    if grid is None:
        cells = _spots(frame, places.x, places.y, colours)
    else:
        cells = _raster(frame, grid, colours)
    axes = frame.axes(frame.x.ticks(4), frame.y.ticks(5))
    across = markup.axis_name(places.x_name, (LEFT_PX + RIGHT_PX) / 2, FLOOR_PX + 33)
    up = markup.upright_name(places.y_name, 12.0, (TOP_PX + FLOOR_PX) / 2)
    return joined(title, axes, cells, across, up, key)


def _frame(x: Array, y: Array) -> markup.Frame:
    """Return both axes one scale: a micrometre is as long upwards as across."""
    margin = 0.5 * max(np.ptp(x), np.ptp(y)) / max(math.sqrt(x.size) - 1, 1.0)
    across, up = RIGHT_PX - LEFT_PX, FLOOR_PX - TOP_PX
    x_span, y_span = float(np.ptp(x)) + 2 * margin, float(np.ptp(y)) + 2 * margin
    per_px = max(x_span / across, y_span / up)
    x_middle, y_middle = float(x.min() + x.max()) / 2, float(y.min() + y.max()) / 2
    x_half, y_half = per_px * across / 2, per_px * up / 2
    return markup.Frame(
        markup.Scale(x_middle - x_half, x_middle + x_half, LEFT_PX, RIGHT_PX),
        markup.Scale(y_middle - y_half, y_middle + y_half, FLOOR_PX, TOP_PX),
    )


def _span(values: Array) -> tuple[float, float]:
    there = values[np.isfinite(values)]
    if not there.size:
        return 0.0, 1.0
    low, high = (float(each) for each in np.percentile(there, MIDDLE_PERCENT))
    if high > low:
        return low, high
    room = abs(low) * 1e-3 or 1.0
    return low - room, low + room


def _value_colours(values: Array, low: float, high: float) -> Cells:
    table = np.array([[*bytes.fromhex(each)] for each in _VIRIDIS])
    there = np.isfinite(values)
    share = np.clip((np.where(there, values, low) - low) / (high - low), 0.0, 1.0)
    at = share * (len(table) - 1)
    places = np.arange(len(table))
    colours = np.stack([np.interp(at, places, channel) for channel in table.T], axis=-1)
    colours[~there] = NO_VALUE
    rounded: Cells = np.rint(colours).astype(np.uint8)
    return rounded


def _class_colours(shown: Classes) -> Cells:
    table = [[*bytes.fromhex(each.removeprefix("#"))] for each in shown.colours]
    colours: Cells = np.array([*table, NO_VALUE], dtype=np.uint8)[shown.index]
    return colours


def _raster(frame: markup.Frame, grid: Grid, colours: Cells) -> Html:
    """Draw a grid as one picture, and leave cells without a spectrum clear."""
    cells = np.zeros((grid.y.size, grid.x.size, 4), dtype=np.uint8)
    cells[grid.y.size - 1 - grid.rows, grid.columns, :3] = colours
    cells[grid.y.size - 1 - grid.rows, grid.columns, 3] = 255
    times = max(math.ceil(PICTURE_PX_MIN / max(cells.shape[:2])), 1)
    data = b64encode(png_bytes(cells.repeat(times, axis=0).repeat(times, axis=1))).decode()
    x_half = (grid.x[-1] - grid.x[0]) / (grid.x.size - 1) / 2
    y_half = (grid.y[-1] - grid.y[0]) / (grid.y.size - 1) / 2
    left, right = frame.x(float(grid.x[0] - x_half)), frame.x(float(grid.x[-1] + x_half))
    bottom, top = frame.y(float(grid.y[0] - y_half)), frame.y(float(grid.y[-1] + y_half))
    return el(
        "image",
        x=left,
        y=top,
        width=right - left,
        height=bottom - top,
        preserveAspectRatio="none",
        image_rendering="pixelated",
        href=Html(f"data:image/png;base64,{data}"),
    )


def _spots(frame: markup.Frame, x: Array, y: Array, colours: Cells) -> Html:
    room = math.sqrt((RIGHT_PX - LEFT_PX) * (FLOOR_PX - TOP_PX) / x.size)
    radius = min(max(0.4 * room, RADIUS_PX[0]), RADIUS_PX[1])
    return _dots(frame, x, y, colours, radius)


def _dots(frame: markup.Frame, x: Array, y: Array, colours: Cells, radius: float) -> Html:
    return joined(
        *(
            el("circle", cx=frame.x(one), cy=frame.y(other), r=radius, fill=_hex(colour))
            for one, other, colour in zip(x.tolist(), y.tolist(), colours, strict=True)
        )
    )


def _bar(low: float, high: float) -> Html:
    """Draw the key to the colours, with its numbers."""
    scale = markup.Scale(low, high, FLOOR_PX, TOP_PX)
    left, right = BAR_PX
    steps = np.linspace(low, high, BAR_STEPS + 1)
    colours = _value_colours((steps[1:] + steps[:-1]) / 2, low, high)
    edges = [scale(each) for each in steps.tolist()]
    parts = [
        markup.box(left, top, right - left, bottom - top + 0.4, fill=_hex(colour))
        for bottom, top, colour in zip(edges, edges[1:], colours, strict=False)
    ]
    for value, label in markup.rounded_ticks(low, high, 4):
        parts.append(markup.words_at(right + 4, scale(value) + 4, label, class_="small"))
    return joined(*parts)


def _legend(shown: Classes) -> Html:
    """Name the classes that are there, below the map, with how many spectra each has."""
    counted = [*_counted(shown), ("none", int((shown.index < 0).sum()))]
    colours = (*shown.colours, _hex(NO_VALUE))
    return _key(
        (f"{name}: {count}", colour)
        for (name, count), colour in zip(counted, colours, strict=True)
        if count
    )


def _profile(places: SpotLayout, shown: MappedQuantity | Classes) -> Html:
    x = places.x
    margin = 0.02 * float(np.ptp(x)) or 1.0
    ends = float(x.min()) - margin, float(x.max()) + margin
    across = markup.Scale(*ends, LEFT_PX, MAP_WIDTH_PX - 10)
    if isinstance(shown, Classes):
        values = np.where(shown.index < 0, np.nan, shown.index.astype(np.float64))
        frame = markup.Frame(across, markup.Scale(-0.6, len(shown.names) - 0.4, FLOOR_PX, TOP_PX))
        ticks = [(float(at), str(at + 1)) for at in range(len(shown.names))]
        named = enumerate(_counted(shown), 1)
        key = _key((f"{at}: {name} ({count})", "") for at, (name, count) in named)
        colours = _class_colours(shown)
        bars: list[Html] = []
    else:
        values = shown.values
        low, high = _span(values)
        room = 0.12 * (high - low)
        frame = markup.Frame(across, markup.Scale(low - room, high + room, FLOOR_PX, TOP_PX))
        ticks = frame.y.ticks(5)
        colours, key = np.full((x.size, 3), (0, 114, 178), dtype=np.uint8), Html("")
        bars = _error_bars(frame, x, shown)
    inside = np.isfinite(values) & (values >= frame.y.low) & (values <= frame.y.high)
    dots = _dots(frame, x[inside], values[inside], colours[inside], 2.2)
    axes = frame.axes(across.ticks(5), ticks)
    name = markup.axis_name(places.x_name, (LEFT_PX + MAP_WIDTH_PX) / 2, FLOOR_PX + 33)
    outside = int((np.isfinite(values) & ~inside).sum())
    said = markup.words_at(LEFT_PX, FLOOR_PX + 50, f"{outside} beyond the edges", class_="small")
    return joined(axes, *bars, dots, name, key, said if outside else Html(""))


def _counted(shown: Classes) -> Iterator[tuple[str, int]]:
    return ((name, int((shown.index == at).sum())) for at, name in enumerate(shown.names))


def _key(named: Iterable[tuple[str, str]]) -> Html:
    """Draw the words below a map, each with its colour."""
    entries = [LegendEntry(words, len(words), colour) for words, colour in named]
    return legend_parts(entries, 12.0, LEGEND_Y_PX, LEGEND_PX)


def _error_bars(frame: markup.Frame, x: Array, shown: MappedQuantity) -> list[Html]:
    if shown.sigma is None:
        return []
    found = []
    for at in np.nonzero(np.isfinite(shown.values) & np.isfinite(shown.sigma))[0]:
        value, sigma = float(shown.values[at]), float(shown.sigma[at])
        across = frame.x(float(x[at]))
        low, high = max(value - sigma, frame.y.low), min(value + sigma, frame.y.high)
        if low < high:
            found.append(markup.upright(across, frame.y(low), frame.y(high), "axis"))
    return found


def _hex(colour: Iterable[int]) -> str:
    return "#{:02x}{:02x}{:02x}".format(*colour)


APART_SHARE: Final = 0.25
"""Of the widest step: places nearer than this are one column, for stages do not stop exactly."""

UNEVEN_MAX: Final = 0.3
"""Steps of a grid differ by no more than this share; a grid has no column left out."""

UNITS: Final = {"um": "µm", "mm": "mm", "nm": "nm", "m": "m", "s": "s"}

FILLED_MIN: Final = 0.5
"""A round wafer fills π/4 of its square; scattered spots fill far fewer cells."""


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
    if not (_is_even(x) and _is_even(y)) or np.unique(rows * x.size + columns).size < places.x.size:
        return None
    return Grid(columns, rows, x, y)


def _levels(values: Array) -> tuple[Rows, Array]:
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


SIGNATURE: Final = b"\x89PNG\r\n\x1a\n"
EIGHT_BITS, RGBA, DEFLATE, NO_FILTER, PLAIN = 8, 6, 0, 0, 0
"""PNG (third edition), 11.2.1: bits a channel, colour type, compression, filter, no interlace."""


def png_bytes(cells: Cells) -> bytes:
    """Write cells as a PNG image.

    Args:
        cells: Red, green, blue and opacity of each, shape (height, width, 4), from the top.
    """
    height, width, _ = cells.shape
    lines = b"".join(b"\0" + row.tobytes() for row in cells)  # each begins with its filter: none
    header = struct.pack(">IIBBBBB", width, height, EIGHT_BITS, RGBA, DEFLATE, NO_FILTER, PLAIN)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(lines, 9)), (b"IEND", b""))
    return SIGNATURE + b"".join(_chunk(kind, data) for kind, data in chunks)


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
