"""Alarms of a line: where they come from, what they join, and what people do about them."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from alarmed import ESTOP, Watched, after, warns_of_pressure, watch, watching
from alarms_alone import LEVELS
from commands import say
from labharness.core.vocabulary import Command
from labharness.lab import LabPlan
from labharness.lab.wiring.alarms import do, listed, reset_alarms
from labharness.line import NotArmed
from labharness.safety.alarm.board import Actor, AlarmEvent, Fact, Severity, State
from labharness.safety.alarm.outlets import AlarmFile, AlertChannel, Done
from labharness.safety.guard import Latch
from rig import SHORT_LINE, cut, plant_fault

RARE = pytest.mark.soak  # what one of its like stands for every day
CALLS_MAX = 10  # of one fault in ten minutes: more is a flood (ISA-18.2)
IDLE_FAULTS = {
    "estop_open": (plant_fault("estop_open"), ["emergency_stop_loop/box.estop_closed"]),
    "sensor": (plant_fault("furnace_sensor_broken"), ["sensor_break/furnace.sensor_break"]),
    "hydrogen": (
        plant_fault("h2_detector_offset_ppm", 9000.0),
        ["gas_leak_detected/h2_detector.concentration"],
    ),
    "outlet": (plant_fault("outlet_blocked"), ["over_pressure/gauge.pressure"]),
    "relays cut": (cut("relays"), None),
    "heat cut": (cut("heat"), None),
    "detector cut": (cut("detector"), None),
}
NOW = datetime(2026, 11, 20, 8, tzinfo=UTC)


def lab_of() -> tuple[str, str]:
    return "--lab", str(SHORT_LINE)


def alarm(name: str, minute: int, event: AlarmEvent) -> Fact:
    """What an earlier run, or a person after it, left in the file."""
    ours = event in (AlarmEvent.ACTIVATE, AlarmEvent.DEACTIVATE)
    return Fact(
        event=event,
        alarm=name,
        at=NOW + timedelta(minutes=minute),
        role=Actor.SYSTEM if ours else Actor.OPERATOR,
        who="labharness" if ours else "Ada",
        why="known",
        severity=Severity.TRIP if name == ESTOP else Severity.WARNING,
    )


@pytest.mark.promise(22)
@pytest.mark.parametrize("fault", IDLE_FAULTS)
def test_one_fault_of_an_armed_line_calls_once_for_its_cause(
    short_plan: LabPlan, tmp_path: Path, fault: str
) -> None:
    act, expected = IDLE_FAULTS[fault]
    watched = watch(short_plan, tmp_path, after(act, 3), channels=LEVELS)
    calls = watched.calls()
    assert watched.alarms.calls <= CALLS_MAX
    if expected is not None:
        assert calls == expected
    else:  # what cannot be heard cannot be verified either: that is graver, and told as well
        assert calls[0].startswith("communication/")
        assert [each for each in calls[1:] if not each.startswith("not_verified/")] == []
    groups = {
        each["first_out"] for each in watched.journaled("alarm") if each["event"] == "activate"
    }
    assert groups == {calls[0]}


@pytest.mark.promise(23)
def test_a_call_goes_to_its_level_and_up_when_nobody_acknowledges(
    short_plan: LabPlan, tmp_path: Path
) -> None:
    act = plant_fault("estop_open")
    watched = watch(short_plan, tmp_path, after(act, 11), channels=LEVELS)
    alerts = watched.journaled("alert")
    start_s = alerts[0]["at_s"]
    assert [(each["channel"], each["level"]) for each in alerts] == [
        ("mail", 0),
        ("boss", 1),
        ("chief", 2),
    ]
    assert [each["at_s"] - start_s for each in alerts] == pytest.approx([0, 300, 600], abs=2)


async def test_an_acknowledgement_from_another_terminal_reaches_the_owner_and_ends_the_escalation(
    short_plan: LabPlan, tmp_path: Path
) -> None:
    async with watching(short_plan, tmp_path, channels=LEVELS) as watched:
        plant_fault("estop_open")(watched.lab)
        await asyncio.sleep(120)
        said = say("alarms", "ack", "all", "--name", "Ada", "--reason", "on my way", *lab_of())
        assert said.out == "emergency_stop_loop/box.estop_closed: acknowledge by Ada\n"
        await asyncio.sleep(600)
    assert [each["channel"] for each in watched.journaled("alert")] == ["mail"]
    (ack,) = [each for each in watched.journaled("alarm") if each["event"] == "acknowledge"]
    assert (ack["who"], ack["why"], ack["role"]) == ("Ada", "on my way", "operator")
    assert 120 < ack["at_s"] < 140


def test_a_trip_stays_an_alarm_until_its_reset(short_plan: LabPlan, tmp_path: Path) -> None:
    async def work(watched: Watched) -> None:
        plant_fault("estop_open")(watched.lab)
        await asyncio.sleep(30)

    watch(short_plan, tmp_path, work)
    said = say("alarms", "list", *lab_of())
    assert said.out.startswith("trip     emergency_stop_loop/box.estop_closed: active, unack")
    shelved = say(
        "alarms",
        "shelve",
        "emergency_stop_loop/box.estop_closed",
        *("--name", "Ada", "--reason", "noise", *lab_of()),
    )
    assert (shelved.code, shelved.out) == (1, "")
    assert "never for an alarm of severity trip" in shelved.err
    assert say("reset", "--name", "Ada", "--reason", "released", *lab_of()).code == 0
    assert say("alarms", "list", *lab_of()).out == "no alarms\n"
    kept = (short_plan.state_dir / "alarms.jsonl").read_text("utf-8")
    assert [event for event in ("acknowledge", "reset") if f'"event": "{event}"' in kept]


@pytest.mark.promise(23)
def test_a_trip_calls_though_its_alarm_was_left_standing_by_an_earlier_watch(
    short_plan: LabPlan, tmp_path: Path
) -> None:
    async def later(watched: Watched) -> None:
        await asyncio.sleep(100)
        await after(plant_fault("estop_open"), 6)(watched)

    watch(short_plan, tmp_path / "first", after(plant_fault("estop_open"), 0.5))
    Latch(short_plan.state_dir / "latch.json").open()  # and its alarms are not reset
    watched = watch(short_plan, tmp_path / "second", later, channels=LEVELS)
    assert watched.calls() == [ESTOP]
    assert [each["channel"] for each in watched.journaled("alert")] == ["mail", "boss"]
    board, _, _ = listed(short_plan, watched.lab.clock.utc())
    assert board.alarms[ESTOP].state == State(active=True, acked=False, latched=True)
    seen = watched.alarms.board.alarms[ESTOP].since
    assert seen is not None
    assert board.alarms[ESTOP].since == seen.replace(microsecond=seen.microsecond // 1000 * 1000)


def test_a_trip_that_another_watch_finds_latched_is_not_shown_as_gone(
    short_plan: LabPlan, tmp_path: Path
) -> None:
    watch(short_plan, tmp_path / "first", after(plant_fault("estop_open"), 0.5))
    with pytest.raises(NotArmed, match="reset it first"):
        watch(short_plan, tmp_path / "second", after(plant_fault("estop_open"), 0.5))
    board, _, _ = listed(short_plan, NOW)
    assert board.alarms[ESTOP].state == State(active=True, acked=False, latched=True)


async def test_a_procedure_that_is_not_verified_is_graver_than_its_trip(watched: Watched) -> None:
    await watched.lab.line.perform(Command("argon.setpoint", 90.0, "sccm"))
    assert watched.lab.simulated is not None
    watched.lab.simulated.faces["argon"].setpoint_source = "A"  # deaf to its serial line
    plant_fault("estop_open")(watched.lab)
    await asyncio.sleep(60)
    await watched.close()
    assert watched.calls() == [
        "emergency_stop_loop/box.estop_closed",
        "not_verified/immediate_shutdown",
    ]
    critical = watched.alarms.board.alarms["not_verified/immediate_shutdown"]
    assert critical.severity is Severity.CRITICAL
    assert "argon.setpoint" in critical.detail


@pytest.mark.promise(23)
@pytest.mark.parametrize(
    "gone",
    [
        pytest.param(Path.unlink, id="removed"),
        pytest.param(lambda path: path.write_bytes(b""), id="cut short", marks=RARE),
        pytest.param(lambda path: path.rename(f"{path}.1"), id="rotated", marks=RARE),
    ],
)
async def test_nothing_is_silent_because_its_file_was_taken_away_or_emptied(
    short_plan: LabPlan, tmp_path: Path, gone: Callable[[Path], object]
) -> None:
    path = short_plan.state_dir / "alarms.jsonl"
    short_plan.make_state_dir()
    old = (
        alarm("old", n, each)
        for n in range(40)
        for each in (AlarmEvent.ACTIVATE, AlarmEvent.DEACTIVATE)
    )
    AlarmFile(path).append(list(old))
    async with watching(short_plan, tmp_path / "during", channels=LEVELS) as watched:
        await asyncio.sleep(5)
        gone(path)
        plant_fault("estop_open")(watched.lab)
        await asyncio.sleep(400)
        act = Fact(event=AlarmEvent.ACKNOWLEDGE, alarm=ESTOP, at=NOW, role=Actor.OPERATOR)
        do(short_plan, replace(act, who="Ada", why="seen"))
        await asyncio.sleep(400)
    assert watched.calls() == [ESTOP]
    assert [each["channel"] for each in watched.journaled("alert")] == ["mail", "boss"]
    kept = [fact.event for fact in AlarmFile(path).look_at_all() if fact.alarm == ESTOP]
    assert kept[:2] == [AlarmEvent.ACTIVATE, AlarmEvent.ACKNOWLEDGE]


async def test_an_old_word_in_a_file_that_was_put_back_acknowledges_no_new_alarm(
    short_plan: LabPlan, tmp_path: Path
) -> None:
    path = short_plan.state_dir / "alarms.jsonl"
    short_plan.make_state_dir()
    events = (AlarmEvent.ACTIVATE, AlarmEvent.ACKNOWLEDGE, AlarmEvent.DEACTIVATE, AlarmEvent.RESET)
    AlarmFile(path).append([alarm(ESTOP, n, event) for n, event in enumerate(events)])
    text = path.read_text("utf-8")
    async with watching(short_plan, tmp_path, channels=LEVELS) as watched:
        plant_fault("estop_open")(watched.lab)
        await asyncio.sleep(30)
        path.write_text(text, "utf-8")
        await asyncio.sleep(300)
    assert [each["channel"] for each in watched.journaled("alert")] == ["mail", "boss"]
    assert not watched.alarms.board.alarms[ESTOP].state.acked


@pytest.mark.promise(23)
@pytest.mark.parametrize("jump_s", [-86400, *(pytest.param(s, marks=RARE) for s in (-600, 86400))])
async def test_whoever_sets_the_calendar_does_not_change_who_is_told_and_when(
    short_plan: LabPlan, tmp_path: Path, jump_s: float
) -> None:
    async with watching(short_plan, tmp_path, channels=LEVELS) as watched:
        plant_fault("estop_open")(watched.lab)
        await asyncio.sleep(60)
        watched.lab.clock.jumped_s = jump_s
        await asyncio.sleep(600)
    alerts = watched.journaled("alert")
    assert [each["channel"] for each in alerts] == ["mail", "boss", "chief"]
    late_s = [each["at_s"] - alerts[0]["at_s"] for each in alerts]
    assert late_s == pytest.approx([0, 300, 600], abs=2)


class Refuses:
    """Senders of which some take no messages."""

    def __init__(self, *dead: str) -> None:
        self.dead = set(dead)
        self.said: list[tuple[str, str]] = []

    def send(self, channel: str, title: str, text: str, done: Done) -> None:
        """Take a message, or say that it is not taken."""
        if channel not in self.dead:
            self.said.append((channel, title.rpartition(" ")[2]))
        done("it does not take messages" if channel in self.dead else "")


@pytest.mark.promise(23)
def test_a_second_channel_that_dies_is_told_as_the_first_was(
    short_plan: LabPlan, tmp_path: Path
) -> None:
    senders = Refuses("mail")

    async def work(watched: Watched) -> None:
        plant_fault("estop_open")(watched.lab)
        await asyncio.sleep(60)
        senders.dead.add("chat")
        plant_fault("h2_detector_offset_ppm", 9000.0)(watched.lab)  # graver: it calls again
        await asyncio.sleep(60)

    three = tuple(AlertChannel(name=name) for name in ("mail", "chat", "text"))
    watch(short_plan, tmp_path, work, channels=three, senders=senders)
    told = [alarm for channel, alarm in senders.said if channel == "text"]
    leak = "gas_leak_detected/h2_detector.concentration"
    assert told == [ESTOP, "alert_channel/mail", leak, "alert_channel/chat"]


@pytest.mark.promise(22)
@pytest.mark.thorough
async def test_a_network_that_takes_every_channel_with_it_does_not_flood(
    short_plan: LabPlan, tmp_path: Path
) -> None:
    names = [f"channel{number}" for number in range(9)]
    channels = [*(AlertChannel(name=name) for name in names), *LEVELS[2:]]
    senders = Refuses(*names, "boss", "chief")
    made: list[int] = []  # after each second
    async with watching(short_plan, tmp_path, channels=channels, senders=senders) as watched:
        cut("relays")(watched.lab)  # calls twice: its end cannot be verified
        while len(made) < 1300:
            await asyncio.sleep(1)
            made.append(watched.alarms.calls)
    in_ten_min = [later - now for now, later in zip([0, *made], made[599:], strict=False)]
    assert 8 <= max(in_ten_min) <= CALLS_MAX
    dead = [each["alarm"] for each in watched.journaled("alarm") if each["event"] == "activate"]
    assert {f"alert_channel/{name}" for name in names} <= set(dead), "recorded all the same"


class Hangs:
    def send(self, channel: str, title: str, text: str, done: Done) -> None:
        """Say nothing, ever: a foreign library that never comes back."""


@pytest.mark.promise(23)
def test_a_channel_that_never_ends_is_dead_after_ten_seconds(
    short_plan: LabPlan, tmp_path: Path
) -> None:
    act = plant_fault("estop_open")
    watched = watch(short_plan, tmp_path, after(act, 1), channels=LEVELS, senders=Hangs())
    sent, *_ = watched.journaled("alert")
    assert sent["error"] == "no answer within 10 s"
    dead = [each for each in watched.journaled("alarm") if each["alarm"] == "alert_channel/mail"]
    assert dead[0]["at_s"] - watched.journaled("trip")[0]["at_s"] == pytest.approx(10, abs=1)
    told = [each["channel"] for each in watched.journaled("alert")]
    assert told == ["mail", "chat", "mail"], "each is told of the other, and nobody in circles"


def test_a_value_that_only_warns_can_be_shelved_and_then_calls_nobody(tmp_path: Path) -> None:
    plan, name = warns_of_pressure(tmp_path)

    async def work(watched: Watched) -> None:
        plant_fault("outlet_blocked")(watched.lab)
        await asyncio.sleep(30)  # later the argon that does not get in warns too

    first = watch(plan, tmp_path / "first", work)
    assert first.calls() == [name]
    words = ("--name", "Ada", "--reason", "known", "--lab", str(plan.path))
    assert say("alarms", "remove", name, *words).code == 1, "an operator may not"
    assert say("alarms", "remove", name, "--role", "maintainer", *words).code == 0
    second = watch(plan, tmp_path / "second", work)
    assert second.calls() == []
    events = [each["event"] for each in second.journaled("alarm")]
    assert events == [AlarmEvent.ACTIVATE]
    assert say("alarms", "shelve", name, "--minutes", "600", *words).code == 1, "beyond the bound"
    assert say("alarms", "shelve", name, "--minutes", "60", *words).code == 0
    assert "timed_shelved, out_of_service until" in say("alarms", "list", *words[4:]).out


def test_an_alarm_whose_shelf_has_ended_while_nobody_watched_is_shelved_anew(
    short_plan: LabPlan,
) -> None:
    began = datetime(2026, 11, 20, 8, tzinfo=UTC)
    warm = Fact(
        event=AlarmEvent.ACTIVATE, alarm="warm", at=began, why="warm", severity=Severity.WARNING
    )
    short_plan.state_dir.mkdir(parents=True)
    AlarmFile(short_plan.state_dir / "alarms.jsonl").append([warm])

    def shelve(minutes: float) -> None:
        act = Fact(
            event=AlarmEvent.TIMED_SHELVE,
            alarm="warm",
            at=began + timedelta(minutes=minutes),
            role=Actor.OPERATOR,
            who="Ada",
            why="known",
            shelve_s=600.0,
        )
        assert do(short_plan, act) == ("warm",)

    def until(minutes: float) -> datetime | None:
        _, (alarm,), _ = listed(short_plan, began + timedelta(minutes=minutes))
        return alarm.until

    shelve(1)
    assert until(2) == began + timedelta(minutes=11)
    assert until(30) is None
    shelve(40)
    assert until(41) == began + timedelta(minutes=50)
    assert until(60) is None


@pytest.mark.parametrize("their_alarms", ["reset", "left standing"])
def test_the_same_seed_gives_the_same_journal_whatever_alarms_an_earlier_run_left(
    short_plan: LabPlan, tmp_path: Path, their_alarms: str
) -> None:
    heads = []
    for name in ("first", "second"):
        watched = watch(short_plan, tmp_path / name, after(plant_fault("estop_open"), 2))
        heads.append(watched.lab.line.journal.head)
        Latch(short_plan.state_dir / "latch.json").open()
        if name == "first" and their_alarms == "reset":  # the second run finds it in the file
            reset_alarms(short_plan, now=watched.lab.clock.utc(), who="Ada", why="released")
    assert heads[0] == heads[1]


@pytest.mark.promise(21)
@pytest.mark.parametrize(
    ("event", "role"),
    [
        (AlarmEvent.TIMED_SHELVE, Actor.OPERATOR),
        (AlarmEvent.ONE_SHOT_SHELVE, Actor.OPERATOR),
        (AlarmEvent.SUPPRESS, Actor.MAINTAINER),
        (AlarmEvent.REMOVE_FROM_SERVICE, Actor.MAINTAINER),
    ],
)
async def test_whoever_hides_an_alarm_of_a_run_stands_in_its_journal(
    tmp_path: Path, event: AlarmEvent, role: Actor
) -> None:
    plan, name = warns_of_pressure(tmp_path)
    async with watching(plan, tmp_path / "run") as watched:
        plant_fault("outlet_blocked")(watched.lab)
        await asyncio.sleep(45)
        now = watched.lab.clock.utc()
        act = Fact(event=event, alarm=name, at=now, role=role, shelve_s=600.0)
        do(plan, replace(act, who="Ada", why="known"))
        await asyncio.sleep(5)
        assert watched.alarms.board.alarms[name].state.suppressed_or_shelved
    (hidden,) = [each for each in watched.journaled("alarm") if each["event"] == event]
    assert (hidden["who"], hidden["why"], hidden["role"]) == ("Ada", "known", role)
