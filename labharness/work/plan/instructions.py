"""Instructions and the set they make: checked when made, ordered, and written as MCP-CP does."""

import graphlib
import heapq
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from labharness.core.errors import LabError
from labharness.core.vocabulary.digests import digest_of
from labharness.core.vocabulary.texts import Text
from labharness.protocols.mcp_cp.conditions import ROOTS, BadCondition, Condition, condition_of
from labharness.protocols.mcp_cp.parts import INSTRUCTIONS_MAX
from labharness.protocols.strict_json import Json
from labharness.work.plan.recovery import BadInstruction, Otherwise, Recovery

INDEX_DIGITS_MAX = 9
"""Most digits of a place in an array; Python reads no number of thousands of them."""

_ID = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")
_REFERENCE = re.compile(r"\$\{(?:dependencies|results)\.([A-Za-z0-9_-]+)\.result((?:\.[\w-]+)*)\}")
_BOUNDED = {"from", "min", "max"}
"""The keys of a number that a reference fills in within bounds."""


class OutOfBounds(LabError, LookupError, code="out_of_bounds"):
    """A result that is not a number within the bounds of the parameter that it fills in."""


class InstructionKind(StrEnum):
    """The purpose of an instruction (MCP-CP 5.2)."""

    QUERY = "QUERY"
    OPERATION = "OPERATION"
    GENERATION = "GENERATION"
    ANALYSIS = "ANALYSIS"
    DECISION = "DECISION"


class ExecutionMode(StrEnum):
    """The order of a set (MCP-CP 5.3)."""

    SEQUENTIAL = "SEQUENTIAL"
    PARALLEL = "PARALLEL"
    CONDITIONAL = "CONDITIONAL"


