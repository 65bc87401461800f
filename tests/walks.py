"""Walks of a person who drives the line by hand, drawn from a seed, and made shorter.

A walk follows what somebody does who wants to grow with hydrogen, and strays from it: steps are
left out or done again, values are others, a wait is long, the tube is opened, one thing breaks.
Then the harness dies or stands still, somebody else types ``safe``, a named person resets, and the
walk goes on or begins again.
"""

import math
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from chaos_scenes import FAULTS
from labharness.chaos.scenario import Fault
from labharness.core.clock import Chance
from labharness.safety.kernel import Envelope

PLAYS_MAX = 150  # of a walk that is shrunk: one of 60 steps takes about 80

STRAYS = (0.003, 0.1)  # expected strays a step, itself drawn: some people are careful
STRAY_WEIGHTS = {"set": 4, "again": 2, "wait": 2, "fault": 3, "open": 1, "keys": 1, "mend": 1}
WAITS_S = (5.0, 30.0, 120.0, 600.0, 1800.0)
BREAKS_SHARE = 0.8  # of the walks: in these something breaks where it bites, by chapter
BITES: dict[str, tuple[tuple[str, str], ...]] = {
    "load": (("air_leak", ""), ("sensor_off", "hydrogen")),
    "evacuate": (("air_leak", ""), ("pump_stopped", ""), ("sensor_wrong", "gauge")),
    "check": (("air_leak", ""), ("sensor_stuck", "gauge")),
    "fill": (("air_leak", ""), ("sensor_stuck", "gauge"), ("sensor_stuck", "argon")),
    "sweep": (("sensor_off", "hydrogen"), ("sensor_wrong", "argon"), ("flow_drift", "argon")),
    "hydrogen": (
        ("sensor_off", "hydrogen"),
        ("air_leak", ""),
        ("contact_stuck", "hydrogen_valve"),
        ("contact_stuck", "argon_valve"),
    ),
    "heat": (("air_leak", ""), ("contact_stuck", "vent"), ("lid_open", ""), ("bus_cut", "relays")),
    "hold": (("outlet_blocked", ""), ("heater_runaway", ""), ("exhaust_lost", "")),
    "off": (("air_leak", ""), ("contact_stuck", "hydrogen_valve"), ("power_dip", "")),
    "flush": (("air_leak", ""), ("keys", "argon"), ("contact_stuck", "argon_valve")),
    "cool": (("keys", "argon"), ("contact_stuck", "furnace_contactor")),
    "open": (("lid_open", ""), ("sensor_stuck", "furnace")),
}
DEAR = {"air_leak": 3.0, "sensor_off": 3.0}  # nothing on the line measures oxygen, or hydrogen
ANYWHERE = (
    *(
        ("sensor_" + how, each)
        for each in FAULTS.targets("sensor_off")
        for how in ("off", "stuck", "wrong", "garbage")
    ),
    *(("contact_stuck", each) for each in FAULTS.contacts),
    *(("flow_drift", each) for each in FAULTS.flows),
    *((kind, "") for kind in ("air_leak", "lid_open", "exhaust_lost", "pump_stopped")),
    *((kind, "") for kind in ("outlet_blocked", "heater_runaway", "hydrogen_escapes", "power_dip")),
    *(("bus_cut", port) for port in ("heat", "inert", "hydrogen", "relays", "vacuum", "detector")),
)
AMOUNTS: dict[str, tuple[float, ...]] = {
    "air_leak": (0.5, 5.0, 20.0, 20.0),
    "sensor_wrong": (0.5, 0.9, 1.1, 2.0),
    "flow_drift": (0.7, 1.3),
    "heater_runaway": (1.0, 20.0),
    "hydrogen_escapes": (200.0,),
}
# argon turned down at its keys over hydrogen whose valve is shut is seen by no row: decision 7
KEYS = {"argon": (90.0, 490.0), "nitrogen": (0.0, 490.0), "furnace": (200.0, 900.0)}
WANDERS = (
    *("argon.setpoint", "nitrogen.setpoint", "hydrogen.setpoint", "furnace.setpoint"),
    *("sulfur.setpoint", *(f"box.{name}" for name in FAULTS.contacts)),
)
SELDOM_SET = ("furnace.setpoint_rate", "sulfur.setpoint_rate", "furnace.mode", "sulfur.mode")

