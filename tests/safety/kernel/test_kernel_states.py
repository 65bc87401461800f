"""Bands, states, programs and marks: what a command passes through, and what needs no command."""

import math
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernel_line import ENVELOPE, STALE_S, ask, healthy, limit, parts, rule_of, running, see
from labharness.core.vocabulary import Allowed, Cause, Command, Refused
from labharness.safety.kernel import (
    Bound,
    Envelope,
    Memory,
    Mode,
    PurgedOf,
    begin,
    conclude,
    judge,
    judge_program,
    tick,
)

RAMP = "no ramp through the band over hydrogen"


def oven(memory: Memory, at: float) -> None:
    """The oven stands at a setpoint, and hydrogen flows."""
    healthy(memory, 0.0)
    see(memory, 0.0, oven__setpoint=at, hydrogen__flow=10.0)


@pytest.mark.promise(10)
@pytest.mark.parametrize(
    ("start", "target", "passes"),
    [
        (20.0, 100.0, True),
        (20.0, math.nextafter(100.0, 999.0), False),
        (20.0, 400.0, False),
        (20.0, 900.0, False),
        (400.0, 900.0, False),
        (math.nextafter(400.0, 999.0), 900.0, True),
        (500.0, 401.0, True),
        (500.0, 400.0, False),
        (500.0, 300.0, False),
        (500.0, 20.0, True),
    ],
)
def test_a_ramp_through_a_forbidden_band_is_refused(
    start: float, target: float, passes: bool
) -> None:
    memory = running()
    oven(memory, start)
    verdict = ask(memory, "oven.setpoint", target)
    assert rule_of(verdict) == ("" if passes else RAMP)
    see(memory, 0.0, hydrogen__flow=0.0)
    assert isinstance(ask(memory, "oven.setpoint", target), Allowed), "without hydrogen it may"


def test_the_refusal_of_a_ramp_names_the_state_it_passes() -> None:
    memory = running()
    oven(memory, 20.0)
    verdict = ask(memory, "oven.setpoint", 900.0)
    assert isinstance(verdict, Refused)
    assert verdict.reason == (
        "oven.setpoint to 900 degC passes 100 to 400, which is forbidden at hydrogen.flow at "
        "least 0.5; it reads 10"
    )
    for target in (300.0, 400.0):
        inside = ask(memory, "oven.setpoint", target)
        assert isinstance(inside, Refused)
        assert "passes" not in inside.reason


def test_a_ramp_from_nobody_knows_where_passes_everything_below(memory: Memory) -> None:
    see(memory, 0.0, hydrogen__flow=10.0)
    assert rule_of(ask(memory, "oven.setpoint", 900.0)) == RAMP, "it was never read"
    see(memory, 0.0, oven__setpoint=500.0)
    assert rule_of(ask(memory, "oven.setpoint", 900.0, now=STALE_S)) == ""
    see(memory, STALE_S, hydrogen__flow=10.0)
    assert rule_of(ask(memory, "oven.setpoint", 900.0, now=STALE_S + 0.1)) == RAMP
    memory.track("oven.setpoint").unconfirmed = (300.0,)
    assert rule_of(ask(memory, "oven.setpoint", 900.0, now=STALE_S)) == RAMP, "or it was sent"


# ---- programs


def segment(value: float) -> Command:
    return Command("oven.setpoint", value, "degC")


def test_a_program_is_judged_segment_by_segment_from_where_the_last_one_ends() -> None:
    memory = running()
    oven(memory, 500.0)
    up = [segment(600.0), segment(900.0), segment(450.0)]
    assert isinstance(judge_program(up, memory, 0.0), Allowed)
    down_and_up = [segment(600.0), segment(50.0), segment(700.0)]
    verdict = judge_program(down_and_up, memory, 0.0)
    assert isinstance(verdict, Refused)
    assert verdict.rule == RAMP
    assert verdict.command == segment(700.0)
    assert verdict.reason.startswith("segment 3: oven.setpoint to 700 degC passes 100 to 400")


