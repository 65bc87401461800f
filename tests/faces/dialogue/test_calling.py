"""Calls carried out: each once, in their order and their time, at the lab or at a client."""

import graphlib
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from threading import Barrier, Event, Lock
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings

from asked_calls import MODES, asked, call, list_order, needed
from labharness.core.clock import pause, steady_s
from labharness.faces.dialogue import calling
from labharness.faces.dialogue.calling import Calling
from labharness.protocols.mcp_cp.tools import (
    CallMode,
    SupportedTool,
    ToolCall,
    ToolResult,
    ToolValue,
)
from labharness.work.dialogue.calls import Calls, order_of

AT_CLIENT, IN_LAB = "pick", "list_runs"
PATIENCE_S = 20.0
ANSWER_BYTES_MAX, FILLED_BYTES_MAX, REFERENCES_MAX = 65_536, 524_288, 64  # as promised


class World:
    """A lab and a client in memory: each call is carried out by `work`, and noted."""

    def __init__(self, work: Callable[[dict[str, Any]], Any] = lambda parameters: None) -> None:
        self.work, self.pool, self.lock = work, ThreadPoolExecutor(16), Lock()
        self.noted: list[tuple[str, str]] = []
        self.forwarded: dict[str, float] = {}
        self.tools: Callable[[], Any] = lambda: {AT_CLIENT: SupportedTool(AT_CLIENT, "1.0")}

    def note(self, what: str, name: str) -> None:
        with self.lock:
            self.noted.append((what, name))

    def carry_out(self, parameters: Mapping[str, Any]) -> dict[str, Any]:
        self.note("begin", parameters["own"])
        found = self.work(dict(parameters))
        self.note("end", parameters["own"])
        return {"own": parameters["own"], "found": found}

    def answer(
        self, name: str, parameters: Mapping[str, Any], thread_id: str = ""
    ) -> tuple[bool, dict[str, Any]]:
        if name != IN_LAB:
            return False, {"code": "not_for_agent", "message": "no such tool"}
        return True, self.carry_out(parameters)

    def run(self, asked: ToolCall, within_s: float) -> Future[ToolResult]:
        self.forwarded[asked.call_id] = within_s

        def work() -> ToolResult:
            value = {"value": self.carry_out(asked.parameters)}
            return ToolResult(
                call_id=asked.call_id, status="SUCCESS", result=value, execution_time=1.0
            )

        return self.pool.submit(work)

    def results(self, asked: Calls, found: Mapping[str, ToolResult] | None = None) -> Any:
        here: Any = self
        given = [*Calling(here, here, asked, dict(found or {})).results()]
        assert len({each.call_id for each in given}) == len(given)
        return {each.call_id: each for each in given}

    @property
    def begun(self) -> list[str]:
        return [name for what, name in self.noted if what == "begin"]


def front(call_id: str, **fields: Any) -> ToolCall:
    return msgspec.structs.replace(call(call_id), **{"name": AT_CLIENT} | fields)


def back(call_id: str, **fields: Any) -> ToolCall:
    return msgspec.structs.replace(call(call_id), **{"name": IN_LAB} | fields)


def said(results: Mapping[str, ToolResult]) -> dict[str, str]:
    return {name: each.error.code if each.error else each.status for name, each in results.items()}


@pytest.mark.promise(78)
@pytest.mark.parametrize("mode", MODES)
@settings(max_examples=30)
@given(asked())
def test_each_call_is_carried_out_once_behind_what_it_waits_for_or_has_an_error(
    mode: CallMode, case: tuple[Calls, frozenset[str]]
) -> None:
    calls, of_client = replace(case[0], mode=mode), case[1]
    names = {True: AT_CLIENT, False: IN_LAB}
    named = [msgspec.structs.replace(e, name=names[e.call_id in of_client]) for e in calls.calls]
    calls, world = replace(calls, calls=tuple(named)), World()
    results, ids = world.results(calls), {each.call_id for each in named}
    assert results.keys() == ids
    try:
        order_of(calls, of_client)
    except graphlib.CycleError:
        assert {*said(results).values()} == {"DEPENDENCY_ERROR"}
        assert world.noted == []
        return
    needs = needed(named)
    order = list_order(named, needs)
    lacking: set[str] = set()
    for one in (next(each for each in named if each.call_id == name) for name in order):
        takes = {*one.parameters} - {"own"}
        if not {*one.required_after} <= ids or not takes <= ids - lacking:
            lacking.add(one.call_id)
    assert {name for name, each in said(results).items() if each == "DEPENDENCY_ERROR"} == lacking
    assert sorted(world.begun) == sorted(ids - lacking)
    for name in world.begun:
        begun = world.noted.index(("begin", name))
        assert all(("end", each) in world.noted[:begun] for each in needs[name] - lacking)
    sides = {"FRONTEND_FIRST": True, "BACKEND_FIRST": False}
    if calls.mode in sides:
        order.sort(key=lambda each: (each in of_client) != sides[calls.mode])
    if calls.mode in ("SYNC", "SEQUENTIAL", *sides):
        carried = [each for each in order if each not in lacking]
        assert world.noted == [(what, each) for each in carried for what in ("begin", "end")]


