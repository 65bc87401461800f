"""The programmer of a Eurotherm 2400: the handbook's bytes, and the pair on any program."""

import random
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from labharness.core.vocabulary import BadProgram, DeviceFault, Program, Segment, read_program
from labharness.faces.testing.pairs import exchange, framed, read, write
from labharness.instruments.driver import Block, Programmer
from labharness_drivers.eurotherm_2400 import Eurotherm2400
from labharness_simulators.eurotherm_2400 import Simulator

ANNEAL = read_program(
    {
        "segment": [
            {"ramp_to_c": 800, "at_c_per_min": 10},
            {"dwell_min": 30},
            {"ramp_to_c": 50, "at_c_per_min": 5},
        ]
    }
)

ramps = st.builds(
    Segment,
    st.integers(0, 1200).map(float),
    st.integers(200, 1000).map(float),
)
dwells = st.builds(Segment, st.none(), st.just(0.0), st.integers(1, 60).map(float))
steps = st.builds(Segment, st.integers(0, 1200).map(float))
programs = st.builds(
    lambda first, rest: Program((first, *rest)),
    ramps,
    st.lists(ramps | dwells | steps, max_size=6),
)


def pair(
    at_c: float = 25.0, *, number: int = 1, decimals: int = 1
) -> tuple[Eurotherm2400, Simulator, SimpleNamespace]:
    part = SimpleNamespace(
        temperature_c=at_c, sensor_broken=False, power_fraction=0.0, controller=None
    )
    env: Any = SimpleNamespace(now=0)
    face = Simulator(env, part, random.Random(1), decimals=decimals, program=number)
    return Eurotherm2400(decimals=decimals, program=number), face, part


def programmer(driver: Eurotherm2400) -> Programmer:
    assert driver.programmer is not None
    return driver.programmer


def store(driver: Eurotherm2400, face: Simulator, block: Block) -> None:
    driver.accept(block.name, exchange(face, block.write))


def holds(face: Simulator, block: Block) -> bool:
    return block.read.decode(exchange(face, block.read.request)) == block.holds


def load(driver: Eurotherm2400, face: Simulator, program: Program = ANNEAL) -> None:
    for block in programmer(driver).blocks(program):
        store(driver, face, block)


def status(driver: Eurotherm2400, face: Simulator) -> float:
    scan = next(each for each in driver.scans() if each.name == "program")
    return scan.decode(exchange(face, scan.request))[1]


# ---- bytes


def test_a_program_is_these_frames_the_first_segment_last() -> None:
    """Program 1 is at 8328 (2088h), a segment every 8 words; HA026230."""
    general, end, cool, dwell, heat = programmer(Eurotherm2400(program=1)).blocks(ANNEAL)
    frames = [each.write.frame for each in (general, end, cool, dwell, heat)]
    assert frames == [
        framed("01 10 20 88 00 05 0A 00 00 00 00 00 01 00 00 00 01"),  # per minute, s, one cycle
        framed("01 10 20 A8 00 05 0A 00 00 00 00 00 00 00 00 00 00"),
        framed("01 10 20 A0 00 05 0A 00 01 01 F4 00 32 00 00 00 00"),
        framed("01 10 20 98 00 05 0A 00 03 1F 40 07 08 00 00 00 00"),
        framed("01 10 20 90 00 05 0A 00 01 1F 40 00 64 00 00 00 00"),
    ]
    assert heat.read.request.frame == framed("01 03 20 90 00 05")
    assert heat.holds == (1, 8000, 100, 0, 0)


def test_program_4_ends_before_program_5_begins() -> None:
    """The handbook's own example of program 4 uses the base of program 5."""
    last = Eurotherm2400(program=4).queries()[-1]
    assert last.request.frame == framed("01 03 22 A0 00 05"), "8736 + 128 = 8864"


def test_the_program_is_started_held_and_reset_by_register_23() -> None:
    driver = Eurotherm2400(program=1)
    for value in (1.0, 2.0, 4.0):
        (request,) = driver.write("program_status", value)
        assert request.frame == framed(f"01 06 00 17 00 0{value:g}")
    for value in (0, 3, 8, 16, 1.5):
        with pytest.raises(ValueError, match=r"none of 1 \(reset\), 2 \(run\), 4 \(hold\)"):
            driver.write("program_status", value)


