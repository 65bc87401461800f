"""What every test stands on: a state directory of its own, and the proof of the wire.

The proof runs after every test, whatever it tested: each frame that was heard at the instruments'
end of a simulated bus has exactly one source, and where no fault was injected into the wires the
frames that left and the frames that were heard are the same, in the same order.
"""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from labharness.hcp.codec import Message
from labharness.hcp.messages import TaskSubmit
from labharness.lab import Lab, LabPlan, read_lab
from labharness.lab.tasks import TaskRun
from labharness.simulation import WireRecord
from rig import SHORT_LINE, Injection, Ran, prove_sources, submission


@pytest.fixture(autouse=True)
def _own_state(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LABHARNESS_STATE", str(tmp_path_factory.mktemp("state")))


@pytest.fixture(autouse=True)
def wires(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Lab]]:
    """Record both ends of every wire of every lab, and prove at the end that they agree."""
    labs: list[Lab] = []
    flights: list[Lab] = []  # of pre-flights: nothing of theirs is real, but their wires agree too
    build = Lab.__init__

    def recorded(lab: Lab, *args: Any, **options: Any) -> None:
        build(lab, *args, **options)
        if options.get("room") is not None:
            return  # the room's wires outlive this harness: its frames are not all there were
        lab.guard.core.log = []
        for bus in lab.simulated.buses.values() if lab.simulated else ():
            bus.record = WireRecord()
        (flights if lab.nominal else labs).append(lab)

    monkeypatch.setattr(Lab, "__init__", recorded)
    yield labs
    for lab in (*labs, *flights):
        prove_sources(lab)


@pytest.fixture
def short_plan() -> LabPlan:
    """The short line of the tests, its state in a directory of its own."""
    return read_lab(SHORT_LINE)


@pytest.fixture
def run_task(tmp_path: Path) -> Callable[..., Ran]:
    """Run a task on a lab in virtual time, with faults at chosen moments."""
    count = iter(range(1000))

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
        message, payload = submit or submission(max_duration=max_duration)
        events: list[tuple[str, Mapping[str, Any]]] = []
        opened: list[Lab] = []
        asked: list[bool] = []

        def build(lab: Lab) -> None:
            opened.append(lab)
            prepare(lab)

        def tell(kind: str, data: Mapping[str, Any]) -> None:
            events.append((kind, data))
            if kind != "progress":
                return
            if abort is not None and data["stage"] == abort[0] and not asked:
                asked.append(True)
                loop = opened[0].clock.loop
                loop.call_later(abort[1], task.abort, "stop request (test)")
            for each in inject:
                if data["stage"] == each.stage and not each.done:
                    each.done = True
                    lab = opened[0]
                    lab.clock.loop.call_later(each.after_s, each.act, lab)

        task = TaskRun(
            plan,
            message,
            payload,
            speed=None,
            seed=seed,
            out=out or tmp_path / f"run{next(count)}",
            tell=tell,
            prepare=build,
        )
        return Ran(task.execute(), opened[0], events)

    return run
