"""The faults file of a line, read and checked against the line's plant.

``docs/reference/fault-search.md`` tells how to write one.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path
from typing import Any

from pydantic import Field, PrivateAttr, StrictFloat, StrictStr

from labharness.chaos.fault_rows import (
    KINDS,
    Apart,
    Choice,
    FaultKind,
    FaultRow,
    Harm,
    Looks,
    Mask,
    MaskCause,
    PlaceRow,
    RunRequest,
    Seldom,
    Sensor,
    TableRow,
    Way,
)
from labharness.chaos.formula import Condition, Formula
from labharness.chaos.scene import Scene
from labharness.core.clock import Chance, Clock, VirtualLoop
from labharness.core.files.tables import BadTable, read_table
from labharness.core.vocabulary.digests import digest_of
from labharness.core.vocabulary.spelling import did_you_mean
from labharness.lab.config.envelope_patch import base_of
from labharness.lab.config.kinds import shipped_file
from labharness.lab.config.lab_file import read_text
from labharness.lab.config.lab_plan import LabPlan
from labharness.lab.wiring.simulated_lab import SimulatedLab


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
    rows = (f"{row.kind} {target}".rstrip() for row in table.fault for target in _ends(table, row))
    known = list(rows)
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


def _ends(table: FaultTable, row: FaultRow) -> tuple[str, ...]:
    return table.targets(row.kind) or ("",)


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
    named: list[tuple[str, Formula | None]] = list(table.state.items())
    named += [(row.name, row.when) for row in table.rule] + [
        (row.name, row.on) for row in table.way
    ]
    named += [(row.name, each) for row in table.mask for each in (row.healed, row.begins, row.ends)]
    for name, formula in named:
        if formula is None:
            continue
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
