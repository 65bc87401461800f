"""The kernel alone: what it refuses, what trips, and what counts as proof."""

import math
from collections.abc import Callable

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from kernel_line import STALE_S, ask, healthy, rule_of, running, see
from labharness.core.vocabulary import Allowed, Cause, Command, Refused, Trip
from labharness.safety.kernel import (
    Bound,
    IllegalMode,
    Memory,
    Mode,
    begin,
    change,
    conclude,
    observe,
    tick,
)

# ---- limits

BOUNDS = [("argon.setpoint", 0.0, 500.0), ("furnace.rate", 0.0, 20.0)]


@pytest.mark.promise(9)
@pytest.mark.parametrize(("channel", "low", "high"), BOUNDS)
def test_a_limit_is_exact_to_the_last_bit(channel: str, low: float, high: float) -> None:
    memory = running()
    for inside in (low, high, math.nextafter(low, math.inf), math.nextafter(high, -math.inf)):
        assert isinstance(ask(memory, channel, inside), Allowed)
    for outside in (math.nextafter(low, -math.inf), math.nextafter(high, math.inf)):
        assert rule_of(ask(memory, channel, outside)) == "limit"


@given(value=st.floats())
@settings(deadline=None, max_examples=200)
def test_no_number_is_clipped_and_none_outside_passes(value: float) -> None:
    verdict = ask(running(), "argon.setpoint", value)
    assert verdict.command.value is value
    assert isinstance(verdict, Allowed) == (0.0 <= value <= 500.0)


@pytest.mark.promise(9)
@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_what_is_no_finite_number_is_refused(value: float) -> None:
    assert rule_of(ask(running(), "argon.setpoint", value)) == "limit"


def test_another_unit_or_channel_is_refused_and_never_converted() -> None:
    for unit in ("", "SCCM", "slm", "degC", "sccm "):
        assert rule_of(ask(running(), "argon.setpoint", 1.0, unit)) == "unit", unit
    for channel in ("", "argon", "argon.flow", "argon.setpoint ", "x.y"):
        assert rule_of(ask(running(), channel, 1.0, "sccm")) == "unknown channel", channel


def test_a_refusal_says_what_was_asked_and_what_is_allowed() -> None:
    verdict = ask(running(), "argon.setpoint", 501.0)
    assert isinstance(verdict, Refused)
    assert verdict.reason == "argon.setpoint: asked 501 sccm, allowed 0 to 500 sccm"


def test_judging_changes_nothing(memory: Memory) -> None:
    before = repr(memory.tracks), dict(memory.proofs.purged.passed_cm3), memory.changes
    for value in (0.0, 1.0, 30.0, math.nan):
        ask(memory, "hydrogen.setpoint", value)
        ask(memory, "furnace.setpoint", value)
    assert (repr(memory.tracks), dict(memory.proofs.purged.passed_cm3), memory.changes) == before


# ---- modes

PASSES = {
    Mode.DISARMED: set(),
    Mode.ARMING: {"furnace.rate"},
    Mode.HELD: set(),
    Mode.RUNNING: {"furnace.rate", "argon.setpoint"},
    Mode.TRIPPED: set(),
}


@pytest.mark.parametrize("mode", Mode)
def test_a_mode_lets_through_what_its_row_says_and_no_row_is_a_refusal(mode: Mode) -> None:
    passes = {
        channel
        for channel in ("furnace.rate", "argon.setpoint")
        if isinstance(ask(running(mode), channel, 1.0), Allowed)
    }
    assert passes == PASSES[mode]
    assert set(PASSES) == set(Mode)


LEADS_TO = {
    Mode.DISARMED: {Mode.ARMING, Mode.TRIPPED},
    Mode.ARMING: {Mode.HELD, Mode.DISARMED, Mode.TRIPPED},
    Mode.HELD: {Mode.RUNNING, Mode.DISARMED, Mode.TRIPPED},
    Mode.RUNNING: {Mode.HELD, Mode.DISARMED, Mode.TRIPPED},
    Mode.TRIPPED: {Mode.DISARMED},
}


@pytest.mark.promise(14)
@pytest.mark.parametrize("now", Mode)
@pytest.mark.parametrize("to", Mode)
def test_the_table_of_modes_is_this_one(now: Mode, to: Mode) -> None:
    if to in LEADS_TO[now]:
        assert change(now, to) is to
    else:
        with pytest.raises(IllegalMode, match=f"{now} cannot become {to}"):
            change(now, to)


