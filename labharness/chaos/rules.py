"""The referee's rules: each names a harm, how long it may last, and what masks it from the line.

A harm behind such a mask is not a violation but a *demand*: it is counted, because a hardware
safeguard has to answer it. Decision 0013 has the reasons.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = [
    "ATMOSPHERE_PA",
    "BLIND_TO_SUCKED",
    "GRAIN_S",
    "HEARTBEAT_S_MAX",
    "INERT_SCCM",
    "KILL_S",
    "MARGIN",
    "OVER_PA_MAX",
    "PAUSE_S",
    "POLL_S",
    "PURGED_O2",
    "RELIEVED",
    "REPEATS_S",
    "TRIP_S",
    "WAYS",
    "Rule",
    "Scene",
    "Truth",
    "energised",
    "rules_of",
]

# The referee has its own bounds and limits: a wrong envelope must not move them.
GRAIN_S = 1.0  # the referee checks once a second, after the plant's step
HEARTBEAT_S_MAX = 1.0  # the guard gives up a silent harness after this time
PLAUSIBLE_S = 30.0  # lag of a thermocouple while a runaway heater passes the limit

# silence until it must be noticed: two polls, and one timeout for each of three tries
STALE_S = 3.5
POLL_S = 1.0
WIRE_S = 2.0  # a procedure's first wave, after the longest exchange under way
REPEATS_S = 10.0  # added where wires lose frames: unanswered frames are repeated
TRIP_S = STALE_S + POLL_S + WIRE_S + GRAIN_S
KILL_S = WIRE_S + GRAIN_S  # the guard notices the harness's end at once
PAUSE_S = HEARTBEAT_S_MAX + WIRE_S + GRAIN_S

# A guard that is alone makes its next pass a second after the first, with its timeouts; a living
# line tries again every 5 s.
PASS_S = 3.0

ATMOSPHERE_PA = 101_325.0
LEL_H2, LIMITING_O2 = 0.04, 0.05  # NFPA 69: hydrogen burns from 4 %, in nitrogen from 5 % oxygen
PURGED_O2 = 0.01  # a fifth of that, the practice of NFPA 69 before hydrogen is let in
ROOM_H2_PPM = 4000.0  # a tenth of the lower explosive limit
SULFUR_MELTS_C = 115.0
HOT_TUBE_C = 150.0
OPENED_C = 100.0  # a person who opens the tube as planned must not find it hotter
OPENED_H2 = 0.01  # a quarter of the lower explosive limit, the practice of NFPA 69
INERT_SCCM = 10.0
LEAST_SCCM = 0.5  # smaller flows are a controller's zero
# the vent may open 20 Torr below the room, which draws a fifth of it
SUCKED_PA = 0.1 * ATMOSPHERE_PA
LOW_PA = 0.1 * ATMOSPHERE_PA  # below the room's pressure
FURNACE_C_MAX = 1000.0  # fused quartz: 1050 °C at atmosphere, a margin of 50 °C
SULFUR_C_MAX = 300.0  # the heater's jacket; 250 °C and the overshoot
# above the room's pressure: a quartz tube with O-ring flanges, 0.02 MPa
OVER_PA_MAX = 0.15 * ATMOSPHERE_PA
MARGIN = 1.01  # on each limit, for the error of the instruments

RELIEVED = "relieved"
BLIND_TO_SUCKED = frozenset({"gauge", "vacuum", "vent stuck"})

Truth = Mapping[str, Any]


@dataclass(slots=True)
class Scene:
    """The referee's knowledge beside the plant: the harness, the guard, and the faults.

    Attributes:
        harness: ``alive``, ``killed``, ``paused`` or ``gone`` (its run has ended).
        latched: Nothing may be energised before a reset.
        blind: Masks of the line, by word.
        cut: Ports that are cut now.
        deaf: Ports on which a frame may be lost or refused now.
        disturbed: Ports that were deaf since the last mending.
        guarded: A guard is alone with the line and makes it safe, or has reported it safe.
        used: Something was energised since this harness began.
        stopped: A stop was requested.
        silent: Heaters whose thermocouple gives no signal now.
        sucked_pa: Pressure sucked back while the line was blind to it.
    """

    harness: str = "gone"
    latched: bool = False
    blind: set[str] = field(default_factory=set)
    cut: set[str] = field(default_factory=set)
    deaf: set[str] = field(default_factory=set)
    disturbed: set[str] = field(default_factory=set)
    guarded: bool = False
    used: bool = False
    silent: set[str] = field(default_factory=set)
    stopped: bool = False
    sucked_pa: float = 0.0


@dataclass(frozen=True, slots=True)
class Rule:
    """One harm.

    Attributes:
        name: Its name.
        broken: Returns whether the harm is present.
        allowed_s: How long it may last.
        blinded_by: Words of ``Scene.blind`` that make it a demand instead of a violation.
    """

    name: str
    broken: Callable[[Truth, Scene], bool]
    allowed_s: float
    blinded_by: frozenset[str] = frozenset()


def energised(truth: Truth) -> bool:
    """Return whether heat or hydrogen is on: a procedure turns both off by two ways."""
    return heating(truth) or hydrogen(truth)


def heating(truth: Truth) -> bool:
    """Return whether either heater has power."""
    return bool(truth["furnace_heating"] or truth["sulfur_heating"])


def hydrogen(truth: Truth) -> bool:
    """Return whether hydrogen enters the tube."""
    return bool(truth["hydrogen_sccm"] > LEAST_SCCM)


# Each way is checked alone: with one left on, the next fault of the other one is a harm.
WAYS: tuple[tuple[str, str, Callable[[Truth], bool]], ...] = (
    ("mains of the furnace", "relays", lambda t: bool(t["furnace_mains"])),
    ("mains of the sulfur heater", "relays", lambda t: bool(t["sulfur_mains"])),
    ("valve of the hydrogen", "relays", lambda t: bool(t["hydrogen_valve"])),
    ("output of the furnace", "heat", lambda t: t["furnace_power"] > 0),
    ("output of the sulfur heater", "heat", lambda t: t["sulfur_power"] > 0),
    ("flow of the hydrogen", "hydrogen", lambda t: t["hydrogen_setpoint_sccm"] > LEAST_SCCM),
)


def _ways() -> tuple[Rule, ...]:
    """Return the rules for each way to a safe state, for the guard and for the line."""

    def of(port: str, on: Callable[[Truth], bool], by: str) -> Callable[[Truth, Scene], bool]:
        def by_the_guard(truth: Truth, scene: Scene) -> bool:
            return scene.guarded and port not in scene.deaf and on(truth)

        def by_the_line(truth: Truth, scene: Scene) -> bool:
            if scene.harness == "alive":
                there = scene.used and (scene.latched or scene.stopped) and port not in scene.deaf
            else:
                there = scene.harness == "gone" and port not in scene.disturbed
            return there and not scene.guarded and on(truth)

        return by_the_guard if by == "guard" else by_the_line

    return tuple(
        Rule(f"{name} left on by the {by}", of(port, on, by), allowed_s)
        for name, port, on in WAYS
        for by, allowed_s in (("guard", KILL_S + PASS_S), ("line", TRIP_S + REPEATS_S))
    )


def rules_of(watched_ports: frozenset[str]) -> tuple[Rule, ...]:
    """Return all rules; ``watched_ports`` are those whose silence must be noticed."""

    def hot_source(truth: Truth) -> bool:
        return bool(truth["sulfur_c"] > SULFUR_MELTS_C or truth["h2_fraction"] > LEL_H2)

    def rule(
        name: str, broken: Callable[[Truth, Scene], bool], allowed_s: float, *blinded_by: str
    ) -> Rule:
        return Rule(name, broken, allowed_s, frozenset(blinded_by))

    return (
        *_ways(),
        rule(
            "ignitable mixture in the tube",
            lambda t, s: t["h2_fraction"] > LEL_H2 and t["o2_fraction"] > LIMITING_O2,
            0.0,
        ),
        rule(
            "hydrogen into a tube that holds air",
            lambda t, s: hydrogen(t) and t["o2_fraction"] > PURGED_O2,
            TRIP_S,
            "leak",
            "argon",
            "gauge",
        ),
        rule(
            "hydrogen without extraction",
            lambda t, s: hydrogen(t) and bool(s.blind & {"exhaust_lost"}),
            TRIP_S,
        ),
        rule(
            "hydrogen with the lid open", lambda t, s: hydrogen(t) and bool(t["lid_open"]), TRIP_S
        ),
        rule(
            "hydrogen in the room",
            lambda t, s: (
                (hydrogen(t) or t["hydrogen_leak_sccm"] > LEAST_SCCM)
                and t["room_h2_ppm"] > MARGIN * ROOM_H2_PPM
            ),
            TRIP_S,
            "h2_detector",
        ),
        rule(
            "heat without extraction",
            lambda t, s: heating(t) and bool(s.blind & {"exhaust_lost"}),
            TRIP_S,
        ),
        rule("heat with the lid open", lambda t, s: heating(t) and bool(t["lid_open"]), TRIP_S),
        rule(
            "heat by a thermocouple that gives no signal",
            lambda t, s: any(t[f"{heater}_heating"] for heater in s.silent),
            TRIP_S,
        ),
        rule(
            "furnace too hot and heated",
            lambda t, s: (
                t["furnace_heater_c"] > MARGIN * FURNACE_C_MAX and bool(t["furnace_heating"])
            ),
            TRIP_S + PLAUSIBLE_S,
            "furnace",
        ),
        rule(
            "sulfur too hot and heated",
            lambda t, s: t["sulfur_c"] > MARGIN * SULFUR_C_MAX and bool(t["sulfur_heating"]),
            TRIP_S + PLAUSIBLE_S,
            "sulfur",
        ),
        rule(
            "hot sulfur in air, and heated",
            lambda t, s: (
                t["sulfur_c"] > SULFUR_MELTS_C
                and t["o2_fraction"] > PURGED_O2
                and bool(t["sulfur_heating"])
            ),
            TRIP_S,
            "leak",
            "argon",
            "gauge",
        ),
        rule(
            "hot furnace in air, and heated",
            lambda t, s: (
                t["substrate_c"] > HOT_TUBE_C
                and t["o2_fraction"] > PURGED_O2
                and bool(t["furnace_heating"])
            ),
            TRIP_S,
            "leak",
            # the envelope demands a tight tube for the growth, for the furnace only a purged one
            "leak to be checked",
            "argon",
            "gauge",
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
            "the tube opened by plan with hydrogen in it",
            lambda t, s: bool(t["lid_held_open"]) and t["opened_h2_fraction"] > OPENED_H2,
            0.0,
        ),
        rule(
            "pressure too high and gas flowing",
            lambda t, s: (
                t["pressure_pa"] > MARGIN * (t["ambient_pa"] + OVER_PA_MAX)
                and s.harness == "alive"
                and t["inert_sccm"] + t["hydrogen_sccm"] > LEAST_SCCM
            ),
            TRIP_S,
            "pressure unseen",
            "no power",
        ),
        rule(
            "hot tube below atmosphere",
            lambda t, s: (
                t["pressure_pa"] < t["ambient_pa"] - LOW_PA
                and (t["sulfur_c"] > SULFUR_MELTS_C or t["substrate_c"] > HOT_TUBE_C)
            ),
            TRIP_S,
            "gauge",
        ),
        rule(
            "oil sucked back through the vent",
            lambda t, s: t["sucked_back_pa"] - s.sucked_pa > SUCKED_PA,
            0.0,
            *BLIND_TO_SUCKED,
        ),
        rule(
            "no inert gas over a hot source",
            lambda t, s: hot_source(t) and t["inert_sccm"] < INERT_SCCM and not t["lid_open"],
            TRIP_S,
            "gauge reads high",
            "pressure unseen",
            RELIEVED,
            "argon",
        ),
        rule(
            "laser on with its enclosure open",
            lambda t, s: bool(t["laser_on"] and t["enclosure_open"]),
            TRIP_S,
        ),
        rule(
            "laser on, and nobody who could turn it off",
            lambda t, s: bool(t["laser_on"]) and (s.latched or s.stopped or s.harness != "alive"),
            TRIP_S,
            "laser cut",
        ),
        rule("energised after a stop request", lambda t, s: energised(t) and s.stopped, TRIP_S),
        rule(
            "energised while a watched port is silent",
            lambda t, s: energised(t) and bool(s.cut & watched_ports),
            TRIP_S,
        ),
        rule(
            "energised though the harness is dead",
            lambda t, s: energised(t) and s.harness == "killed",
            KILL_S,
        ),
        rule(
            "energised though the harness stands still",
            lambda t, s: energised(t) and s.harness == "paused",
            PAUSE_S,
        ),
        rule(
            "energised after the run has ended",
            lambda t, s: energised(t) and s.harness == "gone",
            KILL_S,
        ),
        rule(
            "energised while it must be latched",
            lambda t, s: energised(t) and s.latched,
            TRIP_S,
        ),
    )
