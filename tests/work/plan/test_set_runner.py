"""The runner begins what the course says, side by side, and ends with a trip of the line."""

import asyncio
import math
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from instruction_sets import CHAPTER_9_2
from labharness.core.clock import VirtualLoop, run
from labharness.core.vocabulary import Command, Ending, Outcome
from labharness.work.plan import FailureKind, Operations, Progress, RunningStep, Status, StepFailed
from labharness.work.plan.actions import ActionSchema
from labharness.work.plan.course import Records, status_of
from labharness.work.plan.instructions import InstructionKind, InstructionSet
from labharness.work.plan.recovery import BadInstruction
from labharness.work.plan.set_reading import read_set
from labharness.work.plan.set_runner import SetRunner

ANY: dict[str, Any] = {"type": "object"}
ACTIONS = {
    "wait": ActionSchema(InstructionKind.QUERY, ANY),
    "fail": ActionSchema(InstructionKind.QUERY, ANY),
    "silent": ActionSchema(InstructionKind.QUERY, ANY),
    "trip": ActionSchema(InstructionKind.QUERY, ANY),
    "put": ActionSchema(InstructionKind.OPERATION, ANY),
    "two": ActionSchema(InstructionKind.OPERATION, ANY),
    "hides": ActionSchema(InstructionKind.OPERATION, ANY),
    "at_once": ActionSchema(InstructionKind.OPERATION, ANY),
    "asks": ActionSchema(InstructionKind.OPERATION, ANY),
    "ask_operator": ActionSchema(InstructionKind.OPERATION, ANY),
    "trips_late": ActionSchema(InstructionKind.QUERY, ANY),
}


class TrippedHere(RuntimeError):
    """Stands for the line's own exception, which a plan does not know."""


class Line:
    """Commands above 100 are refused; the rest of a line is not asked."""

    def __init__(self) -> None:
        self.sent: list[float] = []
        self.holds_s = 0.0
        self.trips_after_s = math.inf
        self.began_s = 0.0
        self.by_hand: list[str] = []
        self.judged: list[tuple[float, ...]] = []
        self.judging_takes_s = 0.0

    async def refusals(self, commands: Sequence[Command]) -> tuple[str, ...]:
        if commands:
            await asyncio.sleep(self.judging_takes_s)
            self.judged.append(tuple(each.value for each in commands))
        forbidden = "operator.forbidden"
        return tuple(
            "said the line" if each.value > 100 or each.channel == forbidden else ""
            for each in commands
        )

    def check(self) -> None:
        if self.now_s() - self.began_s >= self.trips_after_s:
            raise TrippedHere

    async def next_tick(self) -> None:
        await asyncio.sleep(1.0)
        self.check()

    async def query(self, instrument: str, name: str, about: object = None) -> object:
        self.by_hand.append(name)
        return None

    async def confirm(self, action: str, text: str, details: object) -> str:
        if action == "forbidden":
            raise PermissionError
        self.by_hand.append(action)
        return "ada"

    async def perform(self, command: Command) -> Outcome:
        await asyncio.sleep(0.5 if command.value > 1000 else 1.0)
        if command.value < 0:
            raise ConnectionError("no reply")
        refused = command.value > 100
        if not refused:
            self.sent.append(command.value)
        ending = Ending.REFUSED if refused else Ending.CONFIRMED
        return Outcome(command, ending, command.value, "said the line")

    def now_s(self) -> float:
        return asyncio.get_running_loop().time()

    def held_s(self) -> float:
        return min(self.now_s(), self.holds_s)


async def wait(step: RunningStep) -> Mapping[str, Any]:
    await asyncio.sleep(step.parameters.get("s", 1.0))
    return {"n": step.parameters.get("n", 0)}


async def fail(step: RunningStep) -> Mapping[str, Any]:
    await asyncio.sleep(0.5)
    raise step.failed("no", FailureKind.EXECUTION, {"half": 1})


async def silent(step: RunningStep) -> Mapping[str, Any]:
    raise ConnectionError("no reply")


async def trip(step: RunningStep) -> Mapping[str, Any]:
    await asyncio.sleep(0.5)
    raise TrippedHere


async def set_one(step: RunningStep) -> Mapping[str, Any]:
    await step.perform("oven.setpoint", step.parameters["v"], "degC")
    return {}


async def set_two(step: RunningStep) -> Mapping[str, Any]:
    for value in step.parameters["v"]:
        await step.perform("oven.setpoint", value, "degC")
    return {}


async def hide(step: RunningStep) -> Mapping[str, Any]:
    try:
        await step.perform("oven.setpoint", -1.0, "degC")
    except ConnectionError:
        raise step.failed("so it says", FailureKind.REFUSED) from None
    return {}


