"""A scenario: one growth and its faults, drawn or read from a file, and the task that it runs."""

import json
import math
import random
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Annotated, ClassVar

from pydantic import Field, TypeAdapter, ValidationError

from labharness.chaos.table import KINDS, WRITES, FaultRow, FaultTable, Place, matches, unknown
from labharness.core.clock import Chance
from labharness.core.files.tables import all_errors
from labharness.lab.config.lab_facts import repository_key
from labharness.lab.config.lab_file import read_text
from labharness.lab.config.lab_plan import LabPlan
from labharness.protocols.hcp.codec import HcpMessage
from labharness.protocols.hcp.messages import TaskSubmit
from labharness.work.admission.approval import StandingApproval, sign
from labharness.work.admission.callers import read_callers

PROMPT_S_MAX = 60.0  # half of all faults come within the first minute of their stage
LATER_MEAN_S = 900.0
FOR_GOOD_S = 0.0
LASTS_S = (1.0, 3.0, 10.0, 60.0, 600.0, FOR_GOOD_S, FOR_GOOD_S)
LASTS_S_OF: Mapping[str, tuple[float, ...]] = {
    "power_dip": (0.2, 1.0, 3.0, 30.0),
    "pause": (0.3, 0.8, 4.0, 15.0, 60.0),
}
AMOUNTS_OF: Mapping[str, tuple[float, ...]] = {
    "sensor_wrong": (0.5, 0.9, 1.1, 2.0),
    "sensor_slow": (5.0, 30.0, 300.0),
    "sensor_delayed": (5.0, 30.0, 300.0),
    "sensor_intermittent": (0.1, 0.5, 0.9),
    "reply": (0.01, 0.1, 0.5, 0.95),
    "write_lost": (1, 1, 2, 5),
    "write_refused": (1, 1, 2, 5),
    "clock_jump": (-86_400.0, -3600.0, 3600.0, 200_000.0),
}
AT_ONCE = ("kill", "stop_request", "clock_jump")  # nothing of these ends
BITES_SHARE = 0.6

FAULTS_MAX = 6
# expected faults of a growth; the number itself is drawn (swarm testing)
RATE_LOW, RATE_HIGH = 1.0, 8.0
COUNT_MAX = 100  # most writes lost or refused one by one; more is a cut, or a refusal of all
LOST_MAX = 0.5  # a wire that loses more counts as cut, which is another fault
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
# growths no gauge was stuck while the tube was filled. Another growth follows it.
SELDOM_EVERY = 8
SELDOM_S_MAX = 100.0  # of its stage: the tube is being filled, the heaters ramp, the laser is on
BESIDE_IT = 1  # other faults that stay; more would end a run before it does harm


STATED = {"strict": True, "extra": "forbid", "allow_inf_nan": False}


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

    __pydantic_config__: ClassVar = STATED

    kind: str
    stage: str
    after_s: Annotated[float, Field(ge=0)]
    lasts_s: Annotated[float, Field(ge=0)] = FOR_GOOD_S
    target: str = ""
    amount: float = 0.0
    growth: Annotated[int, Field(ge=0)] = 0

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

    __pydantic_config__: ClassVar = STATED

    name: str
    seed: int
    recipe: Mapping[str, float] = field(default_factory=dict)
    faults: tuple[Fault, ...] = ()
    second_growth: bool = False
    looks: bool = False


def draw(seed: int, number: int, rate: float, table: FaultTable) -> Scenario:
    """Return one scenario of a search; equal arguments return an equal scenario.

    Args:
        seed: Seed of the search.
        number: Number of the scenario, from 0.
        rate: Factor on the drawn rate of faults; 0 returns growths without faults.
        table: The faults of the line.
    """
    chance = Chance(seed).stream(f"scenario/{number}")
    recipe = {
        each.name: chance.choice(each.values)
        for each in table.recipe
        if each.share == 1.0 or chance.random() < each.share
    }
    seed = chance.getrandbits(48)
    second = chance.random() < SECOND_GROWTH_SHARE
    looks = chance.random() < LOOKS_SHARE
    expected = rate * math.exp(chance.uniform(math.log(RATE_LOW), math.log(RATE_HIGH)))
    rows = [row for row in table.fault if row.kind not in WRITES]
    rows = chance.sample(rows, chance.randint(2, len(rows)))
    count = min(FAULTS_MAX, _poisson(chance, expected))
    faults: list[Fault] = []

    def add(fault: Fault) -> None:
        if all(_together(table, fault, other) for other in faults):
            faults.append(fault)

    for _ in range(count):
        row = chance.choices(rows, [each.weight for each in rows])[0]
        add(_fault(chance, table, row, growth=int(second and chance.random() < 0.4)))
    upon = [table.rows[kind] for kind in UPON if kind in table.rows]
    if upon and 0 < len(faults) < FAULTS_MAX and chance.random() < UPON_SHARE:
        first = chance.choice(faults)
        after_s = round(first.after_s + chance.uniform(0.0, UPON_S_MAX), 3)
        drawn = _fault(chance, table, chance.choice(upon), growth=first.growth)
        add(replace(drawn, stage=first.stage, after_s=after_s))
    if table.seldom and number % SELDOM_EVERY == SELDOM_EVERY - 1 and rate:
        second, faults[BESIDE_IT:] = True, []
        for each in table.recipe:
            if each.seldom is not None:
                recipe.setdefault(each.name, each.seldom)
        add(_seldom(Chance(seed).stream(f"seldom/{number}"), table))
    elif rate:
        faults += _unwritten(Chance(seed).stream(f"writes/{number}"), table, faults)
    for each in table.recipe:
        if each.beside in recipe and each.name in recipe:
            recipe[each.name] = max(recipe[each.name], each.at_least)
    return Scenario(
        name=f"{seed}/{number}",
        seed=seed,
        recipe=recipe,
        faults=tuple(faults),
        second_growth=second,
        looks=looks,
    )


