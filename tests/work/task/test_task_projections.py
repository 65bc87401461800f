"""Random commands: what is emitted validates against the closed schemas, and nothing is lost."""

import copy
import json
from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labharness.work.task import commands as c
from labharness.work.task.events import EVENTS, events_of
from labharness.work.task.facts import TaskFact, TaskMoved, fact_from_json, fact_to_json, folded
from labharness.work.task.record import EDGE_KINDS, RetryPolicy, Tasks
from labharness.work.task.snapshot import snapshot, unfollowed
from labharness.work.task.states import STATUSES, TERMINAL, may_become
from task_schemas import EVENT_TYPES, event_validator, snapshot_validator
from tasks_alone import ANA, OLGA, RUNTIME, TasksAlone

IDS = st.sampled_from("abc")
RUNS = st.integers(0, 10**6).map(str)
WORDS = st.text(max_size=4)
REFS = st.sampled_from(["map", "log"])
POLICIES = st.builds(RetryPolicy, st.integers(1, 4), st.just(0.0), st.just(("cold",)))
PROGRESS = {
    "phase": st.sampled_from(["", "planning", "working", "verifying"]),
    "counters": st.dictionaries(WORDS, st.integers(0, 9), max_size=2),
    "output_offsets": st.dictionaries(REFS, st.integers(0, 9), max_size=2),
    "checkpoint_refs": st.lists(WORDS, max_size=1).map(tuple),
    "covered": st.sampled_from([(), ("raman",)]),
    "delivery": st.sampled_from(["", "delivered", "failed", "not_applicable"]),
}
COMMAND: st.SearchStrategy[c.TaskCommand] = st.one_of(
    st.builds(
        c.CreateTask,
        task_id=IDS,
        objective=st.text(min_size=1, max_size=4),
        parent_task_id=st.sampled_from(["", "a", "b"]),
        acceptance=st.sampled_from([(), ("raman",)]),
        title=WORDS,
        key=st.sampled_from(["", "k"]),
        scope=st.dictionaries(WORDS, WORDS, max_size=1),
        retry=POLICIES,
    ),
    st.builds(c.ReportStatus, task_id=IDS, to=st.sampled_from(STATUSES), reason=WORDS),
    st.builds(c.ReportStatus, task_id=IDS, to=st.sampled_from(["accepted", "running", "lost"])),
    st.builds(c.StartTask, task_id=IDS, run_id=RUNS, worker=st.just("line")),
    st.builds(c.AppendProgress, task_id=IDS, **PROGRESS),
    st.builds(c.UpdateTask, task_id=IDS, changes=st.just({"owner": "olga"})),
    st.builds(c.RetryTask, task_id=IDS, run_id=RUNS, worker=st.just("line"), reason=st.just("x")),
    st.builds(c.FailTask, task_id=IDS, error_code=st.sampled_from(["cold", "bus"])),
    st.builds(c.CancelTask, task_id=IDS, reason=WORDS),
    st.builds(
        c.LinkTasks,
        task_id=IDS,
        kind=st.sampled_from(EDGE_KINDS),
        target_id=st.sampled_from(["a", "b", "c", "map", "log"]),
    ),
    st.builds(
        c.UnlinkTasks,
        task_id=IDS,
        kind=st.sampled_from(EDGE_KINDS),
        target_id=st.sampled_from("abc"),
    ),
    *(
        st.builds(each, task_id=IDS)
        for each in (c.PauseTask, c.ResumeTask, c.CompleteTask, c.ArchiveTask, c.GetTask)
    ),
)
ACTORS = st.sampled_from([RUNTIME, RUNTIME, OLGA, ANA])


def emitted(facts: list[TaskFact]) -> list[dict[str, Any]]:
    tasks, made = Tasks(), []
    for number, fact in enumerate(facts):
        after = folded((fact,), tasks)
        made += events_of(fact, tasks, after, str(number))
        tasks = after
    return made


def check_indexes(tasks: Tasks) -> None:
    """See that what is looked up by is what a look at every task would find."""
    every = tasks.by_id.values()
    open_ = [each.task_id for each in every if each.status not in TERMINAL or each.current]
    assert sorted(tasks.unended) == sorted(open_)
    runs = {run.run_id: each.task_id for each in every for run in each.attempts}
    assert {each: tasks.sessions[each] for each in runs} == runs


def check_times(found: object) -> None:
    """Read every instant of an object: the validator does not look at formats."""
    if isinstance(found, dict):
        for name, value in found.items():
            if name == "timestamp" or name.endswith("At"):
                assert datetime.fromisoformat(value).utcoffset() is not None
            check_times(value)
    elif isinstance(found, list):
        for each in found:
            check_times(each)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(COMMAND, ACTORS), max_size=40))
