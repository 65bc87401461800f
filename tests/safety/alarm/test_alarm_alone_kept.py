"""What a line's alarms keep, take over and wait for: a disk, senders, and people who are late."""

import asyncio
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from alarms_alone import LEVELS, Alone, Disk, SlowLoop, trip
from labharness.core.clock import VIRTUAL_EPOCH
from labharness.core.vocabulary import Cause
from labharness.core.vocabulary.texts import Text
from labharness.line import alarms as kept_by
from labharness.line.alarms import alarm_name
from labharness.line.procedures import Verification
from labharness.safety.alarm.board import Actor, AlarmEvent, Fact, Severity
from labharness.safety.alarm.outlets import AlertChannel

HOT = trip(Cause.OVER_TEMPERATURE, "furnace.temperature", 1060.0)
STOP = trip(Cause.STOP_REQUEST, "line")
WARM = trip(Cause.OVER_TEMPERATURE, "furnace.temperature", 1030.0, procedure="")
ON = ("activate", alarm_name(HOT))


def fact(event: AlarmEvent, name: str, minutes: float = 0.0, **more: Any) -> Fact:
    at = VIRTUAL_EPOCH + timedelta(minutes=minutes)
    return Fact(event=event, alarm=name, at=at, **more)


def ada(event: AlarmEvent, name: str, minutes: float = 0.0, **more: Any) -> Fact:
    return fact(event, name, minutes, role=Actor.MAINTAINER, who="Ada", why="known", **more)


# ---- what an earlier process left


def left(*facts: Fact, **more: Any) -> Alone:
    disk = Disk(**more)
    disk.others = list(facts)
    return Alone(disk=disk)


def test_what_does_not_latch_is_not_active_when_a_watch_begins_and_what_does_is() -> None:
    alone = left(
        fact(AlarmEvent.ACTIVATE, "warm", -9),
        fact(AlarmEvent.ACTIVATE, alarm_name(HOT), -9, severity=Severity.TRIP),
    )
    assert alone.active() == [alarm_name(HOT)]
    assert alone.kept() == [("deactivate", "warm")], "whoever lists them finds it so"
    assert alone.alarms.board.groups == (), "and nobody was called yet by this one"
    alone.loop.close()


def test_nothing_is_written_where_nothing_was_left() -> None:
    alone = left(ada(AlarmEvent.ACKNOWLEDGE, "warm"))
    assert alone.disk.writes == []
    alone.loop.close()


def test_a_file_that_cannot_be_read_or_written_keeps_no_watch_from_beginning() -> None:
    for more in ({"unreadable": OSError(5, "io")}, {"broken": OSError(28, "full")}):
        alone = left(fact(AlarmEvent.ACTIVATE, "warm", -9), **more)

        async def work(alone: Alone = alone) -> None:
            alone.line.events.on_abnormal(HOT)
            await asyncio.sleep(0)

        alone.play(work)
        assert alone.told()[0] == "mail"
        assert "warm" not in alone.active()


async def test_a_word_that_was_in_the_file_already_acknowledges_nothing_new() -> None:
    words = (
        fact(AlarmEvent.ACTIVATE, alarm_name(HOT), -9, severity=Severity.TRIP),
        ada(AlarmEvent.ACKNOWLEDGE, alarm_name(HOT), -8),
    )
    alone = left(*words)
    alone.line.events.on_abnormal(HOT)
    await alone.ticks(2)
    alone.disk.others = list(words)
    await alone.ticks(2)
    assert not alone.alarms.board.alarms[alarm_name(HOT)].state.acked


async def test_an_alarm_that_was_left_latched_and_active_calls_when_it_is_seen_anew() -> None:
    alone = left(fact(AlarmEvent.ACTIVATE, alarm_name(HOT), -9, severity=Severity.TRIP))
    alone.line.events.on_abnormal(HOT)
    await alone.ticks(1)
    assert alone.told() == ["mail"]
    assert alone.kept() == [("deactivate", alarm_name(HOT)), ON]
    (seen, _) = alone.disk.kept
    assert seen.why == "it is seen anew"
    assert alone.journaled("alarm", "event") == [("activate",)], "no journal tells of what was left"


# ---- what the disk takes


