"""A table of text: the rows, and all frames of an instrument that speaks lines of text."""

import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from labharness.core.vocabulary import BadReply, Checked, Lines, Nothing, Request, Seal, Until
from labharness.core.vocabulary.requests import ReplyRule
from labharness.instruments.driver.driver import Identity, Query, Scan, While, fault, kept
from labharness.instruments.driver.table import ChannelRow, TableDriver

_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


def decimal(value: float, decimals: int) -> bytes:
    """Return the regular expression of a number as an instrument may write it: sign and zeros."""
    whole, _, fraction = f"{abs(value):.{decimals}f}".partition(".")
    is_zero = float(f"{value:.{decimals}f}") == 0  # as it is written: -0.04 may be 0.0
    sign = "[+-]?" if is_zero else "-" if value < 0 else "[+]?"
    point = rf"\.{fraction}0*" if fraction else r"(?:\.0*)?"
    return f"{sign}0*{whole}{point}".encode()


def number(text: str, what: str) -> float:
    """Read a plain finite decimal number; anything else is a bad reply, never a guess.

    Raises:
        BadReply: ``text`` is not a finite decimal number.
    """
    if not _NUMBER.fullmatch(text):
        raise BadReply(f"{what}: {text!r} is not a number")
    value = float(text)
    if not math.isfinite(value):
        raise BadReply(f"{what}: {text!r} is out of range")
    return value


def scientific(value: float, decimals: int = 6) -> bytes:
    """Return the regular expression of a number as SCPI writes it: ``+1.000000E-03``."""
    shown = re.escape(f"{abs(value):.{decimals}E}".encode())
    return (b"[+-]?" if value == 0 else b"-" if value < 0 else b"[+]?") + shown


def whole(most: int) -> Callable[[str, str], float]:
    """Return what reads a whole number of 0 to ``most``."""

    def read(said: str, what: str) -> float:
        value = number(said, what)
        if value not in range(most + 1):
            raise BadReply(f"{what}: {value} is not a whole number of 0 to {most}")
        return value

    return read


def among(values: Mapping[str, float], otherwise: str = "") -> Callable[[str, str], float]:
    """Return the reader of one of some words; any other is a bad reply, or a device fault.

    Args:
        values: Value of each word.
        otherwise: Words of the device fault; ``""`` for a bad reply.
    """

    def read(said: str, what: str) -> float:
        if said in values:
            return values[said]
        if otherwise:
            raise fault(what, f"{said[:40]!r}{otherwise}")
        raise BadReply(f"{what}: {said[:40]!r} is none of {', '.join(values)}")

    return read


def text(said: str, what: str) -> str:
    """Read a text as it is."""
    return said


STEP_BYTES_MAX = 40  # of the answer to a question that is asked after every other


@dataclass(frozen=True)
class Several:
    """One reply that several rows are read from; its attribute's name is the scan's.

    Attributes:
        query: The question that it answers.
        pattern: Regular expression of the reply, with a group for each row in order.
        every_s: How often it is polled; ``None`` where it is read on demand only.
        only_while: The only state in which its instrument answers.
    """

    query: str
    pattern: str
    every_s: float | None = 1.0
    only_while: While | None = None
    name: str = ""

    def __set_name__(self, owner: type, name: str) -> None:
        """Take the attribute's name."""
        object.__setattr__(self, "name", name)


