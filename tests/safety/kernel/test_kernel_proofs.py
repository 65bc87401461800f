"""Proofs by pressure: pump and backfill cycles, and what fills a tube unmeasured."""

import math
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernel_line import ENVELOPE, STALE_S, ask, healthy, running, see
from labharness.core.vocabulary import Cause
from labharness.safety.kernel import Bound, LeakTight, Memory, Mode, PurgedOf, tick

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
    low: float, high: float, counts: int
) -> None:
    memory = running()
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
    low: float, high: float, tight: bool
) -> None:
    memory = running()
    for second in (0.0, 1.0, 2.0):  # what flows through while the pressure stands explains nothing
        at(memory, second, low, flow=600.0)
    at(memory, 3.0, low)
    memory.proofs.leak.tight = True
    at(memory, 4.0, low + high if tight else math.nextafter(low + high, 999.0))
    assert memory.proofs.leak.tight is tight


def test_a_rise_from_a_lowest_pressure_has_no_gas_to_its_credit() -> None:
    memory = running()
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


def test_who_asks_for_a_tight_tube_is_told_what_came_in_unmeasured_since_the_check() -> None:
    def found(now: float) -> str:
        see(memory, now, box__lid_shut=1.0, oven__temperature=20.0)
        return str(ask(memory, "methane.setpoint", 10.0, now=now))

    memory = running()
    healthy(memory, 0.0)
    assert "no such check was passed" in found(0.0)
    for now, pressure in ((1.0, 10.0), (2.0, 10.0), (3.0, 60.0)):
        at(memory, now, pressure)
    assert "over 0.05 of 100 cm3 came in unmeasured" in found(3.0)
    see(memory, 4.0, box__pump_isolation=0.0, gauge__pressure=0.1)
    for second in range(61):
        see(memory, 5.0 + second, box__pump_isolation=0.0, gauge__pressure=0.1 + second / 99)
    assert "no such check was passed" in found(66.0)


def test_a_tube_that_is_full_may_breathe() -> None:
    memory = running()
    at(memory, 0.0, 760.0)
    memory.proofs.leak.tight = True
    for second, pressure in enumerate((700.0, 900.0, 760.0, 701.0, 1000.0)):
        at(memory, 1.0 + second, pressure)
    assert memory.proofs.leak.tight


@pytest.mark.promise(10)
def test_inert_gas_that_went_to_the_pump_explains_no_rise_after_it() -> None:
    memory = running()
    at(memory, 0.0, 5.0)
    memory.proofs.leak.tight = True
    for second in range(1, 60):
        at(memory, float(second), 6.0, flow=600.0)
    assert memory.proofs.leak.tight
    at(memory, 60.0, 6.0)
    at(memory, 61.0, 60.0)
    assert not memory.proofs.leak.tight


def test_flow_before_the_lowest_pressure_does_not_count_for_the_fill() -> None:
    memory = running()
    at(memory, 0.0, 500.0, flow=600.0)
    for second in range(1, 30):
        at(memory, float(second), 500.0, flow=600.0)
    at(memory, 30.0, 10.0)
    at(memory, 31.0, 700.0)
    assert memory.proofs.purged.backfills["air"] == 0


def test_a_gap_in_the_gauge_ends_the_cycle_under_way() -> None:
    memory = running()
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
    gap_s: float, counts: int
) -> None:
    memory = running()
    see(memory, 0.0, gauge__pressure=10.0, argon__setpoint=6000.0, argon__flow=6000.0)
    see(memory, gap_s, argon__setpoint=6000.0, argon__flow=6000.0, gauge__pressure=700.0)
    assert memory.proofs.purged.backfills["air"] == counts
    assert (memory.proofs.purged.passed_cm3["air"] > 0.0) is bool(counts)


def test_the_smallest_flow_counts_for_what_it_is() -> None:
    memory = running()
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
