"""Leases: no instrument has two runs, no capability more than its limit, no urgent task waits."""

from collections import Counter
from collections.abc import Sequence
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from labharness.work.task.commands import (
    ArchiveTask,
    CompleteTask,
    CreateTask,
    FailTask,
    LeaseInstruments,
    LinkTasks,
    ReleaseInstruments,
    ReportStatus,
    RetryTask,
    StartTask,
    TaskActor,
)
from labharness.work.task.queue import (
    PRIORITIES,
    Need,
    _told,
    next_task,
    obstacle,
    reviewed,
    waiting,
    waits,
)
from labharness.work.task.record import WITHOUT_LINE, RetryPolicy, Task
from labharness.work.task.snapshot import snapshot, task_of
from task_schemas import snapshot_validator
from tasks_alone import ANA, OLGA, RUNTIME, TasksAlone

SETS = [frozenset(each) for each in ((), ("furnace",), ("laser",), ("furnace", "laser"))]
Offer = tuple[frozenset[str], int]
OFFERS = st.fixed_dictionaries(
    {name: st.tuples(st.sampled_from(SETS), st.integers(1, 3)) for name in ("grow", "map", "read")}
)


class Lab:
    """Tasks that begin, end and are tried again, each with the lease of its capability."""

    def __init__(self, offers: dict[str, Offer]) -> None:
        self.alone, self.runs = TasksAlone(), 0
        self.offers = offers

    def need(self, task: Task) -> Need:
        if task.profile.get(WITHOUT_LINE):
            return Need((), 2)
        instruments, places = self.offers[task.task_family]
        return Need(tuple(sorted(instruments)), places)

    def queue(self, capability: str, priority: str, **profile: bool) -> None:
        name = f"t{len(self.alone.tasks.by_id)}"
        create = CreateTask(
            task_id=name,
            objective="do it",
            task_family=capability,
            priority=priority,
            profile=profile,
            retry=RetryPolicy(attempts_max=9),
        )
        assert not self.alone(create, ANA)
        self.review()

    def review(self, held: str = "") -> None:
        for command in [*reviewed(self.alone.tasks)]:
            assert not self.alone(command)
        for command in [*waits(self.alone.tasks, self.need, held)]:
            assert not self.alone(command)

    def begin(self) -> Task | None:
        task = next_task(self.alone.tasks, self.need)
        if task is not None:
            self.runs += 1
            start = StartTask(task_id=task.task_id, run_id=f"r{self.runs}", worker="line")
            assert not self.alone(start)
            assert not self.lease(task.task_id)
        self.review()
        return task

    def lease(self, name: str) -> str:
        task = self.alone[name]
        assert task.current is not None
        need = self.need(task)
        return self.alone(
            LeaseInstruments(
                task_id=name,
                run_id=task.current.run_id,
                instruments=need.instruments,
                places=need.places,
            )
        )

    def end(self, random: Random) -> None:
        """End a run by chance: its attempt first, its lease maybe much later."""
        leases = list(self.alone.tasks.leases.values())
        if not leases:
            return
        lease = random.choice(leases)
        release = ReleaseInstruments(task_id=lease.task_id, run_id=lease.run_id)
        run = self.alone[lease.task_id].current
        if run is not None and run.run_id == lease.run_id:
            assert self.alone(release) == "attempt_open"
            assert not self.alone(FailTask(task_id=lease.task_id, error_code="e"))
        else:
            assert not self.alone(release)
            assert self.alone(release) == "not_leased"
        self.review()

    def again(self, random: Random) -> None:
        """Try a failed task again, which takes its lease if and only if nothing is in its way."""
        failed = [t for t in self.alone.tasks.by_id.values() if t.status == "failed"]
        if failed:
            task, self.runs = random.choice(failed), self.runs + 1
            retry = RetryTask(
                task_id=task.task_id, run_id=f"r{self.runs}", worker="line", reason="more"
            )
            if self.alone(retry, OLGA):
                return
            why = obstacle(self.alone.tasks, task, self.need(task))
            assert bool(self.lease(task.task_id)) == bool(why)
            self.review()

    def check(self) -> None:
        tasks = self.alone.tasks
        names = [name for lease in tasks.leases.values() for name in lease.instruments]
        assert len(names) == len(set(names)) == len(tasks.leased)
        places = Counter(tasks.by_id[each.task_id].task_family for each in tasks.leases.values())
        assert all(count <= self.offers[name][1] for name, count in places.items())


