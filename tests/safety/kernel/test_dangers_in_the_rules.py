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
from labharness.safety.kernel import Memory, Mode, judge
from model import NOW_S, Model, State
from rig import EXAMPLE, SHORT_LINE, Injection, Run, as_submit, submission

# ---- the envelope's rows, of which more stand in test_numbers_of_the_line.py


@pytest.fixture(params=[SHORT_LINE, default_lab_path()], ids=["short line", "shipped line"])
def plan(request: pytest.FixtureRequest) -> LabPlan:
    return read_lab(request.param)


@pytest.mark.parametrize("channel", ["furnace.setpoint", "sulfur.setpoint"])
@pytest.mark.parametrize(
    "readings",
    [{"box.pump_isolation": 1.0}, {"box.vent": 0.0}],
    ids=["open to the pump", "vent shut"],
)
def test_a_tube_is_not_heated_while_open_to_the_pump_or_shut(
    plan: LabPlan, channel: str, readings: dict[str, float]
) -> None:
    model, sound = Model(plan.envelope), State(purged=1, tight=1)
    heat = Command(channel, 200.0, "degC")
    assert isinstance(judge(heat, model.load(sound), NOW_S), Allowed)
    verdict = judge(heat, model.load(sound, readings), NOW_S)
    assert isinstance(verdict, Refused)
    assert verdict.rule.startswith("hot furnace only vented")


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
