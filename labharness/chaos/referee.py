"""The referee: compares the plant's true state with the rules, and reports violations.

Its rules are those of any line, and those of one line's faults file. A fault hides other things
from the line until it ends; a harm behind a mask is not a violation but a *demand*: it is counted,
because a hardware safeguard has to answer it. Decision 0013 has the reasons.
"""

import math
import struct
from collections.abc import Callable, Generator, Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import simpy

from labharness.chaos.scenario import Fault
from labharness.chaos.table import (
    GRAIN_S,
    KILL_S,
    PASS_S,
    PAUSE_S,
    REPEATS_S,
    TRIP_S,
    FaultTable,
    Harm,
    MaskCause,
    Scene,
    Way,
    matches,
)
from labharness.core.vocabulary.channels import owner_of
from labharness.instruments.simulation import BusFaults
from labharness.lab.config.lab_plan import LabPlan
from labharness.lab.wiring.simulated_lab import SimulatedLab

Words = tuple[tuple[str, float], ...]


class Masking:
    """The masks in force, and their ends.

    Args:
        table: The masks of the line, and their causes.
        words: The names of the masks in force; updated here and read by the rules.
    """

    def __init__(self, table: FaultTable, words: set[str]) -> None:
        self.words = words
        self._masks = {mask.name: mask for mask in table.mask}
        causes = [(mask.name, cause) for mask in table.mask for cause in mask.by]
        self._causes = [each for each in causes if not each[1].beside]
        self._pairs = [each for each in causes if each[1].beside]
        self._until_s: dict[str, float] = {}
        self._ending_since_s: dict[str, float] = {}
        self._over: set[str] = set()
        self._broken: list[tuple[Fault, Words]] = []
        self._stage = ""
        self._begun: set[str] = set()

    def growth_begins(self) -> None:
        """Forget the stages of the previous growth."""
        self._stage = ""
        self._begun.clear()

    def stage_begins(self, stage: str, now_s: float) -> None:
        """Follow the growth: some masks belong to a stage."""
        self._stage = stage
        self._begun.add(stage)
        self._pair(now_s)

    def begins(self, fault: Fault, now_s: float) -> None:
        """Add the masks of a fault."""
        words = tuple(
            (word, cause.for_s)
            for word, cause in self._causes
            if matches(cause.faults, fault.kind, fault.target) and self._counts(cause)
        )
        self._broken.append((fault, words))
        for word, for_s in words:
            self._blind(word, now_s + for_s)
        self._pair(now_s)

    def ends(self, fault: Fault, now_s: float) -> None:
        """Set the end of a fault's masks: they outlast it by their ``after_s``."""
        gone = next((each for each in self._broken if each[0] == fault), None)
        if gone is None:
            return  # all was mended before
        self._broken.remove(gone)
        ended = {word for word, _ in gone[1]}
        for word, pair in self._pairs:
            menders = pair.mended_by or (*pair.faults, *pair.beside)
            if matches(menders, fault.kind, fault.target):
                ended.add(word)
        for word in sorted(ended & self.words):
            rest = [for_s for _, words in self._broken for each, for_s in words if each == word]
            until_s = now_s + max(self._masks[word].after_s, *rest, 0.0)
            self._until_s[word] = min(until_s, self._until_s.get(word, until_s))
            if not rest:
                self._over.add(word)

    def seeing(self, values: Mapping[str, Any], now_s: float) -> list[str]:
        """Return the masks whose time is over; put on those that the plant's state begins."""
        over: list[str] = []
        for mask in self._masks.values():
            word = mask.name
            if mask.begins is not None and mask.ends is not None:
                if mask.ends(values):
                    self._ending_since_s.setdefault(word, now_s)
                else:
                    self._ending_since_s.pop(word, None)
                if mask.begins(values):
                    self.words.add(word)
                elif now_s - self._ending_since_s.get(word, now_s + 1.0) >= mask.after_s:
                    over.append(word)
            elif word in self._until_s:
                healed = word in self._over and mask.healed is not None and mask.healed(values)
                if healed or self._until_s[word] <= now_s:
                    over.append(word)
        return [word for word in over if word in self.words]

    def sees(self, word: str) -> None:
        """Remove a mask: the line can see again."""
        self.words.discard(word)
        self._until_s.pop(word, None)
        self._over.discard(word)
        follows = self._masks[word].leaves
        if follows is not None:
            self.words.add(follows)

    def mended(self) -> None:
        """Remove all masks of faults: every fault was mended, and a person has checked it.

        A reset does not change the plant: a mask that its state has put on stays.
        """
        masks = [self._masks[word] for word in self.words]
        self.words.clear()
        self._until_s.clear()
        self._over.clear()
        self._broken.clear()
        for mask in masks:
            if mask.begins is not None:
                self.words.add(mask.name)
            elif mask.leaves is not None:
                self.words.add(mask.leaves)

    def _counts(self, cause: MaskCause) -> bool:
        return (cause.since is None or cause.since in self._begun) and (
            cause.before is None or cause.before not in self._begun
        )

    def _pair(self, now_s: float) -> None:
        faults = [(fault.kind, fault.target) for fault, _ in self._broken]
        for word, pair in self._pairs:
            both = all(
                any(matches(patterns, *fault) for fault in faults)
                for patterns in (pair.faults, pair.beside)
            )
            if both and pair.stage in (None, self._stage):
                self._blind(word, now_s + pair.for_s)

    def _blind(self, word: str, until_s: float) -> None:
        self.words.add(word)
        self._over.discard(word)
        self._until_s[word] = max(until_s, self._until_s.get(word, until_s))


