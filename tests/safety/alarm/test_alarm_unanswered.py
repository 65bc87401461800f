"""Who owned a line goes on calling when nobody answers, and lets whoever comes have the line."""

import asyncio
import os
import signal
import threading
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from alarmed import (
    ESTOP,
    Hears,
    Watched,
    after,
    quick_lab,
    server,
    warns_of_pressure,
    watch,
)
from alarms_alone import LEVELS
from commands import Said, edited_lab, say
from labharness.core.clock import Clock, wall_clock_utc
from labharness.core.vocabulary import Cause, Trip
from labharness.lab import LabPlan, read_lab
from labharness.lab.config.lock import LineLock
from labharness.lab.operate import attend, idle_line
from labharness.lab.operate.attend import Attendance
from labharness.lab.wiring import tasks
from labharness.lab.wiring.alarms import do
from labharness.line import Line, LineAlarms
from labharness.safety.alarm.board import Actor, AlarmEvent, Fact, Severity
from labharness.safety.alarm.outlets import AlarmFile
from labharness.safety.guard import Latch
from rig import SAFE_TABLE, SHORT_LINE, Injection, Run, cut, lab_with, plant_fault


async def trips(self: Attendance, line: Line) -> None:
    """Stay no longer than until a trip."""
    now_s = line.clock.now_s()
    line.trip_response.trip(Trip(Cause.STOP_REQUEST, SAFE_TABLE, "test", None, now_s, "test"))


def left_by_its_owner(folder: Path, web: Hears, boss: Hears) -> Said:
    """Attend a line in real time until it has tripped, and call for it."""
    lab = quick_lab(folder)
    with lab.open("a", encoding="utf-8") as file:
        for name, heard, level in (("web", web, 0), ("boss", boss, 1)):
            file.write(f'\n[[alert]]\nname = "{name}"\nurl = "{heard.url}"\nlevel = {level}\n')
    words = ("set", "argon.setpoint", 90, "sccm", "--attend", "--lab", lab)
    return say(*words, "--out", folder / "run", "--speed", "real")


@pytest.mark.promise(23)
@pytest.mark.thorough
def test_the_next_level_is_called_though_the_owner_has_left_the_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Attendance, "_stay", trips)
    for where in ("labharness.safety.alarm.board", "labharness.line.alarms"):
        monkeypatch.setattr(f"{where}.ESCALATE_AFTER", timedelta(seconds=6))
    with server() as web, server() as boss:
        said = left_by_its_owner(tmp_path, web, boss)
    assert said.code == 1
    assert len(web.said) == 1
    (title,) = boss.titles()
    assert "unacknowledged" in title
    assert said.err.count("nobody has acknowledged stop_request/test: the next level") == 1


@pytest.mark.skipif(os.name == "nt", reason="a thread sends no Ctrl-C to its own process there")
def test_ctrl_c_ends_the_calls_for_a_line_that_its_owner_has_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Attendance, "_stay", trips)
    waits = threading.Event()
    answered = LineAlarms.answered

    async def begin(self: LineAlarms, tell: Callable[[str], None]) -> None:
        asyncio.get_running_loop().call_later(0.5, waits.set)
        await answered(self, tell)

    def interrupt() -> None:
        if waits.wait(60):
            os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(LineAlarms, "answered", begin)
    thread = threading.Thread(target=interrupt)
    thread.start()
    with server() as web, server() as boss:
        said = left_by_its_owner(tmp_path, web, boss)
    thread.join()
    assert said.code == 1
    assert (len(web.said), boss.said) == (1, [])
    assert "nobody has acknowledged stop_request/test; nobody further is called" in said.err


def looking(plan: LabPlan, seen: list[str], folder: Path) -> Callable[..., object]:
    """Stand in for the wait, and see what others find meanwhile."""

    async def look(alarms: LineAlarms, clock: Clock, tell: Callable[[str], None]) -> None:
        LineLock(plan.state_dir).release()
        seen.extend(os.listdir(folder))

    return look


