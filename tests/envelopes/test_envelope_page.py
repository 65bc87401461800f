"""The page about envelope files names every table and every key that such a file may have."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from pydantic import BaseModel

from labharness.core.files.tables import keys_of
from labharness.lab.config.envelope_patch import PatchFile
from labharness.lab.config.envelopes import (
    BoundRow,
    KindLimits,
    LineFile,
    PurgedRow,
    TightRow,
)

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "envelope-file.md"


def keys(model: type[BaseModel], path: Sequence[str] = ()) -> Iterator[tuple[str, str]]:
    """Return each key of a table and of the tables in it, with the table's path."""
    for name in keys_of(path, model):
        yield ".".join(path), name
        inner = (*path, name)
        if set(keys_of(inner, model)) != set(keys_of(path, model)):
            yield from keys(model, inner)


@pytest.mark.parametrize(
    "model", [LineFile, KindLimits, PatchFile, BoundRow, PurgedRow, TightRow], ids=str
)
def test_every_key_of_an_envelope_stands_on_its_page(model: type[BaseModel]) -> None:
    page = PAGE.read_text("utf-8")
    named = {word for code in re.findall(r"`([^`]+)`", page) for word in re.findall(r"\w+", code)}
    missing = [f"{table}: {key}" for table, key in keys(model) if key not in named]
    assert missing == []


def test_each_key_of_a_line_stands_in_a_row_of_its_own_table() -> None:
    """A key that two tables share is told of for both; a bound's keys stand in the text."""
    rows: dict[str, set[str]] = {}
    table = ""
    for line in PAGE.read_text("utf-8").splitlines():
        cells = line.split("|")
        if len(cells) != 5:
            continue
        head = re.search(r"\[+([a-z_.]+)", cells[1])
        table = head.group(1).strip(".") if head else table
        rows.setdefault(table, set()).update(re.findall(r"\w+", " ".join(cells[2:])))
    bound = set(BoundRow.model_fields)
    missing = [
        f"[{table}] {key}"
        for table, key in keys(LineFile)
        if table and table in rows and key not in rows[table] | bound
        if not any(f"{each}.".startswith(f"{table}.{key}.") for each in rows)
    ]
    assert missing == []
    assert {"limit", "interlock", "plausible", "purge.backfill", "contact", "ambient"} <= set(rows)
