"""A finite model of the shipped line: valves, purge, temperature bands and mode, searched through.

The commands are those that the real ``judge`` allows on the real envelope, the reactions those of
the real ``observe`` and ``tick``, the safe states those of the real procedures. What is modelled is
the tube: what fills it, what is in it, how hot it gets. It is coarser than the plant and more
hostile: whatever may happen next, happens.

The kernel's proof by volumes is one step here; by backfills it is left to the kernel's own tests.
Whether air is in the tube is the model's truth, which the kernel only infers.
"""

import math
from collections.abc import Callable, Container, Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple

from labharness.core.vocabulary import OPERATOR, Allowed, Cause, Command, Trip
from labharness.safety.kernel import Envelope, Memory, Mode, judge, observe, tick

FURNACE_C = (25.0, 700.0, 940.0)
FURNACE_SET_C = (20.0, 700.0, 940.0)
SULFUR_C = (25.0, 200.0)
SULFUR_SET_C = (20.0, 200.0)
PRESSURE_TORR = (0.1, 760.0, 900.0, 1500.0)
VACUUM, ATMOSPHERE, OVER, BURST = range(4)
ARGON_SCCM = (0.0, 100.0)
HYDROGEN_SCCM = (0.0, 10.0)
NOW_S = 100.0
LID, ENCLOSURE = "box.lid_shut", "box.enclosure_shut"
STATES_MAX = 2_000_000
CAUSES = (None, *Cause)  # by their number in a state


class State(NamedTuple):
    """One state of the line; temperatures, setpoints and pressure by their number above."""

    furnace: int = 0
    furnace_set: int = 0
    furnace_mains: int = 0
    sulfur: int = 0
    sulfur_set: int = 0
    sulfur_mains: int = 0
    argon: int = 1
    argon_valve: int = 1
    bypass_shut: int = 0
    hydrogen: int = 0
    hydrogen_valve: int = 0
    vent: int = 1
    pump_isolation: int = 0
    pressure: int = ATMOSPHERE
    lid_shut: int = 1
    air_inside: int = 1
    leaky: int = 1
    purged: int = 0
    tight: int = 0
    laser: int = 0
    outlet_clogged: int = 0
    tripped: int = 0  # or the number of the cause in force, from 1

    @property
    def closed(self) -> bool:
        """Nothing gets out of the tube: a clogged outlet is ahead of vent and pump."""
        return bool(
            self.lid_shut and (self.outlet_clogged or not (self.vent or self.pump_isolation))
        )

    @property
    def argon_flows(self) -> bool:
        """Argon enters the tube, by way of its meter."""
        return bool(self.argon and self.argon_valve)

    @property
    def hydrogen_flows(self) -> bool:
        """Hydrogen enters the tube."""
        return bool(self.hydrogen and self.hydrogen_valve)

    @property
    def fills(self) -> bool:
        """Any gas enters the tube."""
        return self.argon_flows or self.hydrogen_flows or not self.bypass_shut

    @property
    def openable(self) -> bool:
        """Nothing hot, and nothing on that heats, flows or shines out of an open tube."""
        on = self.furnace_mains or self.sulfur_mains or self.hydrogen_valve or self.laser
        return not (self.furnace or self.sulfur or on)

    @property
    def furnace_heats(self) -> bool:
        """The furnace gets hotter, or stays hot."""
        return bool(self.furnace_mains and self.furnace_set)

    @property
    def sulfur_heats(self) -> bool:
        """The sulfur gets hotter, or stays hot."""
        return bool(self.sulfur_mains and self.sulfur_set)


TUBE: Mapping[str, tuple[str, tuple[float, ...]]] = {  # channel: field, its values
    "furnace.setpoint": ("furnace_set", FURNACE_SET_C),
    "box.furnace_contactor": ("furnace_mains", (0.0, 1.0)),
    "sulfur.setpoint": ("sulfur_set", SULFUR_SET_C),
    "box.sulfur_contactor": ("sulfur_mains", (0.0, 1.0)),
    "argon.setpoint": ("argon", ARGON_SCCM),
    "box.argon_valve": ("argon_valve", (0.0, 1.0)),
    "box.nitrogen_bypass_shut": ("bypass_shut", (0.0, 1.0)),
    "hydrogen.setpoint": ("hydrogen", HYDROGEN_SCCM),
    "box.hydrogen_valve": ("hydrogen_valve", (0.0, 1.0)),
    "box.vent": ("vent", (0.0, 1.0)),
    "box.pump_isolation": ("pump_isolation", (0.0, 1.0)),
}
OPTICS: Mapping[str, tuple[str, tuple[float, ...]]] = {"laser.emission": ("laser", (0.0, 1.0))}
"""Nothing in the tube knows of the laser: it is searched by itself."""
CHANNELS = {**TUBE, **OPTICS}  # what a procedure sets, whichever is commanded

