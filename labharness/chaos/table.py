"""The faults file of a line: its rows and formulas, read and checked against the line's plant.

The kinds in ``KINDS`` exist for any line; every other kind sets a field of the plant's ``faults``.
The referee has its own times: a wrong envelope must not move them.
"""

import ast
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainValidator,
    PrivateAttr,
    StrictFloat,
    StrictStr,
)

from labharness.core.clock import Chance, Clock, VirtualLoop
from labharness.core.files.tables import BadTable, read_table
from labharness.core.vocabulary.digests import digest_of
from labharness.core.vocabulary.spelling import did_you_mean
from labharness.lab.config.envelope_patch import base_of
from labharness.lab.config.kinds import shipped_file
from labharness.lab.config.lab_file import read_text
from labharness.lab.config.lab_plan import LabPlan
from labharness.lab.wiring.simulated_lab import SimulatedLab

GRAIN_S = 1.0  # the referee checks once a second, after the plant's step
HEARTBEAT_S_MAX = 1.0  # the guard gives up a silent harness after this time

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


TEXT_MAX = 500
TIMES: Mapping[str, float] = {
    "trip_s": TRIP_S,
    "kill_s": KILL_S,
    "pause_s": PAUSE_S,
    "poll_s": POLL_S,
    "repeats_s": REPEATS_S,
    "for_ever": math.inf,
}
NOTHING_BUILT_IN: Mapping[str, Any] = MappingProxyType({})
ALLOWED = (
    *(ast.Expression, ast.BoolOp, ast.And, ast.Or, ast.UnaryOp, ast.Not, ast.USub),
    *(ast.BinOp, ast.Add, ast.Sub, ast.Mult, ast.Compare, ast.Lt, ast.LtE, ast.Gt, ast.GtE),
    *(ast.Eq, ast.NotEq, ast.In, ast.NotIn, ast.Name, ast.Load, ast.Constant),
)


class Formula:
    """A formula such as ``"o2_fraction > 0.01 and not lid_open"``.

    Args:
        text: The formula, in a part of Python's syntax.

    Attributes:
        text: The same text.
        names: The names of the values that it takes.

    Raises:
        ValueError: It is not a formula; the message says why.
    """

    def __init__(self, text: str) -> None:
        if len(text) > TEXT_MAX:
            raise ValueError(f"a formula has at most {TEXT_MAX} characters")
        try:
            tree = ast.parse(text.strip(), mode="eval")
        except (SyntaxError, RecursionError, MemoryError) as why:
            raise ValueError(f"{text!r} is not a formula: {why}") from None
        for node in ast.walk(tree):
            if not isinstance(node, ALLOWED):
                told = "it takes names, numbers, texts, and, or, not, in, + - *, and comparisons"
                raise ValueError(f"{text!r} is not a formula: {told}")
        self.text = text
        self.names = frozenset(each.id for each in ast.walk(tree) if isinstance(each, ast.Name))
        self._code = compile(tree, f"<{text}>", "eval")

    def __call__(self, values: Mapping[str, Any]) -> float:
        """Return its result for named values: a number, or a truth as 1 or 0."""
        found: float = eval(self._code, {"__builtins__": NOTHING_BUILT_IN}, values)
        return found


def _condition(value: object) -> Formula:
    if not isinstance(value, str):
        raise ValueError(f"{value!r} is not a formula: write it in quotes")
    return Formula(value)


