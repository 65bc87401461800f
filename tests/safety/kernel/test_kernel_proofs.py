"""Proofs by pressure: pump and backfill cycles, and what fills a tube unmeasured."""

import math
from dataclasses import replace

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from kernel_line import ENVELOPE, LEAK_CHECK, STALE_S, ask, healthy, rule_of, running, see
from labharness.core.vocabulary import Cause, Command
from labharness.safety.kernel import Bound, LeakTight, Memory, Mode, PurgedOf, begin, conclude, tick

AIR = PurgedOf("air", 5.0)
TIGHT = LeakTight("air")


def at(memory: Memory, now: float, pressure: float, flow: float = 0.0, lid: float = 1.0) -> None:
    """Read the gauge, argon and the lid, and let the clock tick."""
    see(memory, now, box__lid_shut=lid, hydrogen__flow=0.0)
    see(memory, now, argon__setpoint=1e4, argon__flow=flow, gauge__pressure=pressure)
    tick(memory, now)


def fill(memory: Memory, now: float, low: float = 10.0, high: float = 700.0) -> float:
    """Pump down, then fill at 600 sccm, 10 cm3/s into 100 cm3; return the time it ends."""
    at(memory, now, low)
    for second in range(13):
        at(memory, now + 1 + second, min(high, low + 76.0 * second), flow=600.0)
    at(memory, now + 14, high)
    return now + 15


def after_cycles(count: int) -> tuple[Memory, float]:
    memory, now = running(), 0.0
    for _ in range(count):
        now = fill(memory, now)
    return memory, now - 1


@pytest.fixture
def memory() -> Memory:
    return running()


@pytest.mark.parametrize(("cycles", "proven"), [(0, False), (2, False), (3, True), (4, True)])
def test_three_backfills_are_a_proof_and_two_are_none(cycles: int, proven: bool) -> None:
    memory, now = after_cycles(cycles)
    if not cycles:
        at(memory, now, 760.0)
    assert memory.proofs.purged.volumes("air") < 5.0, "the volumes are not what proves it here"
    assert memory.proofs.purged.backfills == {"air": cycles, "hydrogen": cycles}
    assert memory.holds(AIR, now) is proven


@pytest.mark.parametrize(
    ("low", "high", "counts"),
    [
        (10.0, 700.0, 1),
        (math.nextafter(10.0, 99.0), 700.0, 0),
        (10.0, math.nextafter(700.0, 0.0), 0),
        (1.0, 760.0, 1),
    ],
)
def test_a_cycle_goes_from_its_low_to_its_high_exactly(
    memory: Memory, low: float, high: float, counts: int
) -> None:
    fill(memory, 0.0, low, high)
    assert memory.proofs.purged.backfills["air"] == counts


@pytest.mark.promise(10)
@pytest.mark.parametrize(
    ("flow", "counts"), [(0.0, 0), (340.0, 0), (560.0, 0), (571.0, 1), (600.0, 1), (900.0, 1)]
)
def test_a_fill_that_no_meter_saw_is_no_backfill_and_takes_back_what_was_proven_of_air(
    flow: float, counts: int
) -> None:
    memory, now = after_cycles(3)
    memory.proofs.leak.tight = True
    at(memory, now + 1, 10.0)
    for second in range(13):  # 600 sccm come in, and 5 % of 100 cm3 may come in unmeasured
        at(memory, now + 2 + second, min(700.0, 10.0 + 76.0 * second), flow=flow)
    assert memory.proofs.purged.backfills["air"] == (3 + counts if counts else 0)
    assert memory.holds(AIR, now + 14) is bool(counts)
    assert memory.proofs.leak.tight is bool(counts)
    assert (memory.proofs.purged.passed_cm3["air"] > 60.0) is bool(counts)
    assert memory.proofs.purged.backfills["hydrogen"] == 3 + counts, (
        "hydrogen does not come from outside"
    )


