"""A line on a guard that a test answers for: a furnace, a box, and two flows."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, cast

from kernel_line import parts
from labharness.core.clock import Clock, VirtualLoop, run
from labharness.core.vocabulary import Cause, Command, Trip
from labharness.line.hindrances import Room
from labharness.line.instrument import Instrument
from labharness.line.line import Line
from labharness.safety.guard import SafeFrame
from labharness.safety.kernel import Bound, Envelope, Procedure, Step
from line_alone import Notes, Port, Toy, asks, shown, toy

OFF = Step(channel="box.contactor", value=0.0, unit="")
STOP = Trip(Cause.STOP_REQUEST, "shutdown", "test", None, 0.0, "because")
SPEED = Command("furnace.rate", 5.0, "degC/min")
MAINS = Command("box.contactor", 1.0, "")


class Latch:
    """A latch in memory."""

    def __init__(self) -> None:
        self.trip: Trip | None = None
        self.write_error = ""
        self.full: OSError | None = None

    def probe(self) -> None:
        """Say whether it could be written."""
        if self.full is not None:
            raise self.full

    def saved(self) -> bool:
        """It is."""
        return True


class Held(Port):
    """A port that makes safe as well.

    Attributes:
        done: What it was asked to, in order.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(loop)
        self.latch = Latch()
        self.done: list[str] = []
        self.arms: Callable[[], Awaitable[None]] = self.at_once
        request = asks("box.contactor=0")
        self.procedures = {
            "shutdown": (SafeFrame(0, "box", request, OFF.channel, OFF.value, OFF.unit),)
        }
        self.obeys = True
        self.on_offline_log: Any = None
        self.on_link_lost: Any = None
        self.on_safe_frame: Any = None
        self.on_trip: Any = None

    async def at_once(self) -> None:
        """Take no time."""

    async def arm(self) -> None:
        """Arm."""
        self.done.append("arm")
        await self.arms()

    def disarm(self) -> None:
        """Disarm."""
        self.done.append("disarm")

    def close(self) -> None:
        """Close."""
        self.done.append("close")

    def new_epoch(self) -> None:
        """Void what was permitted."""
        self.done.append("epoch")

    def heartbeat(self, procedure: str) -> None:
        """Hear that the loop lives."""
        self.done.append(f"heartbeat {procedure}")

    def trip(self, trip: Trip) -> None:
        """Send a procedure, and latch."""
        self.done.append(f"trip {trip.procedure}")
        self.repeat(list(self.procedures[trip.procedure]))

    def repeat(self, frames: Sequence[SafeFrame]) -> None:
        """Send frames."""
        for each in frames if self.obeys else ():
            self.holds[each.channel] = each.value


class Link:
    """A link that counts."""

    def __init__(self, kind: str = "loopback") -> None:
        self.kind = kind
        self.opened = 0

    async def open(self) -> None:
        """Open it."""
        self.opened += 1


class Alone:
    """A line of a furnace and a box."""

    def __init__(
        self, *, attended: bool = True, link: str = "loopback", ambient: float | None = 760.0
    ) -> None:
        self.loop = asyncio._get_running_loop() or VirtualLoop()
        self.guard = Held(self.loop)
        self.guard.holds.update(
            {"box.exhaust": 1.0, "box.lid_shut": 1.0, "furnace.temperature": 25.0}
        )
        self.links = {"heat": Link(link), "box": Link()}
        self.journal = Notes()
        rows = parts()
        procedure = Procedure(name="shutdown", steps=(OFF,), wire_s_max=1.0, verify_s_max=4.0)
        rows["procedures"] = {"shutdown": procedure}
        self.room = Room(
            ambient=ambient,
            channel="gauge.pressure",
            during=(Bound("box.lid_shut", high=0.5),),
            differ_max=10.0,
        )
        self.line = Line(
            envelope=Envelope(**rows),
            instruments=self.instruments(),
            guard=cast("Any", self.guard),
            links=cast("Any", self.links),
            journal=cast("Any", self.journal),
            clock=Clock(self.loop),
            attended=attended,
            room=self.room,
            cold={},
        )

    def instruments(self) -> tuple[Instrument, ...]:
        """Return the furnace, prepared with a rate, the box, and two flows."""
        furnace = Toy(
            {"setpoint": shown("setpoint", unit="degC"), "rate": shown("rate", unit="degC/min")},
            ("temperature",),
        )
        box = Toy({"contactor": shown("contactor")}, ("exhaust", "lid_shut"))
        return (
            toy("furnace", furnace, port="heat", prepare=(("rate", 5.0),)),
            toy("box", box, port="box"),
            toy("hydrogen", Toy({"setpoint": shown("setpoint")}, ("flow",)), port="gas"),
            toy("argon", Toy({"setpoint": shown("setpoint")}, ("flow",)), port="gas"),
        )

    def play(self, *works: Callable[[], Awaitable[Any]], close: bool = True) -> None:
        """Do one thing after the other, and close the line."""

        async def main() -> None:
            try:
                for each in works:
                    await each()
            finally:
                if close:
                    await self.line.close()

        run(main(), self.loop)

    async def armed(self) -> None:
        """Open and arm."""
        await self.line.open()
        await self.line.arm("shutdown")

    async def running(self) -> None:
        """Open, arm and start."""
        await self.armed()
        self.line.start()

    def modes(self) -> list[object]:
        """Name the modes that were recorded."""
        return [body["mode"] for body in self.journal.of("mode")]

    def kinds(self) -> list[str]:
        """Name what was recorded, but for commands."""
        return [kind for kind, _ in self.journal.records if kind not in ("intent", "outcome")]
