"""Runs one after the other on one simulated lab; a later one may go on from an earlier one."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from labharness.core.clock import Chance, Clock, VirtualLoop
from labharness.core.clock.loops import begin
from labharness.journal.chain import Record
from labharness.journal.reading import read, run_header
from labharness.lab import Lab, LabPlan
from labharness.lab.wiring.simulated_lab import SimulatedLab
from labharness.lab.wiring.tasks import RunResult, TaskRun
from labharness.protocols.hcp.codec import HcpMessage
from labharness.protocols.hcp.messages import ResumeFrom, TaskSubmit
from labharness.work.desk.checkpoint import checkpoints
from rig import Injection

Submit = tuple[HcpMessage, TaskSubmit]


@dataclass
class Attempts:
    """Runs one after the other on one simulated lab, which outlives each of them."""

    plan: LabPlan
    folder: Path
    loop: VirtualLoop = field(default_factory=VirtualLoop)
    events: dict[str, list[tuple[str, Mapping[str, Any]]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.task: TaskRun | None = None
        self.sim_lab = SimulatedLab(self.plan.file, Clock(self.loop), Chance(1))

    def run(
        self,
        name: str,
        submit: Submit,
        *,
        earlier: str = "",
        inject: tuple[Injection, ...] = (),
        prepare: Callable[[Lab], None] = lambda lab: None,
    ) -> RunResult:
        """Carry out one attempt, in a folder of its own."""
        labs: list[Lab] = []
        waiting = list(inject)
        told = self.events.setdefault(name, [])

        def built(lab: Lab) -> None:
            labs.append(lab)
            prepare(lab)

        def tell(kind: str, data: Mapping[str, Any]) -> None:
            told.append((kind, data))
            for each in tuple(waiting) if kind == "progress" else ():
                if each.stage == data["stage"]:
                    waiting.remove(each)
                    each.begin(labs[0])

        self.task = task = TaskRun(
            self.plan,
            *submit,
            speed=None,
            seed=len(self.events),
            out=self.folder / name,
            tell=tell,
            prepare=built,
            sim_lab=self.sim_lab,
            earlier=self.folder / earlier if earlier else None,
        )
        asyncio.set_event_loop(self.loop)
        result = self.loop.run_until_complete(begin(task.work(self.loop), self.loop))
        left = asyncio.all_tasks(self.loop)
        for each in left:
            each.cancel()
        if left:
            self.loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
        assert not waiting, "a fault that never came proves nothing"
        return result

    def mend(self) -> None:
        """Join every cut wire."""
        for bus in self.sim_lab.buses.values():
            bus.faults.cut = False

    def records(self, name: str) -> list[Record]:
        return list(read(self.folder / name / "journal.sqlite"))


def body(result: RunResult) -> dict[str, Any]:
    return result.message.payload.stated()


def going_on(submit: Submit, folder: Path, checkpoint: str = "") -> Submit:
    """Return the same task, to go on from the newest checkpoint of a run or from another one."""
    journal = folder / "journal.sqlite"
    newest = [each.checkpoint_id for each in checkpoints(journal)][-1]
    session = run_header(journal)["session_id"]
    point = ResumeFrom(session_id=session, checkpoint_id=checkpoint or newest)
    message, payload = submit
    payload = payload.model_copy(update={"resume_from": point})
    return replace(message, payload=payload), payload