def test_a_segment_outside_the_limit_refuses_the_whole_program() -> None:
    memory = running()
    oven(memory, 500.0)
    verdict = judge_program([segment(600.0), segment(901.0)], memory, 0.0)
    assert isinstance(verdict, Refused)
    assert verdict.reason.startswith("segment 2: oven.setpoint: asked 901 degC")


def test_steps_of_a_program_are_measured_from_segment_to_segment(memory: Memory) -> None:
    to = [Command("furnace.setpoint", value, "degC") for value in (500.0, 950.0)]
    assert isinstance(judge_program(to, memory, 0.0), Allowed)
    assert rule_of(judge_program(to[1:], memory, 0.0)) == "step"
    assert (
        rule_of(
            judge_program([to[0], to[1], Command("furnace.setpoint", 449.0, "degC")], memory, 0.0)
        )
        == "step"
    )


def test_a_program_of_two_channels_keeps_them_apart(memory: Memory) -> None:
    program = [
        Command("furnace.setpoint", 500.0, "degC"),
        Command("furnace.rate", 5.0, "degC/min"),
        Command("furnace.setpoint", 990.0, "degC"),
    ]
    verdict = judge_program(program, memory, 0.0)
    assert isinstance(verdict, Allowed)
    assert verdict.command == program[-1]
    program[1] = Command("furnace.rate", 21.0, "degC/min")
    assert rule_of(judge_program(program, memory, 0.0)) == "limit"


@given(values=st.lists(st.floats(0.0, 900.0), min_size=1, max_size=6))
@settings(deadline=None, max_examples=100)
def test_a_program_is_allowed_only_if_each_step_of_it_would_be(values: list[float]) -> None:
    memory = running()
    oven(memory, 500.0)
    verdict = judge_program([segment(value) for value in values], memory, 0.0)
    one_by_one, at = True, 500.0
    for value in values:
        oven(memory, at)
        one_by_one = one_by_one and isinstance(judge(segment(value), memory, 0.0), Allowed)
        at = value
    assert isinstance(verdict, Allowed) is one_by_one


# ---- rows about a state


def test_a_row_about_a_state_trips_whoever_brought_it_about(memory: Memory) -> None:
    see(memory, 0.0, box__contactor=0.0, hydrogen__setpoint=0.0)
    for temperature, lid, trips in (
        (math.nextafter(300.0, 0.0), 0.0, False),
        (300.0, 1.0, False),
        (300.0, 0.0, True),
    ):
        see(memory, 0.0, furnace__temperature=temperature, box__lid_shut=lid)
        lost = [each for each in tick(memory, 0.0) if each.cause is Cause.INTERLOCK_LOST]
        assert [each.channel for each in lost] == ["box.lid_shut"] * trips
        for each in lost:
            assert each.procedure == "shutdown"
            assert each.detail == (
                "a hot furnace keeps its lid: condition lost, "
                "it takes box.lid_shut at least 1; it reads 0; "
                f"the row counts by furnace.temperature (it reads {temperature:g})"
            )


def test_a_state_nobody_hears_of_trips_by_its_silence_alone(memory: Memory) -> None:
    see(memory, 0.0, box__contactor=0.0, hydrogen__setpoint=0.0, box__lid_shut=0.0)
    see(memory, STALE_S, box__exhaust=1.0, hydrogen__flow=0.0, argon__flow=0.0, box__lid_shut=0.0)
    trips = tick(memory, STALE_S + 0.1)
    assert [each.channel for each in trips] == ["furnace.temperature"]


