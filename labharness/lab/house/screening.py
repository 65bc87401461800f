"""Checks a submission against the lab's files alone.

So a task that can never run is rejected at once, before it waits for the line.
"""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

from labharness.core.clock import wall_clock_utc
from labharness.core.vocabulary.texts import Text
from labharness.lab.config.lab_facts import lab_facts_of
from labharness.lab.config.lab_plan import LabPlan
from labharness.lab.wiring.referring import referred
from labharness.protocols.hcp.messages import TaskSubmit
from labharness.protocols.hcp.terms import Rejected
from labharness.work.capability.stored import is_artifact, refers
from labharness.work.desk.admitting import Admitting
from labharness.work.plan import InstructionSet, Prediction

SOUGHT: Final = Rejected("resource_unavailable", Text("reference.sought"))
"""Of inputs in an artifact: they are looked for when the task has the line."""


def screened(plan: LabPlan, payload: TaskSubmit) -> Rejected | None:
    """Return the rejection of a task whose caller, inputs, plan, limits or risk forbid it.

    Reasons that may pass by its turn (a latched line, a silent instrument) do not count here, and
    pre-flight and approval come with its turn.

    Raises:
        BadLabFile: The lab's callers or approvals cannot be honoured.
    """
    if payload.resume_from is not None and plan.begins_anew:
        return Rejected("invalid_input", Text("resume.plant"))
    facts = lab_facts_of(plan)
    sought = refers(payload.inputs) and is_artifact(payload.inputs)
    found = SOUGHT if sought else referred(plan, payload, Path())
    if isinstance(found, Rejected):
        facts = replace(facts, refused=found)
    else:
        payload = found
    if plan.file.has_a_plant:  # the pre-flight decides later how long it takes
        facts = replace(facts, predict=_later)
    weighed = Admitting(facts=facts, envelope=plan.envelope, utc=wall_clock_utc).weigh(payload)
    lasting = isinstance(weighed, Rejected) and weighed.reason_code != "resource_unavailable"
    return weighed if lasting and isinstance(weighed, Rejected) else None


async def _later(instructions: InstructionSet, readings: Mapping[str, float]) -> Prediction:
    raise RuntimeError("a plan is flown when its task has the line")