# What happens to whoever drives, from a stream of chance of its own: the steps before it stay.
SUDDEN_SHARE = 0.8  # of the walks, and of what follows a reset
SUDDEN_WEIGHTS = {"kill": 3, "pause": 3, "safe": 2}
SAFE_AFTER_SHARE = 0.2  # of the kills and pauses: somebody else sees to what was left
AMID_S = (0.2, 2.0, 20.0)  # it comes at any moment of so long: in an exchange, a command, a wait
STANDS_STILL_S = (0.3, 0.8, 4.0, 15.0, 60.0)  # the guard gives a harness up after 1 s
ENERGISES = ("hydrogen.setpoint", "furnace.setpoint", "sulfur.setpoint")
ENERGISED_WEIGHT = 4.0  # against 1 for any other step that it may follow
RESET_SHARE = 0.8
RESETS_MAX = 2  # of a walk; most reset a trip that it came to by itself
MENDED_SHARE = 0.7  # of the resets: the others find nothing broken, and it stays so
BEGINS_AGAIN_SHARE = 0.6
AUTOMATIC = ("furnace.mode", "sulfur.mode")  # a procedure leaves both in manual, and cold
AUTOMATIC_SHARE = 0.9


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a walk.

    Attributes:
        act: ``set``, ``open``, ``wait``, ``until``, ``fault``, ``mend``, ``keys``, ``safe`` (typed
            by somebody else) or ``reset``.
        name: The channel, what is waited for, the instrument whose keys are used, or ``mended``:
            what is broken is mended before the reset.
        value: What it is set to; the longest time to wait; for how long the tube stays open; when
            ``safe`` is typed amid what follows.
        fault: What breaks; a harness that is killed, or stands still, does so amid what follows.
    """

    act: str
    name: str = ""
    value: float = 0.0
    fault: Fault | None = None

    def __str__(self) -> str:
        if self.fault is not None:
            return f"fault: {self.fault}"
        return f"{self.act} {self.name} {self.value:g}".replace("  ", " ")


# ---- drawing


def put(name: str, value: float) -> Step:
    return Step("set", name, value)


def _recipe(chance: random.Random) -> Iterator[tuple[str, list[Step]]]:
    """Return what a person does, chapter by chapter; each has habits of its own."""
    choose = chance.choice
    sccm, carries = choose((480.0, 490.0, 200.0)), choose((82.0, 85.0, 100.0))
    yield "sweep", _purge(sccm)
    if chance.random() < 0.5:
        yield "load", [Step("open", "load", 60.0), Step("until", "shut", 120.0), *_purge(sccm)]
    if chance.random() < 0.9:
        yield (
            "evacuate",
            [
                put("box.nitrogen_bypass_shut", 1),
                put("argon.setpoint", 0),
                put("box.argon_valve", 0),
                put("box.vent", 0),
                put("box.pump", 1),
                put("box.pump_isolation", 1),
                Step("until", "evacuated", choose((60.0, 300.0))),
            ],
        )
        yield "check", [put("box.pump_isolation", 0), Step("wait", "", 60.0), put("box.pump", 0)]
        yield (
            "fill",
            [
                put("box.argon_valve", 1),
                put("argon.setpoint", choose((10.0, 20.0, 50.0, 100.0, 100.0))),
                Step("until", "filled", choose((300.0, 1800.0))),
                put("box.vent", 1),
            ],
        )
    if chance.random() < 0.5:
        yield "sweep", _purge(sccm)
    if chance.random() < 0.9:
        yield (
            "hydrogen",
            [
                put("argon.setpoint", carries),
                Step("wait", "", 5.0),
                put("box.hydrogen_valve", 1),
                put("hydrogen.setpoint", choose((10.0, 20.0, 50.0))),
                Step("wait", "", choose((60.0, 300.0))),
            ],
        )
    if chance.random() < 0.6:
        yield "heat", list(_heat(chance))
        yield "hold", [Step("wait", "", choose((60.0, 600.0)))]
    chapters = [
        ("off", [put("hydrogen.setpoint", 0), put("box.hydrogen_valve", 0)]),
        ("off", [put(f"{name}.setpoint", 0) for name in ("furnace", "sulfur")]),
        ("off", [put(f"box.{name}_contactor", 0) for name in ("furnace", "sulfur")]),
    ]
    chance.shuffle(chapters)
    yield from chapters
    flush = put("argon.setpoint", choose((0.0, 20.0, 50.0, 100.0, 480.0)))
    yield "flush", [flush, Step("until", "flushed", choose((0.0, 60.0, 600.0)))]
    yield "cool", [Step("until", "cold", 2400.0)]
    yield "open", [Step("open", "load", 60.0), Step("until", "shut", 120.0)]
    if chance.random() < 0.3:
        yield "evacuate", [put("argon.setpoint", 0), put("box.vent", 0), put("box.pump", 1)]
        yield "evacuate", [put("box.pump_isolation", 1), Step("wait", "", 60.0)]


def _purge(sccm: float) -> list[Step]:
    flow = [put("box.argon_valve", 1), put("box.vent", 1), put("argon.setpoint", sccm)]
    return [*flow, Step("until", "purged", 400.0)]


def _heat(chance: random.Random) -> Iterator[Step]:
    for name, targets_c in (("furnace", (150.0, 650.0, 800.0, 950.0)), ("sulfur", (100.0, 250.0))):
        if chance.random() < 0.7:
            yield put(f"{name}.setpoint_rate", 50)
            yield put(f"box.{name}_contactor", 1)
            yield Step("wait", "", 5.0)
            yield put(f"{name}.setpoint", chance.choice(targets_c))
    yield Step("wait", "", chance.choice((300.0, 900.0)))


def draw_walk(seed: int, envelope: Envelope) -> tuple[Step, ...]:
    """Draw a walk; equal arguments give an equal one."""
    walk = stroll(Chance(seed).stream("walk"), envelope)
    return tuple(_disturbed(Chance(seed).stream("harness"), walk, envelope))


def _disturbed(
    chance: random.Random, walk: Iterable[Step], envelope: Envelope, resets: int = RESETS_MAX
) -> list[Step]:
    """Let something sudden happen on the way, and a named person reset what has latched."""
    steps = list(walk)
    at = len(steps)
    if steps and chance.random() < SUDDEN_SHARE:
        weights = [ENERGISED_WEIGHT if _energises(each) else 1.0 for each in steps]
        at = 1 + chance.choices(range(len(steps)), weights)[0]
        steps.insert(at, sudden := _sudden(chance))
        if sudden.act != "safe" and chance.random() < SAFE_AFTER_SHARE:
            steps.insert(at + 1, Step("safe"))
    if not resets or chance.random() >= RESET_SHARE:
        return steps
    at = min(len(steps), at + 1 + chance.randrange(4)) if chance.random() < 0.6 else len(steps)
    rest = steps[at:]
    reset = Step("reset", "mended" if chance.random() < MENDED_SHARE else "")
    if not rest or chance.random() < BEGINS_AGAIN_SHARE:
        rest = _disturbed(chance, stroll(chance, envelope), envelope, resets - 1)
    back = AUTOMATIC if chance.random() < AUTOMATIC_SHARE else ()
    return [*steps[:at], reset, *(put(channel, 0) for channel in back), *rest]


def _energises(step: Step) -> bool:
    switch = step.name in ENERGISES or step.name.endswith(("_contactor", "hydrogen_valve"))
    return step.act == "set" and switch and step.value > 0


def _sudden(chance: random.Random) -> Step:
    kind = chance.choices(list(SUDDEN_WEIGHTS), list(SUDDEN_WEIGHTS.values()))[0]
    after_s = round(chance.uniform(0.0, chance.choice(AMID_S)), 3)
    if kind == "safe":
        return Step("safe", "", after_s)
    lasts_s = chance.choice(STANDS_STILL_S) if kind == "pause" else 0.0
    return Step("fault", fault=Fault(kind=kind, stage="", after_s=after_s, lasts_s=lasts_s))


def stroll(chance: random.Random, envelope: Envelope) -> list[Step]:
    """Draw what one person does, and what breaks meanwhile."""
    strays = math.exp(chance.uniform(*(math.log(each) for each in STRAYS)))
    chapters = list(_recipe(chance))
    breaks_in, breaks = -1, Step("mend")
    if chance.random() < BREAKS_SHARE:
        bites = [(at, each) for at, (name, _) in enumerate(chapters) for each in BITES[name]]
        weights = [DEAR.get(kind, 1.0) for _, (kind, _) in bites]
        breaks_in, (kind, target) = chance.choices(bites, weights)[0]
        breaks = _keys(chance, target) if kind == "keys" else _fault(chance, kind, target)
    walk: list[Step] = []
    for at, (_, steps) in enumerate(chapters):
        breaks_at = chance.randrange(len(steps) + 1) if at == breaks_in else -1
        if at != breaks_in and chance.random() < strays / 2:
            continue  # it is forgotten
        for number, step in enumerate([*steps, None]):
            if number == breaks_at:
                walk.append(breaks)
            while chance.random() < strays:
                walk.append(_stray(chance, walk, envelope))
            if step is not None and chance.random() >= strays / 2:
                walk.append(step)
    return walk


def _stray(chance: random.Random, walk: Sequence[Step], envelope: Envelope) -> Step:
    act = chance.choices(list(STRAY_WEIGHTS), list(STRAY_WEIGHTS.values()))[0]
    if act == "again" and walk:
        return chance.choice(walk)
    if act == "wait":
        return Step("wait", "", chance.choice(WAITS_S))
    if act == "fault":
        return _fault(chance, *chance.choice(ANYWHERE))
    if act == "open":
        return Step("open", "load", chance.choice((30.0, 60.0, 180.0)))
    if act == "keys":
        return _keys(chance, chance.choice(list(KEYS)))
    if act == "mend":
        return Step("mend")
    channel = chance.choice(WANDERS if chance.random() < 0.9 else SELDOM_SET)
    return put(channel, chance.choice(_values(channel, envelope)))


def _values(channel: str, envelope: Envelope) -> list[float]:
    """Return the ends of what may be set, and what lies on and beside each bound of its rows."""
    limit = envelope.limits[channel]
    found = {limit.low, limit.high}
    if limit.high > 1:  # no relay
        found |= {limit.low + share * (limit.high - limit.low) for share in (0.1, 0.5)}
        for row in envelope.interlocks:
            if channel in row.guards:
                found |= {each for each in (row.above, row.below) if math.isfinite(each)}
                found |= {row.above + 1.0} if math.isfinite(row.above) else set()
    return sorted(each for each in found if limit.low <= each <= limit.high)


def _keys(chance: random.Random, name: str) -> Step:
    return Step("keys", name, chance.choice(KEYS[name]))


def _fault(chance: random.Random, kind: str, target: str) -> Step:
    amount = chance.choice(AMOUNTS.get(kind, (0.0,)))
    if kind == "sensor_garbage":
        (amount,) = (each.garbage for each in FAULTS.sensor if each.name == target)
    lasts_s = chance.choice((3.0, 60.0, *(0.0 for _ in range(6))))
    if kind == "power_dip":
        lasts_s = chance.choice((1.0, 3.0, 30.0))
    fault = Fault(kind=kind, stage="", after_s=0.0, target=target, amount=amount, lasts_s=lasts_s)
    return Step("fault", fault=fault)


# ---- shrinking


def shrink_walk(walk: Sequence[Step], breaks: Callable[[Sequence[Step]], bool]) -> tuple[Step, ...]:
    """Leave out steps while the walk still breaks what it broke: halves first, single ones last."""
    kept = tuple(walk)
    size = max(1, len(kept) // 2)
    plays = 0
    while True:
        at = 0
        while at < len(kept):
            fewer = kept[:at] + kept[at + size :]
            plays += 1
            if plays > PLAYS_MAX:
                return kept
            if breaks(fewer):
                kept = fewer
            else:
                at += size
        if size == 1:
            return kept
        size //= 2
