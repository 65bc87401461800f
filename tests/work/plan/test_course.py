"""The course of a set: every instruction ends once, after those it needs, and a trip ends all."""

import random
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labharness.work.plan.actions import ActionSchema
from labharness.work.plan.course import (
    RUNNING_MAX,
    Failure,
    Records,
    Turn,
    after,
    at_first,
    begun,
    failure_of,
    next_turn,
    status_of,
)
from labharness.work.plan.instructions import (
    ExecutionMode,
    Instruction,
    InstructionKind,
    InstructionSet,
)
from labharness.work.plan.records import Status
from labharness.work.plan.recovery import ATTEMPTS_MAX, Fallback, Otherwise, Recovery, Retry
from labharness.work.plan.step import FailureKind
from set_reference import Modelled, modelled

ANY: dict[str, Any] = {"type": "object"}
ACTIONS = {
    "ask": ActionSchema(InstructionKind.QUERY, ANY),
    "move": ActionSchema(InstructionKind.OPERATION, ANY),
    "other": ActionSchema(InstructionKind.QUERY, ANY),
    "strict": ActionSchema(
        InstructionKind.ANALYSIS, {"type": "object", "properties": {"n": {"type": "number"}}}
    ),
}
KINDS = {
    "refused": FailureKind.REFUSED,
    "broken": FailureKind.EXECUTION,
    "late": FailureKind.TIMEOUT,
    "input": FailureKind.INPUT,
}


def one(name: str, *needs: str, action: str = "ask", **more: Any) -> Instruction:
    kind = ACTIONS[action].kind
    return Instruction(
        instruction_id=name, action=action, kind=kind, dependencies=needs, timeout_s=10.0, **more
    )


class Drive:
    """A set carried out by hand: each attempt ends as it is scripted, in an order by chance."""

    def __init__(
        self,
        plan: InstructionSet,
        tries: Mapping[str, tuple[str, ...]],
        chance: random.Random | None = None,
        trips_after: int = -1,
    ) -> None:
        self.plan, self.tries, self.chance = plan, tries, chance or random.Random(1)
        self.records: Records = at_first(plan)
        self.now_s, self.trips_after = 0.0, trips_after
        self.begins: list[str] = []
        self.ends: list[str] = []
        self.turns: list[Turn] = []
        self.tripped: list[bool] = []

    def turn(self, *, tripped: bool = False) -> Turn:
        turn = next_turn(
            self.plan, self.records, ACTIONS, self.now_s, started_s=0.0, tripped=tripped
        )
        self._check(turn)
        self.records = turn.records
        self.turns.append(turn)
        self.tripped.append(tripped)
        return turn

    def _check(self, turn: Turn) -> None:
        for name, record in turn.records.items():  # an end is for ever
            if self.records[name].has_ended():
                assert record == self.records[name]
        for each in turn.ready:
            what = each.instruction
            assert turn.records[what.instruction_id].status is Status.PENDING
            assert all(turn.records[need].has_ended() for need in what.dependencies)
            assert not turn.over

    def run(self) -> dict[str, str]:
        while True:
            turn = self.turn(tripped=len(self.begins) == self.trips_after)
            if turn.over:
                return {name: each.status.value for name, each in self.records.items()}
            for ready in turn.ready:
                name = ready.instruction.instruction_id
                self.records = {**self.records, name: begun(self.records[name], self.now_s)}
                self.begins.append(name)
            running = [n for n, each in self.records.items() if each.status is Status.RUNNING]
            moving = [n for n in running if self.records[n].instruction.action == "move"]
            assert len(running) <= RUNNING_MAX
            assert len(moving) <= 1
            if not running:
                assert turn.wake_s > self.now_s
                self.now_s = turn.wake_s
                continue
            self.now_s += 0.001
            name = self.chance.choice(running)
            record = self.records[name]
            tries = self.tries.get(name, ("done",))
            found = tries[-1] if record.fell_back else tries[record.attempts - 1]
            ended: Any = {"n": 1} if found == "done" else Failure(found, KINDS[found])
            self.records = {**self.records, name: after(record, ended, self.now_s)}
            self.ends.append(name)


ENDS = st.sampled_from(["done", "done", "done", *KINDS])


