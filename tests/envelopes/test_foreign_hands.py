"""A value that somebody else sets behind the gate is called, and trips where it defeats a limit.

The foreign master writes on the simulated bus, in the instrument's own bytes; whoever turns a knob
writes the same registers.
"""

import asyncio
import re
from pathlib import Path

import pytest

from hands import put, truth
from labharness.core.vocabulary import Cause, Command, Trip, crc16_modbus
from labharness.faces.testing.faults import simulated_of
from labharness.journal import SqliteJournal
from labharness.journal.reading import read
from labharness.lab import BadLabFile, Lab, LabPlan, default_lab_path, read_lab
from labharness.lab.wiring.alarms import line_alarms
from labharness.line.alarms import OFF_DELAY_S
from rig import SAFE_TABLE, approved_copy

POLL_S = 1.0
NOTICED_S = 2 * POLL_S + 0.25
RATE, OUTPUT_HIGH, MODE, TARGET = 35, 30, 273, 2  # Eurotherm HA026230
FURNACE, SULFUR, HYDROGEN, BOX = ("furnace", 1), ("sulfur", 2), ("hydrogen", 1), ("box", 1)
WATCHDOG, SOURCE = 514, 516  # BASIS 2 manual
HYDROGEN_VALVE, FURNACE_CONTACTOR, SULFUR_CONTACTOR, ON = 2, 6, 7, 0xFF00  # coils of the box


def frame(unit: int, function: int, address: int, word: int) -> bytes:
    """Make the frame of a write of one word (06) or coil (05), as any master would send it."""
    body = bytes([unit, function]) + address.to_bytes(2, "big") + word.to_bytes(2, "big")
    return body + crc16_modbus(body).to_bytes(2, "little")


def writes(lab: Lab, where: tuple[str, int], address: int, word: int, function: int = 6) -> None:
    """Let a foreign master write to an instrument of the room, on wires that are not ours."""
    name, unit = where
    reply = simulated_of(lab).faces[name].receive(frame(unit, function, address, word))
    assert reply is not None
    assert not reply[1] & 0x80, reply


async def heated(lab: Lab) -> None:
    """Ramp a furnace that has mains: as warm as an unpurged tube may be."""
    await put(lab, ("furnace.setpoint_rate", 20))
    await put(lab, ("box.furnace_contactor", 1))
    await put(lab, ("furnace.setpoint", 95))
    await asyncio.sleep(3.3)


def purged(lab: Lab) -> None:
    """Count the tube as purged and tight; it is full of argon, and shut."""
    lab.line.memory.proofs.purged.passed_cm3 |= {"air": 1e9, "hydrogen": 1e9}
    lab.line.memory.proofs.leak.tight = True


async def trip_within(lab: Lab, seconds: float) -> str:
    """Wait for a trip for so long; return its words, or none."""
    until_s = lab.clock.now_s() + seconds
    while lab.clock.now_s() < until_s:
        if lab.line.memory.trip is not None:
            return lab.line.memory.trip.detail
        await asyncio.sleep(0.05)
    return ""


def warnings(lab: Lab) -> list[str]:
    """Return the warnings of this line's journal."""
    journal = lab.line.journal
    assert isinstance(journal, SqliteJournal)
    journal.commit()  # nothing is left to write of a line that is closed
    return [each.body["detail"] for each in read(journal.path) if each.kind == "warning"]


@pytest.mark.promise(11)
@pytest.mark.parametrize(
    ("address", "word", "words"),
    [
        (RATE, 3000, "furnace.setpoint_rate reads 300 degC/min, and 20 was confirmed"),
        (RATE, 300, "furnace.setpoint_rate reads 30 degC/min, and 20 was confirmed"),
        (OUTPUT_HIGH, 500, "furnace.output_high reads 50 %, and 100 was confirmed"),
        (MODE, 1, "furnace.mode reads 1, and 0 was confirmed"),
    ],
)
async def test_a_foreign_write_that_defeats_a_limit_of_a_heated_furnace_trips_within_two_polls(
    lab: Lab, address: int, word: int, words: str
) -> None:
    await heated(lab)
    assert truth(lab)["furnace_heating"]
    writes(lab, FURNACE, address, word)
    assert words in await trip_within(lab, NOTICED_S)
    assert lab.line.trip_response.memory.trip is not None
    assert lab.line.trip_response.memory.trip.procedure == "immediate_shutdown"
    await lab.line.trip_response.verified()
    assert not truth(lab)["furnace_heating"]


@pytest.mark.promise(11)
@pytest.mark.parametrize(
    ("where", "address", "word", "function", "procedure"),
    [
        (HYDROGEN, WATCHDOG, 2000, 6, "close_all_valves_and_alert"),
        (HYDROGEN, SOURCE, 1, 6, "close_all_valves_and_alert"),
        (BOX, FURNACE_CONTACTOR, ON, 5, "immediate_shutdown"),
        (BOX, SULFUR_CONTACTOR, ON, 5, "immediate_shutdown"),
    ],
)
async def test_a_foreign_master_in_flowing_hydrogen_trips_within_two_polls(
    lab: Lab, where: tuple[str, int], address: int, word: int, function: int, procedure: str
) -> None:
    purged(lab)
    await put(lab, ("box.hydrogen_valve", 1))
    await put(lab, ("hydrogen.setpoint", 5))
    await asyncio.sleep(5.0)
    assert truth(lab)["hydrogen_sccm"] > 1
    writes(lab, where, address, word, function)
    assert "somebody else has set it" in await trip_within(lab, NOTICED_S)
    assert lab.line.trip_response.memory.trip is not None
    assert lab.line.trip_response.memory.trip.procedure == procedure
    await lab.line.trip_response.verified()
    await asyncio.sleep(3.0)
    assert truth(lab)["hydrogen_sccm"] < 0.1
    assert not truth(lab)["furnace_heating"]


