"""The measured lines of all spectra of a file: position, width, height, area and their errors.

A smooth background under lines: asymmetrically reweighted penalised least squares (arPLS). Baek,
Park, Ahn and Choo, Analyst 140 (2015) 250, 10.1039/C4AN01061B: a curve with little curvature
(Whittaker's smoother), repeated with less and less weight where the spectrum is above it.

One table of peaks for any number of files: a row for each line of each spectrum. A line that does
not stand out has a row without numbers, so that tables of different days can be joined and a map
keeps its shape.
"""

import csv
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, field
from typing import Any

import numpy as np

from labharness.analysis.arrays import Array, Mask
from labharness.analysis.lines import FittedLine, fit_window
from labharness.analysis.material_table import LineGroup
from labharness.analysis.spectrum import Spectrum, Stack, cut_window, stacked

BASELINE_PERIOD_CM1 = 500.0
"""The smoother halves a wave of this period; luminescence and filters change more slowly.
Judgement. It takes the wings of a broad Lorentz line for background: on a glow of half the axis a
line of 40 cm⁻¹ keeps its area to 1 %, one of 60 loses a tenth and one of 150 a fifth."""

ITERATIONS_MAX = 50
CHANGE_MIN = 1e-3
"""Stop when the weights change by less than this share."""

STEEPNESS, OFFSET_SIGMA = 2.0, 2.0
"""Equation 10 of the paper: the weight falls from one to nothing around the mean of the points
below the curve, within two of their standard deviations to either side."""

EXPONENT_MAX = 500.0


def arpls(axis_cm1: Array, counts: Array) -> Array:
    """Return the background under one spectrum, in its unit.

    Args:
        axis_cm1: Shift of each pixel, ascending.
        counts: One value a pixel.
    """
    from scipy.linalg import solveh_banded

    size = counts.size
    pixel = float(axis_cm1[-1] - axis_cm1[0]) / (size - 1)
    stiffness = (BASELINE_PERIOD_CM1 / (2 * np.pi * pixel)) ** 4
    penalty = _penalty(size) * stiffness
    weight = np.ones(size)
    ground: Array = counts
    for _ in range(ITERATIONS_MAX):
        matrix = penalty.copy()
        matrix[-1] += weight
        ground = solveh_banded(matrix, weight * counts, check_finite=False)
        above = counts - ground
        below = above[above < 0]
        if below.size < 2 or not below.std() > 0:
            break
        reach = OFFSET_SIGMA * float(below.std()) - float(below.mean())
        exponent = STEEPNESS * (above - reach) / float(below.std())
        new = 1 / (1 + np.exp(np.clip(exponent, -EXPONENT_MAX, EXPONENT_MAX)))
        changed = float(np.linalg.norm(new - weight)) / float(np.linalg.norm(weight))
        weight = new
        if changed < CHANGE_MIN:
            break
    return ground


def _penalty(size: int) -> Array:
    """Return the upper bands of D'D, where D takes second differences of ``size`` pixels."""
    bands = np.zeros((3, size))
    for row, factor in enumerate((1.0, -2.0, 1.0)):
        for column in range(row, 3):
            other = (1.0, -2.0, 1.0)[column]
            bands[2 - (column - row), column : size - 2 + column] += factor * other
    return bands


BASELINES = ("straight", "arpls")
"""The background of the lines: a straight line that is fitted together with them, or a smooth curve
through the whole spectrum, subtracted before the fit."""

