"""One suite for both shells of the guard: on the loop, and in a process of its own.

Devices stand behind pseudo-terminals, and time is real; finer points of the loop's shell are in
``test_guard_shell.py`` on virtual time.
"""

import asyncio
import os
import signal
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from guard_rig import BOUND_S, ON, READ, SAFE, SAFE_FRAMES, SHUT, GuardBench, arming, bench
from labharness.core.clock import PacedLoop
from labharness.core.vocabulary import BadReply, Cause, Request, Trip, Until
from labharness.instruments.link import Link
from labharness.instruments.link.serial_port import SerialLink
from labharness.line.exchanges import Exchanges, NoReply
from labharness.safety.guard import Latch, NotPermitted, Permit
from labharness.safety.guard.remote import RemoteGuard
from labharness.safety.guard.shell import LoopGuard

LEAK = Trip(Cause.GAS_LEAK, "stop", "h2.concentration", 1200.0, 1.0, "leak")

WHO = replace(READ, frame=b"who\r")
FORM = replace(WHO, obeyed=b"ok who\r")

AnyGuard = LoopGuard | RemoteGuard
Enter = Callable[[], AbstractAsyncContextManager[AnyGuard]]


@pytest.fixture
def loop() -> asyncio.AbstractEventLoop:
    return PacedLoop(1.0)


@pytest.fixture
def steps() -> tuple[Request, ...]:
    """What is asked after each exchange, to be in step."""
    return ()


@pytest.fixture(params=["loop", "process"])
def enter(request: pytest.FixtureRequest, rig: GuardBench, steps: tuple[Request, ...]) -> Enter:
    """Open a guard of either kind, and close it."""

    @asynccontextmanager
    async def entered() -> AsyncIterator[AnyGuard]:
        armed = rig.armed = arming(rig.devices, steps=steps)
        if request.param == "loop":
            links: dict[str, Link] = {
                port.name: SerialLink(port.path, port.baud) for port in armed.ports
            }
            latch = Latch(rig.state_dir / "latch.json")
            guard: AnyGuard = LoopGuard(armed.core(), links, latch)
            opened = links
        else:
            command = (sys.executable, "-m", "labharness.faces.cli", "guard", str(rig.lab_file))
            remote = RemoteGuard(armed, rig.state_dir, (*command, "--once"))
            guard = remote
            opened = {port.name: remote.link(port.name) for port in armed.ports}
        try:
            async with asyncio.timeout(BOUND_S):
                for link in opened.values():
                    await link.open()
                yield guard
        finally:
            guard.close()
            if isinstance(guard, RemoteGuard):  # it would repeat what is unanswered for an hour
                guard._child.end()

    return entered


@pytest.fixture
def guard(enter: Enter) -> AbstractAsyncContextManager[AnyGuard]:
    return enter()


def exchanges(guard: AnyGuard) -> Exchanges:
    return Exchanges(guard, asyncio.get_running_loop())


async def command(guard: AnyGuard, request: Request = ON, port: str = "heat") -> bytes:
    async with exchanges(guard).lease(port) as lease:
        await lease.settle()
        return await lease.send(request, command=True)


async def end_of(guard: AnyGuard, permit: Permit) -> str:
    """Return the error of an exchange under this permit, whether it is told at once or later."""
    ended: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    try:
        guard.exchange("heat", ON, permit, lambda reply, error: ended.set_result(error))
    except NotPermitted as why:
        return str(why)
    return await ended


async def heard(rig: GuardBench, port: str, count: int) -> None:
    while len(rig.frames(port)) < count:  # noqa: ASYNC110 - the device is in a thread
        await asyncio.sleep(0.002)


async def test_a_reply_reaches_the_one_who_asked(guard: AnyGuard, rig: GuardBench) -> None:
    assert await exchanges(guard).ask("heat", READ, bytes) == b"ok read\r"
    assert rig.frames("heat") == [READ.frame]


