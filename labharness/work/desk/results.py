"""Results of queries, such as spectra: kept in the journal as they come, and read exactly."""

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, is_dataclass
from pathlib import Path
from typing import Any

from labharness.journal import JournalFailed, SqliteJournal
from labharness.journal.chain import unseal
from labharness.journal.reading import sealed
from labharness.work.capability import QueryResult

KIND = "queried"
SHORT_CHARACTERS = 2000
ROWS_TOLD_MAX = 8
"""Of a result in an event of its session; messages are small, and results are not."""


class ResultLog:
    """Keeps each result of a query as a record of the journal.

    A row that equals the one stored before it in its place, such as the axis of a spectrum, is not
    stored again: the record names the one that holds it.
    """

    def __init__(self, journal: SqliteJournal, now_s: Callable[[], float]) -> None:
        self._journal = journal
        self._now_s = now_s
        self._rows: dict[tuple[str, str, int], tuple[int, str]] = {}

    async def keep(
        self, step: str, instrument: str, query: str, about: Mapping[str, Any], value: object
    ) -> int:
        """Keep a result; return the number of its record once it is on the disk.

        Raises:
            JournalFailed: It cannot be kept.
            ValueError: It is longer than a journal takes.
        """
        told = {"step": step, "instrument": instrument, "query": query, "about": dict(about)}
        rows = _rows_of(value)
        if rows is None:
            seq = self._append({**told, "rows": None}, _text(value))
        else:
            places = [(instrument, query, at) for at in range(len(rows))]
            known = [self._rows.get(place, (0, "")) for place in places]
            same = [held[0] if held[1] == row else 0 for held, row in zip(known, rows, strict=True)]
            new = [row for row, at in zip(rows, same, strict=True) if not at]
            seq = self._append({**told, "rows": same}, f"[{','.join(new)}]")
            for place, row, at in zip(places, rows, same, strict=True):
                self._rows[place] = (at or seq, row)
        await self._journal.durable(seq)
        return seq

    def _append(self, body: Mapping[str, Any], block: str) -> int:
        return self._journal.append_block(KIND, body, block.encode(), self._now_s())


def in_short(value: object) -> object:
    """Return a result as an event tells it; of a table its rows in numbers, with their peaks.

    The whole of it is in the journal, and in an artifact at the end.
    """
    rows = value if isinstance(value, list | tuple) and _rows_of(value) is not None else ()
    if not rows:
        text = _text(value)
        short = len(text) <= SHORT_CHARACTERS
        return json.loads(text, parse_constant=str) if short else text[:SHORT_CHARACTERS]
    told = [_row_in_short(row) for row in rows[:ROWS_TOLD_MAX]]
    if len(rows) == 2 and all("highest" in each for each in told):
        axis, counts = rows
        at = counts.index(told[1]["highest"])
        told[1] |= {"highest_at": axis[at]} if at < len(axis) else {}
    return {"rows": len(rows), "told": told}


def _row_in_short(row: Sequence[Any]) -> dict[str, Any]:
    numbers = bool(row) and all(isinstance(x, int | float) and math.isfinite(x) for x in row)
    return {"points": len(row), **({"lowest": min(row), "highest": max(row)} if numbers else {})}


def results(journal: Path) -> Iterator[QueryResult]:
    """Return every result that a journal holds, in their order.

    Raises:
        JournalFailed: The file cannot be read, or a result does not fit its record.
    """
    held: dict[tuple[str, str, int], tuple[int, Any]] = {}
    for one in sealed(journal):
        try:
            record = unseal(one)
            if record.kind != KIND:
                continue
            body = record.body
            value = json.loads(one.block or b"")
            if body["rows"] is not None:
                value = _rows(record.seq, body, value, held)
            told = {name: body[name] for name in ("step", "instrument", "query", "about")}
            yield QueryResult(record=record.seq, at_s=record.at_s, value=value, **told)
        except (KeyError, LookupError, TypeError, ValueError) as why:
            raise JournalFailed(f"{journal}: the result in record {one.seq}: {why}") from None


def _rows(
    seq: int,
    body: Mapping[str, Any],
    new: Sequence[Any],
    held: dict[tuple[str, str, int], tuple[int, Any]],
) -> list[Any]:
    """Put the rows that earlier records hold beside the new ones."""
    left = iter(new)
    found = []
    for at, source in enumerate(body["rows"]):
        place = (body["instrument"], body["query"], at)
        if not source:
            held[place] = (seq, next(left))
        elif held[place][0] != source:
            raise ValueError(f"row {at} is that of record {source}, which holds none")
        found.append(held[place][1])
    return found


def _rows_of(value: object) -> list[str] | None:
    """Return the rows of a table, each as JSON; ``None`` for any other value."""
    if not isinstance(value, list | tuple):
        return None
    rows = list(value)
    return [_text(row) for row in rows] if all(isinstance(r, list | tuple) for r in rows) else None


def _text(value: object) -> str:
    """Return JSON that reads back as the same numbers: Python writes floats by repr."""
    return json.dumps(value, separators=(",", ":"), default=_plain)


def _plain(value: object) -> object:
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    return repr(value)
