"""JSON messages for drivers: rows of ``{"id", "command", "parameters"}`` and their replies."""

import json
import math
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from labharness.core.vocabulary import BadReply, Message, Request, Transaction
from labharness.instruments.driver.driver import Identity, Query, Scan, fault
from labharness.instruments.driver.table import ChannelRow, TableDriver, resolved

VALUE = "<value>"
"""Stands in the parameters of a call for the value that is set."""

NO_ERRORS = rb'(?s:.*"errors"\s*:\s*\[\s*\].*)'
ID_DIGITS = 10  # a fixed width, so that the port can fill the id in after the frame was checked


def message_request(
    command: str, parameters: Mapping[str, object], *, timeout_s: float = 2.0
) -> Request:
    """Make the request for one JSON command; its ``id`` is left blank for the port to fill in."""
    head = '{"id":'
    text = (
        f'{head}{"1" + "0" * (ID_DIGITS - 1)},"command":{json.dumps(command)},'
        f'"parameters":{json.dumps(dict(parameters))}}}'
    )
    return Request(
        text.encode(),
        Message(command),
        timeout_s,
        transaction=Transaction(len(head), ID_DIGITS, ascii=True),
        obeyed=NO_ERRORS,
    )


def errors_of(body: Mapping[str, Any]) -> str:
    """Return the errors of a reply in one line; ``""`` where it has none."""
    listed = body.get("errors") or []
    return "; ".join(map(str, listed if isinstance(listed, list) else [listed]))


def results(what: str, hints: Mapping[str, str] | None = None) -> Callable[[bytes], dict[str, Any]]:
    """Return the decoder of a reply's ``results``; an entry in ``errors`` is a ``DeviceFault``.

    Args:
        what: Subject of the reply, for errors.
        hints: Words that are added to an error with a text in it.
    """

    def decode(reply: bytes) -> dict[str, Any]:
        body = json.loads(reply)
        errors = errors_of(body)
        if errors:
            raise fault(what, errors + _hinted(errors, hints or {}))
        found = body.get("results")
        if not isinstance(found, dict):
            raise BadReply(f"{what}: the reply has no results")
        return found

    return decode


def _hinted(errors: str, hints: Mapping[str, str]) -> str:
    return "".join(hint for text, hint in hints.items() if text in errors)


def finite(what: str, values: object) -> tuple[float, ...]:
    """Return numbers as they came; anything else is a bad reply."""
    if not (isinstance(values, list | tuple) and {int, float}.issuperset(map(type, values))):
        raise BadReply(f"{what}: {str(values)[:60]} are not numbers")
    try:
        found = tuple(map(float, values))
    except OverflowError:
        raise BadReply(f"{what}: a number is out of range") from None
    if not all(map(math.isfinite, found)):
        raise BadReply(f"{what}: a number is not finite")
    return found


@dataclass(frozen=True)
class Call:
    """One command: its name, its parameters, and the longest wait for its reply."""

    command: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    timeout_s: float = 2.0


@dataclass(frozen=True, kw_only=True)
class Json(ChannelRow):
    """A row of an instrument that speaks JSON messages.

    Attributes:
        command: Command that reads it; ``""`` if there is none.
        result: Its name among the results.
        truth: Whether that is true or false instead of a number.
        reads: Function from all results to an object, for a query.
        calls: Calls that set it, in order; by value if each has calls of its own.
        already: Texts of errors that mean that it was set before.
        timeout_s: Longest wait for the reply to the query.
    """

    command: str = field(kw_only=False)
    result: str = field(default="", kw_only=False)
    truth: bool = False
    reads: Callable[[Mapping[str, Any]], object] | None = None
    calls: Any = ()
    already: tuple[str, ...] = ()
    timeout_s: float = 2.0

    @property
    def is_read(self) -> bool:
        """Return whether something asks for it."""
        return self.command != ""

    def values(self, name: str, found: Mapping[str, Any]) -> tuple[Any, ...]:
        """Return its value among the results, or the object that is made of them."""
        if self.reads is not None:
            return (self.reads(found),)
        value = found.get(self.result)
        if self.truth is not isinstance(value, bool):
            raise BadReply(f"{name}: {self.result} is {value!r}"[:120])
        return finite(name, [int(value) if isinstance(value, bool) else value])


class JsonDriver(TableDriver):
    """Base of the drivers that speak JSON messages; a subclass gives rows.

    Attributes:
        hints: Words that are added to an error with a text in it.
        who: Command that asks for its identity.
    """

    hints: ClassVar[Mapping[str, str]] = {}
    who: ClassVar[str]

    def __init__(self) -> None:
        super().__init__()
        found = results("identity")
        asks = message_request(self.who, {})
        self._identity = Query("identity", asks, lambda reply: self.known(found(reply)))

    @abstractmethod
    def known(self, found: Mapping[str, Any]) -> Identity:
        """Return the identity in the results of ``who``."""

    def about(self, command: str) -> Mapping[str, Any]:
        """Return the parameters that each command has, such as which device it is for."""
        return {}

    def scans_of(self, rows: Mapping[str, Json]) -> Iterator[Scan]:
        """Return a message for each row."""
        for name, row in rows.items():
            asks = self.call(Call(row.command, timeout_s=row.timeout_s), 0.0)
            yield Scan(name, asks, (name,), self._reader(name, row), row.every_s)

    def commands(self, channel: str, row: Json, value: float) -> tuple[Request, ...]:
        """Return the messages of one command."""
        sent = int(value) if row.whole or isinstance(row.sets, Mapping) else float(value)
        calls = row.calls[value] if isinstance(row.calls, Mapping) else row.calls
        return tuple([self.call(each, sent) for each in calls])

    def call(self, call: Call, value: float) -> Request:
        """Return the message of one call."""
        stated = {n: value if p is VALUE else resolved(p, self) for n, p in call.parameters.items()}
        parameters = {**self.about(call.command), **stated}
        return message_request(call.command, parameters, timeout_s=call.timeout_s)

    def accept(self, channel: str, reply: bytes) -> None:
        """Take any error for a refusal, unless it says that nothing had to change."""
        row: Any = self.channels[channel]
        errors = errors_of(json.loads(reply))
        if errors and not any(text in errors for text in row.already):
            raise fault(channel, errors + _hinted(errors, self.hints))

    def _reader(self, name: str, row: Json) -> Callable[[bytes], tuple[Any, ...]]:
        found = results(name, self.hints)
        return lambda reply: row.values(name, found(reply))
