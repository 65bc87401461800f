"""A line by itself, on a guard that a test answers for: how it holds, settles, closes and tells."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, cast

import pytest

from labharness.core.vocabulary import Cause, Command, Ending
from labharness.journal import JournalFailed
from labharness.line import NotArmed, Tripped
from labharness.line.command import NotOpened
from labharness.line.poll import TICK_S
from labharness.line.procedures import Verification
from labharness.line.trip_response import DownStage, HoldTooLong, Reached
from labharness.safety.kernel import Mode
from whole_line_alone import MAINS, SPEED, STOP, Alone


@pytest.fixture
@asynccontextmanager
async def alone() -> AsyncIterator[Alone]:
    """A line that runs, and is closed at the end."""
    made = Alone()
    await made.running()
    yield made
    if "close" not in made.guard.done:
        await made.line.close()


# ---- holding


async def test_a_line_is_held_between_two_commands_and_a_held_one_sets_nothing(
    alone: Alone,
) -> None:
    line = alone.line
    first = asyncio.create_task(line.perform(SPEED))
    await asyncio.sleep(0)
    assert await line.hold()
    assert first.done()
    assert line.memory.mode is Mode.HELD
    assert line.holding.on
    assert (await line.perform(SPEED)).ending is Ending.REFUSED
    with pytest.raises(NotArmed, match="the line is held, and only a running line is held"):
        await line.hold()
    await asyncio.sleep(3.0)
    line.start()
    assert not line.holding.on
    assert line.holding.total_s() == 3.0
    assert (await line.perform(SPEED)).ending is Ending.CONFIRMED


async def test_a_hold_that_may_not_be_changes_nothing(alone: Alone) -> None:
    assert not await alone.line.hold(lambda: False)
    assert alone.line.memory.mode is Mode.RUNNING
    assert not alone.line.holding.on
    await alone.line.released()


async def test_whoever_waits_for_the_end_of_a_hold_goes_on_then_or_gives_up_when_it_is_too_long(
    alone: Alone, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("labharness.line.trip_response.HOLD_S_MAX", 60.0)
    line = alone.line
    await line.hold()
    alone.loop.call_later(10.5, line.start)
    began_s = alone.loop.time()
    await line.released()
    assert 10.5 <= alone.loop.time() - began_s <= 11.5
    await line.hold()
    began_s = alone.loop.time()
    with pytest.raises(HoldTooLong):
        await line.released()
    assert 60 < alone.loop.time() - began_s < 62


async def test_a_trip_ends_whatever_waits_for_the_line(alone: Alone) -> None:
    ended: list[str] = []

    async def forever() -> None:
        try:
            await asyncio.sleep(1e6)
        except asyncio.CancelledError:
            ended.append("cancelled")
            raise

    alone.loop.call_later(2.5, alone.line.trip_response.trip, STOP)
    began_s = alone.loop.time()
    with pytest.raises(Tripped):
        await alone.line.unless_tripped(forever())
    assert alone.loop.time() - began_s == 2.5
    await asyncio.sleep(0)
    assert ended == ["cancelled"]
    with pytest.raises(Tripped):
        await alone.line.next_tick()
    await alone.line.polled()
    with pytest.raises(Tripped):
        alone.line.check()


async def test_what_is_done_on_a_line_that_does_not_trip_has_its_result(alone: Alone) -> None:

    async def five() -> int:
        await asyncio.sleep(2.5)
        return 5

    assert await alone.line.unless_tripped(five()) == 5


# ---- the end


async def test_a_line_that_settles_sets_nothing_more_and_is_made_safe_without_a_trip(
    alone: Alone,
) -> None:
    found: list[Verification] = []
    await alone.line.hold()
    alone.line.start()
    found.append(await alone.line.settle("shutdown"))
    assert alone.line.memory.mode is Mode.HELD
    found.append(await alone.line.settle("shutdown"))
    assert not alone.line.holding.on
    await alone.line.close()
    assert [each.complete for each in found] == [True, True]
    assert alone.line.trip_response.trips == []
    assert alone.modes()[-1] == "disarmed"


async def test_a_line_that_does_not_settle_is_brought_down_further_and_has_tripped(
    alone: Alone,
) -> None:
    found: list[Verification] = []
    alone.guard.obeys = False
    await alone.line.perform(MAINS)
    found.append(await alone.line.settle("shutdown"))
    await alone.line.close()
    assert not found[0].complete
    assert alone.line.memory.mode is Mode.TRIPPED
    assert found == [alone.line.trip_response.verifications[0]]
    assert alone.journal.of("brought_down")[0]["stage"] == "trip"
    assert len(cast("list[str]", alone.journal.of("brought_down")[0]["passed"])) == 1


async def test_a_line_that_has_tripped_settles_by_its_own_procedure(alone: Alone) -> None:
    alone.line.trip_response.trip(STOP)
    found = await alone.line.settle("shutdown")
    assert found is alone.line.trip_response.verifications[-1]
    await alone.line.close()
    assert len(alone.journal.of("make_safe")) == 1, "that of the arming"


async def test_a_line_that_is_disarmed_is_read_only_and_what_it_was_set_to_is_anybodys(
    alone: Alone,
) -> None:
    await alone.line.perform(SPEED)
    alone.line.disarm()
    assert alone.line.memory.mode is Mode.DISARMED
    told = alone.line.memory.track("furnace.rate").told
    assert told != told
    assert (await alone.line.perform(SPEED)).ending is Ending.REFUSED
    alone.line.disarm()
    await alone.line.close()
    assert alone.modes().count("disarmed") == 1
    assert alone.kinds().count("disarmed") == 2
    assert alone.guard.done.count("disarm") == 2


def test_a_line_that_is_closed_while_it_is_armed_is_brought_down_first() -> None:
    closed: list[list[str]] = []
    for begin in (Alone.running, Alone.armed):
        alone = Alone()

        async def on_close(alone: Alone = alone) -> None:
            closed.append(list(alone.guard.done))

        async def work(alone: Alone = alone, on_close: Any = on_close) -> None:
            alone.line.events.on_close = on_close

        alone.play(partial(begin, alone), work)
        assert alone.journal.of("brought_down") == [{"stage": "stop", "passed": []}]
        assert alone.modes()[-1] == "disarmed"
        assert closed[-1][-2:] == ["disarm", "close"]
        polls = alone.guard.asked("furnace.temperature?")
        assert polls == alone.guard.asked("box.exhaust?")
    alone = Alone()
    alone.play(alone.line.open)
    assert alone.journal.of("brought_down") == []


async def test_a_line_that_is_closed_after_a_trip_waits_for_its_verification(alone: Alone) -> None:
    alone.line.trip_response.trip(STOP)
    await alone.line.close()
    assert len(alone.line.trip_response.verifications) == 1
    assert alone.line.memory.mode is Mode.TRIPPED
    assert alone.guard.done[-1] == "close"


async def test_a_line_is_brought_down_to_the_first_stage_it_reaches(alone: Alone) -> None:
    await alone.line.hold()
    assert await alone.line.bring_down() == Reached(DownStage.HOLD, ())
    assert not alone.line.holding.on
    alone.line.start()
    first = asyncio.create_task(alone.line.perform(SPEED))
    await asyncio.sleep(0)
    assert await alone.line.bring_down() == Reached(DownStage.HOLD, ())
    assert first.done()
    assert alone.line.memory.mode is Mode.HELD


# ---- what is read, told and lost


def test_the_last_reading_counts_while_it_is_fresh() -> None:
    alone = Alone()

    async def work() -> None:
        line = alone.line
        assert line.latest("furnace.temperature") == 25.0
        assert line.latest("nobody.x") != line.latest("nobody.x")
        alone.guard.says["furnace.temperature?"] = None
        await asyncio.sleep(7.0)
        assert line.latest("furnace.temperature") != line.latest("furnace.temperature")

    alone.play(alone.line.open, work)


async def test_a_journal_that_takes_no_intent_trips_the_line(alone: Alone) -> None:
    alone.journal.fails_at = "intent"
    with pytest.raises(JournalFailed):
        await alone.line.perform(SPEED)
    assert alone.line.memory.trip is not None
    assert alone.line.memory.trip.cause is Cause.JOURNAL_LOST
    assert alone.line.monitor.journal_lost == "full"


async def test_a_person_opens_what_the_envelope_lets_them_and_not_after_a_trip(
    alone: Alone,
) -> None:

    async def done() -> str:
        await asyncio.sleep(2.0)
        return "done"

    with pytest.raises(NotOpened, match="has no limit"):
        await alone.line.by_hand("open_lid", done)
    alone.journal.fails_at = "opening"
    with pytest.raises(JournalFailed):
        await alone.line.by_hand("open_lid", done)
    assert alone.line.memory.trip is not None
    with pytest.raises(Tripped):
        await alone.line.by_hand("open_lid", pytest.fail)


async def test_every_tick_looks_at_the_kernel_and_tells_who_listens(alone: Alone) -> None:
    ticks: list[float] = []
    seen: list[str] = []
    alone.line.events.on_tick = lambda: ticks.append(alone.loop.time())
    alone.line.events.on_abnormal = lambda trip: seen.append(trip.cause)
    await alone.line.next_tick()
    await alone.line.next_tick()
    assert ticks[1] - ticks[0] == TICK_S
    alone.guard.says["box.exhaust?"] = None
    await asyncio.sleep(7.0)
    await alone.line.close()
    assert Cause.COMMUNICATION in seen, "silence trips at a tick"
    assert alone.line.events.warnings == []


async def test_a_warning_is_kept_where_nobody_listens_and_a_program_that_is_over_is_one(
    alone: Alone, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone.guard.holds["furnace.temperature"] = 1030.0
    await asyncio.sleep(3.0)
    over = iter([["furnace: its program is over"]])
    monkeypatch.setattr(alone.line._gate, "look", lambda: next(over, []))
    await asyncio.sleep(2.0)
    await alone.line.close()
    assert [each.split(":")[0] for each in alone.line.events.warnings] == ["rather hot", "furnace"]
    assert alone.journal.of("program_over") == [{"detail": "furnace: its program is over"}]


def test_what_the_guard_did_alone_is_kept_in_the_journal() -> None:
    alone = Alone()
    alone.guard.on_offline_log([{"what": "tripped by itself"}])
    assert alone.journal.of("guard_log") == [{"what": "tripped by itself"}]
    alone.loop.close()


async def test_a_link_that_is_lost_is_prepared_before_the_next_command_on_its_port(
    alone: Alone,
) -> None:
    before = len(alone.guard.written)
    alone.guard.on_link_lost("heat", "unplugged")
    heat = Command("furnace.rate", 7.0, "degC/min")
    assert (await alone.line.perform(heat)).ending is Ending.CONFIRMED
    assert alone.guard.written[before:] == ["furnace.rate=5", "furnace.rate=7"]
    await alone.line.hold()
    alone.guard.on_link_lost("heat", "unplugged")
    await asyncio.sleep(5.0)
    assert len(alone.line.events.warnings) == 1, "a held line is warned"
    alone.line.start()
    await asyncio.sleep(1.0)
    assert alone.guard.written[-1] == "furnace.rate=5"
    await alone.line.close()
    assert alone.kinds().count("link_back") == 2


async def test_what_is_late_is_warned_of_and_what_trips_is_told(alone: Alone) -> None:
    told: list[str] = []
    alone.line.events.on_abnormal = lambda trip: told.append(trip.detail)
    alone.line.events.on_warning = told.append
    await alone.line.perform(MAINS)
    alone.guard.obeys = False
    alone.line.trip_response.trip(STOP)
    await asyncio.sleep(20.0)
    alone.guard.obeys = True
    await asyncio.sleep(10.0)
    await alone.line.close()
    assert told[0] == "because"
    assert told[-1].startswith("shutdown: every step verified 2")
