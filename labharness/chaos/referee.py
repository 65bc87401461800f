"""The referee: sees what is really so in the plant, never a reading, and calls what must not be.

A rule names a harm, how long it may last before somebody must have answered, and what the line
cannot see it through: a sensor that lies, a leak that no instrument measures. What happens behind
such a lie is no violation but a *demand*: it is counted, because a hardware safeguard has to answer
it. Decision 0013 has the reasons.
"""

import math
import struct
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

import simpy

from labharness.chaos.scenario import Fault
from labharness.kernel import Envelope
from labharness.lab.lab import LabPlan
from labharness.lab.simulated import SimulatedLab
from labharness.line.line import TICK_S
from labharness.vocabulary import Cause

__all__ = ["GRAIN_S", "HEARTBEAT_S_MAX", "Bounds", "Referee", "Violation"]

GRAIN_S = 1.0  # the referee looks once a second, after the plant's step
HEARTBEAT_S_MAX = 1.0  # the guard gives up a silent harness after so long
PLAUSIBLE_S = 30.0  # a thermocouple's lag beside a limit that is passed by a runaway heater

ATMOSPHERE_PA = 101_325.0
PA_PER_TORR = ATMOSPHERE_PA / 760.0
LEL_H2, LIMITING_O2 = 0.04, 0.05  # NFPA 69: hydrogen burns from 4 %, in nitrogen from 5 % oxygen
PURGED_O2 = 0.01  # a fifth of that, the practice of NFPA 69 before hydrogen is let in
ROOM_H2_PPM = 4000.0  # a tenth of the lower limit
SULFUR_MELTS_C = 115.0
HOT_TUBE_C = 150.0
OPENED_C = 100.0  # a person who opens the tube by plan must not find it hotter
INERT_SCCM = 10.0
LEAST_SCCM = 0.5  # flows below are a controller's zero
SUCKED_PA = 0.1 * ATMOSPHERE_PA  # the vent may open from 740 Torr on, which draws a fifth of it
LOW_PA = 0.9 * ATMOSPHERE_PA
BESIDE = 1.01  # beside a limit, for what the instruments themselves may be wrong by

Truth = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Violation:
    """A rule that was broken.

    Attributes:
        rule: Its name.
        at_s: When it was called, in lab time.
        since_s: How long it had held by then.
        allowed_s: How long it may.
        detail: What was really so.
    """

    rule: str
    at_s: float
    since_s: float
    allowed_s: float
    detail: str


@dataclass(frozen=True, slots=True)
class Bounds:
    """How long the line may take to answer, computed from its envelope.

    Attributes:
        trip_s: Silence until it is stale, one poll, the procedure on the wire, the referee's grain.
        kill_s: The guard sees the harness's end at once; the procedure on the wire, and the grain.
        pause_s: The same, after the guard's heartbeat has run out.
        repeats_s: Longer by so much where wires lose frames: what is not answered is sent again.
    """

    trip_s: float
    kill_s: float
    pause_s: float
    repeats_s: float

    @classmethod
    def of(cls, envelope: Envelope) -> "Bounds":
        """Compute them."""
        stale_s = max(watch.stale_s for watch in envelope.watches.values() if watch.procedure)
        wire_s = max(procedure.wire_s_max for procedure in envelope.procedures.values())
        return cls(
            trip_s=stale_s + TICK_S + wire_s + GRAIN_S,
            kill_s=wire_s + GRAIN_S,
            pause_s=HEARTBEAT_S_MAX + wire_s + GRAIN_S,
            repeats_s=max(procedure.verify_s_max for procedure in envelope.procedures.values()),
        )


@dataclass(slots=True)
class Scene:
    """What the referee knows beside the plant: who is there, and what was broken on purpose.

    Attributes:
        harness: ``alive``, ``killed``, ``paused`` or ``gone`` (its run has ended).
        latched: Something happened after which nothing may be energised before a reset.
        blind: What the line cannot see, or not act on, since something was broken.
        cut: Ports that are cut at this moment.
        silent: Heaters whose thermocouple gives no signal at this moment.
    """

    harness: str = "gone"
    latched: bool = False
    blind: set[str] = field(default_factory=set)
    cut: set[str] = field(default_factory=set)
    silent: set[str] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class Rule:
    """One harm.

    Attributes:
        name: Its name.
        broken: Says whether it is so.
        allowed_s: How long it may be so.
        blinded_by: Words of ``Scene.blind`` behind which it is a demand and no violation.
    """

    name: str
    broken: Callable[[Truth, Scene], bool]
    allowed_s: float
    blinded_by: frozenset[str] = frozenset()


