"""The first wave of a trip: nothing that could wait, fail or be told goes before its last byte."""

import asyncio
import os
import socket
import subprocess
import sys
import time
import tty
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from guard_rig import BOUND_S, SHUT, GuardBench, StillDisk, bench, until
from labharness.core.clock import PacedLoop, run, steady_s
from labharness.core.vocabulary import Cause, Trip
from labharness.instruments.link import LinkLost
from labharness.instruments.link.serial_port import SerialLink
from labharness.safety.guard import GuardCore, Latch, SafeFrame, port_records
from labharness.safety.guard.messages import BadFields, write_trip
from labharness.safety.guard.process import ProcessGuard
from labharness.safety.guard.shell import LoopGuard

PORTS = ("heat", "gas", "pump")
LEAK = Trip(Cause.GAS_LEAK, "stop", "h2.concentration", 1200.0, 1.0, "leak")


class FakeDescriptor:
    """A link that notes what is written, and may be lost."""

    name = "fake"
    lost = False

    def __init__(self, port: str, events: list[str]) -> None:
        self._port = port
        self._events = events

    def open(self, within_s: float) -> None:
        """Open."""

    def fileno(self) -> int:
        """Return no descriptor: nobody listens here."""
        return -1

    def read(self) -> bytes:
        """Return nothing."""
        return b""

    def write(self, data: bytes) -> None:
        """Note the port."""
        if self.lost:
            raise LinkLost("fake link is gone")
        self._events.append(self._port)

    def close(self) -> None:
        """Close."""


class Alone:
    """A guard of three ports in this process, and what it did in which order."""

    def __init__(self, folder: Path, listener: socket.socket) -> None:
        self.events: list[str] = []
        self.links = {port: FakeDescriptor(port, self.events) for port in PORTS}
        with bench(folder / "bench") as rig:
            armed = rig.armed
        self.guard = ProcessGuard(
            armed=armed,
            digest="",
            links=self.links,
            state_dir=folder,
            listener=listener,
            steady_s=steady_s,
            entropy=bytes,
            once=True,
        )
        frames = [SafeFrame(n, port, SHUT[n], port, 0.0) for n, port in enumerate(PORTS)]
        core = GuardCore(dict.fromkeys(PORTS, ()), {"stop": tuple(reversed(frames))})
        self.guard.core = self.guard.ports.core = core
        self.guard.latch.write = lambda path, text: self.events.append("latch")
        self._tell = self.guard.ports.on_safe
        self.guard.ports.on_safe = self._told

    def _told(self, frame: SafeFrame, error: str) -> None:
        self.events.append(f"told of {frame.port}")
        self._tell(frame, error)

    def finish(self) -> None:
        """Let time pass until the latch is written; nobody answers a frame."""
        while "latch" not in self.events:
            self.guard._keep_time()

    def read(self) -> Trip:
        """Return the reason, as the rest of a message does."""
        self.events.append("reason")
        return LEAK


@pytest.fixture
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Alone]:
    monkeypatch.setattr(port_records, "LATCH_PLACES", (tmp_path / "places",))  # a pty comes back
    with socket.socket(socket.AF_UNIX) as listener:
        made = Alone(tmp_path, listener)
        yield made
        made.guard._selector.close()


def test_the_bytes_go_before_the_reason_is_read_and_the_last_end_before_the_latch_is_written(
    alone: Alone,
) -> None:
    alone.guard.trip("stop", alone.read)
    assert alone.events == [*PORTS, "reason"], "in the order of hazard, too"
    assert alone.guard.latch.trip == LEAK
    alone.finish()
    assert alone.events[4:] == [*(f"told of {port}" for port in PORTS), "latch"]


@pytest.mark.promise(13)
def test_a_link_that_is_lost_is_told_of_after_the_last_byte(alone: Alone) -> None:
    alone.links["heat"].lost = True
    alone.guard.trip("stop", alone.read)
    assert alone.events == ["gas", "pump", "told of heat", "reason"]


@pytest.mark.promise(13)
def test_a_reason_that_cannot_be_read_still_latches(alone: Alone) -> None:
    def read() -> Trip:
        raise BadFields("trip has no 'detail'")

    with pytest.raises(BadFields, match="no 'detail'"):
        alone.guard.trip("stop", read)
    assert alone.events == [*PORTS]
    assert alone.guard.latch.trip is not None
    assert alone.guard.latch.trip.cause is Cause.COMMUNICATION
    assert alone.guard.latch.trip.detail == "trip has no 'detail'"


@pytest.mark.promise(13)
def test_a_serial_port_whose_far_end_does_not_read_holds_up_no_other(tmp_path: Path) -> None:
    masters, slaves = zip(os.openpty(), os.openpty(), strict=True)
    for slave in slaves:
        tty.setraw(slave)
    told: list[tuple[str, str]] = []

    async def main() -> None:
        links = {p: SerialLink(os.ttyname(s), 9600) for p, s in zip(PORTS, slaves, strict=False)}
        frames = tuple(SafeFrame(n, port, SHUT[n], port, 0.0) for n, port in enumerate(links))
        core = GuardCore(dict.fromkeys(links, ()), {"stop": frames})
        guard = LoopGuard(core, links, Latch(tmp_path / "latch.json"))
        guard.on_safe_frame = lambda frame, error: told.append((frame.port, error))
        for link in links.values():
            await link.open()
        with suppress(LinkLost):  # fill the buffer of the first port; nobody empties it
            for _ in range(100):
                links["heat"].write(bytes(1024))
        with pytest.raises(LinkLost, match="took 0 of 1 bytes; nobody reads there"):
            links["heat"].write(b"?")
        guard.trip(LEAK)
        assert os.read(masters[1], 64) == SHUT[1].frame, "no loop turn was needed"
        await asyncio.sleep(0)
        guard.close()

    run(main(), PacedLoop(1.0))
    for each in (*masters, *slaves):
        os.close(each)
    assert [port for port, error in told if "nobody reads there" in error] == ["heat"]