@pytest.mark.parametrize(("high", "tight"), [(38.0, True), (math.nextafter(38.0, 99.0), False)])
@pytest.mark.parametrize("low", [0.0, 380.0])
def test_what_may_come_in_unmeasured_is_exact_from_wherever_it_rises(
    memory: Memory, low: float, high: float, tight: bool
) -> None:
    for second in (0.0, 1.0, 2.0):  # what flows through while the pressure stands explains nothing
        at(memory, second, low, flow=600.0)
    at(memory, 3.0, low)
    memory.proofs.leak.tight = True
    at(memory, 4.0, low + high if tight else math.nextafter(low + high, 999.0))
    assert memory.proofs.leak.tight is tight


def test_a_rise_from_a_lowest_pressure_has_no_gas_to_its_credit(memory: Memory) -> None:
    at(memory, 0.0, 5.0)
    memory.proofs.leak.tight = True
    at(memory, 1.0, math.nextafter(43.0, 99.0))
    assert not memory.proofs.leak.tight


@pytest.mark.promise(10)
@pytest.mark.parametrize(("readings", "tight"), [((76.0,), True), ((76.0, 400.0), False)])
def test_one_odd_low_reading_is_no_vacuum_and_two_are_one(
    readings: tuple[float, ...], tight: bool
) -> None:
    memory, now = after_cycles(3)
    memory.proofs.leak.tight = True
    for pressure in (760.0, *readings, 760.0):
        now += 1
        at(memory, now, pressure)
    assert memory.proofs.leak.tight is tight
    assert (memory.proofs.purged.backfills["air"] == 3) is tight


@pytest.mark.parametrize(("readings", "counts"), [((10.0,), 0), ((10.0, 10.0), 1)])
def test_one_odd_low_reading_begins_no_cycle(readings: tuple[float, ...], counts: int) -> None:
    memory = running()
    for second, pressure in enumerate((700.0, *readings, *range(86, 700, 76), 700.0)):
        at(memory, float(second), pressure, flow=600.0)
    assert memory.proofs.purged.backfills["hydrogen"] == counts


def test_who_asks_for_a_tight_tube_is_told_what_came_in_unmeasured_since_the_check(
    memory: Memory,
) -> None:
    def found(now: float) -> str:
        see(memory, now, box__lid_shut=1.0, oven__temperature=20.0)
        return str(ask(memory, "methane.setpoint", 10.0, now=now))

    healthy(memory, 0.0)
    assert "no such check was passed" in found(0.0)
    for now, pressure in ((1.0, 10.0), (2.0, 10.0), (3.0, 60.0)):
        at(memory, now, pressure)
    assert "over 0.05 of 100 cm3 came in unmeasured" in found(3.0)
    see(memory, 4.0, box__pump_isolation=0.0, gauge__pressure=0.1)
    for second in range(61):
        see(memory, 5.0 + second, box__pump_isolation=0.0, gauge__pressure=0.1 + second / 99)
    assert "no such check was passed" in found(66.0)


def test_a_tube_that_is_full_may_breathe(memory: Memory) -> None:
    at(memory, 0.0, 760.0)
    memory.proofs.leak.tight = True
    for second, pressure in enumerate((700.0, 900.0, 760.0, 701.0, 1000.0)):
        at(memory, 1.0 + second, pressure)
    assert memory.proofs.leak.tight


@pytest.mark.promise(10)
def test_inert_gas_that_went_to_the_pump_explains_no_rise_after_it(memory: Memory) -> None:
    at(memory, 0.0, 5.0)
    memory.proofs.leak.tight = True
    for second in range(1, 60):
        at(memory, float(second), 6.0, flow=600.0)
    assert memory.proofs.leak.tight
    at(memory, 60.0, 6.0)
    at(memory, 61.0, 60.0)
    assert not memory.proofs.leak.tight


def test_flow_before_the_lowest_pressure_does_not_count_for_the_fill(memory: Memory) -> None:
    at(memory, 0.0, 500.0, flow=600.0)
    for second in range(1, 30):
        at(memory, float(second), 500.0, flow=600.0)
    at(memory, 30.0, 10.0)
    at(memory, 31.0, 700.0)
    assert memory.proofs.purged.backfills["air"] == 0


