"""What is not plausible is found within its declared time, and what is sound is left alone."""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from kernel_line import ENVELOPE, STUCK, see
from labharness.core.vocabulary import Cause, Trip
from labharness.safety.kernel import Bound, Envelope, Memory, Mode, Plausible, TripRow, tick

HEAT = replace(
    STUCK,
    name="heat without rise",
    during=(Bound("argon.flow", low=95.0),),
    span_min=0.0,
    rise_min=2.0,
)
GARBAGE = replace(STUCK, name="garbage", during=(), span_min=0.0, span_max=50.0)
ANSWER = replace(
    STUCK,
    name="valve does not answer",
    channel="hydrogen.flow",
    during=(Bound("box.exhaust", high=0.0),),
    span_min=0.0,
    expects=Bound("hydrogen.flow", high=2.0),
)
PAIR = replace(
    STUCK,
    name="two sensors differ",
    during=(),
    span_min=0.0,
    agrees_with="oven.setpoint",
    differ_max=5.0,
)


def line(*rows: Plausible, **more: Any) -> Memory:
    memory = Memory(replace(ENVELOPE, interlocks=(), plausible=rows, **more))
    memory.mode = Mode.RUNNING
    return memory


def live(
    memory: Memory, seconds: int, start: int = 0, **channels: Callable[[int], float]
) -> list[tuple[int, str]]:
    """Read channels each second and tick; return each trip's second and name."""
    found = []
    for second in range(start, start + seconds):
        see(memory, float(second), **{name: value(second) for name, value in channels.items()})
        trips: tuple[Trip, ...] = tick(memory, float(second))
        found += [
            (second, trip.detail.split(":")[0])
            for trip in trips
            if trip.cause is not Cause.COMMUNICATION
        ]
    return found


def constant(value: float) -> Callable[[int], float]:
    return lambda second: value


@pytest.mark.promise(11)
def test_a_stuck_sensor_is_found_within_its_time_wherever_it_began_to_stick() -> None:
    for begins in range(40, 60):
        memory = line(STUCK)

        def noisy(second: int, since: int = begins) -> float:
            return 700.0 + (0.2 * (second % 2) if second < since else 0.0)

        found = live(memory, 100, furnace__temperature=noisy)
        assert found, begins
        assert begins < found[0][0] <= begins + STUCK.found_s + 1
        assert found[0][1] == "thermocouple is stuck"


@pytest.mark.parametrize(("span", "sound"), [(0.1, True), (0.2, True), (0.0999, False)])
def test_the_least_movement_is_exact(span: float, sound: bool) -> None:
    found = live(line(STUCK), 60, furnace__temperature=lambda s: 500.0 + span * (s % 2))
    assert (found == []) is (sound or 500.0 + span - 500.0 >= 0.1)


def test_a_row_asks_nothing_outside_what_it_is_about() -> None:
    assert live(line(STUCK), 100, furnace__temperature=constant(99.0)) == []
    assert live(line(STUCK), 100, furnace__temperature=constant(100.0)) != []


def test_a_sensor_that_is_silent_is_not_called_stuck() -> None:
    memory = line(STUCK)
    see(memory, 0.0, furnace__temperature=500.0)
    assert live(memory, 5) == []
    assert live(memory, 100, start=6) == []
    assert memory.windows[0].since_s == math.inf


def test_what_was_said_before_a_silence_is_not_held_against_what_comes_after() -> None:
    memory = line(HEAT)
    same, on = constant(500.0), constant(100.0)
    assert live(memory, 8, furnace__temperature=same, argon__flow=on) == []
    live(memory, 20, start=8)
    assert live(memory, 9, start=28, furnace__temperature=same, argon__flow=on) == []
    assert live(memory, 3, start=37, furnace__temperature=same, argon__flow=on) != []


@pytest.mark.promise(11)
@pytest.mark.parametrize(("rate", "sound"), [(0.0, False), (0.19, False), (0.2, True), (1.0, True)])
def test_heat_without_rise_is_found(rate: float, sound: bool) -> None:
    found = live(
        line(HEAT),
        60,
        furnace__temperature=lambda s: 400.0 + math.ldexp(round(rate * s * 1024), -10),
        argon__flow=constant(100.0),
    )
    assert (found == []) is sound
    if not sound:
        assert found[0] == (10, "heat without rise")


def test_a_fall_under_full_power_is_no_rise() -> None:
    found = live(
        line(HEAT),
        60,
        furnace__temperature=lambda s: 400.0 - s,
        argon__flow=constant(100.0),
    )
    assert found[0] == (10, "heat without rise")


def test_heat_that_comes_and_goes_is_not_held_to_a_whole_window() -> None:
    found = live(
        line(HEAT),
        60,
        furnace__temperature=constant(400.0),
        argon__flow=lambda s: 100.0 if s % 10 < 9 else 0.0,
    )
    assert found == []


@pytest.mark.parametrize("jump", [50.1, -50.1, 400.0])
def test_garbage_is_seen_at_once(jump: float) -> None:
    found = live(
        line(GARBAGE), 30, furnace__temperature=lambda s: 500.0 + (jump if s == 17 else 0.0)
    )
    assert (17, "garbage") in found
    assert all(second >= 17 for second, _ in found)


def test_what_moves_as_fast_as_it_may_is_no_garbage() -> None:
    assert live(line(GARBAGE), 60, furnace__temperature=lambda s: 100.0 + 5.0 * s) == []
    assert live(line(GARBAGE), 60, furnace__temperature=lambda s: 100.0 + 5.1 * s) != []


