"""``labharness analyse`` writes over its own files alone, and says what stands in a way at once."""

import sys
from pathlib import Path

import numpy as np
import pytest

from commands import say
from films import MONOLAYER, SUBSTRATE, film, written

STRANGER = b"of last year, and the only copy\n"


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    return written(tmp_path / "mine.txt", film(MONOLAYER))


OUTPUTS = [
    ("--table", "out.csv"),
    ("--table", "out.parquet"),
    ("--save", "out.csv"),
    ("--save", "out.nxs"),
    ("--save", "out.h5"),
    ("--report", "out.html"),
    ("--plot", "mine.txt.svg"),
]


def asked(option: str, target: Path) -> tuple[str | Path, ...]:
    return (option,) if option == "--plot" else (option, target)


@pytest.mark.promise(51)
@pytest.mark.parametrize(("option", "name"), OUTPUTS)
def test_a_file_of_somebody_else_is_not_written_over(
    tmp_path: Path, mine: Path, option: str, name: str
) -> None:
    target = tmp_path / name
    target.write_bytes(STRANGER)
    said = say("analyse", *asked(option, target), mine)
    said.is_one_plain_error(f"{target} is in the way", option, "--overwrite")
    assert target.read_bytes() == STRANGER
    assert say("analyse", *asked(option, target), "--overwrite", mine).code == 0
    assert target.read_bytes() != STRANGER


@pytest.mark.parametrize(("option", "name"), OUTPUTS)
def test_what_it_wrote_itself_is_written_again(
    tmp_path: Path, mine: Path, option: str, name: str
) -> None:
    target = tmp_path / name
    for _ in range(2):
        assert say("analyse", *asked(option, target), mine).code == 0
    target.write_bytes(b"")  # as mktemp leaves it
    assert say("analyse", *asked(option, target), mine).code == 0
    assert target.stat().st_size > 0


@pytest.mark.promise(51)
def test_a_page_or_a_table_that_another_program_wrote_is_somebody_elses(
    tmp_path: Path, mine: Path
) -> None:
    page, table = tmp_path / "page.html", tmp_path / "table.csv"
    page.write_text("<!doctype html><title>my thesis</title>", "utf-8")
    table.write_text("file,spectrum,peak\n1,2,3\n", "utf-8")
    say("analyse", "--report", page, mine).is_one_plain_error("page.html is in the way")
    say("analyse", "--table", table, mine).is_one_plain_error("table.csv is in the way")


@pytest.mark.promise(51)
def test_a_map_of_somebody_else_is_not_drawn_over(tmp_path: Path, mine: Path) -> None:
    both = written(tmp_path / "both.csv", film(MONOLAYER))
    rows = both.read_text("utf-8").splitlines()
    both.write_text("\n".join(f"{row}\t{row.split()[1]}" for row in rows), "utf-8")
    other = Path(f"{both}.map.svg")
    other.write_bytes(STRANGER)
    said = say("analyse", "--plot", both)
    assert (said.code, other.read_bytes()) == (64, STRANGER)
    assert "both.csv.map.svg is in the way" in said.err


def test_two_outputs_of_one_name_are_refused(tmp_path: Path, mine: Path) -> None:
    target = tmp_path / "one.csv"
    said = say("analyse", "--table", target, "--save", f"{tmp_path}/./one.csv", mine)
    said.is_one_plain_error("one.csv is named twice")
    assert not target.exists()


def test_all_that_is_not_installed_is_named_at_once(
    tmp_path: Path, mine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setitem(sys.modules, "h5py", None)
    outputs = ("--table", tmp_path / "t.parquet", "--save", tmp_path / "s.nxs")
    said = say("analyse", *outputs, mine)
    said.is_one_plain_error(
        "writing Parquet needs pyarrow and writing HDF5 needs h5py: "
        "pip install 'labharness[formats]'"
    )
    stored = tmp_path / "stored.h5"
    stored.write_bytes(b"\x89HDF\r\n\x1a\n" + bytes(64))
    said = say("analyse", "--table", tmp_path / "t.parquet", mine, stored)
    said.is_one_plain_error("reading HDF5 needs h5py", "writing Parquet needs pyarrow")


@pytest.mark.parametrize("laser", [("--laser-nm", "532"), ()])
def test_a_raman_file_given_as_photoluminescence_is_told_to_be_one(
    tmp_path: Path, mine: Path, laser: tuple[str, ...]
) -> None:
    other = written(tmp_path / "other.txt", film(SUBSTRATE))
    said = say("analyse", *laser, "--pl", other, mine)
    said.is_one_plain_error("other.txt", "that is a Raman spectrum")


def test_a_wide_raman_spectrum_given_as_photoluminescence_is_told_by_silicon(
    tmp_path: Path, mine: Path
) -> None:
    axis = np.arange(100.0, 3000.0, 1.0)
    rng = np.random.default_rng(1)
    silicon = 20_000 / (1 + ((axis - 520.7) / 1.8) ** 2)
    other = written(tmp_path / "other.txt", rng.poisson(400 + silicon).astype(float), axis)
    said = say("analyse", "--laser-nm", "532", "--pl", other, mine)
    said.is_one_plain_error("other.txt", "silicon's at 520.7 cm⁻¹: that is a Raman spectrum")
