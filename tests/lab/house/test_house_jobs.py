"""Jobs in a house: batches, schedules, missed runs, and a house that dies at any instant."""

import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from house_kept import Kept
from labharness.journal import JournalFailed
from labharness.lab.house import jobs
from labharness.lab.house.jobs import job_file
from labharness.lab.house.orders import OwnerStatus, TaskRefused
from labharness.work.task.facts import TaskFact
from labharness.work.task.house import HouseJournal
from labharness.work.task.jobs import BadJob, DropRun, EndJob, standing
from labharness.work.task.record import Job, Tasks
from line_world import LineWorld, message
from tasks_alone import OLGA

QUEUED_MAX = 100  # as promised, not as imported

HOUR_S = 3600.0
PATH = "constraints.priority"


class Killed(BaseException):
    """SIGKILL, in one process: nothing catches it."""


class Mortal(HouseJournal):
    """A journal before or after one of whose writes the house dies."""

    left = -1

    def _kept(
        self, facts: Sequence[TaskFact], leads_to: Tasks, now_s: float
    ) -> tuple[TaskFact, ...]:
        for write in (False, True) if facts else ():
            Mortal.left -= 1
            if write:
                facts = super()._kept(facts, leads_to, now_s)
            if Mortal.left == 0:
                raise Killed
        return tuple(facts)


class RealLine(LineWorld):
    """A line in real time, whose people are told."""

    def status(self) -> OwnerStatus | None:
        found = super().status()
        return found and replace(found, speed=1.0)


class Lab(Kept):
    """A house with its line, opened again whenever it dies."""

    line_of, journal_of = RealLine, Mortal

    def alive(self, work: Callable[[], object]) -> None:
        try:
            work()
        except Killed:
            self.journal._journal._database.close()
            self.open()

    def turns(self, count: int, after_s: float = 1.0) -> None:
        for _ in range(count):
            self.now_s += after_s
            self.alive(self.house.step)
            self.world.turn()

    def make(self, every: str = "", vary: Sequence[str] = (), key: str = "") -> str:
        given = {PATH: list(vary)} if vary else {}
        return self.house.create_job(
            message("template"), "olga", given, every=every, title="leak check", seed=None, key=key
        )

    def job(self, job_id: str) -> Job:
        return self.house.tasks.jobs[job_id]


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    Mortal.left = -1
    return Lab(tmp_path)


def test_a_batch_makes_a_task_each_at_once_and_is_done_when_they_are(lab: Lab) -> None:
    job_id = lab.make(vary=["low", "urgent", "high"])
    made = [lab.house.tasks.by_id[each] for each in lab.job(job_id).task_ids]
    assert [each.priority for each in made] == ["low", "urgent", "high"]
    assert [each.title for each in made] == [f"priority={each.priority}" for each in made]
    assert {(each.requested_by, each.visibility) for each in made} == {("ana", "background")}
    assert standing(lab.house.tasks, lab.job(job_id)) == "active"
    lab.turns(120)
    assert standing(lab.house.tasks, lab.job(job_id)) == "done"
    failed = [each for each in lab.job(job_id).task_ids if lab.house.tasks.by_id[each].error_code]
    assert len(lab.told) == len(failed)


@pytest.mark.promise(61)
@pytest.mark.parametrize("write", range(1, 13))
def test_each_due_time_has_one_task_wherever_the_house_dies(lab: Lab, write: int) -> None:
    """The ticks of four hours: a fact each, and a task each, with a death at the first."""
    job_id = lab.make("PT1H")
    lab.now_s = 1000.0 + HOUR_S
    Mortal.left = write
    lab.turns(60, 0.5)
    Mortal.left = -1
    for hour in range(2, 5):
        lab.now_s = 1000.0 + hour * HOUR_S
        lab.turns(60)
    job = lab.job(job_id)
    keys = Counter(key for actor, key in lab.house.tasks.keys if actor == "ana")
    assert (job.ticks, len(job.task_ids), job.owed, job.missed) == (4, 4, (), 0)
    assert keys == Counter(f"{job_id}/{1000 + hour * 3600}" for hour in range(1, 5))


def test_what_was_due_while_no_house_was_up_is_told_and_not_made_up_for(lab: Lab) -> None:
    job_id = lab.make("PT1H")
    lab.journal.close()
    lab.now_s += 5 * HOUR_S + 600
    lab.open()
    lab.turns(3)
    job = lab.job(job_id)
    assert (job.ticks, job.missed, job.task_ids) == (0, 5, ())
    assert len(lab.told) == 1
    assert "5 runs" in lab.told[0]
    lab.now_s = 1000.0 + 6 * HOUR_S
    lab.turns(1)
    assert len(lab.job(job_id).task_ids) == 1


def test_a_run_whose_predecessor_is_at_work_is_missed_and_told_once(lab: Lab) -> None:
    job_id = lab.make("PT1H")
    lab.world.latched = "too hot"
    for hour in range(1, 5):
        lab.now_s = 1000.0 + hour * HOUR_S
        lab.turns(2)
    job = lab.job(job_id)
    assert (len(job.task_ids), job.missed) == (1, 3)
    assert len(lab.told) == 1