def test_a_valve_that_does_not_answer_is_found_after_its_time_and_not_before() -> None:
    memory = line(ANSWER)
    shut = constant(0.0)
    assert live(memory, 5, hydrogen__flow=constant(10.0), box__exhaust=constant(1.0)) == []
    found = live(memory, 60, start=5, hydrogen__flow=constant(10.0), box__exhaust=shut)
    assert found[0] == (25, "valve does not answer")


def test_a_valve_that_answers_in_time_is_sound() -> None:
    memory = line(ANSWER)
    live(memory, 5, hydrogen__flow=constant(10.0), box__exhaust=constant(1.0))
    shut = constant(0.0)
    assert live(memory, 19, start=5, hydrogen__flow=constant(10.0), box__exhaust=shut) == []
    assert live(memory, 60, start=24, hydrogen__flow=constant(1.0), box__exhaust=shut) == []


def test_a_valve_that_answers_at_the_last_moment_is_sound() -> None:
    memory = line(ANSWER)
    shut = constant(0.0)
    late = 20
    found = live(
        memory,
        60,
        hydrogen__flow=lambda s: 10.0 if s < late else 1.0,
        box__exhaust=shut,
    )
    assert found == []


@pytest.mark.parametrize(("other", "sound"), [(505.0, True), (494.9, False), (505.1, False)])
def test_two_sensors_of_one_thing_agree(other: float, sound: bool) -> None:
    found = live(
        line(PAIR), 60, furnace__temperature=constant(500.0), oven__setpoint=constant(other)
    )
    assert (found == []) is sound
    if not sound:
        assert found[0] == (20, "two sensors differ")


def test_a_second_sensor_never_heard_does_not_agree() -> None:
    assert live(line(PAIR), 60, furnace__temperature=constant(500.0)) != []


def test_either_of_two_sensors_trips_by_itself() -> None:
    twin = TripRow(
        name="too hot by the other",
        channel="oven.setpoint",
        cause=Cause.OVER_TEMPERATURE,
        procedure="shutdown",
        unit="degC",
        source="test",
        high=1050.0,
    )
    trips = (*ENVELOPE.trips, twin)
    for hot in ("furnace__temperature", "oven__setpoint"):
        memory = line(PAIR, trips=trips)
        readings = {"furnace__temperature": 1000.0, "oven__setpoint": 1000.0, hot: 1060.0}
        found = see(memory, 0.0, **readings)
        assert [trip.cause for trip in found if trip.procedure] == [Cause.OVER_TEMPERATURE]


def test_a_row_that_only_warns_runs_nothing() -> None:
    memory = line(replace(STUCK, procedure=""))
    trips: list[Trip] = []
    for second in range(30):
        see(memory, float(second), furnace__temperature=500.0)
        trips += [each for each in tick(memory, float(second)) if each.cause is STUCK.cause]
    assert trips
    assert {(each.procedure, each.channel, each.value) for each in trips} == {
        ("", "furnace.temperature", 500.0)
    }
    detail = "thermocouple is stuck: furnace.temperature is 500 and moved by 0 within 10 s"
    assert trips[0].detail == detail


@pytest.mark.parametrize("mode", [Mode.DISARMED, Mode.ARMING])
def test_a_line_that_is_not_live_is_not_doubted_and_begins_afresh(mode: Mode) -> None:
    memory = line(STUCK)
    memory.mode = mode
    assert live(memory, 100, furnace__temperature=constant(500.0)) == []
    memory.mode = Mode.HELD
    assert live(memory, 9, start=101, furnace__temperature=constant(500.0))[:1] != [(101, "")]


def test_the_rows_are_part_of_the_envelope() -> None:
    assert (
        Envelope(
            **{
                name: getattr(ENVELOPE, name)
                for name in Envelope.__dataclass_fields__
                if name != "plausible"
            }
        ).plausible
        == ()
    )


def test_a_row_that_asks_nothing_finds_nothing() -> None:
    row = Plausible(
        name="nothing",
        channel="furnace.temperature",
        found_s=10.0,
        cause=Cause.SENSOR_BREAK,
        procedure="shutdown",
        source="test",
    )
    for value in (constant(500.0), lambda s: 1000.0 * (s % 2)):
        assert live(line(row), 60, furnace__temperature=value) == []


def test_heat_that_is_switched_off_as_the_window_ends_is_not_held_against_it() -> None:
    found = live(
        line(HEAT),
        15,
        furnace__temperature=constant(400.0),
        argon__flow=lambda s: 100.0 if s < 10 else 0.0,
    )
    assert found == []


def test_a_jump_over_a_silence_is_no_garbage() -> None:
    memory = line(GARBAGE)
    assert live(memory, 3, furnace__temperature=constant(25.0)) == []
    assert live(memory, 20, start=3) == []
    assert live(memory, 20, start=23, furnace__temperature=constant(700.0)) == []


def test_a_line_that_ticks_faster_finds_the_same() -> None:
    memory, found = line(STUCK), []
    for half in range(60):
        see(memory, half / 2, furnace__temperature=500.0)
        found += [half / 2 for each in tick(memory, half / 2) if each.cause is STUCK.cause]
    assert found[0] == 10.0


def test_garbage_within_a_second_of_a_new_window_is_garbage() -> None:
    memory = line(GARBAGE)
    for half, value in ((0, 25.0), (1, 700.0)):
        see(memory, half / 2, furnace__temperature=value)
        found = [each for each in tick(memory, half / 2) if each.cause is GARBAGE.cause]
    assert len(found) == 1
