"""Verbs do what they say within their time, and say why they did not; the executor keeps score."""

import asyncio
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from labharness.core.clock import VirtualLoop, run
from labharness.core.vocabulary import Command, Ending, Outcome
from labharness.work.plan import (
    PHYSICAL_VERBS,
    Executor,
    FailureKind,
    Instruction,
    InstructionSet,
    Progress,
    RunningStep,
    Status,
    StepFailed,
    stated_commands,
)


class TrippedHere(RuntimeError):
    """Stands for the line's own exception, which a plan does not know."""


class FakeLine:
    """Channels are functions of lab time; every command is remembered."""

    def __init__(self, **channels: Callable[[float], float]) -> None:
        self.channels = {name.replace("__", "."): each for name, each in channels.items()}
        self.ending = Ending.CONFIRMED
        self.performed: list[Command] = []
        self.confirms_after_s = 10.0
        self.trips_at_s = math.inf
        self.volumes: Callable[[float], float] = lambda now_s: 0.0
        self.silent = False

    async def perform(self, command: Command) -> Outcome:
        self.performed.append(command)
        return Outcome(command, self.ending, command.value, "said the line")

    async def refusals(self, commands: Sequence[Command]) -> tuple[str, ...]:
        return ("",) * len(commands)

    async def read(self, channel: str) -> float:
        if self.silent:
            raise ConnectionError(f"{channel}: no reply")
        return self.latest(channel)

    async def query(
        self, instrument: str, name: str, about: Mapping[str, object] | None = None
    ) -> object:
        raise NotImplementedError

    def latest(self, channel: str) -> float:
        return self.channels[channel](self.now_s())

    def held_s(self) -> float:
        return 0.0

    def volumes_purged(self, contaminant: str) -> float:
        return self.volumes(self.now_s())

    def check(self) -> None:
        if self.now_s() >= self.trips_at_s:
            raise TrippedHere

    async def next_tick(self) -> None:
        await asyncio.sleep(1.0)
        self.check()

    def now_s(self) -> float:
        return asyncio.get_running_loop().time()

    async def confirm(self, action: str, text: str, details: Mapping[str, object]) -> str:
        await asyncio.sleep(self.confirms_after_s)
        return "ada"


def instruction(
    verb: str, name: str = "one", /, *, timeout_s: float = 100.0, **asked: Any
) -> Instruction:
    needs = tuple(asked.pop("needs", ()))
    return Instruction(
        instruction_id=name,
        action=verb,
        timeout_s=timeout_s,
        stage="stage",
        parameters=asked,
        dependencies=needs,
    )


def do(line: FakeLine, *steps: Instruction) -> Mapping[str, Any]:
    """Carry steps out and give the result of the last one."""
    records = run(Executor(InstructionSet(steps), line, PHYSICAL_VERBS).run(), VirtualLoop())
    result = records[-1].result
    assert result is not None
    return result


def failure(line: FakeLine, *steps: Instruction) -> StepFailed:
    with pytest.raises(StepFailed) as caught:
        do(line, *steps)
    return caught.value


SET = instruction("set", channel="argon.setpoint", value=50, unit="sccm")
RAMP: dict[str, Any] = {
    "setpoint": "furnace.setpoint",
    "process": "furnace.temperature",
    "unit": "degC",
    "rate_channel": "furnace.setpoint_rate",
    "rate": 60.0,
    "rate_unit": "degC/min",
    "tolerance": 3.0,
}


@pytest.fixture
def line() -> FakeLine:
    return FakeLine()


def test_set_sends_one_command(line: FakeLine) -> None:
    do(line, SET)
    assert line.performed == [Command("argon.setpoint", 50, "sccm")]
    assert tuple(line.performed) == stated_commands("set", SET.parameters)


@pytest.mark.parametrize("ending", list(Ending))
def test_only_a_confirmed_command_or_one_that_nothing_can_show_lets_the_plan_go_on(
    line: FakeLine, ending: Ending
) -> None:
    line.ending = ending
    if ending in (Ending.CONFIRMED, Ending.UNCONFIRMED):
        do(line, SET)
        return
    failed = failure(line, SET)
    assert "argon.setpoint = 50 sccm" in failed.reason
    assert "said the line" in failed.reason
    refused = ending is Ending.REFUSED
    assert failed.kind is (FailureKind.REFUSED if refused else FailureKind.EXECUTION)
    assert (failed.instruction_id, failed.stage) == ("one", "stage")


