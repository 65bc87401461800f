"""A simulated bus: instruments on one pair of wires, their timing and their faults.

A SimPy environment driven by the event loop's clock, virtual or real.
"""

import asyncio
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import simpy

from labharness.core.clock import poster
from labharness.instruments.simulation.faces import Face

TICKS_PER_S = 1_000_000  # integer microseconds: no drift after a million one-second steps


class LoopEnvironment(simpy.Environment):
    """A SimPy environment whose time is the loop's.

    One timer of the loop is set for the head of SimPy's queue. ``sync`` runs all due events. Code
    that touches a simulated instrument calls it first, so that the plant never lags behind the
    clock.

    Attributes:
        loop: The event loop that counts the time.
        post_at: Has the loop call a function with one argument at a time; it is not cancelled.
    """

    loop: asyncio.AbstractEventLoop
    post_at: Callable[[float, Callable[[bytes], None], bytes], object]

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(0)
        self.loop, self.post_at = loop, poster(loop)
        self._start_s = loop.time()
        self._armed: asyncio.TimerHandle | None = None
        self._armed_tick = 0
        self._stepping = False

    def move(self, loop: asyncio.AbstractEventLoop) -> None:
        """Continue on another loop, whose time goes on from this one's.

        A process that dies takes its loop with it, but the plant lives on.
        """
        if self._armed is not None:
            self._armed.cancel()
            self._armed = None
        self.loop, self.post_at = loop, poster(loop)
        self._arm()

    def seconds(self, delay_s: float) -> simpy.Event:
        """Return an event after ``delay_s``, for a plant's process to yield."""
        return self.timeout(round(delay_s * TICKS_PER_S))

    def schedule(self, event: Any, priority: Any = 1, delay: Any = 0) -> None:  # noqa: ANN401 - SimPy's own signature
        """Put an event on the queue; one from outside counts from the loop's time."""
        if not self._stepping:
            self._now = max(self._now, self._tick(self.loop.time()))
        super().schedule(event, priority, delay)
        if not self._stepping:
            self._arm()

    def sync(self) -> float:
        """Run every event that is due, bring ``now`` up to the loop's time, and return that."""
        loop_s = self.loop.time()
        if self._stepping:
            return loop_s
        now = self._tick(loop_s)
        queue = self._queue
        if not queue or queue[0][0] > now:
            if now > self._now:
                self._now = now
            return loop_s
        self._stepping = True
        try:
            while queue and queue[0][0] <= now:
                self.step()
            self._now = max(self._now, now)
        finally:
            self._stepping = False
        self._arm()
        return loop_s

    def _tick(self, loop_s: float) -> int:
        return round((loop_s - self._start_s) * TICKS_PER_S)

    def _arm(self) -> None:
        if not self._queue:
            return
        head = int(self._queue[0][0])
        if self._armed is not None:
            if self._armed_tick <= head:
                return
            self._armed.cancel()
        self._armed_tick = head
        self._armed = self.loop.call_at(self._start_s + head / TICKS_PER_S, self._fire)

    def _fire(self) -> None:
        self._armed = None
        self.sync()
        self._arm()


BITS_PER_CHARACTER = 10  # 8N1: start, eight data, stop
GAP_S_MIN = 0.00175  # MODBUS over Serial Line V1.02, 2.5.1.1: t3.5 above 19200 baud
FRAME_BYTES_MAX = 65_536
FRAMES_KNOWN_MAX = 1_024  # of one bus


class _Noted:
    """Faults with a note of whether any is set, as each frame asks, and whether any ever was."""

    __slots__ = ("present",)
    present: bool

    def __setattr__(self, name: str, value: object) -> None:
        object.__setattr__(self, name, value)
        of_now = (getattr(self, each, 0) for each in self.__slots__ if each not in NO_FAULTS)
        object.__setattr__(self, "present", any(of_now))
        if self.present:
            object.__setattr__(self, "injected", True)


NO_FAULTS = ("injected", "late_s_max")  # a memory of faults, and the size of one