def test_a_mode_that_the_table_does_not_know_leads_nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    from labharness.safety.kernel import modes

    monkeypatch.delitem(modes.CHANGES, Mode.HELD)
    with pytest.raises(IllegalMode):
        change(Mode.HELD, Mode.RUNNING)


# ---- fresh readings, doubt, steps


@pytest.mark.promise(9)
@pytest.mark.parametrize(
    ("age_s", "allowed"),
    [(0.0, True), (STALE_S, True), (math.nextafter(STALE_S, 9.0), False), (1e9, False)],
)
def test_a_reading_counts_up_to_its_bound_exactly(age_s: float, allowed: bool) -> None:
    memory = running()
    see(memory, 0.0, box__exhaust=1.0)
    assert isinstance(ask(memory, "box.contactor", 1.0, now=age_s), Allowed) is allowed


def test_a_reading_counts_by_its_age_and_not_by_the_time_of_day() -> None:
    memory = running()
    see(memory, 1e6, box__exhaust=1.0)
    assert isinstance(ask(memory, "box.contactor", 1.0, now=1e6 + STALE_S), Allowed)
    verdict = ask(memory, "box.contactor", 1.0, now=1e6 + STALE_S + 0.1)
    assert isinstance(verdict, Refused)
    assert "is 5.1 s old" in verdict.reason


@pytest.mark.parametrize("doubt", [(0.0,), (1.0, 0.0), (0.0, 1.0)])
def test_one_doubt_among_several_is_enough_to_prove_nothing(doubt: tuple[float, ...]) -> None:
    memory, exhaust = running(), Bound("box.exhaust", low=0.5)
    see(memory, 0.0, box__exhaust=1.0)
    assert memory.holds(exhaust, 0.0)
    memory.track("box.exhaust").unconfirmed = doubt
    assert not memory.holds(exhaust, 0.0)
    assert rule_of(ask(memory, "box.contactor", 1.0)) == "power only with exhaust"


def test_what_was_never_read_proves_nothing() -> None:
    verdict = ask(running(), "box.contactor", 1.0)
    assert isinstance(verdict, Refused)
    assert verdict.rule == "power only with exhaust"
    assert verdict.reason.endswith("it was never read")


@pytest.mark.promise(10)
@pytest.mark.parametrize(
    ("exhaust", "allowed"),
    [(0.5, True), (math.nextafter(0.5, 0.0), False), (0.0, False), (math.inf, True)],
)
def test_an_interlock_holds_at_its_bound_and_not_below(exhaust: float, allowed: bool) -> None:
    memory = running()
    see(memory, 0.0, box__exhaust=exhaust)
    assert isinstance(ask(memory, "box.contactor", 1.0), Allowed) is allowed


def test_switching_off_is_not_held_up_by_an_interlock() -> None:
    assert isinstance(ask(running(), "box.contactor", 0.0), Allowed)
    assert rule_of(ask(running(), "box.contactor", 1e-9)) == "power only with exhaust"


def test_a_nan_is_no_measurement_and_leaves_the_old_one_to_grow_stale() -> None:
    memory = running()
    see(memory, 0.0, box__exhaust=1.0)
    see(memory, STALE_S, box__exhaust=math.nan)
    assert isinstance(ask(memory, "box.contactor", 1.0, now=STALE_S), Allowed)
    verdict = ask(memory, "box.contactor", 1.0, now=STALE_S + 0.1)
    assert isinstance(verdict, Refused)
    assert "is 5.1 s old, allowed 5 s" in verdict.reason


@pytest.mark.parametrize(("flow", "sent"), [(0.0, 80.0), (80.0, 0.0), (80.0, 80.0)])
def test_until_it_is_confirmed_a_command_counts_as_both_its_values(
    memory: Memory, flow: float, sent: float
) -> None:
    command = Command("hydrogen.setpoint", sent, "sccm")
    see(memory, 0.0, hydrogen__flow=flow)
    begin(memory, command)
    verdict = ask(memory, "furnace.setpoint", 100.0)
    assert rule_of(verdict) == "heat only while flow is small"
    if flow != sent:
        assert isinstance(verdict, Refused)
        assert "was sent and is not confirmed" in verdict.reason
    see(memory, 0.1, hydrogen__flow=sent)
    conclude(memory, command)
    after = ask(memory, "furnace.setpoint", 100.0, now=0.1)
    assert isinstance(after, Allowed) is (sent <= 50.0)