def _seconds(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ValueError(f"{value!r} is not a time in seconds")
    formula = Formula(str(value))
    unknown = sorted(formula.names - set(TIMES))
    if unknown:
        raise ValueError(f"no time {', '.join(unknown)}; there are {', '.join(TIMES)}")
    seconds = float(formula(TIMES))
    if not seconds >= 0:
        raise ValueError(f"{value!r} is not a time from 0")
    return seconds


Condition = Annotated[Formula, PlainValidator(_condition)]
Seconds = Annotated[float, PlainValidator(_seconds)]


WRITES = ("write_lost", "write_refused", "writes_refused")
ON_A_PORT = (
    *("reply_lost", "reply_garbled", "reply_late", "reply_foreign", "reply_doubled"),
    *("reply_reordered", "bus_cut", *WRITES),
)
OF_A_SENSOR = ("off", "stuck", "garbage", "wrong", "slow", "delayed", "intermittent")
ON_THE_WHOLE = ("power_dip", "kill", "pause", "clock_jump", "disk_full", "stop_request")
KINDS: Mapping[str, str] = {
    **{f"sensor_{how}": "sensor" for how in OF_A_SENSOR},
    **dict.fromkeys(ON_A_PORT, "port"),
    "contact_stuck": "contact",
    "flow_drift": "flow",
    **dict.fromkeys(ON_THE_WHOLE, ""),
}
"""The kinds of faults that any line can have, and the list of the file that names their targets."""

Weight = Annotated[StrictFloat, Field(gt=0)]
Values = Annotated[tuple[StrictFloat, ...], Field(min_length=1)]


class TableRow(BaseModel):
    """A table of the file; it has no other keys than those named here."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, allow_inf_nan=False, arbitrary_types_allowed=True
    )


def _or_alone(key: str) -> BeforeValidator:
    """Let a row that has this key alone be written as its text."""
    return BeforeValidator(lambda row: {key: row} if isinstance(row, str) else row)


class Place(TableRow):
    """A stage or a port, and how often faults fall on it."""

    name: StrictStr
    weight: Weight = 1.0


PlaceRow = Annotated[Place, _or_alone("name")]


class Sensor(TableRow):
    """A sensor by the plant's name of its part, and the highest value that its garbage reads."""

    name: StrictStr
    garbage: StrictFloat


class Choice(TableRow):
    """One input of a growth.

    Attributes:
        name: Its name in the recipe.
        values: Values, of which one is drawn.
        share: Share of the runs that have it.
        beside: Another input, beside which it is ``at_least`` so large.
        at_least: See ``beside``.
        seldom: Value in a run with a seldom fault, where none was drawn.
    """

    name: StrictStr
    values: Values
    share: Annotated[StrictFloat, Field(gt=0, le=1)] = 1.0
    beside: StrictStr | None = None
    at_least: StrictFloat = 0.0
    seldom: StrictFloat | None = None


class FaultRow(TableRow):
    """A kind of fault that may be drawn; the rows' order belongs to a seed's scenarios.

    Attributes:
        kind: Its name.
        weight: How often it is drawn.
        bites: Stages in which it does harm; more than half of its draws fall there.
        sets: Field of the plant's ``faults``, for a kind that is not in ``KINDS``.
        amounts: Values of the field, of which one is drawn; without any the field becomes true.
        between: Lowest and highest value, instead of ``amounts``.
        lasts_s: Durations, of which one is drawn instead of the usual ones; 0 is for good.
        latches: A line that has energised something must trip while this fault lasts.
    """

    kind: StrictStr
    weight: Weight = 1.0
    bites: tuple[StrictStr, ...] = ()
    sets: StrictStr | None = None
    amounts: tuple[StrictFloat, ...] = ()
    between: tuple[StrictFloat, StrictFloat] | None = None
    lasts_s: tuple[Seconds, ...] = ()
    latches: bool = False


FaultKind = Annotated[FaultRow, _or_alone("kind")]


class Seldom(TableRow):
    """A fault that chance seldom puts where it does harm."""

    kind: StrictStr
    target: StrictStr = ""
    stage: StrictStr


class Apart(TableRow):
    """Two lists of faults that never come together: both ways to one safe state would fail."""

    one: tuple[StrictStr, ...]
    other: tuple[StrictStr, ...]


class MaskCause(TableRow):
    """Faults that put a mask on the line.

    Attributes:
        faults: Patterns of the faults.
        beside: Patterns of other faults, of which one must be there as well.
        mended_by: Patterns of the faults whose end also ends the mask of a pair; all by default.
        for_s: Time until the line must have found the fault.
        stage: The only stage in which a pair counts.
        since: Stage from whose beginning on it counts.
        before: Stage from whose beginning on it no longer counts.
    """

    faults: tuple[StrictStr, ...]
    beside: tuple[StrictStr, ...] = ()
    mended_by: tuple[StrictStr, ...] = ()
    for_s: Seconds = float("inf")
    stage: StrictStr | None = None
    since: StrictStr | None = None
    before: StrictStr | None = None


class Mask(TableRow):
    """A thing that the line cannot see, with its causes and its length.

    Attributes:
        name: Its name.
        after_s: Time by which it outlasts its cause.
        by: Its causes among the faults.
        healed: Condition that ends it earlier, once its cause is over.
        begins: Condition of the plant that puts it on, without a fault.
        ends: Condition that takes such a mask off, ``after_s`` after it has become true.
        leaves: Mask that follows it.
    """

    name: StrictStr
    after_s: Seconds
    by: tuple[MaskCause, ...] = ()
    healed: Condition | None = None
    begins: Condition | None = None
    ends: Condition | None = None
    leaves: StrictStr | None = None


class Harm(TableRow):
    """A rule of this line.

    Attributes:
        name: The harm.
        when: Condition under which it is there.
        allowed_s: How long it may last.
        masks: Masks that make it a demand on hardware instead of a violation.
        counts: Name of a total of the plant; what came under a mask is not counted.
    """

    name: StrictStr
    when: Condition
    allowed_s: Seconds
    masks: tuple[StrictStr, ...] = ()
    counts: StrictStr | None = None


class Way(TableRow):
    """One of the ways to a safe state, which is checked by itself: what stays on, by which port."""

    name: StrictStr
    port: StrictStr
    on: Condition


class Looks(TableRow):
    """The stage that most runs need not finish: a stop request ends it."""

    stage: StrictStr
    after_s: Seconds


class RunRequest(TableRow):
    """The task of a run, as a caller submits it; the drawn recipe is put into ``inputs``.

    Attributes:
        recipe_in: Name of the input that holds the recipe; without it, the inputs are the recipe.
        input_limits: Highest inputs of the search's own approval.
    """

    capability: StrictStr
    capability_version: StrictStr = "1.x"
    intent: StrictStr = "Run while things go wrong"
    gases_allowed: tuple[StrictStr, ...] = ()
    input_limits: dict[str, StrictFloat] = Field(default_factory=dict)
    recipe_in: StrictStr | None = None
    inputs: dict[str, Any] = Field(default_factory=dict)
    constraints: dict[str, Any] = Field(default_factory=dict)
    expected_output: dict[str, Any] | None = None


OF_A_SCENE = (
    *("harness", "latched", "blind", "deaf", "disturbed", "guarded", "used", "silent", "stopped"),
    "watched_port_cut",
)


@dataclass(slots=True)
class Scene:
    """The referee's knowledge beside the plant.

    Attributes:
        harness: ``alive``, ``killed``, ``paused`` or ``gone`` (its run has ended).
        latched: Nothing may be energised before a reset.
        blind: Masks of the line, by name.
        cut: Ports that are cut now.
        deaf: Ports on which a frame may be lost or refused now.
        disturbed: Ports that were deaf since the last mending.
        guarded: A guard is alone with the line and makes it safe, or has reported it safe.
        used: Something was energised since this harness began.
        stopped: A stop was requested.
        silent: Heaters whose thermocouple gives no signal now.
        watched: Ports whose silence must be noticed.
        forgiven: By total of the plant, what was added to it while the line was blind to that.
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
    watched: frozenset[str] = frozenset()
    forgiven: dict[str, float] = field(default_factory=dict)

    @property
    def watched_port_cut(self) -> bool:
        """Whether a port is cut whose silence must be noticed."""
        return bool(self.cut & self.watched)

    def values(self) -> dict[str, Any]:
        """Return the names by which conditions know this."""
        return {name: getattr(self, name) for name in OF_A_SCENE}


class FaultTable(TableRow):
    """All of a faults file.

    Attributes:
        contacts: Contacts in the order of the coils of the plant's part ``relays``.
        flows: Parts whose flow may drift.
        heaters: Parts whose thermocouple may give no signal.
        numbers: Named numbers for the conditions.
        state: Named conditions for the others, evaluated in order; ``energised`` and ``in_use``
            must be there.
        digest: Names of the true values that the digest of a run is made of.
        detail: The true state in a violation's words, with names in braces.
    """

    stage: tuple[PlaceRow, ...] = Field(min_length=1)
    port: tuple[PlaceRow, ...] = Field(min_length=1)
    sensor: tuple[Sensor, ...] = Field(min_length=1)
    recipe: tuple[Choice, ...] = ()
    contacts: tuple[StrictStr, ...] = ()
    flows: tuple[StrictStr, ...] = ()
    heaters: tuple[StrictStr, ...] = ()
    fault: tuple[FaultKind, ...] = Field(min_length=2)
    seldom: tuple[Seldom, ...] = ()
    apart: tuple[Apart, ...] = ()
    mask: tuple[Mask, ...] = ()
    numbers: dict[str, StrictFloat] = Field(default_factory=dict)
    state: dict[str, Condition]
    rule: tuple[Harm, ...] = Field(min_length=1)
    way: tuple[Way, ...] = ()
    looks: Looks | None = None
    request: RunRequest
    digest: tuple[StrictStr, ...]
    detail: StrictStr

    _file_digest: str = PrivateAttr(default="")

    @property
    def file_digest(self) -> str:
        """Digest of the file."""
        return self._file_digest

    @cached_property
    def rows(self) -> Mapping[str, FaultRow]:
        """The rows of the faults, by kind."""
        return {row.kind: row for row in self.fault}

    def targets(self, kind: str) -> tuple[str, ...]:
        """Return the targets that a kind of fault may have; none for a kind without one."""
        named = KINDS.get(kind, "")
        lists: Mapping[str, Sequence[str]] = {
            "sensor": [each.name for each in self.sensor],
            "port": [each.name for each in self.port],
            "contact": self.contacts,
            "flow": self.flows,
        }
        return tuple(lists.get(named, ()))

    def values(self, truth: Mapping[str, Any], scene: Scene) -> dict[str, Any]:
        """Return the named values of a moment, of which the conditions are made."""
        values = {**self.numbers, **truth, **scene.values()}
        for name, forgiven in scene.forgiven.items():
            values[name] -= forgiven
        for name, formula in self.state.items():
            values[name] = formula(values)
        return values


def matches(patterns: Sequence[str], kind: str, target: str) -> bool:
    """Return whether a fault is among patterns such as ``"sensor_* gauge"`` or ``"power_dip"``."""
    named = f"{kind} {target}".rstrip()
    return any(fnmatchcase(named, pattern) for pattern in patterns)


def unknown(name: str, value: object, known: Collection[str]) -> str:
    """Return the words for a name that is not among the known ones."""
    near = did_you_mean(str(value), list(known))
    return f"no {name} {value!r}{near}; there are {', '.join(known)}"


def faults_of(plan: LabPlan) -> FaultTable:
    """Read the faults file of a lab's line, and check it against the lab's plant.

    It stands beside the line's file and has its name with ``.faults.toml``. A line without one
    takes that of its base, and a copy of a line that ships takes the shipped one.

    Raises:
        BadTable: There is none, or it is wrong; the message names all that is wrong.
    """
    where, text = _text_of(plan)
    table = read_table(FaultTable, text, where)
    with closing(VirtualLoop()) as loop:
        sim_lab = SimulatedLab(plan.file, Clock(loop), Chance(0), nominal=True)
        wrong = list(dict.fromkeys(_wrong(table, sim_lab)))
    if wrong:
        raise BadTable(f"{where}: {'; '.join(wrong)}")
    table._file_digest = digest_of(text.encode())
    return table


def _text_of(plan: LabPlan) -> tuple[str, str]:
    named, beside = plan.file.lab.line, plan.path.parent
    names: list[str] = []
    for _ in range(2):  # the line's own, and that of its base
        own = beside / named if named.endswith(".toml") else None
        names.append(f"{Path(named).name.removesuffix('.toml')}.faults.toml")
        if own is not None and own.with_name(names[-1]).is_file():
            return names[-1], read_text(own.with_name(names[-1]))
        try:
            return names[-1], shipped_file(f"lines/{names[-1]}").read_text("utf-8")
        except LookupError:
            line = own or shipped_file(f"lines/{named}.toml")
        base = base_of(line.read_text("utf-8"), str(line))
        if base is None:
            break
        named = base
    raise BadTable(f"{plan.path}: its line has no faults file: {' or '.join(names)}")


def _wrong(table: FaultTable, sim_lab: SimulatedLab) -> Iterator[str]:
    """Name all names that stand for nothing."""
    plant = sim_lab.plant
    yield from _strange("port", (each.name for each in table.port), sim_lab.buses)
    parts = (*table.flows, *table.heaters)
    yield from _strange("part", parts, plant.parts)
    for row in table.fault:
        if row.kind not in KINDS and row.sets is None:
            yield f"fault {row.kind!r}: {unknown('kind', row.kind, KINDS)}, or name what it sets"
        if row.sets is not None and not hasattr(plant.faults, row.sets):
            yield f"fault {row.kind!r}: the plant's faults have no field {row.sets!r}"
        if row.kind in KINDS and KINDS[row.kind] and not table.targets(row.kind):
            yield f"fault {row.kind!r}: there is no {KINDS[row.kind]} that it could hit"
    stages = [each.name for each in table.stage]
    causes = [cause for mask in table.mask for cause in mask.by]
    yield from _strange("stage", _stages_in(table, causes), stages)
    known = [
        f"{row.kind} {target}".rstrip()
        for row in table.fault
        for target in table.targets(row.kind) or ("",)
    ]
    for pattern in _patterns_in(table, causes):
        if not any(fnmatchcase(each, pattern) for each in known):
            yield f"no fault is {pattern!r}"
    masks = [each.name for each in table.mask]
    yield from _strange("mask", (each for row in table.rule for each in row.masks), masks)
    yield from _strange("mask", (row.leaves for row in table.mask if row.leaves), masks)
    yield from _strange("port", (row.port for row in table.way), sim_lab.buses)
    yield from _strange("state", ("energised", "in_use"), table.state)
    yield from _formulas(table, plant.truth())


def _strange(
    what: str, names: Iterator[str] | Sequence[str], known: Collection[str]
) -> Iterator[str]:
    for name in names:
        if name not in known:
            yield unknown(what, name, known)


def _stages_in(table: FaultTable, causes: Sequence[MaskCause]) -> Iterator[str]:
    yield from (stage for row in table.fault for stage in row.bites)
    yield from (row.stage for row in table.seldom)
    named = ((each.stage, each.since, each.before) for each in causes)
    yield from (stage for three in named for stage in three if stage is not None)
    if table.looks is not None:
        yield table.looks.stage


def _patterns_in(table: FaultTable, causes: Sequence[MaskCause]) -> Iterator[str]:
    yield from (f"{row.kind} {row.target}".rstrip() for row in table.seldom)
    for apart in table.apart:
        yield from (*apart.one, *apart.other)
    for each in causes:
        yield from (*each.faults, *each.beside, *each.mended_by)


def _formulas(table: FaultTable, truth: Mapping[str, Any]) -> Iterator[str]:
    """Try every condition once, on the state in which the plant begins."""
    values: dict[str, Any] = {**table.numbers, **truth, **Scene().values()}
    of_masks = (
        (row.name, each)
        for row in table.mask
        for each in (row.healed, row.begins, row.ends)
        if each
    )
    of_rules = ((row.name, row.when) for row in table.rule)
    of_ways = ((row.name, row.on) for row in table.way)
    for name, formula in (*table.state.items(), *of_rules, *of_ways, *of_masks):
        missing = sorted(formula.names - set(values))
        yield from (f"{name}: {unknown('value', each, sorted(values))}" for each in missing)
        if missing:
            continue
        try:
            result = formula(values)
        except TypeError as why:
            yield f"{name}: {formula.text!r}: {why}"
        else:
            if name in table.state:
                values[name] = result
    counted = [row.counts for row in table.rule if row.counts is not None]
    yield from _strange("true value", (*table.digest, *counted), truth)
    try:
        table.detail.format_map(values)
    except (LookupError, ValueError, TypeError) as why:
        yield f"detail: {table.detail!r}: {type(why).__name__} {why}"