def test_a_guard_counts_only_during_its_state(memory: Memory) -> None:
    see(memory, 0.0, methane__flow=1.0)
    stop = ("nitrogen.setpoint", 0.0)
    assert rule_of(ask(memory, *stop)) == ""
    see(memory, 0.0, furnace__temperature=300.0)
    assert rule_of(ask(memory, *stop)) == "nitrogen stays while hot"
    assert rule_of(ask(memory, "nitrogen.setpoint", 1.0)) == ""
    assert rule_of(ask(memory, "nitrogen.setpoint", math.nextafter(1.0, 0.0))) != ""
    see(memory, 0.0, methane__flow=0.0)
    assert rule_of(ask(memory, *stop)) == ""
    see(memory, 0.0, methane__flow=1.0)
    see(memory, 0.0, furnace__temperature=25.0)
    see(memory, STALE_S, methane__flow=1.0)
    assert rule_of(ask(memory, *stop, now=STALE_S)) == ""
    assert rule_of(ask(memory, *stop, now=STALE_S + 0.1)) != "", "it may be hot"


# ---- what is always safe


@pytest.mark.parametrize("mode", Mode)
def test_a_marked_value_passes_on_every_line_that_is_armed_and_not_tripped(mode: Mode) -> None:
    memory = running(mode)
    passes = isinstance(ask(memory, "oven.off", 0.0), Allowed)
    assert passes is (mode in (Mode.ARMING, Mode.HELD, Mode.RUNNING))
    for value in (5e-324, 1.0):
        other = isinstance(ask(memory, "oven.off", value), Allowed)
        assert other is (mode in (Mode.ARMING, Mode.RUNNING)), "only the mark goes further"


def test_a_mark_goes_past_interlocks_and_steps_and_not_past_the_limit_or_the_unit() -> None:
    row = limit("box.contactor", "", 0.0, 1.0, always_safe=(1.0,), step_max=0.5)
    envelope = replace(ENVELOPE, limits={**ENVELOPE.limits, "box.contactor": row})
    memory = Memory(envelope)
    memory.mode = Mode.HELD
    assert isinstance(judge(Command("box.contactor", 1.0, ""), memory, 0.0), Allowed)
    assert rule_of(judge(Command("box.contactor", 1.0, "V"), memory, 0.0)) == "unit"
    assert rule_of(judge(Command("box.contactor", 0.9, ""), memory, 0.0)) == "mode"


# ---- limits, many times


AT_LIMITS = given(
    channel=st.sampled_from(sorted(ENVELOPE.limits)),
    where=st.sampled_from(["low", "high", "inside", "outside", "none"]),
    ulps=st.integers(-1, 1),
    unit=st.sampled_from(["", "degC", "degC/min", "sccm"]),
    free=st.floats(),
    age_s=st.sampled_from([0.0, STALE_S, math.nextafter(STALE_S, 99.0), 1e9]),
)


@pytest.mark.promise(9)
@pytest.mark.soak
@pytest.mark.timeout(900)
def test_a_hundred_thousand_commands_at_the_limits_are_never_clipped() -> None:
    many = settings(deadline=None, max_examples=100_000, database=None)
    many(AT_LIMITS(held_to_its_limit))()


@pytest.mark.promise(9)
@AT_LIMITS
@settings(deadline=None, max_examples=2000)
def test_commands_at_the_limits_are_never_clipped(
    channel: str, where: str, ulps: int, unit: str, free: float, age_s: float
) -> None:
    held_to_its_limit(channel, where, ulps, unit, free, age_s)


def held_to_its_limit(
    channel: str, where: str, ulps: int, unit: str, free: float, age_s: float
) -> None:
    row = ENVELOPE.limits[channel]
    value = {"low": row.low, "high": row.high, "inside": (row.low + row.high) / 2}.get(where, free)
    for _ in range(abs(ulps)):
        value = math.nextafter(value, math.copysign(math.inf, ulps))
    memory = running()
    healthy(memory, 0.0)
    verdict = judge(Command(channel, value, unit), memory, age_s)
    assert verdict.command.value is value
    sound = math.isfinite(value) and row.low <= value <= row.high and unit == row.unit
    if isinstance(verdict, Allowed):
        assert sound
        assert age_s <= STALE_S or not any(
            value > each.row.above or value < each.row.below for each in memory.guarding[channel]
        )
    elif not sound:
        assert verdict.rule in ("limit", "unit")
    else:
        assert verdict.rule not in ("limit", "unit", "unknown channel")


