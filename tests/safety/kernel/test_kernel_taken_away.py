"""A command that takes away what a rule in force needs is refused by that rule's name."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel_line import ENVELOPE, STALE_S, limit, parts, rule_of, see
from labharness.core.vocabulary import Allowed, Cause, Command, Refused, Verdict
from labharness.safety.kernel import (
    Bound,
    Envelope,
    Interlock,
    Memory,
    Mode,
    TripRow,
    Watch,
    begin,
    conclude,
    judge,
    tick,
)

ROW = "heat only in flowing gas"


def memory(**more: Any) -> Memory:
    """A furnace that heats in argon alone; the controller's flow follows its setpoint."""
    lines = parts()
    argon = replace(lines["limits"]["argon.setpoint"], moves=("argon.flow",))
    shut = Watch(channel="methane.setpoint", stale_s=STALE_S, procedure="")
    row = Interlock(
        name=ROW,
        guards=("furnace.setpoint",),
        require=(Bound("argon.flow", low=10.0),),
        forbid=(Bound("methane.setpoint", low=1.0),),
        source="test",
        above=60.0,
        on_loss="shutdown",
    )
    line = Memory(
        Envelope(
            **lines
            | {"limits": lines["limits"] | {"argon.setpoint": argon}, "interlocks": (row,)}
            | {"watches": lines["watches"] | {shut.channel: shut}}
            | more
        )
    )
    line.mode = Mode.RUNNING
    return line


def ask(line: Memory, channel: str, value: float, now: float = 0.0) -> Verdict:
    return judge(Command(channel, value, ENVELOPE.limits[channel].unit), line, now)


def heats(line: Memory, setpoint_c: float, flow_sccm: float = 100.0) -> None:
    values = {"furnace__setpoint": setpoint_c, "argon__flow": flow_sccm, "methane__setpoint": 0.0}
    assert see(line, 0.0, argon__setpoint=100.0, **values) == ()


@pytest.mark.promise(10)
@given(
    setpoint_c=st.sampled_from((25.0, 60.0, 60.1, 150.0)), flow=st.floats(0, 500, allow_nan=False)
)
def test_a_command_is_refused_just_where_its_confirmed_value_would_trip(
    setpoint_c: float, flow: float
) -> None:
    line = memory()
    heats(line, setpoint_c)
    verdict = ask(line, "argon.setpoint", flow)
    see(line, 1.0, furnace__setpoint=setpoint_c, argon__flow=flow, methane__setpoint=0.0)
    trips = [each.detail for each in tick(line, 1.0) if ROW in each.detail]
    assert (rule_of(verdict) == ROW) == bool(trips)
    assert isinstance(verdict, Allowed) or rule_of(verdict) == ROW


@pytest.mark.promise(11)
@pytest.mark.parametrize("shown_by", ["argon.setpoint", "argon.flow"])
@given(low=st.floats(-1, 100), high=st.floats(100.5, 501), flow=st.floats(0, 500))
def test_a_value_is_refused_just_where_its_own_reading_would_trip(
    shown_by: str, low: float, high: float, flow: float
) -> None:
    row = TripRow(
        name="argon out of bounds",
        channel=shown_by,
        cause=Cause.OVER_FLOW,
        procedure="shutdown",
        unit="sccm",
        source="test",
        low=low,
        high=high,
    )
    line = memory(trips=(row,))
    heats(line, 25.0)
    verdict = ask(line, "argon.setpoint", flow)
    trips = see(line, 1.0, argon__setpoint=flow, argon__flow=flow)
    assert (rule_of(verdict) == row.name) == bool(trips)
    assert isinstance(verdict, Allowed) or "allowed" in verdict.reason
    warned = memory(trips=(replace(row, procedure=""),))
    heats(warned, 25.0)
    assert isinstance(ask(warned, "argon.setpoint", flow), Allowed), "what only warns"


@pytest.mark.promise(10)
def test_the_refusal_names_the_row_its_state_and_what_still_counts() -> None:
    line = memory()
    heats(line, 150.0)
    verdict = ask(line, "argon.setpoint", 0.0)
    assert isinstance(verdict, Refused)
    assert verdict.rule == ROW
    for said in ("argon.setpoint = 0 sccm", "argon.flow at least 10", "furnace.setpoint", "150"):
        assert said in verdict.reason


def test_what_is_forbidden_while_a_rule_is_in_force_is_refused_too() -> None:
    line = memory()
    heats(line, 150.0)
    assert rule_of(ask(line, "methane.setpoint", 5.0)) == ROW
    heats(line, 25.0)
    assert isinstance(ask(line, "methane.setpoint", 5.0), Allowed)


def test_heat_that_is_only_on_its_way_counts_and_heat_that_was_taken_off_does_not() -> None:
    line = memory()
    heats(line, 25.0)
    begin(line, Command("furnace.setpoint", 300.0, "degC"))
    assert rule_of(ask(line, "argon.setpoint", 0.0)) == ROW
    see(line, 1.0, furnace__setpoint=25.0)
    conclude(line, Command("furnace.setpoint", 25.0, "degC"))
    assert isinstance(ask(line, "argon.setpoint", 0.0, 1.0), Allowed)


def test_a_value_that_ends_what_the_rule_is_about_passes_and_so_does_a_mark() -> None:
    own = Interlock(
        name="argon by its own meter",
        guards=("argon.setpoint",),
        require=(Bound("argon.flow", low=10.0),),
        source="test",
        on_loss="shutdown",
    )
    line = memory(interlocks=(own,))
    heats(line, 25.0)
    assert isinstance(ask(line, "argon.setpoint", 0.0), Allowed)
    assert rule_of(ask(line, "argon.setpoint", 5.0)) == own.name
    marked = limit("argon.setpoint", "sccm", 0.0, 500.0, moves=("argon.flow",), always_safe=(0.0,))
    line = memory(limits=parts()["limits"] | {"argon.setpoint": marked})
    heats(line, 150.0)
    assert isinstance(ask(line, "argon.setpoint", 0.0), Allowed)


def test_a_trip_names_each_channel_that_the_rule_counted_and_what_it_last_read() -> None:
    line = memory()
    heats(line, 150.0)
    late = STALE_S + 2
    see(line, late, argon__flow=0.0)
    said = next(each.detail for each in tick(line, late) if ROW in each.detail)
    assert "argon.flow" in said
    assert "counts by furnace.setpoint (" in said
    assert "150" in said
