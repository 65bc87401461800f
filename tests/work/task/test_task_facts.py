"""A fact of a task is the same after the journal's JSON, and facts alone make the state."""

import json
from dataclasses import fields, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from labharness.work.task import facts as f
from labharness.work.task.facts import folded
from labharness.work.task.record import RetryPolicy, TaskStep

NAMES = st.text(max_size=8)
TIMES = st.floats(0, 2e9)
SCALARS = st.none() | st.booleans() | st.integers() | st.text(max_size=5)
BY_NAME = {
    "at_s": TIMES,
    "changes": st.dictionaries(NAMES, SCALARS, max_size=3),
    "scope": st.dictionaries(NAMES, SCALARS, max_size=3),
    "constraints": st.dictionaries(NAMES, SCALARS, max_size=3),
    "profile": st.dictionaries(NAMES, SCALARS, max_size=3),
    "counters": st.dictionaries(NAMES, st.integers(0, 99), max_size=3),
    "output_offsets": st.dictionaries(NAMES, st.integers(0, 99), max_size=3),
    "acceptance": st.lists(NAMES, max_size=3).map(tuple),
    "covered": st.lists(NAMES, max_size=3).map(tuple),
    "input_refs": st.lists(NAMES, max_size=3).map(tuple),
    "checkpoint_refs": st.lists(NAMES, max_size=3).map(tuple),
    "step": st.just(()) | st.tuples(NAMES, NAMES, NAMES),
    "plan": st.lists(st.tuples(NAMES, NAMES, st.sampled_from(["done", "open"]))).map(tuple),
    "retry": st.builds(
        RetryPolicy,
        st.integers(1, 9),
        TIMES,
        st.lists(NAMES, max_size=2).map(tuple),
        st.none() | TIMES,
    ),
}


def fact_of(kind: type[f.TaskFact]) -> st.SearchStrategy[Any]:
    return st.builds(kind, **{each.name: BY_NAME.get(each.name, NAMES) for each in fields(kind)})


@given(st.sampled_from(sorted(f.FACTS.values(), key=str)).flatmap(fact_of))
def test_every_fact_is_the_same_after_json(fact: f.TaskFact) -> None:
    body = json.loads(json.dumps(f.fact_to_json(fact), allow_nan=False))
    assert f.fact_from_json(body) == fact


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"code": "task.vanished", "at_s": 1.0},
        {"code": "job.ticked", "at_s": 1.0, "job_id": "j", "colour": "red"},
        {"code": "job.ticked", "at_s": 1.0},
    ],
)
def test_a_record_that_is_not_a_known_fact_is_refused(body: dict[str, Any]) -> None:
    with pytest.raises(f.UnknownFact):
        f.fact_from_json(body)


CREATED = f.TaskCreated(at_s=1.0, task_id="t", objective="grow", requested_by="ana")


def test_a_retry_keeps_the_first_attempt_as_it_ended() -> None:
    first = [
        CREATED,
        f.AttemptStarted(at_s=2.0, task_id="t", run_id="r1", worker="line"),
        f.TaskProgressed(
            at_s=3.0,
            task_id="t",
            phase="working",
            output_offsets={"log": 10},
            step=("s1", "tool", "completed"),
        ),
        f.AttemptEnded(at_s=4.0, task_id="t", run_id="r1", status="failed", error_code="cold"),
    ]
    before = folded(first).by_id["t"].attempts
    second = f.AttemptStarted(at_s=5.0, task_id="t", run_id="r2", worker="line", reason="rerun")
    task = folded((second,), folded(first)).by_id["t"]
    assert task.attempts[:1] == before
    assert before[0].error_code == "cold"
    assert before[0].steps == (TaskStep("s1", "tool", "completed", 3.0),)
    assert [each.ordinal for each in task.attempts] == [1, 2]
    assert task.current == task.attempts[1]


def test_a_pair_of_edges_is_seen_from_both_ends_and_a_removed_one_is_kept() -> None:
    other = replace(CREATED, task_id="u")
    made = f.EdgeSet(at_s=2.0, task_id="t", kind="blocks", target_id="u")
    tasks = folded([CREATED, other, made])
    assert tasks.targets("t", "blocks") == ("u",)
    assert tasks.targets("u", "blocked_by") == ("t",)
    removed = replace(made, at_s=3.0, status="removed", reason="done")
    tasks = folded((removed,), tasks)
    assert tasks.targets("t", "blocks") == tasks.targets("u", "blocked_by") == ()
    assert {(e.created_at_s, e.updated_at_s, e.reason) for e in tasks.edges} == {(2.0, 3.0, "done")}


def test_nothing_reported_is_unknown() -> None:
    task = folded([CREATED]).by_id["t"]
    assert (task.progress.phase, task.delivery, task.task_kind) == ("unknown",) * 3