def test_a_gap_in_the_gauge_ends_the_cycle_under_way(memory: Memory) -> None:
    at(memory, 0.0, 10.0)
    for second in range(1, 13):
        see(memory, float(second), box__lid_shut=1.0, hydrogen__flow=0.0)
        see(memory, float(second), argon__setpoint=600.0, argon__flow=600.0)
        tick(memory, float(second))
    assert memory.proofs.purged.filled_cm3 > 100.0
    memory.proofs.leak.tight = True
    at(memory, 13.0, 700.0, flow=600.0)
    assert memory.proofs.purged.backfills["air"] == 0
    assert memory.proofs.purged.passed_cm3["air"] == 0.0, "what came in meanwhile nobody knows"
    assert not memory.proofs.leak.tight


@pytest.mark.parametrize(("gap_s", "counts"), [(STALE_S, 1), (math.nextafter(STALE_S, 9.0), 0)])
def test_a_gap_of_the_gauge_and_of_the_meter_counts_up_to_its_bound_exactly(
    memory: Memory, gap_s: float, counts: int
) -> None:
    see(memory, 0.0, gauge__pressure=10.0, argon__setpoint=6000.0, argon__flow=6000.0)
    see(memory, gap_s, argon__setpoint=6000.0, argon__flow=6000.0, gauge__pressure=700.0)
    assert memory.proofs.purged.backfills["air"] == counts
    assert (memory.proofs.purged.passed_cm3["air"] > 0.0) is bool(counts)


def test_the_smallest_flow_counts_for_what_it_is(memory: Memory) -> None:
    for second in (0.0, 1.0):
        see(memory, second, argon__setpoint=500.0, argon__flow=0.6)
    assert memory.proofs.purged.passed_cm3["air"] == pytest.approx(0.01)


def test_one_fill_counts_once() -> None:
    memory, now = after_cycles(1)
    for second in range(10):
        at(memory, now + second, 760.0, flow=600.0)
    assert memory.proofs.purged.backfills["air"] == 1


def test_an_open_lid_takes_back_backfills_tightness_and_the_cycle_under_way() -> None:
    memory, now = after_cycles(3)
    memory.proofs.leak.tight = True
    at(memory, now + 1, 9.0)
    at(memory, now + 2, 10.0)
    assert memory.proofs.purged.filled_from == 10.0
    assert memory.holds(AIR, now + 2)
    assert memory.holds(TIGHT, now + 2)
    at(memory, now + 3, 20.0, lid=0.0)
    assert memory.proofs.purged.backfills["air"] == 0
    assert not memory.proofs.leak.tight
    assert not memory.proofs.purged.pumped
    at(memory, now + 4, 760.0)
    assert not memory.holds(AIR, now + 4)
    assert not memory.holds(TIGHT, now + 4)


def test_a_proof_counts_only_while_the_lid_is_heard() -> None:
    memory, now = after_cycles(3)
    memory.proofs.leak.tight = True
    for condition in (AIR, TIGHT):
        assert memory.holds(condition, now + STALE_S)
        assert not memory.holds(condition, now + STALE_S + 0.1)


def test_hydrogen_in_the_tube_takes_back_its_own_proof_and_leaves_the_others() -> None:
    memory = running()
    healthy(memory, 0.0)
    memory.proofs.purged.backfills = {"air": 3, "hydrogen": 3}
    memory.proofs.leak.tight = True
    memory.proofs.purged.pumped = True
    see(memory, 1.0, hydrogen__flow=5.0)
    assert not memory.proofs.purged.pumped, "a fill with hydrogen is no fill with inert gas"
    assert memory.proofs.purged.backfills == {"air": 3, "hydrogen": 0}
    assert memory.proofs.leak.tight


