"""Submissions that come at once are kept together, and what ends one of them ends no other."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from labharness.core.clock import Chance
from labharness.core.vocabulary.texts import Text
from labharness.journal import JournalFailed
from labharness.journal.reading import read
from labharness.lab.house.access import Submitting, abort_session, deliver
from labharness.lab.house.house import House
from labharness.lab.house.intake import RUNTIME, ReceivedSubmission, Submitted
from labharness.lab.house.orders import TaskRefused
from labharness.protocols.hcp.codec import decode
from labharness.protocols.hcp.terms import CONFIDENTIAL
from labharness.work.task.commands import AppendProgress, CancelTask, TaskActor
from labharness.work.task.house import HouseJournal
from labharness.work.task.kept import read_tasks
from line_world import LineWorld, message

TOGETHER_MAX, MESSAGES_MAX = 32, 16  # as promised, not as imported

WAIT_S_MAX = 5.0


class Busy:
    """A house that is at something else until it is free."""

    def __init__(self, home: Path) -> None:
        (home / "tasks").mkdir()
        self.home = home
        self.journal = HouseJournal(home / "house.sqlite")
        self.house = self.made(self.journal)
        self.free = asyncio.Event()
        self.submitting = Submitting(self.with_house)

    def made(self, journal: HouseJournal) -> House:
        world = LineWorld(1)
        return House(
            journal,
            world,
            world,
            home=self.home,
            lab="lab",
            now_s=lambda: 1000.0,
            new_id=Chance(None).uuid4,
            receive=lambda *asked: None,
        )

    async def with_house(self, work: Callable[[House], Any]) -> Any:
        await self.free.wait()
        return work(self.house)

    def asked(self, key: str) -> "asyncio.Task[Submitted]":
        data = message(key)
        submission = ReceivedSubmission(data, decode(data), via="amqp")
        return asyncio.ensure_future(self.submitting.submit(submission))


@pytest.mark.promise(61)
def test_a_caller_that_hangs_up_takes_none_of_the_others_with_it(tmp_path: Path) -> None:
    async def scene() -> None:
        busy = Busy(tmp_path)
        first, gone, last = (busy.asked(key) for key in ("a", "b", "c"))
        await asyncio.sleep(0)
        gone.cancel()
        await asyncio.sleep(0)
        busy.free.set()
        kept = await asyncio.wait_for(asyncio.gather(first, last), WAIT_S_MAX)
        assert {each.task_id for each in kept} < busy.house.tasks.by_id.keys()
        again = await asyncio.wait_for(busy.asked("b"), WAIT_S_MAX)
        assert not again.fresh, "its message comes again, and is the same task"
        busy.journal.close()

    asyncio.run(scene())


@pytest.mark.promise(61)
@pytest.mark.parametrize(
    "count", [MESSAGES_MAX, MESSAGES_MAX + 1]
)  # all that stand there, one more
def test_a_house_that_dies_behind_the_answer_has_every_task_that_was_told_of(
    tmp_path: Path, count: int
) -> None:
    async def scene() -> Busy:
        busy = Busy(tmp_path)
        busy.free.set()
        for number in range(count):
            await busy.asked(str(number))
        return busy

    dead = asyncio.run(scene())
    told_of = dead.house.tasks
    assert read_tasks(tmp_path / "house.sqlite") != told_of
    again = HouseJournal(tmp_path / "house.sqlite")
    house = dead.made(again)
    assert house.tasks == read_tasks(tmp_path / "house.sqlite") == told_of
    assert len(told_of.by_id) == count
    again.close()


@pytest.mark.promise(61)
def test_a_submission_by_hand_is_in_the_journal_when_its_sender_is_told(tmp_path: Path) -> None:
    busy = Busy(tmp_path)
    kept = busy.house.submit(message("k"))
    assert kept.task_id in read_tasks(tmp_path / "house.sqlite").by_id
    busy.journal.close()


def test_as_many_as_are_announced_share_a_record_and_each_has_its_own_answer(
    tmp_path: Path,
) -> None:
    async def scene() -> list[Submitted]:
        busy = Busy(tmp_path)
        asked = [busy.asked(str(number)) for number in range(TOGETHER_MAX + 1)]
        busy.free.set()
        kept = await asyncio.wait_for(asyncio.gather(*asked), WAIT_S_MAX)
        keys = [busy.house.tasks.by_id[each.task_id].profile["message_id"] for each in kept]
        assert keys == [str(number) for number in range(TOGETHER_MAX + 1)]
        busy.journal.close()
        return kept

    assert all(each.fresh for each in asyncio.run(scene()))
    assert len(list(read(tmp_path / "house.sqlite"))) == 2


def test_each_that_waits_is_told_of_what_keeps_the_house_and_the_next_is_kept(
    tmp_path: Path,
) -> None:
    async def scene() -> None:
        busy = Busy(tmp_path)
        full: list[Exception] = [JournalFailed("full")]

        async def with_house(work: Callable[[House], Any]) -> Any:
            await busy.free.wait()
            if full:
                raise full.pop()
            return work(busy.house)

        busy.submitting = Submitting(with_house)
        told = [busy.asked(key) for key in "ab"]
        await asyncio.sleep(0)
        busy.free.set()
        ended = await asyncio.wait_for(asyncio.gather(*told, return_exceptions=True), WAIT_S_MAX)
        assert [str(each) for each in ended] == ["full"] * 2
        assert (await asyncio.wait_for(busy.asked("a"), WAIT_S_MAX)).fresh
        busy.journal.close()

    asyncio.run(scene())


TOKEN, SESSION = "token-1", "session-1"
ACCEPTED = SimpleNamespace(payload=SimpleNamespace(session_token=TOKEN))


@pytest.mark.parametrize("caller", ["ana", "mallory"])
@pytest.mark.parametrize("token", ["", TOKEN, "stolen"])
@pytest.mark.parametrize("accepted", [None, ACCEPTED])
@pytest.mark.parametrize("run", [None, "at work", "ended"])
@pytest.mark.parametrize("status", ["running", "failed"])
@pytest.mark.parametrize("cancelled", [False, True])
@pytest.mark.parametrize("data_class", [None, *sorted(CONFIDENTIAL)[:1]])
def test_a_session_is_aborted_by_its_caller_alone_with_its_token_where_it_has_one(
    caller: str,
    token: str,
    accepted: Any,
    run: str | None,
    status: str,
    cancelled: bool,
    data_class: str | None,
) -> None:
    attempt = SimpleNamespace(run_id=SESSION, ended_at_s=9.0 if run == "ended" else None)
    task = SimpleNamespace(
        task_id="t",
        session_id=SESSION,
        status=status,
        requested_by="ana",
        cancel_requested=cancelled,
        constraints={"data_classification": data_class} if data_class else {},
        attempts=() if run is None else (attempt,),
        current=attempt,
    )
    given: list[Any] = []
    house: Any = SimpleNamespace(
        tasks=SimpleNamespace(by_id={"t": task}, sessions={SESSION: "t"}),
        give=lambda *said: given.append(said),
    )
    kept: Any = SimpleNamespace(acceptance=lambda session_id: accepted)
    said = abort_session(house, kept, caller, SESSION, token, "enough")
    looked = accepted is not None and (token or run is not None)
    expected = (
        "unknown"
        if caller != "ana"
        else "closed"
        if status == "failed" or run == "ended"
        else "token"
        if not cancelled and looked and token != TOKEN
        else "asked"
    )
    assert said == expected
    fresh = said == "asked" and not cancelled
    reason = Text("data.aborted") if data_class else "enough"
    told = CancelTask(task_id="t", reason=reason), TaskActor("ana", "caller")
    assert given == ([told] if fresh else [])
    assert abort_session(house, kept, "ana", "another", token, "enough") == "unknown"


@pytest.mark.parametrize("delivery", ["", "delivered"])
def test_an_answer_that_has_arrived_is_kept_once_and_of_an_archived_task_not_at_all(
    delivery: str,
) -> None:
    task = SimpleNamespace(task_id="t", delivery=delivery, attempts=(), session_id=SESSION)
    given: list[Any] = []

    def give(*said: object) -> None:
        given.append(said)
        raise TaskRefused("house.unknown_task", task_id="t")

    house: Any = SimpleNamespace(
        tasks=SimpleNamespace(by_id={"t": task}, sessions={SESSION: "t"}), give=give
    )
    deliver(house, SESSION)
    deliver(house, "another")
    told = AppendProgress(task_id="t", delivery="delivered"), RUNTIME
    assert given == ([] if delivery else [told])