def test_doubt_that_satisfies_a_condition_proves_nothing_either(memory: Memory) -> None:
    begin(memory, Command("hydrogen.setpoint", 10.0, "sccm"))
    assert isinstance(ask(memory, "furnace.setpoint", 100.0), Allowed), "both values are small"


@pytest.mark.parametrize(
    ("value", "allowed"),
    [(525.0, True), (math.nextafter(525.0, 999.0), False), (20.0, True), (1000.0, False)],
)
def test_a_step_is_measured_from_what_was_read(memory: Memory, value: float, allowed: bool) -> None:
    assert (rule_of(ask(memory, "furnace.setpoint", value)) == "") is allowed


def test_a_step_is_measured_from_both_values_while_there_is_doubt(memory: Memory) -> None:
    assert rule_of(ask(memory, "furnace.setpoint", 399.0)) == ""
    begin(memory, Command("furnace.setpoint", 900.0, "degC"))
    assert rule_of(ask(memory, "furnace.setpoint", 399.0)) == "step"
    assert rule_of(ask(memory, "furnace.setpoint", 400.0)) == ""
    known = ask(memory, "furnace.setpoint", 526.0)
    assert rule_of(known) == "step"
    assert "a step of 501 degC, allowed 500" in str(known)


def test_a_step_from_an_unknown_value_is_refused() -> None:
    memory = running()
    unknown = ask(memory, "furnace.setpoint", 30.0)
    assert rule_of(unknown) == "step"
    assert "its present value is not known" in str(unknown)
    memory.track("furnace.setpoint").stale_s = STALE_S
    healthy(memory, 0.0)
    assert rule_of(ask(memory, "furnace.setpoint", 30.0, now=STALE_S)) == ""
    assert rule_of(ask(memory, "furnace.setpoint", 30.0, now=STALE_S + 0.1)) == "step"


# ---- the purge proof


def purge(memory: Memory, start: float, seconds: int, flow: float = 600.0) -> float:
    """Let argon flow, everything else at rest; return the time it ends."""
    for second in range(seconds + 1):
        healthy_but = {"box__lid_shut": 1.0, "hydrogen__flow": 0.0, "box__exhaust": 1.0}
        see(memory, start + second, **healthy_but, argon__setpoint=flow, argon__flow=flow)
        tick(memory, start + second)
    return start + seconds


def test_the_proof_is_measured_flow_over_the_tubes_volume() -> None:
    memory = running()
    end = purge(memory, 0.0, 50)  # 600 sccm is 10 cm3/s; five volumes are 500 cm3
    assert memory.proofs.purged.volumes("air") == pytest.approx(5.0)
    assert isinstance(ask(memory, "hydrogen.setpoint", 10.0, now=end), Allowed)


@pytest.mark.promise(10)
def test_a_little_less_than_the_volumes_is_refused_with_what_is_proven() -> None:
    memory = running()
    end = purge(memory, 0.0, 49)
    verdict = ask(memory, "hydrogen.setpoint", 10.0, now=end)
    assert isinstance(verdict, Refused)
    assert verdict.rule == "hydrogen only into a purged tube"
    assert verdict.reason.endswith("proven by measured flow: 4.90, and 0 backfills")


@given(
    flows=st.lists(
        st.tuples(st.floats(0.1, 8.0), st.floats(-100.0, 1000.0) | st.just(math.nan)), max_size=30
    )
)
@example(flows=[(1.0, 60.0), (1.0, -60.0), (1.0, 60.0)])
@settings(deadline=None, max_examples=60)
def test_gaps_and_negative_flows_count_for_nothing_and_the_rest_at_its_smaller_end(
    flows: list[tuple[float, float]],
) -> None:
    memory = running()
    now, last, last_at, proven = 0.0, math.nan, -math.inf, 0.0
    for wait_s, flow in flows:
        now += wait_s
        see(memory, now, argon__setpoint=1000.0, argon__flow=flow)
        if math.isnan(flow):
            continue
        if now - last_at <= STALE_S and last > 0 and flow > 0:
            proven += min(last, flow) / 60 * (now - last_at)
        last, last_at = flow, now
    assert memory.proofs.purged.passed_cm3["air"] == pytest.approx(proven)


