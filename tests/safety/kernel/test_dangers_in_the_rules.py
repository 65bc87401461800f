"""What a reviewer found in the rules: each judged directly, beside what the rule still allows."""

import asyncio
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import pytest

from labharness.core.clock import VirtualLoop
from labharness.core.clock import run as run_on
from labharness.core.vocabulary import Allowed, Cause, Command, Refused, Request, Trip, Until
from labharness.faces.testing.faults import simulated_of
from labharness.instruments.link import Link
from labharness.lab import Lab, LabPlan, default_lab_path, read_lab
from labharness.lab.operate.idle_line import NotReset, reset
from labharness.line.events import Events
from labharness.line.exchanges import Exchanges
from labharness.line.trip_response import TripResponse
from labharness.safety.guard import GuardCore, Latch, SafeFrame
from labharness.safety.guard.shell import LoopGuard
from labharness.safety.kernel import Memory, Mode, begin, conclude, judge, observe
from rig import EXAMPLE, SHORT_LINE, Injection, Run, as_submit, submission

NOW_S = 100.0
SOUND = {  # a purged tube at atmosphere, vented, its exhaust running, all cold
    "furnace.temperature": 25.0,
    "furnace.setpoint": 20.0,
    "furnace.setpoint_rate": 15.0,
    "furnace.sensor_break": 0.0,
    "furnace.manual": 0.0,
    "furnace.mode": 0.0,
    "furnace.working_setpoint": 20.0,
    "sulfur.temperature": 25.0,
    "sulfur.setpoint": 20.0,
    "sulfur.setpoint_rate": 15.0,
    "sulfur.sensor_break": 0.0,
    "sulfur.manual": 0.0,
    "sulfur.mode": 0.0,
    "sulfur.working_setpoint": 20.0,
    "argon.flow": 100.0,
    "argon.setpoint": 100.0,
    "nitrogen.setpoint": 0.0,
    "hydrogen.flow": 0.0,
    "hydrogen.setpoint_active": 0.0,
    "gauge.pressure": 760.0,
    "box.exhaust_flow": 1.0,
    "box.lid_shut": 1.0,
    "box.enclosure_shut": 1.0,
    "box.furnace_contactor": 0.0,
    "box.sulfur_contactor": 0.0,
    "box.pump": 0.0,
    "box.vent": 1.0,
    "box.nitrogen_bypass_shut": 1.0,
    "box.pump_isolation": 0.0,
    "box.hydrogen_valve": 0.0,
    "laser.power": 0.0005,
}


@pytest.fixture(params=[SHORT_LINE, default_lab_path()], ids=["short line", "shipped line"])
def plan(request: pytest.FixtureRequest) -> LabPlan:
    return read_lab(request.param)


def judged(
    plan: LabPlan, command: Command, *, volumes: float = 1e6, **readings: float
) -> Allowed | Refused:
    """Judge on a sound line but for some readings; ``__`` in their names stands for a point."""
    memory = Memory(plan.envelope)
    memory.mode = Mode.RUNNING
    found = SOUND | {name.replace("__", "."): value for name, value in readings.items()}
    for channel, value in found.items():
        observe(memory, (memory.track(channel),), (value,), NOW_S)
    memory.proofs.leak.tight = True
    for contaminant in memory.proofs.purged.passed_cm3:
        memory.proofs.purged.passed_cm3[contaminant] = volumes * plan.envelope.purge.volume_cm3
    return judge(command, memory, NOW_S)


def refused_by(verdict: Allowed | Refused) -> str:
    return verdict.rule if isinstance(verdict, Refused) else "allowed"


# ---- the envelope's rows


@pytest.mark.parametrize("heater", ["furnace", "sulfur"])
def test_a_rate_of_zero_which_means_no_rate_limit_is_refused(plan: LabPlan, heater: str) -> None:
    channel, unit = f"{heater}.setpoint_rate", "degC/min"
    hot = {f"{heater}__setpoint": 200.0, f"{heater}__temperature": 150.0}
    assert isinstance(judged(plan, Command(channel, 15.0, unit), **hot), Allowed)
    assert refused_by(judged(plan, Command(channel, 0.0, unit), **hot)) == "limit"


