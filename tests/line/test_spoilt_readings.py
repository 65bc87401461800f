"""A reading that its instrument says is spoilt is told as that, and is no number."""

import pytest

from commands import say
from labharness.instruments.simulation.bus import WireRecord
from labharness.lab import Lab, LabPlan
from labharness.lab.operate import idle_line
from labharness.lab.operate.idle_line import read_now
from rig import SHORT_LINE, lab_with, plant_fault


def gauge_failed(lab: Lab) -> None:
    assert lab.simulated is not None
    lab.simulated.faces["gauge"].status = "Z"


SPOILT = {
    "furnace.temperature": (
        plant_fault("furnace_sensor_broken"),
        "furnace.temperature: spoilt, the thermocouple is broken; its value 1400 degC does not",
    ),
    "gauge.pressure": (gauge_failed, "gauge.pressure: spoilt, one of its sensors has failed"),
}


@pytest.mark.promise(11)
@pytest.mark.parametrize("channel", SPOILT)
def test_a_spoilt_reading_is_told_and_is_no_number(
    channel: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    act, words = SPOILT[channel]
    monkeypatch.setattr(idle_line, "Lab", lab_with(act))
    said = say("read", channel, "--lab", SHORT_LINE)
    assert said.code != 0
    assert words in said.err
    assert said.out == ""
    monkeypatch.undo()
    assert say("read", channel, "--lab", SHORT_LINE).code == 0


def test_what_one_reply_has_is_asked_for_once(
    short_plan: LabPlan, monkeypatch: pytest.MonkeyPatch
) -> None:
    wires = WireRecord()

    def recorded(lab: Lab) -> None:
        assert lab.simulated is not None
        lab.simulated.buses["heat"].record = wires

    monkeypatch.setattr(idle_line, "Lab", lab_with(recorded))
    found = read_now(short_plan, ["furnace.setpoint", "furnace.output", "argon.flow"])
    assert [each["ok"] for each in found] == [True] * 3
    assert wires.frames.count(bytes.fromhex("01 03 00 01 00 05 D4 09")) == 1
