"""A scenario: one growth and its faults, drawn from a seed or read from a file."""

import json
import math
import random
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from labharness.core.clock import Chance
from labharness.core.vocabulary.spelling import meant

__all__ = ["Fault", "FaultKind", "Scenario", "draw", "read_scenario", "write_scenario"]

STAGES = (
    "loading",
    "leak_check",
    "purge",
    "ramp",
    "material_growth",
    "cooling",
    "transfer",
    "characterisation",
)
STAGE_WEIGHTS = (1, 2, 2, 5, 4, 2, 1, 2)  # more where the line is hot, energised or under vacuum
PROMPT_S_MAX = 60.0  # half of all faults come within the first minute of their stage
LATER_MEAN_S = 900.0
FOR_GOOD_S = 0.0
LASTS_S = (1.0, 3.0, 10.0, 60.0, 600.0, FOR_GOOD_S, FOR_GOOD_S)

# Some kinds do harm only in some stages; more than half of their draws fall there.
BITES: Mapping[str, tuple[str, ...]] = {
    "enclosure_open": ("characterisation",),
    "outlet_blocked": ("purge", "ramp", "material_growth"),
    "heater_runaway": ("ramp", "material_growth"),
    "lid_open": ("purge", "ramp", "material_growth"),
    "exhaust_lost": ("ramp", "material_growth"),
    "bus_cut": ("ramp", "material_growth"),
    "writes_refused": ("ramp", "material_growth"),
    "air_leak": ("loading", "leak_check"),
    "pump_stopped": ("leak_check",),
}
BITES_SHARE = 0.6
WEIGHTS: Mapping[str, float] = {
    "bus_cut": 4,
    "kill": 3,
    "pause": 3,
    "heater_runaway": 3,
    "outlet_blocked": 2,
    "power_dip": 2,
    "lid_open": 2,
}
PORT_WEIGHTS = (3, 1, 2, 3, 1, 1, 1, 1)  # heat and relays matter for most harms

FAULTS_MAX = 6
# expected faults of a growth; the number itself is drawn (swarm testing)
RATE_LOW, RATE_HIGH = 1.0, 8.0
COUNT_MAX = 100  # most writes lost or refused one by one; more is a cut, or a refusal of all
LOST_MAX = 0.5  # a wire that loses more counts as cut, which is another fault
HYDROGEN_SHARE = 0.6
BESIDE_HYDROGEN_SCCM = 85.0  # every plan with hydrogen has at least this much argon
LEAK_SCCM = (0.5, 20.0)
# settles at 10,000 ppm in the simulated lab; reaches 4000 ppm after 10 s
HYDROGEN_LEAK_SCCM = 200.0
SECOND_GROWTH_SHARE = 0.35
# The worst faults during the answer to another one; they come within seconds of it.
UPON = ("kill", "pause", "power_dip", "bus_cut", "stop_request", "reply_lost", "disk_full")
UPON_SHARE = 0.3
UPON_S_MAX = 10.0
LOOKS_SHARE = 0.2
# A lost or refused write does harm while a line is made safe. So it comes just before another
# fault, or before the end of the harness, whose guard is then alone. It has its own random stream,
# so that a seed's other faults stay the same.
WRITES_SHARE = 0.3
ALONE_SHARE = 0.5
BEFORE_S_MAX = 2.0

# Every eighth growth has one lasting fault that chance seldom puts where it does harm: in 400
# growths no gauge was stuck while the tube was filled. Such a growth uses hydrogen, and another
# follows it.
SELDOM_EVERY = 8
SELDOM = (
    ("sensor_stuck", "furnace", "ramp"),
    ("sensor_stuck", "sulfur", "ramp"),
    ("sensor_stuck", "gauge", "purge"),
    ("sensor_off", "gauge", "material_growth"),
    ("outlet_blocked", "", "ramp"),
    ("enclosure_open", "", "characterisation"),
)
SELDOM_S_MAX = 100.0  # of its stage: the tube is being filled, the heaters ramp, the laser is on
SELDOM_SCCM = 20.0
BESIDE_IT = 1  # other faults that stay; more would end a run before it does harm

