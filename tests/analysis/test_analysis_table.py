"""One table of peaks: units in the names, a row a line and spectrum, CSV and Parquet."""

import csv
import io

import numpy as np
import pytest

from labharness.analysis.line_table import ranges_of
from labharness.analysis.measured import (
    COLUMNS,
    FittedRange,
    PeakTable,
    measure,
    parquet_bytes,
    place_columns,
)
from labharness.analysis.spectrum import Spectrum

AXIS = np.linspace(340.0, 560.0, 400)


def spectrum(height: float) -> Spectrum:
    counts = np.full_like(AXIS, 200.0)
    for position, width, share in ((384.0, 4.0, 0.5), (404.0, 5.0, 1.0)):
        counts += share * height / (1 + ((AXIS - position) / (width / 2)) ** 2)
    return Spectrum(AXIS, np.random.default_rng(3).poisson(counts).astype(float), 1.0)


def fitted() -> tuple[FittedRange, ...]:
    """Measure one spectrum with a film and one without."""
    return measure([spectrum(2000.0), spectrum(0.0)], np.ones(2), ranges_of("MoS2", AXIS))


def filled(name: str = "a.txt") -> PeakTable:
    table = PeakTable()
    places = {"x_mm": np.array([0.001, 0.002]), "focus": np.array([5.0, 6.0])}
    table.add(name, ("MoS2", "silicon"), places, fitted(), 0.25)
    return table


def read(table: PeakTable) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(table.csv_text())))


def test_every_number_names_its_unit_and_every_measured_one_has_its_error() -> None:
    measured = ("position_cm1", "fwhm_cm1", "height_counts", "area_counts_cm1")
    assert set(measured) | {f"sigma_{name}" for name in measured} <= set(COLUMNS)
    assert {"file", "spectrum", "x_um", "y_um", "line"} <= set(COLUMNS)


def test_each_line_of_each_spectrum_has_a_row() -> None:
    rows = read(filled())
    assert [(row["spectrum"], row["line"]) for row in rows] == [
        ("1", "E2g"), ("1", "A1g"), ("1", "Si"), ("2", "E2g"), ("2", "A1g"), ("2", "Si")
    ]  # fmt: skip
    assert float(rows[1]["position_cm1"]) == pytest.approx(404.0, abs=0.2)
    assert float(rows[1]["area_counts_cm1"]) == pytest.approx(15700, rel=0.05)
    assert 0 < float(rows[1]["sigma_area_counts_cm1"]) < 500
    assert rows[1]["axis_moved_cm1"] == "0.25"


def test_a_line_that_does_not_stand_out_has_no_numbers() -> None:
    bare = read(filled())[3]
    assert bare["stands_out"] == "false"
    assert bare["position_cm1"] == bare["area_counts_cm1"] == bare["reduced_chi2"] == ""
    assert bare["x_um"] == "2"


def test_places_are_in_micrometres_and_others_keep_their_name() -> None:
    found = place_columns({"x_mm": np.array([2.0]), "Y": np.array([1.0]), "line": np.array([3.0])})
    assert {name: float(column[0]) for name, column in found.items()} == {
        "x_um": 2000.0, "Y": 1.0, "place_line": 3.0
    }  # fmt: skip
    assert [row["focus"] for row in read(filled())] == ["5"] * 3 + ["6"] * 3


def test_files_with_other_places_share_one_table() -> None:
    table = filled()
    table.add("b.txt", ("MoS2", "MoS2"), {"time_s": np.array([0.0, 9.0])}, fitted(), 0.0)
    rows = read(table)
    assert len(rows) == 12
    assert {len(column) for column in table.columns.values()} == {12}
    assert (rows[0]["time_s"], rows[-1]["time_s"], rows[-1]["focus"]) == ("", "9", "")


@pytest.mark.parametrize("name", ["=1+1.txt", "+x", "-x", "@x"])
def test_a_name_of_a_file_is_never_a_formula(name: str) -> None:
    assert read(filled(name))[0]["file"] == f"./{name}"


def test_a_name_that_steers_a_terminal_or_breaks_a_row_is_made_plain() -> None:
    rows = read(filled('a\x1b[2J\n,"b\udcff'))
    assert len(rows) == 6
    assert rows[0]["file"] == 'a\ufffd[2J\ufffd,"b\ufffd'


def test_parquet_holds_the_same_table_with_types() -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    table = filled("a\udcff.txt")
    found = parquet.read_table(io.BytesIO(parquet_bytes(table)))
    assert found.column_names == list(table.columns)
    kinds = {field.name: str(field.type) for field in found.schema}
    assert (kinds["file"], kinds["spectrum"], kinds["stands_out"], kinds["focus"]) == (
        "string", "int64", "bool", "double"
    )  # fmt: skip
    columns = found.to_pydict()
    assert columns["area_counts_cm1"] == table.columns["area_counts_cm1"]
    assert columns["position_cm1"][3] is None