def read_scenario(text: str, table: FaultTable, ports: Collection[str] = ()) -> Scenario:
    """Return the scenario in a JSON text.

    Args:
        text: The JSON.
        table: The faults of the line it is for.
        ports: Ports of the line beside those that faults are drawn for.

    Raises:
        ValueError: It is not a scenario; the message says why.
    """
    try:
        scenario = TypeAdapter(Scenario).validate_json(text)
        _check(scenario, table, ports)
    except ValidationError as why:
        raise ValueError(f"no scenario: {all_errors(why, {}, Scenario)}") from None
    except ValueError as why:
        raise ValueError(f"no scenario: {why}") from None
    return scenario


def _check(scenario: Scenario, table: FaultTable, ports: Collection[str]) -> None:
    """Refuse what a hand-edited file has and the line has not."""
    stages = [each.name for each in table.stage]
    for fault in scenario.faults:
        for name, known in (("kind", list(table.rows)), ("stage", stages)):
            value = getattr(fault, name)
            if value not in known:
                raise ValueError(unknown(name, value, known))
        _check_target(fault, table, ports)


def _check_target(fault: Fault, table: FaultTable, ports: Collection[str]) -> None:
    known = table.targets(fault.kind)
    if KINDS.get(fault.kind) == "port":
        known = tuple(dict.fromkeys((*known, *ports)))
    if known and fault.target not in known:
        raise ValueError(f"{fault.kind}: " + unknown("target", fault.target, known))
    if not known and fault.target != "":
        raise ValueError(f"{fault.kind} takes no target, and has {fault.target!r}")
    if fault.kind == "sensor_slow" and fault.amount <= 0:
        raise ValueError(f"sensor_slow: amount is {fault.amount!r}; it is a time constant above 0")
    if fault.kind.startswith("reply_") and not 0 <= fault.amount <= 1:
        raise ValueError(f"{fault.kind}: amount is {fault.amount!r}; it is a share from 0 to 1")
    if fault.kind in ("write_lost", "write_refused") and not 1 <= fault.amount <= COUNT_MAX:
        allowed = f"a count of writes from 1 to {COUNT_MAX}"
        raise ValueError(f"{fault.kind}: amount is {fault.amount!r}; it is {allowed}")


def write_scenario(scenario: Scenario) -> str:
    """Return a scenario as JSON."""
    return json.dumps(asdict(scenario), indent=1) + "\n"


def _fault(chance: random.Random, table: FaultTable, row: FaultRow, growth: int) -> Fault:
    kind = row.kind
    stage = _weighed(chance, table.stage)
    if row.bites and chance.random() < BITES_SHARE:
        stage = chance.choice(row.bites)
    prompt = chance.random() < 1 / 2
    after_s = chance.uniform(0, PROMPT_S_MAX) if prompt else chance.expovariate(1 / LATER_MEAN_S)
    lasts_s = chance.choice(LASTS_S)
    target = ""
    if KINDS.get(kind) == "port":
        target = _weighed(chance, table.port)
    elif KINDS.get(kind):
        target = chance.choice(table.targets(kind))
    amount = _amount(chance, table, row, target)
    own = row.lasts_s or LASTS_S_OF.get(kind)
    if own:
        lasts_s = chance.choice(own)
    return Fault(
        kind=kind,
        stage=stage,
        after_s=round(after_s, 3),
        lasts_s=FOR_GOOD_S if kind in AT_ONCE else lasts_s,
        target=target,
        amount=round(amount, 4),
        growth=growth,
    )


