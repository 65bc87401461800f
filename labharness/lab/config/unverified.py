"""Lists drivers with facts that no manual states, and their acceptance by a person."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date

from labharness.core.vocabulary.texts import Text
from labharness.lab.config.lab_file import PLACEHOLDER, AcceptedRow
from labharness.lab.config.lab_plan import LabPlan

ID_DIGITS = 8


@dataclass(frozen=True, slots=True)
class Unverified:
    """The facts of one instrument on a real link that no manual states.

    Attributes:
        instrument: Its name.
        said: The driver's own words, with its name and kind.
        id: The name of these words: a later version of the driver may have another doubt.
        accepted: The person and day of the acceptance; ``None`` where it is missing.
    """

    instrument: str
    said: str
    id: str
    accepted: AcceptedRow | None

    def accepted_by(self, today: date) -> str:
        """Return person and day of the acceptance of exactly this; ``""`` without one by today."""
        row = self.accepted
        if row is None or row.doubt != self.id or row.on > today:
            return ""
        return Text("lab.accepted_by", by=row.by, on=row.on.isoformat())

    def to_paste(self, today: date) -> str:
        """Return the line of the lab file that accepts it."""
        return f'accepted = {{ by = "{PLACEHOLDER}", on = {today}, doubt = "{self.id}" }}'


def unverified_id(text: str) -> str:
    """Return a short name of a driver's unverified facts."""
    return hashlib.sha256(text.encode()).hexdigest()[:ID_DIGITS]


def unverified_drivers(plan: LabPlan) -> Iterator[Unverified]:
    """Return the unverified facts of each instrument on a real link."""
    rows = {row.name: row for row in plan.file.instrument}
    for each in plan.unverified():
        text = each.driver.unverified
        said = Text("lab.unverified", name=each.name, kind=each.kind, unverified=text)
        yield Unverified(each.name, said, unverified_id(text), rows[each.name].accepted)
