"""Checkpoints: facts in a run's journal from which a later run may go on."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from labharness.core.clock import utc_text
from labharness.core.vocabulary import Command, Ending
from labharness.core.vocabulary.texts import Text, coded, revived
from labharness.instruments.driver import Adds
from labharness.journal import JournalFailed
from labharness.journal.chain import canonical, unseal
from labharness.journal.reading import read, sealed
from labharness.line import Line
from labharness.work.desk.energised import EnergySource
from labharness.work.desk.facts import LabFacts
from labharness.work.desk.session import Session
from labharness.work.plan import StepRecord

KIND = "checkpoint"


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """One checkpoint, as a journal holds it.

    Attributes:
        record: The number of its record.
        at_s: Lab time of its run.
        after: The instruction that it stands after.
        resumable: The readings were within the bounds that the plan states for it.
        plan_digest, lab_digest, envelope_digest: Of its run.
        readings: Every fresh reading of the line.
        steps: Status, times and result of each instruction until then, in their order.
    """

    checkpoint_id: str
    record: int
    at_s: float
    after: str
    description: str
    resumable: bool
    plan_digest: str
    lab_digest: str
    envelope_digest: str
    readings: Mapping[str, float]
    steps: tuple[Mapping[str, Any], ...]


class Checkpoints:
    """Makes the checkpoints of one run.

    Attributes:
        made: Their number.
        last: The id of the newest one; ``None`` before the first.
        plan_digest: Digest of the plan of the run.
    """

    def __init__(self, session: Session, line: Line, facts: LabFacts) -> None:
        self.made = 0
        self.last: str | None = None
        self.plan_digest = ""
        self._session = session
        self._line = line
        self._facts = facts

    async def make(self, records: Sequence[StepRecord]) -> None:
        """Make one after the last of these instructions; report it when it is on the disk.

        Raises:
            JournalFailed: It cannot be kept.
        """
        what = records[-1].instruction
        point = what.checkpoint
        if point is None:
            return
        readings = readings_of(self._line)
        name, resumable = f"ckpt-{self.made + 1:03d}", not point.missed(readings)
        body = {
            "checkpoint_id": name,
            "after": what.instruction_id,
            "description": point.description,
            "resumable": resumable,
            "plan_digest": self.plan_digest,
            "lab_digest": self._facts.lab_digest,
            "envelope_digest": self._facts.envelope_digest,
            "readings": readings,
        }
        steps = [
            {
                "instruction": each.instruction.instruction_id,
                "status": each.status.value,
                "started_s": each.started_s,
                "ended_s": each.ended_s,
                "result": each.result,
            }
            for each in records
        ]
        try:
            block = canonical({"steps": coded(steps)})
        except (TypeError, ValueError) as why:  # the result of a verb is not JSON
            said = Text("checkpoint.not_made", step=what.instruction_id, why=str(why))
            self._session.event("warning", {"code": KIND, "message": said, "details": {}})
            return
        journal, clock = self._session.journal, self._session.clock
        await journal.durable(journal.append_block(KIND, body, block, clock.now_s()))
        self.made, self.last = self.made + 1, name
        told = {name: body[name] for name in ("checkpoint_id", "description", "resumable")}
        self._session.event("checkpoint_created", {**told, "created_at": utc_text(clock.utc())})


def readings_of(line: Line) -> dict[str, float]:
    """Return every fresh reading of a line."""
    found = {channel: line.latest(channel) for channel in line.memory.tracks}
    return {channel: value for channel, value in found.items() if value == value}


def checkpoints(journal: Path) -> Iterator[Checkpoint]:
    """Return every checkpoint that a journal holds, in their order.

    Raises:
        JournalFailed: The file cannot be read, or a checkpoint cannot be read.
    """
    for one in sealed(journal):
        try:
            record = unseal(one)
            if record.kind != KIND:
                continue
            steps = json.loads(one.block or b"", object_hook=revived)["steps"]
            body = {name: each for name, each in record.body.items() if name != "sha256"}
            yield Checkpoint(record=record.seq, at_s=record.at_s, steps=tuple(steps), **body)
        except (LookupError, TypeError, ValueError) as why:
            raise JournalFailed(f"{journal}: the checkpoint in record {one.seq}: {why}") from None


def heated_since(journal: Path, record: int, sources: Sequence[EnergySource]) -> bool:
    """Return whether a command that heats was sent, or may have been, after a record.

    Raises:
        JournalFailed: The file cannot be read.
    """
    heaters = [each for each in sources if each.adds is Adds.HEAT]
    asked: dict[int, Command] = {}
    for each in read(journal):
        if each.seq > record and each.kind == "intent":
            body = each.body
            asked[each.seq] = Command(body["channel"], body["value"], body["unit"])
        elif each.kind == "outcome" and each.body["ending"] == Ending.REFUSED:
            asked.pop(each.body["intent"], None)  # no byte left
    return any(heater.added_by(command) for heater in heaters for command in asked.values())
