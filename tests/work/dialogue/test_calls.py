"""The order of calls: whatever they ask, one waits for what it needs and what its mode says."""

import graphlib
from dataclasses import replace
from itertools import combinations

import pytest
from hypothesis import example, given, settings

from asked_calls import MODES, asked, call, closed, list_order, needed
from labharness.protocols.mcp_cp.messages import ToolCallRequest
from labharness.protocols.mcp_cp.tools import CallMode
from labharness.work.dialogue.calls import Calls, calls_of, order_of


@pytest.mark.promise(78)
@pytest.mark.parametrize("mode", MODES)
@settings(max_examples=60)
@given(asked())
@example((Calls((call("a", ["a"]),)), frozenset()))
@example((Calls((call("a"), call("b", ["a"]))), frozenset("b")))
def test_calls_wait_for_what_they_need_and_for_what_their_mode_puts_before_them(
    mode: CallMode, case: tuple[Calls, frozenset[str]]
) -> None:
    calls, front = replace(case[0], mode=mode), case[1]
    ids = [each.call_id for each in calls.calls]
    back = [each for each in ids if each not in front]
    needs = needed(calls.calls)
    wanted = {name: {*each} for name, each in needs.items()}
    sides = {"FRONTEND_FIRST": (front, back), "BACKEND_FIRST": (back, front)}
    first, then = sides.get(calls.mode, ((), ()))
    for each in then:
        wanted[each] |= {*first}
    if any(name in all_before for name, all_before in closed(wanted).items()):
        with pytest.raises(graphlib.CycleError):
            order_of(calls, front)
        return
    found = closed(order_of(calls, front))
    assert all(wanted[each] <= found[each] for each in ids)
    order = list_order(calls.calls, needs)
    if calls.mode in ("SYNC", "SEQUENTIAL"):
        assert found == {each: {*order[: order.index(each)]} for each in ids}
    elif then or first:
        order = [*(each for each in order if each in first), *(e for e in order if e in then)]
        assert found == {each: {*order[: order.index(each)]} for each in ids}
    else:
        for one, two in combinations(order, 2):
            if calls.mode == "CLIENT_SERVER_PARALLEL" and (one in front) == (two in front):
                wanted[two].add(one)
        assert found == closed(wanted)


@pytest.mark.parametrize("mode", MODES)
def test_a_message_states_mode_and_times_of_its_calls_or_they_are_those_of_the_rulings(
    mode: CallMode,
) -> None:
    one = (call("a"),)
    assert calls_of(ToolCallRequest(one)) == Calls(one, "SYNC", 30.0, 30.0, 30.0)
    asked = ToolCallRequest(one, mode, None, 2.0, 5.0)
    both_s = 5.0 if mode == "CLIENT_SERVER_PARALLEL" else 7.0
    assert calls_of(asked) == Calls(one, mode, both_s, 2.0, 5.0)
    asked = ToolCallRequest(one, mode, 9.0, None, 5.0)
    assert calls_of(asked) == Calls(one, mode, 9.0, 9.0, 5.0)