@st.composite
def steps(draw: st.DrawFn, operations: bool = True) -> list[Modelled]:
    found: list[Modelled] = []
    for number in range(draw(st.integers(1, 7))):
        before = [each.name for each in found]
        needs: tuple[str, ...] = ()
        if before:
            needs = tuple(draw(st.lists(st.sampled_from(before), unique=True)))
        wanted = st.sampled_from(["COMPLETED", "FAILED", "SKIPPED", "TIMEOUT", "nowhere"])
        told = st.tuples(st.sampled_from(needs or ("",)), wanted)
        condition = draw(told | st.just(("", ""))) if needs else ("", "")
        attempts, fallback = draw(st.sampled_from([1, 1, 2, 3])), draw(st.booleans())
        otherwise = draw(st.sampled_from(["fail", "fail", "skip", "abort"]))
        count = attempts + fallback
        tries = tuple(draw(st.lists(ENDS, min_size=count, max_size=count)))
        moves = operations and draw(st.booleans())
        name = f"i{number}"
        found.append(Modelled(name, needs, moves, condition, attempts, fallback, otherwise, tries))
    return found


def real(step: Modelled) -> Instruction:
    about, wanted = step.condition
    text = f"dependencies.{about}.status == '{wanted}'" if about else ""
    if wanted == "nowhere":
        text = f"dependencies.{about}.nowhere == 1 OR dependencies.{about}.status == 'x'"
    action = "move" if step.operation else "ask"
    recovery = Recovery(
        retry=Retry(attempts=step.attempts),
        fallback=Fallback(action) if step.fallback else None,
        otherwise=Otherwise(step.otherwise),
    )
    return one(step.name, *step.needs, action=action, condition=text, recovery=recovery)


def made(found: list[Modelled], mode: ExecutionMode) -> InstructionSet:
    return InstructionSet(tuple(map(real, found)), mode, timeout_s=1e6)


@settings(max_examples=150)
@given(steps())
def test_a_sequential_set_comes_to_what_the_rulings_say(found: list[Modelled]) -> None:
    drive = Drive(made(found, ExecutionMode.SEQUENTIAL), {each.name: each.tries for each in found})
    assert drive.run() == modelled(found, sequential=True)


@settings(max_examples=150)
@given(steps(operations=False), st.randoms(use_true_random=False))
def test_a_parallel_set_comes_to_the_same_in_any_order_of_ends(
    found: list[Modelled], chance: random.Random
) -> None:
    if any(each.otherwise == "abort" for each in found):
        found = [replace(each, otherwise="skip") for each in found]  # an abort is of its moment
    tries = {each.name: each.tries for each in found}
    drive = Drive(made(found, ExecutionMode.PARALLEL), tries, chance)
    assert drive.run() == modelled(found, sequential=False)


@settings(max_examples=150)
@given(
    steps(), st.sampled_from(ExecutionMode), st.randoms(use_true_random=False), st.integers(-1, 6)
)
def test_any_set_ends_each_instruction_once_after_those_that_it_needs(
    found: list[Modelled], mode: ExecutionMode, chance: random.Random, trips_after: int
) -> None:
    drive = Drive(made(found, mode), {each.name: each.tries for each in found}, chance, trips_after)
    drive.run()
    records = drive.records
    assert all(each.has_ended() for each in records.values())
    for each in found:
        record = records[each.name]
        assert record.attempts == drive.begins.count(each.name) <= each.attempts + each.fallback
        assert (record.status is Status.SKIPPED) == bool(record.reason)
        assert (record.result is not None) == (record.status is Status.COMPLETED)
        if record.status in (Status.FAILED, Status.TIMEOUT):
            assert record.error
        if each.operation:  # nothing is sent again after a byte has left
            ends = each.tries[: record.attempts - 1] if record.attempts else ()
            assert all(end == "refused" for end in ends) or record.fell_back
    assert status_of(records) in set(Status) - {Status.PENDING, Status.RUNNING}


@pytest.mark.promise(14)
@settings(max_examples=100)
@given(steps(), st.sampled_from(ExecutionMode), st.integers(0, 4))
def test_a_trip_ends_everything_at_once_and_nothing_is_recovered(
    found: list[Modelled], mode: ExecutionMode, begun_before: int
) -> None:
    drive = Drive(made(found, mode), {each.name: each.tries for each in found})
    drive.trips_after = begun_before
    drive.run()
    before: Records = {}
    for tripped, last in zip(drive.tripped, drive.turns, strict=True):
        if tripped:
            break
        before = last.records
    else:
        return  # it had ended before
    assert last.over
    assert not last.ready
    for name, record in last.records.items():
        if name not in before or not before[name].has_ended():
            tripped = record.status is Status.SKIPPED and record.reason == "trip"
            assert tripped or record.attempts
    if any(each.reason == "trip" for each in last.records.values()):
        assert status_of(last.records) is Status.FAILED