# ---- the same in a process


def told(**changes: Any) -> dict[str, Any]:
    return {**write_trip(LEAK), **changes}


def test_a_latch_that_could_not_be_written_is_tried_once_more_when_the_guard_leaves(
    rig: GuardBench,
) -> None:
    guard = rig.start()
    caller = rig.armed_by()
    (rig.state_dir / "latch.new").mkdir()
    caller.say(do="trip", trip=told())
    until(rig.made_safe, "the procedure")
    while "Is a directory" not in caller.hear("status")["write_error"]:
        pass  # hear() is bounded in time
    os.rmdir(rig.state_dir / "latch.new")
    guard.terminate()  # long before the next try would be due
    assert guard.wait(BOUND_S) == 0
    assert (rig.state_dir / "latch.json").exists()
    caller.socket.close()


@pytest.mark.promise(13)
@pytest.mark.parametrize("file", ["latch.new", "guard.jsonl"])
@pytest.mark.parametrize("lost", [False, True], ids=["asked for", "by itself"])
def test_a_disk_that_stands_still_holds_up_no_frame_of_a_procedure(
    rig: GuardBench, file: str, lost: bool
) -> None:
    disk = StillDisk(rig.state_dir, file)
    rig.start(disk=disk)
    caller = rig.armed_by()
    disk.stop()
    rig.devices.forget()
    if lost:
        caller.socket.close()
    else:
        caller.say(do="trip", trip=told())
    until(rig.made_safe, "the whole procedure, and not its first wave alone", within_s=4.0)
    until(disk.holds_up_the_guard, "the guard at its disk, after the procedure")
    disk.go_on()
    until(lambda: (rig.state_dir / "latch.json").exists(), "the latch, when the disk goes on")


@pytest.mark.promise(13)
def test_a_disk_that_stands_still_at_an_armed_line_s_log_holds_up_no_trip(
    rig: GuardBench,
) -> None:
    disk = StillDisk(rig.state_dir, "guard.jsonl")
    rig.start(disk=disk)
    caller = rig.call()
    disk.stop()
    caller.arm()  # and a frame ends that the guard keeps in mind for its log
    caller.heartbeat()
    rig.devices.forget()
    caller.say(do="trip", trip=told())
    until(rig.made_safe, "the procedure", within_s=4.0)
    until(disk.holds_up_the_guard, "the guard at its disk, after the procedure")
    disk.go_on()
    until(lambda: (rig.state_dir / "latch.json").exists(), "the latch, when the disk goes on")


def test_a_link_that_an_armed_line_loses_is_written_down_when_it_is_safe(
    alone: Alone, tmp_path: Path
) -> None:
    alone.guard.core.arm()
    alone.guard.ports.on_lost("heat", "unplugged")
    alone.guard._keep_time()
    log = tmp_path / "guard.jsonl"
    assert not log.exists(), "a trip would wait for it"
    alone.guard.trip("stop", alone.read)
    while not log.exists():
        alone.guard._keep_time()
    assert "unplugged" in log.read_text("utf-8")


@pytest.mark.promise(13)
def test_a_disk_that_stands_still_at_a_heartbeat_s_mark_holds_up_no_trip(rig: GuardBench) -> None:
    disk = StillDisk(rig.state_dir, "guard.new")
    rig.start(disk=disk)
    caller = rig.armed_by()
    disk.stop()
    caller.say(do="heartbeat", made_s=steady_s(), lost="vent")
    end_s = steady_s() + 1.5
    while steady_s() < end_s:  # the disk stands still, and the line goes on
        caller.say(do="heartbeat", made_s=steady_s(), lost="vent")
        time.sleep(0.05)
    assert disk.holds_up_the_guard(), "a thread of it: the line goes on"
    rig.devices.forget()
    caller.say(do="heartbeat", made_s=steady_s(), lost="stop")
    caller.say(do="trip", trip=told())
    until(rig.made_safe, "the procedure", within_s=4.0)
    disk.go_on()
    until(lambda: (rig.state_dir / "latch.json").exists(), "the latch, when the disk goes on")
    caller.say(do="disarm")
    until(lambda: not (rig.state_dir / "guard.armed").exists(), "the end of the armed marker")


@pytest.mark.skipif(sys.platform != "linux", reason="the schedulers are Linux's")
def test_the_guard_goes_before_ordinary_work_where_the_system_lets_it(rig: GuardBench) -> None:
    ask = "import os; os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))"
    lets = subprocess.run([sys.executable, "-c", ask], check=False, capture_output=True)
    guard = rig.start()
    rig.call().leave()
    wanted = os.SCHED_OTHER if lets.returncode else os.SCHED_FIFO
    assert os.sched_getscheduler(guard.pid) == wanted
