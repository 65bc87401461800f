"""Any set of instructions over the channels of a lab (MCP-CP 5 to 7), by the way of every task.

Nothing of it is declared beforehand: gases, heat, hazards and hours follow from what its commands
state, with every branch and every fall-back taken (rulings 47 and 48).
"""

import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from labharness.core.vocabulary.spelling import did_you_mean
from labharness.core.vocabulary.texts import Text
from labharness.work.capability import (
    Answer,
    CannotDo,
    LineFacts,
    PartialResults,
    Planned,
    QueryResult,
    declared,
)
from labharness.work.capability.channels import PlainCapability
from labharness.work.capability.recorded import curve_of, recorded
from labharness.work.plan import PHYSICAL_VERBS, Instruction, Status, StepRecord, Verb
from labharness.work.plan.actions import ActionSchema
from labharness.work.plan.instructions import InstructionKind
from labharness.work.plan.recovery import BadInstruction
from labharness.work.plan.set_reading import check_bounds, read_set

_ROWS: Final = tomllib.loads(Path(__file__).with_name("actions.toml").read_text("utf-8"))
ACTIONS: Final[Mapping[str, ActionSchema]] = {
    name: ActionSchema(InstructionKind(row["kind"]), row["parameters"], tuple(row["results"]))
    for name, row in _ROWS.items()
}

ONE: Final = ("channel", "setpoint", "process", "rate_channel")
SEVERAL: Final = ("channels", "recorded")
"""Parameters that name a channel, and those that name several."""


class InstructionSequence(PlainCapability):
    """The capability ``sequence``."""

    declaration = declared(__file__)
    verbs: Mapping[str, Verb] = {name: recorded(verb) for name, verb in PHYSICAL_VERBS.items()}
    actions = ACTIONS

    def plan(
        self, inputs: Mapping[str, Any], constraints: Mapping[str, Any], facts: LineFacts
    ) -> Planned | CannotDo:
        """Read the set, or return why it cannot be carried out on this line."""
        try:
            instructions = read_set(inputs["instructions"], self.actions)
            for each in instructions.instructions:
                _check(each, facts)
        except BadInstruction as why:
            return CannotDo("invalid_input", str(why), Text("sequence.change"))
        steps = instructions.instructions
        return Planned(
            instructions=instructions,
            duration_s=sum(each.expected_s for each in steps),
            process_gases=(),
            temperature_c_max=None,
            recipe={"mode": instructions.mode.value, "instructions": len(steps)},
        )

    def answer(self, records: Sequence[StepRecord], constraints: Mapping[str, Any]) -> Answer:
        """Return status and result of each instruction, and the recorded curve."""
        found = self.so_far(records, ())
        ends = Counter(each.status for each in records)
        done, skipped = ends[Status.COMPLETED], ends[Status.SKIPPED]
        said = Text("sequence.found", completed=done, count=len(records), skipped=skipped)
        return Answer(found.outputs, found.artifacts, (), said)

    def so_far(
        self, records: Sequence[StepRecord], measured: Sequence[QueryResult]
    ) -> PartialResults:
        """Return the same of a set that failed."""
        outputs = {
            "statuses": {each.instruction.instruction_id: each.status.value for each in records},
            "results": {each.instruction.instruction_id: _told(each) for each in records},
        }
        kept = any(each.result and "recorded" in each.result for each in records)
        return PartialResults(outputs, (curve_of(records, "curve"),) if kept else ())


def _told(record: StepRecord) -> Mapping[str, Any]:
    """Return a record as other instructions see it, without the rows of its curve."""
    kept = {name: each for name, each in (record.result or {}).items() if name != "recorded"}
    return replace(record, result=None if record.result is None else kept).told()


def _check(step: Instruction, facts: LineFacts) -> None:
    """Refuse what the reader of sets cannot know: names of the line, and that no set is resumed."""
    name, channels = step.instruction_id, facts.channels
    if step.checkpoint is not None:
        raise BadInstruction("sequence.no_checkpoint", name=name)
    for _, asked in step.ways():
        check_bounds(name, asked)
        named = [asked[key] for key in ONE if key in asked]
        for each in (*named, *(each for key in SEVERAL for each in asked.get(key, ()))):
            if each not in channels:
                meant, what = did_you_mean(each, channels), each[:80]
                raise BadInstruction("sequence.no_channel", name=name, channel=what, meant=meant)
        gas = asked.get("contaminant")
        if gas is not None and gas not in facts.contaminants:
            known, what = list(facts.contaminants), gas[:80]
            raise BadInstruction("sequence.no_contaminant", name=name, gas=what, known=known)


CAPABILITY = InstructionSequence()
