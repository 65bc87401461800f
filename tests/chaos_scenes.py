"""Scenarios for tests of the fault search, and what was told of one."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from labharness.chaos.scenario import Fault, Scenario
from labharness.chaos.table import faults_of
from labharness.chaos.world import Verdict, play
from labharness.lab import LabPlan, read_lab
from rig import SHORT_LINE

FAULTS = faults_of(read_lab(SHORT_LINE))

Play = Callable[..., Verdict]
COOL_START: dict[str, float] = {"temperature_c": 650.0, "dwell_s": 60.0, "argon_sccm": 100.0}


def scenario(*faults: Fault, second_growth: bool = False, **recipe: float) -> Scenario:
    return Scenario(
        name="0/0",
        seed=5,
        recipe={**COOL_START, **recipe},
        faults=faults,
        second_growth=second_growth,
    )


def fault(kind: str, stage: str = "ramp", after_s: float = 60.0, **more: Any) -> Fault:
    return Fault(kind=kind, stage=stage, after_s=after_s, **more)


def told(verdict: Verdict) -> str:
    return "\n".join(f"{at_s:.3f} {text}" for at_s, text in verdict.timeline)


def player(folder: Path) -> Play:
    """Play scenarios, each in a world of its own, on the short line where no other is named."""
    count = iter(range(100))

    def run(each: Scenario, plan: LabPlan | None = None) -> Verdict:
        world = folder / f"world{next(count)}"
        world.mkdir()
        return play(plan or read_lab(SHORT_LINE), each, world)

    return run
