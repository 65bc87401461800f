"""The Parquet file of a journal holds what was measured, and says of which run."""

import json
import math
from pathlib import Path

import pytest

from commands import say
from labharness.journal import SqliteJournal, parquet
from labharness.journal.parquet import export_parquet

pyarrow_parquet = pytest.importorskip("pyarrow.parquet")


def written(path: Path) -> None:
    with SqliteJournal(path, run={"seed": 7}) as journal:
        furnace = journal.stream("furnace.block", ["measured_c", "output"])
        gas = journal.stream("argon.poll", ["flow_sccm"])
        for second in range(150):
            output = math.nan if second % 10 == 0 else second / 7
            journal.sample(furnace, float(second), (20.0 + second, output))
            journal.sample(gas, second + 0.5, (99.5,))


def test_each_value_is_a_row_and_what_was_not_measured_is_null(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parquet, "ROWS_A_GROUP", 100)
    written(tmp_path / "journal.sqlite")
    assert export_parquet(tmp_path / "journal.sqlite", tmp_path / "run.parquet") == 450
    table = pyarrow_parquet.read_table(tmp_path / "run.parquet")
    assert json.loads(table.schema.metadata[b"labharness.run"]) == {"format": 3, "seed": 7}
    rows = table.to_pylist()
    assert len(rows) == 450
    found = {(row["stream"], row["column"], row["at_s"]): row["value"] for row in rows}
    assert found["furnace.block", "measured_c", 149.0] == 169.0
    assert found["furnace.block", "output", 149.0] == 149 / 7
    assert found["furnace.block", "output", 140.0] is None
    assert found["argon.poll", "flow_sccm", 12.5] == 99.5


def test_the_command_writes_it_beside_nothing_half_done(tmp_path: Path) -> None:
    written(tmp_path / "journal.sqlite")
    out = tmp_path / "run.parquet"
    said = say("journal", "export", tmp_path, "--parquet", out)
    assert said.code == 0
    assert said.out == f"{out}: 450 values\n"
    assert not list(tmp_path.glob(".*.part"))
    said = say("journal", "export", tmp_path, "--parquet", tmp_path / "none" / "run.parquet")
    assert said.code == 1
    assert said.err.count("\n") == 1


def test_a_journal_is_not_replaced_by_its_own_export(tmp_path: Path) -> None:
    written(tmp_path / "journal.sqlite")
    before = (tmp_path / "journal.sqlite").read_bytes()
    said = say("journal", "export", tmp_path, "--parquet", tmp_path / "journal.sqlite")
    said.is_one_plain_error("journal.sqlite is in the way")
    assert (tmp_path / "journal.sqlite").read_bytes() == before
