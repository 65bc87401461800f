"""A map is drawn as what it is: a grid, scattered spots or a line; a picture holds its cells."""

import struct
import zlib
from base64 import b64decode

import numpy as np
import pytest
from numpy.typing import NDArray

from labharness.core.vocabulary.measured import measured_text
from labharness.faces.report.maps import (
    Classes,
    MappedQuantity,
    SpotLayout,
    grid_of,
    map_parts,
    places_of,
    png_bytes,
)
from labharness.faces.report.markup import Html, el, rounded_ticks
from markup import parsed


def scan(columns: int, rows: int, *, jitter: float = 0.0, snake: bool = False) -> SpotLayout:
    """Return the places of a scan of a grid, as a stage drives it."""
    chance = np.random.default_rng(1)
    x, y = np.meshgrid(np.arange(columns) * 0.5, np.arange(rows) * 2.0)
    if snake:
        x[1::2] = x[1::2, ::-1]
    x = x + chance.normal(0, jitter, x.shape)
    return SpotLayout(x.ravel(), y.ravel(), "x, µm", "y, µm")


def cells_of(picture: bytes) -> NDArray[np.uint8]:
    """Read a PNG picture back by its specification."""
    assert picture.startswith(b"\x89PNG\r\n\x1a\n")
    at, data, width, height = 8, b"", 0, 0
    while at < len(picture):
        length, kind = struct.unpack_from(">I4s", picture, at)
        body = picture[at + 8 : at + 8 + length]
        (check,) = struct.unpack_from(">I", picture, at + 8 + length)
        assert check == zlib.crc32(kind + body)
        if kind == b"IHDR":
            width, height, *rest = struct.unpack(">IIBBBBB", body)
            assert rest == [8, 6, 0, 0, 0]
        data += body if kind == b"IDAT" else b""
        at += 12 + length
    lines = np.frombuffer(zlib.decompress(data), np.uint8).reshape(height, 1 + 4 * width)
    assert not lines[:, 0].any()
    return lines[:, 1:].reshape(height, width, 4)


def picture_in(parts: Html) -> NDArray[np.uint8]:
    (href,) = [value for name, value in parsed(el("svg", parts)).attributes if name == "href"]
    return cells_of(b64decode(href.removeprefix("data:image/png;base64,")))


# ---- places


@pytest.mark.parametrize("snake", [False, True])
def test_a_scan_is_a_grid_whichever_way_the_stage_went(snake: bool) -> None:
    places = scan(15, 8, jitter=0.01, snake=snake)
    grid = grid_of(places)
    assert grid is not None
    assert (grid.x.size, grid.y.size) == (15, 8)
    assert np.abs(grid.x[grid.columns] - places.x).max() < 0.06
    assert grid.y[grid.rows] == pytest.approx(places.y)


def test_a_round_wafer_is_a_grid_with_empty_corners() -> None:
    whole = scan(12, 12)
    assert whole.y is not None
    inside = np.hypot(whole.x / 0.5 - 5.5, whole.y / 2 - 5.5) < 6
    assert grid_of(SpotLayout(whole.x[inside], whole.y[inside], "x", "y")) is not None


def test_scattered_spots_are_no_grid() -> None:
    chance = np.random.default_rng(2)
    assert grid_of(SpotLayout(chance.random(40), chance.random(40), "x", "y")) is None


def test_a_place_measured_twice_is_no_grid() -> None:
    whole = scan(4, 4)
    assert whole.y is not None
    twice = SpotLayout(np.append(whole.x, 0.0), np.append(whole.y, 0.0), "x", "y")
    assert grid_of(twice) is None


def test_what_varies_is_taken_for_the_place() -> None:
    one, many = np.zeros(4), np.arange(4.0)
    assert places_of({"x_um": many, "y_um": many, "z_um": many}, 4).y_name == "y, µm"
    line = places_of({"x_um": one, "y_um": many}, 4)
    assert (line.x_name, line.y) == ("y, µm", None)
    assert places_of({"time_s": many}, 4).x_name == "time, s"
    assert places_of({"column_1": many, "column_2": many}, 4).y_name == "column 2"
    assert places_of({}, 4).x.tolist() == [1, 2, 3, 4]


# ---- pictures