@pytest.mark.promise(63)
@given(
    OFFERS, st.lists(st.sampled_from(["queue", "begin", "end", "again"]), max_size=25), st.randoms()
)
def test_no_instrument_has_two_runs_and_no_capability_more_than_its_limit(
    offers: dict[str, Offer], moves: Sequence[str], random: Random
) -> None:
    lab = Lab(offers)
    for move in moves:
        if move == "queue":
            lab.queue(random.choice(list(offers)), random.choice(PRIORITIES))
        elif move == "begin":
            before = lab.alone.tasks
            task = lab.begin()
            able = [each for each in waiting(before) if not obstacle(before, each, lab.need(each))]
            assert task == (able[0] if able else None)  # never behind one that could begin
        else:
            getattr(lab, move)(random)
        lab.check()
        for each in waiting(lab.alone.tasks):
            why = obstacle(lab.alone.tasks, each, lab.need(each))
            assert each.status == ("waiting_resource" if why else "queued")
            assert each.status_reason == why


@pytest.mark.promise(63)
def test_a_task_without_instruments_runs_beside_and_passes_one_that_waits() -> None:
    lab = Lab({"grow": (frozenset({"furnace"}), 1), "read": (frozenset(), 2)})
    for capability, priority in (("grow", "high"), ("grow", "high"), *[("read", "low")] * 3):
        lab.queue(capability, priority)
    begun = [task.task_id for _ in range(5) if (task := lab.begin())]
    assert begun == ["t0", "t2", "t3"]
    waiting_now = {name: lab.alone[name] for name in ("t1", "t4")}
    assert {each.status for each in waiting_now.values()} == {"waiting_resource"}
    assert "grow" in waiting_now["t1"].status_reason
    assert "2" in waiting_now["t4"].status_reason


@pytest.mark.promise(63)
def test_each_form_of_a_capability_has_its_own_places() -> None:
    lab = Lab({"map": (frozenset({"laser"}), 1)})
    for without_line in (True, False, True, False, True):
        lab.queue("map", "normal", **{WITHOUT_LINE: without_line})
    begun = [task.task_id for _ in range(5) if (task := lab.begin())]
    assert begun == ["t0", "t1", "t2"]


def test_what_holds_the_line_is_told_of_the_next_task_once_however_it_is_worded() -> None:
    lab = Lab({"grow": (frozenset({"furnace"}), 1)})
    lab.queue("grow", "high")
    lab.queue("grow", "low")
    lab.review("process 1 has it since 5 s")
    told = len(lab.alone.facts)
    lab.review("process 1 has it since 6 s")
    assert len(lab.alone.facts) == told
    assert (lab.alone["t0"].status, lab.alone["t1"].status) == ("waiting_resource", "queued")
    lab.review()
    assert lab.alone["t0"].status == "queued"


def test_the_worker_of_an_attempt_shows_its_instruments_while_it_has_them() -> None:
    lab = Lab({"grow": (frozenset({"furnace", "laser"}), 1)})
    lab.queue("grow", "high")
    lab.begin()
    shown = task_of(lab.alone.tasks, lab.alone["t0"])["attempts"][0]["worker"]
    assert shown == {"id": "line", "instruments": ["furnace", "laser"]}
    snapshot_validator().validate(snapshot(lab.alone.tasks, "lab", lab.alone.now_s))
    for _ in range(2):  # the attempt, then the lease
        lab.end(Random(1))
    assert task_of(lab.alone.tasks, lab.alone["t0"])["attempts"][0]["worker"] == {"id": "line"}


