"""A simulated bus: instruments on one pair of wires, their timing and their faults."""

import asyncio
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from labharness.simulation.environment import LoopEnvironment
from labharness.simulation.faces import Face, garbage

__all__ = ["BusFaults", "SimulatedBus", "WireRecord"]

BITS_PER_CHARACTER = 10  # 8N1: start, eight data, stop
FRAME_BYTES_MAX = 65_536


@dataclass(slots=True)
class BusFaults:
    """What is wrong with the wires; set by a scenario, healthy by default.

    Attributes:
        cut: Nothing passes in either direction.
        reply_lost: The next this many replies are lost on their way back.
        reply_late_s: Added to each reply's delay.
        reply_garbled: The next this many replies arrive as noise.
    """

    cut: bool = False
    reply_lost: int = 0
    reply_late_s: float = 0.0
    reply_garbled: int = 0
    injected: bool = False

    def any_ever(self) -> bool:
        """Say whether this bus was ever disturbed."""
        self.injected |= self.cut or self.reply_late_s > 0
        self.injected |= self.reply_lost > 0 or self.reply_garbled > 0
        return self.injected


@dataclass(slots=True)
class WireRecord:
    """What passed at the instruments' end of one bus.

    Attributes:
        passed: Lab time in seconds, whether it went to an instrument, and the bytes. A reply stands
            with the moment of its last byte and as the wire left it; a lost one is not there.
    """

    passed: list[tuple[float, bool, bytes]] = field(default_factory=list)

    @property
    def frames(self) -> list[bytes]:
        """What the instruments heard, in order."""
        return [data for _, heard, data in self.passed if heard]


class SimulatedBus:
    """The far end of a loopback link.

    The instrument acts when the request's bytes are handed over, and the last byte of its reply
    arrives after the request's wire time, the instrument's latency and the reply's wire time.

    Args:
        env: The plant's world; it is brought up to date before an instrument is asked.
        faces: The instruments on this bus.
        baud: Line speed; 0 for a road whose wire time does not count (TCP).
        chance: Source of garbage.
    """

    def __init__(
        self,
        env: LoopEnvironment,
        faces: Sequence[Face],
        *,
        baud: int,
        chance: random.Random,
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._env = env
        self._faces = tuple(faces)
        self._byte_s = BITS_PER_CHARACTER / baud if baud else 0.0
        self._chance = chance
        self._buffer = b""
        self.faults = BusFaults()
        self.record: WireRecord | None = None

    def transmit(self, data: bytes, deliver: Callable[[bytes], None]) -> None:
        """Take bytes from the harness; ``deliver`` gets each reply when it has arrived."""
        faults = self.faults
        if faults.cut:
            faults.injected = True
            return
        buffer = self._buffer + data if self._buffer else data
        while buffer:
            length = self._faces[0].frame_length(buffer)
            if not length:
                break
            frame, buffer = buffer[:length], buffer[length:]
            if self.record is not None:
                self.record.passed.append((self._loop.time(), True, frame))
            self._ask(frame, deliver)
        if len(buffer) > FRAME_BYTES_MAX:
            buffer = b""
        self._buffer = buffer

    def _ask(self, frame: bytes, deliver: Callable[[bytes], None]) -> None:
        self._env.sync()
        for face in self._faces:
            reply = face.receive(frame)
            if reply is not None:
                delay_s = (len(frame) + len(reply)) * self._byte_s + face.latency_s
                self._reply(reply, delay_s, deliver)
                return

    def _reply(self, reply: bytes, delay_s: float, deliver: Callable[[bytes], None]) -> None:
        faults = self.faults
        if faults.reply_lost:
            faults.injected = True
            faults.reply_lost -= 1
            return
        if faults.reply_garbled:
            faults.injected = True
            faults.reply_garbled -= 1
            reply = garbage(self._chance, len(reply))
        if faults.reply_late_s:
            faults.injected = True
            delay_s += faults.reply_late_s
        at_s = self._loop.time() + delay_s
        if self.record is not None:
            self.record.passed.append((at_s, False, reply))
        self._loop.call_at(at_s, deliver, reply)
