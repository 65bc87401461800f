"""The state of a task as its caller has heard it; each message gives a new one (pure).

A message may come twice, late or not at all. Events are numbered within their session: a number
that was heard is a double, and a number that is skipped is a gap, until it comes late. All other
messages are known by their `message_id`.
"""

from dataclasses import dataclass, replace
from typing import Final

from labharness.protocols.hcp.codec import HcpMessage
from labharness.protocols.hcp.messages import EventPayload, TaskAccepted, TaskRejected
from labharness.protocols.hcp.terms import RiskLevel

MISSING_MAX: Final = 1_000
"""Most gaps that are kept of a session; events of an older gap that come late are dropped."""

SESSIONS_MAX: Final = 100
"""Most sessions that are kept of one task, one an attempt; the oldest goes first."""

ANSWERS_MAX: Final = 400
"""Most ids of messages without a number that are kept of one task; the oldest goes first."""


STATE_IN: Final = {
    "session_created": "state",
    "state_changed": "to_state",
    "session_closed": "final_state",
}
"""The field with the session's state, by the type of an event."""


@dataclass(frozen=True, slots=True)
class Gap:
    """Events of a session that were not heard: the broker keeps an event for a day at most.

    Attributes:
        session_id: Of the session.
        first: Number of the first event that is missing.
        last: Number of the last one.
    """

    session_id: str
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class KnownSession:
    """One session, which is one attempt at the task.

    Attributes:
        session_id: Of the session.
        state: Its newest state, as a word of HCP.
        newest: The highest number of an event that was heard.
        missing: Gaps, each by its first and last number, in their order.
        token: Of the acceptance; ``""`` before it.
        risk_level: Of the acceptance; ``None`` before it.
        end: ``message_id`` of the message that has ended it; ``""`` before that.
    """

    session_id: str
    state: str = "PENDING"
    newest: int = 0
    missing: tuple[tuple[int, int], ...] = ()
    token: str = ""
    risk_level: RiskLevel | None = None
    end: str = ""


@dataclass(frozen=True, slots=True)
class KnownTask:
    """One submission, and all that was heard of it.

    Attributes:
        message_id: Of the submission.
        callee_id: The lab that has it; ``""`` where another program has submitted it.
        sessions: The sessions, the newest last.
        answer: ``message_id`` of the newest acceptance or rejection.
        rejected: Whether the newest of these is a rejection.
        answers: The ids of the messages without a number that were heard.
    """

    message_id: str
    callee_id: str = ""
    sessions: tuple[KnownSession, ...] = ()
    answer: str = ""
    rejected: bool = False
    answers: tuple[str, ...] = ()

    @property
    def session(self) -> KnownSession | None:
        """The newest session."""
        return self.sessions[-1] if self.sessions else None

    @property
    def end(self) -> str:
        """``message_id`` of the message that has ended the task; ``""`` before that."""
        if self.rejected:
            return self.answer
        return "" if self.session is None else self.session.end


@dataclass(frozen=True, slots=True)
class Update:
    """The news in a message.

    Attributes:
        fresh: Whether it was not heard before.
        gap: The events that are missing before it.
    """

    fresh: bool
    gap: Gap | None = None


def apply(task: KnownTask, message: HcpMessage) -> tuple[KnownTask, Update]:
    """Return a task after a message of it, and the news in that.

    Args:
        task: As it was known.
        message: One that a callee has sent about it.
    """
    if message.type != "event" and message.message_id in task.answers:
        return task, Update(fresh=False)
    if isinstance(message.payload, TaskRejected):
        return replace(_answered(task, message), rejected=True), Update(fresh=True)
    session = _session(task, message.session_id or "")
    if isinstance(message.payload, EventPayload):
        event = message.payload
        after, heard = _event(session, event)
        if event.event_type == "session_closed" and event.data["final_state"] == "ABORTED":
            after = replace(after, end=message.message_id)  # that of an abort has no other
        return (_with(task, after) if heard.fresh else task), heard
    if isinstance(message.payload, TaskAccepted):
        token, risk_level = message.payload.session_token, message.payload.risk_level
        after = replace(session, token=token, risk_level=risk_level)
        return _answered(_with(task, after), message), Update(fresh=True)
    state = "COMPLETED" if message.type == "task_completed" else "FAILED"
    ended = _with(task, replace(session, state=state, end=message.message_id))
    return replace(ended, answers=_longer(task, message)), Update(fresh=True)


def again(task: KnownTask) -> KnownTask:
    """Return a rejected task that is submitted once more: it waits for an answer anew."""
    return replace(task, answer="", rejected=False, answers=()) if task.rejected else task


def _answered(task: KnownTask, message: HcpMessage) -> KnownTask:
    answers = _longer(task, message)
    return replace(task, answer=message.message_id, rejected=False, answers=answers)


def _longer(task: KnownTask, message: HcpMessage) -> tuple[str, ...]:
    return (*task.answers, message.message_id)[-ANSWERS_MAX:]


def _session(task: KnownTask, session_id: str) -> KnownSession:
    known = (each for each in task.sessions if each.session_id == session_id)
    return next(known, KnownSession(session_id))


def _with(task: KnownTask, session: KnownSession) -> KnownTask:
    """Return the task with a session as it is now; one that is new is the newest."""
    known = [each.session_id for each in task.sessions]
    if session.session_id not in known:
        return replace(task, sessions=(*task.sessions, session)[-SESSIONS_MAX:], rejected=False)
    at = known.index(session.session_id)
    return replace(task, sessions=(*task.sessions[:at], session, *task.sessions[at + 1 :]))


def _event(session: KnownSession, event: EventPayload) -> tuple[KnownSession, Update]:
    number, newest = event.sequence, session.newest
    if number <= newest:
        missing = _without(session.missing, number)
        late = missing != session.missing
        return replace(session, missing=missing), Update(fresh=late)
    gap = Gap(session.session_id, newest + 1, number - 1) if number > newest + 1 else None
    missing = session.missing if gap is None else (*session.missing, (gap.first, gap.last))
    named = STATE_IN.get(event.event_type)
    state = session.state if named is None else str(event.data[named])
    after = replace(session, newest=number, missing=missing[-MISSING_MAX:], state=state)
    return after, Update(fresh=True, gap=gap)


def _without(missing: tuple[tuple[int, int], ...], number: int) -> tuple[tuple[int, int], ...]:
    """Return the gaps without a number that has come late."""
    parts: list[tuple[int, int]] = []
    for first, last in missing:
        if first <= number <= last:
            parts += [(first, number - 1), (number + 1, last)]
        else:
            parts.append((first, last))
    return tuple((first, last) for first, last in parts if first <= last)
