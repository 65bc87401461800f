"""Each procedure of each line that ships, read step by step at the simulated plant.

It is played by the guard alone, as when the harness has died, and by the line; from a hot tube,
from a vacuum, from flowing hydrogen. A new procedure of a line is played without a new test. What a
safe state is stands here too, whatever the envelope lists: no other test misses a forgotten step.
"""

import asyncio
from collections.abc import Callable, Coroutine, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

import labharness_envelopes
from labharness.core.clock import Chance, Clock, VirtualLoop, run
from labharness.core.vocabulary import Cause, Trip
from labharness.instruments.link import LoopbackLink
from labharness.journal.null_journal import NullJournal
from labharness.lab import Lab, LabPlan, read_lab
from labharness.lab.wiring.simulated_lab import SimulatedLab
from labharness.line.instrument import read_frames
from labharness.safety.guard import GuardCore, Latch, SafeFrame
from labharness.safety.guard.shell import LoopGuard
from rig import SHORT_LINE

SHIPPED = Path(str(labharness_envelopes.__file__)).parent
PLANT = "cvd_tube"
EVERY_LAB = [SHORT_LINE, *sorted(SHIPPED.glob("labs/*/lab.toml"))]
LABS = [each for each in EVERY_LAB if f'kind = "{PLANT}"' in each.read_text("utf-8")]

# Registers of a Eurotherm 2400 (HA026230), and the relays as they are wired (K1 is 0).
TARGET, OUTPUT, WORKING, RATE, MANUAL = 2, 3, 4, 35, 273
ARGON, BYPASS_SHUT, HYDROGEN, ISOLATION, VENT, PUMP, FURNACE, SULFUR = range(8)
BYPASS_SCCM, INERT_SCCM = 500.0, 100.0
FOUND_S = 5.0  # a valve's and a controller's lag, and a control loop's first answer
LEAST_SCCM = 0.5  # flows below are a controller's zero
LOOK_S = 0.002
SAME = 0.05  # the resolution of a controller's register

Work = Coroutine[Any, Any, "Played"]


@dataclass
class Scene:
    """The simulated lab, its controllers' registers and its relays."""

    lab: SimulatedLab

    @property
    def coils(self) -> list[bool]:
        coils: list[bool] = self.lab.plant.parts["relays"].coils
        return coils

    @property
    def truth(self) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self.lab.plant.truth()
        return found

    def register(self, name: str, address: int) -> int:
        (word,) = self.lab.faces[name].read_registers(3, address, 1)
        return int(word)

    def write(self, name: str, address: int, word: int) -> None:
        self.lab.faces[name].write_registers(6, address, [word])

    def flow_set_sccm(self, name: str) -> float:
        return float(self.lab.plant.parts[name].setpoint_sccm)

    def heats(self, name: str, temperature_c: float, setpoint_c: float) -> None:
        """Leave a heater in automatic, its power on: its controller asks for more."""
        nodes = {"furnace": ("heater_k", "tube_k"), "sulfur": ("boat_k",)}[name]
        for each in (*nodes, "_thermocouple_k"):
            setattr(self.lab.plant.parts[name], each, temperature_c + 273.15)
        self.write(name, MANUAL, 0)
        self.write(name, RATE, 0)
        self.write(name, TARGET, round(10 * setpoint_c))

    def flows(self, **sccm: float) -> None:
        for name, value in sccm.items():
            self.lab.plant.parts[name].setpoint_sccm = value

    def relays(self, *energised: int) -> None:
        self.coils[:] = [number in energised for number in range(8)]


def hot(sim_lab: Scene) -> None:
    sim_lab.heats("furnace", 750.0, 900.0)
    sim_lab.heats("sulfur", 180.0, 260.0)
    sim_lab.flows(argon=300.0, nitrogen=50.0)
    sim_lab.relays(ARGON, BYPASS_SHUT, VENT, FURNACE, SULFUR)


def flowing_hydrogen(sim_lab: Scene) -> None:
    hot(sim_lab)
    sim_lab.flows(hydrogen=50.0)
    sim_lab.relays(ARGON, BYPASS_SHUT, HYDROGEN, VENT, FURNACE, SULFUR)


