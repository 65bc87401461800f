"""The alarms of a line by themselves: what each thing that a line tells becomes, and when."""

import asyncio
from datetime import timedelta
from itertools import pairwise
from typing import Any

import pytest

from alarms_alone import LEVELS, Alone, trip
from kernel_line import ENVELOPE, see
from labharness.core.clock import VIRTUAL_EPOCH
from labharness.core.vocabulary import Cause
from labharness.core.vocabulary.texts import Text
from labharness.line.alarms import alarm_name
from labharness.line.procedures import StepState, Verification
from labharness.safety.alarm.board import Actor, AlarmEvent, Fact, Severity
from labharness.safety.alarm.outlets import AlertChannel
from labharness.safety.kernel import Mode

LEAK = trip(Cause.GAS_LEAK, "h2_detector.concentration", 900.0)
STOP = trip(Cause.STOP_REQUEST, "line")
HOT = trip(Cause.OVER_TEMPERATURE, "furnace.temperature", 1060.0)
WARM = trip(Cause.OVER_TEMPERATURE, "furnace.temperature", 1030.0, procedure="")
SILENT = trip(Cause.COMMUNICATION, "furnace.temperature", procedure="")
GUARD_GONE = trip(Cause.COMMUNICATION, "guard")
MINUTE = 60.0  # for which a cause must be gone


# ---- what becomes an alarm


def test_an_alarm_has_the_name_of_its_cause_and_channel_and_says_where_it_only_warns() -> None:
    assert alarm_name(HOT) == "over_temperature/furnace.temperature"
    assert alarm_name(WARM) == "over_temperature/furnace.temperature/warning"


def test_of_two_trips_the_one_that_people_have_to_run_from_calls_again() -> None:
    first_first: dict[Cause, list[object]] = {}
    for cause in Cause:
        alone = Alone()

        async def work(alone: Alone = alone, cause: Cause = cause) -> None:
            alone.line.events.on_abnormal(trip(cause, "first"))
            alone.line.events.on_abnormal(LEAK)
            await alone.ticks(1)

        alone.play(work)
        first_first[cause] = [called for _, called in alone.journaled("alarm", "alarm", "called")]
    again = [cause for cause, called in first_first.items() if called == [True, True]]
    assert again == [cause for cause in Cause if cause is not Cause.GAS_LEAK]


def test_a_graver_cause_calls_over_a_lesser_one_and_not_the_other_way() -> None:
    def called(*causes: Cause) -> list[object]:
        alone = Alone()

        async def work() -> None:
            for cause in causes:
                alone.line.events.on_abnormal(trip(cause, "x"))
            await alone.ticks(1)

        alone.play(work)
        return [each for (each,) in alone.journaled("alarm", "called")]

    by_rank = [cause for cause in Cause if cause is not Cause.GAS_LEAK]
    for graver, lesser in pairwise(by_rank):
        assert called(lesser, graver) == [True, True]
        assert called(graver, lesser) == [True, False]


@pytest.mark.parametrize(
    ("told", "mode", "severity"),
    [
        (HOT, Mode.RUNNING, Severity.TRIP),
        (WARM, Mode.RUNNING, Severity.WARNING),
        (WARM, Mode.DISARMED, Severity.WARNING),
        (SILENT, Mode.RUNNING, Severity.WARNING),
        (SILENT, Mode.DISARMED, Severity.FAULT),
        (HOT, Mode.DISARMED, None),
    ],
)
async def test_a_line_that_nobody_drives_does_not_trip_and_what_it_lost_is_a_fault(
    told: object, mode: Mode, severity: Severity | None
) -> None:
    alone = Alone()
    alone.memory.mode = mode
    alone.line.events.on_abnormal(told)
    await alone.ticks(1)
    found = [each.severity for each in alone.alarms.board.alarms.values()]
    assert found == ([] if severity is None else [severity])


async def test_what_is_told_again_and_again_is_one_alarm_and_one_call(alone: Alone) -> None:
    for _ in range(3):
        alone.line.events.on_abnormal(HOT)
        alone.line.events.on_abnormal(HOT)
        await alone.ticks(2)
    assert alone.journaled("alarm", "event") == [("activate",)]
    assert alone.told() == ["mail"]