@pytest.mark.parametrize("channel", ["furnace.setpoint", "sulfur.setpoint"])
@pytest.mark.parametrize(
    "readings",
    [{"box__pump_isolation": 1.0}, {"box__vent": 0.0}],
    ids=["open to the pump", "vent shut"],
)
def test_a_tube_is_not_heated_while_open_to_the_pump_or_shut(
    plan: LabPlan, channel: str, readings: dict[str, float]
) -> None:
    heat = Command(channel, 200.0, "degC")
    assert isinstance(judged(plan, heat), Allowed)
    assert refused_by(judged(plan, heat, **readings)).startswith("hot furnace only vented")


@pytest.mark.parametrize(
    "stop",
    [
        Command("argon.setpoint", 0.0, "sccm"),
        Command("box.argon_valve", 0.0, ""),
        Command("box.vent", 0.0, ""),
    ],
    ids=["setpoint", "valve", "vent"],
)
@pytest.mark.parametrize(
    "readings",
    [{"sulfur__temperature": 200.0}, {"volumes": 4.9}, {"furnace__temperature": 700.0}],
    ids=["hot sulfur", "hydrogen not swept out", "hot furnace"],
)
def test_the_inert_does_not_stop_over_what_it_sweeps_out(
    plan: LabPlan, stop: Command, readings: dict[str, float]
) -> None:
    assert isinstance(judged(plan, stop), Allowed)
    assert refused_by(judged(plan, stop, **readings)).startswith("inert ")


def test_a_flow_that_a_controller_may_not_hold_is_none_over_what_is_hot(plan: LabPlan) -> None:
    hot = {"furnace__temperature": 700.0}
    assert isinstance(judged(plan, Command("argon.setpoint", 20.0, "sccm"), **hot), Allowed)
    little = Command("argon.setpoint", 19.9, "sccm")
    assert (
        refused_by(judged(plan, little, **hot)) == "inert flow stays over hot sulfur and hydrogen"
    )


@pytest.mark.parametrize("heater", ["furnace", "sulfur"])
@pytest.mark.parametrize(
    ("readings", "row"),
    [
        ({"manual": 1.0}, "mains only on its controller"),
        ({"mode": 1.0}, "mains come before its setpoint, on its controller"),
        ({"working_setpoint": 61.0}, "mains come before its setpoint, on its controller"),
    ],
    ids=["manual at its keys", "manual as set", "setpoint ahead"],
)
def test_mains_go_to_a_controller_that_drives_from_the_cold_up(
    plan: LabPlan, heater: str, readings: dict[str, float], row: str
) -> None:
    mains = Command(f"box.{heater}_contactor", 1.0, "")
    assert isinstance(judged(plan, mains), Allowed)
    wrong = {f"{heater}__{name}": value for name, value in readings.items()}
    assert refused_by(judged(plan, mains, **wrong)) == f"{heater} {row}"


@pytest.mark.parametrize("heater", ["furnace", "sulfur"])
def test_a_heater_with_mains_is_not_put_into_manual(plan: LabPlan, heater: str) -> None:
    manual, on = Command(f"{heater}.mode", 1.0, ""), {f"box__{heater}_contactor": 1.0}
    assert isinstance(judged(plan, manual), Allowed)
    stays = f"{heater} stays on its controller while it has mains"
    assert refused_by(judged(plan, manual, **on)) == stays
    assert isinstance(judged(plan, Command(f"{heater}.mode", 0.0, ""), **on), Allowed)


@pytest.mark.parametrize(
    ("heater", "hot_c", "row"),
    [
        ("furnace", 150.0, "a hot furnace is heated only purged"),
        ("sulfur", 115.0, "hot sulfur is heated only purged"),
    ],
)
def test_what_is_hot_is_heated_only_purged_whatever_drives_it(
    plan: LabPlan, heater: str, hot_c: float, row: str
) -> None:
    mains = Command(f"box.{heater}_contactor", 1.0, "")
    hot = {f"{heater}__temperature": hot_c}
    assert isinstance(judged(plan, mains, **hot), Allowed)
    assert isinstance(judged(plan, mains, volumes=4.9), Allowed), "cold, it may wait for its purge"
    assert refused_by(judged(plan, mains, volumes=4.9, **hot)) == row


@pytest.mark.parametrize(
    ("readings", "row"),
    [
        ({"laser__power": 0.05}, "laser only at the power that may be set"),
        ({"box__lid_shut": 0.0}, "laser only with its enclosure shut"),
    ],
    ids=["left at 50 mW", "a person at the tube"],
)
def test_a_laser_shines_no_brighter_than_may_be_set_and_on_nobody(
    plan: LabPlan, readings: dict[str, float], row: str
) -> None:
    shine = Command("laser.emission", 1.0, "")
    assert isinstance(judged(plan, shine), Allowed)
    assert refused_by(judged(plan, shine, **readings)) == row


