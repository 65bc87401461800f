"""Making safe while things fail: each write in turn, each port, any moment, any queue, any disk."""

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from copy import copy
from dataclasses import replace
from itertools import permutations
from pathlib import Path

import pytest

from labharness.core.vocabulary import Cause, Command, Ending, Outcome, Request
from labharness.faces.testing.faults import simulated_of
from labharness.instruments.link import LinkLost
from labharness.journal import JournalFailed
from labharness.journal.reading import read
from labharness.lab import Lab, LabPlan
from labharness.line.command import WAITING_MAX
from labharness.line.procedures import StepState, compile_procedures
from labharness.line.trip_response import IN_FLIGHT_S_MAX, DownStage
from labharness.safety.guard import Latch, SafeFrame, Source
from labharness.safety.kernel import EnvelopeInvalid, Mode
from procedures_failing import SHUTDOWN, cause, energised, energising, is_off

PORTS = ("heat", "inert", "hydrogen", "relays", "laser")
PROCEDURES = (SHUTDOWN, "close_all_valves_and_alert", "relieve_pressure", "hold_vacuum")


@pytest.fixture
def lab(short_plan: LabPlan, tmp_path: Path) -> AbstractAsyncContextManager[Lab]:
    """The short line, with mains and light."""
    return energising(short_plan, tmp_path)


def fail_write(lab: Lab, number: int, *, raises: bool) -> list[str]:
    """Let the n-th frame of a procedure fail on its link; return the channels whose frame left."""
    left: list[str] = []
    seen: list[int] = []
    frames = {
        each.request.frame: each.channel
        for procedure in lab.guard.core.procedures.values()
        for each in procedure
    }
    for link in lab.links.values():
        write = link.write

        def failing(data: bytes, write: Callable[[bytes], None] = write) -> None:
            log = lab.guard.core.log or []
            if log and log[-1].source is Source.PROCEDURE and log[-1].frame == data:
                seen.append(1)
                if len(seen) - 1 == number:
                    if raises:
                        raise LinkLost("planted")
                    return
                left.append(frames[data])
            write(data)

        link.write = failing  # type: ignore[method-assign]  # the link, for this test
    return left


STEPS = 17  # of each procedure of the line


@pytest.mark.promise(12)
@pytest.mark.parametrize("raises", [False, True], ids=["lost", "link gone"])
@pytest.mark.parametrize("number", range(0, STEPS, 3))
def test_any_single_write_may_fail_and_the_line_ends_safe_and_verified(
    short_plan: LabPlan, tmp_path: Path, wires: list[Lab], number: int, raises: bool
) -> None:
    fails_and_recovers(short_plan, tmp_path, wires, SHUTDOWN, number, raises)


@pytest.mark.soak
@pytest.mark.parametrize("procedure", PROCEDURES)
def test_every_single_write_of_every_procedure_may_fail(
    short_plan: LabPlan, tmp_path: Path, wires: list[Lab], procedure: str
) -> None:
    for raises in (False, True):
        for number in range(STEPS):
            fails_and_recovers(short_plan, tmp_path, wires, procedure, number, raises)


def fails_and_recovers(
    plan: LabPlan, folder: Path, wires: list[Lab], procedure: str, number: int, raises: bool
) -> None:
    left: list[str] = []

    async def work(lab: Lab) -> None:
        assert not is_off(lab)
        left.extend(fail_write(lab, number, raises=raises))
        left.clear()
        lab.line.trip_response.trip(cause(lab, procedure))
        await lab.line.trip_response.verified()

    lab = energised(plan, folder, work)
    wires.clear()  # a frame that a test takes off the link has no other end
    (verification,) = lab.line.trip_response.verifications
    assert verification.complete, (number, verification.unverified())
    assert is_off(lab)
    assert lab.line.memory.mode is Mode.TRIPPED
    assert Latch(plan.state_dir / "latch.json").trip is not None


