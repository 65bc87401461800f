"""Whoever raises a trip, people are called: the guard, its end, a hand, or the way down."""

import asyncio
from pathlib import Path

import pytest

from alarmed import Watched, watch
from labharness.alarm import Channel
from labharness.lab import LabPlan
from labharness.lab.reading import SAFE_TABLE
from labharness.line.escalation import Stage
from labharness.vocabulary import Cause, Trip

TWO = (Channel(name="one"), Channel(name="two"))


@pytest.mark.parametrize("channel", ["guard", "harness"])
def test_a_trip_that_the_guard_raises_calls_and_is_gone_when_all_is_read_again(
    short_plan: LabPlan, tmp_path: Path, channel: str
) -> None:
    name = f"communication/{channel}"

    async def work(watched: Watched) -> None:
        line = watched.lab.line
        line.guard.on_trip(Trip(Cause.COMMUNICATION, SAFE_TABLE, channel, None, 0.0, "gone"))
        assert watched.alarms.calls == 0, "its bytes, its latch and its record come first"
        assert line.guard.latch.trip is not None
        await asyncio.sleep(90)
        assert channel not in line.memory.tracks, "no channel of the line was made of it"
        assert not watched.alarms.board.alarms[name].state.active
        assert watched.alarms.board.alarms[name].state.latched

    watched = watch(short_plan, tmp_path, work, channels=TWO)
    assert watched.calls() == [name]
    assert [each["channel"] for each in watched.journaled("alert")] == ["one", "two"]
    kinds = [each for each in ("trip", "alarm") if watched.journaled(each)]
    assert kinds == ["trip", "alarm"]


def test_a_way_down_that_ends_in_a_trip_calls(short_plan: LabPlan, tmp_path: Path) -> None:
    async def work(watched: Watched) -> None:
        await watched.lab.line.bring_down(Stage.TRIP)
        await asyncio.sleep(5)

    assert watch(short_plan, tmp_path, work).calls() == ["stop_request/line"]


def test_a_trip_that_changes_nothing_is_told_all_the_same(
    short_plan: LabPlan, tmp_path: Path
) -> None:
    async def work(watched: Watched) -> None:
        line = watched.lab.line
        line.safing.trip(
            Trip(Cause.SENSOR_BREAK, SAFE_TABLE, "furnace.sensor_break", None, 0.0, "")
        )
        line.guard.on_trip(Trip(Cause.COMMUNICATION, SAFE_TABLE, "guard", None, 0.0, "gone"))
        await asyncio.sleep(5)
        assert len(line.safing.trips) == 1
        assert watched.alarms.board.alarms["communication/guard"].state.active

    watched = watch(short_plan, tmp_path, work)
    assert len(watched.calls()) == 1, "it has joined the first one's group"
