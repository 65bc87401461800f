"""Whoever raises a trip, people are called: the guard, its end, a hand, or the way down."""

import asyncio
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from alarmed import Watched, quick_lab, server, watching
from commands import COMMAND, TIMEOUT_S, edited_lab, say
from guard_rig import until
from labharness.core.clock import Chance, Clock, VirtualLoop, run
from labharness.core.vocabulary import Cause, Trip
from labharness.core.vocabulary.texts import Text
from labharness.journal.null_journal import NullJournal
from labharness.lab import Lab, LabPlan, read_lab
from labharness.lab.wiring.alarms import line_alarms
from labharness.line.trip_response import LATCH_S_MAX, DownStage, latch_lost
from labharness.safety.alarm.board import ESCALATE_AFTER
from labharness.safety.alarm.outlets import AlertChannel, Done
from platforms import serves_ports
from rig import SAFE_TABLE
from served import Served

TWO = (AlertChannel(name="one"), AlertChannel(name="two"))


@pytest.mark.promise(23)
@pytest.mark.parametrize("channel", ["guard", "harness"])
async def test_a_trip_that_the_guard_raises_calls_and_is_gone_when_all_is_read_again(
    short_plan: LabPlan, tmp_path: Path, channel: str
) -> None:
    name = f"communication/{channel}"
    async with watching(short_plan, tmp_path, channels=TWO) as watched:
        line = watched.lab.line
        now_s = watched.lab.clock.now_s()
        line.guard.on_trip(Trip(Cause.COMMUNICATION, SAFE_TABLE, channel, None, now_s, "gone"))
        assert watched.alarms.calls == 0, "its bytes, its latch and its record come first"
        assert line.guard.latch.trip is not None
        await asyncio.sleep(90)
        assert channel not in line.memory.tracks, "no channel of the line was made of it"
        assert not watched.alarms.board.alarms[name].state.active
        assert watched.alarms.board.alarms[name].state.latched
    assert watched.calls() == [name]
    assert [each["channel"] for each in watched.journaled("alert")] == ["one", "two"]
    kinds = [each for each in ("trip", "alarm") if watched.journaled(each)]
    assert kinds == ["trip", "alarm"]


async def test_a_way_down_that_ends_in_a_trip_calls(watched: Watched) -> None:
    await watched.lab.line.bring_down(DownStage.TRIP)
    await asyncio.sleep(5)
    await watched.close()
    assert watched.calls() == ["stop_request/line"]


async def test_a_trip_that_changes_nothing_is_told_all_the_same(watched: Watched) -> None:
    line, now_s = watched.lab.line, watched.lab.clock.now_s()
    line.trip_response.trip(
        Trip(Cause.SENSOR_BREAK, SAFE_TABLE, "furnace.sensor_break", None, now_s, "")
    )
    line.guard.on_trip(Trip(Cause.COMMUNICATION, SAFE_TABLE, "guard", None, now_s, "gone"))
    await asyncio.sleep(5)
    assert len(line.trip_response.trips) == 1
    assert watched.alarms.board.alarms["communication/guard"].state.active
    await watched.close()
    assert len(watched.calls()) == 1, "it has joined the first one's group"


@pytest.mark.parametrize("waits_s", [14.0, 30.0])
async def test_a_latch_that_waits_for_its_turn_at_the_disk_calls_only_when_it_waits_too_long(
    watched: Watched, waits_s: float
) -> None:
    latch = watched.lab.line.guard.latch
    latch.write_error = Text("latch.not_yet", path="latch.json")
    await asyncio.sleep(waits_s)
    latch.write_error = ""
    await asyncio.sleep(5)
    late = watched.alarms.board.alarms.get("latch_not_saved")
    assert late is None or not late.state.active
    await watched.close()
    calls = watched.calls()
    assert calls == ([] if waits_s < LATCH_S_MAX else ["latch_not_saved"])


async def test_what_is_said_of_a_latch_waits_for_its_turn_at_the_disk(watched: Watched) -> None:
    line = watched.lab.line
    line.guard.latch.write_error = Text("latch.not_yet", path="latch.json")
    asyncio.get_running_loop().call_later(4, setattr, line.guard.latch, "write_error", "")
    assert await latch_lost(line.guard, line.clock) == ""
    line.guard.latch.write_error = "latch.json: No space left on device"
    before_s = line.clock.now_s()
    said = await latch_lost(line.guard, line.clock)
    assert said == "the latch could not be saved: latch.json: No space left on device"
    assert line.clock.now_s() == before_s, "a disk that has refused is not waited for"
    line.guard.latch.write_error = ""