@pytest.mark.parametrize("port", PORTS)
async def test_a_port_that_is_gone_leaves_its_own_steps_unknown_and_no_other(
    lab: Lab, port: str
) -> None:
    simulated_of(lab).buses[port].faults.cut = True
    lab.line.trip_response.trip(cause(lab, SHUTDOWN))
    await lab.line.trip_response.verified()
    await lab.line.close()
    (verification,) = lab.line.trip_response.verifications
    frames = lab.guard.core.procedures[SHUTDOWN]
    gone = {frame.channel for frame in frames if frame.port == port}
    assert gone
    for channel, _, _, state in verification.steps:
        wanted = StepState.UNKNOWN if channel in gone else StepState.VERIFIED
        assert state is wanted, (channel, state)
    assert is_off(lab) is (port != "relays"), "the mains' own port is the one that counts"
    bound_s = lab.line.envelope.procedures[SHUTDOWN].verify_s_max
    assert round(verification.within_s, 6) <= bound_s


@pytest.mark.parametrize("after_ms", range(0, 1000, 130))
async def test_a_trip_in_the_middle_of_any_exchange_is_carried_out_in_order_of_hazard(
    lab: Lab, after_ms: int
) -> None:
    await asyncio.sleep(after_ms / 1000)
    before = len(lab.guard.core.log or [])
    lab.line.trip_response.trip(cause(lab, SHUTDOWN))
    await lab.line.trip_response.verified()
    first: dict[str, list[bytes]] = {}
    for sent in (lab.guard.core.log or [])[before:]:
        if sent.source is Source.PROCEDURE:
            first.setdefault(sent.port, []).append(sent.frame)
    for name, frames in first.items():
        wave = [f.request.frame for f in by_step(lab, SHUTDOWN) if f.port == name]
        assert frames[: len(wave)] == wave
    await lab.line.close()
    (verification,) = lab.line.trip_response.verifications
    assert verification.complete


def by_step(lab: Lab, procedure: str) -> list[SafeFrame]:
    return sorted(lab.guard.core.procedures[procedure], key=lambda each: each.step)


@pytest.mark.promise(15)
@pytest.mark.parametrize("order", list(permutations([0, 1, 2])), ids=str)
async def test_of_three_trips_in_any_order_the_worst_is_in_force(
    lab: Lab, short_plan: LabPlan, order: tuple[int, ...]
) -> None:
    causes = (Cause.GAS_LEAK, Cause.OVER_PRESSURE, Cause.COMMUNICATION)
    procedures = lab.line.envelope.procedure_of
    for number in order:
        lab.line.trip_response.trip(cause(lab, procedures[causes[number]], causes[number]))
        lab.line.trip_response.trip(cause(lab, procedures[causes[number]], causes[number]))
        await asyncio.sleep(0.03)
    await lab.line.trip_response.verified()
    await lab.line.close()
    assert lab.line.memory.trip is not None
    assert lab.line.memory.trip.cause is Cause.OVER_PRESSURE
    assert lab.line.trip_response.verifications[-1].procedure == "relieve_pressure"
    assert lab.line.trip_response.verifications[-1].complete
    first = Latch(short_plan.state_dir / "latch.json").trip
    assert first is not None
    assert first.cause is causes[order[0]], "the latch keeps the first: the cause to clear"


# ---- what a trip does not wait for


