"""Jobs without a house: due times, missed runs, the values of a batch."""

from dataclasses import replace
from datetime import UTC, datetime
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from labharness.work.task.jobs import (
    BadJob,
    CreateJob,
    EndJob,
    MissRuns,
    TellJob,
    TickJob,
    due,
    points,
    schedule_of,
    varied,
)
from tasks_alone import ANA, OLGA, TasksAlone

JOBS_MAX, BATCH_MAX, LATE_S_MAX = 50, 50, 60.0  # as promised, not as imported

DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
EVERY = st.one_of(
    st.builds("{}@{:02}:{:02}".format, st.sampled_from([*DAYS, "day"]), *[st.integers(0, 23)] * 2),
    st.builds("PT{}M".format, st.integers(1, 5_000)),
)
TIMES = st.floats(0, 4e9)


@given(st.sampled_from([*DAYS, "day"]), st.integers(0, 23), st.integers(0, 59), TIMES)
def test_a_time_of_day_is_due_on_that_day_at_that_time_in_utc(
    day: str, hour: int, minute: int, now_s: float
) -> None:
    at_s = schedule_of(f"{day}@{hour:02}:{minute:02}", 0.0).after(now_s)
    at = datetime.fromtimestamp(at_s, UTC)
    assert (at.hour, at.minute, at.second) == (hour, minute, 0)
    assert day in ("day", DAYS[at.weekday()])
    assert 0 < at_s - now_s <= (86_400 if day == "day" else 7 * 86_400)


@pytest.mark.promise(61)
@example(every="PT1M", created_at_s=0.0, pauses=[418.0])  # the next is due while these are told
@given(EVERY, TIMES, st.lists(st.floats(0, 3e6), min_size=1, max_size=12))
def test_each_due_time_ticks_or_is_missed_once_whenever_the_house_looks(
    every: str, created_at_s: float, pauses: list[float]
) -> None:
    lab = TasksAlone()
    lab.now_s = created_at_s
    assert lab(CreateJob(job_id="j", title="leak check", every=every), OLGA) == ""
    schedule, begin_s = schedule_of(every, lab.now_s), lab.now_s
    dealt: list[tuple[int, int]] = []
    for pause_s in pauses:
        lab.now_s += pause_s
        looked_s = lab.now_s  # each command takes a second, within which the next may be due
        for command in due(lab.tasks, lab.tasks.jobs["j"], looked_s, full=False):
            assert lab(command) == ""
            if isinstance(command, TickJob):
                assert lab.now_s - command.due_s <= LATE_S_MAX + 2
                dealt.append((command.due_s, 1))
            elif isinstance(command, MissRuns):
                assert schedule.count(command.first_s - 1, command.last_s) == command.count
                dealt.append((command.first_s, command.count))
        assert sum(count for _, count in dealt) == schedule.count(begin_s, looked_s)
    assert all(one < other for (one, _), (other, _) in pairwise(dealt))


@pytest.mark.promise(61)
def test_a_due_time_is_dealt_with_once_and_no_other_time_is(lab: TasksAlone) -> None:
    assert lab(CreateJob(job_id="j", title="leak check", every="PT1H"), ANA) == "forbidden"
    assert lab(CreateJob(job_id="j", title="leak check", every="PT1H"), OLGA) == ""
    due_s = schedule_of("PT1H", lab.now_s).after(lab.now_s)
    lab.now_s = due_s + 1.0
    assert lab(TickJob(job_id="j", due_s=due_s + 1)) == "not_due"
    assert lab(TickJob(job_id="j", due_s=due_s + 3600)) == "not_due"
    assert lab(TickJob(job_id="j", due_s=due_s), OLGA) == "forbidden"
    assert lab(TickJob(job_id="j", due_s=due_s)) == ""
    assert lab(TickJob(job_id="j", due_s=due_s)) == "not_due"
    assert lab(EndJob(job_id="j"), OLGA) == ""
    assert lab.tasks.jobs["j"].owed == ()
    assert lab(TickJob(job_id="j", due_s=due_s + 3600)) == "job_ended"


