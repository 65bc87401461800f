"""Each kind of fault changes what the plant, a bus or the harness's ground does, until it ends."""

import asyncio
import errno
import random
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from chaos_scenes import FAULTS, Play, fault, player, scenario, told
from labharness.chaos.scenario import Fault
from labharness.chaos.table import WRITES
from labharness.chaos.world import inject
from labharness.core.clock import Chance, Clock, VirtualLoop, run
from labharness.instruments.link import LoopbackLink
from labharness.instruments.simulation import BusFaults
from labharness.journal import JournalFailed
from labharness.lab import read_lab
from labharness.lab.wiring.simulated_lab import SimulatedLab
from labharness_simulators.plant import Faults
from rig import SHORT_LINE

PORT = "inert"
POLLS = (b"A\r", b"B\r", b"AS 50\r")  # the last one sets what is set already
WATCHED_S = 20
ARGON, BYPASS_SHUT, HYDROGEN, ISOLATION, VENT, PUMP, FURNACE = range(7)
ENERGISED = (ARGON, BYPASS_SHUT, HYDROGEN, ISOLATION, PUMP, FURNACE)

AMOUNTS = {
    "sensor_garbage": 1500.0,
    "sensor_wrong": 2.0,
    "sensor_slow": 30.0,
    "sensor_delayed": 5.0,
    "sensor_intermittent": 0.5,
    "flow_drift": 1.3,
    "air_leak": 20.0,
    "heater_runaway": 1.0,
    "hydrogen_escapes": 200.0,
}
TARGETS = {"bus_cut": PORT, "contact_stuck": "vent", "flow_drift": "argon"}
OF_THE_WORLD = ("kill", "pause", "stop_request")
OF_THE_GROUND = ("clock_jump", "disk_full")
IN_THE_ROOM = [kind for kind in FAULTS.rows if kind not in (*OF_THE_WORLD, *OF_THE_GROUND)]


def one(kind: str) -> Fault:
    if kind.startswith("sensor_"):
        return fault(kind, target="gauge", amount=AMOUNTS.get(kind, 0.0))
    if kind.startswith("reply_") or kind in WRITES:
        return fault(kind, target=PORT, amount=1.0)
    return fault(kind, target=TARGETS.get(kind, ""), amount=AMOUNTS.get(kind, 0.0))


def watched(broken: Fault | None) -> tuple[list[Any], list[Any]]:
    """What a plant under way does in 20 s and says in it, and what a wire brings."""

    async def main() -> tuple[list[Any], list[Any]]:
        loop = asyncio.get_running_loop()
        sim_lab = SimulatedLab(read_lab(SHORT_LINE).file, Clock(loop), Chance(1), nominal=True)
        plant = sim_lab.plant
        heard: list[Any] = []
        link = LoopbackLink(sim_lab.buses[PORT])
        link.receive = lambda data: heard.append((loop.time(), data))
        await link.open()
        plant.parts["relays"].coils[:] = [coil in ENERGISED for coil in range(8)]
        plant.parts["argon"].setpoint_sccm = plant.parts["hydrogen"].setpoint_sccm = 50.0
        await asyncio.sleep(5.0)
        undo = None if broken is None else inject(FAULTS, broken, sim_lab, None, random.Random(1))
        plant.parts["relays"].coils[VENT] = True
        seen: list[Any] = []
        for second in range(WATCHED_S):
            link.write(POLLS[second % len(POLLS)])
            await asyncio.sleep(1.0)
            relays = plant.parts["relays"]
            seen.append((plant.truth(), relays.inputs, plant.parts["gauge"].pressure_torr))
            seen.append(tuple(relays.contacts))
        if undo is not None:
            undo()
        assert plant.faults == Faults()
        assert plant.parts["argon"].drift == 1.0
        for bus in sim_lab.buses.values():
            bus.faults.injected = False
            assert bus.faults == BusFaults()
        return seen, heard

    return run(main(), VirtualLoop())


@pytest.mark.parametrize("kind", IN_THE_ROOM)
def test_a_fault_changes_what_the_room_does_until_it_ends(kind: str) -> None:
    seen, heard = watched(one(kind))
    well, told_well = watched(None)
    if kind.startswith("reply_") or kind in ("bus_cut", *WRITES):
        assert heard != told_well
        assert seen == well
    else:
        assert seen != well