# ---- lines with less, and procedures that give way


def test_a_line_without_pump_or_leak_check_has_its_volumes_alone() -> None:
    plain = replace(ENVELOPE.purge, backfill=None, leak_check=None)
    memory = Memory(replace(ENVELOPE, interlocks=ENVELOPE.interlocks[:3], purge=plain))
    memory.mode = Mode.RUNNING
    healthy(memory, 0.0)
    for pressure in (0.1, 760.0) * 4:
        see(memory, 0.0, gauge__pressure=pressure)
    verdict = judge(Command("hydrogen.setpoint", 10.0, "sccm"), memory, 0.0)
    assert isinstance(verdict, Refused)
    assert verdict.reason.endswith("by measured flow: 0.00")
    memory.proofs.purged.backfills["air"] = 99
    assert rule_of(judge(Command("hydrogen.setpoint", 10.0, "sccm"), memory, 0.0)) != ""
    memory.proofs.purged.passed_cm3["air"] = 500.0
    assert rule_of(judge(Command("hydrogen.setpoint", 10.0, "sccm"), memory, 0.0)) == ""


@pytest.mark.promise(10)
def test_a_procedure_gives_way_while_its_state_was_heard_last() -> None:
    shutdown = ENVELOPE.procedures["shutdown"]
    vacuum = Bound("gauge.pressure", high=700.0)
    procedures = {
        "shutdown": replace(shutdown, when=(vacuum,), instead="hold_vacuum"),
        "hold_vacuum": replace(shutdown, name="hold_vacuum"),
    }
    memory = Memory(replace(ENVELOPE, procedures=procedures))
    assert memory.procedure("shutdown") == "shutdown", "it was never read"
    see(memory, 0.0, gauge__pressure=700.0)
    assert memory.procedure("shutdown") == "hold_vacuum", "however long ago it was heard"
    assert memory.procedure("hold_vacuum") == "hold_vacuum"
    see(memory, 0.0, gauge__pressure=701.0)
    assert memory.procedure("shutdown") == "shutdown"


@pytest.mark.promise(10)
def test_a_procedure_gives_way_while_one_of_its_states_may_be_on_its_way() -> None:
    shutdown = ENVELOPE.procedures["shutdown"]
    states = (Bound("gauge.pressure", high=700.0), Bound("oven.setpoint", low=500.0))
    procedures = {
        "shutdown": replace(shutdown, when=states, instead="hold_vacuum"),
        "hold_vacuum": replace(shutdown, name="hold_vacuum"),
    }
    memory = Memory(replace(ENVELOPE, procedures=procedures))
    see(memory, 0.0, gauge__pressure=760.0, oven__setpoint=20.0)
    assert memory.procedure("shutdown") == "shutdown"
    begin(memory, Command("oven.setpoint", 500.0, "degC"))
    assert memory.procedure("shutdown") == "hold_vacuum"
    begin(memory, Command("oven.setpoint", 20.0, "degC"))
    assert memory.procedure("shutdown") == "hold_vacuum", "neither is confirmed"
    conclude(memory, Command("oven.setpoint", 20.0, "degC"))
    assert memory.procedure("shutdown") == "shutdown"
    see(memory, 0.0, oven__setpoint=500.0)
    assert memory.procedure("shutdown") == "hold_vacuum", "it stays as it was set"
    see(memory, 0.0, oven__setpoint=499.0)
    assert memory.procedure("shutdown") == "shutdown"