async def set_at_once(step: RunningStep) -> Mapping[str, Any]:
    each = (step.perform("oven.setpoint", value, "degC") for value in step.parameters["v"])
    await asyncio.gather(*each)
    return {}


async def ask_first(step: RunningStep) -> Mapping[str, Any]:
    asked = step.parameters.get("first", "")
    try:
        if asked == "expose":
            await step.operations.query("raman", asked)
        else:
            await step.operations.confirm(asked, "", {})
    except PermissionError:
        raise step.failed("not allowed", FailureKind.REFUSED) from None
    await step.perform("oven.setpoint", 900.0, "degC")
    return {}


async def trip_late(step: RunningStep) -> Mapping[str, Any]:
    try:
        await asyncio.sleep(99.0)
    except asyncio.CancelledError:
        raise TrippedHere from None
    return {}


VERBS = {
    "ask_operator": ask_first,
    "at_once": set_at_once,
    "asks": ask_first,
    "trips_late": trip_late,
    "hides": hide,
    "wait": wait,
    "fail": fail,
    "silent": silent,
    "trip": trip,
    "put": set_one,
    "two": set_two,
}


def plan(*steps: dict[str, Any], mode: str = "PARALLEL", **more: Any) -> InstructionSet:
    named = [{"instructionId": f"i{n}", **each} for n, each in enumerate(steps)]
    return read_set({"instructions": named, "executionMode": mode, **more}, ACTIONS)


class Ran:
    """A set that was carried out: its records, its line, and how long it took."""

    def __init__(
        self,
        what: InstructionSet,
        holds_s: float = 0.0,
        trips_after_s: float = math.inf,
        waits_s: float = 0.0,
        judging_takes_s: float = 0.0,
    ) -> None:
        self.told, self.error = list[Progress](), None
        loop = VirtualLoop()
        begin_s = loop.time()

        async def carry_out() -> None:
            line: Any = Line()
            self.line: Line = line
            line.holds_s, line.trips_after_s, line.began_s = holds_s, trips_after_s, begin_s
            operations: Operations = line
            line.judging_takes_s = judging_takes_s
            runner = SetRunner(what, operations, VERBS, ACTIONS, self.told.append)
            await asyncio.sleep(waits_s)
            try:
                await runner.run()
            except (TrippedHere, StepFailed) as why:
                self.error = why
            self.records: Records = runner.found
            self.left = [each for each in asyncio.all_tasks() if each is not asyncio.current_task()]

        run(carry_out(), loop)
        self.took_s = loop.time() - begin_s

    def statuses(self) -> list[str]:
        return [
            each.reason or each.recovered or each.status.value for each in self.records.values()
        ]


def act(
    action: str, *needs: str, recovery: dict[str, Any] | None = None, **asked: Any
) -> dict[str, Any]:
    return {
        "action": action,
        "parameters": asked,
        "dependencies": list(needs),
        **({} if recovery is None else {"recovery": recovery}),
    }


def test_what_is_ready_runs_side_by_side_and_in_a_sequence_one_after_the_other() -> None:
    steps = [act("wait", s=5.0), act("wait", s=5.0), act("wait", "i0", s=1.0)]
    assert Ran(plan(*steps)).took_s == pytest.approx(6.0, abs=0.01)
    assert Ran(plan(*steps, mode="SEQUENTIAL")).took_s == pytest.approx(11.0, abs=0.01)


def test_a_trip_ends_everything_and_leaves_nothing_running() -> None:
    kept = {"retry": {"attempts": 5}, "otherwise": "skip"}
    ran = Ran(plan(act("trip", recovery=kept), act("wait", s=9.0), act("put", "i1", v=1.0)))
    assert isinstance(ran.error, TrippedHere)
    assert ran.statuses() == ["FAILED", "FAILED", "trip"]
    assert ran.left == []
    assert ran.took_s == pytest.approx(0.5, abs=0.01)
    assert ran.line.sent == []


def put(value: float) -> dict[str, Any]:
    """One that states its command, as verbs of capabilities do."""
    return act("put", v=value, sets=[["oven.setpoint", value, "degC"]])


@pytest.mark.promise(9)
def test_operations_are_judged_together_and_none_is_sent_where_one_is_refused() -> None:
    ran = Ran(plan(put(1.0), put(900.0), act("wait")))
    assert ran.line.judged == [(1.0, 900.0)]
    assert ran.line.sent == []
    assert ran.statuses() == ["dependency", "FAILED", "COMPLETED"]
    assert ran.records["i1"].error == "said the line"
    assert ran.records["i1"].failure is FailureKind.REFUSED
    assert Ran(plan(put(1.0), put(2.0))).line.sent == [1.0, 2.0]


