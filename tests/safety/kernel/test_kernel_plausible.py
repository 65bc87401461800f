"""What is not plausible is found within its declared time, and what is sound is left alone."""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel_line import ENVELOPE, STALE_S, STUCK, limit, parts, rule_of, see
from labharness.core.vocabulary import Allowed, Cause, Command, Refused, Trip, Verdict
from labharness.safety.kernel import (
    Bound,
    Envelope,
    EnvelopeInvalid,
    Interlock,
    Memory,
    Mode,
    Plausible,
    TripRow,
    Watch,
    adopt,
    begin,
    conclude,
    expect,
    judge,
    tick,
)

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


ARGON = Command("argon.setpoint", 100.0, "sccm")


MAINS = Bound("box.exhaust", low=1.0)  # any reading that says what is at stake


def shown(**row: Any) -> Memory:
    """A line whose argon setpoint is confirmed at 100 sccm, seen twice."""
    limits = dict(ENVELOPE.limits)
    own = {"resolution": 0.5, **row}
    limits["argon.setpoint"] = replace(limits["argon.setpoint"], **own)
    memory = Memory(Envelope(**{**parts(), "limits": limits}))
    memory.mode = Mode.RUNNING
    begin(memory, ARGON)
    see(memory, 0.0, argon__setpoint=100.0)
    conclude(memory, ARGON)
    assert see(memory, 1.0, argon__setpoint=100.0) == ()
    return memory


def procedures(found: tuple[Trip, ...]) -> list[str]:
    assert {each.cause for each in found} <= {Cause.INTERLOCK_LOST}
    return [each.procedure for each in found]


def test_it_is_called_once_and_again_when_it_changes() -> None:
    memory = shown()
    assert procedures(see(memory, 2.0, argon__setpoint=200.0)) == [""]
    assert see(memory, 3.0, argon__setpoint=200.0) == ()
    assert procedures(see(memory, 4.0, argon__setpoint=300.0)) == [""]
    assert see(memory, 5.0, argon__setpoint=100.0) == ()
    (again,) = see(memory, 6.0, argon__setpoint=300.0)
    assert again.detail.startswith("argon.setpoint reads 300 sccm, and 100 was confirmed: ")
    assert again.value == 300.0


def test_within_its_resolution_it_is_what_was_set() -> None:
    memory = shown()
    assert see(memory, 2.0, argon__setpoint=100.5) == ()
    assert see(memory, 3.0, argon__setpoint=99.5) == ()
    assert procedures(see(memory, 4.0, argon__setpoint=99.4)) == [""]


def test_a_row_that_trips_trips_with_every_reading() -> None:
    memory = shown(on_foreign="shutdown")
    for now in (2.0, 3.0):
        assert procedures(see(memory, now, argon__setpoint=200.0)) == ["shutdown"]


def test_it_trips_while_something_is_at_stake_and_as_soon_as_it_is() -> None:
    memory = shown(on_foreign="shutdown", foreign_while=MAINS)
    see(memory, 1.0, box__exhaust=0.0)
    assert procedures(see(memory, 2.0, argon__setpoint=200.0)) == [""]
    assert see(memory, 3.0, argon__setpoint=200.0) == ()
    see(memory, 4.0, box__exhaust=1.0)
    assert procedures(see(memory, 4.0, argon__setpoint=200.0)) == ["shutdown"]


def test_what_may_be_at_stake_is() -> None:
    memory = shown(on_foreign="shutdown", foreign_while=MAINS)
    assert procedures(see(memory, 2.0, argon__setpoint=200.0)) == ["shutdown"], "never read"
    see(memory, 3.0, box__exhaust=0.0)
    assert procedures(see(memory, 99.0, argon__setpoint=200.0)) == ["shutdown"], "stale"


def test_a_row_may_be_about_the_value_itself() -> None:
    stake = Bound("argon.setpoint", low=150.0)
    memory = shown(on_foreign="shutdown", foreign_while=stake)
    assert procedures(see(memory, 2.0, argon__setpoint=50.0)) == [""]
    assert procedures(see(memory, 3.0, argon__setpoint=150.0)) == ["shutdown"]