@pytest.mark.parametrize(("late_s", "volumes"), [(0.0, 5.0), (0.001, 0.0)])
def test_a_proof_outlives_a_silence_that_is_just_short_enough(
    late_s: float, volumes: float
) -> None:
    memory = running()
    end = purge(memory, 0.0, 50)
    see(memory, end + STALE_S + late_s, box__lid_shut=1.0)
    assert memory.proofs.purged.volumes("air") == pytest.approx(volumes)


@pytest.mark.parametrize(
    "disturb",
    [
        lambda memory, now: see(memory, now, box__lid_shut=0.0),
        lambda memory, now: see(memory, now, box__lid_shut=0.5),
        lambda memory, now: see(memory, now + STALE_S + 1.0, box__lid_shut=1.0),
        lambda memory, now: tick(memory, now + STALE_S + 0.1),
    ],
    ids=["present", "at the bound", "silent for a while", "silent"],
)
def test_the_proof_is_nothing_once_the_contaminant_may_have_been_there(
    disturb: Callable[[Memory, float], object],
) -> None:
    memory = running()
    end = purge(memory, 0.0, 100)
    assert memory.proofs.purged.volumes("air") == pytest.approx(10.0)
    disturb(memory, end)
    see(memory, end + 7.0, box__lid_shut=1.0)
    assert memory.proofs.purged.volumes("air") == 0.0
    assert rule_of(ask(memory, "hydrogen.setpoint", 10.0, now=end + 7.0)) != ""


def test_a_proof_does_not_count_while_nobody_knows_whether_the_contaminant_is_there() -> None:
    memory = running()
    end = purge(memory, 0.0, 100)
    for now, allowed in ((end + STALE_S, True), (end + STALE_S + 0.1, False)):
        assert (rule_of(ask(memory, "hydrogen.setpoint", 10.0, now=now)) == "") is allowed


def test_a_command_that_may_let_the_contaminant_in_ends_its_proof_at_once() -> None:
    memory = running()
    purge(memory, 0.0, 100)
    command = Command("hydrogen.setpoint", 10.0, "sccm")
    begin(memory, command)
    conclude(memory, command)  # even though it was concluded before any tick
    assert memory.proofs.purged.volumes("hydrogen") == 0.0
    assert memory.proofs.purged.volumes("air") == pytest.approx(10.0)


def test_a_command_that_keeps_the_contaminant_out_leaves_its_proof() -> None:
    memory = running()
    purge(memory, 0.0, 100)
    begin(memory, Command("hydrogen.setpoint", 0.0, "sccm"))
    assert memory.proofs.purged.volumes("hydrogen") == pytest.approx(10.0)


def test_a_contaminant_never_looked_for_counts_as_present() -> None:
    memory = running()
    for second in range(200):
        see(memory, second, argon__setpoint=600.0, argon__flow=600.0)
        tick(memory, second)
    assert memory.proofs.purged.passed_cm3 == {"air": 0.0, "hydrogen": 0.0}


# ---- trips


@pytest.mark.promise(11)
@pytest.mark.parametrize(
    ("value", "names"),
    [
        (1020.0, []),
        (math.nextafter(1020.0, 2000.0), ["rather hot"]),
        (1050.0, ["rather hot"]),
        (math.nextafter(1050.0, 2000.0), ["too hot", "rather hot"]),
        (math.inf, ["too hot", "rather hot"]),
        (-50.0, []),
        (math.nextafter(-50.0, -99.0), ["sensor broken"]),
        (-math.inf, ["sensor broken"]),
    ],
)
@pytest.mark.parametrize("mode", Mode)
def test_a_reading_outside_its_bounds_trips_in_every_mode(
    value: float, names: list[str], mode: Mode
) -> None:
    trips = see(running(mode), 3.0, furnace__temperature=value)
    assert [trip.detail.split(":")[0] for trip in trips] == names
    for trip in trips:
        assert (trip.channel, trip.value, trip.at_s) == ("furnace.temperature", value, 3.0)
        assert bool(trip.procedure) == ("rather" not in trip.detail)