def hot_in_nitrogen(sim_lab: Scene) -> None:
    """Swept through the bypass alone, its argon shut off."""
    hot(sim_lab)
    sim_lab.relays(VENT, FURNACE, SULFUR)


def vacuum(sim_lab: Scene) -> None:
    """Cold, pumped down, and everything on all the same that a hand could have left so."""
    sim_lab.heats("furnace", 25.0, 60.0)
    sim_lab.heats("sulfur", 25.0, 60.0)
    sim_lab.flows(argon=2.0, nitrogen=1.0, hydrogen=1.0)
    sim_lab.relays(ARGON, BYPASS_SHUT, HYDROGEN, ISOLATION, PUMP, FURNACE, SULFUR)
    sim_lab.lab.plant._gas.evacuate_to(100.0)


STATES: Mapping[str, Callable[[Scene], None]] = {
    "hot": hot,
    "hot in nitrogen": hot_in_nitrogen,
    "vacuum": vacuum,
    "flowing hydrogen": flowing_hydrogen,
}


def coil(number: int) -> Callable[[Scene], float]:
    return lambda sim_lab: float(sim_lab.coils[number])


def register(name: str, address: int, per_unit: float = 1.0) -> Callable[[Scene], float]:
    return lambda sim_lab: sim_lab.register(name, address) / per_unit


def setpoint(name: str) -> Callable[[Scene], float]:
    return lambda sim_lab: sim_lab.flow_set_sccm(name)


AT_THE_PLANT: Mapping[str, Callable[[Scene], float]] = {
    "box.argon_valve": coil(ARGON),
    "box.nitrogen_bypass_shut": coil(BYPASS_SHUT),
    "box.hydrogen_valve": coil(HYDROGEN),
    "box.pump_isolation": coil(ISOLATION),
    "box.vent": coil(VENT),
    "box.pump": coil(PUMP),
    "box.furnace_contactor": coil(FURNACE),
    "box.sulfur_contactor": coil(SULFUR),
    "furnace.mode": register("furnace", MANUAL),
    "sulfur.mode": register("sulfur", MANUAL),
    "furnace.output": register("furnace", OUTPUT, 10.0),
    "sulfur.output": register("sulfur", OUTPUT, 10.0),
    "furnace.setpoint": register("furnace", TARGET, 10.0),
    "sulfur.setpoint": register("sulfur", TARGET, 10.0),
    "argon.setpoint": setpoint("argon"),
    "nitrogen.setpoint": setpoint("nitrogen"),
    "hydrogen.setpoint": setpoint("hydrogen"),
    "laser.emission": lambda sim_lab: float(sim_lab.truth["laser_on"]),
}

OFF = (
    # What every procedure ends with, whatever else it does: each way by itself.
    "box.furnace_contactor",
    "box.sulfur_contactor",
    "box.hydrogen_valve",
    "box.pump_isolation",
    "box.pump",
    "furnace.output",
    "sulfur.output",
    "furnace.setpoint",
    "sulfur.setpoint",
    "hydrogen.setpoint",
    "laser.emission",
)
IN_MANUAL = ("furnace.mode", "sulfur.mode")  # or an output of 0 is not what the heater gets
GASES_OFF = {"box.argon_valve": 0.0, "box.nitrogen_bypass_shut": 1.0, "argon.setpoint": 0.0}
SHUT_IN = {**GASES_OFF, "nitrogen.setpoint": 0.0}
SWEPT = {"box.vent": 1.0, "box.argon_valve": 1.0, "box.nitrogen_bypass_shut": 0.0}
ENDS: Mapping[str, Mapping[str, float]] = {
    # docs/reference/envelope-file.md, "The procedures of a CVD line"
    "immediate_shutdown": {**SWEPT, "argon.setpoint": INERT_SCCM},
    "close_all_valves_and_alert": {**SWEPT, "argon.setpoint": INERT_SCCM},
    "relieve_pressure": {**SHUT_IN, "box.vent": 1.0},
    "hold_vacuum": {**SHUT_IN, "box.vent": 0.0},
    "hold_inert": {
        "box.vent": 1.0,
        "box.argon_valve": 1.0,
        "box.nitrogen_bypass_shut": 1.0,
        "argon.setpoint": INERT_SCCM,
        "nitrogen.setpoint": 0.0,
    },
}
HEAT_OFF = ("box.furnace_contactor", "box.sulfur_contactor")
PUMP_OFF = ("box.pump_isolation", "box.pump")  # a pump that stops first lets its oil back
FIRST: Mapping[str, tuple[str, ...]] = {
    "immediate_shutdown": (*HEAT_OFF, "box.hydrogen_valve", *PUMP_OFF),
    "close_all_valves_and_alert": ("box.hydrogen_valve", *HEAT_OFF, *PUMP_OFF),
    "relieve_pressure": (*HEAT_OFF, "box.vent", "box.argon_valve", "box.nitrogen_bypass_shut"),
    "hold_vacuum": ("box.hydrogen_valve", *HEAT_OFF, *PUMP_OFF),
    "hold_inert": ("box.hydrogen_valve", *HEAT_OFF, *PUMP_OFF),
}
"""The relays that move before any other, in this order."""