@dataclass(frozen=True, kw_only=True)
class Ascii(ChannelRow):
    """A row of an instrument that speaks lines of text.

    Attributes:
        query: Its question, or the reply that it shares; ``""`` for a row that is not read.
        reads: Function from the text, and a name for errors, to a value.
        sends: The command; ``{}`` stands for the number.
        decimals: Decimal places that a command is sent with.
        per: Counts on the wire in one unit of the channel.
        answered_s: Longest wait for the answer to a command, if it is not the driver's.
        says: The regular expression of the text that shows a value; ``None`` where none is sure.
    """

    query: str | Several = field(kw_only=False)
    reads: Callable[[str, str], Any] = number
    sends: str = ""
    decimals: int = 0
    per: float = 1.0
    answered_s: float | None = None
    says: Callable[[float], bytes] | None = None

    @property
    def shows_value(self) -> Callable[[float], bytes] | None:
        """Return the maker of a value's regular expression; a choice is shown by its number."""
        return _digits if self.says is None and isinstance(self.sets, Mapping) else self.says

    def reply(self, name: str) -> Several:
        """Return the reply that it is read from: by itself the whole of one of its own."""
        if isinstance(self.query, Several):
            return self.query
        name = self.scan or name
        return Several(self.query, "(?s:(.*))", self.every_s, self.only_while, name)

    @property
    def is_plain(self) -> bool:
        """Return whether its value is what its text says, as it is."""
        return self.must is None and self.per == 1.0

    @property
    def is_read(self) -> bool:
        """Return whether something asks for it."""
        return self.query != ""

    @property
    def step_set(self) -> float:
        """Return the step of the numbers that are sent; a choice has none."""
        return 0.0 if isinstance(self.sets, Mapping) else 10.0**-self.decimals / self.per

    def wrong(self) -> Iterator[str]:
        """Return what is wrong with the row as it is written."""
        yield from super().wrong()
        if (self.sets is None) != (self.sends.count("{}") != 1):
            yield f"a row that can be set sends its number in one place, not {self.sends!r}"
        if self.sets is None and not self.is_read:
            yield "it can be neither read nor set"

    def value(self, said: str, name: str) -> Any:  # noqa: ANN401 - a query may read anything
        """Return what a text says."""
        found = self.reads(said, name)
        return self.right(name, found / self.per) if isinstance(found, float) else found

    def sent(self, value: float) -> float:
        """Return the value on the wire: the nearest step of its decimals."""
        return float(f"{value * self.per:.{self.decimals}f}") / self.per

    def written(self, name: str, value: float) -> str:
        """Return a value as the command has it: the nearest step, but nothing becomes zero."""
        shown = f"{value * self.per:.{self.decimals}f}"
        number_sent = float(shown)
        what = f"{name} in {self.unit}" if self.unit else name
        kept(what, value, number_sent, 10.0**-self.decimals / self.per)
        return shown.removeprefix("-") if number_sent == 0 else shown


def _digits(value: float) -> bytes:
    return f"{value:.0f}".encode()


@dataclass(frozen=True, kw_only=True)
class Who:
    """The question for the identity: each regular expression finds one of the answers.

    Attributes:
        query: The question.
        model: The model, in the whole reply; a reply without it is bad.
        name: The model's name, if the instrument does not tell it.
        serial: Its serial number.
        firmware: Its firmware.
        details: Its other answers, by name.
        lines: Number of lines of the reply.
        reply: Rule for the end of the reply, if it is not a number of lines.
        timeout_s: Longest wait, if it is not the driver's.
    """

    query: str = field(kw_only=False)
    model: str = ""
    name: str = ""
    serial: str = ""
    firmware: str = ""
    details: Mapping[str, str] = field(default_factory=dict)
    lines: int = 1
    reply: Until | None = None
    timeout_s: float | None = None

    def read(self, said: str) -> Identity:
        """Return what a reply says."""
        model = self.name or _found(self.model, said)
        if not model:
            raise BadReply(f"identity: no model in {said[:80]!r}")
        details = {name: _found(each, said) for name, each in self.details.items()}
        return Identity(model, _found(self.firmware, said), _found(self.serial, said), details)


def _found(pattern: str, said: str) -> str:
    found = re.search(pattern, said) if pattern else None
    return found[1].strip() if found else ""


def _replies(rows: Mapping[str, Any]) -> dict[Several, dict[str, Ascii]]:
    found: dict[Several, dict[str, Ascii]] = {}
    for name, row in rows.items():
        found.setdefault(row.reply(name), {})[name] = row
    return found


