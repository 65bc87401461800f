"""Envelopes that are none: what contradicts itself, names what is not there, or limits nothing."""

import math
from collections.abc import Callable
from dataclasses import replace
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from kernel_line import BACKFILL, ENVELOPE, LEAK_CHECK, SHUTDOWN, STUCK, limit, parts, see
from labharness.core.vocabulary import Allowed, Cause, Command, Request, Trip, Until
from labharness.safety.guard import (
    GuardCore,
    Latch,
    LatchUnreadable,
    NotPermitted,
    Permit,
    SafeFrame,
)
from labharness.safety.guard.core import PERMIT_S_MAX, Source
from labharness.safety.guard.port import PortState
from labharness.safety.kernel import (
    Bound,
    Envelope,
    EnvelopeInvalid,
    IllegalMode,
    LeakTight,
    Memory,
    Mode,
    PurgedOf,
    Step,
    begin,
    change,
    conclude,
    judge,
    tick,
)

STRAY = Step(channel="no.such", value=0.0, unit="")


def interlock(**fields: Any) -> dict[str, Any]:
    return {"interlocks": (replace(ENVELOPE.interlocks[0], **fields),)}


def trip_row(**fields: Any) -> dict[str, Any]:
    return {"trips": (replace(ENVELOPE.trips[0], **fields),)}


def doubt(**fields: Any) -> dict[str, Any]:
    return {"plausible": (replace(STUCK, **fields),)}


def watch(**fields: Any) -> dict[str, Any]:
    channel = "box.exhaust"
    return {"watches": {**ENVELOPE.watches, channel: replace(ENVELOPE.watches[channel], **fields)}}


def purging(**fields: Any) -> dict[str, Any]:
    return {"purge": replace(ENVELOPE.purge, **fields)}


def filling(**fields: Any) -> dict[str, Any]:
    return purging(backfill=replace(BACKFILL, **fields))


def checking(**fields: Any) -> dict[str, Any]:
    return purging(leak_check=replace(LEAK_CHECK, **fields))


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda: interlock(guards=("no.such",)), "guards 'no.such'"),
        (lambda: interlock(guards=()), "guards nothing"),
        (lambda: interlock(require=(Bound("no.such", low=1.0),)), "relies on 'no.such'"),
        (lambda: interlock(forbid=(Bound("no.such", low=1.0),)), "relies on 'no.such'"),
        (lambda: interlock(during=Bound("no.such", low=1.0)), "relies on 'no.such'"),
        (lambda: interlock(require=(PurgedOf("neon", 5.0),)), "asks 'neon'"),
        (lambda: interlock(require=(PurgedOf("air", 0.0),)), "volumes is 0.0"),
        (lambda: interlock(require=(PurgedOf("air", math.nan),)), "volumes is nan"),
        (lambda: interlock(require=(LeakTight("hydrogen"),)), "leak check since 'hydrogen'"),
        (lambda: interlock(on_loss="no such"), "runs 'no such'"),
        (lambda: interlock(above=math.nan), "above nan"),
        (lambda: interlock(above=math.inf), "below -inf"),
        (lambda: interlock(upto=0.0), "upto 0.0"),
        (lambda: interlock(upto=math.nan), "upto nan"),
        (lambda: trip_row(channel="no.such"), "watches 'no.such'"),
        (lambda: trip_row(procedure="no such"), "runs 'no such'"),
        (lambda: trip_row(low=math.nan), "is empty"),
        (lambda: trip_row(low=1050.0), "is empty"),
        (lambda: doubt(channel="no.such"), "watches 'no.such'"),
        (lambda: doubt(agrees_with="no.such"), "relies on 'no.such'"),
        (lambda: doubt(during=(Bound("no.such", low=1.0),)), "relies on 'no.such'"),
        (lambda: doubt(expects=Bound("no.such", low=1.0)), "relies on 'no.such'"),
        (lambda: doubt(procedure="no such"), "runs 'no such'"),
        (lambda: doubt(found_s=0.0), "found_s is 0.0"),
        (lambda: doubt(found_s=math.nan), "found_s is nan"),
        (lambda: watch(stale_s=0.0), "stale_s is 0.0"),
        (lambda: watch(stale_s=math.inf), "stale_s is inf"),
        (lambda: watch(stale_s=math.nan), "stale_s is nan"),
        (lambda: watch(procedure="no such"), "runs 'no such'"),
        (lambda: purging(volume_cm3=0.0), "volume_cm3 is 0.0"),
        (lambda: purging(volume_cm3=-1.0), "volume_cm3 is -1.0"),
        (lambda: purging(inert={"no.such": "argon.setpoint"}), "counts 'no.such'"),
        (lambda: purging(inert={"argon.flow": "no.such"}), "counts 'no.such'"),
        (
            lambda: purging(
                present={**ENVELOPE.purge.present, "neon": (Bound("no.such", low=1.0),)}
            ),
            "seen by 'no.such'",
        ),
        (lambda: filling(channel="no.such"), "pressure is seen by 'no.such'"),
        (lambda: filling(low=0.0), "low is 0.0"),
        (lambda: filling(unmeasured_max=0.0), "unmeasured_max is 0.0"),
        (lambda: filling(cycles=1), "1 backfills do not dilute by 1000"),
        (lambda: filling(cycles=0, dilution_min=0.0), "cycles is 0"),
        (lambda: filling(high=5.0, dilution_min=0.0), "do not dilute"),
        (lambda: filling(high=math.nan), "do not dilute"),
        (lambda: checking(channel="no.such"), "pressure is seen by 'no.such'"),
        (lambda: checking(isolated=(Bound("no.such", high=0.0),)), "relies on 'no.such'"),
        (lambda: purging(outside="hydrogen"), "asks for a leak check since 'air'"),
        (lambda: purging(leak_check=None), "asks for a leak check since 'air'"),
        (lambda: {**purging(outside="neon"), "interlocks": ()}, "is 'neon'"),
        (lambda: checking(over_s=0.0), "over_s is 0.0"),
        (
            lambda: {"procedures": {"shutdown": replace(SHUTDOWN, steps=(STRAY,))}},
            "sets 'no.such'",
        ),
        (
            lambda: {"procedures": {"shutdown": replace(SHUTDOWN, instead="no such")}},
            "gives way to 'no such'",
        ),
        (
            lambda: {"procedures": {"shutdown": replace(SHUTDOWN, unless=Bound("no.such", 1.0))}},
            "no.such",
        ),
        (
            lambda: {"procedures": {"shutdown": replace(SHUTDOWN, when=(Bound("no.such", 1.0),))}},
            "asks 'no.such'",
        ),
    ],
)
def test_an_envelope_that_contradicts_itself_is_refused(
    change: Callable[[], dict[str, Any]], says: str
) -> None:
    with pytest.raises(EnvelopeInvalid) as refused:
        Envelope(**{**parts(), **change()})
    assert says in str(refused.value)