async def test_nobody_is_called_before_what_found_it_has_ended(alone: Alone) -> None:
    alone.line.events.on_abnormal(HOT)
    assert (alone.records, alone.told(), alone.disk.writes) == ([], [], [])
    await asyncio.sleep(0)
    assert alone.told() == ["mail"]


async def test_a_record_of_an_alarm_says_all_that_is_known_of_it(alone: Alone) -> None:
    await asyncio.sleep(3.0)
    alone.line.events.on_abnormal(trip(Cause.OVER_TEMPERATURE, "furnace.temperature", 1060.0))
    await asyncio.sleep(2.0)
    alone.line.events.on_abnormal(trip(Cause.STOP_REQUEST, "line"))
    await asyncio.sleep(0)
    first, second = [body for kind, body in alone.records if kind == "alarm"]
    assert first == {
        "event": "activate",
        "alarm": "over_temperature/furnace.temperature",
        "severity": "trip",
        "role": "system",
        "who": "labharness",
        "why": "seen",
        "first_out": "over_temperature/furnace.temperature",
        "called": True,
        "at_s": 3.0,
    }
    assert (second["first_out"], second["called"], second["at_s"]) == (
        "over_temperature/furnace.temperature",
        False,
        5.0,
    )
    assert [body for kind, body in alone.records if kind == "alert"] == [
        {"channel": "mail", "alarm": alarm_name(HOT), "level": 0, "error": "", "at_s": 3.0}
    ]
    (fact, _) = alone.disk.kept
    assert (fact.severity, fact.source, fact.rank) == (Severity.TRIP, "line", 5)
    assert fact.at == VIRTUAL_EPOCH + timedelta(seconds=3)


async def test_a_journal_that_is_gone_keeps_nobody_from_being_called(alone: Alone) -> None:
    alone.journal_fails = True
    alone.line.events.on_abnormal(HOT)
    await alone.ticks(1)
    assert (alone.told(), alone.active()) == (["mail"], [alarm_name(HOT)])


# ---- when it is over


async def test_an_alarm_ends_when_its_cause_was_gone_for_a_minute_without_a_break() -> None:
    alone = Alone()
    name = alarm_name(WARM)

    def hot() -> None:
        alone.well()
        see(alone.memory, alone.clock.now_s(), furnace__temperature=1030.0)

    hot()
    alone.line.events.on_abnormal(WARM)
    await alone.ticks(3, hot)
    await alone.ticks(MINUTE - 1, alone.well)
    await alone.ticks(1, hot)  # it comes back, and the minute begins again
    await alone.ticks(MINUTE, alone.well)
    assert alone.active() == [name]
    alone.line.events.on_abnormal(WARM)  # and here, told by the line
    await alone.ticks(MINUTE, alone.well)
    assert alone.active() == [name]
    await alone.ticks(1, alone.well)
    assert alone.active() == []
    alone.line.events.on_abnormal(WARM)
    await alone.ticks(1, alone.well)
    assert alone.active() == [name], "and what comes then is another"
    assert alone.journaled("alarm", "event", "why") == [
        ("activate", "seen"),
        ("deactivate", "its cause is gone"),
        ("activate", "seen"),
    ]


LOST_EXHAUST = trip(Cause.INTERLOCK_LOST, "box.exhaust")
LOST_PURGE = trip(Cause.INTERLOCK_LOST, "purge")
FOREIGN = trip(Cause.STOP_REQUEST, "furnace.rate", 7.0, procedure="")