def test_a_call_names_its_lab_in_every_command_and_the_next_step(tmp_path: Path) -> None:
    (tmp_path / "the lab").mkdir()
    plan = read_lab(edited_lab(tmp_path / "the lab", "[operator]", "[operator]"))
    senders = Keeps()

    async def main() -> None:
        lab = Lab(plan, clock=Clock(loop), chance=Chance(1), journal=NullJournal())
        alarms = line_alarms(lab)
        alarms.channels, alarms.senders = TWO, senders
        await lab.line.open()
        await lab.line.arm(SAFE_TABLE)
        lab.line.guard.on_trip(Trip(Cause.COMMUNICATION, SAFE_TABLE, "guard", None, 0.0, "gone"))
        lab.line.guard.latch.write_error = "latch.json: No space left on device"
        await asyncio.sleep(ESCALATE_AFTER.total_seconds() + 60)
        lab.line.guard.latch.write_error = ""
        await lab.line.close()

    loop = VirtualLoop()
    run(main(), loop)
    which = f" --lab '{plan.path.resolve()}'"
    first, *later = (said.splitlines() for said in senders.said)
    assert later
    assert {said[-1] for said in later} == {first[-1]}, "whatever has joined the trip"
    assert first[2:] == [
        f"labharness alarms ack communication/guard --name NAME --reason REASON{which}",
        f"then look: labharness watch{which}",
        f"and when the cause is gone: labharness reset --name NAME --reason REASON{which}",
    ]


class Keeps:
    """Senders that keep what is sent on them."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def send(self, channel: str, title: str, text: str, done: Done) -> None:
        """Keep a message."""
        self.said.append(text)
        done("")


def _guard_of(pid: int) -> int:
    """Return the guard process that a harness has started."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text("utf-8").split()
    named = {int(each): Path(f"/proc/{each}/cmdline").read_bytes() for each in children}
    (guard,) = [each for each, words in named.items() if b"guard" in words]
    return guard


@contextmanager
def attended(lab: Path, folder: Path) -> Iterator["subprocess.Popen[str]"]:
    """Attend a line in a process of its own, from the moment its first value is set."""
    words = ["set", "argon.setpoint", "90", "sccm", "--attend", "--name", "Ada"]
    process = subprocess.Popen(
        [*COMMAND, *words, "--lab", str(lab), "--out", str(folder)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
    )
    try:
        if process.stdout is None:
            raise RuntimeError("no standard output")
        said = process.stdout.readline()
        assert said == "argon.setpoint confirmed, reads 90\n", process.communicate()
        yield process
    finally:
        process.kill()
        process.communicate(timeout=TIMEOUT_S)


@pytest.mark.calm
@serves_ports
@pytest.mark.parametrize("fault", ["guard killed", "harness stopped"])
def test_a_trip_of_the_guard_process_calls_once_on_two_channels(tmp_path: Path, fault: str) -> None:
    with server() as one, server() as two:
        rows = "".join(
            f'[[alert]]\nname = "{name}"\nurl = "{heard.url}"\n\n'
            for name, heard in (("one", one), ("two", two))
        )
        with Served(tmp_path / "served", lab=quick_lab(tmp_path)) as sim_lab:
            with sim_lab.lab_file.open("a", encoding="utf-8") as file:
                file.write(rows)
            with attended(sim_lab.lab_file, tmp_path / "run") as harness:
                if fault == "guard killed":
                    os.kill(_guard_of(harness.pid), signal.SIGKILL)
                else:
                    harness.send_signal(signal.SIGSTOP)
                    time.sleep(2.0)
                    harness.send_signal(signal.SIGCONT)
                until(lambda: bool(one.said and two.said), "a call on both channels", within_s=20.0)
                time.sleep(3.0)  # whatever else would call
                listed = say("alarms", "list", "--lab", sim_lab.lab_file).out
        for heard in (one, two):
            (title,) = heard.titles()
            assert "trip communication/" in title
        assert "communication/" in listed
        assert "active, unacknowledged, latched" in listed
