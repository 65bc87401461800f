"""The acceptance of a task: its session gets a token, and its caller the enforced envelope."""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from typing import Any

from labharness.core.clock import Chance, Clock, utc_text, wall_clock_utc
from labharness.core.vocabulary.durations import format_duration
from labharness.core.vocabulary.texts import Text
from labharness.protocols.hcp import answers
from labharness.protocols.hcp.codec import HcpMessage
from labharness.protocols.hcp.messages import TaskAccepted, TaskSubmit
from labharness.protocols.hcp.terms import RISK_LEVELS, Rejected
from labharness.work.admission.approval import NotApproved
from labharness.work.admission.token import Scope, issue, new_token
from labharness.work.desk.admitting import Admitting, LineOnFile, Weighed
from labharness.work.desk.facts import LabFacts
from labharness.work.desk.making_safe import ABORT_S_MAX
from labharness.work.desk.null_line import NO_CHANNEL
from labharness.work.desk.session import Session


def acceptance(
    session_id: str,
    in_reply_to: str,
    weighed: Weighed,
    facts: LabFacts,
    token: str,
    message_id: str,
    now_utc: datetime,
) -> HcpMessage:
    """Return the message that tells a caller of the acceptance of its task.

    Args:
        session_id: Of the task.
        in_reply_to: ``message_id`` of the submission.
        weighed: The task.
        facts: The lab.
        token: Of the session.
        message_id: Of this message.
        now_utc: Its time.
    """
    screened = weighed.admitted.screened
    return answers.task_accepted(
        message_id=message_id,
        timestamp=utc_text(now_utc),
        session_id=session_id,
        in_reply_to=in_reply_to,
        session_token=token,
        risk_level=weighed.admitted.risk.level,
        data_classification=screened.data_classification,
        safety_envelope=facts.safety_envelope,
        max_duration=format_duration(screened.max_duration_s),
        abort_timeout=format_duration(ABORT_S_MAX),
    )


def accept(
    session: Session,
    in_reply_to: str,
    weighed: Weighed,
    facts: LabFacts,
    clock: Clock,
    chance: Chance,
    keep: Callable[[HcpMessage], None],
    told: HcpMessage | None = None,
) -> dict[str, Any]:
    """Issue a session's token; return the record of its acceptance, which does not hold it.

    Args:
        session: Gets the token's record, whose time begins now, and its scope.
        in_reply_to: ``message_id`` of the submission.
        weighed: The task.
        facts: The lab.
        clock: Of the token's times.
        chance: Of token and message id.
        keep: Keeps the message for its caller, before the record of the acceptance is written.
        told: The acceptance that the caller got on receipt; its token is the session's.
    """
    admitted, screened = weighed.admitted, weighed.admitted.screened
    session.scope = Scope(
        session_id=session.session_id,
        risk_level=admitted.risk.level,
        data_classification=screened.data_classification,
        envelope_digest=facts.envelope_digest,
        instruments=screened.caller.instruments,
    )
    token, session.token = issue(
        chance.entropy,
        session.scope,
        running_at=clock.utc(),
        max_duration_s=screened.max_duration_s,
    )
    message = told
    if message is None:
        message = acceptance(
            session.session_id, in_reply_to, weighed, facts, token, chance.uuid4(), clock.utc()
        )
        message = replace(message, unknown=clock.metadata())
        keep(message)
    body = message.payload.model_dump(by_alias=True, exclude_unset=True)
    body["session_token"] = None  # it goes to the caller and nowhere else
    body["risk_reasons"] = list(admitted.risk.reasons)
    body["hazard_categories"] = list(weighed.hazards)
    return body


def as_accepted(weighed: Weighed | Rejected, told: HcpMessage | None) -> Weighed | Rejected:
    """Return a task as it is weighed now, or why it is more than what was accepted on receipt."""
    accepted = getattr(told, "payload", None)
    if isinstance(weighed, Rejected) or not isinstance(accepted, TaskAccepted):
        return weighed
    risk, agreed = weighed.admitted.risk, accepted.risk_level
    if RISK_LEVELS.index(risk.level) <= RISK_LEVELS.index(agreed):
        return weighed
    reasons = Text("parts", parts=risk.reasons)
    text = Text("policy.later", level=risk.level, reasons=reasons, agreed=agreed)
    return Rejected("risk_too_high", text, risk.level)


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
    admitting = Admitting(facts=facts, line=LineOnFile(NO_CHANNEL), utc=wall_clock_utc)
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