def test_facts_are_written_one_write_at_a_time_and_none_twice() -> None:
    alone = Alone(loop=(loop := SlowLoop()))

    async def work() -> None:
        alone.line.events.on_abnormal(HOT)
        await alone.ticks(1)
        alone.line.events.on_abnormal(STOP)
        await alone.ticks(3)
        assert [len(each) for each in alone.disk.writes] == [1]
        loop.waiting[0].set_result(None)
        await asyncio.sleep(1)
        assert [len(each) for each in alone.disk.writes] == [1, 1]
        loop.waiting[1].set_result(None)
        await alone.ticks(20)
        assert len(alone.disk.writes) == 2, "and nobody said that it took too long"
        assert "alarms_not_saved" not in alone.active()

    alone.play(work)


def test_a_disk_that_does_not_answer_within_ten_seconds_is_told_and_so_is_its_answer() -> None:
    alone = Alone(loop=(loop := SlowLoop()))

    async def work() -> None:
        alone.line.events.on_abnormal(HOT)
        await asyncio.sleep(9.9)
        assert alone.active() == [alarm_name(HOT)]
        await asyncio.sleep(0.2)
        alarm = alone.alarms.board.alarms["alarms_not_saved"]
        assert (alarm.severity, alarm.source) == (Severity.FAULT, "house")
        assert alarm.detail == "alarms.jsonl cannot be written: no answer within 10 s"
        loop.waiting[0].set_result(None)
        await asyncio.sleep(1)
        assert alone.active() == [alarm_name(HOT)]

    alone.play(work)
    assert alone.journaled("alarm", "event", "why")[1:] == [
        ("activate", "alarms.jsonl cannot be written: no answer within 10 s"),
        ("deactivate", "they are saved"),
    ]
    assert alone.told() == ["mail", "mail"]


@pytest.mark.parametrize(
    ("error", "said"), [(OSError(28, "full"), "full"), (OSError("odd"), "odd")]
)
async def test_what_the_disk_refused_is_written_again_in_order_at_every_poll(
    error: OSError, said: str
) -> None:
    alone = Alone()
    alone.disk.broken = error
    alone.line.events.on_abnormal(HOT)
    await alone.ticks(2)
    alone.line.events.on_abnormal(STOP)
    await alone.ticks(2)
    detail = alone.alarms.board.alarms["alarms_not_saved"].detail
    assert detail == f"alarms.jsonl cannot be written: {said}"
    assert len(alone.disk.writes) == 4, "when the first came, and at each poll since"
    alone.disk.broken = None
    await alone.ticks(1)
    assert alone.kept() == [ON, ("activate", alarm_name(STOP))]
    assert "alarms_not_saved" not in alone.active()
    what = alone.journaled("alarm", "alarm", "event")
    assert [event for name, event in what if name == "alarms_not_saved"] == [
        "activate",
        "deactivate",
    ], "told once"


@pytest.mark.parametrize("at_once", [False, True])
async def test_of_facts_that_no_disk_takes_the_last_ones_wait(
    monkeypatch: pytest.MonkeyPatch, *, at_once: bool
) -> None:
    assert kept_by.UNSAVED_MAX == 1_000
    monkeypatch.setattr(kept_by, "UNSAVED_MAX", 10)
    alone = Alone(channels=())
    alone.disk.broken = OSError(28, "full")
    for number in range(15):
        alone.line.events.on_abnormal(trip(Cause.STOP_REQUEST, f"line{number}"))
        if not at_once:
            await asyncio.sleep(0.1)
    await asyncio.sleep(0.1)
    alone.disk.broken = None
    await alone.ticks(1)
    kept = [name for _, name in alone.kept()]
    assert kept == [f"stop_request/line{number}" for number in range(5, 15)]


# ---- the end of a run


async def test_a_close_waits_for_what_is_being_sent_and_then_hears_nothing_more() -> None:
    alone = Alone()
    alone.sender.answers["mail"] = None
    alone.line.events.on_abnormal(HOT)
    await asyncio.sleep(1.0)
    await alone.line.events.on_close()
    assert alone.loop.time() == pytest.approx(10.0), "when the channel counts as dead"
    alone.line.events.on_abnormal(STOP)
    alone.latch.write_error = "full"
    alone.line.events.on_tick()
    await asyncio.sleep(1.0)
    assert alone.active() == [alarm_name(HOT), "alert_channel/mail"]
    assert alone.journaled("alert", "channel", "error") == [
        ("mail", "no answer within 10 s"),
        ("chat", ""),
    ]
    assert alone.kept() == [ON, ("activate", "alert_channel/mail")]