def asked(port: str, frame: bytes, times: int, **faults: object) -> list[bytes]:
    """Return the replies of the short line's instruments to one frame, sent so often."""

    async def main() -> list[bytes]:
        sim_lab = SimulatedLab(
            read_lab(SHORT_LINE).file, Clock(asyncio.get_running_loop()), Chance(1), nominal=True
        )
        for name, value in faults.items():
            setattr(sim_lab.buses[port].faults, name, value)
        link = LoopbackLink(sim_lab.buses[port])
        heard: list[bytes] = []
        link.receive = heard.append
        await link.open()
        for _ in range(times):
            link.write(frame)
            await asyncio.sleep(1.0)
        coils = sim_lab.plant.parts["relays"].coils
        assert coils[FURNACE] == (port == "relays" and not faults.get("writes_refused")), coils
        return heard

    return run(main(), VirtualLoop())


MAINS_ON = bytes.fromhex("01 05 00 06 FF 00 6C 3B")
READ_COILS = bytes.fromhex("01 01 00 00 00 08 3D CC")


def test_a_write_is_refused_once_in_the_instrument_s_words_and_then_taken() -> None:
    refused, obeyed = asked("relays", MAINS_ON, 2, write_refused=1)
    assert refused[:3] == b"\x01\x85\x06", "exception 6: busy"
    assert obeyed == MAINS_ON


def test_a_write_is_lost_once_and_then_taken() -> None:
    assert asked("relays", MAINS_ON, 2, write_lost=1) == [MAINS_ON]


def test_what_refuses_every_write_answers_reads() -> None:
    assert all(each[1] == 0x85 for each in asked("relays", MAINS_ON, 3, writes_refused=True))
    (coils,) = asked("relays", READ_COILS, 1, writes_refused=True)
    assert coils[:3] == b"\x01\x01\x01"


@pytest.mark.parametrize(
    ("port", "frame", "says"),
    [
        ("inert", b"AS 50\r", b"?\r"),
        ("laser", b"l1\r", b"Syntax error: illegal command\r\n"),
        ("stage", b"GX,5\r", b"E,2\r"),
        ("vacuum", b"@253U!TORR;FF", b"@253NAK180;FF"),
        ("heat", bytes.fromhex("01 06 01 11 00 01 19 F3"), b"\x01\x86\x06"),
        ("spectrometer", b'{"id": 1, "command": "mono_open"}', b"busy"),
    ],
)
def test_each_instrument_refuses_in_its_own_words(port: str, frame: bytes, says: bytes) -> None:
    (reply,) = asked(port, frame, 1, writes_refused=True)
    assert says in reply


async def test_a_second_lie_of_a_sensor_outlasts_the_first() -> None:
    clock = Clock(asyncio.get_running_loop())
    sim_lab = SimulatedLab(read_lab(SHORT_LINE).file, clock, Chance(1), nominal=True)
    first = inject(FAULTS, one("sensor_slow"), sim_lab, None, random.Random(1))
    inject(FAULTS, one("sensor_off"), sim_lab, None, random.Random(1))
    first()
    assert sim_lab.plant.parts["gauge"].pressure_torr == 0.0


@pytest.mark.parametrize("kind", OF_THE_GROUND)
def test_a_fault_of_the_ground_changes_what_the_harness_stands_on(kind: str) -> None:
    journal = SimpleNamespace(commit=lambda: "kept")
    latch = SimpleNamespace(write=lambda path, text: "kept")
    lab: Any = SimpleNamespace(
        clock=SimpleNamespace(jumped_s=0.0),
        line=SimpleNamespace(journal=journal),
        guard=SimpleNamespace(latch=latch),
    )
    sim_lab: Any = SimpleNamespace(plant=None)
    undo = inject(FAULTS, fault(kind, amount=3600.0), sim_lab, lab, random.Random(1))
    if kind == "clock_jump":
        assert lab.clock.jumped_s == 3600.0
    else:
        with pytest.raises(JournalFailed):
            journal.commit()
        with pytest.raises(OSError, match="No space left") as full:
            latch.write(Path("latch.json"), "")
        assert full.value.errno == errno.ENOSPC
    undo()
    assert lab.clock.jumped_s == 0.0
    assert journal.commit() == latch.write(Path("latch.json"), "") == "kept"


def test_a_fault_that_comes_when_the_run_is_over_is_drawn_and_not_counted(tmp_path: Path) -> None:
    """The stop request ends the run in its loading; nothing of the ramp ever comes."""
    played: Play = player(tmp_path)
    verdict = played(
        scenario(fault("stop_request", "loading", 5.0), fault("heater_runaway", amount=20.0))
    )
    assert "stage ramp" not in told(verdict)
    assert verdict.injected == 1
