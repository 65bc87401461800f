"""A line of four toys that is made safe: what is asked of its guard, and what is told."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any, cast

from kernel_line import parts
from labharness.core.vocabulary import Cause, Trip
from labharness.instruments.driver import Adds, Cools, Dark, Off
from labharness.line.events import Events
from labharness.line.procedures import Verification
from labharness.line.trip_response import TripResponse
from labharness.safety.guard import SafeFrame
from labharness.safety.kernel import Bound, Envelope, Memory, Mode, Procedure, Step
from line_alone import Scene, Toy, asks, shown, toy

HEAT_OFF = Step(channel="furnace.setpoint", value=20.0, unit="degC")
GAS_OFF = Step(channel="hydrogen.setpoint", value=0.0, unit="sccm")
MAINS_OFF = Step(channel="box.contactor", value=0.0, unit="")
TRY = Step(channel="argon.setpoint", value=100.0, unit="sccm", optional=True)
STEPS = {"shutdown": (GAS_OFF, MAINS_OFF, HEAT_OFF, TRY), "relieve": (MAINS_OFF, GAS_OFF)}
PORTS = {"furnace": "heat", "box": "relays", "hydrogen": "gas", "argon": "gas"}
LOOK_S = 0.25
TOOK_S = 0.01  # what a look takes


def frames(name: str) -> tuple[SafeFrame, ...]:
    """A procedure as it leaves."""
    return tuple(
        SafeFrame(
            number,
            PORTS[each.channel.partition(".")[0]],
            asks(each.channel),
            each.channel,
            each.value,
            each.unit,
        )
        for number, each in enumerate(STEPS[name])
    )


def procedure(name: str, **more: Any) -> Procedure:
    return Procedure(name=name, steps=STEPS[name], wire_s_max=1.0, verify_s_max=4.0, **more)


def cause(cause: Cause = Cause.STOP_REQUEST, name: str = "shutdown", at_s: float = 0.0) -> Trip:
    return Trip(cause, name, "line", None, at_s, "because")


class Guard:
    """A guard that sends nothing and keeps what it is asked to."""

    def __init__(self) -> None:
        self.procedures = {name: frames(name) for name in STEPS}
        self.latch = SimpleNamespace(trip=None, write_error="")
        self.asked: list[tuple[str, Any]] = []
        self.on_safe_frame: Any = None
        self.on_trip: Any = None
        self.answer: Callable[[SafeFrame], str] | None = None

    def trip(self, trip: Trip) -> None:
        """Keep it."""
        self.asked.append(("trip", trip.procedure))

    def repeat(self, frames: list[SafeFrame]) -> None:
        """Keep which."""
        self.asked.append(("repeat", [each.channel for each in frames]))
        for each in frames if self.answer else ():
            self.on_safe_frame(each, self.answer(each) if self.answer else "")

    def new_epoch(self) -> None:
        """Keep it."""
        self.asked.append(("epoch", None))

    def repeats(self) -> list[list[str]]:
        """Return what was sent again."""
        return [what for kind, what in self.asked if kind == "repeat"]


class Safe(Scene):
    """A line of four toys that is made safe."""

    def __init__(self, unsafe: Bound | None = None) -> None:
        heats = Off(
            adds=Adds.HEAT,
            steps=(("setpoint", 20.0),),
            source="test",
            dark=Dark(channel="power", at_most=1.0, within_s=3.0),
        )
        row = Cools(
            channel="temperature", lag_s=10.0, over_s=20.0, rise_max=2.0, above=60.0, unit="degC"
        )
        furnace = Toy(
            {"setpoint": shown("setpoint", unit="degC", resolution=1.0)},
            ("power", "temperature"),
            off=(heats,),
        )
        super().__init__(
            toy("furnace", furnace, cools=(row,)),
            toy("box", Toy({"contactor": shown("contactor")})),
            toy("hydrogen", Toy({"setpoint": shown("flow", resolution=0.5)}, ("flow",))),
            toy("argon", Toy({"setpoint": shown("setpoint")})),
        )
        rows = parts()
        when = () if unsafe is None else (unsafe,)
        rows["procedures"] = {
            "shutdown": procedure("shutdown", when=when, instead="relieve"),
            "relieve": procedure("relieve"),
        }
        self.memory = Memory(Envelope(**rows))
        self.memory.mode = Mode.RUNNING
        self.fake = Guard()
        self.shows: dict[str, float | None] = {
            "furnace.setpoint": 20.0,
            "hydrogen.flow": 0.0,
            "box.contactor": 0.0,
            "argon.setpoint": 100.0,
            "furnace.power": 0.0,
            "furnace.temperature": 300.0,
        }
        self.looks: list[tuple[tuple[str, ...], float]] = []
        self.told: list[str] = []
        self.woken: list[float] = []
        self.events = Events()
        self.events.on_abnormal = lambda trip: self.told.append(f"tripped {trip.cause}")
        self.events.on_verified = lambda found: self.told.append(
            f"{found.procedure} {found.complete}"
        )
        self.events.on_warning = self.told.append
        self.trip_response = TripResponse(
            memory=self.memory,
            guard=cast("Any", self.fake),
            instruments=self.instruments,
            loop=self.loop,
            note=self.note,
            read=self.read,
            wake=lambda: self.woken.append(self.loop.time()),
            events=self.events,
        )

    def note(self, kind: str, body: Mapping[str, object]) -> None:
        """Keep a record, and what had happened by then."""
        self.noted.append((kind, body))
        self.told.append(f"noted {kind}")

    async def read(self, channels: Sequence[str], within_s: float) -> dict[str, float]:
        """Measure; ``None`` is silence."""
        self.looks.append((tuple(channels), within_s))
        await asyncio.sleep(TOOK_S)
        values = {channel: self.shows[channel] for channel in channels}
        return {channel: value for channel, value in values.items() if value is not None}

    def bodies(self, kind: str) -> list[Mapping[str, object]]:
        """Return the records of a kind."""
        return [body for what, body in self.noted if what == kind]

    def after(self, for_s: float, *trips: Trip, then: Any = None) -> "Safe":
        """Trip, and let time pass."""

        async def work() -> None:
            for each in trips:
                self.trip_response.trip(each)
            if then is not None:
                await then()
            await asyncio.sleep(for_s)
            self.trip_response.close()

        self.play(work())
        return self


def states(verification: Verification) -> list[str]:
    """Name the state of each step."""
    return [state.value for *_, state in verification.steps]