def cases() -> Iterator[Any]:
    for path in LABS:
        plan = read_lab(path)
        for procedure in plan.envelope.procedures:
            for state in STATES:
                name = f"{plan.file.lab.id}, {procedure}, {state}"
                yield pytest.param(path, procedure, state, id=name)


EVERY = pytest.mark.parametrize(("path", "procedure", "state"), list(cases()))


@dataclass
class Played:
    """What is seen of a procedure at the plant while it is sent.

    Attributes:
        sent: The procedure that was sent.
        moved: Each channel that was elsewhere before and came to its value, in order.
        unmoved: Those that have not come to their value yet.
        errors: What the guard or the line found wrong with it.
    """

    sent: str
    moved: list[str] = field(default_factory=list)
    unmoved: dict[str, float] = field(default_factory=dict)
    errors: list[str] = field(default_factory=list)

    async def watch(self, plan: LabPlan, sim_lab: Scene, begin: Callable[[], None]) -> None:
        """Look at the plant, from before the first byte until the wire's time is over."""
        loop = asyncio.get_running_loop()
        row = plan.envelope.procedures[self.sent]
        wanted = {step.channel: step.value for step in row.steps}
        missing = sorted(set(wanted) - set(AT_THE_PLANT))
        assert not missing, f"say in AT_THE_PLANT how {missing} are read at the plant"

        def there(channel: str) -> bool:
            return abs(AT_THE_PLANT[channel](sim_lab) - wanted[channel]) < SAME

        self.unmoved = {each: value for each, value in wanted.items() if not there(each)}
        until_s = loop.time() + row.wire_s_max
        begin()
        while self.unmoved and loop.time() < until_s:
            await asyncio.sleep(LOOK_S)
            come = [each for each in self.unmoved if there(each)]
            self.moved += come
            for each in come:
                del self.unmoved[each]


def play(path: Path, state: str, folder: Path, work: Callable[[LabPlan, Scene], Work]) -> Played:
    """Put a simulated lab into a state, and send a procedure in it, in virtual time."""
    loop = VirtualLoop()
    plan = replace(read_lab(path), state_dir=folder)

    async def main() -> Played:
        sim_lab = Scene(SimulatedLab(plan.file, Clock(loop), Chance(1)))
        sim_lab.lab.plant.parts["laser"].on = True
        STATES[state](sim_lab)
        await asyncio.sleep(FOUND_S)
        before = sim_lab.truth
        assert before["furnace_heating"]
        assert before["sulfur_heating"]
        assert (before["hydrogen_sccm"] > LEAST_SCCM) is not state.startswith("hot")
        played = await work(plan, sim_lab)
        await asyncio.sleep(FOUND_S)
        is_safe(played, sim_lab)
        return played

    return run(main(), loop)