async def test_a_close_ends_with_the_last_message_that_is_sent(alone: Alone) -> None:
    alone.sender.answers["mail"] = None
    alone.line.events.on_abnormal(HOT)
    await asyncio.sleep(1.0)
    alone.loop.call_later(3.0, alone.sender.dones[0], "")
    await alone.line.events.on_close()
    assert alone.loop.time() == 4.0
    assert alone.journaled("alert", "channel", "error") == [("mail", "")]


def test_a_close_waits_for_what_is_being_saved() -> None:
    alone = Alone(loop=(loop := SlowLoop()))

    async def work() -> None:
        alone.line.events.on_abnormal(HOT)
        await asyncio.sleep(1.0)
        loop.call_later(3.0, loop.waiting[0].set_result, None)
        await alone.line.events.on_close()
        assert loop.time() == pytest.approx(4.0)

    alone.play(work)


async def test_a_close_has_at_once_what_has_ended(alone: Alone) -> None:
    alone.line.events.on_abnormal(HOT)
    await asyncio.sleep(1.0)
    await alone.line.events.on_close()
    assert alone.loop.time() == 1.0


async def test_a_close_takes_what_was_found_last_and_asks_the_latch_once_more(alone: Alone) -> None:
    alone.line.events.on_abnormal(HOT)
    alone.latch.write_error = "full"
    await alone.line.events.on_close()
    assert alone.kept() == [ON, ("activate", "latch_not_saved")]


def test_a_close_waits_for_twenty_seconds_at_most() -> None:
    alone = Alone(loop=(loop := SlowLoop()))

    async def work() -> None:
        alone.line.events.on_abnormal(HOT)
        await alone.line.events.on_close()
        assert loop.time() == pytest.approx(20.0)
        assert loop.waiting[0].cancelled(), "the disk may still take them, and nobody hears of it"

    alone.play(work)


async def test_a_close_that_gives_up_a_channel_lets_its_time_do_nothing_more(alone: Alone) -> None:
    alone.sender.answers.update(mail=None, chat=None)
    alone.line.events.on_abnormal(HOT)
    alone.loop.call_later(
        5.0, alone.line.events.on_verified, Verification("off", (), 1.0, ("hot",))
    )
    await alone.line.events.on_close()
    assert alone.loop.time() == pytest.approx(20.0)
    records = len(alone.records)
    await asyncio.sleep(60.0)
    assert len(alone.records) == records


def test_real_times_are_longer_on_a_loop_that_is_faster() -> None:
    alone = Alone(loop=SlowLoop())
    alone.clock.speed = 10.0
    alone.sender.answers["mail"] = None

    async def work() -> None:
        alone.line.events.on_abnormal(HOT)
        await alone.ticks(99)
        assert alone.journaled("alert", "error") == []
        assert "alarms_not_saved" not in alone.active()
        await alone.ticks(2)
        assert alone.journaled("alert", "error")[0] == ("no answer within 10 s",)
        assert "alarms_not_saved" in alone.active()
        await asyncio.sleep(2_890)
        await alone.ticks(1)
        assert "boss" not in alone.told()
        await asyncio.sleep(20)
        await alone.ticks(1)
        assert "boss" in alone.told()
        alone.latch.write_error = Text("latch.not_yet", path="latch.json")
        await alone.ticks(149)
        assert "latch_not_saved" not in alone.active()
        await alone.ticks(3)
        assert "latch_not_saved" in alone.active()

    alone.play(work)


# ---- channels


async def test_a_channel_is_dead_after_ten_seconds_and_what_it_says_then_is_not_heard() -> None:
    alone = Alone(channels=(AlertChannel(name="mail"), AlertChannel(name="text")))
    alone.sender.answers["mail"] = None
    alone.line.events.on_abnormal(HOT)
    await asyncio.sleep(9.9)
    assert alone.journaled("alert", "channel") == [("text",)]
    await asyncio.sleep(0.2)
    assert alone.active()[1:] == ["alert_channel/mail"]
    alone.alarms._ended(1, "mail", alarm_name(HOT), 0, "")
    await asyncio.sleep(0.2)
    assert alone.active()[1:] == ["alert_channel/mail"]
    assert alone.journaled("alert", "channel", "alarm", "error") == [
        ("text", alarm_name(HOT), ""),
        ("mail", alarm_name(HOT), "no answer within 10 s"),
        ("text", "alert_channel/mail", ""),
    ]


