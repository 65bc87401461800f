"""A whole line whose ports belong to the guard process: real instruments' bytes, real time.

The short line's simulated instruments stand at the far ends of pseudo-terminals; the spectrometer
stays on a loopback, so that the line has ports of both kinds.
"""

import asyncio
import json
import os
import signal
import subprocess
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from guard_rig import BOUND_S, until
from labharness.core.clock import Chance, Clock, PacedLoop, run
from labharness.core.vocabulary import Cause, Command, Ending, Trip
from labharness.faces.cli import main
from labharness.instruments.link import local
from labharness.journal import SqliteJournal
from labharness.journal.reading import read
from labharness.lab import Lab, LabPlan, read_lab
from labharness.lab.operate.idle_line import NotReset, make_safe, read_now, reset
from labharness.lab.wiring.arming import guard_command
from labharness.lab.wiring.operators import TerminalOperator
from labharness.line import NotArmed, Tripped
from labharness.safety.guard import Latch, LatchUnreadable
from labharness.safety.guard.armed import ARMED_FILE, read_armed
from labharness.safety.guard.remote import SplitGuard
from labharness.safety.kernel import Mode
from labharness_simulators.alicat_basis2 import WATCHDOG
from real_wires import NEAR, RemotePlant, quick, real, served
from rig import SAFE_TABLE, approved_copy

ARGON = Command("argon.setpoint", 100.0, "sccm")

pytestmark = pytest.mark.calm


@pytest.fixture(autouse=True)
def no_guard_left(tmp_path: Path) -> Iterator[None]:
    """End a guard that owes its plant frames when the plant is gone: it would try for ever."""
    yield
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):  # it has ended by itself
            if os.fsencode(tmp_path) in path.read_bytes():
                os.kill(int(path.parent.name), signal.SIGKILL)


@pytest.fixture
def plants() -> list[RemotePlant]:
    """What stands at the far ends, once a scenario runs."""
    return []


@pytest.fixture
def on_real_ports(
    tmp_path: Path, plants: list[RemotePlant]
) -> Callable[[Callable[[Lab], Awaitable[None]]], LabPlan]:
    """Run a scenario on an opened line; return its lab."""
    plan = approved_copy(tmp_path, edit=quick)

    async def main(scenario: Callable[[Lab], Awaitable[None]]) -> LabPlan:
        loop = asyncio.get_running_loop()
        far = RemotePlant(plan, tmp_path)
        plants.append(far)
        lab_plan = real(tmp_path, far.paths)
        with SqliteJournal(tmp_path / "journal.sqlite") as journal:
            lab = Lab(
                lab_plan,
                clock=Clock(loop),
                chance=Chance(1),
                journal=journal,
                operator=TerminalOperator(lambda prompt: ""),
            )
            try:
                await lab.line.open()
                await scenario(lab)
            finally:
                await lab.line.close()
                far.close()
        return lab_plan

    def on(scenario: Callable[[Lab], Awaitable[None]]) -> LabPlan:
        return run(main(scenario), PacedLoop(1.0))

    return on


async def running(lab: Lab) -> None:
    await lab.line.arm("immediate_shutdown")
    lab.line.start()


async def tripped(lab: Lab) -> Tripped:
    async with asyncio.timeout(BOUND_S):
        while True:
            try:
                await lab.line.next_tick()
            except Tripped as caught:
                await lab.line.trip_response.verified()
                return caught


def split(lab: Lab) -> SplitGuard:
    assert isinstance(lab.line.guard, SplitGuard)
    return lab.line.guard


def guard_pid(lab: Lab) -> int:
    pid = split(lab).remote._child.pid
    assert pid is not None
    return pid