def energised(truth: Truth) -> bool:
    """Say whether anything is on that a procedure turns off by two ways."""
    return heating(truth) or hydrogen(truth)


def heating(truth: Truth) -> bool:
    """Say whether either heater is fed."""
    return bool(truth["furnace_heating"] or truth["sulfur_heating"])


def hydrogen(truth: Truth) -> bool:
    """Say whether hydrogen enters the tube."""
    return bool(truth["hydrogen_sccm"] > LEAST_SCCM)


def rules_of(plan: LabPlan, watched_ports: frozenset[str]) -> tuple[Rule, ...]:
    """Write the rules for one line: its limits are the envelope's, the rest is chemistry."""
    bounds = Bounds.of(plan.envelope)
    trip_s = bounds.trip_s
    too_hot_c = _limit(plan, "furnace.temperature", Cause.OVER_TEMPERATURE)
    sulfur_too_hot_c = _limit(plan, "sulfur.temperature", Cause.OVER_TEMPERATURE)
    # a pressure limit is kept in the gauge's Torr
    too_high_pa = _limit(plan, "gauge.pressure", Cause.OVER_PRESSURE) * PA_PER_TORR

    def hot_source(truth: Truth) -> bool:
        return bool(truth["sulfur_c"] > SULFUR_MELTS_C or truth["h2_fraction"] > LEL_H2)

    def rule(
        name: str, broken: Callable[[Truth, Scene], bool], allowed_s: float, *blinded_by: str
    ) -> Rule:
        return Rule(name, broken, allowed_s, frozenset(blinded_by))

    return (
        rule(
            "ignitable mixture in the tube",
            lambda t, s: t["h2_fraction"] > LEL_H2 and t["o2_fraction"] > LIMITING_O2,
            0.0,
        ),
        rule(
            "hydrogen into a tube that holds air",
            lambda t, s: hydrogen(t) and t["o2_fraction"] > PURGED_O2,
            trip_s,
            "leak",
            "argon",
            "nitrogen",
        ),
        rule(
            "hydrogen without extraction",
            lambda t, s: hydrogen(t) and bool(s.blind & {"exhaust_lost"}),
            trip_s,
        ),
        rule(
            "hydrogen with the lid open", lambda t, s: hydrogen(t) and bool(t["lid_open"]), trip_s
        ),
        rule(
            "hydrogen in the room",
            lambda t, s: hydrogen(t) and t["room_h2_ppm"] > BESIDE * ROOM_H2_PPM,
            trip_s,
            "h2_detector",
        ),
        rule(
            "heat without extraction",
            lambda t, s: heating(t) and bool(s.blind & {"exhaust_lost"}),
            trip_s,
        ),
        rule("heat with the lid open", lambda t, s: heating(t) and bool(t["lid_open"]), trip_s),
        rule(
            "heat by a thermocouple that gives no signal",
            lambda t, s: any(t[f"{heater}_heating"] for heater in s.silent),
            trip_s,
        ),
        rule(
            "furnace too hot and heated",
            lambda t, s: t["furnace_heater_c"] > BESIDE * too_hot_c and bool(t["furnace_heating"]),
            trip_s + PLAUSIBLE_S,
            "furnace",
        ),
        rule(
            "sulfur too hot and heated",
            lambda t, s: t["sulfur_c"] > BESIDE * sulfur_too_hot_c and bool(t["sulfur_heating"]),
            trip_s + PLAUSIBLE_S,
            "sulfur",
        ),
        rule(
            "hot sulfur in air, and heated",
            lambda t, s: (
                t["sulfur_c"] > SULFUR_MELTS_C
                and t["o2_fraction"] > PURGED_O2
                and bool(t["sulfur_heating"])
            ),
            trip_s,
            "leak",
            "argon",
            "nitrogen",
            "sulfur",
        ),
        rule(
            "a hot tube opened by plan",
            lambda t, s: (
                bool(t["lid_held_open"])
                and (t["sulfur_c"] > OPENED_C or t["substrate_c"] > OPENED_C)
            ),
            0.0,
            "furnace",
            "sulfur",
        ),
        rule(
            "pressure too high and gas flowing",
            lambda t, s: (
                t["pressure_pa"] > BESIDE * too_high_pa
                and s.harness == "alive"
                and t["inert_sccm"] + t["hydrogen_sccm"] > LEAST_SCCM
            ),
            trip_s,
            "gauge",
            "no power",
        ),
        rule(
            "hot tube below atmosphere",
            lambda t, s: (
                t["pressure_pa"] < LOW_PA
                and (t["sulfur_c"] > SULFUR_MELTS_C or t["substrate_c"] > HOT_TUBE_C)
            ),
            trip_s,
            "gauge",
            "furnace",
            "sulfur",
        ),
        rule(
            "oil sucked back through the vent",
            lambda t, s: t["sucked_back_pa"] > SUCKED_PA,
            0.0,
            "gauge",
            "vacuum",
            "vent stuck",
        ),
        rule(
            "no inert gas over a hot source",
            lambda t, s: hot_source(t) and t["inert_sccm"] < INERT_SCCM and not t["lid_open"],
            trip_s,
            "gauge",
            "relieved",
            "argon",
        ),
        rule(
            "laser on with its enclosure open",
            lambda t, s: bool(t["laser_on"] and t["enclosure_open"]),
            trip_s,
        ),
        rule(
            "laser on, and nobody who could turn it off",
            lambda t, s: bool(t["laser_on"]) and (s.latched or s.harness != "alive"),
            max(trip_s, bounds.pause_s),
            "laser cut",
        ),
        rule(
            "energised while a watched port is silent",
            lambda t, s: energised(t) and bool(s.cut & watched_ports),
            trip_s,
        ),
        rule(
            "energised though the harness is dead",
            lambda t, s: energised(t) and s.harness == "killed",
            bounds.kill_s,
        ),
        rule(
            "energised though the harness stands still",
            lambda t, s: energised(t) and s.harness == "paused",
            bounds.pause_s,
        ),
        rule(
            "energised after the run has ended",
            lambda t, s: energised(t) and s.harness == "gone",
            bounds.kill_s,
        ),
        rule(
            "energised while it must be latched",
            lambda t, s: energised(t) and s.latched,
            trip_s,
        ),
    )