async def test_many_users_share_a_port_in_the_order_of_asking(
    guard: AnyGuard, rig: GuardBench
) -> None:
    turns: list[int] = []

    async def ask(number: int) -> None:
        await exchanges(guard).ask("gas", READ, bytes)
        turns.append(number)

    await asyncio.gather(*(ask(number) for number in range(8)))
    assert turns == list(range(8))
    assert rig.frames("gas") == [READ.frame] * 8


async def test_what_is_no_read_and_has_no_permit_leaves_no_byte(
    guard: AnyGuard, rig: GuardBench
) -> None:
    for request in (ON, SHUT[0], replace(READ, frame=b"READ\r")):
        with pytest.raises(NoReply, match="is not a read of port heat"):
            await exchanges(guard).ask("heat", request, bytes)
    assert await exchanges(guard).ask("heat", READ, bytes)
    assert rig.frames("heat") == [READ.frame]


async def test_a_command_passes_while_armed_and_not_before_or_after(
    guard: AnyGuard, rig: GuardBench
) -> None:
    with pytest.raises(NoReply, match="not armed"):
        await command(guard)
    await guard.arm()
    assert await command(guard) == b"ok heat on\r"
    assert await command(guard) == b"ok heat on\r"
    guard.disarm()
    with pytest.raises(NoReply, match="not armed"):
        await command(guard)
    assert rig.frames("heat") == [ON.frame] * 2


async def test_a_new_epoch_voids_a_permit_and_lets_the_next_one_pass(
    guard: AnyGuard, rig: GuardBench
) -> None:
    await guard.arm()
    permit = guard.permit("heat", ON)
    guard.new_epoch()
    assert await end_of(guard, permit) != ""
    assert await command(guard) == b"ok heat on\r"
    guard.disarm()
    assert rig.frames("heat") == [ON.frame]


async def test_silence_ends_at_its_time_out_and_the_port_comes_back(
    guard: AnyGuard, rig: GuardBench
) -> None:
    rig.devices.of["heat"].mute = True
    began_s = time.monotonic()
    with pytest.raises(NoReply, match=f"no reply within {READ.timeout_s:g} s"):
        await exchanges(guard).ask("heat", READ, bytes)
    assert READ.timeout_s <= time.monotonic() - began_s < 1.8
    rig.devices.of["heat"].mute = False
    assert await exchanges(guard).ask("heat", READ, bytes) == b"ok read\r"
    assert len(rig.frames("heat")) == 2


async def test_a_trip_sends_its_first_wave_on_all_ports_and_then_the_rest_and_latches(
    guard: AnyGuard, rig: GuardBench
) -> None:
    told: list[tuple[str, str]] = []
    guard.on_safe_frame = lambda frame, error: told.append((frame.channel, error))
    await guard.arm()
    guard.trip(LEAK)
    await heard(rig, "heat", 2)
    await heard(rig, "gas", 2)
    starts = [rig.devices.of[port].heard[0][0] for port in ("heat", "gas")]
    assert abs(starts[0] - starts[1]) < 0.02
    while len(told) < 4:  # noqa: ASYNC110 - the guard is another process
        await asyncio.sleep(0.002)
    assert sorted(told) == sorted((each.channel, "") for each in SAFE)
    with pytest.raises(NoReply, match="latched"):
        await command(guard)
    assert await exchanges(guard).ask("heat", READ, bytes), "reading goes on"
    with pytest.raises(NotPermitted, match="named person"):
        await guard.arm()
    guard.disarm()
    guard.close()
    assert rig.frames("heat") == [*SAFE_FRAMES["heat"], READ.frame]
    assert rig.frames("gas") == SAFE_FRAMES["gas"]
    assert Latch(rig.state_dir / "latch.json").trip == LEAK


async def test_a_trip_waits_for_the_exchange_in_flight_and_for_nothing_else(
    guard: AnyGuard, rig: GuardBench
) -> None:
    users = [asyncio.ensure_future(exchanges(guard).ask("heat", READ, bytes)) for _ in range(20)]
    await heard(rig, "heat", 1)
    guard.trip(LEAK)
    await asyncio.gather(*users)
    assert rig.frames("heat")[1:3] == SAFE_FRAMES["heat"]


