"""Commands on tasks: what each makes, who may give it, and how it is refused."""

from typing import Any

import pytest

from labharness.lab.house.spoken import command_of
from labharness.work.task.commands import (
    COMMANDS,
    MAY,
    AppendProgress,
    CancelTask,
    CompleteTask,
    CreateTask,
    FailTask,
    GetTask,
    LeaseInstruments,
    LinkTasks,
    PauseTask,
    ReleaseInstruments,
    ReportStatus,
    ResumeTask,
    RetryTask,
    StartTask,
    TaskCommand,
    UnlinkTasks,
    UpdateTask,
    expired,
    readable,
    silent,
)
from labharness.work.task.facts import CommandRefused, folded
from labharness.work.task.queue import waiting
from labharness.work.task.record import RetryPolicy
from tasks_alone import ANA, BEN, OLGA, RUNTIME, TasksAlone

ANSWER_S = 300.0  # as promised, not as imported


def test_each_command_has_a_name_an_actor_and_a_decision() -> None:
    assert COMMANDS.keys() >= MAY.keys()
    decided = {word for word, kind in COMMANDS.items() if "_decided" in vars(kind)}
    assert COMMANDS.keys() - decided == {"get_task", "list_tasks"}  # these change nothing


def test_a_caller_may_not_pause_and_an_operator_may(lab: TasksAlone) -> None:
    lab.running()
    assert lab(PauseTask(task_id="t"), ANA) == "forbidden"
    assert lab["t"].status == "running"
    assert isinstance(lab.facts[-1], CommandRefused)
    assert lab(PauseTask(task_id="t"), OLGA) == ""
    run = lab["t"].attempts[-1]
    assert (lab["t"].status, run.status, run.native_status) == ("paused", "running", "held")
    assert lab(ResumeTask(task_id="t"), OLGA) == ""
    run = lab["t"].attempts[-1]
    assert (lab["t"].status, run.status, run.native_status) == ("running", "running", "")
    assert len(lab["t"].attempts) == 1


@pytest.mark.parametrize("command", [CancelTask(task_id="t"), GetTask(task_id="t")])
def test_a_caller_is_not_told_of_a_task_of_another_caller(
    command: TaskCommand, lab: TasksAlone
) -> None:
    lab.running()
    assert lab(command, BEN) == "unknown_task"
    assert lab(command, ANA) == ""
    assert [each.task_id for each in readable(lab.tasks, ANA)] == ["t"]
    assert readable(lab.tasks, BEN) == ()


def test_a_cancellation_reaches_the_whole_graph_and_sticks(lab: TasksAlone) -> None:
    for task_id, parent in (("t", ""), ("u", "t"), ("v", "u")):
        lab.running(task_id, parent)
    assert lab(CreateTask(task_id="w", objective="look", parent_task_id="t"), ANA) == ""
    assert lab(CancelTask(task_id="t", reason="enough"), ANA) == ""
    assert [lab[each].status for each in "tuvw"] == [*["cancelling"] * 3, "cancelled"]
    child = CreateTask(task_id="x", objective="more", parent_task_id="u")
    assert lab(child, ANA) == "cancelled_graph"
    assert lab(UnlinkTasks(task_id="t", kind="child", target_id="u"), OLGA) == "cancelled_graph"
    assert lab(ReportStatus(task_id="u", to="lost")) == ""
    assert lab(ReportStatus(task_id="u", to="running")) == "cancelled_graph"
    assert lab(ReportStatus(task_id="v", to="cancelled")) == ""
    assert lab["v"].attempts[-1].status == "cancelled"
    again = RetryTask(task_id="v", run_id="r", worker="line", reason="once more")
    assert lab(again, OLGA) == "cancelled_graph"


def test_a_repeated_key_changes_nothing_and_another_command_under_it_is_refused(
    lab: TasksAlone,
) -> None:
    assert lab(CreateTask(task_id="a", objective="grow", key="k"), ANA) == ""
    before = lab.tasks
    assert lab(CreateTask(task_id="b", objective="grow", key="k"), ANA) == ""
    assert lab.tasks == before
    assert lab.tasks.keys["ana", "k"][1] == "a"
    assert lab(CreateTask(task_id="b", objective="other", key="k"), ANA) == "key_reused"
    assert lab(CreateTask(task_id="b", objective="other", key="k"), BEN) == ""


def test_a_retry_is_bound_by_its_policy_and_keeps_what_failed(lab: TasksAlone) -> None:
    lab.running(retry=RetryPolicy(3, 100.0, ("safety_violation",)))
    assert lab(FailTask(task_id="t", error_code="dead_bus")) == ""
    retry = RetryTask(task_id="t", run_id="r2", worker="line", reason="bus mended")
    assert lab(retry) == "back_off"
    lab.now_s += 100.0
    assert lab(RetryTask(task_id="t", run_id="r2", worker="line", reason="")) == "no_reason"
    assert lab(RetryTask(task_id="t", run_id="t-1", worker="line", reason="x")) == "run_exists"
    assert lab(retry) == ""
    assert [(each.status, each.error_code) for each in lab["t"].attempts] == [
        ("failed", "dead_bus"),
        ("preparing", ""),
    ]
    began_s = lab["t"].started_at_s
    assert lab(ReportStatus(task_id="t", to="running")) == ""
    assert lab["t"].started_at_s == began_s, "with its first attempt"
    assert lab(FailTask(task_id="t", error_code="safety_violation")) == ""
    third = RetryTask(task_id="t", run_id="r3", worker="line", reason="again")
    assert lab(third, OLGA) == "not_retryable"


