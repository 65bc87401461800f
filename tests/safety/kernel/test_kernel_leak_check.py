"""The leak check: the measured rise of an isolated tube, and what takes a pass back."""

import math
from dataclasses import replace

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from kernel_line import ENVELOPE, LEAK_CHECK, STALE_S, ask, healthy, rule_of, running, see
from labharness.core.vocabulary import Command
from labharness.safety.kernel import Bound, LeakTight, Memory, Mode, begin, conclude, tick

TIGHT = LeakTight("air")


def leak(
    memory: Memory, rise: float, seconds: int = 60, start: float = 0.1, isolation: float = 0.0
) -> None:
    """Isolate an evacuated tube, and let its pressure rise by so much over a minute."""
    see(memory, -1.0, gauge__pressure=start)
    for second in range(seconds + 1):
        now = float(second)
        see(memory, now, box__lid_shut=1.0, box__pump_isolation=isolation)
        see(memory, now, gauge__pressure=start + rise * second / 60)
        tick(memory, now)


@pytest.mark.parametrize(
    ("rise", "tight"), [(0.0, True), (0.449, True), (0.451, False), (0.8, False), (-0.05, True)]
)
def test_the_rate_of_rise_says_whether_the_tube_is_tight(rise: float, tight: bool) -> None:
    memory = running()  # 0.75 Torr cm3/s into 100 cm3 are 0.45 Torr a minute
    leak(memory, rise)
    assert memory.holds(TIGHT, 60.0) is tight


@pytest.mark.parametrize(("end", "tight"), [(0.45, True), (math.nextafter(0.45, 1.0), False)])
def test_the_largest_leak_is_exact(end: float, tight: bool) -> None:
    memory = running()
    see(memory, -1.0, gauge__pressure=0.0)
    for second in range(61):
        see(memory, float(second), box__pump_isolation=0.0)
        see(memory, float(second), gauge__pressure=end if second == 60 else 0.0)
    assert memory.proofs.leak.tight is tight


def test_a_leak_that_begins_later_is_not_averaged_away() -> None:
    memory = running()
    leak(memory, 0.0)
    assert memory.proofs.leak.tight
    for second in range(61, 123):
        see(memory, float(second), box__pump_isolation=0.0)
        see(memory, float(second), gauge__pressure=0.1 + (second - 61) * 0.01)
    assert not memory.proofs.leak.tight


def test_a_check_cut_short_by_a_second_proves_nothing() -> None:
    memory = running()
    leak(memory, 0.0, seconds=59)
    assert not memory.proofs.leak.tight
    leak(memory, 0.0, seconds=60)
    assert memory.proofs.leak.tight


@pytest.mark.parametrize("isolation", [1.0, math.nan], ids=["open to the pump", "nobody knows"])
def test_a_tube_that_is_not_isolated_is_not_checked(isolation: float) -> None:
    memory = running()
    leak(memory, 0.0, isolation=isolation)
    assert not memory.proofs.leak.tight


@pytest.mark.parametrize(
    ("isolation", "flow", "tight"), [(0.0, 0.0, True), (0.0, 9.0, False), (1.0, 0.0, False)]
)
def test_a_tube_is_isolated_when_all_that_isolates_it_does(
    isolation: float, flow: float, tight: bool
) -> None:
    isolated = (*LEAK_CHECK.isolated, Bound("argon.flow", high=0.0))
    check = replace(LEAK_CHECK, isolated=isolated)
    memory = Memory(replace(ENVELOPE, purge=replace(ENVELOPE.purge, leak_check=check)))
    for second in range(62):
        now = float(second)
        see(memory, now, box__pump_isolation=isolation, argon__flow=flow, gauge__pressure=0.1)
    assert memory.proofs.leak.tight is tight


@pytest.mark.parametrize(("every_s", "tight"), [(STALE_S, True), (STALE_S + 0.5, False)])
def test_a_check_takes_readings_no_further_apart_than_they_count(
    every_s: float, tight: bool
) -> None:
    memory = running()
    for count in range(14):
        see(memory, count * every_s, box__pump_isolation=0.0)
        see(memory, count * every_s, gauge__pressure=0.1)
    assert memory.proofs.leak.tight is tight


@pytest.mark.parametrize(("start", "tight"), [(1.0, True), (math.nextafter(1.0, 2.0), False)])
def test_a_check_takes_a_vacuum(start: float, tight: bool) -> None:
    memory = running()
    leak(memory, 0.0, start=start)
    assert memory.proofs.leak.tight is tight