async def test_a_dead_instrument_does_not_stop_a_procedure(
    guard: AnyGuard, rig: GuardBench
) -> None:
    told: dict[str, str] = {}
    guard.on_safe_frame = lambda frame, error: told.update({frame.channel: error})
    rig.devices.of["heat"].mute = True
    guard.trip(LEAK)
    while len(told) < 4:  # noqa: ASYNC110 - the guard is another process
        await asyncio.sleep(0.002)
    assert "no reply" in told["furnace.setpoint"]
    assert "no reply" in told["box.contactor"]
    assert told["hydrogen.setpoint"] == told["argon.setpoint"] == ""
    assert rig.frames("heat")[:2] == SAFE_FRAMES["heat"], (
        "a process goes on with them when its harness leaves"
    )


async def test_single_steps_are_sent_again_in_their_order(guard: AnyGuard, rig: GuardBench) -> None:
    guard.repeat([SAFE[3], SAFE[1]])
    await heard(rig, "gas", 2)
    assert await exchanges(guard).ask("gas", READ, bytes), "and the port comes back"
    assert rig.frames("gas") == [*SAFE_FRAMES["gas"], READ.frame]


async def test_a_reset_opens_the_latch_and_is_no_start(guard: AnyGuard, rig: GuardBench) -> None:
    guard.trip(LEAK)
    await heard(rig, "heat", 2)
    await guard.reset()
    assert guard.latch.trip is None
    with pytest.raises(NoReply, match="not armed"):
        await command(guard)
    await guard.arm()
    assert await command(guard) == b"ok heat on\r"
    guard.disarm()
    assert not (rig.state_dir / "latch.json").exists()


@pytest.mark.promise(14)
async def test_the_next_guard_finds_a_latch_that_was_never_written_until_its_reset(
    enter: Enter, rig: GuardBench
) -> None:
    async with enter() as guard:
        await guard.arm()
        assert await command(guard)
        (rig.state_dir / "latch.new").mkdir()
        guard.trip(LEAK)
        await heard(rig, "heat", 3)
        guard.disarm()
        while not (guard.latch.write_error and guard.ready("heat") and guard.ready("gas")):  # noqa: ASYNC110 - the guard is another process
            await asyncio.sleep(0.002)
    assert not (rig.state_dir / "latch.json").exists()
    (rig.state_dir / "latch.new").rmdir()
    async with enter() as guard:
        assert guard.latch.trip is not None
        with pytest.raises(NotPermitted, match="named person"):
            await guard.arm()
        await guard.reset()
        await guard.arm()
        assert await command(guard) == b"ok heat on\r"
        guard.disarm()
    assert not (rig.state_dir / "latch.json").exists()
    assert not (rig.state_dir / "guard.armed").exists()


async def test_a_closed_guard_sends_nothing(guard: AnyGuard, rig: GuardBench) -> None:
    guard.close()
    assert not guard.ready("heat")
    with pytest.raises(NotPermitted, match="closed"):
        guard.exchange("heat", READ, None, lambda reply, error: None)
    assert rig.frames("heat") == []


async def test_a_permit_carries_the_reply_rule_of_its_request(
    guard: AnyGuard, rig: GuardBench
) -> None:
    await guard.arm()
    other = replace(ON, reply=Until(b"\r", b"no"))
    with pytest.raises(NoReply, match="bad reply"):
        await command(guard, other)
    guard.disarm()
    assert rig.frames("heat") == [ON.frame]


# ---- in step


async def ask_until_right(guard: AnyGuard) -> tuple[str, float]:
    """Ask until an answer counts, twice at most; return the first error, and the time."""
    began_s, why = time.monotonic(), ""
    for _ in range(2):
        try:
            assert await exchanges(guard).ask("heat", READ, bytes) == b"ok read\r"
        except NoReply as error:
            why = str(error)
        else:
            break
    return why, time.monotonic() - began_s