@dataclass(slots=True)
class BusFaults(_Noted):
    """Faults of the wires, set by a scenario; none by default.

    Attributes:
        cut: All bytes are lost in both directions.
        echo: The adapter gives back what is sent, before any reply.
        reply_lost: Number of next replies that are lost.
        reply_late_s: Added to the delay of each reply.
        reply_garbled: Number of next replies that arrive as noise.
        write_lost: Number of next setting frames that are lost.
        write_refused: Number of next setting frames that are refused, in the instrument's words and
            without effect.
        writes_refused: All setting frames are refused.
        lost_share: Share (0 to 1) of the frames that are lost, and of the replies.
        garbled_share: Share of the replies that arrive as noise.
        late_share: Share of the replies that come later by up to ``late_s_max``, long after their
            timeout.
        foreign_share: Share of the replies that come after a copy of an earlier reply, from any
            instrument on these wires.
        doubled_share: Share of the replies that arrive twice, within ``late_s_max``.
        reordered_share: Share of the replies that are held until the next reply has passed.
        late_s_max: Longest extra delay of a late or doubled reply.
        present: Whether any is set now.
    """

    cut: bool = False
    echo: bool = False
    reply_lost: int = 0
    reply_late_s: float = 0.0
    reply_garbled: int = 0
    write_lost: int = 0
    write_refused: int = 0
    writes_refused: bool = False
    lost_share: float = 0.0
    garbled_share: float = 0.0
    late_share: float = 0.0
    foreign_share: float = 0.0
    doubled_share: float = 0.0
    reordered_share: float = 0.0
    late_s_max: float = 1.0
    injected: bool = False

    @property
    def noisy(self) -> bool:
        """Whether any share is above 0."""
        shares = self.lost_share + self.garbled_share + self.late_share
        return shares + self.foreign_share + self.doubled_share + self.reordered_share > 0


@dataclass(slots=True)
class WireRecord:
    """The bytes that passed at the instruments' end of one bus.

    Attributes:
        passed: Lab time in seconds, whether the bytes went to an instrument, and the bytes. A reply
            has the time of its last byte, and its disturbed bytes; a lost reply is missing.
    """

    passed: list[tuple[float, bool, bytes]] = field(default_factory=list)

    @property
    def frames(self) -> list[bytes]:
        """The frames that the instruments received, in order."""
        return [data for _, heard, data in self.passed if heard]