def witnessed(present: dict[str, tuple[Bound, ...]], *tripping: str) -> Memory:
    """A running line with other witnesses of its contaminants, some of whose silence trips."""
    watches = {
        name: replace(watch, procedure="shutdown" if name in tripping else "")
        for name, watch in ENVELOPE.watches.items()
    }
    purge = replace(ENVELOPE.purge, present={**ENVELOPE.purge.present, **present})
    memory = Memory(replace(ENVELOPE, watches=watches, purge=purge))
    memory.mode = Mode.RUNNING
    healthy(memory, 0.0)
    see(memory, 0.0, methane__flow=0.0)
    for contaminant in memory.proofs.purged.passed_cm3:
        memory.proofs.purged.passed_cm3[contaminant] = 1e6
    return memory


METHANE = Bound("methane.flow", low=0.5)


@pytest.mark.parametrize("shown", [{}, {"hydrogen__flow": 1.0}, {"methane__flow": 1.0}], ids=str)
def test_a_contaminant_is_in_the_tube_while_one_of_its_witnesses_shows_it(
    shown: dict[str, float],
) -> None:
    memory = witnessed({"hydrogen": (Bound("hydrogen.flow", low=0.5), METHANE)})
    see(memory, 0.0, **shown)
    memory.proofs.purged.passed_cm3["hydrogen"] = 1e6
    assert memory.holds(PurgedOf("hydrogen", 5.0), 0.0) is not bool(shown)
    tick(memory, 0.0)
    assert (memory.proofs.purged.passed_cm3["hydrogen"] == 0.0) is bool(shown)


def test_a_proof_that_is_lost_to_a_silence_which_trips_by_itself_trips_once() -> None:
    air = (Bound("box.lid_shut", high=0.5), METHANE)
    for tripping, causes in (
        (("box.lid_shut",), [Cause.COMMUNICATION]),
        ((), [Cause.INTERLOCK_LOST]),
    ):
        memory = witnessed({"air": air}, *tripping)
        now = STALE_S + 0.1
        see(memory, now, furnace__temperature=25.0, box__exhaust=1.0, argon__flow=0.0)
        see(memory, now, hydrogen__flow=10.0, methane__flow=0.0)
        found = [trip for trip in tick(memory, now) if trip.channel in ("box.lid_shut", "purge")]
        assert [trip.cause for trip in found] == causes


@given(
    pressures=st.lists(st.sampled_from([0.1, 9.0, 10.0, 300.0, 700.0, 760.0]), max_size=30),
    flow=st.sampled_from([0.0, 300.0, 6000.0]),
)
@settings(deadline=None, max_examples=60)
def test_backfills_are_never_more_than_the_times_the_pressure_went_up(
    pressures: list[float], flow: float
) -> None:
    memory, ups, low = running(), 0, False
    for second, pressure in enumerate(pressures):
        at(memory, float(second), pressure, flow=flow)
        if pressure <= 10.0:
            low = True
        elif pressure >= 700.0 and low:
            ups, low = ups + 1, False
    assert memory.proofs.purged.backfills["air"] <= ups
    if flow == 6000.0:
        assert memory.proofs.purged.backfills["air"] == ups or any(p < 700.0 for p in pressures)
    if flow == 0.0:
        assert memory.proofs.purged.backfills["air"] == 0


def count(told: float, flow: float = 600.0, seconds: int = 10) -> Memory:
    memory = running()
    for second in range(seconds + 1):
        see(memory, float(second), argon__flow=flow, argon__setpoint=told)
    return memory


@pytest.mark.parametrize(
    ("told", "flow", "sccm"),
    [
        (0.0, 400.0, 0.0),
        (math.nan, 400.0, 0.0),
        (100.0, 400.0, 100.0),
        (400.0, 403.0, 400.0),
        (400.0, 397.0, 397.0),
        (400.0, -400.0, 0.0),
        (-5.0, 400.0, 0.0),
    ],
)
def test_inert_gas_counts_up_to_the_setpoint_that_is_read_back(
    told: float, flow: float, sccm: float
) -> None:
    memory = count(told, flow)
    assert memory.proofs.purged.passed_cm3["air"] == pytest.approx(sccm / 60 * 9), (
        "the first poll is one end"
    )
    assert memory.proofs.purged.filled_cm3 == memory.proofs.purged.passed_cm3["air"]


