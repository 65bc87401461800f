"""An instruction set as MCP-CP writes it: read, its loops unrolled, and refused before it runs.

Two fields are ours (MCP-CP 10.3): ``recovery`` of an instruction, and loops. A loop stands in the
place of an instruction: ``{"instructionId", "over", "instructions", "dependencies"}``. ``over`` has
the values of each name, as an array or as ``{"from", "to", "points"}`` (a single point is
``from``); the last name changes fastest. Its instructions are repeated for each combination as
``<id>_<number>``, with ``${name}`` filled in. An instruction that depends on the loop depends on
all of them.
"""

import itertools
import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final, NamedTuple

import msgspec
from msgspec.structs import replace

from labharness.core.vocabulary.spelling import did_you_mean
from labharness.protocols.mcp_cp.parts import INSTRUCTIONS_MAX, TIMEOUT_S_MAX
from labharness.protocols.strict_json import Json
from labharness.work.plan.actions import ActionSchema, misfit, parts_of
from labharness.work.plan.instructions import (
    ExecutionMode,
    Instruction,
    InstructionKind,
    InstructionSet,
    ResumePoint,
    at_end,
    in_text,
    without_references,
)
from labharness.work.plan.recovery import BadInstruction, Recovery

TIMEOUT_S: Final = 3600.0
"""Longest time of an instruction for which neither it nor its set states one, in seconds."""

LOOPS_MAX: Final = 4
"""Most loops within each other."""

EDGES_MAX: Final = 100_000
"""Most dependencies of all instructions of a set together, those on each one of a loop counted."""

CHARACTERS_MAX: Final = 4_000_000
"""Longest set once its loops are unrolled, in bytes of its JSON: about 4 MB."""

_NUMBER_CHARACTERS: Final = 25
"""Longest number that a sweep fills in, in characters."""

_PLACE: Final = re.compile(r"\$\{([A-Za-z_]\w*)\}")
_IN_TEXT: Final = re.compile(r"(?<=\$\{)(dependencies|results)\.([\w-]+)")
_QUOTED: Final = re.compile(r"'(?:[^']|'')*'")
_IN_CONDITION: Final = re.compile(r"'(?:[^']|'')*'|(?<![\w.-])(dependencies|results)\.([\w-]+)")


_Seconds = Annotated[float, msgspec.Meta(le=TIMEOUT_S_MAX)]