@pytest.mark.promise(10)
def test_a_state_that_another_reading_belies_is_not_believed() -> None:
    shutdown = ENVELOPE.procedures["shutdown"]
    vacuum, flowing = Bound("gauge.pressure", high=700.0), Bound("argon.flow", low=10.0)
    procedures = {
        "shutdown": replace(shutdown, when=(vacuum,), unless=flowing, instead="hold_vacuum"),
        "hold_vacuum": replace(shutdown, name="hold_vacuum"),
    }
    memory = Memory(replace(ENVELOPE, procedures=procedures))
    see(memory, 0.0, gauge__pressure=0.0)
    assert memory.procedure("shutdown") == "hold_vacuum", "nothing was read against it"
    see(memory, 0.0, argon__flow=9.0)
    assert memory.procedure("shutdown") == "hold_vacuum"
    see(memory, 0.0, argon__flow=10.0)
    assert memory.procedure("shutdown") == "shutdown"
    see(memory, STALE_S + 0.1, gauge__pressure=0.0)
    assert memory.procedure("shutdown") == "shutdown", "what belies it was heard last so"
    memory.track("argon.flow").unconfirmed = (0.0,)
    assert memory.procedure("shutdown") == "hold_vacuum", "it may be on its way to another"


def test_a_command_sent_twice_is_doubted_once() -> None:
    memory = running()
    for _ in range(3):
        begin(memory, Command("argon.setpoint", 5.0, "sccm"))
    assert memory.track("argon.setpoint").unconfirmed == (5.0,)
    conclude(memory, Command("argon.setpoint", 5.0, "sccm"))
    assert memory.track("argon.setpoint").unconfirmed == ()


# ---- doubt about what is forbidden, and what is only listened to


@pytest.mark.parametrize(
    ("flow", "sent", "allowed"),
    [(0.0, 0.0, True), (0.0, 0.4, True), (0.0, 10.0, False), (10.0, 0.0, False)],
)
def test_what_is_forbidden_is_excluded_by_both_values_of_a_command_in_doubt(
    memory: Memory, flow: float, sent: float, allowed: bool
) -> None:
    see(memory, 0.0, oven__setpoint=20.0, hydrogen__flow=flow)
    begin(memory, Command("hydrogen.setpoint", sent, "sccm"))
    assert (rule_of(ask(memory, "oven.setpoint", 300.0)) == "") is allowed
    late = rule_of(ask(memory, "oven.setpoint", 300.0, now=STALE_S + 0.1))
    assert late == RAMP, "a stale reading excludes nothing, in doubt or not"


def test_a_proof_takes_the_contaminant_excluded_by_every_doubt(memory: Memory) -> None:
    memory.proofs.purged.passed_cm3["hydrogen"] = 1e6
    hydrogen = PurgedOf("hydrogen", 5.0)
    assert memory.holds(hydrogen, 0.0)
    memory.track("hydrogen.flow").unconfirmed = (0.4,)
    assert memory.holds(hydrogen, 0.0)
    memory.track("hydrogen.flow").unconfirmed = (0.4, 0.5)
    assert not memory.holds(hydrogen, 0.0)


def test_a_condition_that_only_goes_unheard_is_lost_where_its_silence_does_not_trip() -> None:
    memory = running()
    healthy(memory, 0.0)
    see(memory, 0.0, box__contactor=0.0, hydrogen__setpoint=0.0, furnace__temperature=400.0)
    assert not ENVELOPE.watches["box.lid_shut"].procedure
    assert tick(memory, STALE_S) == ()
    see(memory, STALE_S, furnace__temperature=400.0, box__exhaust=1.0)
    see(memory, STALE_S, hydrogen__flow=0.0, argon__flow=0.0)
    (trip,) = tick(memory, STALE_S + 0.1)
    assert (trip.cause, trip.channel) == (Cause.INTERLOCK_LOST, "box.lid_shut")
    assert "its last reading is 5.1 s old, allowed 5 s" in trip.detail


def test_a_required_sensor_that_falls_silent_trips_by_its_silence_alone(memory: Memory) -> None:
    see(memory, 0.0, box__contactor=1.0, hydrogen__setpoint=0.0)
    see(memory, STALE_S, furnace__temperature=25.0, hydrogen__flow=0.0, argon__flow=0.0)
    trips = tick(memory, STALE_S + 0.1)
    assert [(each.cause, each.channel) for each in trips] == [(Cause.COMMUNICATION, "box.exhaust")]