def test_a_trip_says_the_value_the_bound_and_the_unit() -> None:
    (high, _) = see(running(), 0.0, furnace__temperature=1060.0)
    (low,) = see(running(), 0.0, furnace__temperature=-60.0)
    assert high.detail == "too hot: furnace.temperature is 1060 degC, at most 1050"
    assert low.detail == "sensor broken: furnace.temperature is -60 degC, at least -50"


@pytest.mark.promise(11)
@pytest.mark.parametrize("mode", Mode)
def test_silence_trips_where_the_line_is_live_and_the_watch_says_so(mode: Mode) -> None:
    memory = running(mode)
    healthy(memory, 0.0)
    see(memory, 0.0, box__contactor=0.0)
    assert tick(memory, STALE_S) == ()
    trips = tick(memory, STALE_S + 0.1)
    live = mode in (Mode.RUNNING, Mode.HELD, Mode.TRIPPED)
    silent = (
        {"furnace.temperature", "box.exhaust", "hydrogen.flow", "argon.flow"} if live else set()
    )
    assert {trip.channel for trip in trips} == silent
    assert all(
        (trip.cause, trip.procedure, trip.value) == (Cause.COMMUNICATION, "shutdown", None)
        for trip in trips
    )


def test_a_channel_never_heard_is_silent_from_the_start() -> None:
    trips = tick(running(), 0.0)
    assert [trip.cause for trip in trips].count(Cause.COMMUNICATION) == 4


def test_power_that_was_never_read_counts_as_on(memory: Memory) -> None:
    assert [trip.channel for trip in lose(memory)] == ["box.exhaust"]


def lose(memory: Memory) -> list[Trip]:
    see(memory, 1.0, box__exhaust=0.0)
    return [trip for trip in tick(memory, 1.0) if trip.cause is Cause.INTERLOCK_LOST]


def test_an_interlock_lost_under_power_runs_its_procedure(memory: Memory) -> None:
    see(memory, 0.0, box__contactor=1.0)
    assert tick(memory, 0.5) == ()
    (trip,) = lose(memory)
    assert (trip.procedure, trip.channel, trip.at_s) == ("shutdown", "box.exhaust", 1.0)
    assert "power only with exhaust" in trip.detail


def test_an_interlock_lost_at_rest_is_none(memory: Memory) -> None:
    see(memory, 0.0, box__contactor=0.0)
    assert lose(memory) == []


def test_power_that_may_be_on_counts_as_on(memory: Memory) -> None:
    see(memory, 0.0, box__contactor=0.0)
    begin(memory, Command("box.contactor", 1.0, ""))
    assert len(lose(memory)) == 1


def test_a_row_without_a_procedure_only_stands_before_commands(memory: Memory) -> None:
    see(memory, 0.0, furnace__setpoint=500.0, hydrogen__flow=0.0)
    see(memory, 0.5, hydrogen__flow=60.0)
    memory.proofs.purged.passed_cm3["air"] = 1e6
    assert tick(memory, 0.5) == ()


def test_a_purge_proof_lost_while_the_gas_flows_trips(memory: Memory) -> None:
    memory.proofs.purged.passed_cm3["air"] = 1e6
    see(memory, 0.1, hydrogen__flow=10.0)
    assert tick(memory, 0.2) == ()
    see(memory, 0.3, box__lid_shut=0.0)
    (trip,) = tick(memory, 0.3)
    assert (trip.cause, trip.channel) == (Cause.INTERLOCK_LOST, "purge")


def test_changes_of_an_interlocks_truth_are_counted_and_nothing_else_is(memory: Memory) -> None:
    counted = []
    for value in (1.0, 0.9, 0.4, 0.4, 0.0, 0.5):
        before = memory.changes
        see(memory, 1.0, box__exhaust=value)
        counted.append(memory.changes - before)
    assert counted == [0, 0, 1, 0, 0, 1]
    before = memory.changes
    see(memory, 1.0, furnace__temperature=30.0, argon__flow=3.0)
    assert memory.changes == before


def test_a_frame_of_readings_must_match_its_channels() -> None:
    memory = running()
    with pytest.raises(ValueError, match="zip"):
        observe(memory, [memory.track("box.exhaust")], [1.0, 2.0], 0.0)