@pytest.mark.parametrize(
    ("told", "read", "stands"),
    [
        (HOT, {"furnace__temperature": 1020.1}, True),
        (HOT, {"furnace__temperature": 1020.0}, False),
        (trip(Cause.SENSOR_BREAK, "furnace.temperature", -60.0), {}, False),
        (
            trip(Cause.SENSOR_BREAK, "furnace.temperature", -60.0),
            {"furnace__temperature": 1060.0},
            False,
        ),
        (
            trip(Cause.SENSOR_BREAK, "furnace.temperature", -60.0),
            {"furnace__temperature": -51.0},
            True,
        ),
        (
            trip(Cause.SENSOR_BREAK, "furnace.temperature", -60.0),
            {"furnace__temperature": -50.0},
            False,
        ),
        (trip(Cause.OVER_FLOW, "nobody.reads_it", 3.0), {}, False),
        (LOST_EXHAUST, {"box__contactor": 1.0, "box__exhaust": 0.0}, True),
        (LOST_EXHAUST, {"box__contactor": 0.0, "box__exhaust": 0.0}, False),
        (LOST_EXHAUST, {"box__contactor": 1.0, "box__exhaust": 1.0}, False),
        (trip(Cause.INTERLOCK_LOST, "box.lid_shut"), {"furnace__temperature": 400.0}, False),
        (
            trip(Cause.INTERLOCK_LOST, "box.lid_shut"),
            {"furnace__temperature": 400.0, "box__lid_shut": 0.0},
            True,
        ),
        (
            trip(Cause.INTERLOCK_LOST, "hydrogen.flow"),  # a row that only stands before commands
            {"furnace__setpoint": 500.0, "hydrogen__flow": 60.0, "box__contactor": 0.0},
            False,
        ),
        (LOST_PURGE, {"hydrogen__flow": 5.0, "box__contactor": 0.0}, True),
        (LOST_PURGE, {"hydrogen__flow": 0.0, "box__contactor": 0.0}, False),
        (STOP, {"box__contactor": 0.0, "hydrogen__flow": 0.0}, False),
        (STOP, {"box__contactor": 1.0, "box__exhaust": 0.0}, False),
    ],
)
async def test_a_cause_stands_as_long_as_what_is_read_shows_it(
    told: object, read: dict[str, float], stands: bool
) -> None:
    alone = Alone()

    def all_read() -> None:
        alone.well()
        see(alone.memory, alone.clock.now_s(), **{"box__contactor": 0.0, **read})

    all_read()
    alone.line.events.on_abnormal(told)
    await alone.ticks(MINUTE + 5, all_read)
    assert bool(alone.active()) is stands


async def test_what_was_set_by_a_foreign_hand_stands_until_it_reads_as_it_was_set() -> None:
    alone = Alone()
    track = alone.memory.tracks["furnace.rate"]
    track.within = 0.5
    track.told = 5.0
    alone.line.events.on_abnormal(FOREIGN)
    await alone.ticks(100, lambda: see(alone.memory, alone.clock.now_s(), furnace__rate=7.0))
    assert alone.active() == [alarm_name(FOREIGN)]
    await alone.ticks(65, lambda: see(alone.memory, alone.clock.now_s(), furnace__rate=5.0))
    assert alone.active() == []


async def test_a_channel_that_was_silent_is_heard_again_by_itself_and_a_guard_by_all() -> None:
    alone = Alone()
    watched = [channel.replace(".", "__") for channel in ENVELOPE.watches]

    def hear(*names: str) -> None:
        see(alone.memory, alone.clock.now_s(), **dict.fromkeys(names, 1.0))

    alone.line.events.on_abnormal(SILENT)
    alone.line.events.on_abnormal(GUARD_GONE)
    await alone.ticks(70)
    assert len(alone.active()) == 2
    await alone.ticks(70, lambda: hear("furnace__temperature"))
    assert alone.active() == [alarm_name(GUARD_GONE)]
    await alone.ticks(70, lambda: hear(*watched[1:]))
    assert alone.active() == [alarm_name(GUARD_GONE)]
    await alone.ticks(70, lambda: hear(*watched))
    assert alone.active() == []


async def test_a_journal_that_was_lost_is_an_alarm_until_it_can_be_written(alone: Alone) -> None:
    alone.monitor.journal_lost = "full"
    alone.line.events.on_abnormal(trip(Cause.JOURNAL_LOST, "journal"))
    await alone.ticks(100, alone.well)
    assert alone.active() == ["journal_lost/journal"]
    alone.monitor.journal_lost = ""
    await alone.ticks(62, alone.well)
    assert alone.active() == []


def ended(complete: bool, name: str = "shutdown") -> Verification:
    state = StepState.VERIFIED if complete else StepState.UNKNOWN
    return Verification(name, (("a.setpoint", 0.0, None, state), ("b.on", 0.0, None, state)), 1.0)