@pytest.mark.promise(13)
async def test_a_trip_goes_before_ten_thousand_commands(lab: Lab) -> None:
    outcomes: list[Outcome] = []
    argon = Command("argon.setpoint", 100.0, "sccm")
    asked = [asyncio.ensure_future(lab.line.perform(argon)) for _ in range(10_000)]
    await asyncio.sleep(0.05)
    began_s = lab.clock.loop.time()
    frames = len(lab.guard.core.log or [])
    lab.line.trip_response.trip(cause(lab, SHUTDOWN))
    assert lab.clock.loop.time() == began_s, "nothing was waited for"
    sent = (lab.guard.core.log or [])[frames:]
    assert {each.source for each in sent} == {Source.PROCEDURE}
    outcomes.extend(await asyncio.gather(*asked))
    await lab.line.trip_response.verified()
    after = (lab.guard.core.log or [])[frames:]
    assert all(each.source is not Source.PERMIT for each in after), "a command came after"
    await lab.line.close()
    endings = [each.ending for each in outcomes]
    assert len(endings) == 10_000
    assert endings.count(Ending.CONFIRMED) <= 1
    refused = [each for each in outcomes if each.ending is Ending.REFUSED]
    assert len(refused) >= 10_000 - 2
    full = [each for each in refused if "wait for this line already" in each.detail]
    assert len(full) == 10_000 - WAITING_MAX
    (verification,) = lab.line.trip_response.verifications
    assert verification.complete
    assert is_off(lab)


def disk_full(lab: Lab) -> None:
    def full(*args: object, **options: object) -> int:
        raise JournalFailed("no space left on device")

    for name in ("append", "sample", "commit", "flush"):
        setattr(lab.line.journal, name, full)


def latch_unwritable(lab: Lab) -> None:
    (lab.plan.state_dir / "latch.new").mkdir()


@pytest.mark.promise(13)
@pytest.mark.parametrize(
    "trouble", [disk_full, latch_unwritable], ids=["disk full", "latch unwritable"]
)
async def test_a_trip_waits_for_no_disk(
    lab: Lab, short_plan: LabPlan, trouble: Callable[[Lab], None]
) -> None:
    trouble(lab)
    began_s = lab.clock.loop.time()
    lab.line.trip_response.trip(cause(lab, SHUTDOWN))
    assert lab.clock.loop.time() == began_s
    await lab.line.trip_response.verified()
    for name in ("append", "sample", "commit", "flush"):  # the disk is emptied again
        vars(lab.line.journal).pop(name, None)
    await lab.line.close()
    assert lab.line.trip_response.verifications[0].complete
    assert is_off(lab)
    assert lab.guard.core.latched
    for left in short_plan.state_dir.glob("latch.new"):
        left.rmdir()


@pytest.mark.promise(13)
async def test_a_trip_does_not_wait_for_a_planner_in_mid_thought(lab: Lab) -> None:
    async def think() -> None:
        await asyncio.sleep(3600.0)

    thought = asyncio.ensure_future(lab.line.unless_tripped(think()))
    await asyncio.sleep(0.2)
    began_s = lab.clock.loop.time()
    lab.line.trip_response.trip(cause(lab, SHUTDOWN))
    (ended,) = await asyncio.gather(thought, return_exceptions=True)
    assert "test" in str(ended)
    assert lab.clock.loop.time() - began_s < 0.1
    await lab.line.trip_response.verified()
    await lab.line.close()
    assert is_off(lab)


# ---- hold, stop, abort, trip


async def stick_argon(lab: Lab) -> None:
    """Leave the argon controller at 90 sccm, deaf to the serial line."""
    outcome = await lab.line.perform(Command("argon.setpoint", 90.0, "sccm"))
    assert outcome.ending is Ending.CONFIRMED
    simulated_of(lab).faces["argon"].setpoint_source = "A"


@pytest.mark.parametrize("begin", [DownStage.HOLD, DownStage.STOP, DownStage.ABORT])
async def test_a_line_that_obeys_is_brought_down_by_one_stage(lab: Lab, begin: DownStage) -> None:
    reached = await lab.line.bring_down(begin)
    assert reached.stage is begin
    assert reached.passed == ()
    assert is_off(lab) is (begin is not DownStage.HOLD)
    if begin is DownStage.HOLD:
        assert lab.line.memory.mode is Mode.HELD
        refused = await lab.line.perform(Command("argon.setpoint", 60.0, "sccm"))
        assert refused.ending is Ending.REFUSED
        off = await lab.line.perform(Command("box.furnace_contactor", 0.0, ""))
        assert off.ending is Ending.CONFIRMED, "what is always safe passes on a held line"
    assert lab.line.memory.trip is None
    await lab.line.close()
    assert is_off(lab), "the end of the line makes safe"
    assert not lab.guard.core.latched