def test_a_reference_is_filled_in_from_the_other_side_with_the_type_of_its_value() -> None:
    taken: list[Any] = []

    def work(parameters: dict[str, Any]) -> list[Any]:
        taken.append(parameters.get("taken"))
        return [1, {"n": 2}]

    world = World(work)
    chain = ("${results.a.result.value.found.1}", "${results.b.result.value.own} of b")
    calls = (
        front("c", parameters={"own": "c", "taken": chain[1]}, required_after=("b",)),
        back("b", parameters={"own": "b", "taken": chain[0]}, required_after=("a",)),
        front("a"),
    )
    assert {*said(world.results(Calls(calls, "PARALLEL"))).values()} == {"SUCCESS"}
    assert (world.begun, taken) == (["a", "b", "c"], [None, {"n": 2}, "b of b"])


@pytest.mark.parametrize(
    ("mode", "parties"), [("PARALLEL", 4), ("ASYNC", 4), ("CLIENT_SERVER_PARALLEL", 2)]
)
def test_what_may_go_on_at_once_is_at_work_at_once(mode: Any, parties: int) -> None:
    meet = Barrier(parties)
    world = World(lambda parameters: meet.wait(PATIENCE_S))
    assert {*said(world.results(Calls(of("Fa Lb Lc Fd"), mode))).values()} == {"SUCCESS"}
    for one, then in ("ad", "bc") if parties == 2 else ():
        assert world.noted.index(("end", one)) < world.noted.index(("begin", then))


@pytest.fixture
def slow() -> Iterator[World]:
    """A world whose call `a` does not end within the test."""
    ended = Event()
    yield World(lambda parameters: parameters["own"] == "a" and ended.wait(PATIENCE_S))
    ended.set()


def of(said: str, **fields: Any) -> tuple[ToolCall, ...]:
    """Return calls at the lab and the client, ``La Fb``; the fields are of those named `a`."""
    makes = {"L": back, "F": front}
    return tuple(makes[e[0]](e[1], **(fields if e[1] == "a" else {})) for e in said.split())


OWN: Any = {"timeout": 0.1}
OVERDUE: dict[str, tuple[Calls, str, str]] = {
    "a call": (Calls(of("La Lb", **OWN), "SEQUENTIAL"), "TIMEOUT SUCCESS", "ab"),
    "a call at a client": (Calls(of("Fa Fb", **OWN)), "TIMEOUT SUCCESS", "ab"),
    "all": (Calls(of("La Lb Fc"), "SEQUENTIAL", 0.1), "TIMEOUT TIMEOUT TIMEOUT", "a"),
    "all before each": (Calls(of("Fa Lb", timeout=9.0), "SYNC", 0.1), "TIMEOUT TIMEOUT", "a"),
    "the client": (
        Calls(of("Fa Lb Fc"), "FRONTEND_FIRST", front_s=0.1),
        "TIMEOUT SUCCESS TIMEOUT",
        "ab",
    ),
    "the lab": (
        Calls(of("La Lb Fc"), "BACKEND_FIRST", back_s=0.1),
        "TIMEOUT TIMEOUT SUCCESS",
        "ac",
    ),
}


@pytest.mark.promise(78)
@pytest.mark.parametrize("what", OVERDUE)
def test_what_is_overdue_is_a_timeout_and_what_is_due_after_it_is_not_begun(
    slow: World, what: str
) -> None:
    calls, ends, begun = OVERDUE[what]
    began_s = steady_s()
    results = slow.results(calls)
    assert steady_s() - began_s < PATIENCE_S / 2
    assert [results[each.call_id].status for each in calls.calls] == ends.split()
    assert [said(results)[each.call_id] for each in calls.calls] == ends.split()
    assert "".join(slow.begun) == begun


def test_the_time_of_a_side_begins_with_its_first_call() -> None:
    world = World(lambda parameters: pause(0.4 * (parameters["own"] == "a")))
    results = world.results(Calls(of("Fa Lb"), "FRONTEND_FIRST", back_s=0.3))
    assert {*said(results).values()} == {"SUCCESS"}


