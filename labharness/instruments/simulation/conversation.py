"""One client on one served port: its frames to the bus, the replies back, at the wire's pace.

Bytes under way on a wire: put in together, they arrive one after the other.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, field
from itertools import islice

from labharness.core.clock import monotonic_ns
from labharness.instruments.simulation.bus import BITS_PER_CHARACTER, GAP_S_MIN, SimulatedBus
from labharness.instruments.simulation.faces import Face

GRID_S = 1e-6  # a byte's timer may fire this much early


class Wire:
    """One direction of one line. It has no clock: each call passes the time.

    Args:
        byte_s: Time of one byte; 0 for a link without wire time.
        free_s: End of the wire time of another client's bytes.

    Attributes:
        free_s: Time at which the last byte has arrived.
    """

    def __init__(self, byte_s: float, free_s: float = 0.0) -> None:
        self._byte_s = byte_s
        # start time of the first byte, and the bytes
        self._pieces: deque[tuple[float, bytes]] = deque()
        self._count = 0
        self.free_s = free_s

    def __len__(self) -> int:
        """Return the number of bytes on the wire, arrived or not."""
        return self._count

    def put(self, data: bytes, now_s: float) -> None:
        """Put bytes behind those under way."""
        start_s = max(now_s, self.free_s)
        self._pieces.append((start_s, data))
        self._count += len(data)
        self.free_s = start_s + len(data) * self._byte_s

    def whole(self) -> bytes:
        """Return all bytes on the wire."""
        if len(self._pieces) == 1:
            return self._pieces[0][1]
        return b"".join(data for _, data in self._pieces)

    def due_s(self, count: int) -> float:
        """Return the time at which the first ``count`` bytes have arrived."""
        for start_s, data in self._pieces:
            if count <= len(data):
                return start_s + count * self._byte_s
            count -= len(data)
        return self.free_s

    def arrived(self, now_s: float) -> int:
        """Return how many bytes have arrived by now."""
        count = 0
        for start_s, data in self._pieces:
            if start_s > now_s + GRID_S:
                break
            passed_s = now_s + GRID_S - start_s
            here = min(len(data), int(passed_s / self._byte_s)) if self._byte_s else len(data)
            count += here
            if here < len(data):
                break
        return count

    def take(self, count: int) -> bytes:
        """Remove and return the first ``count`` bytes."""
        taken = []
        while count and self._pieces:
            start_s, data = self._pieces.popleft()
            here = min(count, len(data))
            taken.append(data[:here])
            if here < len(data):
                self._pieces.appendleft((start_s + here * self._byte_s, data[here:]))
            count -= here
            self._count -= here
        return b"".join(taken)


# the oldest are dropped first; an hour of a line that is polled once a second
LOG_ROWS_MAX = 100_000
# of requests, as much as a Linux terminal holds; after that the writer waits
PENDING_BYTES_MAX = 4_095
REPLIES_BYTES_MAX = 1_048_576  # under way to one client; further replies are lost
GAP_WALL_S_MIN = 0.002  # shorter pauses inside a frame may be the system's, not the writer's
CHUNK_WALL_S = 0.001  # bytes that arrive within this time are sent together


@dataclass(frozen=True, slots=True)
class LoggedBytes:
    """One row of the wire log, at the simulator's end.

    Attributes:
        number: Counts all rows of a simulator from 0.
        monotonic_ns: CLOCK_MONOTONIC, which every process of the machine shares.
        port: Name of the port.
        client: Number of the port's client, counted from 1.
        event: ``handed``: received from the operating system; ``heard``: a frame whose last byte
            has arrived at the instruments; ``sent``: part of a reply, given to the operating
            system; ``gone``: the client has closed.
        data: The bytes.
    """

    number: int
    monotonic_ns: int
    port: str
    client: int
    event: str
    data: bytes


@dataclass(slots=True)
class ByteLog:
    """The wire log at the instruments' end, of bounded length.

    Attributes:
        count: Number of rows ever written.
    """

    count: int = 0
    _rows: deque[LoggedBytes] = field(default_factory=lambda: deque(maxlen=LOG_ROWS_MAX))

    def note(self, at_ns: int, port: str, client: int, event: str, data: bytes) -> None:
        """Add a row."""
        self._rows.append(LoggedBytes(self.count, at_ns, port, client, event, data))
        self.count += 1

    def since(self, number: int, rows_max: int) -> Sequence[LoggedBytes]:
        """Return the oldest kept rows, from ``number`` on."""
        first = self.count - len(self._rows)
        begin = min(max(0, number - first), len(self._rows))  # islice takes no larger number
        return tuple(islice(self._rows, begin, begin + rows_max))


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlet:
    """The bus behind a served port.

    Attributes:
        name: Name of the port.
        bus: The instruments. Its own wire time is 0, because it is counted here.
        face: The face whose framing the bus uses.
        baud: Line speed; 0 for a link without wire time.
        speed: Lab seconds per real second.
        log: The wire log.
    """

    name: str
    bus: SimulatedBus
    face: Face
    baud: int
    speed: float
    log: ByteLog


@dataclass(eq=False)
class Conversation:
    """The exchange between one client and the instruments of one port.

    Attributes:
        outlet: The bus behind the port.
        client: Number of the port's client, counted from 1.
        send: Sends bytes to the client; returns whether they were taken.
        roomy: Called when there is room for requests again.
        begins_s: End of the wire time of the previous client's bytes.
    """

    outlet: Outlet
    client: int
    send: Callable[[bytes], bool]
    _: KW_ONLY
    roomy: Callable[[], None] = lambda: None
    begins_s: float = 0.0

    def __post_init__(self) -> None:
        self._loop, outlet = asyncio.get_running_loop(), self.outlet
        byte_s = BITS_PER_CHARACTER / outlet.baud if outlet.baud else 0.0
        gap_s = outlet.face.gap_characters * byte_s
        self._gap_s = max(gap_s, GAP_S_MIN, GAP_WALL_S_MIN * outlet.speed) if gap_s else 0.0
        self._chunk_s = CHUNK_WALL_S * outlet.speed
        self._requests = Wire(byte_s, self.begins_s)
        self._replies = Wire(byte_s)
        self._listening: asyncio.TimerHandle | None = None
        self._talking: asyncio.TimerHandle | None = None
        self._over = False
        # delay of the last frame's hand-over; its reply is sent that much earlier
        self._lag_s = 0.0

    @property
    def space(self) -> int:
        """Number of request bytes that are accepted now."""
        return max(0, PENDING_BYTES_MAX - len(self._requests))

    @property
    def free_s(self) -> float:
        """Time at which the last byte of the client's requests has arrived."""
        return self._requests.free_s

    def hear(self, data: bytes) -> None:
        """Take bytes that the client has given to the operating system."""
        self._note("handed", data)
        now = self._loop.time()
        requests = self._requests
        silent = self._gap_s and len(requests) and now - requests.free_s > self._gap_s
        if silent and not self.outlet.face.frame_length(requests.whole()):
            requests.take(len(requests))  # silence ends a frame, complete or not
        requests.put(data, now)
        self._listen()

    def end(self) -> None:
        """End the exchange: the client is gone.

        Its complete frames still reach the instruments, as an operating system would still send
        them. Incomplete frames and all replies are dropped.
        """
        self._over = True
        self._note("gone", b"")
        if self._talking is not None:
            self._talking.cancel()

    def _listen(self) -> None:
        """Pass on every frame whose last byte has arrived; set a timer for the next one."""
        if self._listening is not None:
            self._listening.cancel()
            self._listening = None
        requests, outlet = self._requests, self.outlet
        while length := outlet.face.frame_length(requests.whole()) if len(requests) else 0:
            due_s, now = requests.due_s(length), self._loop.time()
            if due_s > now + GRID_S:
                self._listening = self._loop.call_at(due_s, self._listen)
                return
            self._lag_s = max(0.0, now - due_s)
            frame = requests.take(length)
            self._note("heard", frame)
            outlet.bus.transmit(frame, self._deliver)
        if not self.space:  # longer than any frame: the instruments cannot read it
            if requests.free_s > self._loop.time() + GRID_S:
                self._listening = self._loop.call_at(requests.free_s, self._listen)
                return
            requests.take(len(requests))
        self.roomy()

    def _deliver(self, reply: bytes) -> None:
        if self._over or self.outlet.bus.faults.cut:
            return
        if len(self._replies) + len(reply) <= REPLIES_BYTES_MAX:
            self._replies.put(reply, self._loop.time() - self._lag_s)
        if self._talking is None:
            self._talk()

    def _talk(self) -> None:
        """Send the reply bytes that have arrived; set a timer for the next ones."""
        self._talking = None
        replies = self._replies
        now = self._loop.time()
        data = replies.take(replies.arrived(now))
        at_ns = monotonic_ns()
        if data and not self.outlet.bus.faults.cut and self.send(data):
            self._note("sent", data, at_ns)
        if len(replies) and not self._over:
            next_s = max(replies.due_s(1), now + self._chunk_s)
            self._talking = self._loop.call_at(min(next_s, replies.free_s), self._talk)

    def _note(self, event: str, data: bytes, at_ns: int | None = None) -> None:
        at_ns = monotonic_ns() if at_ns is None else at_ns
        self.outlet.log.note(at_ns, self.outlet.name, self.client, event, data)