def test_a_job_that_was_ended_makes_nothing_more(lab: Lab) -> None:
    job_id = lab.make("PT1H")
    lab.house.give(EndJob(job_id=job_id), OLGA)
    lab.now_s += HOUR_S
    lab.turns(2)
    assert (lab.job(job_id).ticks, len(lab.house.tasks.by_id)) == (0, 0)
    with pytest.raises(TaskRefused):
        lab.house.give(EndJob(job_id=job_id), OLGA)


def test_a_message_that_was_changed_makes_no_task_and_people_are_told(lab: Lab) -> None:
    job_id = lab.make("PT1H")
    path = job_file(lab.home, job_id)
    body = json.loads(path.read_text())
    body["payload"]["constraints"] = {"priority": "high"}  # a message that would be taken
    path.write_text(json.dumps(body))
    lab.now_s += HOUR_S
    lab.turns(2)
    job = lab.job(job_id)
    assert (job.task_ids, job.owed, job.missed, len(lab.told)) == ((), (), 1, 1)


@pytest.mark.promise(61)
@pytest.mark.parametrize("write", range(1, 7))
def test_a_job_that_is_asked_for_again_with_its_key_is_made_once(lab: Lab, write: int) -> None:
    """The operator hears nothing, because the house dies at it, and so asks again."""
    Mortal.left = write
    lab.alive(lambda: lab.make(vary=["low", "high"], key="k"))
    Mortal.left = -1
    lab.now_s += 60.0
    again = lab.make(vary=["low", "high"], key="k")
    assert list(lab.house.tasks.jobs) == [again]
    assert len(lab.job(again).task_ids) == len(lab.house.tasks.by_id) == 2
    assert len(list(lab.home.glob("tasks/job-*.json"))) <= 2
    with pytest.raises(TaskRefused, match="key"):
        lab.make(vary=["low"], key="k")


def test_a_batch_that_cannot_be_kept_whole_is_not_begun(lab: Lab) -> None:
    for number in range(QUEUED_MAX - 1):
        lab.house.submit(message(f"k{number}"))
    with pytest.raises(BadJob, match="no room for 2"):
        lab.make(vary=["low", "high"])
    with pytest.raises(BadJob, match="one of them"):
        lab.make()
    assert not lab.house.tasks.jobs


@pytest.mark.parametrize("waits", [QUEUED_MAX - 1, QUEUED_MAX])
def test_a_run_of_a_job_stays_owed_while_the_queue_is_full(
    monkeypatch: pytest.MonkeyPatch, waits: int
) -> None:
    monkeypatch.setattr(jobs, "waiting", lambda tasks: [None] * waits)
    made: list[Any] = []
    house: Any = SimpleNamespace(
        journal=SimpleNamespace(tasks=None),
        _kept=lambda job: message("template"),
        submit=lambda *said: made.append(said),
    )
    job: Any = SimpleNamespace(job_id="j", every="PT1H", runs=())
    jobs.HouseJobs._make(house, job, "1")
    assert [said[2] for said in made] == (["1"] if waits < QUEUED_MAX else [])


@pytest.mark.parametrize("waits", [QUEUED_MAX - 1, QUEUED_MAX])
def test_what_is_due_is_missed_once_the_queue_is_full(
    monkeypatch: pytest.MonkeyPatch, waits: int
) -> None:
    asked: list[bool] = []

    def due(tasks: object, job: object, now_s: float, *, full: bool) -> list[Any]:
        asked.append(full)
        return []

    monkeypatch.setattr(jobs, "waiting", lambda tasks: [None] * waits)
    monkeypatch.setattr(jobs, "due", due)
    job = SimpleNamespace(owed=())
    house: Any = SimpleNamespace(
        journal=SimpleNamespace(tasks=SimpleNamespace(jobs={"j": job})),
        now_s=lambda: 1.0,
        _say=lambda commands: None,
        _tell_of=lambda job_id: None,
    )
    jobs.HouseJobs.step(house)
    assert asked == [waits >= QUEUED_MAX]


@pytest.mark.parametrize(
    ("why", "reason"),
    [
        (JournalFailed("full"), None),
        (TaskRefused("house.full", most=QUEUED_MAX), TaskRefused.code),
        (OSError("no disk"), "unreadable"),
        (ValueError("no JSON"), "unreadable"),
    ],
)
def test_a_run_that_cannot_be_made_is_dropped_with_its_code_but_not_where_the_disk_is_full(
    monkeypatch: pytest.MonkeyPatch, why: Exception, reason: str | None
) -> None:
    said: list[Any] = []

    def submit(*made: object) -> None:
        raise why

    monkeypatch.setattr(jobs, "waiting", lambda tasks: [])
    house: Any = SimpleNamespace(
        journal=SimpleNamespace(tasks=None),
        _kept=lambda job: message("template"),
        submit=submit,
        _say=said.extend,
    )
    job: Any = SimpleNamespace(job_id="j", every="", runs=({PATH: "low"},))
    if reason is None:
        with pytest.raises(JournalFailed):
            jobs.HouseJobs._make(house, job, "1")
        assert said == []
        return
    jobs.HouseJobs._make(house, job, "1")
    assert said == [DropRun(job_id="j", run="1", reason=reason)]
