"""Verbs that also record readings, and the table of these readings."""

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from labharness.core.vocabulary.texts import Param
from labharness.work.capability import ArtifactContent
from labharness.work.plan import RunningStep, StepRecord, Verb

ROW_S = 10.0
"""Of lab time, between two rows: a curve for people, in a journal that keeps every sample."""

TIME = "time [s]"


@dataclass(frozen=True, slots=True)
class _Recording(RunningStep):
    """A step that keeps a row of readings at its beginning and every few seconds."""

    rows: list[dict[str, float | None]] = field(default_factory=list)

    async def tick(self, code: str, /, **about: Param) -> None:
        await RunningStep.tick(self, code, **about)
        if not self.rows or self.operations.now_s() - (self.rows[-1][TIME] or 0.0) >= ROW_S:
            self.keep()

    def keep(self) -> None:
        row: dict[str, float | None] = {TIME: round(self.operations.now_s(), 3)}
        for channel in self.parameters["recorded"]:
            value = self.operations.latest(channel)
            row[channel] = value if value == value else None
        self.rows.append(row)


def recorded(verb: Verb) -> Verb:
    """Return a verb that records the channels which its instruction names under ``recorded``."""

    async def recording(step: RunningStep) -> Mapping[str, Any]:
        if "recorded" not in step.parameters:
            return await verb(step)
        watched = _Recording(step.instruction, step.operations, step.parameters, step.deadline_s)
        result = await verb(watched)
        watched.keep()
        return {**result, "recorded": watched.rows}

    return recording


def curve_of(records: Sequence[StepRecord], name: str) -> ArtifactContent:
    """Return all rows that the steps of a run recorded, as a table; time counts from the first."""
    rows = [row for each in records if each.result for row in each.result.get("recorded", ())]
    rows.sort(key=lambda row: row[TIME])  # steps of a set may run side by side
    heads = list(dict.fromkeys(key for row in rows for key in row))
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(heads)
    start_s = rows[0][TIME] if rows else 0.0
    for row in rows:
        values = {**row, TIME: row[TIME] - start_s}
        cells = (values.get(key) for key in heads)
        writer.writerow(["" if each is None else f"{each:.6g}" for each in cells])
    return ArtifactContent(name, "text/csv", text.getvalue().encode())