async def test_a_procedure_that_is_not_verified_is_critical_until_one_is(alone: Alone) -> None:
    alone.line.events.on_verified(ended(complete=False))
    alone.line.events.on_verified(ended(complete=False))
    await asyncio.sleep(1)
    alone.line.events.on_verified(ended(complete=False))
    await asyncio.sleep(1)
    (alarm,) = alone.alarms.board.alarms.values()
    assert (alarm.name, alarm.severity) == ("not_verified/shutdown", Severity.CRITICAL)
    assert alarm.detail == "shutdown: a.setpoint = 0: unknown; b.on = 0: unknown"
    alone.line.events.on_verified(ended(complete=True, name="relieve"))
    await asyncio.sleep(1)
    assert alone.active() == []
    assert [event for event, _ in alone.kept()] == ["activate", "deactivate"]
    assert alone.told() == ["mail", "chat"]
    assert alone.journaled("alarm", "alarm", "why")[1:] == [
        ("not_verified/shutdown", "relieve is verified")
    ]


NOT_YET = Text("latch.not_yet", path="latch.json")


@pytest.mark.parametrize(
    ("errors", "active_s"),
    [
        ([(0, "latch.json: full"), (5, "")], (0, 5)),
        ([(0, NOT_YET), (14, "")], None),
        ([(0, NOT_YET), (10, ""), (12, NOT_YET), (26, "")], None),
        ([(0, NOT_YET), (20, "")], (15, 20)),
        ([(0, NOT_YET), (4, "latch.json: full"), (9, "")], (4, 9)),
    ],
)
async def test_a_latch_is_not_saved_when_the_disk_refuses_or_is_waited_for_too_long(
    errors: list[tuple[int, str]], active_s: tuple[int, int] | None
) -> None:
    alone = Alone()
    seen: list[int] = []
    for second in range(40):
        for at_s, error in errors:
            if at_s == second:
                alone.latch.write_error = error
        alone.line.events.on_tick()
        await asyncio.sleep(0.5)
        if alone.active() == ["latch_not_saved"]:
            seen.append(second)
        await asyncio.sleep(0.5)
    assert seen == ([] if active_s is None else list(range(*active_s)))
    found = [(each.severity, each.detail) for each in alone.alarms.board.alarms.values()]
    error = errors[0][1] if errors[0][1] != NOT_YET or len(errors) == 2 else errors[1][1]
    said = (Severity.CRITICAL, f"the latch could not be saved: {error}")
    assert found == ([] if active_s is None else [said])
    assert len(alone.disk.kept) == (2 if active_s else 0), "a disk is not written at every poll"
    ends = [("deactivate", "the latch is saved")] if active_s else []
    assert alone.journaled("alarm", "event", "why")[1:] == ends


async def test_a_latch_that_fails_is_told_with_its_trip_and_not_a_poll_later(alone: Alone) -> None:
    alone.latch.write_error = "full"
    alone.line.events.on_abnormal(HOT)
    await asyncio.sleep(0)
    assert alone.active() == [alarm_name(HOT), "latch_not_saved"]


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


async def test_each_level_is_told_once_five_minutes_after_the_one_before(alone: Alone) -> None:
    alone.line.events.on_abnormal(HOT)
    await alone.ticks(2000)
    found = alone.journaled("alert", "channel", "level", "at_s")
    assert found == [("mail", 0, 0.0), ("boss", 1, 300.0), ("chief", 2, 600.0)]
    assert alone.alarms.calls == 4, "and a last one, of which nobody is to be told"


async def test_levels_that_were_missed_are_all_told(alone: Alone) -> None:
    alone.line.events.on_abnormal(HOT)
    await asyncio.sleep(700)
    alone.line.events.on_tick()
    assert alone.told() == ["mail", "boss", "chief"]


async def test_a_second_alarm_of_a_group_waits_from_its_own_call_on(alone: Alone) -> None:
    alone.line.events.on_abnormal(STOP)
    await alone.ticks(100)
    alone.line.events.on_abnormal(LEAK)
    await alone.ticks(1)
    alone.disk.others = [by_ada(AlarmEvent.ACKNOWLEDGE, alarm_name(STOP), 101)]
    await alone.ticks(600)
    assert alone.journaled("alert", "channel", "at_s") == [
        ("mail", 0.0),
        ("mail", 100.0),
        ("boss", 400.0),
        ("chief", 700.0),
    ]