@dataclass(frozen=True, slots=True, kw_only=True)
class ResumePoint:
    """The declaration that a later run may go on after an instruction: a cold or safe point.

    Attributes:
        description: One sentence for people.
        holds: Lowest and highest reading of each channel with which it may; ``None`` for
            an open end.
        again: Earlier instructions that are then carried out once more before the next one: a
            later run begins in the safe state of the line.
    """

    description: str
    holds: Mapping[str, tuple[float | None, float | None]] = field(default_factory=dict)
    again: tuple[str, ...] = ()

    def missed(self, readings: Mapping[str, float]) -> tuple[str, ...]:
        """Return the channels whose readings are out of bounds, or missing."""
        return tuple(
            channel
            for channel, (low, high) in self.holds.items()
            if not (
                (-math.inf if low is None else low)
                <= readings.get(channel, math.nan)
                <= (math.inf if high is None else high)
            )
        )

    def to_json(self) -> dict[str, Any]:
        """Return it as a JSON object."""
        return {
            "description": self.description,
            "holds": {channel: list(bounds) for channel, bounds in self.holds.items()},
            "again": list(self.again),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Instruction:
    """One step of a plan.

    Attributes:
        instruction_id: Its name in the set.
        action: The verb that carries it out.
        parameters: Input of the verb; a string may refer to a result that this one depends on,
            as ``${dependencies.<id>.result.<path>}`` or ``${results.<id>.result.<path>}``, and
            ``{"from": <such a string>, "min": ..., "max": ...}`` to a number within bounds.
        dependencies: Instructions that must be completed before.
        condition: It is carried out only where this is true; ``""`` for always.
        recovery: The ways on where it fails; ``None`` for none.
        timeout_s: Longest time it may take, in lab time.
        stage: The phase of the run it belongs to.
        description: One sentence for people.
        expected_s: Expected time, as far as the planner knows.
        holdable: The line may stand still in it; false where gas runs into a shut tube.
        checkpoint: Stated where a later run may go on after it.

    Raises:
        BadInstruction: The id, the timeout, the parameters or the condition cannot be; the
            message says which.
    """

    instruction_id: str
    action: str
    timeout_s: float
    kind: InstructionKind = InstructionKind.OPERATION
    parameters: Mapping[str, Any] = field(default_factory=dict)
    dependencies: tuple[str, ...] = ()
    condition: str = ""
    recovery: Recovery | None = None
    stage: str = ""
    description: str = ""
    expected_s: float = 0.0
    holdable: bool = True
    checkpoint: ResumePoint | None = None

    def __post_init__(self) -> None:
        if not _ID.fullmatch(self.instruction_id):
            raise BadInstruction("instruction.id", name=self.instruction_id)
        name = self.instruction_id
        if not (math.isfinite(self.timeout_s) and self.timeout_s > 0):
            raise BadInstruction("instruction.timeout", name=name, timeout_s=self.timeout_s)
        try:
            json.dumps(self._filled(), allow_nan=False)
        except (TypeError, ValueError) as why:
            raise BadInstruction("instruction.not_json", name=name, why=str(why)) from None
        if strangers := self.references() - set(self.dependencies):
            raise BadInstruction("instruction.stranger", name=name, other=min(strangers))
        try:
            parsed = self.parsed_condition()
        except BadCondition as why:
            raise BadInstruction("instruction.condition", name=name, why=str(why)) from None
        for path in () if parsed is None else parsed.paths:
            if len(path) < 3 or path[0] not in ROOTS or path[1] not in self.dependencies:
                raise BadInstruction("instruction.path", name=name, path=".".join(path))

    def references(self) -> set[str]:
        """Return the ids whose results the parameters refer to."""
        return references(self._filled())

    def results_taken(self) -> set[tuple[str, str]]:
        """Return each result that parameters and condition take: an id, and the path in it."""
        written = json.dumps(self._filled(), ensure_ascii=False)
        parsed = self.parsed_condition()
        asked = () if parsed is None else (each for each in parsed.paths if each[2] == "result")
        filled = ((name, path.removeprefix(".")) for name, path in _REFERENCE.findall(written))
        return {*filled, *((each[1], ".".join(each[3:])) for each in asked)}

    def ways(self) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """Return each action that it may come to, with parameters: its own, and its fall-back.

        A number within bounds is at its ``min``, and once more at its ``max``.
        """
        other = self.recovery and self.recovery.fallback
        for each in (self, other) if other else (self,):
            low, high = at_end(each.parameters, "min"), at_end(each.parameters, "max")
            yield each.action, low
            if high != low:
                yield each.action, high

    def parsed_condition(self) -> Condition | None:
        """Return its condition; ``None`` where it has none."""
        return condition_of(self.condition) if self.condition else None

    def comparisons(self) -> frozenset[str]:
        """Return the parts of its condition that results decide."""
        parsed = self.parsed_condition()
        return frozenset() if parsed is None else parsed.decisions()

    def has_range(self) -> bool:
        """Return whether a parameter is a number within bounds."""
        return bool(at_end(self.parameters, "min") != at_end(self.parameters, "max"))

    def one_way(self, truths: Mapping[str, bool], end: str | None) -> "Instruction":
        """Return it with its comparisons decided, and its numbers within bounds at one end."""
        condition, parsed = self.condition, self.parsed_condition()
        if parsed is not None and parsed.decisions():
            condition = parsed.decided(truths)
        parameters = self.parameters if end is None else at_end(self.parameters, end)
        return replace(self, condition=condition, parameters=parameters)

    def outlives_a_failure(self) -> bool:
        """Return whether it may begin after a failure, or others as if it had not failed."""
        recovery, parsed = self.recovery, self.parsed_condition()
        ends = (Otherwise.SKIP, Otherwise.PARTIAL)
        recovers = recovery is not None and (recovery.fallback or recovery.otherwise in ends)
        return bool(recovers) or (parsed is not None and parsed.may_follow_a_failure())

    def _filled(self) -> tuple[Mapping[str, Any], ...]:
        """Return all parameters in which references are filled in."""
        other = self.recovery and self.recovery.fallback
        return (self.parameters, *((other.parameters,) if other else ()))

    def to_json(self) -> dict[str, Any]:
        """Return the instruction in the words of MCP-CP; what it has no word for is metadata."""
        return {
            "instructionId": self.instruction_id,
            "action": self.action,
            "parameters": dict(self.parameters),
            "dependencies": list(self.dependencies),
            **({"condition": self.condition} if self.condition else {}),
            "timeout": self.timeout_s,
            **({} if self.recovery is None else {"recovery": self.recovery.to_json()}),
            "metadata": {
                "kind": self.kind.value,
                "stage": self.stage,
                "description": self.description,
                "expectedDuration": self.expected_s,
                "holdable": self.holdable,
                **({} if self.checkpoint is None else {"checkpoint": self.checkpoint.to_json()}),
            },
        }


@dataclass(frozen=True, slots=True)
class InstructionSet:
    """Instructions in the order in which they are carried out: dependencies first.

    Instructions that do not depend on each other keep the order they are given in.

    Attributes:
        mode: The order beside the dependencies.
        timeout_s: Longest time of the whole set, in lab time; ``None`` for the sum of all.
        goes_on: After an operation that failed, others that do not depend on it begin all the same
            (ruling 28); not in SEQUENTIAL.

    Raises:
        BadInstruction: An id is there twice or is not there, or instructions wait for each other.
    """

    instructions: tuple[Instruction, ...]
    mode: ExecutionMode = ExecutionMode.SEQUENTIAL
    timeout_s: float | None = None
    goes_on: bool = False

    def __post_init__(self) -> None:
        if len(self.instructions) > INSTRUCTIONS_MAX:
            count = len(self.instructions)
            raise BadInstruction("instruction.many", count=count, most=INSTRUCTIONS_MAX)
        if self.timeout_s is not None and not (
            math.isfinite(self.timeout_s) and self.timeout_s > 0
        ):
            raise BadInstruction("instruction.timeout", name="", timeout_s=self.timeout_s)
        if self.goes_on and self.mode is ExecutionMode.SEQUENTIAL:
            raise BadInstruction("instruction.goes_on")
        known: set[str] = set()
        for each in self.instructions:
            if each.instruction_id in known:
                raise BadInstruction("instruction.twice", name=each.instruction_id)
            known.add(each.instruction_id)
        for each in self.instructions:
            for needed in each.dependencies:
                if needed not in known:
                    name = each.instruction_id
                    raise BadInstruction("instruction.no_such", name=name, other=needed)
        object.__setattr__(self, "instructions", _ordered(self.instructions))
        before: set[str] = set()
        for each in self.instructions:
            before.add(each.instruction_id)
            again = () if each.checkpoint is None else each.checkpoint.again
            if strangers := set(again) - before:
                name = each.instruction_id
                raise BadInstruction("instruction.again", name=name, other=min(strangers))

    def to_json(self) -> dict[str, Any]:
        """Return the content of an MCP-CP instruction message."""
        return {
            "instructions": [each.to_json() for each in self.instructions],
            "executionMode": self.mode.value,
            "timeout": self.limit_s(),
            **({"goesOn": True} if self.goes_on else {}),
        }

    def limit_s(self) -> float:
        """Return the longest time that the whole set may take."""
        if self.timeout_s is not None:
            return self.timeout_s
        return sum(each.timeout_s for each in self.instructions)

    def is_plain(self) -> bool:
        """Return whether it is a chain that ends with its first failure, without conditions."""
        return (self.mode, self.timeout_s) == (ExecutionMode.SEQUENTIAL, None) and not any(
            each.condition or each.recovery for each in self.instructions
        )

    def digest(self) -> str:
        """Return ``sha256:<hex>`` over the canonical JSON: what an approval is bound to."""
        text = json.dumps(self.to_json(), sort_keys=True, separators=(",", ":"), allow_nan=False)
        return digest_of(text.encode())


def references(parameters: object) -> set[str]:
    """Return the ids whose results some parameters refer to."""
    written = json.dumps(parameters, ensure_ascii=False)  # as the names in paths are
    return {name for name, _ in _REFERENCE.findall(written)}


def resolve(value: object, results: Mapping[str, Mapping[str, Any]]) -> Json:
    """Put results in the place of references; a string that is one reference keeps the type.

    Raises:
        LookupError: A result has nothing under that path, or a number that is out of its bounds.
    """
    if isinstance(value, str):
        whole = _REFERENCE.fullmatch(value)
        if whole:
            return _found(whole, results)
        if not _REFERENCE.search(value):
            return value
        return _REFERENCE.sub(lambda match: in_text(_found(match, results)), value)
    if isinstance(value, Mapping):
        if is_bounded(value):
            return _within(resolve(value["from"], results), value)
        return {key: resolve(each, results) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [resolve(each, results) for each in value]
    return value


def in_text(value: object) -> str:
    """Return a value of JSON as it stands inside a text: a text as it is, all else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def is_reference(value: object) -> bool:
    """Return whether a value is a string that a result replaces as a whole."""
    return isinstance(value, str) and _REFERENCE.fullmatch(value) is not None


def is_bounded(value: object) -> bool:
    """Return whether a value is a reference to a number within bounds."""
    if not (isinstance(value, Mapping) and value.keys() == _BOUNDED):
        return False
    low, high = value["min"], value["max"]
    return is_reference(value["from"]) and {type(low), type(high)} <= {int, float} and low <= high


def at_end(value: Json, end: str) -> Json:
    """Return parameters in which each number within bounds is at its ``min`` or its ``max``."""
    if isinstance(value, Mapping):
        if is_bounded(value):
            return value[end]
        return {name: at_end(each, end) for name, each in value.items()}
    return [at_end(each, end) for each in value] if isinstance(value, list | tuple) else value


def without_references(text: str) -> str:
    """Return a text without its references."""
    return _REFERENCE.sub("", text)


def _within(found: object, bounds: Mapping[str, Any]) -> object:
    number = isinstance(found, int | float) and not isinstance(found, bool)
    if not (number and bounds["min"] <= found <= bounds["max"]):
        low, high, shown = bounds["min"], bounds["max"], repr(found)[:80]
        raise OutOfBounds(
            Text("instruction.outside", where=bounds["from"], found=shown, low=low, high=high)
        )
    return found


def _found(match: re.Match[str], results: Mapping[str, Mapping[str, Any]]) -> object:
    found: object = results.get(match[1])
    for name in match[2].split(".")[1:]:
        if isinstance(found, list | tuple):
            index = int(name) if name.isdecimal() and len(name) <= INDEX_DIGITS_MAX else len(found)
            found = found[index] if index < len(found) else None
        else:
            found = found.get(name) if isinstance(found, Mapping) else None
    if found is None:
        raise LookupError(f"{match[0]} leads to nothing")
    return found


def _ordered(instructions: Sequence[Instruction]) -> tuple[Instruction, ...]:
    """Put dependencies first; otherwise keep the order."""
    place = {each.instruction_id: index for index, each in enumerate(instructions)}
    graph = {
        index: [place[name] for name in each.dependencies]
        for index, each in enumerate(instructions)
    }
    sorter = graphlib.TopologicalSorter(graph)
    try:
        sorter.prepare()
    except graphlib.CycleError as why:
        loop = why.args[1][:0:-1]  # each waits for the next one, and the last for the first
        first = loop.index(min(loop))
        path = [*loop[first:], *loop[: first + 1]]
        names = [instructions[index].instruction_id for index in path]
        raise BadInstruction("instruction.loop", path=" -> ".join(names)) from None
    ready: list[int] = []
    order: list[int] = []
    while sorter:
        for index in sorter.get_ready():
            heapq.heappush(ready, index)
        order.append(heapq.heappop(ready))
        sorter.done(order[-1])
    return tuple(instructions[index] for index in order)
