"""The referee: sees what is really so in the plant, never a reading, and calls what must not be."""

import math
import struct
from collections.abc import Callable, Generator
from dataclasses import dataclass
from hashlib import sha256

import simpy

from labharness.chaos.rules import (
    ARGON_S,
    ATMOSPHERE_PA,
    BESIDE,
    FOR_EVER,
    GRAIN_S,
    INERT_SCCM,
    LIES,
    PRESSURE_PA_MAX,
    RELIEVED,
    REPEATS_S,
    SHUTS_INERT,
    TRIP_S,
    Scene,
    Truth,
    energised,
    rules_of,
)
from labharness.chaos.scenario import Fault
from labharness.lab.reading import LabPlan
from labharness.lab.simulated import SimulatedLab
from labharness.vocabulary.channels import owner_of

__all__ = ["Referee", "Violation"]

OUTLET = ("outlet_blocked", "power_dip")


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
        self._watched_ports = frozenset(watched)
        port_of = {each.name: each.port for each in plan.instruments}
        self._safing_ports = sorted(
            {
                port_of[owner_of(step.channel)]
                for procedure in plan.envelope.procedures.values()
                for step in procedure.steps
            }
        )
        self._rules = rules_of(self._watched_ports)
        self._since: dict[str, float] = {}
        self._sees_at: dict[str, float] = {}
        self._lying: set[str] = set()
        self._must_trip_since_s = math.inf
        self._digest = sha256()
        room.env.process(self._watch())

    @property
    def digest(self) -> str:
        """Digest of everything that was really so, second by second."""
        return self._digest.hexdigest()

    def begins(self, fault: Fault, *, leak_checked: bool) -> None:
        """Take notice of what the line cannot see through, or not act on."""
        blind = self.scene.blind
        if fault.kind.startswith("sensor_"):
            for word, for_s in LIES.get((fault.target, fault.kind), ()):
                self._blinds(word, for_s)
        elif fault.kind == "air_leak" and leak_checked:
            blind.add("leak")  # the leak check is over: nothing on this line measures oxygen
        elif fault.kind == "contact_stuck" and fault.target == "vent":
            blind.add("vent stuck")
        elif fault.kind == "contact_stuck" and fault.target == "argon_valve":
            self._blinds("argon", ARGON_S)
        elif fault.kind == "bus_cut" and fault.target == "vacuum":
            blind.add("vacuum")
        elif fault.kind == "bus_cut" and fault.target == "laser":
            blind.add("laser cut")
        elif fault.kind == "exhaust_lost":
            blind.add("exhaust_lost")
        elif fault.kind == "power_dip":
            blind.update(("no power", "vent stuck", "vacuum"))
        if fault.kind.startswith("sensor_") and fault.target in ("argon", "gauge"):
            self._lying.add(fault.target)
        if fault.kind in OUTLET or (fault.kind == "contact_stuck" and fault.target == "vent"):
            self._lying.add("outlet")
        if fault.kind == "contact_stuck" and fault.target == "argon_valve":
            self._lying.add("argon valve")
        # what fails, and its only witness: two faults that together nothing can see
        if self._lying >= {"argon", "argon valve"}:
            self._blinds("argon", FOR_EVER)
        if self._lying >= {"gauge", "outlet"}:
            self._blinds("pressure unseen", FOR_EVER)

    def ends(self, fault: Fault) -> None:
        """Take notice of what is whole again; what a lie has led to may outlast it."""
        if fault.kind == "exhaust_lost":
            self.scene.blind.discard("exhaust_lost")

    def mended(self) -> None:
        """Everything is whole again, and somebody has seen to it."""
        shut = self.scene.blind & SHUTS_INERT
        for word in tuple(self.scene.blind):
            self._sees(word)
        if shut:
            self.scene.blind.add(RELIEVED)  # a reset lets no inert gas in, the next arming does
        self._sees_at.clear()
        self._lying.clear()

    def _blinds(self, word: str, for_s: float) -> None:
        self.scene.blind.add(word)
        until_s = self._room.env.now * 1e-6 + for_s
        self._sees_at[word] = max(until_s, self._sees_at.get(word, until_s))

    def _sees(self, word: str) -> None:
        """Let the line see again, and give it from now on the time that its rules allow."""
        self.scene.blind.discard(word)
        self._sees_at.pop(word, None)
        for rule in self._rules:
            if word in rule.blinded_by and not rule.blinded_by & self.scene.blind:
                self._since.pop(rule.name, None)

    def begin_growth(self) -> None:
        """A harness begins."""
        self.scene.harness = "alive"
        self.scene.stopped = False
        self.energised = False
        self._must_trip_since_s = math.inf

    def _watch(self) -> Generator[simpy.Event, object, None]:
        room, plant = self._room, self._room.plant
        while True:
            yield room.env.seconds(GRAIN_S)
            self._judge(plant.truth(), room.env.now * 1e-6)

    def _judge(self, truth: Truth, now_s: float) -> None:
        scene, plant = self.scene, self._room.plant
        scene.cut = {name for name, bus in self._room.buses.items() if bus.faults.cut}
        if plant.faults.sensors or scene.silent:
            scene.silent = {
                heater for heater in ("furnace", "sulfur") if plant.parts[heater].sensor_broken
            }
        if truth["pressure_pa"] > PRESSURE_PA_MAX / BESIDE:
            scene.blind.add(RELIEVED)  # all gas is off then, the inert too: decision 0008
        elif RELIEVED in scene.blind and truth["inert_sccm"] > INERT_SCCM:
            self._sees(RELIEVED)
        for word in [each for each, until_s in self._sees_at.items() if until_s <= now_s]:
            self._sees(word)
        on = energised(truth) or bool(truth["laser_on"])
        self.energised = self.energised or on
        self._expect_latch(now_s)
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
        lossy = any(self._room.buses[port].faults.noisy for port in self._safing_ports)
        for rule in self._rules:
            if not rule.broken(truth, scene):
                self._since.pop(rule.name, None)
                continue
            for_s = now_s - self._since.setdefault(rule.name, now_s)
            allowed_s = rule.allowed_s + (REPEATS_S if rule.allowed_s and lossy else 0.0)
            if for_s < allowed_s:
                continue
            if rule.blinded_by & scene.blind:
                self.demands[rule.name] = self.demands.get(rule.name, 0.0) + GRAIN_S
            elif self.violation is None:
                self.violation = Violation(rule.name, now_s, for_s, allowed_s, _told(truth, scene))
                self._stop()

    def _expect_latch(self, now_s: float) -> None:
        """Know when a line that is in use must have tripped, whatever it noticed."""
        scene, plant = self.scene, self._room.plant
        must = (
            self.energised
            and scene.harness == "alive"
            and bool(plant.faults.estop_open or scene.silent or scene.cut & self._watched_ports)
        )
        if not must:
            self._must_trip_since_s = math.inf
        elif now_s - min(self._must_trip_since_s, now_s) >= TRIP_S:
            scene.latched = True
        else:
            self._must_trip_since_s = min(self._must_trip_since_s, now_s)


def _told(truth: Truth, scene: Scene) -> str:
    return (
        f"furnace {truth['furnace_heater_c']:.0f} degC{' heated' * truth['furnace_heating']}, "
        f"sulfur {truth['sulfur_c']:.0f} degC{' heated' * truth['sulfur_heating']}, "
        f"{truth['pressure_pa'] / ATMOSPHERE_PA:.3f} atm, "
        f"oxygen {100 * truth['o2_fraction']:.2f} %, "
        f"hydrogen {100 * truth['h2_fraction']:.1f} % and {truth['hydrogen_sccm']:.1f} sccm, "
        f"inert {truth['inert_sccm']:.0f} sccm, laser {'on' if truth['laser_on'] else 'off'}, "
        f"harness {scene.harness}"
    )