async def test_a_line_that_does_not_obey_ends_tripped_and_says_by_what(
    lab: Lab, short_plan: LabPlan
) -> None:
    await stick_argon(lab)
    began_s = lab.clock.loop.time()
    reached = await lab.line.bring_down(DownStage.STOP)
    assert reached.stage is DownStage.TRIP
    assert [each.split(":")[0] for each in reached.passed] == ["stop", "abort"]
    assert all("argon.setpoint = 100: mismatch" in each for each in reached.passed)
    assert lab.clock.loop.time() - began_s <= 3 * 11.0
    assert lab.line.memory.trip is not None
    assert lab.line.memory.trip.detail.startswith("not verified by stop: argon.setpoint")
    await lab.line.close()
    assert is_off(lab)
    assert Latch(short_plan.state_dir / "latch.json").trip is not None


async def test_a_line_that_is_closed_without_obeying_latches(lab: Lab, short_plan: LabPlan) -> None:
    await stick_argon(lab)
    await lab.line.close()
    assert Latch(short_plan.state_dir / "latch.json").trip is not None


async def test_a_hold_that_a_command_holds_up_becomes_a_stop(lab: Lab) -> None:
    turn = lab.line._writer.turn
    await turn.acquire()
    began_s = lab.clock.loop.time()
    reached = await lab.line.bring_down()
    assert lab.clock.loop.time() - began_s >= IN_FLIGHT_S_MAX
    assert reached.stage is DownStage.STOP
    assert reached.passed == (f"hold: a command was still in flight after {IN_FLIGHT_S_MAX:g} s",)
    turn.release()
    await lab.line.close()
    assert is_off(lab)


# ---- a refusal is no obedience


@pytest.mark.promise(12)
def test_a_driver_that_does_not_say_what_obedience_is_is_in_no_procedure(
    short_plan: LabPlan,
) -> None:
    by_name = {each.name: each for each in short_plan.instruments}
    compile_procedures(short_plan.envelope, by_name)
    silent = copy(by_name["box"].driver)

    def write(channel: str, value: float) -> tuple[Request, ...]:
        frames = by_name["box"].driver.write(channel, value)
        return tuple(replace(frame, obeyed=b"") for frame in frames)

    silent.write = write  # type: ignore[method-assign]  # as a third party's driver has it
    others = {**by_name, "box": replace(by_name["box"], driver=silent)}
    with pytest.raises(EnvelopeInvalid, match=r"waveshare_relay does not say which reply"):
        compile_procedures(short_plan.envelope, others)


REFUSED = (("relays", "box.furnace_contactor"), ("heat", "furnace.mode"), ("laser", "laser"))


@pytest.mark.promise(12)
@pytest.mark.parametrize(("port", "first"), REFUSED)
@pytest.mark.parametrize("fault", ["write_refused", "write_lost"])
async def test_a_living_line_sends_again_what_was_refused_or_lost(
    short_plan: LabPlan, tmp_path: Path, port: str, first: str, fault: str
) -> None:
    async with energising(short_plan, tmp_path / "run") as lab:
        setattr(simulated_of(lab).buses[port].faults, fault, 1)
        lab.line.trip_response.trip(cause(lab, SHUTDOWN))
        await lab.line.trip_response.verified()
        (verification,) = lab.line.trip_response.verifications
        assert verification.complete, verification.unverified()
        truth = simulated_of(lab).plant.truth()
        assert not any(truth[each] for each in ("furnace_mains", "sulfur_mains", "laser_on"))
    records = read(tmp_path / "run" / "journal.sqlite")
    ends = [dict(each.body) for each in records if each.kind == "safe_frame"]
    (failed, *_) = [each for each in ends if each["error"]]
    assert failed["channel"].startswith(first)
    assert lab.line.memory.mode is Mode.TRIPPED
