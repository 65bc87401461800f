"""The facts of a lab that the desk works with, and the request that it shows to approvers."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Any, Protocol

from labharness.core.vocabulary.hours import ALWAYS, Hours
from labharness.protocols.hcp.messages import TaskSubmit
from labharness.protocols.hcp.terms import Rejected
from labharness.work.admission.approval import ApprovalRequest, Approved, StandingApproval
from labharness.work.admission.callers import Caller
from labharness.work.capability import Capability, LineFacts, without_line
from labharness.work.desk.energised import EnergySource
from labharness.work.plan import InstructionSet, Prediction


class Approvers(Protocol):
    """The persons who may agree to a plan."""

    async def decide(self, request: ApprovalRequest) -> Approved | Rejected:
        """Wait for their decision, within a bound."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LabFacts:
    """The lab as admission and planning see it.

    Attributes:
        lab_digest: Over the lab file.
        envelope_digest: Over the envelope's files.
        link_kinds: Kinds of link in use.
        attended: When a person is there.
        shared: Another task may use an instrument meanwhile.
        safeguards_missing: Returns the hardware safeguards of some hazard categories that are
            missing, or past their proof test, on a day.
        sources: The sources of energy of the line.
        on_comm_loss: The action of each channel by itself when no program talks to it.
        callers: The callers and their rights; ``None`` on a harmless line, where anybody may ask.
        capabilities: The capabilities on offer, by name.
        approvals: Standing approvals.
        approval_key: The public key that must have signed them.
        safety_envelope: In HCP's words, for ``task_accepted``.
        line_facts: Facts for the planner of each capability.
        safe_procedure: The state every run begins and ends with; ``""`` without a line.
        watched: Channels and units of the process log.
        warnings: Warnings on the lab, such as unverified drivers.
        encrypts: It has a key for confidential data.
        begins_anew: Its simulated plant is made for each run: no sample is left to go on with.
        lab_option: The option of commands for this lab, as in advice: `` --lab FILE``.
        refused: Why the inputs that a task refers to cannot be had; ``None`` where it has them.
        predict: Flies a plan on the nominal plant, from the line's readings; ``None`` where the
            lab has no simulated plant.
    """

    lab_digest: str
    envelope_digest: str
    link_kinds: tuple[str, ...]
    attended: Hours
    shared: bool
    safeguards_missing: Callable[[Sequence[str], date], tuple[str, ...]]
    sources: tuple[EnergySource, ...]
    on_comm_loss: Mapping[str, str]
    callers: Mapping[str, Caller] | None
    capabilities: Mapping[str, Capability]
    approvals: tuple[StandingApproval, ...]
    approval_key: bytes
    safety_envelope: Mapping[str, Any]
    line_facts: Mapping[str, LineFacts]
    safe_procedure: str
    watched: Mapping[str, str]
    warnings: tuple[str, ...]
    lab_option: str
    encrypts: bool = False
    begins_anew: bool = False
    refused: Rejected | None = None
    predict: Callable[[InstructionSet, Mapping[str, float]], Awaitable[Prediction]] | None = None

    @property
    def has_line(self) -> bool:
        """Whether these are the facts for tasks on its line."""
        return bool(self.safe_procedure)


def facts_without_line(facts: LabFacts) -> LabFacts:
    """Return the facts of a lab for tasks that need no line: those capabilities, and no energy.

    Nothing runs that a person would attend, or that another task could share.
    """
    offered = {
        name: form for name, each in facts.capabilities.items() if (form := without_line(each))
    }
    return replace(
        facts,
        attended=ALWAYS,
        shared=False,
        sources=(),
        on_comm_loss={},
        capabilities=offered,
        safety_envelope={},
        line_facts={name: facts.line_facts[name] for name in offered},
        safe_procedure="",
        watched={},
        warnings=(),
        predict=None,
    )


def is_without_line(facts: LabFacts, payload: TaskSubmit) -> bool:
    """Return whether a task needs no line.

    Args:
        facts: The lab without its line (`facts_without_line`).
        payload: Of the submission.
    """
    offered = facts.capabilities.get(payload.capability)
    takes: Callable[[Mapping[str, Any]], bool] = getattr(offered, "takes", lambda inputs: True)
    return offered is not None and takes(payload.inputs)


def facts_for(facts: LabFacts, payload: TaskSubmit) -> LabFacts:
    """Return the facts of a lab as a task meets them: without its line where it needs none."""
    alone = facts_without_line(facts)
    return alone if is_without_line(alone, payload) else facts
