"""The referee: compares the plant's true state with the rules, and reports violations."""

import math
import struct
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import simpy

from labharness.chaos.masking import Masking
from labharness.chaos.rules import rules_of
from labharness.chaos.scenario import Fault
from labharness.chaos.scene import Scene
from labharness.chaos.table import FaultTable
from labharness.chaos.times import GRAIN_S, REPEATS_S, TRIP_S
from labharness.core.vocabulary.channels import owner_of
from labharness.instruments.simulation import BusFaults
from labharness.lab.config.lab_plan import LabPlan
from labharness.lab.wiring.simulated_lab import SimulatedLab


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
        table: The faults and harms of its line.
        sim_lab: The simulated lab.
        stop: Called at the first violation.
    """

    def __init__(
        self,
        plan: LabPlan,
        table: FaultTable,
        sim_lab: SimulatedLab,
        stop: Callable[[], None],
    ) -> None:
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
        self.scene = Scene(watched=frozenset(watched))
        self.violation: RefereeViolation | None = None
        self.demands: dict[str, float] = {}
        self.energised = False
        self._sim_lab = sim_lab
        self._table = table
        self._latching = [row.sets for row in table.fault if row.latches and row.sets]
        self._stop = stop
        port_of = {each.name: each.port for each in plan.instruments}
        self._response_ports = sorted(
            {
                port_of[owner_of(step.channel)]
                for procedure in plan.envelope.procedures.values()
                for step in procedure.steps
            }
        )
        self._rules = rules_of(table)
        self._since: dict[str, float] = {}
        self._masking = Masking(table, self.scene.blind)
        self._must_trip_since_s = math.inf
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

    def _judge(self, truth: Mapping[str, Any], now_s: float) -> None:
        scene, plant = self.scene, self._sim_lab.plant
        buses = self._sim_lab.buses
        scene.cut = {name for name, bus in buses.items() if bus.faults.cut}
        scene.deaf = scene.cut | {name for name, bus in buses.items() if _unheard(bus.faults)}
        scene.disturbed |= scene.deaf
        if plant.faults.sensors or scene.silent:
            scene.silent = {
                heater for heater in self._table.heaters if plant.parts[heater].sensor_broken
            }
        values = self._table.values(truth, scene)
        for word in self._masking.seeing(values, now_s):
            self._sees(word)
        on = bool(values["in_use"])
        self.energised = scene.used = self.energised or on
        self._expect_latch(now_s)
        state = [truth[name] for name in self._table.digest]
        self._digest.update(struct.pack(f"<{1 + len(state)}d?", now_s, *state, on))
        values |= scene.values()
        lossy = any(self._sim_lab.buses[port].faults.noisy for port in self._response_ports)
        for rule in self._rules:
            blind = bool(rule.blinded_by & scene.blind)
            if rule.counts is not None and blind:
                scene.forgiven[rule.counts] = truth[rule.counts]
            if not rule.broken(values):
                self._since.pop(rule.name, None)
                continue
            for_s = now_s - self._since.setdefault(rule.name, now_s)
            allowed_s = rule.allowed_s + (REPEATS_S if rule.allowed_s and lossy else 0.0)
            if for_s < allowed_s:
                continue
            if blind:
                self.demands[rule.name] = self.demands.get(rule.name, 0.0) + GRAIN_S
            elif self.violation is None:
                detail = self._table.detail.format_map(values)
                self.violation = RefereeViolation(rule.name, now_s, for_s, allowed_s, detail)
                self._stop()

    def _expect_latch(self, now_s: float) -> None:
        """Note when a line in use must have tripped, even if it noticed nothing."""
        scene, plant = self.scene, self._sim_lab.plant
        must = (
            self.energised
            and scene.harness == "alive"
            and bool(
                any(getattr(plant.faults, field) for field in self._latching)
                or scene.silent
                or scene.cut & scene.watched
            )
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