def test_a_ramp_limits_the_rate_before_it_sets_the_target_and_waits_for_the_process() -> None:
    line = FakeLine(furnace__temperature=lambda now_s: min(25.0 + now_s, 100.0))
    result = do(line, instruction("ramp", to=100.0, **RAMP))
    channels = [each.channel for each in line.performed]
    assert channels == ["furnace.setpoint_rate", "furnace.setpoint"]
    assert result["took_s"] == 72.0
    assert result["reached"] == 97.0


def test_a_ramp_downwards_arrives_from_above() -> None:
    line = FakeLine(furnace__temperature=lambda now_s: 100.0 - now_s)
    assert do(line, instruction("ramp", to=80.0, **RAMP))["reached"] == 83.0


def test_a_ramp_that_stalls_ends_at_its_time_and_says_where() -> None:
    line = FakeLine(furnace__temperature=lambda now_s: 25.0)
    failed = failure(line, instruction("ramp", to=100.0, timeout_s=30.0, **RAMP))
    assert failed.kind is FailureKind.TIMEOUT
    assert "furnace.temperature is 25, on its way to 100 degC: 30 s were allowed" in failed.reason


def test_a_stale_reading_is_never_what_was_waited_for() -> None:
    line = FakeLine(gauge__pressure=lambda now_s: math.nan if now_s < 20 else 1.0)
    waited = instruction("wait", channel="gauge.pressure", at_most=5.0)
    assert do(line, waited)["took_s"] == 20.0


def test_wait_ends_when_the_bound_is_met() -> None:
    line = FakeLine(gauge__pressure=lambda now_s: 10.0 * now_s)
    assert do(line, instruction("wait", channel="gauge.pressure", at_least=95.0))["value"] == 100.0


def test_hold_takes_its_time_and_averages_what_was_read() -> None:
    line = FakeLine(
        a__b=lambda now_s: math.nan if now_s == 3 else now_s, c__d=lambda now_s: math.nan
    )
    result = do(line, instruction("hold", duration_s=10.0, channels=["a.b", "c.d"]))
    assert result["measured"] == {"a.b": {"mean": 5.2, "min": 0.0, "max": 10.0, "readings": 10}}


def test_a_purge_counts_measured_volumes_and_no_time_stands_for_them(line: FakeLine) -> None:
    purge = instruction("purge", contaminant="air", volumes=5.5)
    assert failure(line, purge).reason.startswith("0.00 of 5.5 volumes have purged air")
    line.volumes = lambda now_s: now_s / 10
    assert do(line, purge)["volumes"] == 5.5


def test_a_purge_from_now_does_not_count_what_passed_before(line: FakeLine) -> None:
    line.volumes = lambda now_s: 7.0 + now_s / 10
    purge = instruction("purge", contaminant="air", volumes=1.0, from_now=True)
    assert do(line, purge)["volumes"] == pytest.approx(1.0)


RISE: dict[str, Any] = {
    "channel": "gauge.pressure",
    "unit": "Torr",
    "settle_s": 10.0,
    "duration_s": 30.0,
    "limit": 0.02,
}


def test_a_tight_tube_passes_the_leak_check_whatever_it_does_while_it_settles() -> None:
    line = FakeLine(gauge__pressure=lambda now_s: 9.0 if now_s < 10 else 0.05 + 0.01 / 60 * now_s)
    assert do(line, instruction("rate_of_rise", **RISE))["per_minute"] == pytest.approx(0.01)


@pytest.mark.parametrize(
    ("per_min", "why"),
    [(0.03, "rises 0.03 Torr/min, allowed 0.02: look for a leak"), (math.nan, "0 readings")],
)
def test_a_leaking_tube_and_a_gauge_that_says_nothing_fail(per_min: float, why: str) -> None:
    line = FakeLine(gauge__pressure=lambda now_s: 0.05 + per_min / 60 * now_s)
    assert why in failure(line, instruction("rate_of_rise", **RISE)).reason


