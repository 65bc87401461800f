"""Drivers whose facts are not all from a manual, and who has accepted that of an instrument."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date

from labharness.core.vocabulary.texts import Text
from labharness.lab.config.lab_file import PLACEHOLDER, AcceptedRow
from labharness.lab.config.lab_plan import LabPlan

__all__ = ["Unverified", "unverified_drivers", "unverified_id"]

ID_DIGITS = 8


@dataclass(frozen=True, slots=True)
class Unverified:
    """What of one instrument on a real link rests on no manual.

    Attributes:
        instrument: Its name.
        said: The driver's own words, with its name and kind.
        id: Of these words: a later version of the driver may doubt something else.
        accepted: Who has accepted it and when; ``None`` for nobody.
    """

    instrument: str
    said: str
    id: str
    accepted: AcceptedRow | None

    def accepted_by(self, today: date) -> str:
        """Name who has accepted exactly this, and when; ``""`` for nobody, or tomorrow."""
        row = self.accepted
        if row is None or row.doubt != self.id or row.on > today:
            return ""
        return Text("lab.accepted_by", by=row.by, on=row.on.isoformat())

    def to_paste(self, today: date) -> str:
        """Return the line of the lab file that accepts it."""
        return f'accepted = {{ by = "{PLACEHOLDER}", on = {today}, doubt = "{self.id}" }}'


def unverified_id(text: str) -> str:
    """Return a short name of what a driver says is unverified."""
    return hashlib.sha256(text.encode()).hexdigest()[:ID_DIGITS]


def unverified_drivers(plan: LabPlan) -> Iterator[Unverified]:
    """Return what is unverified of each instrument on a real link."""
    rows = {row.name: row for row in plan.file.instrument}
    for each in plan.unverified():
        text = each.driver.unverified
        said = Text("lab.unverified", name=each.name, kind=each.kind, unverified=text)
        yield Unverified(each.name, said, unverified_id(text), rows[each.name].accepted)