def test_a_gap_in_the_gauge_begins_the_check_again() -> None:
    memory = running()
    for second in range(71):
        see(memory, float(second), box__lid_shut=1.0, box__pump_isolation=0.0)
        if not 5 < second < 12:
            see(memory, float(second), gauge__pressure=0.1)
        tick(memory, float(second))
    assert not memory.proofs.leak.tight
    for second in range(71, 74):
        see(memory, float(second), box__lid_shut=1.0, box__pump_isolation=0.0)
        see(memory, float(second), gauge__pressure=0.1)
    assert memory.proofs.leak.tight


def with_inlet() -> Memory:
    """A tube whose one inlet must be shut too, and which has passed its check; 60 s are over."""
    isolated = (*LEAK_CHECK.isolated, Bound("argon.setpoint", high=0.0))
    check = replace(LEAK_CHECK, isolated=isolated, inlets=("argon.setpoint",))
    memory = Memory(replace(ENVELOPE, purge=replace(ENVELOPE.purge, leak_check=check)))
    memory.mode = Mode.RUNNING
    for second in range(62):
        see(memory, float(second), box__pump_isolation=0.0, argon__setpoint=0.0)
        see(memory, float(second), gauge__pressure=0.1)
    assert memory.proofs.leak.tight
    return memory


def let_in(memory: Memory, sccm: float) -> None:
    """Command the inlet, and read it back."""
    begin(memory, Command("argon.setpoint", sccm, "sccm"))


def test_filling_a_tight_tube_is_no_leak_and_a_leak_found_later_counts() -> None:
    memory = with_inlet()
    let_in(memory, 480.0)
    for second in range(62, 90):
        see(memory, float(second), box__pump_isolation=0.0, gauge__pressure=second - 61.0)
        see(memory, float(second), argon__setpoint=480.0)
    assert memory.proofs.leak.tight
    for second in range(90, 160):
        see(memory, float(second), box__pump_isolation=0.0, argon__setpoint=0.0)
        conclude(memory, Command("argon.setpoint", 0.0, "sccm"))
        see(memory, float(second), gauge__pressure=0.1 + (second - 90) * 0.0125)
    assert not memory.proofs.leak.tight


@pytest.mark.promise(10)
@pytest.mark.parametrize("pressure", [math.nextafter(1.0, 2.0), 2.0, 300.0])
@pytest.mark.parametrize("later_s", [1.0, STALE_S + 1.0], ids=["at once", "after a silence"])
def test_a_shut_tube_that_fills_by_itself_takes_back_an_earlier_pass(
    pressure: float, later_s: float
) -> None:
    memory = with_inlet()
    now = 61.0 + later_s
    see(memory, now, box__pump_isolation=0.0, argon__setpoint=0.0, gauge__pressure=pressure)
    assert not memory.proofs.leak.tight


@pytest.mark.parametrize("last", [0.9, 1.0])
def test_a_leak_that_ends_a_check_at_its_first_reading_takes_back_an_earlier_pass(
    last: float,
) -> None:
    memory = with_inlet()
    see(memory, 62.0, box__pump_isolation=1.0, gauge__pressure=last)
    assert memory.proofs.leak.tight
    see(memory, 63.0, box__pump_isolation=0.0, argon__setpoint=0.0, gauge__pressure=1.1)
    assert not memory.proofs.leak.tight


@pytest.mark.parametrize(("end", "tight"), [(0.45, True), (math.nextafter(0.45, 1.0), False)])
def test_a_rise_beyond_all_that_a_whole_check_allows_is_not_waited_for(
    end: float, tight: bool
) -> None:
    memory = running()
    memory.proofs.leak.tight = True
    for second, pressure in enumerate((0.0, 0.0, end)):
        see(memory, float(second), box__pump_isolation=0.0)
        see(memory, float(second), gauge__pressure=pressure)
    assert memory.proofs.leak.tight is tight
    for second in range(3, 65):
        see(memory, float(second), box__pump_isolation=0.0)
        see(memory, float(second), gauge__pressure=end)
    assert memory.proofs.leak.tight, "and the next check is another"


def test_a_vacuum_found_after_a_silence_leaves_an_earlier_pass() -> None:
    memory = with_inlet()
    now = 62.0 + STALE_S
    see(memory, now, box__pump_isolation=0.0, argon__setpoint=0.0, gauge__pressure=1.0)
    assert memory.proofs.leak.tight


