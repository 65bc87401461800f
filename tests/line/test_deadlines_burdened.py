"""A trip's deadline in real time while everything else is in its way; these run alone.

What is in its way is real: another connection's lock on the journal's file, a file that may not
grow by one page, ten thousand commands that wait, a thread that computes. The cause falls due at a
stated moment; what counts is when the last byte of the first wave has been handed over.
"""

import asyncio
import contextlib
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from labharness.core.clock import Chance, Clock, PacedLoop, run
from labharness.core.vocabulary import Cause, Command, Trip
from labharness.journal import JournalFailed, SqliteJournal
from labharness.lab import Lab, LabPlan
from labharness.line import Tripped
from labharness.safety.guard import Source
from rig import SAFE_TABLE

SOFTWARE_S_MAX = 0.050
COMMANDS = 10_000
COMMANDS_A_TURN = 50
THOUGHT_S = 30.0
SPEED = 10.0  # of lab time, so that arming takes a second; deadlines are counted in real ones
LATER_S = 0.02  # so long after the burden is laid, in lab time, the cause falls due
AROUND_S = 30.0  # lab time until the procedure is verified; nothing here takes longer
CONTACTOR = Command("box.furnace_contactor", 1.0, "")
LEAK = "close_all_valves_and_alert"

pytestmark = pytest.mark.serial
Burden = Callable[[Lab, contextlib.ExitStack], None]


async def command(lab: Lab) -> None:
    """Perform a command; its intent goes to the journal first."""
    with contextlib.suppress(JournalFailed):  # the line trips on it
        await lab.line.perform(Command("argon.setpoint", 100.0, "sccm"))


async def flood(lab: Lab) -> None:
    """Ask for commands without end, as from many sockets: some at each turn of the loop."""
    loop = asyncio.get_running_loop()
    asked: list[asyncio.Task[None]] = []
    while len(asked) < COMMANDS:
        asked += [loop.create_task(command(lab)) for _ in range(COMMANDS_A_TURN)]
        await asyncio.sleep(0)
    await asyncio.gather(*asked)


async def think(lab: Lab, thought: asyncio.Future[None]) -> None:
    """Wait for a thought as a plan's step does."""
    with contextlib.suppress(Tripped):
        await lab.line.unless_tripped(asyncio.wait_for(thought, THOUGHT_S))


def locked_database(lab: Lab, burdens: contextlib.ExitStack) -> None:
    journal = lab.line.journal
    assert isinstance(journal, SqliteJournal)
    other = burdens.enter_context(
        contextlib.closing(sqlite3.connect(journal.path, isolation_level=None))
    )
    other.execute("BEGIN EXCLUSIVE")
    lab.clock.loop.create_task(command(lab))


def full_disk(lab: Lab, burdens: contextlib.ExitStack) -> None:
    journal = lab.line.journal
    assert isinstance(journal, SqliteJournal)
    (pages,) = journal._database.execute("PRAGMA page_count").fetchone()
    journal._database.execute(f"PRAGMA max_page_count = {pages}")
    blocked = lab.plan.state_dir / "latch.new"
    blocked.mkdir()  # nor is there room for a latch
    burdens.callback(blocked.rmdir)
    lab.clock.loop.create_task(command(lab))


def ten_thousand_commands(lab: Lab, burdens: contextlib.ExitStack) -> None:
    lab.clock.loop.create_task(flood(lab))


def planner_in_mid_thought(lab: Lab, burdens: contextlib.ExitStack) -> None:
    """Let a planner compute in a thread, without ever letting go of the interpreter by itself."""
    enough = threading.Event()

    def compute() -> None:
        while not enough.is_set():
            sum(number * number for number in range(1000))

    thought = lab.clock.loop.run_in_executor(None, compute)
    lab.clock.loop.call_later(THOUGHT_S, enough.set)
    burdens.callback(enough.set)
    lab.clock.loop.create_task(think(lab, thought))


def note_first_bytes(lab: Lab, left: dict[str, float], monkeypatch: pytest.MonkeyPatch) -> None:
    """Note for each port when the leak's first frame had been handed over."""
    causes: list[Cause] = []
    trip = lab.guard.trip

    def tripped(trip_: Trip) -> None:
        causes.append(trip_.cause)
        trip(trip_)

    monkeypatch.setattr(lab.guard, "trip", tripped)
    for port, link in lab.links.items():

        def handed_over(
            data: bytes, port: str = port, write: Callable[[bytes], None] = link.write
        ) -> None:
            write(data)
            log = lab.guard.core.log or []
            if causes and causes[-1] is Cause.GAS_LEAK and log[-1].source is Source.PROCEDURE:
                left.setdefault(port, lab.clock.now_s())

        monkeypatch.setattr(link, "write", handed_over)


@pytest.mark.promise(13)
@pytest.mark.parametrize(
    "burden", [locked_database, full_disk, ten_thousand_commands, planner_in_mid_thought]
)
def test_a_trip_keeps_its_software_time_under_any_burden(
    short_plan: LabPlan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, burden: Burden
) -> None:
    loop = PacedLoop(SPEED)
    left: dict[str, float] = {}
    due: list[float] = []

    async def main() -> Lab:
        journal = SqliteJournal(tmp_path / "journal.sqlite")
        lab = Lab(short_plan, clock=Clock(loop), chance=Chance(1), journal=journal)
        await lab.line.open()
        await lab.line.arm(SAFE_TABLE)
        lab.line.start()
        await lab.line.perform(CONTACTOR)
        note_first_bytes(lab, left, monkeypatch)
        with contextlib.ExitStack() as burdens:
            due.append(loop.time() + LATER_S)
            leak = Trip(Cause.GAS_LEAK, LEAK, "test", None, due[0], "test")
            loop.call_at(due[0], lab.line.trip_response.trip, leak)
            burden(lab, burdens)
            await asyncio.sleep(2 * LATER_S)
            await asyncio.wait_for(lab.line.trip_response.verified(), AROUND_S)
            journal._database.execute("PRAGMA max_page_count = 1000000")
        lab.guard.latch.open()
        await lab.line.close()
        journal.close()
        return lab

    lab = run(main(), loop)
    assert left.keys() == {frame.port for frame in lab.guard.core.procedures[LEAK]}
    took_s = (max(left.values()) - due[0]) / SPEED
    assert took_s <= SOFTWARE_S_MAX, f"{took_s * 1e3:.1f} ms"
    assert lab.line.trip_response.verifications[-1].complete
