"""Derives the messages of one session, in order, from its journal and the kept messages.

Nothing is written here. The records of a run's journal and the files beside it give the same
messages with the same ids each time, so that a message that is sent again is the same one.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any, Final

from labharness.journal.chain import Record
from labharness.protocols.hcp.codec import HcpMessage, MessageType
from labharness.protocols.hcp.messages import PAYLOADS, Payload

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


def state_after(records: Iterable[Record], before: SessionState) -> SessionState:
    """Return the state of a session after more records of its journal."""
    state, sequence, ended = before.state, before.sequence, before.ended
    withheld = before.withheld
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
            yield Outgoing(closing.seq - 1, _terminal(session_id, record.body))
            closed = {**closing.body, "timestamp": record.body["timestamp"]}  # now it is told
            yield Outgoing(record.seq, _event(session_id, closed, {}))
        elif record.kind == "terminal":  # of an abort: it says what the event says, and more
            yield Outgoing(record.seq, _terminal(session_id, record.body))


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
    payload = PAYLOADS["event"].model_validate({**told, **reply})
    return _message(body, session_id, "event", payload)


def _terminal(session_id: str, body: Mapping[str, Any]) -> HcpMessage:
    kind = body["type"]
    payload = PAYLOADS[kind].model_validate(body["payload"])
    named = None if kind == "task_rejected" else session_id
    return _message(body, named, kind, payload)


def _message(
    body: Mapping[str, Any], session_id: str | None, kind: MessageType, payload: Payload
) -> HcpMessage:
    lab_time = {"metadata": body["metadata"]} if "metadata" in body else {}
    identity, at = body["message_id"], body["timestamp"]
    return HcpMessage(identity, at, session_id, kind, payload, unknown=lab_time)
