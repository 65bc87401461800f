"""Whom the alarms of a line tell: what people do, who is told next, and what is said."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from alarms_alone import LEVELS, Alone, trip
from labharness.core.clock import VIRTUAL_EPOCH
from labharness.core.vocabulary import Cause
from labharness.line.alarms import alarm_name
from labharness.line.procedures import StepState, Verification
from labharness.safety.alarm.board import Actor, AlarmEvent, Fact, Severity
from labharness.safety.alarm.outlets import AlertChannel

LEAK = trip(Cause.GAS_LEAK, "h2_detector.concentration", 900.0)
STOP = trip(Cause.STOP_REQUEST, "line")
HOT = trip(Cause.OVER_TEMPERATURE, "furnace.temperature", 1060.0)
WARM = trip(Cause.OVER_TEMPERATURE, "furnace.temperature", 1030.0, procedure="")
SILENT = trip(Cause.COMMUNICATION, "furnace.temperature", procedure="")
GUARD_GONE = trip(Cause.COMMUNICATION, "guard")
MINUTE = 60.0  # for which a cause must be gone


# ---- what people do, and when the next of them are told


def by_ada(event: AlarmEvent, alarm: str, at_s: float, **more: Any) -> Fact:
    return Fact(
        event=event,
        alarm=alarm,
        at=VIRTUAL_EPOCH + timedelta(seconds=at_s),
        role=Actor.MAINTAINER,
        who="Ada",
        why="known",
        **more,
    )


def test_each_level_is_told_once_five_minutes_after_the_one_before() -> None:
    alone = Alone()

    async def work() -> None:
        alone.line.events.on_abnormal(HOT)
        await alone.ticks(2000)

    alone.play(work)
    found = alone.journaled("alert", "channel", "level", "at_s")
    assert found == [("mail", 0, 0.0), ("boss", 1, 300.0), ("chief", 2, 600.0)]
    assert alone.alarms.calls == 4, "and a last one, of which nobody is to be told"


def test_levels_that_were_missed_are_all_told() -> None:
    alone = Alone()

    async def work() -> None:
        alone.line.events.on_abnormal(HOT)
        await asyncio.sleep(700)
        alone.line.events.on_tick()

    alone.play(work)
    assert alone.told() == ["mail", "boss", "chief"]


def test_a_second_alarm_of_a_group_waits_from_its_own_call_on() -> None:
    alone = Alone()

    async def work() -> None:
        alone.line.events.on_abnormal(STOP)
        await alone.ticks(100)
        alone.line.events.on_abnormal(LEAK)
        await alone.ticks(1)
        alone.disk.others = [by_ada(AlarmEvent.ACKNOWLEDGE, alarm_name(STOP), 101)]
        await alone.ticks(600)

    alone.play(work)
    assert alone.journaled("alert", "channel", "at_s") == [
        ("mail", 0.0),
        ("mail", 100.0),
        ("boss", 400.0),
        ("chief", 700.0),
    ]


def test_a_word_from_another_terminal_counts_once_however_often_it_is_read() -> None:
    alone = Alone()
    word = by_ada(AlarmEvent.ACKNOWLEDGE, alarm_name(STOP), 1)

    async def work() -> None:
        for _ in range(2):
            alone.line.events.on_abnormal(STOP)
            await alone.ticks(1, alone.well)
            alone.disk.others = [word]
            await alone.ticks(MINUTE + 5, alone.well)
            assert alone.active() == []

    alone.play(work)
    events = [event for (event,) in alone.journaled("alarm", "event")]
    assert events == ["activate", "acknowledge", "deactivate", "activate", "deactivate"]


def test_what_others_did_before_is_taken_before_what_comes() -> None:
    alone = Alone()

    async def work() -> None:
        alone.line.events.on_abnormal(STOP)
        await alone.ticks(1)
        alone.disk.others = [by_ada(AlarmEvent.ACKNOWLEDGE, alarm_name(STOP), 1)]
        alone.line.events.on_abnormal(HOT)
        await asyncio.sleep(0)

    alone.play(work)
    events = [event for (event,) in alone.journaled("alarm", "event")]
    assert events == ["activate", "acknowledge", "activate"]
    assert "seen\nfirst" in alone.sender.said[-1][2], "nothing is said of what somebody knows"


def test_what_the_file_gives_back_of_our_own_is_known() -> None:
    alone = Alone()

    async def work() -> None:
        alone.line.events.on_abnormal(STOP)
        await alone.ticks(1)
        ours = alone.disk.kept[0]
        alone.disk.others = [Fact(event=AlarmEvent.DEACTIVATE, alarm=ours.alarm, at=ours.at)]
        await alone.ticks(1)
        assert alone.active() == [alarm_name(STOP)]

    alone.play(work)


def test_a_shelf_ends_by_its_time_and_by_another_terminal_that_saw_it_end() -> None:
    alone = Alone()

    async def work() -> None:
        alone.line.events.on_abnormal(WARM)
        await alone.ticks(1)
        shelved = by_ada(AlarmEvent.TIMED_SHELVE, alarm_name(WARM), 1, shelve_s=100.0)
        alone.disk.others = [shelved]
        await alone.ticks(90)
        assert alone.alarms.board.alarms[alarm_name(WARM)].until is not None
        await alone.ticks(15)
        assert alone.alarms.board.alarms[alarm_name(WARM)].until is None
        alone.disk.others = [by_ada(AlarmEvent.TIMED_SHELVE, alarm_name(WARM), 100)]
        await alone.ticks(2)
        assert alone.alarms.board.alarms[alarm_name(WARM)].until is not None
        at = alone.clock.utc()
        alone.disk.others = [Fact(event=AlarmEvent.UNSHELVE, alarm=alarm_name(WARM), at=at)]
        await alone.ticks(2)

    alone.play(work)
    events = [event for (event,) in alone.journaled("alarm", "event")]
    assert events == ["activate", "timed_shelve", "unshelve", "timed_shelve", "unshelve"]
    assert ("unshelve", alarm_name(WARM)) in alone.kept()


def ended(complete: bool, name: str = "shutdown") -> Verification:
    state = StepState.VERIFIED if complete else StepState.UNKNOWN
    return Verification(name, (("a.setpoint", 0.0, None, state), ("b.on", 0.0, None, state)), 1.0)


# ---- what is said


def test_a_message_says_what_it_is_and_what_to_do() -> None:
    alone = Alone(option=" --lab x.toml")

    async def work() -> None:
        alone.line.events.on_abnormal(STOP)
        await alone.ticks(1)
        alone.line.events.on_abnormal(HOT)
        await alone.ticks(601)

    alone.play(work)
    ask = "--name NAME --reason REASON --lab x.toml"
    rest = [
        f"labharness alarms ack stop_request/line {ask}",
        "then look: labharness watch --lab x.toml",
        f"and when the cause is gone: labharness reset {ask}",
    ]
    hot = "the lab: trip over_temperature/furnace.temperature"
    assert alone.sender.said == [
        (
            "mail",
            "the lab: trip stop_request/line",
            "\n".join(["seen", "first: stop_request/line; 1 in all", *rest]),
        ),
        ("mail", hot, "\n".join(["seen", "first: stop_request/line; 2 in all", *rest])),
        (
            "boss",
            f"{hot}, unacknowledged for 5 min",
            "\n".join(["seen", "seen", "first: stop_request/line; 2 in all", *rest]),
        ),
        (
            "chief",
            f"{hot}, unacknowledged for 10 min",
            "\n".join(["seen", "seen", "first: stop_request/line; 2 in all", *rest]),
        ),
    ]


@pytest.mark.promise(53)
def test_each_channel_gets_its_message_in_its_own_language() -> None:
    alone = Alone(channels=(AlertChannel(name="mail"), AlertChannel(name="phone", language="zh")))

    async def work() -> None:
        alone.line.events.on_abnormal(STOP)
        await alone.ticks(1)

    alone.play(work)
    (_, english, _), (_, chinese, text) = alone.sender.said
    assert english == "the lab: trip stop_request/line"
    assert chinese == "the lab：跳闸 stop_request/line"
    assert "首发：stop_request/line；共 1 个" in text.splitlines()
    assert "labharness alarms ack stop_request/line --name NAME --reason REASON" in text


def test_a_warning_asks_for_no_reset_and_a_name_with_blanks_is_quoted() -> None:
    alone = Alone()

    async def work() -> None:
        alone.line.events.on_abnormal(trip(Cause.OVER_FLOW, "argon flow", 9.0, procedure=""))
        await alone.ticks(1)

    alone.play(work)
    ((_, title, text),) = alone.sender.said
    assert title == "the lab: warning over_flow/argon flow/warning"
    assert text.splitlines()[2:] == [
        "labharness alarms ack 'over_flow/argon flow/warning' --name NAME --reason REASON",
        "then look: labharness watch",
    ]


def test_of_a_grave_alarm_a_channel_for_grave_ones_is_told_and_a_dead_one_not_of_itself() -> None:
    alone = Alone((*LEVELS, AlertChannel(name="text")))
    alone.sender.answers["mail"] = "refused"

    async def work() -> None:
        alone.line.events.on_verified(ended(complete=False))
        await alone.ticks(1)

    alone.play(work)
    told = [(channel, title.rpartition(" ")[2]) for channel, title, _ in alone.sender.said]
    assert told == [
        *((name, "not_verified/shutdown") for name in ("mail", "chat", "text")),
        *((name, "alert_channel/mail") for name in ("chat", "text")),
    ]
    (dead,) = [each for each in alone.alarms.board.alarms.values() if "mail" in each.name]
    assert (dead.severity, dead.source) == (Severity.FAULT, "house")
    assert dead.detail == "alert channel 'mail': refused"