HAZARDS: Mapping[str, Callable[[State], bool]] = {
    "hydrogen flows into air": lambda s: s.hydrogen_flows and bool(s.air_inside),
    "hydrogen is not swept out": lambda s: s.hydrogen_flows and not (s.argon_flows and s.vent),
    "hydrogen flows into a tube that may leak": lambda s: s.hydrogen_flows and bool(s.leaky),
    "hydrogen goes to the pump": lambda s: s.hydrogen_flows and bool(s.pump_isolation),
    "sulfur is heated in a tube that may leak": lambda s: s.sulfur_heats and bool(s.leaky),
    "hot sulfur in air": lambda s: bool(s.sulfur and s.air_inside),
    "hot furnace in air": lambda s: bool(s.furnace and s.air_inside),
    "sulfur vapour is not swept out": lambda s: bool(
        s.sulfur and not s.tripped and not (s.argon_flows and s.vent)
    ),
    "a closed tube is heated": lambda s: (
        (s.furnace_heats or s.sulfur_heats) and not (s.vent or s.tripped)
    ),
    "the tube bursts": lambda s: s.pressure == BURST,
    "quartz too hot for a vacuum": lambda s: s.furnace == 2 and s.pressure == VACUUM,
    "sources sublime into the pump": lambda s: bool((s.furnace or s.sulfur) and s.pump_isolation),
    "the bubbler's oil is sucked back": lambda s: bool(
        s.vent and (s.pressure == VACUUM or s.pump_isolation)
    ),
}

FLAGS: Mapping[str, tuple[Mapping[str, float], Callable[[State], bool]]] = {
    # what may be unsound: its readings, and what must not be energised then
    "exhaust lost": (
        {"box.exhaust_flow": 0.0},
        lambda s: (
            bool(s.furnace_mains or s.sulfur_mains)
            or s.hydrogen_flows
            or bool((s.furnace or s.sulfur) and not s.tripped)
        ),
    ),
    "lid open": (
        {"box.lid_shut": 0.0},
        lambda s: (
            bool(s.furnace_mains or s.sulfur_mains)
            or s.hydrogen_flows
            or bool(s.laser)
            or bool((s.furnace or s.sulfur) and not s.tripped)
        ),
    ),
    "hydrogen detector faulty": ({"h2_detector.fault": 1.0}, lambda s: s.hydrogen_flows),
    "hydrogen detector not monitoring": ({"h2_detector.state": 0.0}, lambda s: s.hydrogen_flows),
    "hydrogen's watchdog off": ({"hydrogen.watchdog_ms": 0.0}, lambda s: s.hydrogen_flows),
    "hydrogen set by other than its wire": (
        {"hydrogen.setpoint_source": 0.0},
        lambda s: s.hydrogen_flows,
    ),
    "hydrogen in the room": (
        {"h2_detector.concentration": 5000.0},
        lambda s: s.hydrogen_flows,
    ),
    "gauge failed": ({"gauge.fault": 1.0}, lambda s: bool(s.furnace_mains or s.sulfur_mains)),
    "laser too bright": ({"laser.output_power": 0.05}, lambda s: bool(s.laser)),
    "furnace sensor broken": ({"furnace.sensor_break": 1.0}, lambda s: s.furnace_heats),
    "sulfur sensor broken": ({"sulfur.sensor_break": 1.0}, lambda s: s.sulfur_heats),
    "argon gone": (
        {"argon.flow": 0.0},
        lambda s: s.hydrogen_flows or s.sulfur_heats or bool(s.sulfur and not s.tripped),
    ),
    "laser enclosure open": ({"box.enclosure_shut": 0.0}, lambda s: bool(s.laser)),
    "emergency stop": (
        {"box.estop_closed": 0.0},
        lambda s: bool(s.furnace_mains or s.sulfur_mains) or s.hydrogen_flows,
    ),
}
AT_ANY_TIME: Mapping[str, Mapping[str, float]] = {
    # what trips and is none of the tube's doing: whatever is in force already, this comes too
    what: FLAGS[what][0]
    for what in ("emergency stop", "hydrogen in the room", "exhaust lost")
}
ONLY_BEFORE_COMMANDS: Mapping[str, tuple[Mapping[str, float], str]] = {
    "furnace without a rate limit": ({"furnace.setpoint_rate": 0.0}, "furnace.setpoint"),
    "sulfur without a rate limit": ({"sulfur.setpoint_rate": 0.0}, "sulfur.setpoint"),
    "furnace setpoint ahead": ({"furnace.working_setpoint": 700.0}, "box.furnace_contactor"),
    "sulfur setpoint ahead": ({"sulfur.working_setpoint": 200.0}, "box.sulfur_contactor"),
    "furnace in manual": ({"furnace.manual": 1.0}, "box.furnace_contactor"),
    "sulfur in manual": ({"sulfur.manual": 1.0}, "box.sulfur_contactor"),
    "laser left at full power": ({"laser.power": 0.05}, "laser.emission"),
}