def test_a_line_is_armed_commanded_and_disarmed_through_the_guard_process(
    on_real_ports: Callable[..., LabPlan],
) -> None:
    async def main(lab: Lab) -> None:
        assert lab.line.unguarded() == ()
        assert lab.line.hindrances(SAFE_TABLE) == ()
        await running(lab)
        outcome = await lab.line.perform(ARGON)
        assert (outcome.ending, outcome.read_back) == (Ending.CONFIRMED, 100.0), outcome
        refused = await lab.line.perform(Command("argon.setpoint", 9000.0, "sccm"))
        assert refused.ending is Ending.REFUSED
        assert (await lab.line.trip_response.make_safe("immediate_shutdown")).complete
        lab.line.disarm()

    plan = on_real_ports(main)
    assert not (plan.state_dir / "latch.json").exists()
    assert not (plan.state_dir / "guard.armed").exists(), "a clean end disarms"
    armed = read_armed((plan.state_dir / ARMED_FILE).read_text("utf-8"))
    assert (armed.lab_digest, armed.lost) == (plan.lab_digest, "immediate_shutdown")
    assert NEAR not in {port.name for port in armed.ports}
    steps = [(each.channel, each.value) for each in armed.procedures["immediate_shutdown"]]
    assert ("box.furnace_contactor", 0.0) in steps


def test_a_line_whose_mark_the_guard_cannot_write_is_not_armed_and_says_why(
    on_real_ports: Callable[..., LabPlan],
) -> None:
    async def main(lab: Lab) -> None:
        (lab.plan.state_dir / "guard.new").mkdir()
        with pytest.raises(NotArmed, match="the guard does not arm: Is a directory"):
            await lab.line.arm("immediate_shutdown")
        assert not lab.guard.core.armed, "nor are the ports of this process"
        assert lab.line.memory.mode is Mode.DISARMED

    plan = on_real_ports(main)
    assert not (plan.state_dir / "latch.json").exists()


@pytest.mark.promise(2)
def test_a_blocked_loop_is_made_safe_by_the_guard_and_answers_for_it(
    on_real_ports: Callable[..., LabPlan],
) -> None:
    async def main(lab: Lab) -> None:
        await running(lab)
        time.sleep(0.8)  # noqa: ASYNC251 - a callback that holds the loop is the fault
        trip = (await tripped(lab)).trip
        assert (trip.cause, trip.channel) == (Cause.COMMUNICATION, "harness")
        assert lab.guard.core.latched, "the ports of this process are voided too"
        assert lab.line.trip_response.verifications[-1].complete
        assert (await lab.line.perform(ARGON)).ending is Ending.REFUSED
        lab.line.disarm()

    plan = on_real_ports(main)
    latched = Latch(plan.state_dir / "latch.json").trip
    assert latched is not None
    assert "silent" in latched.detail


@pytest.mark.promise(3)
def test_a_guard_that_is_killed_trips_the_line_and_comes_back_with_the_safe_table(
    on_real_ports: Callable[..., LabPlan], plants: list[RemotePlant]
) -> None:
    async def main(lab: Lab) -> None:
        await running(lab)
        assert (await lab.line.perform(ARGON)).ending is Ending.CONFIRMED
        first = guard_pid(lab)
        os.kill(first, signal.SIGKILL)
        plants[0].unlock()
        trip = (await tripped(lab)).trip
        assert (trip.cause, trip.channel) == (Cause.COMMUNICATION, "guard")
        assert guard_pid(lab) != first
        assert lab.line.trip_response.verifications[-1].complete, (
            lab.line.trip_response.verifications
        )
        assert (await lab.line.perform(ARGON)).ending is Ending.REFUSED
        lab.line.disarm()

    plan = on_real_ports(main)
    latched = Latch(plan.state_dir / "latch.json").trip
    assert latched is not None
    assert latched.channel == "guard"
    records = read(plan.path.parent / "journal.sqlite")
    logged = [each.body["what"] for each in records if each.kind == "guard_log"]
    assert "began with the safe table" in logged, "the journal has what happened in between"
    assert not (plan.state_dir / "guard.jsonl").exists(), "and nobody takes it a second time"


@pytest.mark.promise(3)
def test_a_guard_that_stands_still_is_replaced_by_one_that_makes_safe(
    on_real_ports: Callable[..., LabPlan], plants: list[RemotePlant]
) -> None:
    async def main(lab: Lab) -> None:
        await running(lab)
        assert (await lab.line.perform(ARGON)).ending is Ending.CONFIRMED
        first = guard_pid(lab)
        os.kill(first, signal.SIGSTOP)
        plants[0].unlock()
        try:
            trip = (await tripped(lab)).trip
            assert trip.cause is Cause.COMMUNICATION
            assert lab.line.trip_response.verifications[-1].complete, (
                lab.line.trip_response.verifications
            )
            assert guard_pid(lab) != first
        finally:
            with suppress(ProcessLookupError):
                os.kill(first, signal.SIGCONT)
        lab.line.disarm()

    plan = on_real_ports(main)
    assert Latch(plan.state_dir / "latch.json").trip is not None


