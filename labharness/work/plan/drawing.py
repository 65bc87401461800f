"""Drawings of a set as its graph: nodes are instructions, edges are dependencies (MCP-CP 6.4)."""

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from labharness.work.plan.instructions import Instruction, InstructionKind, InstructionSet

_SHAPES: Final = {
    InstructionKind.QUERY: ('(["', '"])'),
    InstructionKind.OPERATION: ('["', '"]'),
    InstructionKind.DECISION: ('{"', '"}'),
}
_ROUND: Final = ('("', '")')
_ESCAPES: Final = str.maketrans({"#": "#35;", '"': "#quot;", "<": "#lt;", ">": "#gt;"})


def as_text(plan: InstructionSet) -> Iterator[str]:
    """Return a line for each instruction: its depth, itself, and those that it depends on."""
    depths: dict[str, int] = {}
    width = max((len(each.instruction_id) for each in plan.instructions), default=0)
    for each in plan.instructions:
        depth = 1 + max((depths[name] for name in each.dependencies), default=0)
        depths[each.instruction_id] = depth
        needs = f"  <- {', '.join(each.dependencies)}" if each.dependencies else ""
        more = f"  if {_condition(each)}" if each.condition else ""
        yield f"{depth:>4}  {each.instruction_id:{width}}  {each.action}{needs}{more}"


def as_mermaid(plan: InstructionSet) -> Iterator[str]:
    """Return the lines of a flowchart, which browsers, editors and forges draw."""
    nodes = {each.instruction_id: f"n{at}" for at, each in enumerate(plan.instructions, 1)}
    yield "flowchart TD"
    for each in plan.instructions:
        left, right = _SHAPES.get(each.kind, _ROUND)
        more = (f"if {_condition(each)}",) if each.condition else ()
        said = (part.translate(_ESCAPES) for part in (each.instruction_id, each.action, *more))
        yield f"  {nodes[each.instruction_id]}{left}{'<br/>'.join(said)}{right}"
    for each in plan.instructions:
        for name in each.dependencies:
            yield f"  {nodes[name]} --> {nodes[each.instruction_id]}"


def _condition(each: Instruction) -> str:
    return " ".join(each.condition.split())


DRAWINGS: Final[Mapping[str, Callable[[InstructionSet], Iterator[str]]]] = {
    "text": as_text,
    "mermaid": as_mermaid,
}