def test_attempts_come_to_their_end(lab: TasksAlone) -> None:
    lab.running()
    assert lab(FailTask(task_id="t", error_code="cold")) == ""
    retry = RetryTask(task_id="t", run_id="r2", worker="line", reason="again")
    assert lab(retry, OLGA) == "attempts_used"
    assert lab(StartTask(task_id="t", run_id="r2", worker="line")) == "no_reason"


def test_silence_times_out_and_progress_prevents_it(lab: TasksAlone) -> None:
    lab.running(retry=RetryPolicy(inactivity_timeout_s=60.0))
    last_s = lab.now_s
    assert silent(lab.tasks, last_s + 60.0) == ()
    lab.now_s += 50.0
    lab(AppendProgress(task_id="t", phase="working"))
    assert silent(lab.tasks, last_s + 61.0) == ()
    assert silent(lab.tasks, lab.now_s + 60.5) == (lab["t"],)
    assert expired(lab.tasks, lab.now_s + 60.0 + ANSWER_S) == ()
    late = folded(expired(lab.tasks, lab.now_s + 60.5 + ANSWER_S), lab.tasks).by_id["t"]
    assert (late.status, late.error_code, late.attempts[-1].status) == (
        "timed_out",
        "inactivity",
        "failed",
    )


@pytest.mark.parametrize(
    "waits",
    [
        PauseTask(task_id="t", reason="look"),
        ReportStatus(task_id="t", to="waiting_input", reason="load it", required_action="confirm"),
        ReportStatus(task_id="t", to="waiting_permission", reason="agree"),
        ReportStatus(task_id="t", to="lost", reason="line_owner_silent"),
    ],
)
def test_a_task_that_is_held_or_waits_is_not_silent_and_counts_anew_when_it_goes_on(
    waits: TaskCommand, lab: TasksAlone
) -> None:
    lab.running(retry=RetryPolicy(inactivity_timeout_s=60.0))
    assert lab(waits) == ""
    lab.now_s += 10_000.0
    assert silent(lab.tasks, lab.now_s) == ()
    assert lab(ReportStatus(task_id="t", to="running")) == ""
    assert silent(lab.tasks, lab.now_s + 60.0) == ()
    assert silent(lab.tasks, lab.now_s + 61.0) == (lab["t"],)


@pytest.mark.parametrize("kind", ["child", "parent", "blocks", "blocked_by"])
def test_a_graph_has_no_circle(kind: str, lab: TasksAlone) -> None:
    for each in "abc":
        lab.running(each)
    assert lab(LinkTasks(task_id="a", kind=kind, target_id="b")) == ""
    assert lab(LinkTasks(task_id="b", kind=kind, target_id="c")) == ""
    assert lab(LinkTasks(task_id="c", kind=kind, target_id="a")) == "edge_cycle"
    assert lab(LinkTasks(task_id="a", kind=kind, target_id="a")) == "edge_cycle"
    assert lab(LinkTasks(task_id="a", kind="odd", target_id="c")) == "unknown_edge_kind"
    assert lab(UnlinkTasks(task_id="a", kind=kind, target_id="b")) == ""
    assert lab(UnlinkTasks(task_id="a", kind=kind, target_id="b")) == "unknown_edge"
    assert lab(LinkTasks(task_id="c", kind=kind, target_id="a")) == ""


@pytest.mark.parametrize(
    ("changes", "refused"),
    [
        ({}, ""),
        ({"task_id": ""}, "bad_field"),
        ({"objective": ""}, "bad_field"),
        ({"visibility": "loud"}, "bad_field"),
        ({"title": "x" * 500}, ""),
        ({"title": "x" * 501}, "bad_field"),
        ({"retry": RetryPolicy(0)}, "bad_field"),
        ({"job_id": "daily"}, "unknown_job"),
    ],
)
def test_a_task_is_made_only_of_fields_that_can_be(
    changes: dict[str, Any], refused: str, lab: TasksAlone
) -> None:
    assert lab(CreateTask(**{"task_id": "a", "objective": "grow", **changes}), ANA) == refused
    assert list(lab.tasks.by_id) == ([] if refused else ["a"])


@pytest.mark.parametrize(
    "changes", [{}, {"status": "completed"}, {"title": 3}, {"acceptance": "x"}, {"objective": ""}]
)
def test_an_update_changes_only_what_is_a_field_of_people(
    changes: dict[str, object], lab: TasksAlone
) -> None:
    lab.running()
    assert lab(UpdateTask(task_id="t", changes=changes), OLGA) == "bad_field"
    assert lab(UpdateTask(task_id="t", changes={"title": "MoS2"}), OLGA) == ""
    assert lab["t"].title == "MoS2"


