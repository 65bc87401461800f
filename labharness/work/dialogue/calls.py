"""The order of the calls of one message (MCP-CP 4.3 and 4.6), and the times that bound them."""

import graphlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from labharness.protocols.mcp_cp.messages import ModelResponse, ToolCallRequest
from labharness.protocols.mcp_cp.tools import TIMEOUT_S, CallMode, ToolCall, total_s
from labharness.work.plan.instructions import references


@dataclass(frozen=True, slots=True)
class Calls:
    """Calls that belong together.

    Attributes:
        calls: The calls, in the order of their message.
        mode: Which of them go on at once.
        within_s: Longest time of all of them.
        front_s: Longest time of those that the client carries out, counted with the rest.
        back_s: Longest time of those that the server carries out.
    """

    calls: tuple[ToolCall, ...]
    mode: CallMode = "SYNC"
    within_s: float = TIMEOUT_S
    front_s: float = TIMEOUT_S
    back_s: float = TIMEOUT_S


def calls_of(content: ModelResponse | ToolCallRequest) -> Calls:
    """Return the calls of a message, with the times that it states for them."""
    calls = content.tool_calls if isinstance(content, ModelResponse) else content.calls
    sides = content.frontend_timeout, content.backend_timeout
    within_s = total_s(content.execution_mode, content.timeout, sides)
    front_s, back_s = (within_s if each is None else each for each in sides)
    return Calls(calls, content.execution_mode, within_s, front_s, back_s)


def order_of(asked: Calls, of_client: Collection[str]) -> Mapping[str, set[str]]:
    """Return the calls that must have ended before each call, by their ids.

    Args:
        asked: The calls.
        of_client: The ids of those that the client carries out.

    Raises:
        graphlib.CycleError: The calls wait for each other, or for what their mode puts behind them.
    """
    ids = {each.call_id for each in asked.calls}
    before = {
        each.call_id: ({*each.required_after} | references(each.parameters)) & ids
        for each in asked.calls
    }
    graphlib.TopologicalSorter(before).prepare()
    listed = [*_listed(before)]
    front = [each for each in listed if each in of_client]
    back = [each for each in listed if each not in of_client]
    chains: Mapping[CallMode, Sequence[Sequence[str]]] = {
        "SYNC": (listed,),
        "SEQUENTIAL": (listed,),
        "FRONTEND_FIRST": ([*front, *back],),
        "BACKEND_FIRST": ([*back, *front],),
        "CLIENT_SERVER_PARALLEL": (front, back),
    }
    for chain in chains.get(asked.mode, ()):
        for first, then in pairwise(chain):
            before[then].add(first)
    graphlib.TopologicalSorter(before).prepare()
    return before


def _listed(before: Mapping[str, set[str]]) -> Iterator[str]:
    """Return ids in the order of their list, as far as each stands behind those before it."""
    left = dict(before)
    while left:
        name = next(each for each, needs in left.items() if not needs & left.keys())
        del left[name]
        yield name