def test_a_pump_stands_still_only_while_it_is_shut_off(plan: LabPlan) -> None:
    stop, to_pump = Command("box.pump", 0.0, ""), Command("box.pump_isolation", 1.0, "")
    assert isinstance(judged(plan, stop), Allowed)
    assert refused_by(judged(plan, stop, box__pump_isolation=1.0)).startswith("the pump stops")
    ready = {"box__vent": 0.0, "box__pump": 1.0}
    assert isinstance(judged(plan, to_pump, **ready), Allowed)
    for lack in ({"box__pump": 0.0}, {"volumes": 4.9}):
        assert refused_by(judged(plan, to_pump, **{**ready, **lack})).startswith("pump only")


def test_a_silent_laser_shutter_is_noticed(plan: LabPlan) -> None:
    assert plan.envelope.watches["laser.emission"].procedure


@pytest.mark.parametrize(
    "heat",
    [Command("sulfur.setpoint", 60.0, "degC"), Command("box.sulfur_contactor", 1.0, "")],
    ids=["setpoint", "contactor"],
)
def test_sulfur_is_not_heated_by_a_broken_sensor(plan: LabPlan, heat: Command) -> None:
    assert isinstance(judged(plan, heat), Allowed)
    broken = judged(plan, heat, sulfur__sensor_break=1.0)
    assert refused_by(broken) == "no sulfur heat on a broken sensor"


def test_doubts_add_up_until_one_read_back_settles_them(short_plan: LabPlan) -> None:
    memory = Memory(short_plan.envelope)
    valve = memory.track("box.hydrogen_valve")
    observe(memory, (valve,), (0.0,), 1.0)
    begin(memory, Command("box.hydrogen_valve", 1.0, ""))
    begin(memory, Command("box.hydrogen_valve", 0.0, ""))
    assert set(valve.possible()) == {0.0, 1.0}
    conclude(memory, Command("box.hydrogen_valve", 0.0, ""))
    assert valve.possible() == (0.0,)


# ---- what is asked of a lab


def test_an_empty_data_classification_is_rejected(run_task: Run) -> None:
    body = json.loads(EXAMPLE.read_text("utf-8"))
    body["payload"]["constraints"]["data_classification"] = ""
    ran = run_task(None, as_submit(body))
    assert ran.type == "task_rejected"
    assert "data_classification" in ran.body["reason_message"]
    assert ran.lab.guard.core.log == []


@pytest.mark.parametrize(
    ("mass", "most_mg"), [("moo3_mass_mg", 500), ("sulfur_mass_mg", 2000)], ids=["MoO3", "sulfur"]
)
@pytest.mark.parametrize("factor", [1.001, 1e27])
def test_a_mass_above_the_schema_is_rejected(
    run_task: Run, mass: str, most_mg: float, factor: float
) -> None:
    ran = run_task(None, submission(recipe={mass: most_mg * factor}))
    assert ran.type == "task_rejected"
    assert ran.body["reason_code"] == "invalid_input"
    assert mass in ran.body["reason_message"]
    assert ran.lab.guard.core.log == []


# ---- a reset


@pytest.mark.parametrize(("fault", "lost"), [("exhaust_lost", "exhaust_flow"), ("lid_open", "lid")])
def test_a_reset_waits_until_the_lost_condition_is_back(
    short_plan: LabPlan, run_task: Run, monkeypatch: pytest.MonkeyPatch, fault: str, lost: str
) -> None:
    def lose(lab: Lab) -> None:
        setattr(simulated_of(lab).plant.faults, fault, True)

    ran = run_task(short_plan, inject=(Injection("ramp", 10.0, lose),))
    assert ran.lab.line.trip_response.trips[0].cause is Cause.INTERLOCK_LOST
    build = Lab.__init__

    def still_lost(lab: Lab, *args: Any, **options: Any) -> None:
        build(lab, *args, **options)
        lose(lab)

    with monkeypatch.context() as stands:
        stands.setattr(Lab, "__init__", still_lost)
        with pytest.raises(NotReset, match=lost):
            reset(short_plan, "A. Person", "it was only a draught")
    assert (short_plan.state_dir / "latch.json").exists()
    assert reset(short_plan, "A. Person", "it is back") is not None