async def test_a_channel_that_takes_messages_again_is_no_longer_an_alarm(alone: Alone) -> None:
    alone.sender.answers["mail"] = "refused"
    alone.line.events.on_abnormal(STOP)
    await asyncio.sleep(1.0)
    alone.sender.answers["mail"] = ""
    alone.line.events.on_abnormal(HOT)
    await asyncio.sleep(1.0)
    assert alone.journaled("alarm", "event", "alarm", "why")[1:] == [
        ("activate", "alert_channel/mail", "alert channel 'mail': refused"),
        ("activate", alarm_name(HOT), "seen"),
        ("deactivate", "alert_channel/mail", "it takes messages again"),
    ]


# ---- a line that was left


async def test_a_line_that_was_left_tells_whom_it_waits_for_and_calls_the_next_in_time() -> None:
    alone = Alone()
    said: list[tuple[float, str]] = []
    alone.line.events.on_abnormal(HOT)
    await alone.line.events.on_close()
    await alone.alarms.answered(lambda text: said.append((alone.clock.now_s(), text)))
    told = [(channel, at_s) for channel, at_s in alone.journaled("alert", "channel", "at_s")]
    assert told == [("mail", 0.0), ("boss", 300.0), ("chief", 600.0)]
    name, rest = (
        alarm_name(HOT),
        "unless somebody does (labharness alarms ack); Ctrl-C ends the wait",
    )
    hour = f"{VIRTUAL_EPOCH:%H}"
    assert said == [
        (0.0, f"nobody has acknowledged {name}: the next level is called at {hour}:05 UTC {rest}"),
        (
            300.0,
            f"nobody has acknowledged {name}: the next level is called at {hour}:10 UTC {rest}",
        ),
    ]


async def test_whoever_gives_up_ends_the_wait_at_once(alone: Alone) -> None:
    said: list[str] = []
    alone.alarms.give_up()  # of another wait
    alone.line.events.on_abnormal(HOT)
    await alone.line.events.on_close()
    alone.loop.call_later(100.5, alone.alarms.give_up)
    await alone.alarms.answered(said.append)
    assert alone.loop.time() == 100.5
    assert said[1:] == [
        f"nobody has acknowledged {alarm_name(HOT)}; nobody further is called for it"
    ]
    assert alone.told() == ["mail"]


async def test_a_word_from_another_terminal_ends_the_wait_within_a_second(alone: Alone) -> None:
    alone.line.events.on_abnormal(HOT)
    await alone.line.events.on_close()
    word = ada(AlarmEvent.ACKNOWLEDGE, alarm_name(HOT), 1.0)
    alone.loop.call_later(100.5, setattr, alone.disk, "others", [word])
    await alone.alarms.answered(lambda text: None)
    assert alone.loop.time() == 101.0
    assert alone.told() == ["mail"]


def test_nobody_is_waited_for_where_all_were_told_or_nothing_is_grave() -> None:
    for channels, found in ((LEVELS, WARM), (LEVELS[:1], HOT)):
        alone = Alone(channels=channels)

        async def work(alone: Alone = alone, found: object = found) -> None:
            alone.line.events.on_abnormal(found)
            await alone.line.events.on_close()
            await alone.alarms.answered(pytest.fail)
            assert alone.loop.time() == 0.0

        alone.play(work)


def test_a_wait_ends_when_what_was_called_last_is_sent() -> None:
    alone = Alone(
        loop=SlowLoop(), channels=(AlertChannel(name="mail"), AlertChannel(name="boss", level=1))
    )
    alone.sender.answers["boss"] = None

    async def work() -> None:
        alone.line.events.on_abnormal(HOT)
        await asyncio.sleep(1.0)
        alone.loop.waiting[0].set_result(None)  # type: ignore[attr-defined]  # a SlowLoop's
        await alone.alarms.answered(lambda text: None)

    alone.play(work)
    assert ("boss", "no answer within 10 s") in alone.journaled("alert", "channel", "error")


async def test_a_file_of_alarms_is_named_by_its_name_alone() -> None:
    alone = Alone(disk=Disk(path=Path("state") / "alarms.jsonl", broken=OSError(28, "full")))
    alone.line.events.on_abnormal(HOT)
    await asyncio.sleep(0.1)
    assert alone.alarms.board.alarms["alarms_not_saved"].detail == (
        "alarms.jsonl cannot be written: full"
    )