def test_what_an_instrument_takes_by_itself_is_nobody_elses() -> None:
    memory = shown(own=(0.0,), on_foreign="shutdown")
    assert see(memory, 2.0, argon__setpoint=0.0) == ()
    assert procedures(see(memory, 3.0, argon__setpoint=1.0)) == ["shutdown"]


def test_while_a_command_is_in_doubt_nobody_knows() -> None:
    memory = shown(on_foreign="shutdown")
    begin(memory, replace(ARGON, value=200.0))
    for value in (100.0, 150.0, 200.0, 300.0):
        assert see(memory, 2.0, argon__setpoint=value) == ()
    conclude(memory, replace(ARGON, value=300.0))
    assert see(memory, 3.0, argon__setpoint=300.0) == ()
    assert procedures(see(memory, 4.0, argon__setpoint=200.0)) == ["shutdown"]


def test_a_later_confirmed_command_ends_it() -> None:
    memory = shown()
    see(memory, 2.0, argon__setpoint=200.0)
    track = memory.tracks["argon.setpoint"]
    assert track.foreign()
    again = replace(ARGON, value=250.0)
    begin(memory, again)
    see(memory, 3.0, argon__setpoint=250.0)
    conclude(memory, again)
    assert not track.foreign()


def test_nothing_is_expected_of_what_was_forgotten_until_it_is_adopted() -> None:
    memory = shown(on_foreign="shutdown")
    expect(memory, "argon.setpoint", math.nan)
    assert see(memory, 2.0, argon__setpoint=200.0) == ()
    adopt(memory, ["argon.setpoint"])
    assert procedures(see(memory, 3.0, argon__setpoint=100.0)) == ["shutdown"]


def test_what_is_known_or_in_doubt_is_not_adopted() -> None:
    memory = shown()
    see(memory, 2.0, argon__setpoint=200.0)
    adopt(memory, ["argon.setpoint"])
    assert memory.tracks["argon.setpoint"].told == 100.0
    expect(memory, "argon.setpoint", math.nan)
    begin(memory, ARGON)
    adopt(memory, ["argon.setpoint"])
    assert math.isnan(memory.tracks["argon.setpoint"].told)


def test_a_channel_without_such_a_row_is_never_called() -> None:
    memory = Memory(ENVELOPE)
    memory.mode = Mode.RUNNING
    conclude(memory, ARGON)
    assert see(memory, 1.0, argon__setpoint=400.0) == ()
    assert not memory.tracks["argon.setpoint"].foreign()


def test_a_row_that_says_nothing_of_its_read_back_leaves_anothers_as_it_is() -> None:
    limits = dict(ENVELOPE.limits)
    limits["argon.setpoint"] = replace(limits["argon.setpoint"], resolution=0.5)
    limits["argon.also"] = replace(
        limits["argon.setpoint"],
        channel="argon.also",
        readback="argon.setpoint",
        resolution=math.inf,
    )
    memory = Memory(Envelope(**{**parts(), "limits": limits}))
    memory.mode = Mode.RUNNING
    conclude(memory, ARGON)
    assert procedures(see(memory, 1.0, argon__setpoint=400.0)) == [""]


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ({"on_foreign": "vent"}, "limit argon.setpoint runs 'vent'"),
        (
            {"on_foreign": "shutdown", "foreign_while": Bound("box.x", 1.0)},
            "limit argon.setpoint relies on 'box.x'",
        ),
    ],
)
def test_what_it_names_must_be_there(row: dict[str, Any], words: str) -> None:
    with pytest.raises(EnvelopeInvalid, match=words):
        shown(**row)


def test_what_trips_must_be_listened_to() -> None:
    limits = dict(ENVELOPE.limits)
    limits["oven.off"] = replace(limits["oven.off"], on_foreign="shutdown")
    with pytest.raises(EnvelopeInvalid, match=r"limit oven\.off relies on 'oven\.off'"):
        Envelope(**{**parts(), "limits": limits})


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