def test_the_envelope_these_are_made_from_is_sound() -> None:
    assert Envelope(**{**parts(), **interlock(), **trip_row(), **doubt(), **watch()}).line == "test"
    purges: tuple[dict[str, Any], ...] = (purging(), filling(), checking())
    assert all(Envelope(**{**parts(), **each}).purge == ENVELOPE.purge for each in purges)


@pytest.mark.parametrize(
    ("low", "high", "cycles", "dilution"), [(70.0, 700.0, 3, 1000.0), (10.0, 15.0, 1, 0.5)]
)
def test_backfills_that_dilute_just_enough_are_a_proof(
    low: float, high: float, cycles: int, dilution: float
) -> None:
    fields = {"low": low, "high": high, "cycles": cycles, "dilution_min": dilution}
    fill = Envelope(**{**parts(), **filling(**fields)}).purge.backfill
    assert fill is not None
    assert fill.cycles == cycles


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"low": 2.0, "high": 1.0}, "empty or endless"),
        ({"low": math.nan}, "empty or endless"),
        ({"high": math.nan}, "empty or endless"),
        ({"low": -math.inf}, "empty or endless"),
        ({"high": math.inf}, "empty or endless"),
        ({"step_max": 0.0}, "not positive"),
        ({"step_max": math.nan}, "not positive"),
        ({"always_safe": (0.0, 1.5)}, "always_safe"),
        ({"always_safe": (math.nan,)}, "always_safe"),
    ],
)
def test_a_limit_that_limits_nothing_is_refused(fields: dict[str, Any], says: str) -> None:
    with pytest.raises(EnvelopeInvalid, match=says):
        limit("a.b", "", **{"low": 0.0, "high": 1.0, **fields})


@pytest.mark.parametrize(
    ("low", "high"),
    [
        (-math.inf, math.inf),
        (math.inf, math.inf),
        (1.0, 0.5),
        (math.nan, 1.0),
        (1.0, math.nan),
        (math.inf, 1.0),
    ],
)
def test_a_bound_that_bounds_nothing_is_refused(low: float, high: float) -> None:
    with pytest.raises(EnvelopeInvalid, match="bounds nothing"):
        Bound("a.b", low, high)


def test_a_limit_may_be_one_value_and_a_step_is_needed_unless_it_says_otherwise() -> None:
    assert limit("a.b", "", 1.0, 1.0).high == 1.0
    assert not STRAY.optional


def test_a_bound_may_be_a_point_and_may_be_about_zero() -> None:
    assert Bound("a.b", 1.0, 1.0).holds(1.0)
    assert Bound("a.b", -5.0, 5.0).holds(5.0)


