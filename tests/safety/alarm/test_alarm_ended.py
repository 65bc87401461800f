"""An alarm is no longer active when what ends it was done while nobody owned the line."""

from pathlib import Path

import pytest

from alarmed import server
from commands import edited_lab, say
from labharness.core.clock import wall_clock_utc
from labharness.lab import LabPlan, read_lab
from labharness.lab.operate import idle_line
from labharness.safety.alarm.board import AlarmEvent, Fact, Severity
from labharness.safety.alarm.outlets import AlarmFile
from rig import SHORT_LINE, cut, lab_with

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
