"""The referee: compares the plant's true state with the rules, and reports violations."""

import math
import struct
from collections.abc import Callable, Generator
from dataclasses import dataclass
from hashlib import sha256

import simpy

from labharness.chaos.masking import Masking
from labharness.chaos.rules import (
    ATMOSPHERE_PA,
    BLIND_TO_SUCKED,
    GRAIN_S,
    INERT_SCCM,
    KILL_S,
    MARGIN,
    OVER_PA_MAX,
    RELIEVED,
    REPEATS_S,
    TRIP_S,
    Scene,
    Truth,
    energised,
    rules_of,
)
from labharness.chaos.scenario import Fault
from labharness.core.vocabulary.channels import owner_of
from labharness.instruments.simulation import BusFaults
from labharness.lab.config.lab_plan import LabPlan
from labharness.lab.wiring.simulated import SimulatedLab

__all__ = ["Referee", "RefereeViolation"]


@dataclass(frozen=True, slots=True)
class RefereeViolation:
    """A broken rule.

    Attributes:
        rule: Its name.
        at_s: Lab time of the report.
        since_s: How long the harm had lasted by then.
        allowed_s: How long it may last.
        detail: The true state.
    """

    rule: str
    at_s: float
    since_s: float
    allowed_s: float
    detail: str


class Referee:
    """Check the plant once a second, as a process of the simulated lab itself.

    Args:
        plan: The lab's files.
        sim_lab: The simulated lab.
        stop: Called at the first violation.
    """

    def __init__(self, plan: LabPlan, sim_lab: SimulatedLab, stop: Callable[[], None]) -> None:
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
        self.violation: RefereeViolation | None = None
        self.demands: dict[str, float] = {}
        self.energised = False
        self._sim_lab = sim_lab
        self._stop = stop
        self._watched_ports = frozenset(watched)
        port_of = {each.name: each.port for each in plan.instruments}
        self._response_ports = sorted(
            {
                port_of[owner_of(step.channel)]
                for procedure in plan.envelope.procedures.values()
                for step in procedure.steps
            }
        )
        self._rules = rules_of(self._watched_ports)
        self._since: dict[str, float] = {}
        self._masking = Masking(self.scene.blind)
        self._must_trip_since_s = math.inf
        self._flows_since_s = math.inf
        self._digest = sha256()
        sim_lab.env.process(self._watch())

    @property
    def digest(self) -> str:
        """Digest of the true state, second by second."""
        return self._digest.hexdigest()

    def begins(self, fault: Fault) -> None:
        """Note a fault that masks something from the line."""
        self._masking.begins(fault, self._now_s)

    def ends(self, fault: Fault) -> None:
        """Note the end of a fault; its consequences may outlast it."""
        self._masking.ends(fault, self._now_s)

    def stage_begins(self, stage: str) -> None:
        """Note the stage of the growth."""
        self._masking.stage_begins(stage, self._now_s)

    def mended(self) -> None:
        """Note that every fault was mended, and that a person has checked it."""
        blind = frozenset(self.scene.blind)
        self._masking.mended()
        self.scene.disturbed.clear()
        for word in blind:
            self._begin_clocks(word)

    @property
    def _now_s(self) -> float:
        return self._sim_lab.env.now * 1e-6

    def _sees(self, word: str) -> None:
        """Remove a word, and start the clocks of its rules anew."""
        self._masking.sees(word)
        self._begin_clocks(word)

    def _begin_clocks(self, word: str) -> None:
        for rule in self._rules:
            if word in rule.blinded_by and not rule.blinded_by & self.scene.blind:
                self._since.pop(rule.name, None)

    def begin_growth(self) -> None:
        """Note that a harness begins."""
        self.scene.harness = "alive"
        self.scene.stopped = self.scene.used = self.scene.guarded = False
        self.energised = False
        self._must_trip_since_s = math.inf
        self._masking.growth_begins()

    def _watch(self) -> Generator[simpy.Event, object, None]:
        sim_lab, plant = self._sim_lab, self._sim_lab.plant
        while True:
            yield sim_lab.env.seconds(GRAIN_S)
            self._judge(plant.truth(), sim_lab.env.now * 1e-6)

    def _judge(self, truth: Truth, now_s: float) -> None:
        scene, plant = self.scene, self._sim_lab.plant
        buses = self._sim_lab.buses
        scene.cut = {name for name, bus in buses.items() if bus.faults.cut}
        scene.deaf = scene.cut | {name for name, bus in buses.items() if _unheard(bus.faults)}
        scene.disturbed |= scene.deaf
        if plant.faults.sensors or scene.silent:
            scene.silent = {
                heater for heater in ("furnace", "sulfur") if plant.parts[heater].sensor_broken
            }
        relieved = truth["pressure_pa"] > (truth["ambient_pa"] + OVER_PA_MAX) / MARGIN
        flows = truth["inert_sccm"] > INERT_SCCM and not relieved
        self._flows_since_s = min(self._flows_since_s, now_s) if flows else math.inf
        if relieved:
            scene.blind.add(RELIEVED)  # all gas is off then, also the inert one: decision 0008
        elif RELIEVED in scene.blind and now_s - self._flows_since_s >= KILL_S:
            self._sees(RELIEVED)  # the remaining flow is not one that the relief still has to shut
        for word in self._masking.seeing(truth, now_s):
            self._sees(word)
        on = energised(truth) or bool(truth["laser_on"])
        self.energised = scene.used = self.energised or on
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
        lossy = any(self._sim_lab.buses[port].faults.noisy for port in self._response_ports)
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
                self.violation = RefereeViolation(
                    rule.name, now_s, for_s, allowed_s, _told(truth, scene)
                )
                self._stop()
        if scene.blind & BLIND_TO_SUCKED:
            scene.sucked_pa = truth["sucked_back_pa"]  # it was a demand; it is not reported later

    def _expect_latch(self, now_s: float) -> None:
        """Note when a line in use must have tripped, even if it noticed nothing."""
        scene, plant = self.scene, self._sim_lab.plant
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


def _unheard(faults: BusFaults) -> bool:
    """Return whether frames of a bus may be lost or refused, for as long as the fault lasts."""
    return faults.writes_refused or faults.lost_share > 0


def _told(truth: Truth, scene: Scene) -> str:
    return (
        f"furnace {truth['furnace_heater_c']:.0f} degC{' heated' * truth['furnace_heating']}, "
        f"sulfur {truth['sulfur_c']:.0f} degC{' heated' * truth['sulfur_heating']}, "
        f"{truth['pressure_pa'] / ATMOSPHERE_PA:.3f} atm, "
        f"oxygen {100 * truth['o2_fraction']:.2f} %, "
        f"hydrogen {100 * truth['h2_fraction']:.1f} % and {truth['hydrogen_sccm']:.1f} sccm, "
        f"mains {truth['furnace_mains']:d} {truth['sulfur_mains']:d}, "
        f"output {truth['furnace_power']:.2f} {truth['sulfur_power']:.2f}, "
        f"hydrogen valve {truth['hydrogen_valve']:d} set {truth['hydrogen_setpoint_sccm']:.1f}, "
        f"inert {truth['inert_sccm']:.0f} sccm, laser {'on' if truth['laser_on'] else 'off'}, "
        f"harness {scene.harness}"
    )