@pytest.mark.thorough
def test_who_comes_to_help_may_have_a_line_that_is_called_for(
    short_plan: LabPlan, tmp_path: Path, run_task: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    by_hand: list[str] = []
    monkeypatch.setattr(Attendance, "_stay", trips)
    monkeypatch.setattr(attend, "somebody_knows", looking(short_plan, by_hand, tmp_path / "hand"))
    words = ("set", "argon.setpoint", 90, "sccm", "--attend", "--lab", SHORT_LINE)
    assert say(*words, "--speed", "fast", "--for", 5, "--out", tmp_path / "hand").code == 1
    assert "journal.sqlite" in by_hand
    during: list[str] = []
    Latch(short_plan.state_dir / "latch.json").open()
    monkeypatch.setattr(tasks, "somebody_knows", looking(short_plan, during, tmp_path / "run"))
    fault = Injection("material_growth", 60.0, plant_fault("estop_open"))
    assert run_task(short_plan, inject=(fault,), out=tmp_path / "run").type == "task_failed"
    assert {"answer.json", "journal.sqlite"} <= set(during)


@pytest.mark.promise(23)
def test_a_line_that_was_left_goes_on_calling_until_all_were_told(
    short_plan: LabPlan, tmp_path: Path
) -> None:
    said: list[str] = []

    async def on(watched: Watched) -> None:
        await watched.alarms.answered(said.append)

    act = after(plant_fault("estop_open"), 0.5)
    watched = watch(short_plan, tmp_path, act, channels=LEVELS, afterwards=on)
    (trip,) = watched.journaled("trip")
    alerts = [(each["channel"], each["at_s"] - trip["at_s"]) for each in watched.journaled("alert")]
    assert [channel for channel, _ in alerts] == ["mail", "boss", "chief"]
    assert 300 <= alerts[1][1] < 302
    assert 600 <= alerts[2][1] < 602
    first, second = said
    assert first.startswith(f"nobody has acknowledged {ESTOP}: the next level is called at 08:0")
    assert "called at 08:1" in second


def test_who_acknowledges_or_gives_up_ends_the_calls_for_a_line_that_was_left(
    short_plan: LabPlan, tmp_path: Path
) -> None:
    def ended_by(act: Callable[[Watched], object], folder: Path) -> tuple[list[str], float]:
        said: list[str] = []
        ended_s: list[float] = []

        async def on(watched: Watched) -> None:
            loop = asyncio.get_running_loop()
            began_s = loop.time()
            loop.call_later(100, act, watched)
            await watched.alarms.answered(said.append)
            ended_s.append(loop.time() - began_s)

        work = after(plant_fault("estop_open"), 0.5)
        watched = watch(short_plan, folder, work, channels=LEVELS, afterwards=on)
        assert [each["channel"] for each in watched.journaled("alert")] == ["mail"]
        Latch(short_plan.state_dir / "latch.json").open()
        return said, ended_s[0]

    def acknowledge(watched: Watched) -> None:
        now = watched.lab.clock.utc()
        act = Fact(event=AlarmEvent.ACKNOWLEDGE, alarm=ESTOP, at=now, role=Actor.OPERATOR)
        do(short_plan, replace(act, who="Ada", why="on my way"))

    said, took_s = ended_by(acknowledge, tmp_path / "known")
    assert (len(said), round(took_s)) == (1, 100)
    said, took_s = ended_by(lambda watched: watched.alarms.give_up(), tmp_path / "given up")
    assert said[1:] == [f"nobody has acknowledged {ESTOP}; nobody further is called for it"]
    assert round(took_s) == 100


def test_nobody_is_waited_for_where_nobody_further_would_be_called(tmp_path: Path) -> None:
    async def on(watched: Watched) -> None:
        before_s = watched.lab.clock.now_s()
        await watched.alarms.answered(pytest.fail)
        assert watched.lab.clock.now_s() == before_s

    plan, _ = warns_of_pressure(tmp_path)
    work = after(plant_fault("outlet_blocked"), 0.75)
    watch(plan, tmp_path / "warns", work, channels=LEVELS, afterwards=on)
    work = after(plant_fault("estop_open"), 0.5)
    watch(plan, tmp_path / "trips", work, channels=LEVELS[:1], afterwards=on)


NOT_VERIFIED = "not_verified/immediate_shutdown"


def left(plan: LabPlan, *names: str) -> None:
    """Leave alarms as a process that has gone left them."""
    plan.make_state_dir()
    now = wall_clock_utc()
    AlarmFile(plan.state_dir / "alarms.jsonl").append(
        [
            Fact(
                event=AlarmEvent.ACTIVATE,
                alarm=name,
                at=now,
                why="seen",
                severity=Severity.CRITICAL,
            )
            for name in names
        ]
    )


def active(plan: LabPlan) -> list[str]:
    listed = say("alarms", "list", "--lab", plan.path).out.splitlines()
    return [each.split()[1].rstrip(":") for each in listed if ": active" in each]


def test_safe_that_is_verified_ends_what_was_not(
    short_plan: LabPlan, monkeypatch: pytest.MonkeyPatch
) -> None:
    left(short_plan, NOT_VERIFIED, "another")

    with monkeypatch.context() as patch:
        patch.setattr(idle_line, "Lab", lab_with(cut("relays")))
        assert say("safe", "--name", "Ada", "--lab", SHORT_LINE).code == 1
    assert active(short_plan) == [NOT_VERIFIED, "another"]
    assert say("safe", "--name", "Ada", "--lab", SHORT_LINE).code == 0
    assert active(short_plan) == ["another"]


def test_a_test_that_a_channel_takes_ends_its_alarm_and_no_other(tmp_path: Path) -> None:
    with server() as one:
        rows = f'[[alert]]\nname = "one"\nurl = "{one.url}"\n\n'
        plan = read_lab(edited_lab(tmp_path, "[operator]", f"{rows}[operator]"))
        left(plan, "alert_channel/one", "alert_channel/one_more")
        assert say("alarms", "test", "--lab", plan.path).code == 0
    assert active(plan) == ["alert_channel/one_more"]
    text = (plan.state_dir / "alarms.jsonl").read_text("utf-8")
    assert text.count('"event": "deactivate"') == 1