def test_rows_of_an_envelope_say_themselves() -> None:
    assert str(Bound("a.b", low=1.5)) == "a.b at least 1.5"
    assert str(Bound("a.b", high=1.5)) == "a.b at most 1.5"
    assert str(Bound("a.b", 1.0, 2.0)) == "a.b from 1 to 2"
    assert str(PurgedOf("hydrogen", 5.0)) == "tube purged of hydrogen by 5 volumes"
    purged = "tube purged of air by 5 volumes, from which oxygen is inferred"
    assert str(PurgedOf("air", 5.0)) == purged
    assert str(LeakTight("air")) == "tube leak-checked since it was open to air"


READ = Request(b"R\r", Until(b"\r"), 1.0)


SAFE = SafeFrame(0, "p", Request(b"SAFE\r", Until(b"\r"), 1.0), "furnace.setpoint", 20.0)


SETS = ("box.contactor", "hydrogen.setpoint", "argon.setpoint", "furnace.setpoint", "oven.off")


class Line(RuleBasedStateMachine):
    """A line's kernel and its guard, without the shell between them."""

    def __init__(self) -> None:
        super().__init__()
        self.memory = Memory(ENVELOPE)
        self.core = GuardCore({"p": {READ.frame}}, {"shutdown": (SAFE,)})
        self.core.log = []
        self.now = 0.0
        self.held: list[tuple[Permit, Request]] = []
        self.used: list[tuple[Permit, Request]] = []
        self.permitted: list[bytes] = []
        self.changes = 0

    @rule(wait_s=st.sampled_from([0.0, 0.1, 1.0, 2.0, 6.0]))
    def time_passes(self, wait_s: float) -> None:
        self.now += wait_s
        port = self.core.ports["p"]
        port.expire(self.now)

    @rule(
        exhaust=st.sampled_from([0.0, 1.0]),
        lid=st.sampled_from([0.0, 1.0]),
        hydrogen=st.sampled_from([0.0, 10.0]),
        temperature=st.sampled_from([25.0, 700.0, 1100.0, math.nan]),
        purge=st.booleans(),
    )
    def readings_arrive(
        self, exhaust: float, lid: float, hydrogen: float, temperature: float, purge: bool
    ) -> None:
        if purge and lid:
            self.memory.proofs.purged.passed_cm3["air"] = 1e6
        trips = see(
            self.memory,
            self.now,
            box__exhaust=exhaust,
            box__lid_shut=lid,
            hydrogen__flow=hydrogen,
            furnace__temperature=temperature,
            argon__flow=0.0,
            furnace__setpoint=25.0,
        )
        if self.memory.changes != self.changes:
            self.changes = self.memory.changes
            self.core.new_epoch()
        for each in trips:
            self.answer(each)

    @rule()
    def the_clock_ticks(self) -> None:
        for each in tick(self.memory, self.now):
            self.answer(each)

    def answer(self, trip: Trip) -> None:
        if trip.procedure and self.memory.mode is not Mode.DISARMED:
            self.core.trip(trip.procedure)
            self.memory.mode = Mode.TRIPPED

    @rule(to=st.sampled_from(Mode))
    def the_mode_is_to_change(self, to: Mode) -> None:
        if to is Mode.TRIPPED or (self.memory.mode is Mode.TRIPPED and self.core.latched):
            return  # these two are the guard's
        try:
            self.memory.mode = change(self.memory.mode, to)
        except IllegalMode:
            return
        self.core.new_epoch()
        if to is Mode.ARMING:
            self.core.arm()
        if to is Mode.DISARMED:
            self.core.disarm()

    @rule()
    def a_person_resets(self) -> None:
        if self.memory.mode is Mode.TRIPPED:
            self.core.reset()
            self.core.disarm()
            self.memory.mode = change(self.memory.mode, Mode.DISARMED)

    @rule(channel=st.sampled_from(SETS), value=st.sampled_from([0.0, 1.0, 50.0, 400.0, math.nan]))
    def a_command_is_asked(self, channel: str, value: float) -> None:
        command = Command(channel, value, ENVELOPE.limits[channel].unit)
        verdict = judge(command, self.memory, self.now)
        if not isinstance(verdict, Allowed):
            return
        assert self.memory.mode in (Mode.ARMING, Mode.HELD, Mode.RUNNING)
        request = Request(f"{channel}={value}\r".encode(), Until(b"\r"), 1.0)
        permit = self.core.permit("p", request.frame, self.now)
        self.held.append((permit, request))
        begin(self.memory, command)
        conclude(self.memory, command)

    @precondition(lambda self: self.held)
    @rule(data=st.data())
    def a_permit_is_used(self, data: st.DataObject) -> None:
        permit, request = data.draw(st.sampled_from(self.held))
        port = self.core.ports["p"]
        free = port.state is PortState.IDLE and not port.safe
        good = (
            permit.epoch == self.core.epoch
            and self.now - (permit.expires_s - PERMIT_S_MAX) <= PERMIT_S_MAX
            and (permit, request) not in self.used
        )
        try:
            frame = self.core.send("p", request, self.now, permit)
        except NotPermitted:
            assert not (free and good), "a sound permit was refused"
            if free:
                self.used.append((permit, request))  # refused once, void for ever
            return
        assert free
        assert good, "a used, old or voided permit was taken"
        self.used.append((permit, request))
        self.permitted.append(frame)

    @precondition(lambda self: self.held)
    @rule(data=st.data(), byte=st.integers(0, 5))
    def a_permit_is_bent(self, data: st.DataObject, byte: int) -> None:
        permit, request = data.draw(st.sampled_from(self.held))
        bent = bytearray(request.frame)
        bent[byte] ^= 1
        other = Request(bytes(bent), Until(b"\r"), 1.0)
        with pytest.raises(NotPermitted):
            self.core.send("p", other, self.now, permit)
        if self.core.ports["p"].state is PortState.IDLE and not self.core.ports["p"].safe:
            self.used.append((permit, request))

    @rule()
    def the_guard_makes_safe(self) -> None:
        self.core.send_safe("p", self.now)

    @rule()
    def the_reply_comes(self) -> None:
        self.core.ports["p"].feed(b"OK\r", self.now)

    @invariant()
    def nothing_left_that_was_not_allowed(self) -> None:
        log = self.core.log or []
        assert [s.frame for s in log if s.source is Source.PERMIT] == self.permitted
        assert all(s.frame == SAFE.request.frame for s in log if s.source is Source.PROCEDURE)

    @invariant()
    def a_latched_line_gives_no_permit(self) -> None:
        if self.core.latched:
            with pytest.raises(NotPermitted):
                self.core.permit("p", b"x", self.now)
            assert self.memory.mode is Mode.TRIPPED