@pytest.mark.promise(3)
def test_an_instrument_that_restarted_behind_its_link_is_prepared_again(
    on_real_ports: Callable[..., LabPlan], plants: list[RemotePlant]
) -> None:
    async def main(lab: Lab) -> None:
        await running(lab)
        words = plants[0].simulated.faces["hydrogen"]._words
        assert words[WATCHDOG] == 5000
        plants[0].pull_out("hydrogen")
        words[WATCHDOG] = 0  # its power was gone too
        await asyncio.sleep(0.5)
        plants[0].plug_in("hydrogen")
        async with asyncio.timeout(BOUND_S):
            while words[WATCHDOG] == 0:
                lab.line.check()
                await asyncio.sleep(0.02)
        shut = Command("hydrogen.setpoint", 0.0, "sccm")
        assert (await lab.line.perform(shut)).ending is Ending.CONFIRMED
        assert (await lab.line.trip_response.make_safe("immediate_shutdown")).complete
        lab.line.disarm()

    plan = on_real_ports(main)
    assert not (plan.state_dir / "latch.json").exists()
    rows = read(plan.path.parent / "journal.sqlite")
    told = [each.body["port"] for each in rows if each.kind in ("link_lost", "link_back")]
    assert told == ["hydrogen", "hydrogen"]


def test_a_latched_line_is_reset_through_its_guard_process(tmp_path: Path) -> None:
    with served(approved_copy(tmp_path, edit=quick), tmp_path) as plan:
        plan.state_dir.mkdir(parents=True)
        trip = Trip(
            Cause.COMMUNICATION, "immediate_shutdown", "harness", None, 1.0, "it was killed"
        )
        Latch(plan.state_dir / "latch.json").close(trip)
        assert reset(plan, "Ada Lovelace", "line inspected") == trip
        assert not (plan.state_dir / "latch.json").exists()
        asked, ended = (plan.state_dir / "resets.jsonl").read_text("utf-8").splitlines()
        kept = json.loads(asked)
        assert (kept["name"], kept["detail"]) == ("Ada Lovelace", "it was killed")
        assert json.loads(ended)["what"] == "opened"


def test_a_latch_that_a_guard_holds_is_reset_though_its_file_was_removed(tmp_path: Path) -> None:
    with served(approved_copy(tmp_path, edit=quick), tmp_path) as plan:
        assert main(["arm", str(plan.path)]) == 0
        trip = Trip(Cause.COMMUNICATION, SAFE_TABLE, "harness", None, 1.0, "it was killed")
        Latch(plan.state_dir / "latch.json").close(trip)
        kept = [each for each in guard_command(plan.path) if each != "--once"]
        guard = subprocess.Popen(kept)
        try:
            until((plan.state_dir / "guard.jsonl").exists, "the guard, which has read its latch")
            (plan.state_dir / "latch.json").unlink()
            assert reset(plan, "Ada Lovelace", "line inspected") == trip
            assert reset(plan, "Ada Lovelace", "again") is None
        finally:
            guard.terminate()
            guard.wait(BOUND_S)


@pytest.mark.promise(20)
def test_what_the_guard_did_alone_outlives_a_reset(tmp_path: Path) -> None:
    with served(approved_copy(tmp_path, edit=quick), tmp_path) as plan:
        plan.state_dir.mkdir(parents=True)
        trip = Trip(Cause.COMMUNICATION, SAFE_TABLE, "harness", None, 1.0, "it was killed")
        Latch(plan.state_dir / "latch.json").close(trip)
        log = plan.state_dir / "guard.jsonl"
        log.write_text('{"at": "2026-01-02T03:00:00Z", "what": "tripped by itself"}\n', "utf-8")
        read_now(plan, ["box.vent"])
        reset(plan, "Ada Lovelace", "line inspected")
        assert "tripped by itself" in log.read_text("utf-8"), "until a run's journal has it"


