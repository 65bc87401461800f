"""The parts of a line by themselves: an instrument of words, a port that a test answers for."""

import asyncio
import weakref
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, TypeVar, cast

from kernel_line import running
from labharness.core.clock import VirtualLoop, run
from labharness.core.vocabulary import BadReply, DeviceFault, Program, Quiet, Request
from labharness.instruments.driver import (
    Block,
    Channel,
    Driver,
    Identity,
    Off,
    Programmer,
    Query,
    Scan,
    While,
)
from labharness.journal import JournalFailed
from labharness.journal.null_journal import NullJournal
from labharness.line.command import Writer
from labharness.line.exchanges import Exchanges, Reader
from labharness.line.gate import Gate
from labharness.line.instrument import BoundScan, Instrument, bind
from labharness.safety.guard import Guard, NotPermitted

T = TypeVar("T")
EXCHANGE_S = 0.01
RULE = Quiet(0.05)


def asks(words: str) -> Request:
    """A frame of plain words."""
    return Request(words.encode(), RULE, 1.0)


def shown(readback: str | None, **more: Any) -> Channel:
    """A channel that can be set."""
    return Channel(
        unit=more.pop("unit", ""),
        doc="Control it.",
        source="test",
        settable=True,
        readback=readback,
        **more,
    )


class Toy(Driver):
    """Takes ``name=value`` and answers ``name?``, each channel in a scan of its own.

    Args:
        channels: What it has; one that is not here is only measured.
        measured: Such channels.
        off: How it is switched off.
        programmer: How it takes programs.
        on_demand: Scans that are not polled.
        only_while: In which state alone scans are answered.
    """

    def __init__(
        self,
        channels: Mapping[str, Channel],
        measured: Sequence[str] = (),
        *,
        off: tuple[Off, ...] = (),
        programmer: Programmer | None = None,
        on_demand: Sequence[str] = (),
        only_while: Mapping[str, While] | None = None,
    ) -> None:
        only_read = {name: Channel(unit="", doc="Measure it.", source="test") for name in measured}
        self.channels = {**channels, **only_read}
        self.off = off
        self.programmer = programmer
        self.twice: set[str] = set()
        self.name = ""
        self._on_demand = on_demand
        self._only_while = only_while or {}

    def scans(self) -> tuple[Scan, ...]:
        """Read each channel by itself."""
        return tuple(
            Scan(
                name,
                asks(f"{self.name}.{name}?"),
                (name,),
                _number,
                None if name in self._on_demand else 1.0,
                self._only_while.get(name),
            )
            for name in self.channels
        )

    def queries(self) -> tuple[Query, ...]:
        """Ask what it is good at."""
        return (Query("good", asks(f"{self.name} good?"), bytes.decode),)

    def identify(self) -> Query:
        """Ask for its name."""
        return Query("identity", asks(f"{self.name} who?"), _identity)

    def expects(self, identity: Identity) -> str:
        """Be a toy."""
        return "" if identity.model == "toy" else f"it is a {identity.model}"

    def write(self, channel: str, value: float) -> tuple[Request, ...]:
        """Set a channel; some take two frames."""
        if value == 13:
            raise ValueError("13 does not fit")
        frame = asks(f"{self.name}.{channel}={value:g}")
        return (frame, asks(f"{self.name}.{channel}!")) if channel in self.twice else (frame,)

    def accept(self, channel: str, reply: bytes) -> None:
        """Take what is no refusal."""
        if reply == b"no":
            raise DeviceFault(f"{channel}: it refused")
        if reply == b"what":
            raise BadReply(f"{channel}: no reply of mine")


def _number(reply: bytes) -> tuple[float, ...]:
    try:
        return (float(reply),)
    except ValueError:
        raise BadReply(f"{reply!r} is not a number") from None


def _identity(reply: bytes) -> object:
    return Identity(reply.decode(), "1.0") if reply != b"?" else None


def toy(name: str, driver: Toy, **more: Any) -> Instrument:
    """One toy on a line, on a port of its own name."""
    driver.name = name
    return Instrument(name=name, kind="toy", driver=driver, port=more.pop("port", name), **more)


