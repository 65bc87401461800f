"""What every test stands on: the fixtures of ``labharness.testing``, and every lab's wires watched.

The plugin is named here, although an installed checkout has it by its entry point, because the
planted bugs run in a copy that is installed nowhere.
"""

from collections.abc import Callable
from pathlib import Path

import pytest

from labharness.hcp.codec import Message
from labharness.hcp.messages import TaskSubmit
from labharness.lab import Lab, LabPlan, read_lab
from labharness.testing.bench import Bench, Ran
from labharness.testing.wires import WatchedLabs
from rig import SHORT_LINE, Injection, submission

pytest_plugins = ["labharness.testing.plugin"]


@pytest.fixture(autouse=True)
def wires(watched_labs: WatchedLabs) -> list[Lab]:
    """Prove the wires of every lab of every test, whatever it tests."""
    return watched_labs.labs


@pytest.fixture
def lab_file() -> Path:
    """The short line, in place of the shipped one."""
    return SHORT_LINE


@pytest.fixture
def short_plan() -> LabPlan:
    """The short line of the tests, its state in a directory of its own."""
    return read_lab(SHORT_LINE)


@pytest.fixture
def run_task(simulated_lab: Bench) -> Callable[..., Ran]:
    """Run a task on any lab in virtual time, with faults at chosen moments."""

    def run(
        plan: LabPlan,
        submit: tuple[Message, TaskSubmit] | None = None,
        *,
        seed: int = 1,
        inject: tuple[Injection, ...] = (),
        out: Path | None = None,
        prepare: Callable[[Lab], None] = lambda lab: None,
        max_duration: str | None = None,
        abort: tuple[str, float] | None = None,
    ) -> Ran:
        bench = simulated_lab.on(plan, seed=seed)
        bench.inject(prepare)
        bench.inject_all([*inject])
        return bench.run(submit or submission(max_duration=max_duration), out=out, abort=abort)

    return run
