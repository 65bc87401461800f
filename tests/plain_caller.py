"""A caller that knows the specification and `pika`, and nothing of labharness."""

import json
import re
import socket
import ssl
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from functools import reduce
from typing import Any

import pika
import pika.exceptions

WAIT_S_MAX = 90.0


class Told(dict[str, Any]):
    """One message, as its JSON says; `type_` is the AMQP property."""

    type_: str | None = None

    @property
    def payload(self) -> dict[str, Any]:
        found: dict[str, Any] = self["payload"]
        return found

    def is_(self, event_type: str, **data: object) -> bool:
        """Return whether it is an event of that type with that data."""
        told = self.payload.get("data", {})
        same = all(told.get(name) == value for name, value in data.items())
        return self.payload.get("event_type") == event_type and same


class PlainCaller:
    """One caller with its queue of events.

    Args:
        url: Of the broker, with the caller's account.
        caller_id: The caller.
        callee_id: Whom it asks.
        listens: Whether it has a queue from the beginning.
        declares: Whether it may declare the exchanges.
        tls: For an address that begins with ``amqps``.
    """

    def __init__(
        self,
        url: str,
        caller_id: str,
        callee_id: str,
        *,
        listens: bool = True,
        declares: bool = True,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.url, self.caller_id, self.callee_id = url, caller_id, callee_id
        self._declares, self._tls = declares, tls
        self.heard: list[Told] = []
        self.named: set[str] = {caller_id}  # an answer may name whom it has named itself
        self.connect()
        if listens:
            self.listen()

    def connect(self) -> None:
        where = pika.URLParameters(self.url)
        if self._tls is not None:
            where.ssl_options = pika.SSLOptions(self._tls, where.host)
        self._connection = pika.BlockingConnection(where)
        self._channel = self._connection.channel()
        self._channel.confirm_delivery()
        if self._declares:
            self._channel.exchange_declare("hcp.commands", "direct", durable=True)
            self._channel.exchange_declare("hcp.events", "topic", durable=True)

    @property
    def queue(self) -> str:
        return f"hcp.evt.{self.caller_id}"

    def listen(self) -> None:
        """Declare the queue of its events as the specification has it."""
        arguments = {"x-message-ttl": 86_400_000, "x-max-length": 10_000, "x-overflow": "drop-head"}
        self._channel.queue_declare(self.queue, durable=True, arguments=arguments)
        self._channel.queue_bind(self.queue, "hcp.events", f"{self.caller_id}.#")

    def submit(self, payload: dict[str, Any], message_id: str | None = None) -> str:
        """Send a task_submit; return its message_id."""
        self.named.add(payload["caller_id"])
        return self.send("task_submit", None, payload, message_id or str(uuid.uuid4()))

    def abort(self, session_id: str, token: str | None, reason: str = "enough") -> str:
        payload = {"reason": reason, "caller_id": self.caller_id}
        if token is not None:
            payload["session_token"] = token
        return self.send("abort", session_id, payload, str(uuid.uuid4()))

    def send(
        self,
        kind: str,
        session_id: str | None,
        payload: dict[str, Any],
        message_id: str,
        **properties: Any,
    ) -> str:
        now = datetime.now(UTC)
        body = {
            "hcp_version": "1.0",
            "message_id": message_id,
            "timestamp": now.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "session_id": session_id,
            "type": kind,
            "payload": payload,
        }
        data = json.dumps(body, ensure_ascii=False).encode()
        named = {"message_id": message_id, "type": kind, "correlation_id": session_id}
        self.send_bytes(data, **named, **properties)
        return message_id

    def send_bytes(self, data: bytes, **properties: Any) -> None:
        given = {"user_id": self.caller_id, **properties}
        self._channel.basic_publish(
            "hcp.commands",
            self.callee_id,
            data,
            pika.BasicProperties(
                content_type="application/json",
                content_encoding="utf-8",
                delivery_mode=2,
                timestamp=int(time.time()),
                **given,
            ),
            mandatory=True,
        )

    def until(self, true: Callable[[Told], bool], most_s: float = WAIT_S_MAX) -> Told:
        """Hear messages, and acknowledge them, up to the first of which something is true."""
        for told in self._messages(most_s):
            if true(told):
                return told
        heard = [(each["type"], each.payload.get("event_type")) for each in self.heard]
        raise AssertionError(f"not told within {most_s} s; heard {heard}")

    def ended(self, most_s: float = WAIT_S_MAX) -> Told:
        """Return the message that ends a session, once the session is closed behind it."""
        end = self.until(is_end, most_s)
        session_id = end["session_id"]
        if end["type"] == "task_rejected":  # one on receipt has had no session
            asked = end.payload["in_reply_to"]
            opened = [each for each in self.heard if each.payload.get("in_reply_to") == asked]
            session_id = next((e["session_id"] for e in opened if e.is_("session_created")), None)
        if session_id is not None and not any(map(closes(session_id), self.heard)):
            self.until(closes(session_id), most_s)
        return end

    def _messages(self, most_s: float) -> Iterator[Told]:
        end_s = time.monotonic() + most_s
        while time.monotonic() < end_s:
            method, properties, body = self._channel.basic_get(self.queue)
            if method is None:
                self._connection.process_data_events(0.05)
                continue
            told = Told(json.loads(body))
            told.type_ = properties.type
            assert properties.message_id == told["message_id"]
            assert properties.type == told["type"]
            assert properties.delivery_mode == 2
            assert properties.content_type == "application/json"
            assert properties.content_encoding == "utf-8"
            assert properties.timestamp
            assert told["hcp_version"] == "1.0"
            for each in (told["message_id"], told["session_id"]):
                assert each is None or uuid.UUID(each).version == 4
            caller_id, session_id, kind = method.routing_key.split(".")
            assert (caller_id, kind) == (self.caller_id, told["type"])
            assert told["session_id"] in (session_id, None)
            assert properties.correlation_id == told["session_id"]
            self.heard.append(told)
            self._channel.basic_ack(method.delivery_tag)
            yield told

    def dead_letters(self) -> list[str]:
        """Return the reasons of the callee's dead letters, and take them away."""
        found: list[str] = []
        while True:
            method, properties, _ = self._channel.basic_get(
                f"hcp.dead.{self.callee_id}", auto_ack=True
            )
            if method is None:
                return found
            found.append(str(properties.headers["reason"]))

    def forget(self) -> None:
        """Go away without a word, as a caller that is killed."""
        self._connection._impl._transport._sock.shutdown(socket.SHUT_RDWR)
        with suppress(pika.exceptions.AMQPError):
            while True:
                self._connection.process_data_events(1.0)

    def purge(self) -> None:
        """Take away what was told and not heard."""
        if self._connection.is_open:
            self._channel.queue_delete(self.queue)

    def close(self) -> None:
        if self._connection.is_open:
            self._connection.close()


def is_end(told: Told) -> bool:
    """Return whether a message ends a session."""
    over = told["type"] in ("task_completed", "task_failed", "task_rejected")
    return over or told.is_("session_closed", final_state="ABORTED")


def closes(session_id: str) -> Callable[[Told], bool]:
    """Return whether a message is the last one of a session."""
    return lambda told: told["session_id"] == session_id and told.is_("session_closed")


def answer_in(heard: list[Told], kind: str) -> Told:
    """Return the one message of a kind."""
    (found,) = [each for each in heard if each["type"] == kind]
    return found


OF_A_MACHINE = {
    "a command": re.compile(r"\blabharness [a-z]|(?<!\w)--[a-z]{2,}"),
    "a path": re.compile(r"(?<![\w:/.])(?:/[\w.@+-]+){2,}|\b[A-Z]:\\\\"),
    "a process": re.compile(r"\b(?:process|pid) [0-9]+", re.IGNORECASE),
    "a traceback": re.compile(r"Traceback|File \"|\w+Error\("),
}


def leaks(heard: list[Told], foreign: tuple[str, ...] = ()) -> list[str]:
    """Return what callers are not to be told: a lab's machine, other callers, a token told twice.

    Args:
        heard: All messages to one caller.
        foreign: The ids of other callers.
    """
    tokens = {each.payload["session_token"] for each in heard if each["type"] == "task_accepted"}
    found = []
    for told in heard:
        text = json.dumps(told, ensure_ascii=False)
        plain = reduce(lambda rest, token: rest.replace(token, ""), tokens, text)  # it is random
        found += [f"{what}: {text}" for what, each in OF_A_MACHINE.items() if each.search(plain)]
        found += [f"caller {other}: {text}" for other in foreign if other in text]
        if told["type"] != "task_accepted":
            found += [f"a token: {text}" for token in tokens if token in text]
    return found


def history_faults(heard: list[Told]) -> list[str]:
    """Return what is wrong with the history of one session: loss, order, or a doubled meaning.

    A message that comes again must be the same one; of each, the first time counts.
    """
    faults, by_sequence = [], {}
    first: list[Told] = []
    known: dict[str, Told] = {}
    for told in heard:
        if (before := known.setdefault(told["message_id"], told)) is told:
            first.append(told)
        elif before != told:
            faults.append(f"{told['message_id']} has come with two contents")
    newest = 0
    for told in first:
        if told["type"] == "event":
            number = told.payload["sequence"]
            if number in by_sequence:
                faults.append(f"sequence {number} has two messages")
            elif number != newest + 1:
                faults.append(f"sequence {number} follows {newest}")
            by_sequence[number] = told
            newest = max(newest, number)
    ends = [each for each in first if each["type"] in ("task_completed", "task_failed")]
    ends += [each for each in first if each.is_("session_closed", final_state="ABORTED")]
    ends += [each for each in first if each["type"] == "task_rejected"]
    if len(ends) != 1:
        faults.append(f"{len(ends)} ends")
    told_last = [each for each in first if not each.is_("warning", code="session_already_closed")]
    if any(each["type"] == "event" for each in first) and not (
        told_last[-1].is_("session_closed")
        and sum(each.is_("session_closed") for each in first) == 1
    ):
        faults.append("session_closed is not its last message")
    accepted = [each for each in first if each["type"] == "task_accepted"]
    if len(accepted) > 1:
        faults.append("accepted twice")
    if any(each["session_id"] != first[0]["session_id"] for each in first if each["session_id"]):
        faults.append("two sessions")
    return faults