@pytest.mark.promise(76)
@pytest.mark.parametrize("steps", [(FORM,)])
async def test_a_stray_line_is_found_by_the_step_after_it(guard: AnyGuard, rig: GuardBench) -> None:
    rig.devices.of["heat"].stray = b"0\r"
    why, took_s = await ask_until_right(guard)
    assert "the answer to another" in why
    assert took_s >= READ.timeout_s
    assert (await ask_until_right(guard))[0] == ""
    assert rig.frames("heat") == [READ.frame, FORM.frame] * 3


@pytest.mark.promise(76)
@pytest.mark.parametrize("steps", [(WHO,)])
async def test_an_answer_that_is_always_the_same_is_learnt_and_then_proves(
    guard: AnyGuard, rig: GuardBench
) -> None:
    _, took_s = await ask_until_right(guard)
    assert took_s >= WHO.timeout_s, "nothing came after it"
    _, took_s = await ask_until_right(guard)
    assert took_s < WHO.timeout_s
    rig.devices.of["heat"].stray = b"ok read\r"
    assert "the answer to another" in (await ask_until_right(guard))[0]
    assert rig.frames("heat") == [READ.frame, WHO.frame] * 4


@pytest.mark.promise(76)
async def test_a_port_on_which_bytes_came_unasked_is_asked_when_it_was_quiet_for_a_time_out(
    guard: AnyGuard, rig: GuardBench
) -> None:
    assert (await ask_until_right(guard))[0] == ""
    os.write(rig.devices.of["heat"].master, b"ok read\r")
    while guard.ready("heat"):  # noqa: ASYNC110 - the guard is another process
        await asyncio.sleep(0.002)
    _, took_s = await ask_until_right(guard)
    assert took_s >= 0.9 * READ.timeout_s
    assert rig.frames("heat") == [READ.frame] * 2


@pytest.mark.promise(76)
async def test_a_port_whose_reply_cannot_be_read_is_asked_when_it_was_quiet_for_a_time_out(
    guard: AnyGuard, rig: GuardBench
) -> None:
    def decode(reply: bytes) -> bytes:
        raise BadReply("it is no number")

    with pytest.raises(BadReply):
        await exchanges(guard).ask("heat", READ, decode)
    _, took_s = await ask_until_right(guard)
    assert took_s >= 0.9 * READ.timeout_s
    assert rig.frames("heat") == [READ.frame] * 2


@pytest.mark.promise(76)
@pytest.mark.parametrize("steps", [(WHO,)])
async def test_making_safe_does_not_wait_for_the_quiet_after_a_step(
    guard: AnyGuard, rig: GuardBench
) -> None:
    reading = asyncio.ensure_future(exchanges(guard).ask("heat", READ, bytes))
    await heard(rig, "heat", 2)
    await asyncio.sleep(0.15)  # its answer takes 25 ms
    guard.trip(LEAK)
    tripped_s = time.monotonic()
    await heard(rig, "heat", 3)
    assert rig.devices.of["heat"].heard[2][0] - tripped_s < 0.15
    with pytest.raises(NoReply, match="making safe went before"):
        await reading
    assert rig.frames("heat")[:3] == [READ.frame, WHO.frame, SHUT[0].frame]


@pytest.mark.promise(76)
def test_a_guard_hears_what_came_unasked_before_it_asks(tmp_path: Path) -> None:
    with bench(tmp_path) as rig:
        process = rig.start("--once")
        caller = rig.call()
        assert caller.send(None, READ)["reply"] == b"ok read\r".hex()
        process.send_signal(signal.SIGSTOP)
        os.waitpid(process.pid, os.WUNTRACED)  # until it stands still
        caller.say(do="send", port="heat", number=8, permit=None, frame=READ.frame.hex())
        os.write(rig.devices.of["heat"].master, b"0\r")
        time.sleep(0.05)
        process.send_signal(signal.SIGCONT)
        ended = caller.hear("ended")
        assert ended["reply"] is None
        assert "port heat is in an exchange" in str(ended["error"])
        assert rig.frames("heat") == [READ.frame], "the second was not sent"
        caller.leave()