class AsciiDriver(TableDriver):
    """Base of the drivers that speak lines of text; a subclass gives rows.

    Attributes:
        who: The question for its identity.
        head: Beginning of every command; it may hold settings of the driver in braces.
        reply_head: Beginning of every reply, likewise.
        end: End of a command.
        reply_end: End of a reply.
        timeout_s: Longest wait for a reply.
        bytes_max: Longest reply.
        refusal_has_head: Whether a refusal starts with ``reply_head`` too.
        form: Regular expression of a reply without head and end; its group is the answer.
        refused: Regular expression of a refusal; its group, if it has one, is a number.
        refusals: Meaning of these numbers.
        done: Regular expression of the answer to a command; ``""`` where the answer shows the value
            as its query does, ``None`` where no answer comes.
        in_step: Questions, each with the regular expression of its answers, which no other question
            has; by default the identity, which is always the same. Not needed with ``reply_head``.
        asks_back: Whether each command goes with its query in one line, as SCPI allows.
        acknowledged: Regular expression of the answer to a question, where the value comes only
            when it is asked for by ``enquires``; any other is a refusal.
        enquires: That line, such as ENQ, with its end.
        completes: Question after each command, answered when it is done (``*OPC?``).
        alone: Bytes of which each is a whole reply by itself, without an end (NAK, EOT).
        command_seal: Checksum in each line that is sent.
        reply_seal: Checksum in each reply; the guard refuses a reply that it does not fit.
    """

    who: ClassVar[Who]
    head: ClassVar[str] = ""
    reply_head: ClassVar[str] = ""
    end: ClassVar[str] = "\r"
    reply_end: ClassVar[str] = "\r"
    timeout_s: ClassVar[float] = 0.3
    bytes_max: ClassVar[int] = 512
    refusal_has_head: ClassVar[bool] = True
    form: ClassVar[str] = "([^\r\n]*)"
    refused: ClassVar[str] = ""
    refusals: ClassVar[Mapping[str, str]] = {}
    done: ClassVar[str | None] = ""
    asks_back: ClassVar[bool] = False
    acknowledged: ClassVar[str] = ""
    enquires: ClassVar[str] = ""
    completes: ClassVar[str] = ""
    alone: ClassVar[bytes] = b""
    command_seal: ClassVar[Seal | None] = None
    reply_seal: ClassVar[Seal | None] = None
    in_step: ClassVar[Mapping[str, str]] = {}

    def __init__(self) -> None:
        self._head = self.head.format_map(vars(self))
        self._reply_head = self.reply_head.format_map(vars(self)).encode()
        self._done = (self.done + self.reply_end).encode() if self.done else b""
        self._end = self.reply_end.encode()
        self._form = re.compile(self.form)
        self._refused = re.compile(self.refused) if self.refused else None
        super().__init__()
        asks = one_line = self.line(self.who.query, self.who.timeout_s)
        if self.who.lines > 1:
            rule = Lines(self.who.lines, self.reply_end.encode(), prefix=self._reply_head)
            asks = replace(asks, reply=rule)
        asks = replace(asks, reply=self.who.reply or asks.reply)
        query, said = self.who.query, self._told if asks.reply != one_line.reply else self.said
        *before, asks = self.exchange(asks)
        self._identity = Query(
            "identity",
            asks,
            lambda reply: self.who.read(said("identity", reply, query)),
            tuple(before),
        )

    @classmethod
    def wrong_table(cls) -> Iterator[str]:
        """Return the replies that have not one group a row."""
        for reply, rows in _replies(cls.rows).items():
            groups = re.compile(reply.pattern).groups
            if groups != len(rows):
                yield f"{reply.name}: its pattern has {groups} groups for {', '.join(rows)}"

    def steps(self) -> tuple[Request, ...]:
        """Return what proves its port in step, where its replies have no head."""
        if self._reply_head or self.enquires:
            return ()
        rule = Until(self._end, bytes_max=STEP_BYTES_MAX)
        stated = [
            replace(self.line(query, obeyed=f"(?:{form}){self.reply_end}".encode()), reply=rule)
            for query, form in self.in_step.items()
        ]
        return tuple(stated) or super().steps()

    def scans_of(self, rows: Mapping[str, Ascii]) -> Iterator[Scan]:
        """Return a scan for each reply, in the order of the rows."""
        for reply, some in _replies(rows).items():
            channels = tuple([name for name, row in some.items() if not row.hidden])
            *before, asks = self.exchange(self.line(reply.query))
            decode = self._decoder(reply, some)
            yield Scan(
                reply.name, asks, channels, decode, reply.every_s, reply.only_while, tuple(before)
            )

    def commands(self, channel: str, row: Ascii, value: float) -> tuple[Request, ...]:
        """Return the one line that sets a channel."""
        command = row.sends.format(row.written(channel, value))
        if self.asks_back:
            command += f";{row.reply(channel).query}"
        timeout_s = row.answered_s or self.timeout_s
        obeyed = self.showing(row, value) if self.done == "" else self._done
        request = self.line(command, timeout_s, obeyed)
        if self.completes:  # the command itself is not answered
            asks = self.line(self.completes, timeout_s, self._done)
            return replace(request, reply=Nothing(), obeyed=b""), asks
        return (request if self.done is not None else replace(request, reply=Nothing()),)

    def exchange(self, asks: Request) -> tuple[Request, ...]:
        """Return the requests of one question: itself, or what it is acknowledged by and ENQ."""
        if not self.enquires:
            return (asks,)
        told = (re.escape(self._reply_head.decode()) + self.acknowledged + self.reply_end).encode()
        first = replace(self.line(""), frame=asks.frame, obeyed=told)
        return first, replace(asks, frame=self.enquires.encode())

    def accept(self, channel: str, reply: bytes) -> None:
        """Take the answer that a command has to have."""
        if self.done == "":
            next(each for each in self._scans if channel in each.channels).decode(reply)
            return
        said = self.said(channel, reply)
        if not re.fullmatch(self.done or "", said):
            raise BadReply(f"{channel}: {said[:40]!r} is not {self.done}")

    def shown(self, channel: str, value: float) -> Request | None:
        """Ask for the channel, where it is sure how the instrument writes this value."""
        row: Any = self.channels[channel]
        if not row.is_read or row.shows_value is None or self.enquires:
            return None  # one frame alone does not show it
        return replace(self.line(row.reply(channel).query), obeyed=self.showing(row, value))

    def showing(self, row: Ascii, value: float) -> bytes:
        """Return the regular expression of the replies that show a value."""
        says = row.shows_value
        sent = float(f"{value * row.per:.{row.decimals}f}")
        shown = says(sent) if says is not None else b"(?!)"
        return re.escape(self._reply_head) + shown + self.reply_end.encode()

    def line(self, line: str, timeout_s: float | None = None, obeyed: bytes = b"") -> Request:
        """Return the request for one line."""
        frame = (self._head + line + self.end).encode()
        prefix = self._reply_head if self.refusal_has_head else b""
        seal = self.reply_seal
        after = 0 if seal is None or seal.tail else len(seal.put(b""))
        rule: ReplyRule = Until(self._end, prefix, self.bytes_max, after, self.alone)
        if seal is not None:
            rule = Checked(how=seal.how, start=seal.start, tail=seal.tail, inner=rule)
        if self.command_seal is not None:
            frame = self.command_seal.put(frame)
        return Request(frame, rule, timeout_s or self.timeout_s, obeyed=obeyed)

    def said(self, what: str, reply: bytes, asked: str = "") -> str:
        """Return the text of a reply, without head and end.

        Raises:
            BadReply: It is not a reply of this instrument.
            DeviceFault: The instrument refuses.
        """
        found = self._form.fullmatch(told := self._told(what, reply, asked))
        if found is None:
            raise BadReply(f"{what}: {told[:40]!r} is not in form")
        return found[1]

    def _told(self, what: str, reply: bytes, asked: str) -> str:
        head = self._reply_head
        if len(reply) == 1 and reply in self.alone:
            reply = head + reply + self._end
        elif self.reply_seal is not None:
            reply = self.reply_seal.cut(reply)
        told = reply.removeprefix(head).removesuffix(self._end).decode("ascii", "replace")
        whole = reply.endswith(self._end)
        refusal = self._refused.fullmatch(told) if self._refused is not None and whole else None
        if refusal and (reply.startswith(head) or not self.refusal_has_head):
            why = self.refusals.get(refusal[1], "unknown") if refusal.lastindex else ""
            to = f" to {asked}" if asked else ""
            raise fault(what, f"{told[:80]}{to}{why and f' ({why})'}")
        if not (whole and reply.startswith(head)):
            raise BadReply(f"{what}: {reply[:80]!r} is not a reply of {head.decode() or 'its'}")
        return told

    def _decoder(
        self, reply: Several, rows: Mapping[str, Ascii]
    ) -> Callable[[bytes], tuple[Any, ...]]:
        pattern = re.compile(reply.pattern)
        parts = [(name, row.reads if row.is_plain else row.value) for name, row in rows.items()]
        hides = any(row.hidden for row in rows.values())
        shown = [at for at, row in enumerate(rows.values()) if not row.hidden]

        def decode(received: bytes) -> tuple[Any, ...]:
            found = pattern.fullmatch(self.said(reply.name, received, reply.query))
            if found is None:
                raise BadReply(f"{reply.name}: {received[:80]!r} is not in form")
            said = zip(parts, found.groups(""), strict=True)
            values = [read(text, name) for (name, read), text in said]  # a hidden one is checked
            return tuple([values[at] for at in shown] if hides else values)

        return decode
