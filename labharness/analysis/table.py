"""One table of peaks for any number of files: a row for each line of each spectrum.

A line that does not stand out has a row without numbers, so that tables of different days can be
joined and a map keeps its shape.
"""

import csv
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from labharness.analysis.arrays import Array
from labharness.analysis.measured import FittedRange

WORDS = ("file", "material", "line")
MEASURED = {
    "position_cm1": "position_cm1",
    "sigma_position_cm1": "position_sigma_cm1",
    "fwhm_cm1": "fwhm_cm1",
    "sigma_fwhm_cm1": "fwhm_sigma_cm1",
    "height_counts": "height_counts",
    "sigma_height_counts": "height_sigma_counts",
    "area_counts_cm1": "area_counts_cm1",
    "sigma_area_counts_cm1": "area_sigma_counts_cm1",
}
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
                    for name, column in here.items():
                        row[name] = float(column[index])
                    if line.stands_out[index]:
                        for name, attribute in MEASURED.items():
                            row[name] = float(getattr(line, attribute)[index])
                        row["reduced_chi2"] = float(each.reduced_chi2[index])
                    self._append(row)

    def _append(self, row: Mapping[str, Any]) -> None:
        before = len(self)
        for name in row.keys() - self.columns.keys():
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