ASK: dict[str, Any] = {"action": "load", "text": "Load.", "details": {"mass_mg": 15}}


def test_the_operators_name_is_kept() -> None:
    assert do(FakeLine(), instruction("ask_operator", **ASK))["confirmed_by"] == "ada"


def test_an_operator_who_does_not_come_in_time_fails_the_step(line: FakeLine) -> None:
    line.confirms_after_s = 1e6
    failed = failure(line, instruction("ask_operator", **ASK))
    assert failed.kind is FailureKind.TIMEOUT


def test_a_trip_passes_through_and_leaves_every_status_right(line: FakeLine) -> None:
    line.trips_at_s = 5.0
    steps = (
        SET,
        instruction("ask_operator", "two", **ASK),
        instruction("set", "three", **SET.parameters),
    )
    seen: list[Progress] = []
    executor = Executor(InstructionSet(steps), line, PHYSICAL_VERBS, seen.append)
    with pytest.raises(TrippedHere):
        run(executor.run(), VirtualLoop())
    states = [each.status for each in executor.records()]
    assert states == [Status.COMPLETED, Status.FAILED, Status.SKIPPED]
    assert [(each.index, each.status) for each in seen] == [
        (1, Status.RUNNING),
        (1, Status.COMPLETED),
        (2, Status.RUNNING),
        (2, Status.FAILED),
    ]
    assert executor.progress().total == 3


def test_a_timeout_is_a_status_of_its_own() -> None:
    line = FakeLine(a__b=lambda now_s: 0.0)
    steps = (
        instruction("wait", channel="a.b", at_least=1.0, timeout_s=5.0),
        instruction("hold", "b"),
    )
    executor = Executor(InstructionSet(steps), line, PHYSICAL_VERBS)
    with pytest.raises(StepFailed):
        run(executor.run(), VirtualLoop())
    assert [each.status for each in executor.records()] == [Status.TIMEOUT, Status.SKIPPED]
    assert executor.records()[0].ended_s == 5.0


def test_a_silent_instrument_fails_the_step_that_asked_it(line: FakeLine) -> None:
    line.silent = True
    failed = failure(line, instruction("ramp", to=100.0, **RAMP))
    assert failed.kind is FailureKind.EXECUTION
    assert failed.reason == "an instrument does not answer: furnace.temperature: no reply"


def test_a_result_reaches_the_instruction_that_refers_to_it() -> None:
    line = FakeLine(a__b=lambda now_s: 42.0)
    first = instruction("wait", "first", channel="a.b", at_least=1.0)
    value = "${dependencies.first.result.value}"
    then = instruction("set", "then", needs=["first"], channel="a.set", value=value, unit="W")
    do(line, first, then)
    assert line.performed == [Command("a.set", 42.0, "W")]


def test_a_reference_to_what_no_result_has_fails_the_step() -> None:
    line = FakeLine(a__b=lambda now_s: 42.0)
    first = instruction("wait", "first", channel="a.b", at_least=1.0)
    value = "${dependencies.first.result.colour}"
    then = instruction("set", "then", needs=["first"], channel="a.set", value=value, unit="W")
    assert "leads to nothing" in failure(line, first, then).reason
    assert not line.performed


def test_an_action_without_a_verb_is_refused_before_anything_runs() -> None:
    with pytest.raises(ValueError, match=r"no verb 'dance'; there are set, ramp"):
        Executor(InstructionSet((instruction("dance"),)), FakeLine(), PHYSICAL_VERBS)


def test_progress_before_the_first_step_says_so() -> None:
    found = Executor(InstructionSet((SET,)), FakeLine(), PHYSICAL_VERBS).progress()
    assert (found.index, found.total, found.status) == (0, 1, Status.PENDING)


def test_a_step_makes_its_failure_with_its_own_name() -> None:
    step = RunningStep(SET, FakeLine(), SET.parameters, 1.0)
    assert str(step.failed("why")) == "stage, one: why"