@pytest.mark.parametrize(("late_s", "kind"), [(60.0, TickJob), (60.5, MissRuns)])
def test_a_due_time_is_kept_until_it_is_too_late(
    lab: TasksAlone, late_s: float, kind: type
) -> None:
    assert lab(CreateJob(job_id="j", title="leak check", every="PT1H"), OLGA) == ""
    lab.now_s = schedule_of("PT1H", lab.now_s).after(lab.now_s) + late_s
    (command,) = due(lab.tasks, lab.tasks.jobs["j"], lab.now_s, full=False)
    assert isinstance(command, kind)


@pytest.mark.parametrize(
    "every", ["monday", "moonday@07:00", "day@24:00", "P", "3600", "PT30S", "PT0M"]
)
def test_what_is_no_schedule_is_refused(every: str) -> None:
    with pytest.raises(BadJob):
        schedule_of(every, 0.0)


def test_a_batch_has_each_combination_and_changes_only_what_it_names() -> None:
    payload = {"inputs": {"parameters": {"temperature": 1, "time": 2}, "target": "MoS2"}}
    path, other = "inputs.parameters.temperature", "inputs.parameters.time"
    found = [varied(payload, each) for each in points({path: [700, 725], other: [5, 6]})]
    made = [tuple(each["inputs"]["parameters"].values()) for each in found]
    assert made == [(700, 5), (700, 6), (725, 5), (725, 6)]
    assert {each["inputs"]["target"] for each in found} == {"MoS2"}
    assert payload["inputs"]["parameters"] == {"temperature": 1, "time": 2}
    with pytest.raises(BadJob, match=r"temperatur'?$"):
        varied(payload, {"inputs.parameters.temperatur": 700})
    for values in ([1, 1], [], list(range(BATCH_MAX + 1))):
        with pytest.raises(BadJob):
            points({path: values})


def test_a_lab_has_so_many_jobs_at_once_and_one_more_when_one_is_over(lab: TasksAlone) -> None:
    for number in range(JOBS_MAX):
        assert lab(CreateJob(job_id=f"j{number}", title="check", every="6h"), OLGA) == ""
    more = CreateJob(job_id="more", title="t" * 500, runs=({},) * BATCH_MAX)
    assert lab(more, OLGA) == "jobs_full"
    assert lab(EndJob(job_id="j7"), OLGA) == ""
    assert lab(replace(more, runs=({},) * (BATCH_MAX + 1)), OLGA) == "bad_field"
    assert lab(more, OLGA) == ""


@pytest.mark.parametrize(
    ("every", "period_s", "anchor_s"),
    [
        ("60s", 60, 5),
        ("P366D", 366 * 86_400, 5),
        ("THURSDAY@00:01", 7 * 86_400, 60),
        ("wednesday@23:59", 7 * 86_400, 6 * 86_400 + 23 * 3600 + 59 * 60),
    ],
)
def test_a_schedule_is_what_its_text_says(every: str, period_s: int, anchor_s: int) -> None:
    found = schedule_of(every, 5.5)
    assert (found.period_s, found.anchor_s) == (period_s, anchor_s)


@pytest.mark.parametrize("every", ["P367D", "59s", "never@10:00"])
def test_a_schedule_that_cannot_be_kept_is_refused_with_the_bounds(every: str) -> None:
    with pytest.raises(BadJob) as why:
        schedule_of(every, 0.0)
    bounds = {} if "@" in every else {"least_s": 60, "most_d": 366}
    assert why.value.args[0].params == {"every": every, **bounds}


def test_what_people_were_told_of_a_job_is_kept_for_good(lab: TasksAlone) -> None:
    assert lab(CreateJob(job_id="j", title="check", every="6h"), OLGA) == ""
    for name in ("a", "b", "a"):
        assert lab(TellJob(job_id="j", name=name)) == ""
    assert lab.tasks.jobs["j"].told == {"a", "b"}