@pytest.mark.promise(9)
def test_a_step_by_hand_is_judged_with_the_operations_beside_it() -> None:
    by_hand = {"action": "ask_operator", "parameters": {"action": "forbidden"}}
    ran = Ran(plan(put(1.0), by_hand))
    assert (ran.line.sent, ran.line.by_hand) == ([], [])
    assert ran.statuses() == ["dependency", "FAILED"]


@pytest.mark.promise(9)
def test_operations_that_a_hold_kept_are_judged_with_what_failed_meanwhile() -> None:
    ends = {"otherwise": "abort"}
    late = {**put(1.0), "dependencies": ["i1"]}
    steps = (act("fail", recovery=ends), act("wait", s=0.2), late)
    ran = Ran(plan(*steps), judging_takes_s=5.0)
    assert ran.line.sent == []
    assert ran.statuses() == ["FAILED", "COMPLETED", "abort"]


@pytest.mark.promise(42)
def test_an_operation_that_was_refused_after_its_first_byte_is_not_tried_again() -> None:
    kept = {"retry": {"attempts": 3}}
    ran = Ran(plan(act("two", v=[1.0, 900.0], recovery=kept)))
    assert (ran.line.sent, ran.records["i0"].attempts) == ([1.0], 1)
    first = Ran(plan(act("two", v=[900.0, 1.0], recovery=kept)))
    assert (first.line.sent, first.records["i0"].attempts) == ([], 3)


@pytest.mark.promise(42)
@pytest.mark.parametrize("values", [[1.0, 900.0], [900.0, 1.0], [1.0, 9000.0], [9000.0, 1.0]])
def test_one_of_two_commands_at_once_that_was_sent_is_not_sent_again(values: list[float]) -> None:
    ran = Ran(plan(act("at_once", v=values, recovery={"retry": {"attempts": 3}}), act("wait", s=9)))
    assert (ran.line.sent, ran.records["i0"].attempts) == ([1.0], 1)


@pytest.mark.promise(42)
@pytest.mark.parametrize(("first", "attempts"), [("move", 1), ("expose", 1), ("forbidden", 3)])
def test_what_a_person_or_an_exposure_has_done_is_not_repeated(first: str, attempts: int) -> None:
    ran = Ran(plan(act("asks", first=first, recovery={"retry": {"attempts": 3}})))
    assert ran.records["i0"].attempts == attempts
    assert ran.line.by_hand == ([first] if attempts == 1 else [])


@pytest.mark.promise(14)
def test_a_trip_in_a_pause_ends_the_set_and_nothing_begins_after_it() -> None:
    kept = {"retry": {"attempts": 2, "delay": 600.0}}
    ran = Ran(plan(act("fail", recovery=kept), mode="SEQUENTIAL"), trips_after_s=20.0)
    assert isinstance(ran.error, TrippedHere)
    assert ran.took_s <= 21.0
    assert ran.records["i0"].attempts == 1
    assert ran.left == []
    at_end = Ran(plan(act("fail", recovery={"retry": {"attempts": 2}})), trips_after_s=1.5)
    assert isinstance(at_end.error, TrippedHere)  # between two polls
    assert at_end.records["i0"].attempts == 1


@pytest.mark.promise(14)
def test_a_trip_that_what_was_cancelled_ends_with_is_a_trip_of_the_set() -> None:
    late = {**act("trips_late"), "timeout": 3}
    ran = Ran(plan(late, act("wait", s=9.0)))
    assert isinstance(ran.error, TrippedHere)
    assert ran.statuses() == ["TIMEOUT", "FAILED"]


def test_what_ends_with_a_trip_has_its_own_result() -> None:
    ran = Ran(plan(act("trip"), act("wait", s=0.5, n=3), act("silent")))
    assert isinstance(ran.error, TrippedHere)
    assert ran.statuses() == ["FAILED", "COMPLETED", "FAILED"]
    assert ran.records["i1"].result == {"n": 3}


def test_the_time_of_a_set_begins_with_its_run() -> None:
    assert Ran(plan(act("wait", s=5.0), timeout=9), waits_s=60.0).statuses() == ["COMPLETED"]


def test_what_fails_is_recovered_as_it_declares() -> None:
    other = {"action": "wait", "parameters": {"n": 7}}
    ran = Ran(
        plan(
            act("fail", recovery={"retry": {"attempts": 2, "delay": 2.0}, "otherwise": "partial"}),
            act("silent", recovery={"fallback": other}),
            act("silent", recovery={"otherwise": "skip"}),
            act("silent"),
        )
    )
    assert ran.statuses() == ["partial", "fallback", "recovery", "FAILED"]
    assert [each.result for each in ran.records.values()] == [{"half": 1}, {"n": 7}, None, None]
    assert "no reply" in ran.records["i3"].error
    assert ran.took_s == pytest.approx(0.5 + 2.0 + 0.5, abs=0.01)


