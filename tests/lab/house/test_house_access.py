"""Submissions that come at once are kept together, and what ends one of them ends no other."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from labharness.core.clock import Chance
from labharness.journal.reading import read
from labharness.lab.house.access import TOGETHER_MAX, Submitting
from labharness.lab.house.house import House
from labharness.lab.house.intake import ReceivedSubmission, Submitted
from labharness.lab.house.message_store import MESSAGES_MAX
from labharness.protocols.hcp.codec import decode
from labharness.work.task.house import HouseJournal
from labharness.work.task.kept import read_tasks
from line_world import LineWorld, message

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
            self.home,
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