def _limit(plan: LabPlan, channel: str, cause: Cause) -> float:
    """Give the lowest reading at which this line trips; none is no limit."""
    rows = [row for row in plan.envelope.trips if row.channel == channel and row.cause is cause]
    return min((row.high for row in rows), default=math.inf)


class Referee:
    """Looks at the plant once a second, as a process of the room itself.

    Args:
        plan: The lab's files.
        room: The simulated room.
        stop: Called at the first violation.
    """

    def __init__(self, plan: LabPlan, room: SimulatedLab, stop: Callable[[], None]) -> None:
        watched = {
            port.name
            for port in plan.file.port
            for each in plan.instruments
            if each.port == port.name
            and any(
                name.startswith(f"{each.name}.") and watch.procedure
                for name, watch in plan.envelope.watches.items()
            )
        }
        self.scene = Scene()
        self.violation: Violation | None = None
        self.demands: dict[str, float] = {}
        self.energised = False
        self._room = room
        self._stop = stop
        bounds = Bounds.of(plan.envelope)
        self._trip_s, self._repeats_s = bounds.trip_s, bounds.repeats_s
        self._relief_pa = _limit(plan, "gauge.pressure", Cause.OVER_PRESSURE) * PA_PER_TORR
        self._watched_ports = frozenset(watched)
        self._rules = rules_of(plan, self._watched_ports)
        self._since: dict[str, float] = {}
        self._must_trip_since_s = math.inf
        self._digest = sha256()
        room.env.process(self._watch())

    @property
    def digest(self) -> str:
        """Digest of everything that was really so, second by second."""
        return self._digest.hexdigest()

    def begins(self, fault: Fault) -> None:
        """Take notice of what the line cannot see through, or not act on."""
        blind = self.scene.blind
        if fault.kind.startswith("sensor_"):
            blind.add(fault.target)
        elif fault.kind == "flow_drift":
            pass  # within 30 %, and five volumes are asked where three would do
        elif fault.kind == "hydrogen_escapes":
            blind.add("h2_detector")
        elif fault.kind == "contact_stuck" and fault.target == "nitrogen_bypass_shut":
            blind.add("bypass stuck")
        elif fault.kind == "air_leak" and fault.stage not in ("loading", "leak_check"):
            blind.add("leak")  # the leak check is over: nothing on this line measures oxygen
        elif fault.kind == "contact_stuck" and fault.target == "vent":
            blind.add("vent stuck")
        elif fault.kind == "contact_stuck" and fault.target == "argon_valve":
            blind.add("argon")
        elif fault.kind == "bus_cut" and fault.target == "vacuum":
            blind.add("vacuum")
        elif fault.kind == "bus_cut" and fault.target == "laser":
            blind.add("laser cut")
        elif fault.kind == "exhaust_lost":
            blind.add("exhaust_lost")
        elif fault.kind == "power_dip":
            blind.update(("no power", "vent stuck", "vacuum"))

    def ends(self, fault: Fault) -> None:
        """Take notice of what is whole again; what a lie has led to may outlast it."""
        if fault.kind == "exhaust_lost":
            self.scene.blind.discard("exhaust_lost")

    def begin_growth(self) -> None:
        """A harness begins."""
        self.scene.harness = "alive"
        self.energised = False
        self._must_trip_since_s = math.inf

    def _watch(self) -> Generator[simpy.Event, object, None]:
        room, plant = self._room, self._room.plant
        while True:
            yield room.env.seconds(GRAIN_S)
            self._judge(plant.truth(), plant, room.env.now * 1e-6)

    def _judge(self, truth: Truth, plant: Any, now_s: float) -> None:  # noqa: ANN401 - any plant
        scene = self.scene
        scene.cut = {name for name, bus in self._room.buses.items() if bus.faults.cut}
        if plant.faults.sensors or scene.silent:
            scene.silent = {
                heater for heater in ("furnace", "sulfur") if plant.parts[heater].sensor_broken
            }
        if truth["pressure_pa"] > self._relief_pa / BESIDE:
            scene.blind.add("relieved")  # all gas is off then, the inert too: decision 0008
        on = energised(truth) or bool(truth["laser_on"])
        self.energised = self.energised or on
        self._expect_latch(plant, now_s)
        self._digest.update(
            struct.pack(
                "<7d?",
                now_s,
                truth["furnace_heater_c"],
                truth["sulfur_c"],
                truth["pressure_pa"],
                truth["o2_fraction"],
                truth["h2_fraction"],
                truth["inert_sccm"],
                on,
            )
        )
        lossy = any(bus.faults.noisy for bus in self._room.buses.values())
        for rule in self._rules:
            if not rule.broken(truth, scene):
                self._since.pop(rule.name, None)
                continue
            for_s = now_s - self._since.setdefault(rule.name, now_s)
            allowed_s = rule.allowed_s + (self._repeats_s if rule.allowed_s and lossy else 0.0)
            if for_s < allowed_s:
                continue
            if rule.blinded_by & scene.blind:
                self.demands[rule.name] = self.demands.get(rule.name, 0.0) + GRAIN_S
            elif self.violation is None:
                self.violation = Violation(
                    rule.name, now_s, for_s, allowed_s, _told(truth, scene)
                )
                self._stop()

    def _expect_latch(self, plant: Any, now_s: float) -> None:  # noqa: ANN401 - any plant
        """Know when a line that is in use must have tripped, whatever it noticed."""
        scene = self.scene
        must = (
            self.energised
            and scene.harness == "alive"
            and bool(plant.faults.estop_open or scene.silent or scene.cut & self._watched_ports)
        )
        if not must:
            self._must_trip_since_s = math.inf
        elif now_s - min(self._must_trip_since_s, now_s) >= self._trip_s:
            scene.latched = True
        else:
            self._must_trip_since_s = min(self._must_trip_since_s, now_s)


def _told(truth: Truth, scene: Scene) -> str:
    return (
        f"furnace {truth['furnace_heater_c']:.0f} degC{' heated' * truth['furnace_heating']}, "
        f"sulfur {truth['sulfur_c']:.0f} degC{' heated' * truth['sulfur_heating']}, "
        f"{truth['pressure_pa'] / ATMOSPHERE_PA:.3f} atm, oxygen {100 * truth['o2_fraction']:.2f} %, "
        f"hydrogen {100 * truth['h2_fraction']:.1f} % and {truth['hydrogen_sccm']:.1f} sccm, "
        f"inert {truth['inert_sccm']:.0f} sccm, laser {'on' if truth['laser_on'] else 'off'}, "
        f"harness {scene.harness}"
    )