def test_without_a_programmer_there_is_nothing_of_it() -> None:
    driver = Eurotherm2400()
    assert driver.programmer is None
    assert driver.queries() == ()
    assert not any("program" in name or "segment" in name for name in driver.channels)


def test_a_long_dwell_is_stored_in_minutes_and_one_between_is_refused() -> None:
    driver = Eurotherm2400(program=1)
    ten_hours = {"ramp_to_c": 100, "at_c_per_min": 1}, {"dwell_min": 600}
    general, _, dwell, _ = programmer(driver).blocks(read_program({"segment": [*ten_hours]}))
    assert (general.holds[3], dwell.holds[:3]) == (1, (3, 1000, 600))
    odd = read_program({"segment": [*ten_hours, {"dwell_min": 0.5}]})
    with pytest.raises(ValueError, match=r"segment 3 .*steps of 60"):
        programmer(driver).blocks(odd)


@pytest.mark.parametrize(
    ("segments", "words"),
    [
        ([{"ramp_to_c": 100.04, "at_c_per_min": 1}], "segment 1 .* target .* steps of 0.1"),
        ([{"ramp_to_c": 100, "at_c_per_min": 0.04}], "segment 1 .* rate .* steps of 0.1"),
        ([{"step_to_c": 4000}], "segment 1 .* up to 3276.7"),
        ([{"step_to_c": 40}] * 16, "16 segments; it stores 15"),
    ],
)
def test_what_the_instrument_cannot_hold_exactly_is_refused(
    segments: list[dict[str, float]], words: str
) -> None:
    with pytest.raises(ValueError, match=words):
        programmer(Eurotherm2400(program=1)).blocks(read_program({"segment": segments}))


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ({}, "1 to 200"),
        ({"segment": [{"dwell_min": 3}]}, "segment 1 is a dwell"),
        ({"segment": [{"ramp_to_c": 3}]}, "takes at_c_per_min"),
        ({"segment": [{"ramp_to_c": 3, "at_c_per_min": -1}]}, "more than 0"),
        ({"segment": [{"ramp_to_c": float("nan"), "at_c_per_min": 1}]}, "a number up to"),
        ({"segment": [{"ramp_to_c": True, "at_c_per_min": 1}]}, "is not a number"),
        ({"segment": [{"step_to_c": 3, "dwell_min": 3}]}, "it has 2"),
        ({"segment": [{"step_to_c": 3, "at_c_per_min": 3}]}, "goes with ramp_to_c"),
        ({"segment": [{"ramp": 3}]}, "no 'ramp' here .*ramp_to_c.*; there are ramp_to_c"),
        ({"segment": [{"step_to_c": 3}], "speed": 2}, "no 'speed' here"),
        ({"segment": [{"step_to_c": 3}], "holdback_c": -2}, "at least 0"),
        ({"segment": [3]}, "segment 1 is not a table"),
        ([], "a table"),
    ],
)
def test_a_bad_program_is_told_with_its_segment(table: object, words: str) -> None:
    with pytest.raises(BadProgram, match=words):
        read_program(table)


# ---- the pair


@settings(deadline=None, max_examples=40)
@given(program=programs, number=st.integers(1, 20), decimals=st.integers(0, 1))
@example(program=Program((Segment(0.0, 200.0), Segment(None, 0.0, 31.0))), number=1, decimals=0)
def test_any_program_is_read_back_as_it_was_written_and_lasts_as_long_as_was_said(
    program: Program, number: int, decimals: int
) -> None:
    driver, face, part = pair(at_c=300.0, number=number, decimals=decimals)
    write(driver, face, "program", number)
    blocks = programmer(driver).blocks(program)
    for block in blocks:
        store(driver, face, block)
    assert all(holds(face, block) for block in blocks)
    assert read_program(program.written()) == program
    write(driver, face, "program_status", 2)
    took_s = 0
    longest_s = program.duration_s(300.0) + 2 * len(program.segments) + 2
    while status(driver, face) != 1:
        part.controller(1.0)
        took_s += 1
        assert took_s <= longest_s
    assert took_s >= program.duration_s(300.0) - 1


