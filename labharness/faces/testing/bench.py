"""A simulated lab for a test: open it for a while, or run a task in it to the answer."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from labharness.core.clock import Chance, Clock, VirtualLoop
from labharness.core.clock import run as run_on
from labharness.core.errors import LabError
from labharness.faces.testing.faults import Act, Injection, fault, simulated_of
from labharness.journal import SqliteJournal
from labharness.lab import BadLabFile, Lab, LabPlan, read_lab
from labharness.lab.wiring.runs import SIMULATED_SEED
from labharness.lab.wiring.tasks import RunResult, TaskRun
from labharness.protocols.hcp.codec import HcpMessage, decode
from labharness.protocols.hcp.messages import TaskSubmit
from labharness.work.desk.folder import JOURNAL_NAME

T = TypeVar("T")
Task = Path | str | Mapping[str, Any] | tuple[HcpMessage, TaskSubmit]


class FaultNeverCame(LabError, AssertionError, code="fault_never_came"):
    """A run ended before an injected fault came: the test would prove nothing."""


@dataclass
class Ran:
    """One finished run: result, events and labs."""

    result: RunResult
    events: list[tuple[str, Mapping[str, Any]]]
    labs: list[Lab]

    @property
    def lab(self) -> Lab:
        """Return the lab of the run.

        Raises:
            LookupError: The run was rejected before a lab was built.
        """
        if not self.labs:
            raise LookupError(f"no lab was built for this run, which ended as {self.type}")
        return self.labs[0]

    @property
    def type(self) -> str:
        """Return the type of the terminal message, e.g. ``task_completed``."""
        return self.result.message.type

    @property
    def body(self) -> dict[str, Any]:
        """Return the terminal message's payload as JSON has it."""
        return self.result.message.payload.stated()

    @property
    def truth(self) -> dict[str, Any]:
        """Return the plant's true state, which no instrument reports."""
        found: dict[str, Any] = simulated_of(self.lab).plant.truth()
        return found


@dataclass
class VirtualTime:
    """Run coroutines in lab time, which passes only while nothing can run.

    Attributes:
        took_s: Lab time of the last run.
    """

    took_s: float = 0.0

    def run(self, main: Coroutine[Any, Any, T]) -> T:
        """Run ``main`` to its end on a new loop, and return its result.

        Raises:
            Deadlock: Everything waits and nothing is scheduled.
        """
        loop = VirtualLoop()
        try:
            return run_on(main, loop)
        finally:
            self.took_s = loop.time()


