"""Admits a task that needs no line: the lab's facts without instruments, the answer on receipt."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from labharness.core.clock import Chance, wall_clock_utc
from labharness.core.vocabulary.hours import ALWAYS
from labharness.protocols.hcp.codec import HcpMessage
from labharness.protocols.hcp.messages import TaskSubmit
from labharness.protocols.hcp.terms import Rejected
from labharness.safety.kernel import Envelope, Purge
from labharness.work.admission.approval import NotApproved
from labharness.work.admission.token import new_token
from labharness.work.capability import without_line
from labharness.work.desk.accepting import acceptance
from labharness.work.desk.admitting import Admitting
from labharness.work.desk.facts import LabFacts

NO_CHANNEL = Envelope(
    line="",
    limits={},
    interlocks=(),
    watches={},
    trips=(),
    procedures={},
    purge=Purge(volume_cm3=1.0, inert={}, present={}, outside=""),
    procedure_of={},
)


@dataclass(frozen=True, slots=True)
class LineWithoutChannels:
    """A line without a channel, for admission: whatever a plan would set is beyond its limits."""

    envelope: Envelope = NO_CHANNEL

    def latched(self) -> str:
        """Return that there is nothing to latch."""
        return ""

    def unguarded(self) -> tuple[str, ...]:
        """Return no link."""
        return ()


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


def received_without_line(
    facts: LabFacts, message_id: str, payload: TaskSubmit, session_id: str, chance: Chance
) -> Rejected | HcpMessage | None:
    """Return the answer to a task on its receipt: its acceptance, where it only waits for its turn.

    Args:
        facts: The lab without its line (`facts_without_line`).
        message_id: Of the submission.
        payload: Its payload.
        session_id: Of the task.
        chance: Of token and message id.

    Returns:
        The rejection of a task that can never run, or the acceptance; ``None`` for one that goes on
        from a checkpoint, or that a person would have to agree to.
    """
    admitting = Admitting(facts=facts, line=LineWithoutChannels(), utc=wall_clock_utc)
    weighed = admitting.weigh(payload)
    if isinstance(weighed, Rejected):
        return weighed
    agreed = not isinstance(admitting.approve(weighed, payload.caller_id), NotApproved)
    if payload.resume_from is not None or not agreed:
        return None
    token = new_token(chance.entropy)
    return acceptance(
        session_id, message_id, weighed, facts, token, chance.uuid4(), wall_clock_utc()
    )
