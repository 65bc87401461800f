"""The harness's end of the guard process: finding, starting, replacing and losing a guard."""

import asyncio
import os
import signal
import sys
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import pytest

import labharness.safety.guard.remote as remote_module
from guard_rig import BOUND_S, ON, READ, SHUT, GuardBench, until
from labharness.core.clock import PacedLoop, run
from labharness.core.vocabulary import Cause, Trip
from labharness.instruments.link import LinkLost
from labharness.line.exchanges import Exchanges, NoReply
from labharness.safety.guard import NotPermitted
from labharness.safety.guard.armed import Armed, arming_digest
from labharness.safety.guard.messages import line_of
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


def test_a_trip_that_came_before_any_guard_was_reached_is_latched_by_the_first(
    rig: GuardBench,
) -> None:
    async def work(guard: RemoteGuard) -> None:
        stop = Trip(Cause.STOP_REQUEST, "stop", "by_hand", None, 0.0, "smell of gas")
        guard.trip(stop)
        await guard.open()
        assert await ask(guard) == b"ok read\r"
        with pytest.raises(NotPermitted):
            await guard.arm()

    with_guard(rig, work)
    assert "smell of gas" in (rig.state_dir / "latch.json").read_text("utf-8")


def test_where_the_arming_cannot_be_written_no_guard_is_started(rig: GuardBench) -> None:
    async def work(guard: RemoteGuard) -> None:
        (rig.state_dir / "armed.json").unlink()
        (rig.state_dir / "armed.new").mkdir()  # a disk that takes nothing
        with pytest.raises(LinkLost, match=r"armed\.new"):
            await guard.open()
        assert guard._child.pid is None
        assert not (rig.state_dir / "armed.json").exists()
        (rig.state_dir / "armed.new").rmdir()
        await guard.open()
        assert await ask(guard) == b"ok read\r"

    with_guard(rig, work)


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


def test_a_guard_that_was_armed_with_other_files_makes_place(rig: GuardBench) -> None:
    kept = rig.start()
    rig.call().leave()

    async def work(guard: RemoteGuard) -> None:
        await guard.open()
        assert kept.poll() == 0
        assert await ask(guard) == b"ok read\r"

    with_guard(rig, work, replace(rig.armed, lab_digest="sha256:edited"))


def test_one_harness_at_a_time_is_let_in(rig: GuardBench) -> None:
    rig.start()
    rig.call()

    armed_with = (rig.state_dir / "armed.json").read_bytes()

    async def work(guard: RemoteGuard) -> None:
        with pytest.raises(LinkLost, match="another harness is at the guard process"):
            await guard.open()

    with_guard(rig, work, replace(rig.armed, lab_digest="sha256:edited"))
    assert (rig.state_dir / "armed.json").read_bytes() == armed_with, "it is of the line in use"


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


def test_a_trip_of_the_guard_is_told_in_lab_time(rig: GuardBench) -> None:
    async def work(guard: RemoteGuard) -> None:
        loop = asyncio.get_running_loop()
        tripped: asyncio.Future[Trip] = loop.create_future()
        guard.on_trip = tripped.set_result
        await guard.open()
        await guard.arm()
        trip = await tripped  # of silence: nobody heartbeats
        assert trip.channel == "harness"
        assert abs(trip.at_s - loop.time()) < 1.0

    with_guard(rig, work)


@pytest.mark.parametrize("value", [float("inf"), float("nan")])
def test_a_trip_whose_value_is_no_number_is_taken_like_any_other(
    rig: GuardBench, value: float
) -> None:
    trips: list[Trip] = []

    async def work(guard: RemoteGuard) -> None:
        guard.on_trip = trips.append
        await guard.open()
        await guard.arm()
        rig.devices.forget()
        guard.trip(replace(LEAK, procedure="stop", value=value))
        for _ in range(10):
            guard.heartbeat("stop")
            await asyncio.sleep(0.1)
        assert rig.made_safe()
        assert await ask(guard) == b"ok read\r"

    with_guard(rig, work)
    assert trips == [], "harness and guard lost each other"


def test_a_guard_that_hangs_up_at_once_is_not_called_without_end(rig: GuardBench) -> None:
    calls: list[float] = []
    fields = {"epoch": 0, "moves": 0, "armed": False, "latched": False, "write_error": ""}
    welcome: dict[str, object] = {
        "say": "welcome",
        "digest": arming_digest(rig.armed.text()),
        "key": "00" * 32,
    }
    welcome |= {**fields, "permits": 0, "trip": None, "log": [], "free": [], "shut": {}, "heard": 0}

    async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        calls.append(asyncio.get_running_loop().time())
        writer.write(line_of(welcome))
        await writer.drain()
        writer.close()

    async def work(guard: RemoteGuard) -> None:
        path = str(rig.state_dir / "guard.sock")
        async with await asyncio.start_unix_server(hang_up, path):
            await guard.open()
            await asyncio.sleep(2.5)
        assert 2 <= len(calls) <= 5

    with_guard(rig, work)


def test_a_guard_that_stood_still_is_reached_when_it_goes_on(
    rig: GuardBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = rig.start()
    rig.call().leave()
    monkeypatch.setattr(remote_module, "OPEN_S_MAX", 0.5)

    async def work(guard: RemoteGuard) -> None:
        kept.send_signal(signal.SIGSTOP)
        for _ in range(2):
            with pytest.raises(LinkLost, match="it does not answer"):
                await guard.open()
            await asyncio.sleep(0.01)  # what was given up is closed in the loop's next turn
        kept.send_signal(signal.SIGCONT)
        monkeypatch.setattr(remote_module, "OPEN_S_MAX", BOUND_S)
        await guard.open()
        assert await ask(guard) == b"ok read\r"

    with_guard(rig, work)


def test_a_guard_that_is_killed_ends_every_exchange_and_trips_once(rig: GuardBench) -> None:
    trips: list[Trip] = []

    async def work(guard: RemoteGuard) -> None:
        guard.on_trip = trips.append
        await guard.open()
        await guard.arm()
        rig.devices.of["heat"].mute = True
        asked = asyncio.ensure_future(ask(guard))
        await asyncio.sleep(0.05)
        slay(rig, guard)
        with pytest.raises(NoReply, match="the guard process is gone"):
            await asked
        rig.devices.forget()
        with pytest.raises(NotPermitted, match="gone"):
            guard.permit("heat", ON)
        rig.devices.of["heat"].mute = False
        while guard._lost:  # noqa: ASYNC110 - another process comes back
            await asyncio.sleep(0.01)
        with pytest.raises(NotPermitted, match="latched"):
            guard.permit("heat", ON)
        assert await ask(guard) == b"ok read\r"

    with_guard(rig, work)
    assert [(trip.cause, trip.channel) for trip in trips] == [("communication", "guard")]
    until(lambda: len(rig.frames("gas")) >= 2, "the safe table")
    assert rig.frames("heat")[:2] == [b"shut0\r", b"shut2\r"]
    assert ON.frame not in rig.frames("heat")


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
