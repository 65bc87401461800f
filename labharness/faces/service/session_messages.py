"""Derives the messages of one session, in order, from its journal and the kept messages.

Nothing is written here. The records of a run's journal and the files beside it give the same
messages with the same ids each time, so that a message that is sent again is the same one.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any, Final

from labharness.core.vocabulary.texts import Text
from labharness.journal.chain import Record
from labharness.protocols.hcp import answers
from labharness.protocols.hcp.codec import HcpMessage
from labharness.protocols.hcp.messages import PAYLOADS
from labharness.protocols.hcp.session import TERMINAL, next_state
from labharness.protocols.hcp.terms import ReasonCode, Rejected
from labharness.work.desk.left_behind import LeftBehind
from labharness.work.task.record import Attempt, Task

AFTER: Final = 1 << 40
"""Position of the first message behind a run's journal; no journal has so many records."""


@dataclass(frozen=True, slots=True)
class Outgoing:
    """One message to send.

    Attributes:
        position: Of the message in its session; what was sent is known by the last position.
    """

    position: int
    message: HcpMessage


@dataclass(frozen=True, slots=True)
class SessionState:
    """The state of a session as its journal leaves it.

    Attributes:
        state: Of the session.
        sequence: Of its newest event.
        ended: Its terminal message is in the journal.
        withheld: Its newest event closes the session, and is told behind the terminal message.
    """

    state: str = "PENDING"
    sequence: int = 1
    ended: bool = False
    withheld: bool = False


def state_after(records: Iterable[Record]) -> SessionState:
    """Return the state of a session after the records of its journal."""
    begin = SessionState()
    state, sequence, ended, withheld = begin.state, begin.sequence, begin.ended, begin.withheld
    for record in records:
        if record.kind == "event":
            sequence = record.body["sequence"]
            withheld = withheld or _closes(record.body)
            if record.body["event_type"] == "state_changed":
                state = record.body["data"]["to_state"]
        ended = ended or record.kind == "terminal"
    return SessionState(state, sequence, ended, withheld)


def on_receipt_in_order(told: Sequence[HcpMessage]) -> tuple[Outgoing, ...]:
    """Return what a caller is told on receipt: what opens its session, and maybe its acceptance.

    Only the last one has the position 0, so that either both were sent or both are sent again.
    """
    last = len(told) - 1
    return tuple(Outgoing(number - last, each) for number, each in enumerate(told))


def messages_of(
    session_id: str,
    records: Iterable[Record],
    *,
    opened: bool,
    accepted: HcpMessage | None,
    in_reply_to: str,
) -> Iterator[Outgoing]:
    """Return the messages that records of a run's journal are, in their order.

    The event that closes the session stands before the terminal message in the journal, and behind
    it here (ruling 42). Until it has gone too, both are sent again.

    Args:
        session_id: Of the run.
        records: A part of its journal.
        opened: The session was opened on receipt, by a message that no journal has.
        accepted: The message with the token, which stands for the record of the acceptance;
            ``None`` where there is none, or the session was accepted on receipt.
        in_reply_to: ``message_id`` of the submission.
    """
    closing: Record | None = None
    for record in records:
        if record.kind == "event" and _closes(record.body):
            closing = record
        elif record.kind == "event":
            opens = record.body["event_type"] == "session_created"
            if not (opens and opened):
                reply = {"in_reply_to": in_reply_to} if opens else {}
                yield Outgoing(record.seq, _event(session_id, record.body, reply))
        elif record.kind == "task_accepted" and accepted is not None:
            yield Outgoing(record.seq, accepted)
        elif record.kind == "terminal" and closing is not None and record.body["type"] != "event":
            yield Outgoing(closing.seq - 1, _message(session_id, record.body))
            closed = {**closing.body, "timestamp": record.body["timestamp"]}  # now it is told
            yield Outgoing(record.seq, _event(session_id, closed, {}))
        elif record.kind == "terminal":  # of an abort: it says what the event says, and more
            yield Outgoing(record.seq, _message(session_id, record.body))


def is_end(message: HcpMessage) -> bool:
    """Return whether a message is the answer that ends its session."""
    if message.type != "event":
        return message.type in ("task_completed", "task_failed", "task_rejected")
    data = getattr(message.payload, "data", {})
    return bool(data.get("final_state") == "ABORTED")


def before_closing(records: list[Record]) -> list[Record]:
    """Return records up to the event that closes their session, unless its answer is there too."""
    if any(each.kind == "terminal" for each in records):
        return records
    return [*takewhile(lambda each: not (each.kind == "event" and _closes(each.body)), records)]


def _closes(body: Mapping[str, Any]) -> bool:
    return bool(body["event_type"] == "session_closed")


def _event(session_id: str, body: Mapping[str, Any], reply: Mapping[str, Any]) -> HcpMessage:
    told = {name: body[name] for name in ("event_type", "sequence", "data")}
    return _message(session_id, {**body, "type": "event", "payload": {**told, **reply}})


def _message(session_id: str, body: Mapping[str, Any]) -> HcpMessage:
    kind, identity, at = (body[name] for name in ("type", "message_id", "timestamp"))
    lab_time = {"metadata": body["metadata"]} if "metadata" in body else {}
    named = None if kind == "task_rejected" else session_id
    payload = PAYLOADS[kind].model_validate(body["payload"])
    return HcpMessage(identity, at, named, kind, payload, unknown=lab_time)


