"""The exchange on one port: what may follow what, and which bytes are the reply (sans I/O).

States of a port::

    IDLE  --send-->  SENT  --whole, right reply-->  IDLE
                     SENT  --timeout or bad reply-->  DRAIN  --quiet-->  IDLE
    IDLE  --bytes that were not asked for, or a reply that says nothing-->  DRAIN

In DRAIN whatever arrives is thrown away, for a whole time-out of quiet: a late reply must never
pass for a fresh one. A procedure alone may send out of DRAIN, because making safe does not wait for
quiet.

A port whose replies carry neither address nor echo has steps: reads whose replies show that they
are their own. There a whole reply is held until the reply to a step has followed it; a line too
many or too few would have taken the step's place (`docs/decisions/0049-*.md`).
"""

from collections import deque
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from labharness.core.vocabulary import BadReply, Nothing, Quiet, Request, Text
from labharness.core.vocabulary.requests import disobeyed, unfinished

DRAIN_S_MIN = 0.1
DRAIN_S_MAX = 2.0  # a port that babbles is tried again after this much more, and then goes stale
BUFFER_BYTES_MAX = 8 * 1024 * 1024
LEARNT_AFTER = 3.0  # time-outs without a byte, before a reply is learnt as the answer to its step
SHOWN_BYTES_MAX = 40  # of a frame in an error


class PortState(Enum):
    """Where a port is in its exchange."""

    IDLE = "idle"
    SENT = "sent"
    DRAIN = "drain"


# Names, because Python 3.11 takes ten times as long to find a member in its enum.
IDLE, SENT, DRAIN = PortState.IDLE, PortState.SENT, PortState.DRAIN


@dataclass(frozen=True, slots=True)
class SafeFrame:
    """One frame of a procedure, with its meaning.

    Attributes:
        step: Number of the step in the procedure, in order of hazard.
        port: Port it leaves by.
        request: The frame and its reply.
        channel: The channel that it sets.
        value: The value.
        unit: The unit of the value.
        shown: The read that shows it, with what its reply must be; ``None`` where none does.
    """

    step: int
    port: str
    request: Request
    channel: str
    value: float
    unit: str = ""
    shown: Request | None = None


class Finished(NamedTuple):  # one for each exchange: a frozen dataclass takes five times as long
    """The end of an exchange: a whole right reply, or why there is none.

    A reply to a frame of a procedure that does not say that it was done stands beside its error.
    """

    request: Request
    reply: bytes | None
    error: str
    safe: SafeFrame | None