def test_a_tube_that_never_was_evacuated_may_change_its_pressure() -> None:
    memory = with_inlet()
    see(memory, 62.0, box__pump_isolation=1.0, gauge__pressure=5.0)
    for second, pressure in ((63.0, 5.0), (64.0, 9.0)):
        see(memory, second, box__pump_isolation=0.0, argon__setpoint=0.0, gauge__pressure=pressure)
    assert memory.proofs.leak.tight


def test_what_is_let_in_between_two_readings_of_the_gauge_is_no_leak() -> None:
    memory = with_inlet()
    for sccm in (480.0, 0.0):
        let_in(memory, sccm)
        see(memory, 61.5, argon__setpoint=sccm)
        conclude(memory, Command("argon.setpoint", sccm, "sccm"))
    see(memory, 62.0, box__pump_isolation=0.0, gauge__pressure=5.0)
    assert memory.proofs.leak.tight
    see(memory, 63.0, box__pump_isolation=0.0, gauge__pressure=5.0)
    assert memory.proofs.leak.tight


def test_a_line_without_a_leak_check_takes_commands() -> None:
    purge = replace(ENVELOPE.purge, leak_check=None)
    memory = Memory(replace(ENVELOPE, purge=purge, interlocks=()))
    begin(memory, Command("argon.setpoint", 5.0, "sccm"))
    assert memory.tracks["argon.setpoint"].unconfirmed == (5.0,)


def test_a_command_to_what_is_no_inlet_leaves_the_check_as_it_is() -> None:
    memory = with_inlet()
    begin(memory, Command("nitrogen.setpoint", 100.0, "sccm"))
    see(memory, 62.0, box__pump_isolation=0.0, argon__setpoint=0.0, gauge__pressure=5.0)
    assert not memory.proofs.leak.tight


@pytest.mark.promise(10)
@given(
    events=st.lists(
        st.sampled_from(["open", "shut", "read gauge", "read inlet", "read outlet"]), max_size=40
    ),
    sccm=st.sampled_from([1.0, 480.0]),
)
@example(events=["open", *["read gauge"] * 8, "shut", "read gauge"], sccm=1.0)
@example(events=["open", "read gauge", *["read inlet"] * 9, "shut", "read gauge"], sccm=1.0)
@settings(deadline=None, max_examples=200)
def test_gas_that_the_line_lets_in_never_takes_back_a_pass_in_whatever_order_it_is_read(
    events: list[str], sccm: float
) -> None:
    memory, inlet, pressure = with_inlet(), 0.0, 0.1
    for number, event in enumerate(events):
        now = 61.0 + number / 10
        if event in ("open", "shut"):
            inlet = sccm if event == "open" else 0.0
            let_in(memory, inlet)  # the frame, its reply, and the fresh read-back
            see(memory, now, argon__setpoint=inlet)
            conclude(memory, Command("argon.setpoint", inlet, "sccm"))
        pressure += min(inlet, 9.0) / 10  # at most 36 Torr: what no meter sees is not asked here
        if event == "read gauge":
            see(memory, now, gauge__pressure=pressure)
        elif event == "read inlet":
            see(memory, now, argon__setpoint=inlet)
        elif event == "read outlet":
            see(memory, now, box__pump_isolation=0.0)
    assert memory.proofs.leak.tight


def test_methane_takes_the_check_and_a_temperature_outside_the_forbidden_band() -> None:
    memory = running()
    healthy(memory, 0.0)
    verdict = ask(memory, "methane.setpoint", 10.0)
    assert rule_of(verdict) == "methane only into a tight tube that is not warm"
    assert "no such check was passed" in str(verdict)
    memory.proofs.leak.tight = True
    band = ENVELOPE.interlocks[3].forbid[0]
    for temperature, allowed in (
        (math.nextafter(band.low, 0.0), True),
        (band.low, False),
        (300.0, False),
        (band.high, False),
        (math.nextafter(band.high, 999.0), True),
    ):
        see(memory, 0.0, furnace__temperature=temperature)
        verdict = ask(memory, "methane.setpoint", 10.0)
        assert (rule_of(verdict) == "") is allowed, temperature
        if not allowed:
            said = "is forbidden at furnace.temperature from 100 to 540; it reads"
            assert said in str(verdict)
    assert rule_of(ask(memory, "methane.setpoint", 10.0, now=STALE_S)) == ""
    silent = ask(memory, "methane.setpoint", 10.0, now=STALE_S + 0.1)
    assert rule_of(silent) != "", "nobody knows whether it is in the band"