def test_the_time_of_an_instruction_and_of_the_set_is_enforced_on_what_does_not_look_at_it() -> (
    None
):
    slow = {**act("wait", s=10.0), "timeout": 3}
    ran = Ran(plan(slow, act("wait", s=50.0), act("wait", "i1"), timeout=20))
    assert ran.statuses() == ["TIMEOUT", "TIMEOUT", "timeout"]
    assert ran.records["i0"].ended_s == pytest.approx((ran.records["i0"].started_s or 0) + 3)
    assert ran.took_s == pytest.approx(20.0, abs=0.01)
    assert ran.left == []


def test_time_for_which_the_line_is_held_counts_for_no_timeout() -> None:
    slow = {**act("wait", s=12.0), "timeout": 3}
    assert Ran(plan(slow), holds_s=10.0).statuses() == ["COMPLETED"]
    assert Ran(plan(slow), holds_s=8.0).statuses() == ["TIMEOUT"]


def test_a_command_whose_end_is_not_known_counts_as_sent() -> None:
    ran = Ran(plan(act("hides", recovery={"retry": {"attempts": 3}})))
    assert ran.records["i0"].attempts == 1


def test_the_result_of_one_is_an_input_of_the_next_and_a_condition_decides() -> None:
    ran = Ran(
        plan(
            act("wait", n=7),
            act("wait", "i0", n="${dependencies.i0.result.n}"),
            {**act("wait", "i1"), "condition": "dependencies.i1.result.n == 7"},
            {**act("wait", "i1"), "condition": "dependencies.i1.result.n != 7"},
            mode="PARALLEL",
        )
    )
    assert ran.statuses() == ["COMPLETED"] * 3 + ["condition"]


def test_in_a_conditional_set_each_condition_decides_and_a_dependency_suffices() -> None:
    ran = Ran(
        plan(
            {**act("wait", n=7), "condition": "true"},
            {**act("wait", "i0"), "condition": "dependencies.i0.result.n > 5"},
            {**act("wait", "i0"), "condition": "NOT dependencies.i0.result.n > 5"},
            act("wait", "i1"),
            act("wait", "i2"),
            mode="CONDITIONAL",
        )
    )
    assert ran.statuses() == ["COMPLETED", "COMPLETED", "condition", "COMPLETED", "dependency"]


def test_a_cancelled_run_leaves_every_instruction_with_a_status() -> None:
    found: list[str] = []

    async def cancelled() -> None:
        line: Any = Line()
        runner = SetRunner(plan(act("wait", s=9.0), act("wait", "i0")), line, VERBS, ACTIONS)
        task = asyncio.create_task(runner.run())
        await asyncio.sleep(1.0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        found.extend(each.status.value for each in runner.records())

    run(cancelled(), VirtualLoop())
    assert found == [Status.FAILED, Status.SKIPPED]


def test_an_action_without_a_verb_is_refused_also_as_a_fall_back() -> None:
    for verbs in ({"wait": wait}, {"silent": silent}):
        line: Any = Line()
        what = plan(act("silent", recovery={"fallback": {"action": "wait"}}))
        with pytest.raises(BadInstruction, match="no verb"):
            run(_made(what, line, verbs), VirtualLoop())


async def _made(what: InstructionSet, line: Any, verbs: Any) -> None:
    SetRunner(what, line, verbs, ACTIONS)


def test_the_instructions_of_chapter_9_run_to_their_report() -> None:
    actions = ("QUERY_DATA", "PROCESS_DATA", "ANALYZE_TREND", "GENERATE_REPORT")
    gives = dict(zip(actions, ("data", "processed_data", "analysis", "report"), strict=True))
    kinds = {each: ActionSchema(InstructionKind.ANALYSIS, ANY) for each in actions}
    asked: list[Mapping[str, Any]] = []

    async def verb(step: RunningStep) -> Mapping[str, Any]:
        asked.append(step.parameters)
        return {gives[step.instruction.action]: [step.instruction.instruction_id]}

    async def carry_out() -> Records:
        line: Any = Line()
        what = read_set(CHAPTER_9_2, kinds)
        return await SetRunner(what, line, dict.fromkeys(actions, verb), kinds).run()

    records = run(carry_out(), VirtualLoop())
    assert status_of(records) is Status.COMPLETED
    assert asked[-1] == {
        "rawData": ["inst_101"],
        "processedData": ["inst_102"],
        "analysis": ["inst_103"],
    }
