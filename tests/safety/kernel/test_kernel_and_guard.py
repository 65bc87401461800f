"""Kernel and guard core together, driven at random: nothing leaves that was not just allowed."""

import math
from itertools import permutations
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from kernel_line import ENVELOPE, see
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
from labharness.safety.kernel import IllegalMode, Memory, Mode, begin, change, conclude, judge, tick

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


# ---- the latch and its rank


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