HEIGHT_SIGMA_MIN = 6.0
"""A line stands out if its height exceeds this many errors, as for naming a material."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class MeasuredLine(FittedLine):
    """One line in every spectrum of a file: each attribute has one value per spectrum.

    Errors are one sigma from the noise of the pixels, enlarged by the root of the reduced
    chi-squared if that is above one.

    Attributes:
        name: Its usual name.
        stands_out: The fit converged, and the line is ``HEIGHT_SIGMA_MIN`` errors high. Otherwise
            the numbers have no meaning.
        height_counts: Height over the background, in the file's unit of intensity.
        area_counts_cm1: Area of the Lorentz line, in that unit times cm⁻¹.
    """

    name: str
    stands_out: Mask


@dataclass(frozen=True, slots=True, eq=False)
class FittedRange:
    """The fit within one range of all spectra, with the data to draw it.

    Attributes:
        range_cm1: From low to high.
        lines: The lines fitted together.
        shift_cm1: Shift of each pixel, shape (pixels).
        counts: In the unit of the file, shape (spectra, pixels).
        noise_counts: One sigma of each pixel; infinite for a removed cosmic ray.
        baseline_counts: Background subtracted before the fit; zeros for a straight one.
        level_counts: The straight background at ``centre_cm1``, one value per spectrum.
        slope_counts_per_cm1: Its slope.
        centre_cm1: Position of the level.
        reduced_chi2: One value per spectrum.
    """

    range_cm1: tuple[float, float]
    lines: tuple[MeasuredLine, ...]
    shift_cm1: Array
    counts: Array
    noise_counts: Array
    baseline_counts: Array
    level_counts: Array
    slope_counts_per_cm1: Array
    centre_cm1: float
    reduced_chi2: Array

    def ground(self, index: int, shift_cm1: Array) -> Array:
        """Return the background of one spectrum, including the one subtracted before the fit."""
        straight = self.level_counts[index] + self.slope_counts_per_cm1[index] * (
            shift_cm1 - self.centre_cm1
        )
        curved = np.interp(shift_cm1, self.shift_cm1, self.baseline_counts[index])
        return straight + curved

    def model(self, index: int, shift_cm1: Array) -> Array:
        """Return the fitted curve of one spectrum."""
        total = self.ground(index, shift_cm1)
        for line in self.lines:
            reach = (shift_cm1 - line.position_cm1[index]) / (line.fwhm_cm1[index] / 2)
            total = total + line.height_counts[index] / (1 + reach * reach)
        return total


def measure(
    spectra: Sequence[Spectrum],
    units_per_count: Array,
    ranges: Sequence[LineGroup],
    baseline: str = "straight",
    judged: Mask | None = None,
) -> tuple[FittedRange, ...]:
    """Fit the lines of each range in all spectra at once.

    The lines are Lorentzian. The weight of a pixel contains its noise and the usual misfit of such
    lines. The noise is that before any background was subtracted: photons of the background scatter
    also after the subtraction.

    Args:
        spectra: On one axis, in electrons.
        units_per_count: Factor from electrons to the file's unit, shape (spectra).
        ranges: The lines to fit.
        baseline: One of ``BASELINES``.
        judged: Mask of the valid spectra, shape (spectra); in a dead or saturated one no line
            stands out. None takes all.

    Raises:
        ValueError: When the baseline is unknown.
    """
    if baseline not in BASELINES:
        raise ValueError(f"no baseline {baseline!r}; there are {', '.join(BASELINES)}")
    grounds = None
    if baseline == "arpls":
        grounds = np.stack([arpls(each.shift_cm1, each.counts) for each in spectra])
    stack = stacked(spectra)
    usable = np.ones(len(spectra), dtype=bool) if judged is None else judged
    return tuple(_fitted(stack, units_per_count, each, grounds, usable) for each in ranges)


def _fitted(
    stack: Stack,
    units_per_count: Array,
    wanted: LineGroup,
    grounds: Array | None,
    usable: Mask,
) -> FittedRange:
    window = cut_window(stack, wanted.range_cm1)
    x, counts = window.shift_cm1, window.counts
    ground = np.zeros_like(counts)
    if grounds is not None:
        first = int(np.searchsorted(stack.shift_cm1, x[0]))
        ground = grounds[:, first : first + x.size]
    fits = fit_window(window._replace(counts=counts - ground), wanted.windows)
    unit = units_per_count[:, None]
    with np.errstate(divide="ignore"):
        noise = unit / window.root_noise
    level, slope = fits.parameters[:, -2:].T * units_per_count
    return FittedRange(
        range_cm1=wanted.range_cm1,
        lines=tuple(
            _line(name, fits.line(at), fits.converged & usable, units_per_count)
            for at, name in enumerate(wanted.names)
        ),
        shift_cm1=x,
        counts=counts * unit,
        noise_counts=noise,
        baseline_counts=ground * unit,
        level_counts=level,
        slope_counts_per_cm1=slope,
        centre_cm1=fits.centre_cm1,
        reduced_chi2=fits.chi2 / fits.freedom,
    )


def _line(name: str, line: FittedLine, converged: Mask, units_per_count: Array) -> MeasuredLine:
    stands_out = converged & (line.height_counts > HEIGHT_SIGMA_MIN * line.height_sigma_counts)
    numbers = astuple(line)
    in_units = (each * units_per_count for each in numbers[4:])  # heights and areas
    return MeasuredLine(*numbers[:4], *in_units, name=name, stands_out=stands_out)


WORDS = ("file", "material", "line")


def with_sigmas(*quantities: str) -> dict[str, str]:
    """Return the column of each quantity and of its uncertainty, each with its attribute."""
    found: dict[str, str] = {}
    for each in quantities:
        quantity, _, unit = each.partition("_")
        found |= {each: each, f"sigma_{each}": f"{quantity}_sigma_{unit}"}
    return found


MEASURED = with_sigmas("position_cm1", "fwhm_cm1", "height_counts", "area_counts_cm1")
"""Columns of a line that stands out, and the attributes of a measured line."""

COLUMNS = (
    *("file", "spectrum", "x_um", "y_um", "material", "line", "stands_out"),
    *MEASURED,
    *("reduced_chi2", "axis_moved_cm1"),
)
"""``spectrum`` counts from one; ``counts`` is the file's unit of intensity. Positions are on the
axis calibrated to silicon, shifted by ``axis_moved_cm1``."""

DIGITS = 10
"""Significant digits of a number in CSV; a position is known to seven."""

UM_PER = {"um": 1.0, "mm": 1e3, "nm": 1e-3, "m": 1e6}
FORMULA = ("=", "+", "-", "@")
"""Spreadsheets calculate a CSV cell that begins with one of these; a file name must stay text."""


@dataclass(slots=True)
class PeakTable:
    """Rows of any number of files, column by column.

    Attributes:
        columns: Each has one value per row; a missing number is None. Places other than x and y in
            µm are additional columns, with the names from the files.
    """

    columns: dict[str, list[Any]] = field(default_factory=lambda: {name: [] for name in COLUMNS})

    def __len__(self) -> int:
        return len(self.columns["file"])

    def add(
        self,
        file: str,
        materials: Sequence[str],
        places: Mapping[str, Array],
        fitted: Sequence[FittedRange],
        axis_moved_cm1: float,
    ) -> None:
        """Add all lines of all spectra of one file.

        Args:
            file: Name of the file.
            materials: Material of each spectrum.
            places: Places in the file: a column of numbers for each name.
            fitted: The fitted ranges.
            axis_moved_cm1: Shift that was added to the file's axis.
        """
        here = place_columns(places)
        for index, material in enumerate(materials):
            for each in fitted:
                for line in each.lines:
                    row: dict[str, Any] = {
                        "file": file,
                        "spectrum": index + 1,
                        "material": material,
                        "line": line.name,
                        "stands_out": bool(line.stands_out[index]),
                        "axis_moved_cm1": axis_moved_cm1,
                    }
                    row |= {name: float(column[index]) for name, column in here.items()}
                    if line.stands_out[index]:
                        for name, attribute in MEASURED.items():
                            row[name] = float(getattr(line, attribute)[index])
                        row["reduced_chi2"] = float(each.reduced_chi2[index])
                    self._append(row)

    def _append(self, row: Mapping[str, Any]) -> None:
        before = len(self)
        for name in row:
            if name not in self.columns:
                self.columns[name] = [None] * before
        for name, column in self.columns.items():
            column.append(row.get(name))

    def rows(self) -> Iterator[dict[str, Any]]:
        """Return each row as a dictionary by column."""
        for values in zip(*self.columns.values(), strict=True):
            yield dict(zip(self.columns, values, strict=True))

    def csv_text(self) -> str:
        """Return the table as CSV with one heading; a missing number is an empty cell."""
        written = io.StringIO()
        writer = csv.writer(written, lineterminator="\n")
        writer.writerow(self.columns)
        for values in zip(*self.columns.values(), strict=True):
            writer.writerow(map(_cell, values))
        return written.getvalue()


def parquet_bytes(table: PeakTable) -> bytes:
    """Return the table as an Apache Parquet file, with typed text, numbers and truth values.

    Raises:
        ModuleNotFoundError: When pyarrow is missing; the extra ``formats`` installs it.
    """
    import pyarrow
    from pyarrow import parquet

    types = {name: pyarrow.float64() for name in table.columns}
    types |= {name: pyarrow.string() for name in WORDS}
    types |= {"spectrum": pyarrow.int64(), "stands_out": pyarrow.bool_()}
    words = {name: [plain_name(each) for each in table.columns[name]] for name in WORDS}
    columns = {**table.columns, **words}
    arrays = {name: pyarrow.array(columns[name], type=types[name]) for name in columns}
    memory = io.BytesIO()
    parquet.write_table(pyarrow.table(arrays), memory)
    return memory.getvalue()


def place_columns(places: Mapping[str, Array]) -> dict[str, Array]:
    """Return places by the names of a table's columns; x and y with a known unit are in µm."""
    found: dict[str, Array] = {}
    for name, column in places.items():
        quantity, _, unit = name.rpartition("_")
        if quantity in ("x", "y") and unit in UM_PER:
            found[f"{quantity}_um"] = column * UM_PER[unit]
        else:
            clean = re.sub(r"\W+", "_", name).strip("_") or "place"
            found[clean if clean not in COLUMNS else f"place_{clean}"] = column
    return found


def plain_name(text: str) -> str:
    """Return a text without control characters and invalid bytes."""
    return "".join(each if each.isprintable() else "\ufffd" for each in text)


def _cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return f"{value:.{DIGITS}g}"
    text = plain_name(str(value))
    return f"./{text}" if text.startswith(FORMULA) else text