def test_an_operator_s_word_for_a_task_changes_what_it_names_and_its_turn(lab: TasksAlone) -> None:
    for each in ("first", "second"):
        lab(CreateTask(task_id=each, objective="grow"))
        lab(ReportStatus(task_id=each, to="accepted"))
        lab(ReportStatus(task_id=each, to="queued"))
    assert [each.task_id for each in waiting(lab.tasks)] == ["first", "second"]
    asked = {"task_id": "second", "priority": "urgent", "title": "Ann's", "by": "olga"}
    assert lab(command_of("update", asked), OLGA) == ""
    assert [each.task_id for each in waiting(lab.tasks)] == ["second", "first"]
    assert (lab["second"].title, lab["second"].objective) == ("Ann's", "grow")
    nothing = command_of("update", {"task_id": "second", "by": "olga"})
    assert lab(nothing, OLGA) == "bad_field"


def test_outputs_grow_and_never_shrink(lab: TasksAlone) -> None:
    lab.running()
    assert lab(AppendProgress(task_id="t", output_offsets={"log": 5})) == ""
    assert lab(AppendProgress(task_id="t", output_offsets={"log": 4})) == "offset_shrinks"
    assert lab(AppendProgress(task_id="t", covered=("beauty",))) == "bad_field"


def test_a_step_has_its_id_its_name_and_its_status(lab: TasksAlone) -> None:
    lab.running()
    assert lab(AppendProgress(task_id="t", step=("1", "grow"))) == "bad_field"
    assert lab(AppendProgress(task_id="t", plan=(("1", "grow"),))) == "bad_field"


def test_a_task_is_complete_only_when_everything_is_reconciled(lab: TasksAlone) -> None:
    lab.running()
    lab.running("u", "t")
    end = CompleteTask(task_id="t")
    assert lab(end) == "acceptance_open"
    lab(AppendProgress(task_id="t", covered=("raman",), output_offsets={"map": 9}))
    assert lab(end) == "artifacts_open"
    lab(LinkTasks(task_id="t", kind="produced_artifact", target_id="map"))
    assert lab(end) == "children_open"
    lab(FailTask(task_id="u", error_code="cold"))
    assert lab(end) == "delivery_open"
    lab(AppendProgress(task_id="t", delivery="failed"))
    assert lab(end) == "delivery_open"
    lab(AppendProgress(task_id="t", delivery="not_applicable"))
    assert lab(end, OLGA) == "forbidden"
    assert lab(end, RUNTIME) == ""
    assert (lab["t"].status, lab["t"].attempts[-1].status) == ("completed", "completed")


@pytest.mark.parametrize("to", ["completed", "failed", "cancelling", "retrying", "odd"])
def test_a_status_that_has_a_command_of_its_own_is_not_reported(lab: TasksAlone, to: str) -> None:
    lab.running()
    assert lab(ReportStatus(task_id="t", to=to)) == "illegal_status"
    assert lab["t"].status == "running"


def test_a_cancelled_graph_leaves_what_has_ended_as_it_is(lab: TasksAlone) -> None:
    lab.running()
    lab.running("done", parent="t")
    lab.running("open", parent="t")
    assert lab(FailTask(task_id="done", error_code="timeout")) == ""
    ended = lab["done"]
    assert lab(CancelTask(task_id="t", reason="enough"), ANA) == ""
    assert lab["done"] == ended
    assert [lab[each].status for each in ("t", "open")] == ["cancelling"] * 2


def test_only_the_outputs_of_the_last_attempt_have_to_be_there(lab: TasksAlone) -> None:
    lab.running(retry=RetryPolicy(attempts_max=3))
    assert lab(AppendProgress(task_id="t", output_offsets={"lost": 3})) == ""
    assert lab(FailTask(task_id="t", error_code="timeout")) == ""
    retry = RetryTask(task_id="t", run_id="t-2", worker="line", reason="again")
    assert lab(retry, OLGA) == ""
    assert lab(ReportStatus(task_id="t", to="running")) == ""
    lab.reconcile("t")
    assert lab(CompleteTask(task_id="t")) == ""


def test_instruments_are_released_by_the_task_that_has_them(lab: TasksAlone) -> None:
    lab.running()
    lab.running("u")
    lease = LeaseInstruments(task_id="t", run_id="t-1", instruments=("furnace",), places=1)
    assert lab(lease) == ""
    assert lab(ReleaseInstruments(task_id="u", run_id="t-1")) == "not_leased"
    assert lab(ReleaseInstruments(task_id="t", run_id="t-1")) == "attempt_open"
    assert lab(FailTask(task_id="t", error_code="timeout")) == ""
    assert lab(ReleaseInstruments(task_id="t", run_id="t-1")) == ""
    assert lab(ReleaseInstruments(task_id="t", run_id="t-1")) == "not_leased"
    assert lab.tasks.leases == {}