def is_safe(played: Played, sim_lab: Scene) -> None:
    """Hold the plant against what every safe state is, and against the one that was sent."""
    assert played.errors == []
    assert played.unmoved == {}, "within the time on the wire"
    found = {channel: read(sim_lab) for channel, read in AT_THE_PLANT.items()}
    assert {each: found[each] for each in OFF} == dict.fromkeys(OFF, 0.0)
    assert {each: found[each] for each in IN_MANUAL} == dict.fromkeys(IN_MANUAL, 1.0)
    truth = sim_lab.truth
    assert not truth["furnace_heating"]
    assert not truth["sulfur_heating"]
    assert truth["hydrogen_sccm"] < LEAST_SCCM
    assert not truth["laser_on"]
    assert found["box.vent"] or truth["inert_sccm"] < LEAST_SCCM, "gas into a shut tube"
    ends = ENDS.get(played.sent, {})
    assert {each: found[each] for each in ends} == pytest.approx(ends)
    if ends:
        bypass = 0.0 if ends["box.nitrogen_bypass_shut"] else BYPASS_SCCM
        flows = INERT_SCCM + bypass if ends["box.argon_valve"] else 0.0
        assert truth["inert_sccm"] - truth["nitrogen_sccm"] == pytest.approx(flows, abs=10.0)
    relays = [each for each in played.moved if each.startswith("box.")]
    first = [each for each in FIRST.get(played.sent, ()) if each in relays]
    assert relays[: len(first)] == first, "the most hazardous first"


@pytest.mark.promise(12)
@EVERY
def test_the_guard_alone_brings_the_plant_to_each_step_of_each_procedure(
    tmp_path: Path, path: Path, procedure: str, state: str
) -> None:
    async def work(plan: LabPlan, sim_lab: Scene) -> Played:
        played = Played(procedure)
        links = {name: LoopbackLink(bus) for name, bus in sim_lab.lab.buses.items()}
        for link in links.values():
            await link.open()
        core = GuardCore(read_frames(plan.instruments), plan.procedures())
        guard = LoopGuard(core, links, Latch(tmp_path / "latch.json"))

        def answered(frame: SafeFrame, error: str) -> None:
            if error:
                played.errors.append(f"{frame.channel}: {error}")

        guard.on_safe_frame = answered
        trip = Trip(Cause.COMMUNICATION, procedure, "harness", None, 0.0, "the harness died")
        await played.watch(plan, sim_lab, lambda: guard.trip(trip))
        guard.close()
        return played

    assert play(path, state, tmp_path, work).sent == procedure


@pytest.mark.promise(12)
@EVERY
def test_the_line_brings_the_plant_to_the_procedure_that_fits_its_pressure(
    tmp_path: Path, path: Path, procedure: str, state: str
) -> None:
    sucked_pa: list[float] = []

    async def work(plan: LabPlan, sim_lab: Scene) -> Played:
        loop = asyncio.get_running_loop()
        lab = Lab(
            plan, clock=Clock(loop), chance=Chance(1), journal=NullJournal(), sim_lab=sim_lab.lab
        )
        for link in lab.links.values():
            await link.open()
        line = lab.line
        await line.read_all([*line.envelope.watches], FOUND_S)
        played = Played(line.memory.procedure(procedure))
        trip = Trip(Cause.STOP_REQUEST, procedure, "test", None, 0.0, "test")
        await played.watch(plan, sim_lab, lambda: line.trip_response.trip(trip, disarmed=True))
        await line.trip_response.verified()
        played.errors += line.trip_response.verifications[-1].unverified()
        await line.close()
        sucked_pa.append(sim_lab.truth["sucked_back_pa"])
        return played

    played = play(path, state, tmp_path, work)
    relieves = procedure == "relieve_pressure"  # whatever was read: a tube may burst
    shut_in = state == "vacuum" and not relieves
    assert played.sent == ("hold_vacuum" if shut_in else procedure)
    assert relieves or sucked_pa == [0.0]


def test_every_line_that_ships_is_played() -> None:
    found = [read_lab(path) for path in EVERY_LAB]
    named = {plan.envelope.line for plan in found} | {"measures"}  # on it nothing is ever set
    assert named >= {
        path.stem for path in SHIPPED.glob("lines/*.toml") if path.suffixes == [".toml"]
    }
    other = {"annealing_furnace", "iv_bench"}  # their capabilities' tests look at their own plants
    assert {plan.envelope.line for plan in found if plan.path not in LABS} == other