def statuses(plan: InstructionSet, **tries: str) -> dict[str, str]:
    drive = Drive(plan, {name: tuple(each.split()) for name, each in tries.items()})
    drive.run()
    return {
        name: each.reason or each.recovered or each.status.value
        for name, each in drive.records.items()
    }


PARALLEL = ExecutionMode.PARALLEL


def test_a_dependency_that_did_not_complete_skips_what_needs_it_but_for_what_speaks_of_it() -> None:
    plan = InstructionSet(
        (
            one("a"),
            one("b", "a"),
            one("c", "b"),
            one("on_failure", "a", condition="dependencies.a.status == 'FAILED'"),
            one("on_success", "a", condition="dependencies.a.status == 'SUCCESS'"),
            one("instead", "a", recovery=Recovery(fallback=Fallback("other"))),
            one("free"),
        ),
        PARALLEL,
    )
    assert statuses(plan, a="broken") == {
        "a": "FAILED",
        "b": "dependency",
        "c": "dependency",
        "on_failure": "COMPLETED",
        "on_success": "condition",
        "instead": "fallback",
        "free": "COMPLETED",
    }


def test_a_record_tells_its_id_its_status_and_its_result_error_or_reason() -> None:
    plan = InstructionSet((one("a"), one("b"), one("c", "b")), PARALLEL)
    drive = Drive(plan, {"b": ("broken",)})
    drive.run()
    assert [each.told() for each in drive.records.values()] == [
        {"instructionId": "a", "status": "COMPLETED", "result": {"n": 1}},
        {"instructionId": "b", "status": "FAILED", "error": "broken"},
        {"instructionId": "c", "status": "SKIPPED", "reason": "dependency"},
    ]


def test_siblings_of_an_operation_that_failed_are_not_sent_unless_the_set_says_so() -> None:
    steps = (one("a", action="move"), one("b", action="move"), one("look"))
    found = {"a": "FAILED", "b": "dependency", "look": "COMPLETED"}
    assert statuses(InstructionSet(steps, PARALLEL), a="broken") == found
    goes_on = InstructionSet(steps, PARALLEL, goes_on=True)
    assert statuses(goes_on, a="broken") == found | {"b": "COMPLETED"}


def test_a_query_that_failed_keeps_no_operation_from_beginning() -> None:
    plan = InstructionSet((one("look"), one("a", action="move")), PARALLEL)
    records = {**at_first(plan)}
    records["look"] = replace(records["look"], status=Status.FAILED)
    (ready,) = next_turn(plan, records, ACTIONS, 0.0, started_s=0.0).ready
    assert ready.instruction.instruction_id == "a"


def test_an_operation_between_two_attempts_is_not_sent_after_its_sibling_has_failed() -> None:
    kept = Recovery(Retry(attempts=5, delay=9.0))
    steps = (one("a", action="move", recovery=kept), one("b", action="move"))
    drive = Drive(InstructionSet(steps, PARALLEL), {"a": ("refused",) * 5, "b": ("broken",)})
    assert drive.run() == {"a": "FAILED", "b": "FAILED"}
    assert drive.begins == ["a", "b"]
    assert drive.records["a"].error == "refused"


def test_a_failure_of_this_moment_keeps_the_next_operation_from_beginning() -> None:
    kept = Recovery(Retry(attempts=5, delay=9.0))
    speaks = one("c", "b", action="move", condition="dependencies.b.status == 'FAILED'")
    steps = (one("a", action="move", recovery=kept), one("b", action="move"), speaks)
    drive = Drive(InstructionSet(steps, PARALLEL), {"a": ("refused",) * 5, "b": ("broken",)})
    assert drive.run() == {"a": "FAILED", "b": "FAILED", "c": "SKIPPED"}


def test_all_operations_that_might_begin_are_offered_for_judging_and_one_begins() -> None:
    steps = tuple(one(name, action="move") for name in "abc")
    turn = Drive(InstructionSet(steps, PARALLEL), {}).turn()
    assert [each.instruction.instruction_id for each in turn.operations] == ["a", "b", "c"]
    assert [each.instruction.instruction_id for each in turn.ready] == ["a"]