def _weighed(chance: random.Random, places: Sequence[Place]) -> str:
    return chance.choices(places, [each.weight for each in places])[0].name


def _amount(chance: random.Random, table: FaultTable, row: FaultRow, target: str) -> float:
    """Draw the size of a fault; only kinds that have several take a draw."""
    kind = row.kind
    if row.between is not None:
        return chance.uniform(*row.between)
    if row.amounts:
        return row.amounts[0] if len(row.amounts) == 1 else chance.choice(row.amounts)
    if kind == "sensor_garbage":
        return next(each.garbage for each in table.sensor if each.name == target)
    if kind == "flow_drift":
        return chance.uniform(0.7, 1.3)
    amounts = AMOUNTS_OF.get("reply" if kind.startswith("reply_") else kind)
    amount = float(chance.choice(amounts)) if amounts else 0.0
    return min(amount, LOST_MAX) if kind == "reply_lost" else amount


def _unwritten(chance: random.Random, table: FaultTable, faults: Sequence[Fault]) -> list[Fault]:
    """Draw a lost or refused write, mostly just before another fault needs it."""
    rows = [table.rows[kind] for kind in WRITES if kind in table.rows]
    if not rows or chance.random() >= WRITES_SHARE:
        return []
    drawn = _fault(chance, table, chance.choice(rows), growth=0)
    fault = replace(drawn, lasts_s=FOR_GOOD_S)
    before_s = chance.uniform(0.0, BEFORE_S_MAX)
    added = [fault]
    if chance.random() < ALONE_SHARE and "kill" in table.rows:
        end_s = round(fault.after_s + before_s, 3)
        added.append(Fault(kind="kill", stage=fault.stage, after_s=end_s))
    elif faults:
        first = chance.choice(faults)
        after_s = round(max(first.after_s - before_s, 0.0), 3)
        added = [replace(fault, stage=first.stage, after_s=after_s, growth=first.growth)]
    return added if all(_together(table, added[0], other) for other in faults) else []


def _seldom(chance: random.Random, table: FaultTable) -> Fault:
    row = chance.choice(table.seldom)
    after_s = round(chance.uniform(0.0, SELDOM_S_MAX), 3)
    return Fault(kind=row.kind, stage=row.stage, after_s=after_s, target=row.target)


def _together(table: FaultTable, one: Fault, other: Fault) -> bool:
    """Return whether two faults may come together: not if they defeat both ways to one safe state.

    Decision 0013 has the reason.
    """
    return not any(
        matches(row.one, first.kind, first.target) and matches(row.other, then.kind, then.target)
        for row in table.apart
        for first, then in ((one, other), (other, one))
    )


def _poisson(chance: random.Random, mean: float) -> int:
    """Draw a count by Knuth's product of uniforms; the mean is small."""
    bound, product, count = math.exp(-mean), chance.random(), 0
    while product > bound:
        product *= chance.random()
        count += 1
    return count


def submission(
    plan: LabPlan, table: FaultTable, scenario: Scenario
) -> tuple[HcpMessage, TaskSubmit]:
    """Return the task message of a scenario."""
    named = plan.file.lab.callers
    callers = {} if named is None else read_callers(read_text(plan.beside(named)))
    asked = table.request
    recipe = dict(scenario.recipe)
    body = {
        "capability": asked.capability,
        "capability_version": asked.capability_version,
        "caller_id": next(iter(callers), "chaos"),
        "intent": asked.intent,
        "inputs": asked.inputs | (recipe if asked.recipe_in is None else {asked.recipe_in: recipe}),
        "constraints": asked.constraints,
    }
    if asked.expected_output is not None:
        body["expected_output"] = asked.expected_output
    payload, name = TaskSubmit.model_validate(body), scenario.name.replace("/", "-")
    return HcpMessage(name, "2026-01-01T08:00:00.000Z", None, "task_submit", payload), payload


def approval(plan: LabPlan, table: FaultTable) -> StandingApproval:
    """Return an approval for every run of the search, which tests the envelope alone."""
    return sign(
        StandingApproval(
            id="fault-search",
            capability=table.request.capability,
            risk_max="R4",
            input_limits=table.request.input_limits,
            gases_allowed=table.request.gases_allowed,
            envelope_digest=plan.envelope_digest,
            lab_digest=plan.lab_digest,
            given_by="labharness chaos",
            reason="simulated instruments only: nothing can be harmed",
            until="2036-01-01T00:00:00Z",
            links="loopback",
        ),
        repository_key(),
    )