class _Strict(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    pass


class _Sweep(_Strict):
    start: float = msgspec.field(name="from")
    to: float
    points: Annotated[int, msgspec.Meta(ge=1)]


_Values = Annotated[list[int | float | str | bool], msgspec.Meta(min_length=1)] | _Sweep


class _Item(_Strict):
    instruction_id: str
    action: str = ""
    parameters: dict[str, Any] = {}
    dependencies: tuple[str, ...] = ()
    condition: str = ""
    timeout: _Seconds | None = None
    recovery: Recovery | None = None
    metadata: dict[str, Any] = {}
    over: dict[str, _Values] | None = None
    instructions: tuple["_Item", ...] = ()


class _Content(_Strict):
    instructions: tuple[_Item, ...]
    execution_mode: ExecutionMode = ExecutionMode.SEQUENTIAL
    timeout: _Seconds | None = None
    goes_on: bool = False


class _About(msgspec.Struct, rename="camel"):
    """Our part of ``metadata``, where others may write more."""

    stage: str = ""
    description: str = ""
    expected_duration: float = 0.0
    holdable: bool = True
    checkpoint: ResumePoint | None = None


def read_set(content: Mapping[str, Any], actions: Mapping[str, ActionSchema]) -> InstructionSet:
    """Return the set in the content of an MCP-CP instruction message.

    Args:
        content: As JSON has it; the codec has moved unknown fields under ``metadata``.
        actions: The actions that its instructions may name.

    Raises:
        BadInstruction: It cannot be carried out; nothing of it was.
    """
    try:
        return _read(msgspec.convert(content, _Content), actions)
    except (msgspec.ValidationError, RecursionError) as why:
        raise BadInstruction("instruction.form", why=str(why)) from None


def _read(read: _Content, actions: Mapping[str, ActionSchema]) -> InstructionSet:
    size = _size(read.instructions, 0)
    if size.steps > INSTRUCTIONS_MAX:
        raise BadInstruction("instruction.many", count=size.steps, most=INSTRUCTIONS_MAX)
    _check_edges(size.edges)
    if size.characters > CHARACTERS_MAX:
        raise BadInstruction("instruction.long", count=size.characters, most=CHARACTERS_MAX)
    made: dict[str, tuple[str, ...]] = {}
    flat = list(_unrolled(read.instructions, _Scope((), "", {}), made))
    if doubled := [each.instruction_id for each in flat if each.instruction_id in made]:
        raise BadInstruction("instruction.twice", name=doubled[0])
    _check_edges(sum(len(made.get(need, (need,))) for each in flat for need in each.dependencies))
    steps = tuple(_instruction(each, made, read.timeout, actions) for each in flat)
    whole = InstructionSet(steps, read.execution_mode, None, read.goes_on)
    if read.timeout is not None and read.timeout != whole.limit_s():
        whole = InstructionSet(steps, read.execution_mode, read.timeout, read.goes_on)
    _check_mode(whole, steps)
    _check_results(steps, actions)
    return whole


# ---- loops


@dataclass(frozen=True, slots=True)
class _Scope:
    """A body of instructions: the ids in it and around it, its suffix, and the values of names."""

    around: tuple[tuple[frozenset[str], str], ...]
    suffix: str
    values: Mapping[str, Any]

    def id_of(self, name: str) -> str:
        """Return the id that a name has here."""
        return name + next((suffix for ids, suffix in self.around if name in ids), "")

    def filled(self, value: Json) -> Json:
        """Return parameters with the values of this round, and the ids that names have here."""
        if isinstance(value, dict):
            return {name: self.filled(each) for name, each in value.items()}
        if isinstance(value, list):
            return [self.filled(each) for each in value]
        if not isinstance(value, str):
            return value
        whole = _PLACE.fullmatch(value)
        if whole and whole[1] in self.values:
            return self.values[whole[1]]
        return self._renamed(_IN_TEXT, _PLACE.sub(lambda found: self._text(found, in_text), value))

    def condition(self, text: str, name: str) -> str:
        """Return the condition of an instruction with the values of this round as its literals."""
        for quoted in _QUOTED.findall(text):
            for place in _PLACE.findall(quoted):
                if place in self.values:
                    raise BadInstruction("loop.quoted", name=name, place=place)
        filled = _PLACE.sub(lambda found: self._text(found, _written), text)
        return self._renamed(_IN_CONDITION, filled)

    def _text(self, found: re.Match[str], written: Callable[[Json], str]) -> str:
        return written(self.values[found[1]]) if found[1] in self.values else found[0]

    def _renamed(self, names: re.Pattern[str], text: str) -> str:
        return names.sub(
            lambda found: f"{found[1]}.{self.id_of(found[2])}" if found[1] else found[0], text
        )


def _written(value: float | str | bool) -> str:
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    return json.dumps(value)


class _Size(NamedTuple):
    """Size of items: instructions, dependencies as they are written, and bytes of JSON."""

    steps: int
    edges: int
    characters: int


def _size(items: Iterable[_Item], depth: int, longest: int = 0) -> _Size:
    """Return the size of items; none of them is made yet.

    Args:
        items: Instructions and loops.
        depth: The number of loops around them.
        longest: Most characters that a name of those loops has as its value.
    """
    if depth > LOOPS_MAX:
        raise BadInstruction("loop.deep", most=LOOPS_MAX)
    steps = edges = characters = 0
    for each in items:
        if each.over is None:
            written = msgspec.json.encode(each)
            steps, edges = steps + 1, edges + len(each.dependencies)
            characters += len(written) + written.count(b"${") * longest
            continue
        rounds = math.prod(map(_rounds, each.over.values()))
        widest = max((longest, *map(_longest, each.over.values())))
        inside = _size(each.instructions, depth + 1, widest)
        made, needs = rounds * max(inside.steps, 1), msgspec.json.encode(each.dependencies)
        steps, edges = steps + made, edges + rounds * inside.edges + made * len(each.dependencies)
        characters += rounds * inside.characters + made * len(needs)
    return _Size(steps, edges, characters)


def _check_edges(count: int) -> None:
    if count > EDGES_MAX:
        raise BadInstruction("instruction.edges", count=count, most=EDGES_MAX)


def _longest(values: Sequence[Any] | _Sweep) -> int:
    if isinstance(values, _Sweep):
        return _NUMBER_CHARACTERS
    return max(len(msgspec.json.encode(each)) for each in values)


def _rounds(values: Sequence[Any] | _Sweep) -> int:
    return values.points if isinstance(values, _Sweep) else len(values)


def _values(values: Sequence[Any] | _Sweep) -> Sequence[Any]:
    if not isinstance(values, _Sweep):
        return values
    steps, width = values.points - 1, values.to - values.start
    points = [values.start + width * each / steps for each in range(steps)]
    return [*points, values.to if points else values.start]  # never just beside its end


def _unrolled(
    items: Sequence[_Item], outer: _Scope, made: dict[str, tuple[str, ...]]
) -> Iterator[_Item]:
    """Return the instructions that items come to; enter those of each loop in ``made``."""
    ids = frozenset(each.instruction_id for each in items)
    scope = _Scope(((ids, outer.suffix), *outer.around), outer.suffix, outer.values)
    for item in items:
        name = item.instruction_id + outer.suffix
        needs = tuple(map(scope.id_of, item.dependencies))
        only = _Item(  # the fields of a loop
            item.instruction_id,
            dependencies=item.dependencies,
            metadata=item.metadata,
            over=item.over,
            instructions=item.instructions,
        )
        if item.over is None and not item.instructions:
            recovery = item.recovery
            if recovery is not None and (other := recovery.fallback) is not None:
                there = replace(other, parameters=scope.filled(other.parameters))
                recovery = replace(recovery, fallback=there)
            yield replace(
                item,
                instruction_id=name,
                dependencies=needs,
                parameters=scope.filled(item.parameters),
                condition=scope.condition(item.condition, name),
                recovery=recovery,
            )
            continue
        if item != only or not (item.over and item.instructions):
            raise BadInstruction("loop.form", name=name)
        inside: list[_Item] = []
        for number, row in enumerate(itertools.product(*map(_values, item.over.values())), 1):
            values = {**scope.values, **dict(zip(item.over, row, strict=True))}
            round_ = _Scope(scope.around, f"{outer.suffix}_{number}", values)
            inside += _unrolled(item.instructions, round_, made)
        if name in made:
            raise BadInstruction("instruction.twice", name=name)
        made[name] = tuple(each.instruction_id for each in inside)
        for each in inside:
            yield replace(each, dependencies=(*needs, *each.dependencies))


# ---- what is refused before anything runs


def _instruction(
    item: _Item,
    made: Mapping[str, tuple[str, ...]],
    set_s: float | None,
    actions: Mapping[str, ActionSchema],
) -> Instruction:
    name, other = item.instruction_id, item.recovery and item.recovery.fallback
    kind = _kind(name, item.action, item.parameters, actions)
    if other and _kind(name, other.action, other.parameters, actions) is not kind:
        raise BadInstruction("recovery.kind", name=name, kind=kind, action=other.action)
    needs = itertools.chain.from_iterable(made.get(each, (each,)) for each in item.dependencies)
    about = msgspec.convert(item.metadata, _About)
    return Instruction(
        instruction_id=name,
        action=item.action,
        kind=kind,
        parameters=item.parameters,
        dependencies=tuple(dict.fromkeys(needs)),
        condition=item.condition,
        recovery=item.recovery,
        timeout_s=next(each for each in (item.timeout, set_s, TIMEOUT_S) if each is not None),
        stage=printable(about.stage),
        description=printable(about.description),
        expected_s=about.expected_duration,
        holdable=about.holdable,
        checkpoint=about.checkpoint,
    )


def printable(text: str) -> str:
    """Return words of a caller without what would draw on a terminal."""
    return "".join(each if each.isprintable() else "\N{REPLACEMENT CHARACTER}" for each in text)


def _kind(
    name: str, action: str, parameters: Mapping[str, Any], actions: Mapping[str, ActionSchema]
) -> InstructionKind:
    """Return the kind of an action, whose parameters fit as far as they are known."""
    found = actions.get(action)
    if found is None:
        meant, known = did_you_mean(action, actions), list(actions)
        raise BadInstruction(
            "instruction.no_action", name=name, action=action[:80], meant=meant, known=known
        )
    for part in parts_of(parameters):
        keys = [key for key in part if "${" in key] if isinstance(part, Mapping) else []
        if isinstance(part, str) and "${" in without_references(part):
            keys.append(part)
        for text in keys:  # nothing is filled in there
            raise BadInstruction("instruction.no_reference", name=name, text=text[:80])
    if found.kind is InstructionKind.OPERATION:
        check_bounds(name, parameters)
    if why := misfit(found, parameters, filled=False):
        raise BadInstruction("instruction.misfit", name=name, why=why)
    return found.kind


def check_bounds(name: str, parameters: Mapping[str, Any]) -> None:
    """Refuse a reference in a physical action that is not a number within bounds (ruling 47)."""
    for part in parts_of(at_end(parameters, "min")):
        if isinstance(part, str) and without_references(part) != part:
            raise BadInstruction("instruction.bounds", name=name, text=part[:80])


def _check_results(steps: Sequence[Instruction], actions: Mapping[str, ActionSchema]) -> None:
    """Refuse a path into a result that its action does not give (ruling 36)."""
    ways = {each.instruction_id: {action for action, _ in each.ways()} for each in steps}
    for each in steps:
        for other, path in sorted(each.results_taken()):
            for known in (actions[action].results for action in sorted(ways[other])):
                if known is not None and path not in ("", *known):
                    name, what = each.instruction_id, path[:80]
                    raise BadInstruction(
                        "instruction.no_result", name=name, other=other, path=what, known=known
                    )


def _check_mode(whole: InstructionSet, written: tuple[Instruction, ...]) -> None:
    """Refuse an order of the list that dependencies contradict, and what has nothing to decide."""
    if whole.mode is ExecutionMode.SEQUENTIAL:
        for here, due in zip(written, whole.instructions, strict=True):
            if here != due:
                raise BadInstruction("instruction.order", name=here.instruction_id)
    if whole.mode is ExecutionMode.CONDITIONAL:
        for each in written:
            if not (each.condition or each.dependencies):
                raise BadInstruction("instruction.undecided", name=each.instruction_id)