def test_a_call_that_waits_for_others_beyond_its_time_is_not_begun_when_they_end() -> None:
    may_end = Event()

    def work(parameters: dict[str, Any]) -> None:
        if parameters["own"] == "f":
            pause(0.3)
            may_end.set()
        may_end.wait(PATIENCE_S)

    world = World(work)
    calls = (*of("La Lb Lc Ld Ff"), back("e", timeout=0.1))
    assert said(world.results(Calls(calls, "PARALLEL"))).pop("e") == "TIMEOUT"
    assert sorted(world.begun) == [*"abcdf"]


def test_a_client_is_told_the_time_that_is_left_for_it() -> None:
    world = World()
    calls = (front("a", timeout=5.0), front("b", timeout_client=2.0), front("c"))
    world.results(Calls(calls, "PARALLEL", within_s=9.0, front_s=7.0))
    found = {name: round(within_s, 1) for name, within_s in world.forwarded.items()}
    assert found == {"a": 5.0, "b": 2.0, "c": 7.0}


def nowhere(**fields: Any) -> tuple[ToolCall, ...]:
    return of("Lb La Lc", **{"runtime": "FRONTEND", "name": "nowhere"} | fields)


AWAY = "SUCCESS NOT_AVAILABLE SUCCESS"
ALTERNATIVE: Any = {"fallback_behavior": "USE_ALTERNATIVE"}
WITHOUT = {
    "nothing said": (nowhere(), AWAY, "bc"),
    "SKIP": (nowhere(fallback_behavior="SKIP"), AWAY, "bc"),
    "ABORT": (nowhere(fallback_behavior="ABORT"), "SUCCESS NOT_AVAILABLE ABORTED", "b"),
    "alternative": (nowhere(**ALTERNATIVE, name=IN_LAB), "SUCCESS SUCCESS SUCCESS", "bac"),
    "alternative that is nowhere": (nowhere(**ALTERNATIVE), AWAY, "bc"),
    "a tool of the lab, and no alternative": (nowhere(name=IN_LAB), AWAY, "bc"),
    "a tool of the client, asked of the lab": (
        nowhere(name=AT_CLIENT, runtime="BACKEND"),
        "SUCCESS not_for_agent SUCCESS",
        "bc",
    ),
}


@pytest.mark.promise(78)
@pytest.mark.parametrize("case", WITHOUT)
def test_a_tool_that_no_client_offers_is_skipped_replaced_or_ends_what_follows(case: str) -> None:
    calls, ends, begun = WITHOUT[case]
    world = World()
    assert [*said(world.results(Calls(calls, "SEQUENTIAL"))).values()] == ends.split()
    assert "".join(world.begun) == begun


def test_a_result_of_a_client_is_bounded_and_hides_nothing() -> None:
    found = {"a": "x" * ANSWER_BYTES_MAX, "b": "seen\u200bhidden"}
    world = World(lambda parameters: found[parameters["own"]])
    results = world.results(Calls((front("a"), front("b"))))
    assert said(results) == {"a": "TOO_LARGE", "b": "SUCCESS"}
    assert results["b"].result["value"]["found"] == "seenhidden"


@pytest.mark.parametrize("count", [9, REFERENCES_MAX + 1])
def test_parameters_do_not_grow_beyond_their_bound_by_what_they_refer_to(count: int) -> None:
    world = World(lambda parameters: "x" * (ANSWER_BYTES_MAX - 500 if count == 9 else 9))
    grown = {"own": "b", "all": ["${results.a.result.value.found}"] * count}
    calls = (front("a"), back("b", parameters=grown), front("c", parameters=grown))
    assert said(world.results(Calls(calls))) == {"a": "SUCCESS", "b": "TOO_LARGE", "c": "TOO_LARGE"}
    assert (world.begun, calling.FILLED_BYTES_MAX) == (["a"], FILLED_BYTES_MAX)
    fits = (calls[0], back("b", parameters={**grown, "all": grown["all"][:8]}))
    assert {*said(world.results(Calls(fits))).values()} == {"SUCCESS"}


def test_a_result_of_the_lab_has_the_usual_form_and_a_refusal_its_code() -> None:
    world = World()
    world.tools = lambda: {IN_LAB: SupportedTool(IN_LAB, "1.0")}  # the lab's goes before it
    results = world.results(Calls((back("a"), call("b"))))
    value = msgspec.convert(results["a"].result, ToolValue)
    assert (value.parsed, value.source, value.outcome) == (True, "labharness", "done")
    assert value.value == {"own": "a", "found": None}
    assert results["a"].execution_time >= 0
    assert (results["b"].result, results["b"].error.message) == (None, "no such tool")


def test_a_call_that_has_a_result_is_not_carried_out_again() -> None:
    world = World()
    found = world.results(Calls((back("a"),)))
    calls = (back("a"), back("b", required_after=("a",)))
    assert [*world.results(Calls(calls), found)] == ["b"]
    assert world.begun == ["a", "b"]