ANY_LINE = (
    ("energised after a stop request", "energised and stopped", TRIP_S),
    ("energised while a watched port is silent", "energised and watched_port_cut", TRIP_S),
    ("energised though the harness is dead", "energised and harness == 'killed'", KILL_S),
    ("energised though the harness stands still", "energised and harness == 'paused'", PAUSE_S),
    ("energised after the run has ended", "energised and harness == 'gone'", KILL_S),
    ("energised while it must be latched", "energised and latched", TRIP_S),
)


def rules_of(table: FaultTable) -> tuple[Harm, ...]:
    """Return all rules of a line."""
    left_on = (rule for way in table.way for rule in _left_on(way))
    return *left_on, *table.rule, *(_harm(*each) for each in ANY_LINE)


def _harm(name: str, when: str, allowed_s: float) -> Harm:
    return Harm.model_validate({"name": name, "when": when, "allowed_s": allowed_s})


def _left_on(way: Way) -> Iterator[Harm]:
    """Return the rules for one way to a safe state, for the guard and for the line.

    With one way left on, the next fault of the other one is a harm.
    """
    on, port = f"({way.on.text})", repr(way.port)
    by_the_guard = f"guarded and {port} not in deaf and {on}"
    yield _harm(f"{way.name} left on by the guard", by_the_guard, KILL_S + PASS_S)
    in_use = f"harness == 'alive' and used and (latched or stopped) and {port} not in deaf"
    ended = f"harness == 'gone' and {port} not in disturbed"
    by_the_line = f"not guarded and ({in_use} or {ended}) and {on}"
    yield _harm(f"{way.name} left on by the line", by_the_line, TRIP_S + REPEATS_S)


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


