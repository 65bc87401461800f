"""Calls for tests of their order, and the order that they must have, found another way."""

from collections.abc import Mapping, Sequence
from typing import get_args

from hypothesis import strategies as st

from labharness.protocols.mcp_cp.tools import CallMode, ToolCall
from labharness.work.dialogue.calls import Calls

NAMES = ("a", "b", "c", "d", "e")
MODES: tuple[CallMode, ...] = get_args(CallMode)


def call(name: str, after: Sequence[str] = (), refers: Sequence[str] = ()) -> ToolCall:
    parameters = {each: f"of ${{results.{each}.result.value.own}}" for each in refers}
    return ToolCall(name, "t", {**parameters, "own": name}, required_after=tuple(after))


@st.composite
def asked(draw: st.DrawFn) -> tuple[Calls, frozenset[str]]:
    """Calls in any order, which need each other or what is not there, and those of the client."""
    names = draw(st.permutations(NAMES))[: draw(st.integers(1, len(NAMES)))]
    ranked, astray = draw(st.permutations(names)), draw(st.integers(0, 3 * len(NAMES)))
    calls, front = [], set()
    for at, name in enumerate(names):
        able = NAMES if at == astray else ("elsewhere", *ranked[: ranked.index(name)])
        few = st.lists(st.sampled_from([*able, *able[1:], *able[1:]]), max_size=2)
        calls.append(call(name, draw(few), draw(few)))
        front |= {name} if draw(st.booleans()) else set()
    return Calls(tuple(calls)), frozenset(front)


def needed(calls: Sequence[ToolCall]) -> dict[str, set[str]]:
    """Return what each call names: the same as is asked for, found another way."""
    known = {each.call_id for each in calls}
    return {each.call_id: {*each.required_after, *each.parameters} & known for each in calls}


def closed(before: Mapping[str, set[str]]) -> dict[str, set[str]]:
    """Return all that stands before each, through others too."""
    found = {name: {*needs} for name, needs in before.items()}
    for _ in before:
        found = {
            name: needs.union(*(found[each] for each in needs)) for name, needs in found.items()
        }
    return found


def list_order(calls: Sequence[ToolCall], needs: Mapping[str, set[str]]) -> list[str]:
    """Return the order of the list: always the first whose needs have ended."""
    ended: list[str] = []
    while len(ended) < len(calls):
        waiting = [each.call_id for each in calls if each.call_id not in ended]
        ended.append(next(each for each in waiting if needs[each] <= {*ended}))
    return ended