class Found(NamedTuple):
    """A hazard that was reached, and the way there."""

    hazard: str
    way: tuple[str, ...]


class Model:
    """The line's rules, asked about one state after the other.

    Args:
        envelope: Of the shipped line, or one with a bug planted in it.
        controls: What is commanded.
    """

    def __init__(
        self,
        envelope: Envelope,
        controls: Mapping[str, tuple[str, tuple[float, ...]]] = TUBE,
    ) -> None:
        # here things happen without time between them, which no instrument's reading does
        self.envelope = envelope = replace(envelope, plausible=())
        self._memory = Memory(envelope)
        self._tracks = [self._memory.track(name) for name in envelope.watches]
        limits = envelope.limits
        self._read = {
            name: self._memory.track(limits[name].readback or name if name in limits else name)
            for name in self._readings(State())
        }
        self._commands = [
            (Command(channel, value, envelope.limits[channel].unit), field, number)
            for channel, (field, values) in controls.items()
            for number, value in enumerate(values)
            if value <= envelope.limits[channel].high
        ]

    def load(self, state: State, changed: Mapping[str, float] | None = None) -> Memory:
        """Return the memory of a line that has just read this state."""
        readings = self._readings(state)
        if changed is not None:
            readings |= changed
        memory = self._memory
        for name, value in readings.items():
            track = self._read[name]
            track.value, track.at_s = value, NOW_S
        memory.mode = Mode.TRIPPED if state.tripped else Mode.RUNNING
        memory.proofs.purged.passed_cm3["air"] = 1e9 if state.purged else 0.0
        memory.proofs.purged.passed_cm3["hydrogen"] = 1e9
        memory.proofs.leak.tight = bool(state.tight)
        memory.proofs.leak.restart(math.nan, math.inf)  # of another state
        return memory

    def moves(self, state: State) -> Iterator[tuple[str, State]]:
        """Return what may happen next: commands that are allowed, and what the tube does."""
        if not state.tripped:
            memory = self.load(state)
            for command, field, number in self._commands:
                if getattr(state, field) != number and isinstance(
                    judge(command, memory, NOW_S), Allowed
                ):
                    yield f"{command.channel} = {command.value:g}", _set(state, field, number)
        else:
            memory = self.load(state)
            if not self._trips(memory):
                safe = self._apply(state, memory.procedure("immediate_shutdown"))
                yield "reset, armed, started", safe._replace(tripped=0)
        for what, after in self._drift(state):
            yield what, self.react(after)
        for what, readings in AT_ANY_TIME.items():
            yield what, self.react(state, readings)

    def react(self, state: State, changed: Mapping[str, float] | None = None) -> State:
        """Let the kernel see a state: proofs end, and what trips runs its procedure."""
        memory = self.load(state, changed)
        trips = self._trips(memory)
        state = state._replace(
            purged=int(memory.proofs.purged.passed_cm3["air"] > 0.0),
            tight=int(memory.proofs.leak.tight),
        )
        if trips:
            worst = min(trips, key=lambda trip: trip.cause.rank)
            if worst.cause.overrules(CAUSES[state.tripped]):
                procedure = memory.procedure(worst.procedure)
                number = CAUSES.index(worst.cause)
                state = self._apply(state, procedure)._replace(tripped=number)
        return state

    def unsound(self, state: State) -> Iterator[Found]:
        """Try everything that may be unsound: commands are refused, what is on goes off."""
        for flag, (readings, energised) in FLAGS.items():
            if energised(self.react(state, readings)):
                yield Found(f"{flag}, and still on", (str(state),))
            if energised(state):
                continue
            for what in self._commanded(state, readings, energised):
                yield Found(f"{flag}, and {what} allowed", (str(state),))
        for flushed in (True, False):
            if self._may_be_opened(state, flushed) and not (flushed and state.openable):
                yield Found("opened by plan, hot or live or not flushed", (str(state),))
        if state.laser and self._may_be_opened(state, True, ENCLOSURE):
            yield Found("enclosure opened by plan under a laser that is on", (str(state),))
        for flag, (readings, channel) in ONLY_BEFORE_COMMANDS.items():
            for what in self._commanded(state, readings, lambda _: True, (channel,)):
                yield Found(f"{flag}, and {what} allowed", (str(state),))

    def _may_be_opened(self, state: State, flushed: bool, contact: str = LID) -> bool:
        """Return whether a person would be asked to open the tube, or what has this contact."""
        memory = self.load(state)
        memory.proofs.purged.passed_cm3["hydrogen"] *= flushed
        return any(
            isinstance(judge(Command(channel, 0.0, ""), memory, NOW_S), Allowed)
            for channel, limit in self.envelope.limits.items()
            if channel.startswith(f"{OPERATOR}.") and limit.readback == contact
        )

    def _commanded(
        self,
        state: State,
        readings: Mapping[str, float],
        matters: Callable[[State], bool],
        channels: Container[str] = CHANNELS,
    ) -> Iterator[str]:
        """Return the channels whose command raises them, matters, and is allowed.

        What is allowed is asked last, because it costs most.
        """
        memory = self.load(state, readings)
        if self._trips(memory):
            return  # a line that has tripped takes no command
        for command, field, number in self._commands:
            if (
                command.channel in channels
                and getattr(state, field) < number
                and matters(_set(state, field, number))
                and isinstance(judge(command, memory, NOW_S), Allowed)
            ):
                yield command.channel

    def _trips(self, memory: Memory) -> list[Trip]:
        values = [track.value for track in self._tracks]
        found = observe(memory, self._tracks, values, NOW_S)
        return [trip for trip in (*found, *tick(memory, NOW_S)) if trip.procedure]

    def _apply(self, state: State, procedure: str) -> State:
        for step in self.envelope.procedures[procedure].steps:
            if step.channel in CHANNELS:
                field, values = CHANNELS[step.channel]
                number = min(range(len(values)), key=lambda n: abs(values[n] - step.value))
                state = _set(state, field, number)
        return state

    def _drift(self, s: State) -> Iterator[tuple[str, State]]:
        closed = s.closed
        hotter = s.furnace_heats and s.furnace < s.furnace_set
        if hotter:
            yield "furnace hotter", s._replace(furnace=s.furnace + 1)
            if closed and s.pressure:
                yield "tube expands", s._replace(pressure=min(s.pressure + 1, BURST))
        elif s.furnace > s.furnace_set * s.furnace_mains:
            yield "furnace colder", s._replace(furnace=s.furnace - 1)
        if s.sulfur_heats and not s.sulfur:
            yield "sulfur hot", s._replace(sulfur=1)
        elif s.sulfur and not s.sulfur_heats:
            yield "sulfur cold", s._replace(sulfur=0)
        if closed and s.fills:
            yield "pressure rises", s._replace(pressure=min(s.pressure + 1, BURST))
        if s.pump_isolation and s.pressure and not s.vent and s.lid_shut and not closed:
            yield "pumped down", s._replace(pressure=VACUUM)
        if s.vent and s.pressure > ATMOSPHERE and not closed:
            yield "vented", s._replace(pressure=ATMOSPHERE)
        if s.argon_flows and s.lid_shut and not closed:
            yield "purged", s._replace(air_inside=0, purged=1)
        if closed and not s.fills and s.pressure == VACUUM:
            yield "leak-checked", s._replace(leaky=0, tight=1)
        if closed and s.pressure == VACUUM:
            filled = s._replace(pressure=ATMOSPHERE, air_inside=1, leaky=1, purged=0, tight=0)
            yield "air leaks in, and no meter sees it", filled
        if s.lid_shut and s.pressure == ATMOSPHERE and not (s.furnace or s.sulfur):
            if not (s.hydrogen_flows or s.furnace_mains or s.sulfur_mains):
                yield "a person opens the lid", s._replace(lid_shut=0, air_inside=1, leaky=1)
        elif not s.lid_shut:
            yield "a person shuts the lid", s._replace(lid_shut=1)
        if not s.outlet_clogged:
            yield "the outlet clogs", s._replace(outlet_clogged=1)

    def _readings(self, s: State) -> dict[str, float]:
        furnace_set = FURNACE_SET_C[s.furnace_set]
        sulfur_set = SULFUR_SET_C[s.sulfur_set]
        return {
            "furnace.temperature": FURNACE_C[s.furnace],
            "furnace.setpoint": furnace_set,
            "furnace.working_setpoint": furnace_set,
            "furnace.working_output": 0.0,
            "furnace.sensor_break": 0.0,
            "furnace.manual": 0.0,
            "furnace.mode": 0.0,
            "furnace.output_high": 100.0,
            "sulfur.output_high": 100.0,
            "furnace.setpoint_rate": 15.0,
            "sulfur.temperature": SULFUR_C[s.sulfur],
            "sulfur.setpoint": sulfur_set,
            "sulfur.working_setpoint": sulfur_set,
            "sulfur.working_output": 0.0,
            "sulfur.sensor_break": 0.0,
            "sulfur.manual": 0.0,
            "sulfur.mode": 0.0,
            "sulfur.setpoint_rate": 15.0,
            "argon.flow": 100.0 if s.argon_flows else 0.0,
            "argon.setpoint": ARGON_SCCM[s.argon],
            "nitrogen.flow": 0.0,
            "nitrogen.setpoint": 0.0,
            "hydrogen.flow": 10.0 if s.hydrogen_flows else 0.0,
            "hydrogen.setpoint": HYDROGEN_SCCM[s.hydrogen],
            "hydrogen.setpoint_active": HYDROGEN_SCCM[s.hydrogen],
            "hydrogen.watchdog_ms": 5000.0,
            "hydrogen.setpoint_source": 2.0,
            "gauge.pressure": PRESSURE_TORR[s.pressure],
            "gauge.fault": 0.0,
            "h2_detector.concentration": 0.0,
            "h2_detector.fault": 0.0,
            "h2_detector.state": 1.0,
            "h2_detector.heartbeat": 1.0,
            "box.argon_valve": float(s.argon_valve),
            "box.nitrogen_bypass_shut": float(s.bypass_shut),
            "box.hydrogen_valve": float(s.hydrogen_valve),
            "box.furnace_contactor": float(s.furnace_mains),
            "box.sulfur_contactor": float(s.sulfur_mains),
            "box.vent": float(s.vent),
            "box.pump_isolation": float(s.pump_isolation),
            "box.pump": 1.0,
            "box.exhaust_flow": 1.0,
            "box.lid_shut": float(s.lid_shut),
            "box.enclosure_shut": 1.0,
            "box.estop_closed": 1.0,
            "laser.output_power": 0.0,
            "laser.emission": float(s.laser),
            "laser.power": 0.001,
        }