@pytest.mark.parametrize("actor", [ANA, OLGA])
def test_no_person_leases_an_instrument(actor: TaskActor) -> None:
    lab = Lab({"grow": (frozenset({"furnace"}), 1)})
    lab.queue("grow", "high")
    lease = LeaseInstruments(task_id="t0", run_id="r", instruments=("furnace",), places=1)
    assert lab.alone(lease, actor) == "forbidden"
    assert lab.alone(lease, RUNTIME) == "no_attempt"


# ---- The queue: the most urgent of what may begin, the oldest of those, nothing before its time.


def line(task: Task) -> Need:
    return Need(("line",))


@pytest.mark.parametrize(
    ("status", "reason", "action", "why", "told"),
    [
        ("queued", "", "", "", []),
        ("queued", "", "", "hot", ["waiting_resource"]),
        ("queued", "hot", "", "hot", ["waiting_resource"]),
        ("waiting_resource", "hot", "line", "hot", []),
        ("waiting_resource", "hot", "line", "hotter", []),
        ("waiting_resource", "taken", "lease", "hot", ["queued", "waiting_resource"]),
        ("waiting_resource", "hot", "line", "", ["queued"]),
    ],
)
def test_what_a_task_waits_for_is_told_once_and_when_it_changes(
    status: str, reason: str, action: str, why: str, told: list[str]
) -> None:
    task: Any = SimpleNamespace(
        task_id="t", status=status, status_reason=reason, required_action=action
    )
    said = [each.to for each in _told(task, why, "line") if isinstance(each, ReportStatus)]
    assert said == told


def queued(alone: TasksAlone, name: str, priority: str = "normal", after: str = "") -> None:
    assert not alone(CreateTask(task_id=name, objective="grow", priority=priority), ANA)
    if after:
        assert not alone(LinkTasks(task_id=name, kind="blocked_by", target_id=after))
    review(alone)


def review(alone: TasksAlone) -> None:
    for command in list(reviewed(alone.tasks)):
        assert not alone(command)


@pytest.mark.promise(63)
@given(st.lists(st.sampled_from((*PRIORITIES, "whatever")), max_size=8))
def test_tasks_begin_by_priority_and_then_by_age(priorities: list[str]) -> None:
    alone = TasksAlone()
    for number, priority in enumerate(priorities):
        queued(alone, f"{number}", priority)
    ranks = [PRIORITIES.index(p) if p in PRIORITIES else 2 for p in priorities]
    expected = sorted(range(len(ranks)), key=lambda each: (ranks[each], each))
    assert [int(each.task_id) for each in waiting(alone.tasks)] == expected
    first = next_task(alone.tasks, line)
    assert (None if first is None else int(first.task_id)) == (expected[0] if expected else None)


def test_a_task_waits_for_the_one_before_it_to_be_completed() -> None:
    alone = TasksAlone()
    alone.running("first")
    queued(alone, "then", "urgent", after="first")
    assert alone["then"].status == "blocked"
    assert alone["then"].required_action == "first"
    assert next_task(alone.tasks, line) is None
    alone.reconcile("first")
    assert not alone(CompleteTask(task_id="first"))
    review(alone)
    found = next_task(alone.tasks, line)
    assert found is not None
    assert found.task_id == "then"


@pytest.mark.parametrize("archived", [False, True])
def test_a_task_behind_one_that_failed_stays_blocked(archived: bool) -> None:
    alone = TasksAlone()
    alone.running("first")
    queued(alone, "then", after="first")
    assert not alone(FailTask(task_id="first", error_code="timeout"))
    assert not (archived and alone(ArchiveTask(task_id="first"), OLGA))
    review(alone)
    assert alone["then"].status == "blocked"


def test_a_task_that_is_archived_once_it_is_completed_blocks_none() -> None:
    alone = TasksAlone()
    alone.running("first")
    alone.reconcile("first")
    assert not alone(CompleteTask(task_id="first"))
    assert not alone(ArchiveTask(task_id="first"), OLGA)
    queued(alone, "then", after="first")
    assert alone["then"].status == "queued"


def test_a_task_that_has_begun_is_not_in_the_queue() -> None:
    alone = TasksAlone()
    queued(alone, "one")
    assert not alone(StartTask(task_id="one", run_id="r", worker="line"))
    assert waiting(alone.tasks) == ()