async def test_a_hydrogen_valve_that_somebody_else_opens_is_shut_again(lab: Lab) -> None:
    purged(lab)
    await asyncio.sleep(2.0)
    writes(lab, BOX, HYDROGEN_VALVE, ON, 5)
    assert "box.hydrogen_valve reads 1, and 0 was confirmed" in await trip_within(lab, NOTICED_S)
    await lab.line.trip_response.verified()
    assert lab.line.trip_response.verifications[-1].complete


@pytest.mark.promise(11)
async def test_what_defeats_no_limit_is_called_once_and_again_when_it_changes(lab: Lab) -> None:
    await heated(lab)
    alarms = line_alarms(lab)
    name = "interlock_lost/furnace.setpoint/warning"
    for word, seen in ((900, 1), (900, 1), (800, 2)):
        writes(lab, FURNACE, TARGET, word)
        await asyncio.sleep(10.0)
        assert len(warnings(lab)) == seen
        assert alarms.board.alarms[name].state.active
    assert "furnace.setpoint reads 90 degC, and 95 was confirmed" in warnings(lab)[0]
    assert "furnace.setpoint reads 80 degC, and 95 was confirmed" in warnings(lab)[1]
    assert lab.line.memory.trip is None
    await put(lab, ("furnace.setpoint", 85))
    await asyncio.sleep(OFF_DELAY_S + 5)
    assert not alarms.board.alarms[name].state.active
    assert len(warnings(lab)) == 2


async def test_what_was_changed_before_it_could_do_harm_trips_when_it_can(lab: Lab) -> None:
    writes(lab, FURNACE, OUTPUT_HIGH, 500)
    await asyncio.sleep(5.0)
    assert lab.line.memory.trip is None
    assert len(warnings(lab)) == 1
    await lab.line.perform(Command("box.furnace_contactor", 1.0, ""))
    assert "furnace.output_high reads 50 %" in await trip_within(lab, NOTICED_S)


@pytest.mark.promise(11)
async def test_what_a_procedure_prepare_or_a_person_at_a_disarmed_line_sets_is_nobody_elses(
    lab: Lab,
) -> None:
    await heated(lab)
    assert (await lab.line.settle(SAFE_TABLE)).complete
    await asyncio.sleep(5.0)
    lab.line.disarm()
    writes(lab, FURNACE, RATE, 70)
    writes(lab, FURNACE, TARGET, 300)
    await asyncio.sleep(5.0)
    await lab.line.arm(SAFE_TABLE)
    lab.line.start()
    await asyncio.sleep(5.0)
    assert warnings(lab) == []
    assert lab.line.memory.trip is None


@pytest.mark.promise(11)
async def test_a_line_that_is_held_safe_or_has_tripped_goes_on_looking(lab: Lab) -> None:
    lab.line.trip_response.trip(
        Trip(Cause.STOP_REQUEST, SAFE_TABLE, "by_hand", None, lab.clock.now_s(), "stop")
    )
    await lab.line.trip_response.verified()
    await asyncio.sleep(5.0)
    assert warnings(lab) == []
    writes(lab, FURNACE, TARGET, 500)
    await asyncio.sleep(3.0)
    assert ["furnace.setpoint reads 50 degC" in each for each in warnings(lab)] == [True]


def test_both_lines_look_as_often_as_their_wires_allow(short_plan: LabPlan) -> None:
    for plan in (short_plan, read_lab(default_lab_path())):
        plan.must_hold()
        for limit in plan.envelope.limits.values():
            if limit.on_foreign:
                assert plan.envelope.watches[limit.readback].stale_s <= 3.5
                assert plan.envelope.watches[limit.readback].procedure


def changed(folder: Path, after: str, row: str) -> LabPlan:
    """Read the short line with a line more in a limit of the shipped envelope."""

    def edit(text: str) -> str:
        return text.replace(f"[[limit]]\n{after}", f"[[limit]]\n{after}{row}\n")

    return approved_copy(folder, edit=edit)


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ('on_foreign = "nothing"', "limit furnace.setpoint runs 'nothing', which"),
        (
            'foreign_while = { channel = "box.vent", at_least = 1 }',
            "foreign_while takes on_foreign",
        ),
        (
            'on_foreign = "hold_vacuum"\nforeign_while = { channel = "box.vnt", at_least = 1 }',
            "limit furnace.setpoint relies on 'box.vnt', which",
        ),
        ("on_foreign = true", "on_foreign"),
    ],
)
def test_a_row_that_cannot_be_honoured_is_refused(tmp_path: Path, row: str, words: str) -> None:
    with pytest.raises(BadLabFile, match=re.escape(words)):
        changed(tmp_path, 'channel = "furnace.setpoint"\n', row)


@pytest.mark.parametrize(
    ("channel", "words"),
    [
        ("furnace.output", "its read-back moves by itself"),
        ("spectrometer.acquire", "nothing shows what was set"),
        ("stage.x", "limit stage.x relies on 'stage.x', which"),
    ],
)
def test_a_read_back_that_shows_nothing_cannot_trip(
    tmp_path: Path, channel: str, words: str
) -> None:
    with pytest.raises(BadLabFile, match=re.escape(words)):
        changed(tmp_path, f'channel = "{channel}"\n', 'on_foreign = "immediate_shutdown"')