@dataclass(eq=False)
class SimulatedBus:
    """The remote end of a loopback link.

    The instrument acts when the request is sent. The last byte of its reply arrives after the
    request's wire time, the instrument's latency and the reply's wire time.

    Attributes:
        env: The plant's world; it is brought up to date before each frame.
        faces: The instruments on this bus.
        baud: Line speed; 0 for a link without wire time (TCP).
        chance: Source of garbage.
    """

    env: LoopEnvironment
    faces: Sequence[Face]
    baud: int
    chance: random.Random

    def __post_init__(self) -> None:
        self._byte_s = BITS_PER_CHARACTER / self.baud if self.baud else 0.0
        self._whole: set[bytes] = set()  # frames that were found whole
        self._buffer = b""
        self._buffer_s = 0.0  # time at which its last byte arrived
        self._gap_s = 0.0
        if self.baud and self.faces[0].gap_characters:
            self._gap_s = max(self.faces[0].gap_characters * self._byte_s, GAP_S_MIN)
        self._before = b""  # the last reply on these wires
        self._held: tuple[bytes, Callable[[bytes], None]] | None = None
        self.faults = BusFaults()
        self.record: WireRecord | None = None

    def transmit(self, data: bytes, deliver: Callable[[bytes], None]) -> None:
        """Take bytes from the harness; ``deliver`` gets each reply when it arrives."""
        if self.faults.cut:
            return
        if self.faults.echo:
            self.env.post_at(self.env.sync() + len(data) * self._byte_s, deliver, data)
        if not self._buffer and self._is_whole(data):
            self._ask(data, deliver)  # mostly one whole frame
            return
        silent_s = self.env.loop.time() - self._buffer_s
        ended = self._gap_s and silent_s > self._gap_s
        buffer = data if ended else self._buffer + data
        while buffer:
            length = self.faces[0].frame_length(buffer)
            if not length:
                break
            frame, buffer = buffer[:length], buffer[length:]
            self._ask(frame, deliver)
        if len(buffer) > FRAME_BYTES_MAX:
            buffer = b""
        self._buffer = buffer
        if buffer:
            self._buffer_s = self.env.loop.time() + len(buffer) * self._byte_s

    def _is_whole(self, data: bytes) -> bool:
        """Return whether bytes are one frame; most are asked again each second."""
        if data in self._whole:
            return True
        if not 0 < self.faces[0].frame_length(data) == len(data):
            return False
        if len(self._whole) >= FRAMES_KNOWN_MAX:
            self._whole.clear()
        self._whole.add(data)
        return True

    def _ask(self, frame: bytes, deliver: Callable[[bytes], None]) -> None:
        now_s = self.env.sync()
        faults = self.faults
        refusal = None
        if faults.present:
            if faults.lost_share and self.chance.random() < faults.lost_share:
                return
            refusal = self._refusal(frame)
            if refusal is not None and faults.write_lost:
                faults.write_lost -= 1
                return
        if self.record is not None:
            self.record.passed.append((now_s, True, frame))
        for face in self.faces:
            reply = face.receive(frame) if refusal is None else refusal
            if reply is not None:
                delay_s = (len(frame) + len(reply)) * self._byte_s + face.latency_s
                if faults.present or self._held is not None:
                    self._reply(reply, now_s, delay_s, deliver)
                else:
                    self._before = reply
                    self._deliver(reply, now_s + delay_s, deliver)
                return

    def _refusal(self, frame: bytes) -> bytes | None:
        """Return the refusal of a setting frame while such a fault is set, else ``None``."""
        faults = self.faults
        if not (faults.write_lost or faults.write_refused or faults.writes_refused):
            return None
        refusals = (face.refusal(frame) for face in self.faces)
        refusal = next((each for each in refusals if each is not None), None)
        if refusal is not None and faults.write_refused and not faults.write_lost:
            faults.write_refused -= 1
        return refusal

    def _reply(
        self, reply: bytes, now_s: float, delay_s: float, deliver: Callable[[bytes], None]
    ) -> None:
        faults = self.faults
        if faults.reply_lost:
            faults.reply_lost -= 1
            return
        if faults.reply_garbled:
            faults.reply_garbled -= 1
            reply = self.chance.randbytes(len(reply))
        if faults.reply_late_s:
            delay_s += faults.reply_late_s
        if faults.noisy or self._held is not None:
            self._disturb(reply, now_s, delay_s, deliver)
        else:
            self._before = reply
            self._deliver(reply, now_s + delay_s, deliver)

    def _deliver(self, reply: bytes, at_s: float, deliver: Callable[[bytes], None]) -> None:
        if self.record is not None:
            self.record.passed.append((at_s, False, reply))
        self.env.post_at(at_s, deliver, reply)

    def _disturb(
        self, reply: bytes, now_s: float, delay_s: float, deliver: Callable[[bytes], None]
    ) -> None:
        """Draw each disturbance by its share; one reply may get several."""
        faults, drawn = self.faults, self.chance.random
        held, self._held = self._held, None
        if faults.foreign_share > drawn() and self._before:
            self._deliver(self._before, now_s + 0.5 * delay_s, deliver)
        self._before = reply
        if faults.doubled_share > drawn():
            late_s = drawn() * faults.late_s_max
            self._deliver(reply, now_s + delay_s + late_s, deliver)
        if faults.garbled_share > drawn():
            reply = self.chance.randbytes(len(reply))
        if faults.late_share > drawn():
            delay_s += drawn() * faults.late_s_max
        if faults.reordered_share > drawn():
            self._held = (reply, deliver)
        elif not faults.lost_share > drawn():
            self._deliver(reply, now_s + delay_s, deliver)
        if held is not None:
            self._deliver(held[0], now_s + delay_s, held[1])
