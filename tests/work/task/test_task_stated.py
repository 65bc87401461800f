"""What the record of a task states: what was never said is unknown, and bounds are kept."""

import pytest

from labharness.core.vocabulary.texts import Text
from labharness.work.task.commands import (
    AppendProgress,
    ArchiveTask,
    CreateTask,
    FailTask,
    ReportStatus,
    StartTask,
)
from labharness.work.task.jobs import CreateJob, DropRun, MissRuns, schedule_of, untold
from labharness.work.task.snapshot import snapshot
from tasks_alone import ANA, OLGA, TasksAlone


def test_what_was_never_said_of_a_task_is_unknown(lab: TasksAlone) -> None:
    assert not lab(CreateTask(task_id="t", objective="grow"), ANA)
    (task,) = snapshot(lab.tasks, "s", lab.now_s)["tasks"]
    assert (task["owner"], task["assignee"]) == ({"id": "unknown"}, {"id": "unknown"})
    assert task["progress"]["currentStep"] == "unknown"
    assert task["progress"]["acceptanceCoverage"] == "not_applicable"
    assert not lab(CreateTask(task_id="u", objective="grow", owner="lab", assignee="line"), ANA)
    other = next(
        each for each in snapshot(lab.tasks, "s", lab.now_s)["tasks"] if each["taskId"] == "u"
    )
    assert (other["owner"], other["assignee"]) == ({"id": "lab"}, {"id": "line"})


def test_what_is_covered_and_done_now_is_said(lab: TasksAlone) -> None:
    lab.running()
    (task,) = snapshot(lab.tasks, "s", lab.now_s)["tasks"]
    assert task["progress"]["acceptanceCoverage"] == "0/1"
    assert not lab(AppendProgress(task_id="t", covered=("raman",), current_step="measure"))
    (task,) = snapshot(lab.tasks, "s", lab.now_s)["tasks"]
    assert task["progress"]["acceptanceCoverage"] == "1/1"
    assert task["progress"]["currentStep"] == "measure"


def test_a_task_that_is_put_aside_has_ended_when_it_ended(lab: TasksAlone) -> None:
    lab.running()
    assert not lab(FailTask(task_id="t", error_code="bus"))
    ended_at_s = lab["t"].ended_at_s
    lab.now_s += 100.0
    assert not lab(ArchiveTask(task_id="t"), OLGA)
    assert lab["t"].ended_at_s == ended_at_s
    assert not lab(CreateTask(task_id="u", objective="grow"), ANA)
    assert not lab(ArchiveTask(task_id="u"), OLGA)
    assert lab["u"].ended_at_s == lab.now_s


def test_names_of_runs_workers_and_jobs_have_bounds(lab: TasksAlone) -> None:
    assert not lab(CreateTask(task_id="t", objective="grow"), ANA)
    assert not lab(ReportStatus(task_id="t", to="accepted"))
    assert lab(StartTask(task_id="t", run_id="", worker="line")) == "run_exists"
    assert lab(StartTask(task_id="t", run_id="r", worker="")) == "bad_field"
    for title, refused in (("x" * 500, ""), ("x" * 501, "bad_field"), ("", "bad_field")):
        job = CreateJob(job_id=f"job {len(title)}", title=title, every="PT1H")
        assert lab(job, OLGA) == refused
    assert lab(CreateJob(job_id="", title="x", every="PT1H"), OLGA) == "bad_field"


@pytest.mark.parametrize("why", ["house_away", "still_at_work", "queue_full", "bad_payload"])
def test_why_a_run_was_missed_is_told_in_words_of_its_own(why: str, lab: TasksAlone) -> None:
    assert not lab(CreateJob(job_id="j", title="leak check", every="PT1H"), OLGA)
    due_s = schedule_of("PT1H", lab.now_s).after(lab.now_s)
    lab.now_s = due_s + 1.0
    missed = MissRuns(job_id="j", reason=why, first_s=due_s, last_s=due_s, count=1)
    assert not lab(missed)
    ((_, told),) = untold(lab.tasks, lab.tasks.jobs["j"])
    words = Text("job.dropped", code=why) if why == "bad_payload" else Text(f"job.{why}")
    assert str(words) in told


def test_a_dropped_run_of_a_batch_was_due_at_no_time(lab: TasksAlone) -> None:
    assert not lab(CreateJob(job_id="b", title="batch", runs=({"x": 1}, {"x": 2})), OLGA)
    assert not lab(DropRun(job_id="b", run="1", reason="bad_payload"))
    miss = lab.tasks.jobs["b"].last_miss
    assert miss is not None
    assert (miss.first_s, miss.last_s, miss.count) == (0, 0, 1)
    assert lab.tasks.jobs["b"].owed == ("2",)
