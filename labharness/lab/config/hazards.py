"""The hazard table: the *hardware* safeguard of each hazard, and the log of its proof tests.

The table names each safeguard; the log beside it says who tested it, when, and the result. Neither
is in the digest that approvals are bound to: a proof test voids no approval, and one that is
overdue is weighed anew with every request.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import date
from pathlib import Path
from typing import Literal

from pydantic import Field, PrivateAttr, StrictInt, TypeAdapter, ValidationError

from labharness.core.clock import wall_clock_utc
from labharness.core.files.durable import append_durably
from labharness.core.vocabulary.persons import bad_name
from labharness.core.vocabulary.spelling import did_you_mean
from labharness.core.vocabulary.texts import Text
from labharness.lab.config.lab_file import BadLabFile, Strict, parse, read_text

LOG_SUFFIX = ".proofs.jsonl"
PROOF_FROM = date(2000, 1, 1)
"""An earlier day is a typing error: no proof test counts so long."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """One proof test of one hazard's safeguard.

    Attributes:
        by: The name of the tester; ``""`` for the date in the table.
        reason: The method, and the result.
    """

    hazard: str
    day: date
    by: str
    reason: str
    passed: bool


class HazardRow(Strict):
    """One hazard, and the *hardware* that stands before it when all software is dead.

    Attributes:
        safeguard: The hardware; empty when there is none.
        proof_tested: Day of its last proof test before the log was begun.
        proof_days: How long a proof test counts.
        categories: Hazard categories (HCP L3) it belongs to.
    """

    name: str
    hazard: str
    safeguard: str
    proof_tested: date | None = None
    proof_days: StrictInt = Field(ge=1, le=3660)
    categories: tuple[str, ...]
    _proofs: tuple[Proof, ...] = PrivateAttr(default=())
    _never_due: bool = PrivateAttr(default=False)
    _read_on: date = PrivateAttr(default=date.min)

    @property
    def never_due(self) -> bool:
        """Whether its hardware is simulated, and its proof test with it."""
        return self._never_due

    def last_proof(self, today: date) -> Proof | None:
        """Return the newest proof test up to a day."""
        known = [each for each in self._proofs if each.day <= today]
        if self.proof_tested is not None and self.proof_tested <= today:
            day = self.proof_tested
            known.insert(0, Proof(hazard=self.name, day=day, by="", reason="", passed=True))
        # of two on one day the later line counts
        return max(enumerate(known), key=lambda each: (each[1].day, each[0]))[1] if known else None

    def _days(self) -> tuple[date, ...]:
        logged = tuple(each.day for each in self._proofs)
        return logged if self.proof_tested is None else (self.proof_tested, *logged)

    def missing(self, today: date) -> str:
        """Return the fault of the safeguard, missing or overdue; ``""`` when it has none.

        A test with a day in the future proves nothing: then the day or the clock is wrong. A day
        between a simulated run's and the calendar's is not in the future: it does not count yet.
        Simulated hardware is never overdue; a test that it failed counts.
        """
        if not self.safeguard.strip():
            return Text("hazards.none", name=self.name)
        name, safeguard = self.name, self.safeguard
        last = self.last_proof(today)
        now = max(today, self._read_on)
        if days := [day for day in self._days() if day > now]:
            return Text(
                "hazards.future", name=name, safeguard=safeguard, days=str(max(days)), now=str(now)
            )
        if last is not None and not last.passed:
            return Text("hazards.failed", day=str(last.day), name=name, safeguard=safeguard)
        if self._never_due:
            return ""
        if last is None:
            return Text("hazards.never", name=name, safeguard=safeguard)
        age = (today - last.day).days
        if age > self.proof_days:
            return Text("hazards.late", age=age - self.proof_days, name=name, safeguard=safeguard)
        return ""


class HazardTable(Strict):
    """All hazards of a lab.

    Attributes:
        proof: The table of a lab without a real port says that its hardware is simulated too.
    """

    hazard: tuple[HazardRow, ...]
    proof: Literal["simulated"] | None = None
    _path: Path = PrivateAttr(default=Path())

    def missing(self, categories: Sequence[str], today: date) -> tuple[str, ...]:
        """Return which safeguards against these categories are missing or overdue."""
        rows = [row for row in self.hazard if set(row.categories) & set(categories)]
        covered = {category for row in rows for category in row.categories}
        gaps = tuple(Text("hazards.no_row", c=c) for c in categories if c not in covered)
        return gaps + tuple(filter(None, (row.missing(today) for row in rows)))


def read_hazards(path: Path, real_ports: Sequence[str] = ()) -> HazardTable:
    """Read a hazard table and the log of proof tests beside it.

    Raises:
        BadLabFile: One of them cannot be read or has an invalid value; a log that cannot be
            read proves nothing. Or its hardware is simulated, and a port is not.
    """
    table: HazardTable = parse(HazardTable, read_text(path), str(path))
    if table.proof and real_ports:
        raise BadLabFile("hazards.simulated", path=str(path), port=real_ports[0])
    table._path = path
    log = path.with_suffix(LOG_SUFFIX)
    proofs = _read_log(log) if log.exists() else ()
    today = wall_clock_utc().date()
    for row in table.hazard:
        row._read_on, row._never_due = today, table.proof is not None
        row._proofs = tuple(each for each in proofs if each.hazard == row.name)
    return table


def record_proof(table: HazardTable, proof: Proof, today: date) -> None:
    """Add a proof test to the log.

    Raises:
        BadLabFile: The hazard is unknown or has no safeguard, the day is in the future or long
            past, the name misleads, or the log cannot be written.
    """
    hazard, day = proof.hazard, proof.day
    if why_not := bad_name(proof.by):
        raise BadLabFile(why_not)
    row = next((row for row in table.hazard if row.name == hazard), None)
    if row is None:
        known = ", ".join(repr(row.name) for row in table.hazard)
        near = did_you_mean(hazard, [row.name for row in table.hazard])
        raise BadLabFile("hazards.unknown", hazard=hazard, near=near, known=known)
    if not row.safeguard.strip():
        raise BadLabFile("hazards.untestable", hazard=hazard)
    if day < PROOF_FROM:
        raise BadLabFile(
            "hazards.too_early", hazard=hazard, day=str(day), proof_from=str(PROOF_FROM)
        )
    if day > today:
        raise BadLabFile("hazards.to_come", hazard=hazard, day=str(day), today=str(today))
    log = table._path.with_suffix(LOG_SUFFIX)
    line = json.dumps({**asdict(proof), "day": day.isoformat()}, ensure_ascii=False, sort_keys=True)
    try:
        append_durably(log, line)
    except OSError as why:
        raise BadLabFile("pair", what=str(log), why=why.strerror or str(why)) from None


def _read_log(path: Path) -> tuple[Proof, ...]:
    proofs = []
    for number, line in enumerate(read_text(path).splitlines(), 1):
        try:
            proofs.append(TypeAdapter(Proof).validate_json(line, strict=True))
        except ValidationError:
            raise BadLabFile("hazards.no_record", path=str(path), number=number) from None
    return tuple(proofs)