# ---- ports and procedures


class Mute:
    """A link on which nothing ever answers."""

    kind = "loopback"

    def __init__(self) -> None:
        self.receive: Callable[[bytes], None] = lambda data: None

    async def open(self) -> None: ...

    def write(self, data: bytes) -> None: ...

    def close(self) -> None: ...


@pytest.mark.parametrize("waits_s", [0.1, 0.9, 1.5], ids=["in flight", "late", "as it drains"])
def test_the_port_of_an_abandoned_exchange_is_given_on(tmp_path: Path, waits_s: float) -> None:
    ask = Request(b"A\r", Until(b"\r"), 1.0)
    loop = VirtualLoop()

    async def main() -> None:
        links: Mapping[str, Link] = {"p": cast("Link", Mute())}
        guard = LoopGuard(GuardCore({"p": {b"A\r"}}, {}), links, Latch(tmp_path / "latch.json"))
        exchanges = Exchanges(guard, loop)
        first = loop.create_task(exchanges.ask("p", ask, bytes))
        await asyncio.sleep(0.05)
        second = loop.create_task(exchanges.ask("p", ask, bytes))
        await asyncio.sleep(waits_s)
        first.cancel()
        done, _ = await asyncio.wait([second], timeout=20)
        await asyncio.gather(first, return_exceptions=True)
        assert done, "20 s later nobody was given the port"
        assert "no reply within" in str(second.exception())

    run_on(main(), loop)


class Recording:
    """Stands for the guard: writes down what is sent again."""

    def __init__(self, core: GuardCore) -> None:
        self.core = core
        self.procedures = core.procedures
        self.again: list[tuple[str, ...]] = []
        self.latch = Latch(Path("no-such-folder/latch.json"))
        self.on_safe_frame: Callable[[SafeFrame, str], None] = lambda frame, error: None

    def trip(self, trip: Trip) -> None:
        self.core.trip(trip.procedure)

    def repeat(self, frames: list[SafeFrame]) -> None:
        self.again.append(tuple(frame.request.frame.decode() for frame in frames))


def procedure_frames(plan: LabPlan, name: str) -> Iterator[SafeFrame]:
    ports = {each.name: each.port for each in plan.instruments}
    for number, step in enumerate(plan.envelope.procedures[name].steps):
        port = ports[step.channel.partition(".")[0]]
        request = Request(f"{name} {number}".encode(), Until(b"\r"), 1.0)
        yield SafeFrame(number, port, request, step.channel, step.value)


def test_a_retry_ends_when_a_worse_procedure_is_in_force(short_plan: LabPlan) -> None:
    mild, worse = "immediate_shutdown", "close_all_valves_and_alert"
    frames = {name: tuple(procedure_frames(short_plan, name)) for name in (mild, worse)}
    ports = {frame.port: set[bytes]() for each in frames.values() for frame in each}
    loop = VirtualLoop()
    looks = 0

    async def main() -> Recording:
        memory = Memory(short_plan.envelope)
        memory.mode = Mode.RUNNING
        guard = Recording(GuardCore(ports, frames))

        async def blind(channels: Sequence[str], within_s: float) -> Mapping[str, float]:
            nonlocal looks
            looks += 1
            await asyncio.sleep(0.1)
            if looks == 2:  # the milder procedure was sent once more, and is looked at again
                trip_response.trip(
                    Trip(Cause.GAS_LEAK, worse, "h2_detector", 9000.0, loop.time(), "")
                )
            return {}

        trip_response = TripResponse(
            memory=memory,
            guard=cast("LoopGuard", guard),
            instruments={each.name: each for each in short_plan.instruments},
            loop=loop,
            note=lambda kind, body: None,
            read=blind,
            wake=lambda: None,
            events=Events(),
        )
        trip_response.trip(Trip(Cause.INTERLOCK_LOST, mild, "box.lid_shut", 0.0, loop.time(), ""))
        await trip_response.verified()
        assert [each.procedure for each in trip_response.verifications] == [mild, worse]
        return guard

    again = run_on(main(), loop).again
    names = [wave[0].rpartition(" ")[0] for wave in again]
    assert names[0] == mild
    assert len(names) > 2
    assert set(names[1:]) == {worse}, "the milder procedure was sent into the worse one's wave"
