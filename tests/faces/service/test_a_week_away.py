"""A caller that was away for a week hears all of it, and none of it is held for long."""

import asyncio
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from labharness.faces.service import message_service
from labharness.faces.service.inbox import Unanswerable
from labharness.faces.service.message_service import MessageService
from labharness.faces.service.outbox import FINISHED, Batch, Outbox, Positions
from labharness.journal import SqliteJournal
from labharness.lab.house.message_store import MessageStore
from labharness.lab.house.orders import RunFolders
from labharness.protocols.hcp.codec import HcpMessage
from labharness.work.desk.folder import JOURNAL_NAME
from labharness.work.task.commands import CreateTask, FailTask, ReportStatus, StartTask
from labharness.work.task.record import Tasks
from tasks_alone import ANA, TasksAlone

RUN, VIA = "week", "test"
NOW = "2026-01-01T00:00:00.000Z"
DAYS = 7
EVENTS_A_DAY = 24 * 360  # one each 10 s of lab time
SHORT_DAY = 1_500
HELD_MAX = 4 * 2**20
"""Most bytes for the records of one piece, as messages and as JSON; all of even a short week are
more than ten times as many."""

GROWN_MAX = 64 * 2**10
"""Most bytes that the last day may take more than the first."""


def write_week(folder: Path, events_a_day: int) -> None:
    """Write the journal of a run that told its caller something each 10 s, and sampled a furnace.

    Its samples are as often in lab time as its events.
    """
    (folder / RUN).mkdir(parents=True)
    with SqliteJournal(folder / RUN / JOURNAL_NAME, run={"session_id": RUN}) as journal:
        furnace = journal.stream("furnace", ("zone_1_c", "zone_2_c"))
        for number in range(1, DAYS * events_a_day + 1):
            at_s = 10.0 * number
            journal.sample(furnace, at_s, (750.0, 751.0))
            event = {
                "message_id": f"m-{number}",
                "timestamp": NOW,
                "event_type": "progress",
                "sequence": number,
                "data": {"stage": "growth", "percent": 12.5, "message": "Grow at 750 degC"},
            }
            journal.append("event", event, at_s)
        ended = {
            "message_id": "end",
            "timestamp": NOW,
            "type": "task_failed",
            "payload": {"error_code": "broken", "error_message": "why", "artifacts": []},
        }
        journal.append("terminal", ended, at_s)


def tasks() -> Tasks:
    """Return the state of a lab whose only run has failed."""
    lab = TasksAlone()
    profile = {"via": VIA, "message_id": "m"}
    lab(CreateTask(task_id="t", objective="grow", session_id=RUN, profile=profile), ANA)
    lab(ReportStatus(task_id="t", to="accepted"))
    lab(StartTask(task_id="t", run_id=RUN, worker="line"))
    lab(FailTask(task_id="t", error_code="execution_error"))
    assert lab["t"].status == "failed"
    return lab.tasks


class Queue(MessageService):
    """A caller's queue that takes all in its order, and notes how much memory each day took."""

    via = VIA

    def __init__(self, house: Any, outbox: Outbox, day: int) -> None:
        super().__init__(house, outbox)
        self._day = day
        self.events = 0
        self.ends: list[str] = []
        self.peaks: list[int] = []

    async def publish(self, batch: Batch, message: HcpMessage) -> bool:
        if message.type != "event":
            self.ends.append(message.type)
            return True
        self.events += 1
        assert getattr(message.payload, "sequence", 0) == self.events
        if self.events % self._day == 0:
            self.peaks.append(tracemalloc.get_traced_memory()[1])
            tracemalloc.reset_peak()
        return True

    async def dead_letter(self, data: bytes, message_id: str | None, found: Unanswerable) -> None:
        raise AssertionError(found.reason)


@pytest.fixture
def traced() -> Iterator[None]:
    tracemalloc.start()
    yield
    tracemalloc.stop()


async def all_of_it(queue: Queue, house: Any, positions: Positions) -> None:
    house.changed.set()
    sending = asyncio.ensure_future(queue.send())
    while positions.of(RUN) != FINISHED and not sending.done():  # noqa: ASYNC110 - a file
        await asyncio.sleep(0.01)
    sending.cancel()


def taken(work: Callable[[], object]) -> int:
    """Return the most bytes that work held at once."""
    before = traced_from()
    work()
    return tracemalloc.get_traced_memory()[1] - before


def traced_from() -> int:
    tracemalloc.reset_peak()
    return tracemalloc.get_traced_memory()[0]


def holds(folder: Path, day: int, monkeypatch: pytest.MonkeyPatch) -> None:
    # the next piece follows the last one at once
    monkeypatch.setattr(message_service, "LOOK_S", 3600.0)
    write_week(folder / "runs", day)
    state = tasks()
    (task,) = state.by_id.values()
    house: Any = SimpleNamespace(changed=asyncio.Event(), tasks=lambda: state)
    positions = Positions(folder / "outbox.sqlite")
    with MessageStore(folder) as kept, closing(positions):
        outbox = Outbox(
            kept, RunFolders(folder / "runs"), positions, lambda: "id", lambda: NOW, VIA
        )
        queue = Queue(house, outbox, day)
        before = traced_from()
        asyncio.run(all_of_it(queue, house, positions))
        assert (queue.events, queue.ends) == (DAYS * day, ["task_failed"])
        first, *_, last = days = [peak - before for peak in queue.peaks]
        assert max(days) < HELD_MAX, days
        assert last - first < GROWN_MAX, days
        assert taken(lambda: list(outbox.again(task))) < HELD_MAX
        assert taken(lambda: outbox.closed_already(task, RUN)) < HELD_MAX


@pytest.mark.thorough
@pytest.mark.promise(65)
@pytest.mark.usefixtures("traced")
def test_what_a_caller_missed_is_sent_in_order_and_in_pieces(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    holds(tmp_path, SHORT_DAY, monkeypatch)


@pytest.mark.promise(65)
@pytest.mark.thorough
@pytest.mark.usefixtures("traced")
def test_so_is_a_week_of_events(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    holds(tmp_path, EVENTS_A_DAY, monkeypatch)