@dataclass(slots=True, eq=False)
class Port:
    """One link's exchange: at most one request is on the wire.

    Attributes:
        reads: Frames that may leave without a permit, exactly.
        steps: Reads that prove the port in step; ``()`` where each reply shows whose answer it is.
            A step that does not say what its reply must be (``obeyed``) has always the same one.
        echoes: Whether its adapter gives back what is sent: that is dropped, byte by byte.
        safe: Frames of a procedure that wait for the wire.
        step: The step to send when ``due_s`` has come.
        due_s: When ``expire`` must be called next; ``inf`` when nothing is due.
    """

    name: str
    reads: frozenset[bytes]
    steps: tuple[Request, ...] = ()
    echoes: bool = False
    state: PortState = IDLE
    safe: deque[SafeFrame] = field(default_factory=deque)
    due_s: float = float("inf")
    transaction: int = 1_000_000_000
    step: Request | None = None
    _request: Request | None = None
    _safe_sent: SafeFrame | None = None
    _buffer: bytes = b""
    _echo: bytes = b""
    _deadline_s: float = float("inf")
    discarded: int = 0
    _drained_s: float = float("inf")
    _quiet_s: float = DRAIN_S_MIN
    _numbered: bool = False
    _held: tuple[Request, bytes] | None = None
    _said: bytes | None = None
    _known: bytes | None = None

    def feed(self, data: bytes, now: float) -> Finished | None:
        """Take bytes that arrived; return the exchange's end if they complete it."""
        if not data:  # a link may wake with nothing to read
            return None
        request = self._request
        if request is None:
            self.discarded += len(data)
            if self.state is DRAIN:
                self.due_s = min(max(self.due_s, now + self._quiet_s), self._drained_s)
            elif not self._numbered:
                self._drain(now, self._quiet_s)
            return None
        if self.step is not None or self._said is not None:  # no frame is on the wire
            return self._bad(Text("reply.surplus", shown=_shown(data)), now)
        buffer = self._buffer + data if self._buffer else data
        try:
            if self._echo:
                back = buffer[: len(self._echo)]
                if not self._echo.startswith(back):
                    raise BadReply(Text("reply.no_echo"))
                self._echo, buffer = self._echo[len(back) :], buffer[len(back) :]
                if not buffer:
                    return None
            taken = request.take(buffer, self.transaction)
            while taken < 0:
                self.discarded -= taken
                buffer = buffer[-taken:]
                taken = request.take(buffer, self.transaction) if buffer else 0
            if len(buffer) > BUFFER_BYTES_MAX:
                raise BadReply(f"more than {BUFFER_BYTES_MAX} bytes and no end")
        except BadReply as why:
            return self._bad(Text("reply.bad", why=why.args[0]), now)
        if taken == 0:
            self._buffer = buffer
            if isinstance(request.reply, Quiet):
                self.due_s = min(now + request.reply.silence_s, self._deadline_s)
            return None
        if len(buffer) > taken:
            self.discarded += len(buffer) - taken
            if not self._numbered:
                own = len(request.frame) > 1 and buffer.startswith(request.frame)
                surplus = Text("reply.surplus", shown=_shown(buffer[taken:]))
                return self._bad(Text("reply.own") if own else surplus, now)
        return self._answered(request, buffer[:taken], now)

    def expire(self, now: float) -> Finished | None:
        """Let time pass; return the exchange's end if it timed out."""
        if now < self.due_s:
            return None
        request = self._request
        if request is None:
            self.state = IDLE
            self.due_s = float("inf")
            return None
        if self.step is not None:  # its time to be sent has come
            return None
        if self._said is not None and self._held is not None:  # nothing came after it
            self._known = self._said
            return self._proven(self._held, now)
        if self.due_s < self._deadline_s:  # moved by the first bytes of a reply that quiet ends
            return self._answered(request, self._buffer, now)
        if isinstance(request.reply, Nothing):
            return self._end(b"", "", now, drain_s=0.0)
        return self._bad(unfinished(request.reply, self._buffer, request.timeout_s), now)

    def doubt(self, now: float) -> None:
        """Take the last reply for one that cannot be read: the port may be out of step."""
        if self._request is None and not self._numbered:
            self._drain(now, self._quiet_s)

    @property
    def makes_safe(self) -> bool:
        """Whether a frame of a procedure is on the wire, or waits for it."""
        return self._safe_sent is not None or bool(self.safe)

    def give_way(self, now: float) -> Finished | None:
        """End an exchange that waits with nothing on the wire, because a procedure must send."""
        if self.safe and (self.step is not None or self._said is not None):
            return self._bad(Text("reply.unproven"), now)
        return None

    def lose(self, why: str, now: float) -> Finished | None:
        """End the exchange because the link is gone."""
        if self._request is None:
            return None
        return self._end(None, why, now, drain_s=DRAIN_S_MIN)

    def put(self, request: Request, safe: SafeFrame | None, now: float) -> bytes:
        """Begin an exchange and give the bytes to hand over; only the core calls it."""
        frame = request.frame
        field_ = request.transaction
        if field_ is not None:
            self.transaction += 1
            blank = 10**field_.size if field_.ascii else 1 << 8 * field_.size
            number = self.transaction = self.transaction % blank
            if field_.ascii:
                text = str(number).rjust(field_.size, "1").encode()
                self.transaction = int(text)
            else:
                text = number.to_bytes(field_.size, "big")
            frame = frame[: field_.offset] + text + frame[field_.offset + field_.size :]
        self.state = SENT
        self._echo = frame if self.echoes else b""
        self._request = request
        self._safe_sent = safe
        self._numbered = field_ is not None
        self._quiet_s = max(request.timeout_s, DRAIN_S_MIN)
        waits = request.settle_s if isinstance(request.reply, Nothing) else request.timeout_s
        self.due_s = self._deadline_s = now + waits
        return frame

    def prove(self, now: float) -> bytes | None:
        """Return the frame of the step that is to follow a reply, once its time has come."""
        step = self.step
        if step is None or now < self.due_s:
            return None
        self.step = None
        return self.put(step, self._safe_sent, now)

    def _answered(self, request: Request, reply: bytes, now: float) -> Finished | None:
        """Take a whole reply: the end of the exchange, or of its first part."""
        first = self._held is None
        asked = self._held = self._held or (request, reply)
        self._buffer = self._echo = b""
        if not self.steps or self._numbered:
            return self._proven(asked, now)
        if first and self.safe and self.safe[0].request.frame not in self.reads:
            if self._safe_sent is None or request.frame in self.reads:
                return self._bad(Text("reply.unproven"), now)
            return self._proven(asked, now)  # what sets is read back later
        self.step = next((e for e in self.steps if first and e.frame != request.frame), None)
        if self.step is not None:
            self.due_s = self._deadline_s = now + request.settle_s
            return None
        step = next(each for each in self.steps if each.frame == request.frame)
        if not disobeyed(step, reply) if step.obeyed else reply == self._known:
            return self._proven(asked, now)
        if first or not (step.obeyed or self._known):
            self._said = reply
            self.due_s = self._deadline_s = now + LEARNT_AFTER * self._quiet_s
            return None
        return self._bad(Text("reply.step", shown=_shown(reply)), now)

    def _proven(self, asked: tuple[Request, bytes], now: float) -> Finished:
        """End with a whole reply; a frame of a procedure that was refused has failed."""
        request, reply = asked
        error = "" if self._safe_sent is None else disobeyed(request, reply)
        return self._end(reply, error, now, drain_s=request.settle_s)

    def _bad(self, why: str, now: float) -> Finished:
        """End without a reply; the port keeps quiet for a time-out."""
        return self._end(None, why, now, drain_s=self._quiet_s)

    def _end(self, reply: bytes | None, error: str, now: float, *, drain_s: float) -> Finished:
        request, safe = self._request, self._safe_sent
        if request is None:
            raise RuntimeError(f"port {self.name} ends an exchange it never began")
        if self._held is not None:
            request = self._held[0]
        self._request = self._safe_sent = self.step = self._held = self._said = None
        self._buffer = self._echo = b""
        if drain_s > 0:
            self._drain(now, drain_s)
        else:
            self.state = IDLE
            self.due_s = float("inf")
        return Finished(request, reply, error, safe)

    def _drain(self, now: float, drain_s: float) -> None:
        self.state = DRAIN
        self.due_s = now + drain_s
        self._drained_s = now + max(drain_s, self._quiet_s) + DRAIN_S_MAX


def _shown(data: bytes) -> str:
    return data[:SHOWN_BYTES_MAX].hex(" ")