class Port:
    """A guard whose instruments keep what they are set to.

    Attributes:
        holds: By channel, what it reads.
        says: By frame, what is answered instead; ``None`` is silence. A list is used up in order.
        sent: Every frame with whether it had a permit.
        forbidden: Frames that get no permit.
        busy: Ports that have to settle first.
        doubted: Ports whose reply nobody could read, each time.
        unkept: Frames that set no channel.
        exchange_s: What one takes.
        heartbeat_s: How often it asks for a heartbeat.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.holds: dict[str, float] = {}
        self.says: dict[str, str | list[str | None] | None] = {}
        self.sent: list[tuple[str, bool]] = []
        self.forbidden: set[str] = set()
        self.busy: set[str] = set()
        self.doubted: list[str] = []
        self.unkept: set[str] = set()
        self.exchange_s = EXCHANGE_S
        self.heartbeat_s = float("inf")
        self.on_frame: Callable[[str], None] = lambda words: None
        self._loop = loop
        self._waiting: dict[str, list[Callable[[], None]]] = {}
        self._taken: set[str] = set()

    @property
    def written(self) -> list[str]:
        """Every frame that had a permit."""
        return [words for words, permit in self.sent if permit]

    def asked(self, words: str) -> int:
        """Return how often something was sent."""
        return sum(each == words for each, _ in self.sent)

    def at(self, port: str) -> "Port":
        """Be the guard of every port."""
        return self

    def when_free(self, port: str, give: Callable[[], None], *, patient: bool = False) -> None:
        """Give a port in turn."""
        self.busy.discard(port)
        if port in self._taken:
            self._waiting.setdefault(port, []).append(give)
        else:
            self._taken.add(port)
            self._loop.call_soon(give)

    def release(self, port: str) -> None:
        """Give it to the next."""
        waiting = self._waiting.get(port, [])
        if waiting:
            self._loop.call_soon(waiting.pop(0))
        else:
            self._taken.discard(port)

    def leave(self, port: str, give: Callable[[], None]) -> None:
        """Wait no more."""
        if give in self._waiting.get(port, []):
            self._waiting[port].remove(give)

    def doubt(self, port: str) -> None:
        """Take a port for out of step."""
        self.doubted.append(port)

    def ready(self, port: str) -> bool:
        """Return whether it may send."""
        return port not in self.busy

    def permit(self, port: str, request: Request) -> object:
        """Permit a frame."""
        if request.frame.decode() in self.forbidden:
            raise NotPermitted("no permit for this")
        return object()

    def exchange(self, port: str, request: Request, permit: object, done: Any) -> None:
        """Send a frame and have its reply."""
        if not self.ready(port):
            raise AssertionError(f"{port} has to settle first")
        words = request.frame.decode()
        self.sent.append((words, permit is not None))
        self.on_frame(words)
        answer = self._answer(words)
        error = "" if answer is not None else "no reply"
        reply = None if answer is None else answer.encode()
        self._loop.call_later(self.exchange_s, done, reply, error)

    def _answer(self, words: str) -> str | None:
        said = self.says.get(words, "")
        if isinstance(said, list):
            said = said.pop(0) if said else ""
        if said is None or said:
            return said
        if words.endswith(" who?"):
            return "toy"
        if words.endswith("?"):
            return f"{self.holds.get(words[:-1], 0.0)}"
        name, _, value = words.partition("=")
        if value and words not in self.unkept:
            self.holds[name] = float(value)
        return "ok"


class Notes(NullJournal):
    """A journal that a test can read.

    Attributes:
        records: Kind and body of each.
        fails_at: A kind that cannot be written.
        on_durable: Called while the disk takes its time.
    """

    def __init__(self) -> None:
        super().__init__()
        self.records: list[tuple[str, dict[str, object]]] = []
        self.fails_at = ""
        self.on_durable: Callable[[], None] = lambda: None

    def append(self, kind: str, body: Mapping[str, object], at_s: float) -> int:
        """Keep a record, or fail."""
        if kind == self.fails_at:
            raise JournalFailed("full")
        self.records.append((kind, dict(body)))
        return len(self.records)

    async def durable(self, seq: int) -> None:
        """Take a while."""
        self.on_durable()

    def of(self, kind: str) -> list[dict[str, object]]:
        """Return the records of a kind."""
        return [body for what, body in self.records if what == kind]


class Scene:
    """Toys on ports, memory and a journal, and the parts of a line on them.

    Args:
        instruments: What stands on the line.
    """

    def __init__(self, *instruments: Instrument) -> None:
        current = asyncio._get_running_loop()
        self.loop = current or VirtualLoop()
        if not current:
            weakref.finalize(self, self.loop.close)  # where nothing was played
        self.port = Port(self.loop)
        self.guard = cast("Guard", self.port)
        self.memory = running()
        self.journal = Notes()
        self.instruments = {each.name: each for each in instruments}
        self.exchanges = Exchanges(self.guard, self.loop)
        self.noted: list[tuple[str, Mapping[str, object]]] = []
        self.taken: list[tuple[str, tuple[float, ...]]] = []
        scans = [
            scan for each in instruments for scan in bind(each, self.memory, self.journal, 1.0)
        ]
        self.reader = Reader(
            memory=self.memory,
            instruments=self.instruments,
            scans={channel: scan for scan in scans for channel in scan.channels},
            exchanges=self.exchanges,
            loop=self.loop,
            take=self.take,
            note=lambda kind, body: self.noted.append((kind, body)),
            record=lambda kind, body: self.noted.append((kind, body)),
        )

    def take(self, scan: BoundScan, values: tuple[float, ...]) -> str:
        """Take a reading into memory as it is."""
        self.taken.append((scan.channels[0], values))
        for track, value in zip(scan.tracks, values, strict=True):
            track.value, track.at_s = value, self.loop.time()
        return ""

    def writer_by(self, gate: Gate, lost: Callable[[str], None]) -> Writer:
        """Return the one writer of this line, by whose words it judges."""
        return Writer(
            gate=gate,
            instruments=self.instruments,
            exchanges=self.exchanges,
            journal=self.journal,
            now_s=self.loop.time,
            read=self.reader.read,
            lost=lost,
        )

    def play(self, work: Coroutine[Any, Any, T]) -> T:
        """Run something to its end."""
        return run(work, self.loop)


def block(name: str, words: str, holds: tuple[int, ...]) -> Block:
    """A block of a program, as words."""
    read = Query(name, asks(f"{name}?"), lambda reply: tuple(int(each) for each in reply.split()))
    return Block(name, asks(f"{name}={words}"), read, holds)


def blocks_of(program: Program) -> Sequence[Block]:
    """One block a segment, the first last."""
    courses = list(enumerate(program.course(), 1))
    return [block(f"segment{n}", f"{c:g}", (int(c),)) for n, (c, _) in [*courses[1:], courses[0]]]