SENSORS = ("furnace", "sulfur", "argon", "nitrogen", "hydrogen", "gauge", "h2_detector")
GARBAGE_MAX = {
    "furnace": 1300.0,
    "sulfur": 400.0,
    "argon": 500.0,
    "nitrogen": 500.0,
    "hydrogen": 100.0,
    "gauge": 1500.0,
    "h2_detector": 10_000.0,
}
PORTS = ("heat", "inert", "hydrogen", "relays", "vacuum", "detector", "laser", "spectrometer")
CONTACTS = (
    "argon_valve",
    "nitrogen_bypass_shut",
    "hydrogen_valve",
    "pump_isolation",
    "vent",
    "pump",
    "furnace_contactor",
    "sulfur_contactor",
)

FLOWS = ("argon", "nitrogen", "hydrogen")
TARGETS: Mapping[str, tuple[str, ...]] = {"contact_stuck": CONTACTS, "flow_drift": FLOWS}


class FaultKind:
    """The names of all kinds of faults; ``inject`` carries them out."""

    SENSORS = tuple(
        f"sensor_{how}"
        for how in ("off", "stuck", "garbage", "wrong", "slow", "delayed", "intermittent")
    )
    NOISES = tuple(f"reply_{how}" for how in ("lost", "garbled", "late", "foreign", "doubled"))
    WRITES = ("write_lost", "write_refused", "writes_refused")
    CONTACTS = ("lid_open", "exhaust_lost", "enclosure_open", "estop_open")
    DRAWN = (
        *SENSORS,
        *NOISES,
        "reply_reordered",
        "bus_cut",
        *CONTACTS,
        "contact_stuck",
        "flow_drift",
        "pump_stopped",
        "air_leak",
        "outlet_blocked",
        "heater_runaway",
        "hydrogen_escapes",
        "power_dip",
        "kill",
        "pause",
        "clock_jump",
        "disk_full",
        "stop_request",
    )
    ALL = (*DRAWN, *WRITES)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One fault of a scenario.

    Attributes:
        kind: Name of its kind.
        stage: Stage of the growth in which it comes.
        after_s: Lab time from the stage's beginning.
        lasts_s: Its duration; 0 is for good.
        target: Its port, sensor or contact.
        amount: Its size; the meaning depends on the kind.
        growth: Number of the scenario's growth, from 0.
    """

    kind: str
    stage: str
    after_s: float
    lasts_s: float = FOR_GOOD_S
    target: str = ""
    amount: float = 0.0
    growth: int = 0

    def __str__(self) -> str:
        where = f" {self.target}" if self.target else ""
        much = f" {self.amount:g}" if self.amount else ""
        ends = f" for {self.lasts_s:g} s" if self.lasts_s else ""
        return f"{self.kind}{where}{much}{ends}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """One growth, its faults, and whether another growth follows after a reset.

    Attributes:
        name: ``seed/number`` of the search that drew it.
        seed: Seed of the simulated lab and of its harness.
        recipe: The recipe of the request, in the capability's terms.
        faults: The faults.
        second_growth: After a trip everything is mended, a named person resets, and a second growth
            begins over a line that may still be hot.
        looks: The sample is examined to the end. Otherwise a stop request ends the run soon after
            the laser is on, because spectra take more time than they add danger.
    """

    name: str
    seed: int
    recipe: Mapping[str, float] = field(default_factory=dict)
    faults: tuple[Fault, ...] = ()
    second_growth: bool = False
    looks: bool = False


def draw(seed: int, number: int, rate: float) -> Scenario:
    """Return one scenario of a search; equal arguments return an equal scenario.

    Args:
        seed: Seed of the search.
        number: Number of the scenario, from 0.
        rate: Factor on the drawn rate of faults; 0 returns growths without faults.
    """
    chance = Chance(seed).stream(f"scenario/{number}")
    recipe = {
        "temperature_c": float(chance.choice((650, 700, 735, 750, 790, 850, 920))),
        "dwell_s": float(chance.choice((60, 300, 600, 1800))),
        "sulfur_temperature_c": float(chance.choice((150, 180, 200, 230))),
        "argon_sccm": float(chance.choice((30, 50, 100, 200))),
    }
    if chance.random() < HYDROGEN_SHARE:
        recipe["hydrogen_sccm"] = float(chance.choice((5, 10, 20, 20)))
    seed = chance.getrandbits(48)
    second = chance.random() < SECOND_GROWTH_SHARE
    looks = chance.random() < LOOKS_SHARE
    expected = rate * math.exp(chance.uniform(math.log(RATE_LOW), math.log(RATE_HIGH)))
    kinds = chance.sample(FaultKind.DRAWN, chance.randint(2, len(FaultKind.DRAWN)))
    count = min(FAULTS_MAX, _poisson(chance, expected))
    faults: list[Fault] = []
    for _ in range(count):
        kind = chance.choices(kinds, [WEIGHTS.get(each, 1.0) for each in kinds])[0]
        fault = _fault(chance, kind, growth=int(second and chance.random() < 0.4))
        if all(_together(fault, other) for other in faults):
            faults.append(fault)
    if 0 < len(faults) < FAULTS_MAX and chance.random() < UPON_SHARE:
        first = chance.choice(faults)
        after_s = round(first.after_s + chance.uniform(0.0, UPON_S_MAX), 3)
        drawn = _fault(chance, chance.choice(UPON), growth=first.growth)
        fault = replace(drawn, stage=first.stage, after_s=after_s)
        if all(_together(fault, other) for other in faults):
            faults.append(fault)
    if number % SELDOM_EVERY == SELDOM_EVERY - 1 and rate:
        second, faults[BESIDE_IT:] = True, []
        recipe.setdefault("hydrogen_sccm", SELDOM_SCCM)
        rare = _seldom(Chance(seed).stream(f"seldom/{number}"))
        if all(_together(rare, other) for other in faults):
            faults.append(rare)
    elif rate:
        faults += _unwritten(Chance(seed).stream(f"writes/{number}"), faults)
    if "hydrogen_sccm" in recipe:
        recipe["argon_sccm"] = max(recipe["argon_sccm"], BESIDE_HYDROGEN_SCCM)
    return Scenario(
        name=f"{seed}/{number}",
        seed=seed,
        recipe=recipe,
        faults=tuple(faults),
        second_growth=second,
        looks=looks,
    )


def read_scenario(text: str, ports: Collection[str] = PORTS) -> Scenario:
    """Return the scenario in a JSON text.

    Args:
        text: The JSON.
        ports: Ports of the line it is for.

    Raises:
        ValueError: It is not a scenario; the message says why.
    """
    try:
        body = json.loads(text)
        faults = tuple(Fault(**each) for each in body.pop("faults"))
        scenario = Scenario(**body, faults=faults)
        _check(scenario, ports)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as why:
        raise ValueError(f"no scenario: {why}") from None
    return scenario


def _check(scenario: Scenario, ports: Collection[str]) -> None:
    """Refuse wrong values of a hand-edited file."""
    if not isinstance(scenario.name, str):
        raise ValueError(f"name is {scenario.name!r}; it is a text")
    for name in ("second_growth", "looks"):
        if not isinstance(getattr(scenario, name), bool):
            raise ValueError(f"{name} is {getattr(scenario, name)!r}; it is true or false")
    if not isinstance(scenario.seed, int):
        raise ValueError(f"seed is {scenario.seed!r}; it is a whole number")
    for name, value in scenario.recipe.items():
        _check_number(f"recipe.{name}", value)
    for fault in scenario.faults:
        for name, known in (("kind", FaultKind.ALL), ("stage", STAGES)):
            value = getattr(fault, name)
            if value not in known:
                raise ValueError(_unknown(name, value, known))
        for name in ("after_s", "lasts_s", "growth"):
            _check_number(name, getattr(fault, name), low=0.0)
        _check_number("amount", fault.amount)
        _check_target(fault, ports)


def _check_target(fault: Fault, ports: Collection[str]) -> None:
    known: Collection[str] = TARGETS.get(fault.kind, ())
    if fault.kind.startswith("sensor_"):
        known = SENSORS
    elif fault.kind.startswith("reply_") or fault.kind in ("bus_cut", *FaultKind.WRITES):
        known = ports
    if known and fault.target not in known:
        raise ValueError(f"{fault.kind}: " + _unknown("target", fault.target, known))
    if not known and fault.target != "":
        raise ValueError(f"{fault.kind} takes no target, and has {fault.target!r}")
    if fault.kind == "sensor_slow" and fault.amount <= 0:
        raise ValueError(f"sensor_slow: amount is {fault.amount!r}; it is a time constant above 0")
    if fault.kind.startswith("reply_") and not 0 <= fault.amount <= 1:
        raise ValueError(f"{fault.kind}: amount is {fault.amount!r}; it is a share from 0 to 1")
    if fault.kind in ("write_lost", "write_refused") and not 1 <= fault.amount <= COUNT_MAX:
        allowed = f"a count of writes from 1 to {COUNT_MAX}"
        raise ValueError(f"{fault.kind}: amount is {fault.amount!r}; it is {allowed}")


def _unknown(name: str, value: object, known: Collection[str]) -> str:
    near = meant(str(value), list(known))
    return f"no {name} {value!r}{near}; there are {', '.join(known)}"


def _check_number(name: str, value: object, low: float = -math.inf) -> None:
    if not isinstance(value, int | float) or not math.isfinite(value) or value < low:
        raise ValueError(f"{name} is {value!r}; it is a number" + (" from 0" if low == 0 else ""))


def write_scenario(scenario: Scenario) -> str:
    """Return a scenario as JSON."""
    body: dict[str, Any] = asdict(scenario)
    return json.dumps(body, indent=1) + "\n"


def _fault(chance: random.Random, kind: str, growth: int) -> Fault:
    stage = chance.choices(STAGES, STAGE_WEIGHTS)[0]
    if kind in BITES and chance.random() < BITES_SHARE:
        stage = chance.choice(BITES[kind])
    prompt = chance.random() < 1 / 2
    after_s = chance.uniform(0, PROMPT_S_MAX) if prompt else chance.expovariate(1 / LATER_MEAN_S)
    lasts_s = chance.choice(LASTS_S)
    target, amount = "", 0.0
    if kind.startswith("sensor_"):
        target = chance.choice(SENSORS)
        amount = _sensor_amount(chance, kind, target)
    elif kind in ("bus_cut", *FaultKind.NOISES, "reply_reordered"):
        target = chance.choices(PORTS, PORT_WEIGHTS)[0]
        amount = 0.0 if kind == "bus_cut" else chance.choice((0.01, 0.1, 0.5, 0.95))
        if kind == "reply_lost":
            amount = min(amount, LOST_MAX)
    elif kind in FaultKind.WRITES:
        target = chance.choices(PORTS, PORT_WEIGHTS)[0]
        amount = 0.0 if kind == "writes_refused" else float(chance.choice((1, 1, 2, 5)))
    elif kind == "contact_stuck":
        target = chance.choice(CONTACTS)
    elif kind == "flow_drift":
        target = chance.choice(FLOWS)
        amount = chance.uniform(0.7, 1.3)
    elif kind in ("air_leak", "hydrogen_escapes"):
        amount = chance.uniform(*LEAK_SCCM) if kind == "air_leak" else HYDROGEN_LEAK_SCCM
    elif kind == "heater_runaway":
        amount = chance.choice((0.2, 1.0, 20.0, 20.0))
        # a shorter one does not heat enough to do harm
        lasts_s = chance.choice((60.0, 600.0, FOR_GOOD_S))
    elif kind == "power_dip":
        lasts_s = chance.choice((0.2, 1.0, 3.0, 30.0))
    elif kind == "pause":
        lasts_s = chance.choice((0.3, 0.8, 4.0, 15.0, 60.0))
    elif kind in ("kill", "stop_request"):
        lasts_s = FOR_GOOD_S
    elif kind == "clock_jump":
        amount = chance.choice((-86_400.0, -3600.0, 3600.0, 200_000.0))
        lasts_s = FOR_GOOD_S
    return Fault(
        kind=kind,
        stage=stage,
        after_s=round(after_s, 3),
        lasts_s=lasts_s,
        target=target,
        amount=round(amount, 4),
        growth=growth,
    )


def _unwritten(chance: random.Random, faults: Sequence[Fault]) -> list[Fault]:
    """Draw a lost or refused write, mostly just before another fault needs it."""
    if chance.random() >= WRITES_SHARE:
        return []
    fault = replace(_fault(chance, chance.choice(FaultKind.WRITES), growth=0), lasts_s=FOR_GOOD_S)
    before_s = chance.uniform(0.0, BEFORE_S_MAX)
    added = [fault]
    if chance.random() < ALONE_SHARE:
        end_s = round(fault.after_s + before_s, 3)
        added.append(Fault(kind="kill", stage=fault.stage, after_s=end_s))
    elif faults:
        first = chance.choice(faults)
        after_s = round(max(first.after_s - before_s, 0.0), 3)
        added = [replace(fault, stage=first.stage, after_s=after_s, growth=first.growth)]
    return added if all(_together(added[0], other) for other in faults) else []


def _seldom(chance: random.Random) -> Fault:
    kind, target, stage = chance.choice(SELDOM)
    after_s = round(chance.uniform(0.0, SELDOM_S_MAX), 3)
    return Fault(kind=kind, stage=stage, after_s=after_s, target=target)


def _sensor_amount(chance: random.Random, kind: str, sensor: str) -> float:
    if kind == "sensor_garbage":
        return GARBAGE_MAX[sensor]
    if kind == "sensor_wrong":
        return chance.choice((0.5, 0.9, 1.1, 2.0))
    if kind in ("sensor_slow", "sensor_delayed"):
        return chance.choice((5.0, 30.0, 300.0))
    return chance.choice((0.1, 0.5, 0.9)) if kind == "sensor_intermittent" else 0.0


def _together(one: Fault, other: Fault) -> bool:
    """Return whether two faults may come together: not if they defeat both ways to one safe state.

    Decision 0013 has the reason. Heat and hydrogen are each shut off by the relays and by their
    controller; pressure is released by the outlet and stopped at the inlet; the laser is shut off
    by its command and by the enclosure's contact. A leak upstream of the hydrogen controller is
    shut off only by the valve.
    """
    ways = (
        (_by_the_relays, _by_the_controllers),
        (_of_the_outlet, _of_the_inlet),
        (lambda fault: _deaf(fault, "laser"), _of_the_enclosure),
    )
    return not any(
        (first(one) and second(other)) or (first(other) and second(one)) for first, second in ways
    )


def _deaf(fault: Fault, *ports: str) -> bool:
    """Return whether all settings on one of these ports fail."""
    return fault.kind in ("bus_cut", "writes_refused") and fault.target in ports


def _by_the_relays(fault: Fault) -> bool:
    welded = fault.target in ("furnace_contactor", "sulfur_contactor", "hydrogen_valve")
    return _deaf(fault, "relays") or (fault.kind == "contact_stuck" and welded)


def _by_the_controllers(fault: Fault) -> bool:
    return _deaf(fault, "heat", "hydrogen") or fault.kind in (
        "heater_runaway",
        "hydrogen_escapes",
        "power_dip",
    )


def _of_the_outlet(fault: Fault) -> bool:
    stuck = fault.kind == "contact_stuck" and fault.target == "vent"
    return stuck or fault.kind in ("outlet_blocked", "power_dip")


def _of_the_inlet(fault: Fault) -> bool:
    cut = _deaf(fault, "relays", "inert", "vacuum")
    stuck = fault.kind == "contact_stuck" and fault.target in (
        "nitrogen_bypass_shut",
        "argon_valve",
    )
    return cut or stuck or fault.kind == "power_dip"


def _of_the_enclosure(fault: Fault) -> bool:
    return fault.kind == "enclosure_open"


def _poisson(chance: random.Random, mean: float) -> int:
    """Draw a count by Knuth's product of uniforms; the mean is small."""
    bound, product, count = math.exp(-mean), chance.random(), 0
    while product > bound:
        product *= chance.random()
        count += 1
    return count