def test_inert_gas_counts_for_nothing_while_its_setpoint_is_in_doubt() -> None:
    memory = count(300.0)
    known = memory.proofs.purged.passed_cm3["air"]
    begin(memory, Command("argon.setpoint", 0.0, "sccm"))
    for second in range(11, 20):
        see(memory, float(second), argon__flow=600.0, argon__setpoint=300.0)
    assert memory.proofs.purged.passed_cm3["air"] == known
    conclude(memory, Command("argon.setpoint", 0.0, "sccm"))
    see(memory, 20.0, argon__flow=600.0, argon__setpoint=300.0)
    assert memory.proofs.purged.passed_cm3["air"] == known, "one end of this interval was in doubt"
    see(memory, 21.0, argon__flow=600.0, argon__setpoint=300.0)
    assert memory.proofs.purged.passed_cm3["air"] == pytest.approx(known + 5.0)


def test_inert_gas_counts_for_nothing_while_its_setpoint_is_not_heard() -> None:
    memory = count(300.0)
    for second in range(11, 40):
        see(memory, float(second), argon__flow=600.0)
    heard_s = 9 + STALE_S
    assert memory.proofs.purged.passed_cm3["air"] == pytest.approx(300.0 / 60 * heard_s)


@given(
    polls=st.lists(
        st.tuples(st.floats(0.1, 8.0), st.floats(0.0, 500.0), st.floats(-50.0, 1000.0)),
        max_size=30,
    ),
)
@settings(deadline=None, max_examples=60)
def test_no_meter_proves_more_than_its_controller_was_told_to_give(
    polls: list[tuple[float, float, float]],
) -> None:
    memory, now, given_cm3, last = running(), 0.0, 0.0, 0.0
    for wait_s, told, flow in polls:
        now += wait_s
        see(memory, now, argon__setpoint=told, argon__flow=flow)
        given_cm3 += min(last, told) / 60 * wait_s
        last = told
        assert memory.proofs.purged.passed_cm3["air"] <= given_cm3 + 1e-6


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
def test_the_largest_leak_is_exact(memory: Memory, end: float, tight: bool) -> None:
    see(memory, -1.0, gauge__pressure=0.0)
    for second in range(61):
        see(memory, float(second), box__pump_isolation=0.0)
        see(memory, float(second), gauge__pressure=end if second == 60 else 0.0)
    assert memory.proofs.leak.tight is tight


def test_a_leak_that_begins_later_is_not_averaged_away(memory: Memory) -> None:
    leak(memory, 0.0)
    assert memory.proofs.leak.tight
    for second in range(61, 123):
        see(memory, float(second), box__pump_isolation=0.0)
        see(memory, float(second), gauge__pressure=0.1 + (second - 61) * 0.01)
    assert not memory.proofs.leak.tight


def test_a_check_cut_short_by_a_second_proves_nothing(memory: Memory) -> None:
    leak(memory, 0.0, seconds=59)
    assert not memory.proofs.leak.tight
    leak(memory, 0.0, seconds=60)
    assert memory.proofs.leak.tight


@pytest.mark.parametrize("isolation", [1.0, math.nan], ids=["open to the pump", "nobody knows"])
def test_a_tube_that_is_not_isolated_is_not_checked(memory: Memory, isolation: float) -> None:
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
    memory: Memory, every_s: float, tight: bool
) -> None:
    for count in range(14):
        see(memory, count * every_s, box__pump_isolation=0.0)
        see(memory, count * every_s, gauge__pressure=0.1)
    assert memory.proofs.leak.tight is tight


@pytest.mark.parametrize(("start", "tight"), [(1.0, True), (math.nextafter(1.0, 2.0), False)])
def test_a_check_takes_a_vacuum(memory: Memory, start: float, tight: bool) -> None:
    leak(memory, 0.0, start=start)
    assert memory.proofs.leak.tight is tight


def test_a_gap_in_the_gauge_begins_the_check_again(memory: Memory) -> None:
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
    memory: Memory, end: float, tight: bool
) -> None:
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