# ---- the end of a session whose run left none


def end_of_lost(
    task: Task, run: Attempt | None, ending: "LostEnd", *, left: LeftBehind, accepted: bool
) -> tuple[HcpMessage, ...]:
    """Return the messages that end a session without a terminal message in its journal.

    Args:
        task: Its task, which is at its end or has another attempt.
        run: The attempt; ``None`` where it never had one.
        ending: Makes them, from the state in which the journal leaves the session.
        left: Of its results.
        accepted: It was accepted on receipt.
    """
    aborted = task.cancel_requested or task.status == "cancelled"
    state, why = ending.state, str(Text("hcp.lost.reason"))
    if accepted and state == "PENDING":  # its run has left nothing
        ending.become("RUNNING", "accepted")
        why = Text("hcp.lost.unbegun")
        if aborted:
            why = task.status_reason or Text("hcp.lost.aborted")
            ending.become("ABORTING", why)
    elif state in ("PENDING", "REJECTED"):
        return ending.as_rejected(task, aborted=aborted)
    ending.end(why)
    if ending.state != "ABORTED":
        ending.failed(task, run, left)
    ending.close(why)
    return tuple(ending.said)


def closed_already(session_id: str, sequence: int, message_id: str, timestamp: str) -> HcpMessage:
    """Return the answer to an abort of a session that has ended (ruling 10b)."""
    data = {"code": "session_already_closed", "message": Text("hcp.closed_already"), "details": {}}
    return answers.event(
        message_id=message_id,
        timestamp=timestamp,
        session_id=session_id,
        event_type="warning",
        sequence=sequence,
        data=data,
    )


class LostEnd:
    """The messages of an end, numbered on from the last event of the journal."""

    def __init__(
        self, session_id: str, found: SessionState, new_id: Callable[[], str], timestamp: str
    ) -> None:
        self._session_id = session_id
        self.state = found.state
        # the event that was withheld is told now, with its number
        self._sequence = found.sequence - found.withheld
        self._new_id, self._timestamp = new_id, timestamp
        self.said: list[HcpMessage] = []

    def become(self, to: str, reason: str) -> None:
        """Tell of another state."""
        before, self.state = self.state, next_state(self.state, to)
        self._event("state_changed", {"from_state": before, "to_state": to, "reason": reason})

    def end(self, reason: str) -> None:
        """Come to a last state from whatever state it is in."""
        if self.state == "PAUSED":
            self.become("RUNNING", reason)
        if self.state not in TERMINAL:
            self.become("ABORTED" if self.state == "ABORTING" else "FAILED", reason)

    def close(self, reason: str) -> None:
        """Tell that the session is closed."""
        self._event("session_closed", {"final_state": self.state, "reason": reason})

    def as_rejected(self, task: Task, *, aborted: bool) -> tuple[HcpMessage, ...]:
        """Return the end of a session that was not accepted."""
        code: ReasonCode = "aborted" if aborted else "resource_unavailable"
        if self.state == "PENDING":
            self.become("REJECTED", code)
        why: str = Text("hcp.lost.aborted" if aborted else "hcp.lost.unbegun")
        if task.status_reason and (aborted or task.error_code == code):
            why = task.status_reason
        again = None if aborted else Text("hcp.lost.again")
        rejected = Rejected(code, why, suggestion=again)
        reply_to = str(task.profile.get("message_id", ""))
        told = answers.task_rejected(in_reply_to=reply_to, rejected=rejected, **self._head())
        self.said.append(told)
        self.close(code)
        return tuple(self.said)

    def _event(self, event_type: str, data: dict[str, str]) -> None:
        self._sequence += 1
        session_id, number = self._session_id, self._sequence
        told = {"event_type": event_type, "session_id": session_id, **self._head()}
        self.said.append(answers.event(sequence=number, data=data, **told))

    def _head(self) -> dict[str, str]:
        return {"message_id": self._new_id(), "timestamp": self._timestamp}

    def failed(self, task: Task, run: Attempt | None, left: LeftBehind) -> None:
        """Answer with the failure of a run, and with what it has left."""
        points = () if run is None else run.checkpoint_refs
        late = task.status == "timed_out"
        details = {
            "phase": task.progress.phase,
            "step": 0 if run is None else len({each.step_id for each in run.steps}),
            "last_checkpoint": points[-1] if points else None,
            "recoverable": left.way_on is not None,
        }
        way_out = Text("hcp.lost.again")
        if left.way_on is not None:
            session, last = left.way_on.session_id, left.way_on.checkpoint_id
            way_out = Text("advice.resume", session=session, checkpoint=last)
        self.said.append(
            answers.task_failed(
                **self._head(),
                session_id=self._session_id,
                error_code="timeout" if late else "execution_error",
                error_message=task.status_reason if late else Text("hcp.lost.failed"),
                suggestion=way_out,
                error_details=details,
                partial_outputs=left.outputs or None,
                artifacts=left.artifacts,
                execution_summary=left.summary,
            )
        )