Line.TestCase.settings = settings(max_examples=40, stateful_step_count=40, deadline=None)


TestKernelAndGuard = Line.TestCase


def trip_of(cause: Cause) -> Trip:
    return Trip(cause, "p", "a.b", 1.0, 2.0, cause.value)


@pytest.mark.promise(15)
def test_every_cause_has_a_rank_of_its_own_and_only_the_worst_of_a_set_counts() -> None:
    ranks = [cause.rank for cause in Cause]
    assert ranks == list(range(len(Cause)))
    for first in Cause:
        for second in Cause:
            worst = min(first, second, key=lambda cause: cause.rank)
            assert worst is min(second, first, key=lambda cause: cause.rank)
            assert min((first, first), key=lambda cause: cause.rank) is first


@pytest.mark.promise(14)
def test_a_latch_cut_at_any_byte_stays_latched(tmp_path: Path) -> None:
    path = tmp_path / "latch.json"
    Latch(path).close(trip_of(Cause.GAS_LEAK))
    whole = path.read_bytes()
    for cut in range(len(whole)):
        path.write_bytes(whole[:cut])
        with pytest.raises(LatchUnreadable, match="stays latched"):
            Latch(path)
    path.write_bytes(whole)
    assert Latch(path).trip == trip_of(Cause.GAS_LEAK)


def test_three_trips_in_any_order_latch_the_first_and_stay(tmp_path: Path) -> None:
    causes = (Cause.STOP_REQUEST, Cause.OVER_PRESSURE, Cause.GAS_LEAK)
    for number, order in enumerate(permutations(causes)):
        latch = Latch(tmp_path / f"{number}.json")
        for cause in (*order, *order):
            latch.close(trip_of(cause))
        assert Latch(tmp_path / f"{number}.json").trip == trip_of(order[0])


@pytest.mark.promise(14)
def test_there_is_one_way_from_tripped_to_running_and_it_has_four_steps() -> None:
    ways: list[list[Mode]] = []

    def walk(way: list[Mode]) -> None:
        if way[-1] is Mode.RUNNING:
            ways.append(way)
            return
        for to in Mode:
            if to in way:
                continue
            try:
                walk([*way, change(way[-1], to)])
            except IllegalMode:
                continue

    walk([Mode.TRIPPED])
    assert ways == [[Mode.TRIPPED, Mode.DISARMED, Mode.ARMING, Mode.HELD, Mode.RUNNING]]


@pytest.mark.promise(5)
def test_a_guard_that_was_never_armed_gives_no_permit_and_a_permit_lives_two_seconds() -> None:
    core = GuardCore({"p": {READ.frame}}, {"shutdown": (SAFE,)})
    with pytest.raises(NotPermitted, match="not armed"):
        core.permit("p", b"x", 0.0)
    core.arm()
    assert core.permit("p", b"x", 10.0).expires_s == 12.0