@pytest.mark.promise(42)
@pytest.mark.parametrize("end", ["broken", "late", "input"])
def test_an_operation_whose_byte_left_is_never_sent_again(end: str) -> None:
    kept = Recovery(Retry(ATTEMPTS_MAX), Fallback("move"), Otherwise.SKIP)
    drive = Drive(
        InstructionSet((one("a", action="move", recovery=kept), one("b", recovery=kept))),
        {"a": (end,) * 11},
    )
    drive.run()
    assert drive.begins == ["a"]
    assert drive.records["a"].status is (Status.TIMEOUT if end == "late" else Status.FAILED)


def test_an_operation_that_was_refused_may_be_tried_again() -> None:
    kept = Recovery(Retry(attempts=3, delay=2.0, factor=3.0))
    drive = Drive(
        InstructionSet((one("a", action="move", recovery=kept),)),
        {"a": ("refused", "refused", "done")},
    )
    drive.run()
    assert drive.records["a"].recovered == "retry"
    assert drive.records["a"].started_s == 0.0
    assert drive.now_s == pytest.approx(2.0 + 6.0, abs=0.1)  # the pauses grow


def test_a_part_is_the_result_where_that_is_declared_and_there_is_one() -> None:
    kept = one("a", recovery=Recovery(otherwise=Otherwise.PARTIAL))
    record = begun(at_first(InstructionSet((kept,)))["a"], 0.0)
    part = Failure("half", FailureKind.EXECUTION, {"n": 3})
    found = after(record, part, 1.0)
    assert (found.status, found.result, found.recovered) == (Status.COMPLETED, {"n": 3}, "partial")
    assert found.error == "half"
    assert after(record, Failure("none", FailureKind.EXECUTION), 1.0).status is Status.FAILED
    assert after(replace(record, instruction=one("a")), part, 1.0).status is Status.FAILED


def test_an_abort_ends_what_runs_and_skips_the_rest() -> None:
    aborts = Recovery(otherwise=Otherwise.ABORT)
    plan = InstructionSet((one("a", recovery=aborts), one("b"), one("c", "b")), PARALLEL)
    drive = Drive(plan, {})
    turn = drive.turn()
    records = {name: begun(each, 0.0) for name, each in turn.records.items() if name != "c"}
    records["a"] = after(records["a"], Failure("why", FailureKind.EXECUTION), 1.0)
    turn = next_turn(plan, {**turn.records, **records}, ACTIONS, 1.0, started_s=0.0)
    found = {name: each.reason or each.status.value for name, each in turn.records.items()}
    assert found == {"a": "FAILED", "b": "FAILED", "c": "abort"}
    assert turn.stopped == ("b",)
    assert turn.over


def test_an_instruction_and_a_set_have_their_time() -> None:
    plan = InstructionSet((one("a"), one("b"), one("c", "b")), PARALLEL, timeout_s=15.0)
    turn = Drive(plan, {}).turn()
    assert turn.wake_s == 10.0
    running = {**turn.records} | {name: begun(turn.records[name], 0.0) for name in "ab"}
    first = next_turn(plan, running, ACTIONS, 9.99, started_s=0.0)
    assert (first.stopped, first.wake_s) == ((), 10.0)
    late = next_turn(plan, running, ACTIONS, 10.0, started_s=0.0)
    assert late.stopped == ("a", "b")
    assert late.records["a"].status is Status.TIMEOUT
    slow = running | {"b": replace(running["b"], due_s=99.0)}
    assert (
        next_turn(plan, slow | {"a": late.records["a"]}, ACTIONS, 10.0, started_s=0.0).wake_s == 15
    )
    end = next_turn(plan, slow, ACTIONS, 15.0, started_s=0.0)
    found = {name: each.reason or each.status.value for name, each in end.records.items()}
    assert found == {"a": "TIMEOUT", "b": "TIMEOUT", "c": "timeout"}
    assert status_of(end.records) is Status.TIMEOUT
    assert end.over