def test_whatever_is_commanded_the_facts_are_true_and_what_is_emitted_validates(
    script: list[tuple[c.TaskCommand, c.TaskActor]],
) -> None:
    lab = TasksAlone()
    for each in "ab":
        lab.running(each)
    for command, actor in script:
        before, kept = lab.tasks, len(lab.facts)
        lab(command, actor)
        tasks = before
        for fact in lab.facts[kept:]:
            if isinstance(fact, TaskMoved):
                assert may_become(tasks.by_id[fact.task_id].status, fact.to)
            tasks = folded((fact,), tasks)
        for task_id, was in before.by_id.items():
            now = lab[task_id]
            ended = [run for run in was.attempts if run.ended_at_s is not None]
            assert list(now.attempts[: len(ended)]) == ended
            assert sum(run.ended_at_s is None for run in now.attempts) <= 1
            assert now.cancel_requested >= was.cancel_requested
            if was.cancel_requested and was.status != "completed":
                assert now.status not in ("completed", "running", "retrying")
    again = [fact_from_json(json.loads(json.dumps(fact_to_json(each)))) for each in lab.facts]
    assert folded(again) == lab.tasks
    check_indexes(lab.tasks)
    shown = snapshot(lab.tasks, "house", lab.now_s)
    snapshot_validator().validate(json.loads(json.dumps(shown)))
    check_times(shown)
    events = emitted(lab.facts)
    for event in events:
        event_validator().validate(event)
        assert event["taskId"]
    check_times(events)
    assert len({event["eventId"] for event in events}) == len(events)


def told(lab: TasksAlone) -> set[str]:
    return {event["type"] for event in emitted(lab.facts)}


def test_each_of_the_published_events_is_emitted() -> None:
    assert EVENTS == EVENT_TYPES
    assert len(EVENTS) == 23
    lab = TasksAlone()
    lab.running("t", retry=RetryPolicy(3))
    lab.running("u", "t")
    for to in ("queued", "waiting_input", "blocked", "running", "lost", "running"):
        assert not lab(c.ReportStatus(task_id="t", to=to))
    assert not lab(c.UpdateTask(task_id="t", changes={"title": "x"}))
    assert not lab(c.PauseTask(task_id="t"))
    assert not lab(c.ResumeTask(task_id="t"))
    assert not lab(c.CancelTask(task_id="u"))
    assert not lab(c.ReportStatus(task_id="u", to="cancelled"))
    assert not lab(c.FailTask(task_id="t", error_code="cold"))
    again = c.RetryTask(task_id="t", run_id="2", worker="line", reason="again")
    assert not lab(again)
    assert not lab(c.ReportStatus(task_id="t", to="timed_out"))
    assert not lab(replace(again, run_id="3"))
    assert not lab(c.ReportStatus(task_id="t", to="running"))
    lab.reconcile("t")
    assert not lab(c.CompleteTask(task_id="t"))
    assert not lab(c.ArchiveTask(task_id="t"))
    assert told(lab) == EVENTS


@pytest.mark.parametrize(
    "path", [(), ("tasks", 0), ("tasks", 0, "attempts", 0), ("taskSummary",), ("taskGraph",)]
)
def test_a_name_that_the_schemas_do_not_have_is_found(
    path: tuple[str | int, ...], lab: TasksAlone
) -> None:
    lab.running()
    good = snapshot(lab.tasks, "house", lab.now_s)
    assert snapshot_validator().is_valid(good)
    bad = copy.deepcopy(good)
    place: Any = bad
    for each in path:
        place = place[each]
    place["run_id"] = "x"
    assert not snapshot_validator().is_valid(bad)


def test_the_snapshot_counts_and_names_what_is_missing(lab: TasksAlone) -> None:
    lab.running("t")
    lab.running("u")
    lab(c.ReportStatus(task_id="t", to="waiting_permission", required_action="ticket-7"))
    lab(c.FailTask(task_id="u", error_code="cold"))
    shown = snapshot(lab.tasks, "house", lab.now_s)
    assert shown["taskSummary"] == {
        "activeCount": 1,
        "terminalCount": 1,
        "failedCount": 1,
        "lostCount": 0,
        "waitingCount": 1,
        "recentTerminalTasks": ["u"],
    }
    assert [each["requiredActionIds"] for each in shown["blockedTasks"]] == [["ticket-7"]]
    assert shown["tasks"][0]["progress"]["phase"] == "unknown"
    assert shown["tasks"][0]["deliveryState"] == {"status": "unknown"}


def test_a_task_at_work_that_no_house_follows_is_stale_and_says_what_was_last_known(
    lab: TasksAlone,
) -> None:
    lab.running("t")
    lab.running("u")
    lab(c.FailTask(task_id="u", error_code="cold"))
    shown = snapshot(unfollowed(lab.tasks), "house", lab.now_s)
    snapshot_validator().validate(shown)
    assert [(each["status"], each.get("nativeStatus")) for each in shown["tasks"]] == [
        ("stale", "running"),
        ("failed", None),
    ]
    assert shown["taskSummary"]["activeCount"] == 1