@pytest.mark.promise(12)
@pytest.mark.parametrize("file", ["latch.json", "guard.armed"])
def test_a_latch_that_cannot_be_read_keeps_nobody_from_making_safe(
    tmp_path: Path, file: str
) -> None:
    with served(approved_copy(tmp_path, edit=quick), tmp_path) as plan:
        (plan.state_dir / file).mkdir(parents=True)
        done = make_safe(plan, "Ada Lovelace", "found it so")
        assert done["unverified"] == []
        with pytest.raises(LatchUnreadable):
            reset(plan, "Ada Lovelace", "looked at it")


@pytest.mark.promise(12)
@pytest.mark.parametrize("slow_s", [0, 3], ids=["quick", "slow to start"])
def test_a_line_that_nobody_owns_is_made_safe_through_a_guard_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, slow_s: int
) -> None:
    def slowly(lab_file: Path) -> tuple[str, ...]:
        return ("/bin/sh", "-c", f'sleep {slow_s}; exec "$@"', "-", *guard_command(lab_file))

    monkeypatch.setattr("labharness.lab.wiring.lab.guard_command", slowly)
    with served(approved_copy(tmp_path, edit=quick), tmp_path) as plan:
        done = make_safe(plan, "Ada Lovelace", "found it so")
        assert done["unverified"] == []
        assert done["unopened"] == []


@pytest.mark.promise(12)
def test_an_adapter_that_is_pulled_out_keeps_no_other_port_from_being_made_safe(
    tmp_path: Path,
) -> None:
    with served(approved_copy(tmp_path, edit=quick), tmp_path) as plan:
        laser, gone = tmp_path / "tty-laser", tmp_path / "no-laser"
        text = plan.path.read_text("utf-8").replace(str(laser), str(gone))
        plan.path.write_text(text, "utf-8")
        plan = read_lab(plan.path)
        done = make_safe(plan, "Ada Lovelace", "found it so")
        why = f"port laser: serial {gone} does not open: No such file or directory"
        assert done["unopened"] == [why]
        assert done["unverified"] != []
        assert all(each.startswith("laser.") for each in done["unverified"]), done["unverified"]
        assert read_now(plan, ["box.vent"])[0]["value"] == 1.0
        latched = Trip(Cause.COMMUNICATION, SAFE_TABLE, "harness", None, 1.0, "it was killed")
        Latch(plan.state_dir / "latch.json").close(latched)
        with pytest.raises(NotReset, match="no-laser does not open"):
            reset(plan, "Ada Lovelace", "a line opens whole or not at all")

        assert (plan.state_dir / local.GUARD).exists()
        gone.symlink_to(os.readlink(laser))
        until(lambda: not (plan.state_dir / local.GUARD).exists(), "the guard gone, its duty done")


@pytest.mark.promise(15)
def test_what_was_made_safe_by_hand_stays_so_when_another_guard_begins(tmp_path: Path) -> None:
    with served(approved_copy(tmp_path, edit=quick), tmp_path) as plan:
        plan.state_dir.mkdir(parents=True)
        trip = Trip(Cause.COMMUNICATION, "hold_vacuum", "laser.emission", None, 1.0, "silent")
        Latch(plan.state_dir / "latch.json").close(trip)
        done = make_safe(plan, "Ada Lovelace", "the tube is at atmosphere")
        assert (done["procedure"], done["unverified"]) == ("immediate_shutdown", [])
        for _ in range(2):  # each of them starts a guard, and the first one's has begun by then
            shown = read_now(plan, ["box.vent"])
        assert shown[0]["value"] == 1.0, "the vent stays open"
        assert Latch(plan.state_dir / "latch.json").trip == replace(trip, procedure=SAFE_TABLE)


def test_a_lab_is_armed_from_the_command_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    approved_copy(tmp_path)
    assert main(["arm", str(tmp_path / "lab.toml")]) == 64
    assert "no port that is serial or tcp" in capsys.readouterr().err
    ports = ("heat", "inert", "hydrogen", "relays", "vacuum", "detector", "laser", "stage")
    plan = real(tmp_path, {port: f"/dev/{port}" for port in ports})
    assert main(["arm", str(plan.path)]) == 0
    said = capsys.readouterr().out
    assert str(plan.state_dir / ARMED_FILE) in said
    assert "heat" in said
    assert read_armed((plan.state_dir / ARMED_FILE).read_text("utf-8")).lab == plan.file.lab.id
    assert main(["arm", str(tmp_path / "none.toml")]) == 64