def test_what_cannot_be_decided_is_held_while_others_run_and_then_fails_with_its_reason() -> None:
    plan = InstructionSet(
        (
            one("a"),
            one("slow"),
            one("lost", "a", condition="dependencies.a.result.m > 1"),
            one("path", "a", parameters={"n": "${dependencies.a.result.m}"}),
            one("type", "a", action="strict", parameters={"n": "${results.a.result.word}"}),
            one("after", "lost"),
        ),
        PARALLEL,
    )
    drive = Drive(plan, {})
    first = drive.turn()
    running = {**first.records} | {name: begun(first.records[name], 0.0) for name in ("a", "slow")}
    done = running | {"a": after(running["a"], {"n": 1, "word": "x"}, 1.0)}
    turn = next_turn(plan, done, ACTIONS, 1.0, started_s=0.0)
    assert turn.held.keys() == {"lost", "path", "type"}
    assert "leads nowhere" in turn.held["lost"]
    assert "leads to nothing" in turn.held["path"]
    assert "'x' is not of type 'number'" in turn.held["type"]
    assert all(turn.records[name].status is Status.PENDING for name in turn.held)
    ended = done | {"slow": after(done["slow"], {}, 2.0)}
    last = next_turn(plan, ended, ACTIONS, 2.0, started_s=0.0)
    assert last.over
    found = {name: each.reason or each.status.value for name, each in last.records.items()}
    assert found["after"] == "dependency"
    assert {found[name] for name in turn.held} == {"FAILED"}
    assert last.records["lost"].error == turn.held["lost"]


def test_what_is_held_stays_so_while_anything_else_may_begin() -> None:
    lost = one("lost", "a", condition="dependencies.a.result.m > 1")
    plan = InstructionSet((one("a"), lost, one("next", "a")), PARALLEL)
    records = {**at_first(plan)}
    records["a"] = after(begun(records["a"], 0.0), {"n": 1}, 0.0)
    turn = next_turn(plan, records, ACTIONS, 0.0, started_s=0.0)
    assert [each.instruction.instruction_id for each in turn.ready] == ["next"]
    assert turn.held.keys() == {"lost"}
    assert turn.records["lost"].status is Status.PENDING


def test_data_of_a_dependency_is_filled_in_with_its_type() -> None:
    asked = {"n": "${dependencies.a.result.n}", "text": "n = ${results.a.result.n}"}
    plan = InstructionSet((one("a"), one("b", "a", action="strict", parameters=asked)))
    drive = Drive(plan, {})
    drive.run()
    (ready,) = [r for turn in drive.turns for r in turn.ready if r.instruction.action == "strict"]
    assert ready.parameters == {"n": 1, "text": "n = 1"}


@pytest.mark.promise(9)
@pytest.mark.parametrize(
    ("ok", "comes_to"), [(False, "condition"), (None, "FAILED"), (True, "fallback")]
)
@pytest.mark.parametrize("otherwise", ["fail", "skip"])
def test_a_fall_back_takes_no_place_against_the_condition_or_where_that_is_not_known(
    ok: bool | None, comes_to: str, otherwise: str
) -> None:
    kept = Recovery(Retry(attempts=3), Fallback("move"), Otherwise(otherwise))
    condition = "dependencies.a.result.ok == true"
    fire = one("fire", "a", "b", action="move", condition=condition, recovery=kept)
    plan = InstructionSet((one("a"), one("b"), fire), PARALLEL)
    records = {name: begun(each, 0.0) for name, each in at_first(plan).items() if name != "fire"}
    records["a"] = after(records["a"], {} if ok is None else {"ok": ok}, 0.0)
    ends: tuple[dict[str, Any] | Failure, ...] = ({}, Failure("broken", FailureKind.EXECUTION))
    for b in ends:
        ended = {**at_first(plan), **records, "b": after(records["b"], b, 0.0)}
        turn = next_turn(plan, ended, ACTIONS, 0.0, started_s=0.0)
        fire_is = turn.records["fire"]
        if ok:
            assert [each.instruction.instruction_id for each in turn.ready] == ["fire"]
            continue
        assert turn.ready == ()
        assert (fire_is.reason or fire_is.status.value) == comes_to
        assert ("leads nowhere" in fire_is.error) == (ok is None)