@dataclass(eq=False)
class Referee:
    """Check the plant once a second, as a process of the simulated lab itself.

    Attributes:
        plan: The lab's files.
        table: The faults and harms of its line.
        sim_lab: The simulated lab.
        stop: Called at the first violation.
    """

    plan: LabPlan
    table: FaultTable
    sim_lab: SimulatedLab
    stop: Callable[[], None]

    def __post_init__(self) -> None:
        port_of = {each.name: each.port for each in self.plan.instruments}
        watches = self.plan.envelope.watches.items()
        watched = frozenset(port_of[owner_of(name)] for name, watch in watches if watch.procedure)
        self.scene = Scene(watched=watched)
        self.violation: RefereeViolation | None = None
        self.demands: dict[str, float] = {}
        self._latching = [row.sets for row in self.table.fault if row.latches and row.sets]
        self._response_ports = {
            port_of[owner_of(step.channel)]
            for procedure in self.plan.envelope.procedures.values()
            for step in procedure.steps
        }
        self._rules = rules_of(self.table)
        self._since: dict[str, float] = {}
        self.masking = Masking(self.table, self.scene.blind)
        self._must_trip_since_s = math.inf
        self._digest = sha256()
        self.sim_lab.env.process(self._watch())

    @property
    def digest(self) -> str:
        """Digest of the true state, second by second."""
        return self._digest.hexdigest()

    def mended(self) -> None:
        """Note that every fault was mended, and that a person has checked it."""
        blind = frozenset(self.scene.blind)
        self.masking.mended()
        self.scene.disturbed.clear()
        for word in blind:
            self._begin_clocks(word)

    @property
    def now_s(self) -> float:
        """Lab time."""
        return self.sim_lab.env.now * 1e-6

    def _begin_clocks(self, word: str) -> None:
        """Start the clocks of a mask's rules anew, unless another one still hides them."""
        for rule in self._rules:
            if word in rule.masks and self.scene.blind.isdisjoint(rule.masks):
                self._since.pop(rule.name, None)

    def begin_growth(self) -> None:
        """Note that a harness begins."""
        self.scene.harness = "alive"
        self.scene.stopped = self.scene.used = self.scene.guarded = False
        self._must_trip_since_s = math.inf
        self.masking.growth_begins()

    def _watch(self) -> Generator[simpy.Event, object, None]:
        sim_lab, plant = self.sim_lab, self.sim_lab.plant
        while True:
            yield sim_lab.env.seconds(GRAIN_S)
            self._judge(plant.truth(), self.now_s)

    def _judge(self, truth: Mapping[str, Any], now_s: float) -> None:
        scene, plant = self.scene, self.sim_lab.plant
        buses = self.sim_lab.buses
        scene.cut = {name for name, bus in buses.items() if bus.faults.cut}
        scene.deaf = scene.cut | {name for name, bus in buses.items() if _unheard(bus.faults)}
        scene.disturbed |= scene.deaf
        if plant.faults.sensors or scene.silent:
            scene.silent = {
                heater for heater in self.table.heaters if plant.parts[heater].sensor_broken
            }
        values = self.table.values(truth, scene)
        for word in self.masking.seeing(values, now_s):
            self.masking.sees(word)
            self._begin_clocks(word)
        on = bool(values["in_use"])
        scene.used = scene.used or on
        self._expect_latch(now_s)
        state = [truth[name] for name in self.table.digest]
        self._digest.update(struct.pack(f"<{1 + len(state)}d?", now_s, *state, on))
        values |= scene.values()
        lossy = any(self.sim_lab.buses[port].faults.noisy for port in self._response_ports)
        for rule in self._rules:
            blind = not scene.blind.isdisjoint(rule.masks)
            if rule.counts is not None and blind:
                scene.forgiven[rule.counts] = truth[rule.counts]
            if not rule.when(values):
                self._since.pop(rule.name, None)
                continue
            for_s = now_s - self._since.setdefault(rule.name, now_s)
            allowed_s = rule.allowed_s + (REPEATS_S if rule.allowed_s and lossy else 0.0)
            if for_s < allowed_s:
                continue
            if blind:
                self.demands[rule.name] = self.demands.get(rule.name, 0.0) + GRAIN_S
            elif self.violation is None:
                detail = self.table.detail.format_map(values)
                self.violation = RefereeViolation(rule.name, now_s, for_s, allowed_s, detail)
                self.stop()

    def _expect_latch(self, now_s: float) -> None:
        """Note when a line in use must have tripped, even if it noticed nothing."""
        scene, plant = self.scene, self.sim_lab.plant
        latching = any(getattr(plant.faults, field) for field in self._latching)
        must = latching or scene.silent or scene.watched_port_cut
        if not (scene.used and scene.harness == "alive" and must):
            self._must_trip_since_s = math.inf
        elif now_s - min(self._must_trip_since_s, now_s) >= TRIP_S:
            scene.latched = True
        else:
            self._must_trip_since_s = min(self._must_trip_since_s, now_s)


def _unheard(faults: BusFaults) -> bool:
    """Return whether frames of a bus may be lost or refused, for as long as the fault lasts."""
    return faults.writes_refused or faults.lost_share > 0