@settings(deadline=None, max_examples=25)
@given(old=programs, new=programs, cut=st.integers(0, 9))
def test_half_a_program_ends_at_once_wherever_the_writing_stopped(
    old: Program, new: Program, cut: int
) -> None:
    """Somebody presses the instrument's own button after a harness died in an upload."""
    driver, face, part = pair(at_c=30.0)
    load(driver, face, old)
    frames = (programmer(driver).empty, *programmer(driver).blocks(new))
    for block in frames[: 1 + min(cut, len(frames) - 2)]:
        store(driver, face, block)
    write(driver, face, "program_status", 2)
    part.controller(1.0)
    found = read(driver, face)
    assert found["program_status"] == 1
    assert found["working_setpoint"] <= 30.0


def test_the_other_programs_of_the_instrument_stay_as_they_are() -> None:
    _, face, _ = pair()
    for number in (1, 3):
        load(Eurotherm2400(program=number), face)
    load(Eurotherm2400(program=2), face, read_program({"segment": [{"step_to_c": 99}] * 15}))
    for number in (1, 3):
        driver = Eurotherm2400(program=number)
        assert all(holds(face, each) for each in programmer(driver).blocks(ANNEAL))


def test_a_program_ramps_dwells_holds_and_tells_where_it_is() -> None:
    driver, face, part = pair()
    load(driver, face)
    write(driver, face, "program_status", 2)
    for _ in range(600):
        part.controller(1.0)
    found = read(driver, face)
    assert found["working_setpoint"] == pytest.approx(125.0)
    assert (found["segment"], found["segment_left"]) == (1, 4050)
    assert found["program_left"] == 4050 + 1800 + 9000
    write(driver, face, "program_status", 4)
    for _ in range(600):
        part.controller(1.0)
    assert read(driver, face)["working_setpoint"] == pytest.approx(125.0)
    write(driver, face, "program_status", 2)
    for _ in range(4100):
        part.controller(1.0)
    found = read(driver, face)
    assert (found["working_setpoint"], found["segment"]) == (800.0, 2)
    assert found["segment_left"] == pytest.approx(1750, abs=1)
    write(driver, face, "program_status", 1)
    part.controller(1.0)
    assert read(driver, face)["working_setpoint"] == 0.0, "its own setpoint again"
    assert part.power_fraction == 0.0


def test_a_program_that_runs_takes_no_edit_and_no_other_number() -> None:
    driver, face, _ = pair()
    load(driver, face)
    write(driver, face, "program_status", 2)
    for block in (programmer(driver).empty, programmer(driver).blocks(ANNEAL)[0]):
        with pytest.raises(DeviceFault, match="illegal data value"):
            store(driver, face, block)
    with pytest.raises(DeviceFault, match="illegal data value"):
        write(driver, face, "program", 2)


def test_with_a_holdback_the_program_waits_for_the_furnace() -> None:
    driver, face, part = pair()
    load(driver, face, Program(ANNEAL.segments, holdback_c=20.0))
    write(driver, face, "program_status", 2)
    for _ in range(3600):
        part.controller(1.0)
    found = read(driver, face)
    assert found["program_status"] == 8
    assert found["working_setpoint"] == pytest.approx(45.0, abs=0.5)
    part.temperature_c = 44.0
    part.controller(1.0)
    assert status(driver, face) == 2


def test_manual_and_a_reset_take_the_heat_away_whatever_the_program_wants() -> None:
    driver, face, part = pair()
    load(driver, face)
    write(driver, face, "program_status", 2)
    for _ in range(600):
        part.controller(1.0)
    assert part.power_fraction > 0
    for channel, value in (("mode", 1), ("output", 0), ("program_status", 1), ("setpoint", 0)):
        write(driver, face, channel, value)
    part.controller(1.0)
    assert part.power_fraction == 0.0
    assert status(driver, face) == 1