def test_a_picture_is_read_back_cell_by_cell() -> None:
    cells = np.random.default_rng(3).integers(0, 256, (7, 11, 4), dtype=np.uint8)
    assert (cells_of(png_bytes(cells)) == cells).all()


def test_low_values_are_dark_high_ones_bright_and_none_is_grey() -> None:
    places = scan(3, 2)
    values = np.array([0.0, 0.5, 1.0, 0.0, np.nan, 1.0])  # from low y, row by row
    cells = picture_in(map_parts(places, MappedQuantity("position", values)))
    step = cells.shape[0] // 2
    bottom, top = cells[-1, ::step, :3].astype(int), cells[0, ::step, :3].astype(int)
    assert bottom[0].tolist() == [0x44, 0x01, 0x54]
    assert bottom[2].tolist() == [0xFD, 0xE7, 0x25]
    assert bottom[0].sum() < bottom[1].sum() < bottom[2].sum()
    assert top[1].tolist() == [225, 228, 232]


def test_cells_without_a_spectrum_are_clear() -> None:
    whole = scan(4, 4)
    assert whole.y is not None
    less = SpotLayout(whole.x[1:], whole.y[1:], "x", "y")
    cells = picture_in(map_parts(less, MappedQuantity("width", np.ones(15))))
    assert cells[-1, 0, 3] == 0
    assert (cells[0, :, 3] == 255).all()


def test_one_wild_spot_does_not_make_a_map_of_one_colour() -> None:
    values = np.linspace(0.0, 1.0, 400)
    values[7] = 1e6
    cells = picture_in(map_parts(scan(20, 20), MappedQuantity("height", values)))
    assert len(np.unique(cells.reshape(-1, 4), axis=0)) > 100


def test_spots_that_are_no_grid_are_drawn_each_at_its_place() -> None:
    chance = np.random.default_rng(2)
    places = SpotLayout(chance.random(9), chance.random(9), "x, µm", "y, µm")
    read = parsed(el("svg", map_parts(places, MappedQuantity("ratio", np.arange(9.0)))))
    assert read.tags.count("circle") == 9
    assert "image" not in read.tags


def test_classes_are_named_and_counted() -> None:
    index = np.array([0, 0, 1, 1, 1, -1])
    shown = Classes("layers", ("1 layer", "2 layers"), ("#0072b2", "#009e73"), index)
    told = parsed(el("svg", map_parts(scan(3, 2), shown))).texts
    assert {"1 layer: 2", "2 layers: 3", "none: 1"} <= set(told)


def test_a_line_of_places_is_a_curve_with_error_bars_and_says_what_is_beyond_it() -> None:
    places = SpotLayout(np.arange(100.0), None, "y, µm", "")
    values = np.linspace(383.0, 384.0, 100)
    values[3] = 900.0
    shown = MappedQuantity("position", values, np.full(100, 0.01))
    read = parsed(el("svg", map_parts(places, shown)))
    assert read.tags.count("circle") == 99
    assert "1 beyond the edges" in read.texts


@pytest.mark.parametrize("values", [[np.nan] * 6, [5.0] * 6, [0.0] * 6])
def test_a_map_without_contrast_or_values_is_still_a_map(values: list[float]) -> None:
    parts = map_parts(scan(3, 2), MappedQuantity("width", np.array(values)))
    assert picture_in(parts).shape[2] == 4


# ---- numbers as they are written


def test_ticks_that_four_digits_do_not_tell_apart_get_more() -> None:
    labels = [label for _, label in rounded_ticks(418.1, 418.3, 5)]
    assert labels == ["418.10", "418.15", "418.20", "418.25", "418.30"]


@pytest.mark.parametrize(
    ("value", "sigma", "text"),
    [
        (384.1234, 0.0312, "384.123 ± 0.031"),
        (40123.0, 1234.0, "40100 ± 1200"),
        (5.0, 0.099, "5.000 ± 0.099"),
        (1e-9, 1e-12, "1.0000e-09 ± 1.0e-12"),
        (812.0, 15.0, "812 ± 15"),
        (812.0, 0.0, "812 ± –"),
        (float("nan"), 1.0, "–"),
        (1.0, float("inf"), "1 ± –"),
    ],
)
def test_a_value_is_written_to_the_digits_its_error_leaves(
    value: float, sigma: float, text: str
) -> None:
    assert measured_text(value, sigma) == text