def search(model: Model) -> tuple[int, Found | None]:
    """Go through every state that can be reached; stop at the first hazard.

    Returns:
        How many states were seen, and the hazard with the shortest way to it.
    """
    start = State()
    came: dict[State, tuple[State, str] | None] = {start: None}
    edge, tried = [start], set[State]()
    while edge:
        fresh = []
        for state in edge:
            for name, holds in HAZARDS.items():
                if holds(state):
                    return len(came), Found(name, _way(came, state))
            look = state._replace(bypass_shut=0, pressure=ATMOSPHERE, leaky=0, air_inside=0)
            look = look._replace(outlet_clogged=0)
            if not state.tripped and look not in tried:
                tried.add(look)
                for found in model.unsound(state):
                    return len(came), Found(found.hazard, _way(came, state))
            for what, after in model.moves(state):
                if after not in came:
                    came[after] = (state, what)
                    fresh.append(after)
        if len(came) > STATES_MAX:
            raise RuntimeError(f"more than {STATES_MAX} states")
        edge = fresh
    return len(came), None


def _set(state: State, field: str, number: int) -> State:
    return state._replace(**{field: number})


def _way(came: Mapping[State, tuple[State, str] | None], state: State) -> tuple[str, ...]:
    way = []
    while (step := came[state]) is not None:
        state, what = step
        way.append(what)
    return tuple(reversed(way))
