"""A checkpoint says how far a run came and how its line stood; nothing may be heated after it."""

import asyncio
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from labharness.instruments.driver import Adds
from labharness.journal import JournalFailed, SqliteJournal
from labharness.work.desk.checkpoint import KIND, checkpoints, heated_since
from labharness.work.desk.energised import EnergySource
from labharness.work.plan import (
    Executor,
    Instruction,
    InstructionSet,
    ResumePoint,
    RunningStep,
    Status,
    StepRecord,
)

FURNACE = EnergySource(
    name="furnace",
    adds=Adds.HEAT,
    switches={"box.contactor": 0.0},
    targets={"furnace.setpoint": 800.0},
)
LASER = EnergySource(name="laser", adds=Adds.LIGHT, switches={"laser.emission": 0.0})
NUMBER = st.floats(-1e6, 1e6)


def plan(*again: str) -> InstructionSet:
    """Five steps, each of which takes the results of those before it; two may be resumed after."""
    steps = [
        Instruction(
            instruction_id=name,
            action="note",
            timeout_s=1.0,
            parameters={"after": [f"${{dependencies.{each}.result.name}}" for each in before]},
            dependencies=before,
        )
        for name, before in ((name, tuple("abcde"[:at])) for at, name in enumerate("abcde"))
    ]
    steps[1] = replace(steps[1], checkpoint=ResumePoint(description="first"))
    steps[2] = replace(steps[2], checkpoint=ResumePoint(description="second", again=again))
    return InstructionSet(tuple(steps))


def carried_out(
    instructions: InstructionSet, done: Sequence[StepRecord] = ()
) -> tuple[list[str], list[tuple[StepRecord, ...]], tuple[StepRecord, ...]]:
    """Return the steps carried out, the records at each checkpoint, and those at the end."""
    names: list[str] = []
    reached: list[tuple[StepRecord, ...]] = []

    async def note(step: RunningStep) -> Mapping[str, Any]:
        name = step.instruction.instruction_id
        assert step.parameters["after"] == list("abcde"[: "abcde".index(name)])
        names.append(name)
        return {"name": name}

    async def keep(records: Sequence[StepRecord]) -> None:
        reached.append(tuple(records))

    line: Any = SimpleNamespace(now_s=float, held_s=float)
    executor = Executor(instructions, line, {"note": note}, reached=keep, done=done)
    return names, reached, asyncio.run(executor.run())


def test_a_later_run_carries_out_what_comes_after_a_checkpoint_and_what_it_asks_for_again() -> None:
    names, reached, _ = carried_out(plan("a"))
    assert (names, [each[-1].instruction.instruction_id for each in reached]) == (
        list("abcde"),
        ["b", "c"],
    )
    later, again, records = carried_out(plan("a"), reached[1])
    assert (later, again) == (["a", "d", "e"], [])
    assert {each.status for each in records} == {Status.COMPLETED}
    assert [each.result for each in records] == [{"name": name} for name in "abcde"]


def test_a_step_that_comes_later_cannot_be_carried_out_again() -> None:
    with pytest.raises(ValueError, match="'d' is carried out again"):
        plan("d")


@given(low=st.none() | NUMBER, high=st.none() | NUMBER, value=NUMBER)
def test_a_point_is_missed_by_a_reading_out_of_bounds_and_by_one_that_is_missing(
    low: float | None, high: float | None, value: float
) -> None:
    point = ResumePoint(description="", holds={"a": (low, high)})
    inside = (low is None or value >= low) and (high is None or value <= high)
    assert point.missed({"a": value}) == (() if inside else ("a",))
    assert point.missed({}) == point.missed({"a": math.nan}) == ("a",)


@pytest.mark.promise(60)
@pytest.mark.parametrize(
    ("channel", "value", "ending", "heated"),
    [
        ("furnace.setpoint", 20.0, "confirmed", True),  # it may have been cold for a moment only
        ("box.contactor", 1.0, "unknown", True),
        ("box.contactor", 1.0, "", True),  # killed before it was known
        ("box.contactor", 1.0, "refused", False),
        ("box.contactor", 0.0, "confirmed", False),
        ("laser.emission", 1.0, "confirmed", False),
    ],
)
def test_what_was_heated_since_a_record_is_what_may_have_been_sent_after_it(
    tmp_path: Path, channel: str, value: float, ending: str, heated: bool
) -> None:
    asked = {"channel": channel, "value": value, "unit": ""}
    with SqliteJournal(tmp_path / "journal.sqlite") as journal:
        intent = journal.append("intent", asked, 0.0)
        if ending:
            journal.append("outcome", {"intent": intent, "ending": ending}, 0.0)
        journal.commit()
        sources = (FURNACE, LASER)
        assert heated_since(journal.path, 0, sources) is heated
        assert not heated_since(journal.path, intent, sources)


def test_a_checkpoint_that_cannot_be_read_is_named_and_not_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "journal.sqlite"
    with SqliteJournal(path, run={"seed": 1}) as journal:
        number = journal.append(KIND, {"checkpoint_id": "ckpt-001"}, 1.0)
    with pytest.raises(JournalFailed, match=f"the checkpoint in record {number}: "):
        list(checkpoints(path))