async def test_a_word_from_another_terminal_counts_once_however_often_it_is_read() -> None:
    alone = Alone()
    word = by_ada(AlarmEvent.ACKNOWLEDGE, alarm_name(STOP), 1)
    for _ in range(2):
        alone.line.events.on_abnormal(STOP)
        await alone.ticks(1, alone.well)
        alone.disk.others = [word]
        await alone.ticks(MINUTE + 5, alone.well)
        assert alone.active() == []
    events = [event for (event,) in alone.journaled("alarm", "event")]
    assert events == ["activate", "acknowledge", "deactivate", "activate", "deactivate"]


async def test_what_others_did_before_is_taken_before_what_comes(alone: Alone) -> None:
    alone.line.events.on_abnormal(STOP)
    await alone.ticks(1)
    alone.disk.others = [by_ada(AlarmEvent.ACKNOWLEDGE, alarm_name(STOP), 1)]
    alone.line.events.on_abnormal(HOT)
    await asyncio.sleep(0)
    events = [event for (event,) in alone.journaled("alarm", "event")]
    assert events == ["activate", "acknowledge", "activate"]
    assert "seen\nfirst" in alone.sender.said[-1][2], "nothing is said of what somebody knows"


async def test_what_the_file_gives_back_of_our_own_is_known(alone: Alone) -> None:
    alone.line.events.on_abnormal(STOP)
    await alone.ticks(1)
    ours = alone.disk.kept[0]
    alone.disk.others = [Fact(event=AlarmEvent.DEACTIVATE, alarm=ours.alarm, at=ours.at)]
    await alone.ticks(1)
    assert alone.active() == [alarm_name(STOP)]


async def test_a_shelf_ends_by_its_time_and_by_another_terminal_that_saw_it_end() -> None:
    alone = Alone()
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
    events = [event for (event,) in alone.journaled("alarm", "event")]
    assert events == ["activate", "timed_shelve", "unshelve", "timed_shelve", "unshelve"]
    assert ("unshelve", alarm_name(WARM)) in alone.kept()


async def test_a_message_says_what_it_is_and_what_to_do() -> None:
    alone = Alone(option=" --lab x.toml")
    alone.line.events.on_abnormal(STOP)
    await alone.ticks(1)
    alone.line.events.on_abnormal(HOT)
    await alone.ticks(601)
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
async def test_each_channel_gets_its_message_in_its_own_language() -> None:
    alone = Alone(channels=(AlertChannel(name="mail"), AlertChannel(name="phone", language="zh")))
    alone.line.events.on_abnormal(STOP)
    await alone.ticks(1)
    (_, english, _), (_, chinese, text) = alone.sender.said
    assert english == "the lab: trip stop_request/line"
    assert chinese == "the lab：跳闸 stop_request/line"
    assert "首发：stop_request/line；共 1 个" in text.splitlines()
    assert "labharness alarms ack stop_request/line --name NAME --reason REASON" in text


async def test_a_warning_asks_for_no_reset_and_a_name_with_blanks_is_quoted(alone: Alone) -> None:
    alone.line.events.on_abnormal(trip(Cause.OVER_FLOW, "argon flow", 9.0, procedure=""))
    await alone.ticks(1)
    ((_, title, text),) = alone.sender.said
    assert title == "the lab: warning over_flow/argon flow/warning"
    assert text.splitlines()[2:] == [
        "labharness alarms ack 'over_flow/argon flow/warning' --name NAME --reason REASON",
        "then look: labharness watch",
    ]


async def test_of_a_grave_alarm_a_channel_for_grave_ones_is_told_and_a_dead_one_not_of_itself() -> (
    None
):
    alone = Alone((*LEVELS, AlertChannel(name="text")))
    alone.sender.answers["mail"] = "refused"
    alone.line.events.on_verified(ended(complete=False))
    await alone.ticks(1)
    told = [(channel, title.rpartition(" ")[2]) for channel, title, _ in alone.sender.said]
    assert told == [
        *((name, "not_verified/shutdown") for name in ("mail", "chat", "text")),
        *((name, "alert_channel/mail") for name in ("chat", "text")),
    ]
    (dead,) = [each for each in alone.alarms.board.alarms.values() if "mail" in each.name]
    assert (dead.severity, dead.source) == (Severity.FAULT, "house")
    assert dead.detail == "alert channel 'mail': refused"