@pytest.mark.promise(9)
@pytest.mark.parametrize("otherwise", ["fail", "skip"])
def test_a_fall_back_takes_no_place_where_a_reference_leads_nowhere(otherwise: str) -> None:
    kept = Recovery(Retry(attempts=3), Fallback("move"), Otherwise(otherwise))
    asked = {"v": {"from": "${dependencies.a.result.n}", "min": 0, "max": 1}}
    move = one("move", "a", action="move", parameters=asked, recovery=kept)
    plan = InstructionSet((one("a"), move), PARALLEL)
    records = {**at_first(plan)}
    records["a"] = after(begun(records["a"], 0.0), {"m": 1}, 0.0)
    turn = next_turn(plan, records, ACTIONS, 0.0, started_s=0.0)
    assert (turn.ready, turn.operations) == ((), ())
    assert turn.records["move"].status is Status.FAILED
    assert "leads to nothing" in turn.records["move"].error
    failed = failure_of(plan, turn.records)
    assert failed is not None
    assert (failed.instruction_id, failed.kind) == ("move", FailureKind.INPUT)


@pytest.mark.promise(9)
def test_an_operation_whose_number_is_out_of_its_bounds_is_refused_and_its_siblings_with_it() -> (
    None
):
    bounded = {"from": "${dependencies.a.result.n}", "min": 5, "max": 20.0}
    out = one("out", "a", action="move", parameters={"v": bounded})
    steps = (one("a"), one("slow"), one("first", "a", action="move"), out)
    plan = InstructionSet((*steps, one("last", "a", action="move"), one("q", "a")), PARALLEL)
    drive = Drive(plan, {"a": ("done",)}, random.Random(2))
    first = drive.turn()
    running = {**first.records} | {name: begun(first.records[name], 0.0) for name in ("a", "slow")}
    done = running | {"a": after(running["a"], {"n": 1}, 1.0)}
    turn = next_turn(plan, done, ACTIONS, 1.0, started_s=0.0)
    assert [each.instruction.instruction_id for each in turn.ready] == ["q"]
    found = {name: each.reason or each.status.value for name, each in turn.records.items()}
    assert (found["first"], found["out"], found["last"]) == ("dependency", "FAILED", "dependency")
    assert "allowed are numbers from 5 to 20" in turn.records["out"].error


def test_what_finds_no_free_place_is_not_filled_in_yet() -> None:
    steps = [one(f"q{n}") for n in range(RUNNING_MAX)]
    plan = InstructionSet(
        (
            one("a"),
            *steps,
            one("type", "a", action="strict", parameters={"n": "${results.a.result.w}"}),
        ),
        PARALLEL,
    )
    records = {**at_first(plan)}
    records["a"] = after(begun(records["a"], 0.0), {"w": "x"}, 0.0)
    turn = next_turn(plan, records, ACTIONS, 0.0, started_s=0.0)
    assert (len(turn.ready), turn.held) == (RUNNING_MAX, {})


@pytest.mark.promise(9)
@pytest.mark.parametrize("value", [-0.1, 20.1, True, "15", None])
def test_a_number_out_of_its_bounds_is_never_sent(value: object) -> None:
    bounded = {"from": "${dependencies.a.result.n}", "min": 0, "max": 20.0}
    plan = InstructionSet((one("a"), one("b", "a", action="move", parameters={"v": bounded})))
    first = next_turn(plan, at_first(plan), ACTIONS, 0.0, started_s=0.0)

    def then(result: object) -> Turn:
        done = after(begun(first.records["a"], 0.0), {"n": result}, 0.0)
        return next_turn(plan, {**first.records, "a": done}, ACTIONS, 0.0, started_s=0.0)

    assert then(15).ready[0].parameters == {"v": 15}
    refused = then(value)
    assert refused.ready == ()
    assert refused.records["b"].status is Status.FAILED


def test_the_status_of_a_set_is_that_of_its_gravest_member() -> None:
    def of(**tries: str) -> Status:
        plan = InstructionSet((one("a"), one("b", "a"), one("c")), PARALLEL, timeout_s=1e6)
        drive = Drive(plan, {name: (each,) for name, each in tries.items()})
        assert status_of(drive.records) is Status.PENDING
        drive.run()
        return status_of(drive.records)

    assert of() is Status.COMPLETED
    assert of(c="late") is Status.TIMEOUT
    assert of(a="broken", c="late") is Status.FAILED
    skipped = one("a", recovery=Recovery(otherwise=Otherwise.SKIP))
    drive = Drive(InstructionSet((skipped,)), {"a": ("broken",)})
    drive.run()
    assert status_of(drive.records) is Status.SKIPPED
