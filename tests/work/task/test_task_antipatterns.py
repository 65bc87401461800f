"""Each of the eight anti-patterns of the agent-task contract is refused, a test for each."""

import json
from pathlib import Path

from labharness.work.task.commands import (
    AppendProgress,
    CompleteTask,
    CreateTask,
    FailTask,
    ReportStatus,
    RetryTask,
    expired,
)
from labharness.work.task.events import events_of
from labharness.work.task.facts import JobCreated, JobTicked, fact_from_json, fact_to_json, folded
from labharness.work.task.record import RetryPolicy
from tasks_alone import ANA, OLGA, TasksAlone

ANSWER_S = 300.0  # as promised, not as imported


def test_a_todo_list_is_not_the_authority_on_a_task(lab: TasksAlone) -> None:
    lab.running()
    assert lab(AppendProgress(task_id="t", plan=(("1", "grow", "done"),))) == ""
    assert all(item.done for item in lab["t"].progress.plan)
    assert lab["t"].status == "running"
    assert lab(CompleteTask(task_id="t")) == "acceptance_open"


def test_a_retry_does_not_overwrite_what_failed_before(lab: TasksAlone) -> None:
    lab.running(retry=RetryPolicy(2))
    lab(AppendProgress(task_id="t", output_offsets={"log": 7}))
    lab(FailTask(task_id="t", error_code="dead_bus"))
    failed = lab["t"].attempts
    lab(RetryTask(task_id="t", run_id="2", worker="line", reason="mended"), OLGA)
    assert lab["t"].attempts[:1] == failed
    assert failed[0].error_code == "dead_bus"
    assert len(lab["t"].attempts) == 2


def test_work_in_the_background_is_known_after_a_restart(tmp_path: Path, lab: TasksAlone) -> None:
    lab.running()
    lab(AppendProgress(task_id="t", phase="working", counters={"spots": 3}))
    kept = tmp_path / "facts.jsonl"
    kept.write_text("".join(json.dumps(fact_to_json(each)) + "\n" for each in lab.facts), "utf-8")
    read = (fact_from_json(json.loads(each)) for each in kept.read_text("utf-8").splitlines())
    assert folded(read) == lab.tasks


def test_completed_is_not_reported_before_everything_is_reconciled(lab: TasksAlone) -> None:
    lab.running()
    assert lab(CompleteTask(task_id="t")) == "acceptance_open"
    assert lab["t"].status == "running"
    lab.reconcile("t")
    assert lab(CompleteTask(task_id="t")) == ""
    assert lab["t"].status == "completed"


def test_a_child_task_has_its_edge_from_its_first_moment(lab: TasksAlone) -> None:
    lab.running()
    assert lab(CreateTask(task_id="u", objective="map", parent_task_id="t"), ANA) == ""
    assert lab.tasks.targets("t", "child") == ("u",)
    assert lab.tasks.targets("u", "parent") == ("t",)
    job = JobCreated(at_s=1.0, job_id="j", title="three temperatures")
    lab.tasks = folded((job,), lab.tasks)
    assert lab(CreateTask(task_id="v", objective="grow", job_id="j"), ANA) == ""
    assert lab.tasks.jobs["j"].task_ids == ("v",)
    assert lab(CreateTask(task_id="w", objective="grow", job_id="k"), ANA) == "unknown_job"


def test_a_long_task_tells_more_than_its_end(lab: TasksAlone) -> None:
    lab.running(retry=RetryPolicy(inactivity_timeout_s=60.0))
    before = lab.tasks
    lab(AppendProgress(task_id="t", phase="working", output_offsets={"log": 7}))
    [event] = events_of(lab.facts[-1], before, lab.tasks, "e")
    assert event["type"] == "task.progress"
    assert event["refs"] == {"outputRefs": [{"ref": "log", "offset": 7}]}
    silent = folded(expired(lab.tasks, lab.now_s + 61.0 + ANSWER_S), lab.tasks)
    assert silent.by_id["t"].status == "timed_out"


def test_a_tick_of_a_schedule_is_not_a_task(lab: TasksAlone) -> None:
    lab.running()
    ticks = [JobTicked(at_s=float(i), job_id="j") for i in range(5)]
    after = folded([JobCreated(at_s=0.0, job_id="j", title="leak check"), *ticks], lab.tasks)
    assert after.jobs["j"].ticks == 5
    assert after.by_id == lab.tasks.by_id


def test_a_lost_worker_is_not_a_success(lab: TasksAlone) -> None:
    lab.running(retry=RetryPolicy(2))
    lab.reconcile("t")  # no error was ever seen, and everything else is there
    lab(ReportStatus(task_id="t", to="lost"))
    assert lab(CompleteTask(task_id="t")) == "illegal_status"
    assert lab(RetryTask(task_id="t", run_id="2", worker="line", reason="lost"), OLGA) == ""
    first = lab["t"].attempts[0]
    assert (first.status, first.native_status, first.error_code) == (
        "unknown",
        "lost",
        "worker_lost",
    )
