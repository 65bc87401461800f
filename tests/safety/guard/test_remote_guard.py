"""The harness's end of the guard process: finding, starting, replacing and losing a guard."""

import asyncio
import os
import signal
import sys
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import pytest

from guard_rig import BOUND_S, ON, READ, SHUT, GuardBench
from labharness.core.clock import PacedLoop, run
from labharness.core.vocabulary import Cause, Trip
from labharness.instruments.link import LinkLost
from labharness.line.exchanges import Exchanges, NoReply
from labharness.safety.guard import NotPermitted
from labharness.safety.guard.armed import Armed
from labharness.safety.guard.remote import RemoteGuard


def slay(rig: GuardBench, guard: RemoteGuard) -> None:
    assert guard._child.pid is not None
    os.kill(guard._child.pid, signal.SIGKILL)
    rig.unlock()


def with_guard(
    rig: GuardBench,
    work: Callable[[RemoteGuard], Awaitable[None]],
    armed: Armed | None = None,
    before: tuple[str, ...] = (),
) -> None:
    async def main() -> None:
        command = (
            sys.executable,
            "-m",
            "labharness.faces.cli",
            "guard",
            str(rig.lab_file),
            "--once",
        )
        guard = RemoteGuard(armed or rig.armed, rig.state_dir, (*before, *command))
        try:
            async with asyncio.timeout(BOUND_S):
                await work(guard)
        finally:
            guard.close()

    run(main(), PacedLoop(1.0))


async def ask(guard: RemoteGuard) -> bytes:
    return await Exchanges(guard, asyncio.get_running_loop()).ask("heat", READ, bytes)


def test_a_guard_is_started_where_none_runs_and_ends_with_its_run(rig: GuardBench) -> None:
    pids: list[int] = []

    async def work(guard: RemoteGuard) -> None:
        (rig.state_dir / "armed.json").unlink()
        await guard.open()
        await guard.open()
        assert guard._child.pid is not None
        pids.append(guard._child.pid)
        assert os.getsid(pids[0]) == pids[0], "a Ctrl-C at the terminal would reach it"
        assert await ask(guard) == b"ok read\r"

    with_guard(rig, work)
    with pytest.raises(ProcessLookupError):
        os.kill(pids[0], 0)


def test_a_guard_that_somebody_keeps_is_used_and_stays(rig: GuardBench) -> None:
    kept = rig.start()
    rig.call().leave()

    async def work(guard: RemoteGuard) -> None:
        await guard.open()
        assert guard._child.pid is None
        assert await ask(guard) == b"ok read\r"

    for _ in range(2):
        with_guard(rig, work)
    assert kept.poll() is None


def test_a_guard_that_cannot_begin_says_why(rig: GuardBench) -> None:
    ports = tuple(replace(port, path="/dev/no-such-port") for port in rig.armed.ports)

    async def work(guard: RemoteGuard) -> None:
        with pytest.raises(LinkLost, match="port heat: serial /dev/no-such-port does not open"):
            await guard.open()
        with pytest.raises(NoReply, match="not reached yet"):
            await ask(guard)

    with_guard(rig, work, replace(rig.armed, ports=ports))


@pytest.mark.promise(3)
def test_a_link_that_does_not_open_is_lost_alone_and_keeps_the_line_from_being_armed(
    rig: GuardBench,
) -> None:
    heat, gas = rig.armed.ports

    async def work(guard: RemoteGuard) -> None:
        await guard.link("heat").open()
        with pytest.raises(LinkLost, match="serial /dev/no-such-port does not open"):
            await guard.link("gas").open()
        assert await ask(guard) == b"ok read\r"
        with pytest.raises(NotPermitted, match="not all ports are open: gas"):
            await guard.arm()
        with pytest.raises(NotPermitted, match="not armed"):
            guard.permit("heat", ON)

    gone = replace(gas, path="/dev/no-such-port")
    with_guard(rig, work, replace(rig.armed, ports=(heat, gone)))


LEAK = Trip(Cause.GAS_LEAK, "vent", "h2.concentration", 1200.0, 1.0, "leak")


@pytest.mark.promise(15)
def test_a_guard_that_comes_back_is_told_of_the_gravest_trip_and_not_of_the_first(
    rig: GuardBench,
) -> None:
    async def work(guard: RemoteGuard) -> None:
        guard.on_trip = guard.trip
        await guard.open()
        await guard.arm()
        slay(rig, guard)
        while not guard._lost:  # noqa: ASYNC110 - another process dies
            await asyncio.sleep(0.001)
        guard.trip(LEAK)
        rig.devices.forget()
        while guard._lost:  # noqa: ASYNC110 - another process comes back
            await asyncio.sleep(0.01)
        await asyncio.sleep(1.0)

    with_guard(rig, work)
    assert rig.frames("gas")[-1] == SHUT[1].frame, "of the leak's procedure, and nothing after it"


@pytest.mark.promise(3)
def test_a_guard_that_cannot_begin_at_first_is_tried_for_as_long_as_the_line_is_open(
    rig: GuardBench, tmp_path: Path
) -> None:
    no = tmp_path / "no more processes"
    starter = tmp_path / "start"
    starter.write_text(f'#!/bin/sh\n[ -e "{no}" ] && exit 1\nexec "$@"\n', "utf-8")
    starter.chmod(0o700)

    async def work(guard: RemoteGuard) -> None:
        await guard.open()
        await guard.arm()
        no.touch()
        rig.devices.forget()
        slay(rig, guard)
        await asyncio.sleep(2.0)  # three starts fail in less
        assert rig.frames("heat") == []
        no.unlink()
        while not rig.made_safe():  # noqa: ASYNC110 - the devices are in a thread
            await asyncio.sleep(0.01)

    with_guard(rig, work, before=(str(starter),))