class Bench:
    """One simulated lab in virtual time.

    Args:
        lab: A lab file, or a lab read from one.
        folder: Directory of its runs and journals.
        state: Root of the state directories. A lab file read here keeps its latch below it, even if
            it names another directory.
        seed: Seed of its runs.

    Raises:
        BadLabFile: The file is not valid, or a port leads to a real instrument.
    """

    def __init__(
        self, lab: Path | LabPlan, folder: Path, *, state: Path, seed: int = SIMULATED_SEED
    ) -> None:
        if isinstance(lab, Path):
            plan = read_lab(lab)
            lab = replace(plan, state_dir=state / "labharness" / plan.file.lab.id)
        if lab.real_ports:
            raise BadLabFile(f"{lab.path}: port {lab.real_ports[0]!r} leads to a real instrument")
        self.plan = lab
        self.seed = seed
        self._folder = folder
        self._state = state
        self._injections: list[Injection] = []
        self._all: list[Injection] = []
        self._open: Lab | None = None

    def on(self, lab: Path | LabPlan, *, seed: int | None = None) -> "Bench":
        """Return a bench with another lab or another seed; its runs use the same folder."""
        wanted = self.seed if seed is None else seed
        other = Bench(lab, self._folder, state=self._state, seed=wanted)
        other._injections, other._all = self._injections, self._all
        return other

    def check_all_came(self) -> None:
        """Raise ``FaultNeverCame`` for an injected fault that never came."""
        _all_came(self._all, "the test", [])

    def inject(
        self,
        what: str | Act,
        level: bool | float = True,
        *,
        port: str | None = None,
        stage: str | None = None,
        after_s: float = 0.0,
    ) -> None:
        """Inject a fault into the open lab, else into the next one.

        Args:
            what: A fault's name, or a function that is called with the lab.
            level: Its size, in the unit at the end of the name; ``False`` or 0 ends the fault.
            port: The port of a bus fault.
            stage: The stage of the task in which it comes; without one, time counts from the lab's
                building, or from now if it is open.
            after_s: Lab time until it comes.

        Raises:
            UnknownFault: The message lists the known faults, ports or levels.
        """
        if not isinstance(what, str):
            self.inject_all([Injection(stage, after_s, what)])
            return
        name = what if port is None else f"{what} on {port}"
        act = fault(self.plan, what, level, port=port)
        self.inject_all([Injection(stage, after_s, act, name)])

    def inject_all(self, injections: "list[Injection]") -> None:
        """Inject several faults, each at its own time."""
        for each in injections:
            if each.after_s < 0:
                raise ValueError(f"{each.name}: after_s is {each.after_s:g}, allowed is from 0 s")
            if self._open is None:
                self._injections.append(each)
            else:
                _no_stage(each)
                each.begin(self._open)
            self._all.append(each)

    def run(
        self,
        task: Task,
        *,
        out: Path | None = None,
        abort: tuple[str, float] | None = None,
        answered: Callable[[TaskRun], None] = lambda work: None,
    ) -> Ran:
        """Run a task to its answer, and a hot line from there until it is cold.

        Args:
            task: A file with a ``task_submit`` message, its JSON object, or the decoded message.
            out: The folder of the run; by default a new one of the test.
            abort: Stage, and lab time into it, of a stop request.
            answered: Called with the run as soon as its answer is in the folder.

        Raises:
            FaultNeverCame: The run ended before an injected fault came.
        """
        message, payload = as_submit(task)
        injections = self._taken()
        events: list[tuple[str, Mapping[str, Any]]] = []
        opened: list[Lab] = []
        if abort is not None:
            stop = "stop request (test)"
            injections.append(Injection(*abort, lambda lab: work.abort(stop), "a stop request"))
        waiting = [each for each in injections if each.stage is not None]

        def built(lab: Lab) -> None:
            opened.append(lab)
            for each in injections:
                if each.stage is None:
                    each.begin(lab)

        def tell(kind: str, data: Mapping[str, Any]) -> None:
            events.append((kind, data))
            for each in tuple(waiting) if kind == "progress" else ():
                if each.stage == data["stage"]:
                    waiting.remove(each)
                    each.begin(opened[0])

        work = TaskRun(
            self.plan,
            message,
            payload,
            speed=None,
            seed=self.seed,
            out=out or self._fresh("run"),
            tell=tell,
            answered=lambda result: answered(work),
            prepare=built,
        )
        result = work.execute()
        stages = [data["stage"] for kind, data in events if kind == "progress"]
        _all_came(injections, result.message.type, stages)
        return Ran(result, events, opened)

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[Lab]:
        """Return the lab with its line open and polled; no command is sent.

        Raises:
            NoReply: An instrument is silent, or another one answers.
        """
        injections = self._taken()
        for each in injections:
            _no_stage(each)
        self.plan.state_dir.mkdir(parents=True, exist_ok=True)
        run = {"seed": self.seed, "lab_digest": self.plan.lab_digest}
        with SqliteJournal(self._fresh("line") / JOURNAL_NAME, run=run) as journal:
            clock = Clock(asyncio.get_running_loop())
            lab = Lab(self.plan, clock=clock, chance=Chance(self.seed), journal=journal)
            for each in injections:
                each.begin(lab)
            try:
                await lab.line.open()
                self._open = lab
                yield lab
            finally:
                self._open = None
                await lab.line.close()
        _all_came(injections, "closed line", [])

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Lab]:
        """Return the lab armed and started: commands that the envelope allows are sent.

        At the end, also after an error, the line is made safe and disarmed.

        Raises:
            NoReply: An instrument is silent, or another one answers.
            NotArmed: The line cannot be armed in its present state.
        """
        async with self.opened() as lab:
            await lab.line.arm(lab.plan.safe_procedure)
            lab.line.start()
            yield lab

    def _taken(self) -> list[Injection]:
        """Return the injections for the next lab, and forget them."""
        injections = list(self._injections)
        self._injections.clear()
        return injections

    def _fresh(self, what: str) -> Path:
        taken = len(list(self._folder.glob(f"{what}*"))) if self._folder.exists() else 0
        folder = self._folder / f"{what}{taken}"
        folder.mkdir(parents=True)
        return folder


def as_submit(task: Task) -> tuple[HcpMessage, TaskSubmit]:
    """Decode a task from a file or a JSON object, unless it is decoded already.

    Raises:
        NotHcp: It is not an HCP message.
        ValueError: It is a message of another type.
    """
    if isinstance(task, tuple):
        return task
    data = json.dumps(task).encode() if isinstance(task, Mapping) else Path(task).read_bytes()
    message = decode(data)
    if not isinstance(message.payload, TaskSubmit):
        raise ValueError(f"a message of type {message.type!r} is not a task_submit")
    return message, message.payload


def _no_stage(injection: Injection) -> None:
    if injection.stage is not None:
        raise ValueError(f"{injection.name}: an open line has no stage {injection.stage!r}")


def _all_came(injections: list[Injection], end: str, stages: list[str]) -> None:
    entered = ", ".join(dict.fromkeys(stages)) or "none"
    for each in injections:
        if not each.done:
            each.done = True  # reported once
            when = f"{each.after_s:g} s" + (f" into stage {each.stage!r}" if each.stage else "")
            raise FaultNeverCame(
                f"{each.name} was to come {when} and never did: the run ended as {end}; "
                f"stages entered: {entered}"
            )
