"""A simulated run of a lab that is up: world time is the calendar's, and waits for persons."""

from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from queue import Queue
from typing import Any

import pytest

from commands import say
from labharness.core.clock import VIRTUAL_EPOCH, pause, steady_s, wall_clock_utc
from labharness.faces.service.session_messages import messages_of
from labharness.journal.reading import read
from labharness.lab import LabPlan
from labharness.lab.wiring.tasks import RunResult, TaskRun
from labharness.protocols.hcp.codec import decode, encode
from requested import HOT, waiting
from rig import ON_SHORT, submission

LATE_S = 90.0


class Running:
    """A run in virtual time by the calendar, in a thread of its own as the line owner has it."""

    def __init__(self, plan: LabPlan, folder: Path, hold_at: str = "", **inputs: Any) -> None:
        self._hold_at = hold_at
        self.told: Queue[tuple[str, Mapping[str, Any]]] = Queue()
        self.asked: list[Future[dict[str, Any]]] = []
        self.task = TaskRun(
            plan,
            *submission(**inputs),
            speed=None,
            seed=None,
            out=folder,
            tell=self._tell,
            by_calendar=True,
        )
        self.pool = ThreadPoolExecutor(1)
        self.result: Future[RunResult] = self.pool.submit(self.task.execute)

    def _tell(self, kind: str, data: Mapping[str, Any]) -> None:
        self.told.put((kind, data))
        if data.get("stage") == self._hold_at and not self.asked:
            future = self.task.ask({"do": "hold", "by": "Ada", "reason": "to think"})
            assert future is not None
            self.asked.append(future)

    def until(self, kind: str, **said: object) -> None:
        """Wait until the run tells something."""
        while True:
            each, data = self.told.get(timeout=LATE_S)
            if each == kind and said.items() <= data.items():
                return

    def ask(self, **asked: object) -> dict[str, Any]:
        future = self.task.ask(asked)
        assert future is not None
        return future.result(LATE_S)


@contextmanager
def running(plan: LabPlan, folder: Path, **inputs: Any) -> Iterator[Running]:
    found = Running(plan, folder, **inputs)
    try:
        yield found
    finally:
        found.task.abort("the test is over")
        found.pool.shutdown()


def lab_s(folder: Path) -> float:
    """Lab time of the newest record of a run."""
    return list(read(folder / "journal.sqlite"))[-1].at_s


@pytest.mark.thorough
@pytest.mark.promise(65)
def test_every_time_that_leaves_a_lab_that_is_up_is_the_calendars_and_lab_time_stands_beside_it(
    short_plan: LabPlan, tmp_path: Path
) -> None:
    before = wall_clock_utc() - timedelta(milliseconds=1)
    with running(short_plan, tmp_path / "run") as run:
        ended = run.result.result(LATE_S).message
    records = list(read(tmp_path / "run" / "journal.sqlite"))
    sent = [
        each.message
        for each in messages_of("s", records, opened=False, accepted=None, in_reply_to="m")
    ]
    assert ended.type == "task_completed"
    stamped = [datetime.fromisoformat(each.timestamp) for each in (*sent, ended)]
    assert stamped == sorted(stamped)
    assert before <= stamped[0] <= stamped[-1] <= wall_clock_utc()
    told = [decode(encode(each)).unknown["metadata"]["lab_time"] for each in (*sent, ended)]
    lab = [datetime.fromisoformat(each) for each in told]
    assert lab == sorted(lab)
    assert lab[0] - VIRTUAL_EPOCH < timedelta(minutes=1)
    assert lab[-1] - lab[0] > timedelta(minutes=30), "a growth in seconds of the calendar"


@pytest.mark.promise(75)
def test_virtual_time_stands_while_a_person_is_waited_for_by_the_calendar(
    short_plan: LabPlan, tmp_path: Path
) -> None:
    """And an approval that nobody has refused is not called denied."""
    folder = tmp_path / "run"
    with running(short_plan, folder, temperature_range=HOT) as run:
        run.until("approval_asked")
        stood_s, since_s = lab_s(folder), steady_s()
        pause(1.5)
        assert not run.result.done(), run.result.result().message
        assert run.ask(do="status")["ok"], "requests are heard meanwhile"
        agreed = say(
            "approvals", "approve", waiting(), "--name", "Ada", "--reason", "ok", *ON_SHORT
        )
        assert agreed.code == 0, agreed
        run.until("task_accepted")
        assert steady_s() - since_s > 1.5
    (at_s,) = [e.at_s for e in read(folder / "journal.sqlite") if e.kind == "approved"]
    assert at_s - stood_s < 0.5


def test_a_wait_that_ends_without_a_person_is_expired(short_plan: LabPlan, tmp_path: Path) -> None:
    task = TaskRun(
        short_plan,
        *submission(temperature_range=HOT),
        speed=None,
        seed=None,
        out=tmp_path / "run",
        approval_wait_s=1.0,
        by_calendar=True,
    )
    since_s = steady_s()
    rejected = task.execute().message.payload.model_dump()
    assert rejected["reason_code"] == "approval_expired"
    assert steady_s() - since_s >= 1.0


@pytest.mark.promise(75)
@pytest.mark.parametrize("end", ["resume", "stop", "safe"])
def test_a_hold_at_full_speed_waits_by_the_calendar_until_a_person_ends_it(
    short_plan: LabPlan, tmp_path: Path, end: str
) -> None:
    folder = tmp_path / "run"
    with running(short_plan, folder, hold_at="ramp") as run:
        run.until("state_changed", to_state="PAUSED")
        held_s = lab_s(folder)
        pause(1.5)
        assert not run.result.done(), run.result.result().message
        assert lab_s(folder) - held_s < 5.0, "lab time stands, but for the answer"
        answer = run.ask(do=end, reason="enough", by="Ada")
        assert answer["ok"], answer
        ended = run.result.result(LATE_S).message
    assert ended.type == {"resume": "task_completed", "stop": "event", "safe": "task_failed"}[end]


@pytest.mark.thorough
def test_a_run_that_failed_because_its_computer_fell_behind_says_so(
    short_plan: LabPlan, tmp_path: Path
) -> None:
    """At a speed of sixty half a second of a busy computer is half a minute without an answer."""
    busy = iter((0.5,))

    def tell(kind: str, data: Mapping[str, Any]) -> None:
        if data.get("stage") == "purge":
            pause(next(busy, 0.0))

    task = TaskRun(short_plan, *submission(), speed=60.0, seed=1, out=tmp_path / "run", tell=tell)
    failed = task.execute().message.payload.model_dump()
    assert failed["error_code"] == "execution_error", failed
    assert failed["suggestion"].startswith("This computer was too slow for --speed 60: it fell")