def test_a_step_is_measured_at_the_channel_that_shows_what_was_set() -> None:
    row = limit("hydrogen.setpoint", "sccm", 0.0, 100.0, readback="hydrogen.flow", step_max=5.0)
    envelope = replace(ENVELOPE, limits={**ENVELOPE.limits, "hydrogen.setpoint": row})
    memory = Memory(replace(envelope, interlocks=()))
    memory.mode = Mode.RUNNING
    see(memory, 0.0, hydrogen__flow=50.0)
    assert isinstance(judge(Command("hydrogen.setpoint", 54.0, "sccm"), memory, 0.0), Allowed)
    assert rule_of(judge(Command("hydrogen.setpoint", 56.0, "sccm"), memory, 0.0)) == "step"
    begin(memory, Command("hydrogen.setpoint", 54.0, "sccm"))
    assert memory.track("hydrogen.flow").unconfirmed == (54.0,)
    conclude(memory, Command("hydrogen.setpoint", 54.0, "sccm"))
    assert memory.track("hydrogen.flow").unconfirmed == ()


def test_what_nobody_watches_may_be_energised() -> None:
    limits = {
        **ENVELOPE.limits,
        "oven.setpoint": limit("oven.setpoint", "degC", 0.0, 900.0, readback="oven.working"),
    }
    row = replace(ENVELOPE.interlocks[0], name="oven", guards=("oven.setpoint",))
    memory = Memory(replace(ENVELOPE, limits=limits, interlocks=(row,)))
    memory.mode = Mode.RUNNING
    healthy(memory, 0.0)
    see(memory, 0.0, box__exhaust=0.0)
    assert [trip.channel for trip in tick(memory, 0.0)] == ["box.exhaust"]
    see(memory, 0.0, oven__working=0.0)
    assert tick(memory, 0.0) == ()


@pytest.mark.parametrize("sent", [(0.0, 1.0), (1.0, 0.0)])
def test_one_value_among_several_that_were_sent_may_have_energised(
    memory: Memory, sent: tuple[float, ...]
) -> None:
    see(memory, 0.0, box__contactor=0.0, hydrogen__setpoint=0.0, box__exhaust=0.0)
    assert tick(memory, 0.0) == ()
    memory.track("box.contactor").unconfirmed = sent
    assert [trip.channel for trip in tick(memory, 0.0)] == ["box.exhaust"]


@pytest.mark.parametrize("mode", [Mode.DISARMED, Mode.RUNNING])
def test_a_state_whose_loss_runs_nothing_is_not_told_either(mode: Mode) -> None:
    rows = [
        replace(row, on_loss="") if row.name == "a hot furnace keeps its lid" else row
        for row in parts()["interlocks"]
    ]
    memory = Memory(Envelope(**{**parts(), "interlocks": tuple(rows)}))
    memory.mode = mode
    healthy(memory, 0.0)
    see(memory, 0.0, furnace__temperature=400.0, box__lid_shut=0.0)
    assert tick(memory, 0.0) == ()


def test_of_a_line_that_nobody_drives_only_states_are_told_and_nothing_runs() -> None:
    memory = running(Mode.DISARMED)
    healthy(memory, 0.0)
    see(memory, 0.0, box__contactor=1.0, hydrogen__setpoint=0.0, box__exhaust=0.0)
    assert tick(memory, 0.0) == (), "power without its exhaust is nobody's to switch off"
    see(memory, 0.0, furnace__temperature=400.0, box__lid_shut=0.0)
    (told,) = tick(memory, 0.0)
    assert (told.channel, told.procedure) == ("box.lid_shut", "")
    memory.mode = Mode.RUNNING
    assert {each.channel for each in tick(memory, 0.0)} == {"box.exhaust", "box.lid_shut"}
