"""The house of a lab: takes tasks, queues them, hands them to the line owner, and follows them.

It decides nothing about the line. All that it knows is in its journal and in the journals of the
runs, so that it may die at any instant: it goes on where the facts end. An order to
the line owner is a fact before it is given, and an order that is given twice makes one run.
"""

import logging
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass
from typing import Final

from labharness.core.errors import LabError
from labharness.core.vocabulary.texts import Text
from labharness.journal import JournalFailed
from labharness.journal.encryption import KeyMissing
from labharness.lab.house.intake import (
    RUNTIME,
    TITLE_CHARACTERS,
    Intake,
    ReceivedSubmission,
    Submitted,
    attempt_of,
    must,
)
from labharness.lab.house.jobs import HouseJobs
from labharness.lab.house.message_store import made_submit_file
from labharness.lab.house.orders import (
    DESK,
    RECORDS_MAX,
    WORKER,
    DeskWorker,
    LineOwnerWorker,
    OwnerStatus,
    RunFiles,
    RunOrder,
    TaskRefused,
    Worker,
    next_records,
    why_away,
)
from labharness.protocols.hcp.codec import decode
from labharness.work.admission.confidential import Way
from labharness.work.task.commands import (
    FailTask,
    LeaseInstruments,
    PauseTask,
    ReleaseInstruments,
    ReportStatus,
    ResumeTask,
    RetryTask,
    StartTask,
    TaskActor,
    TaskCommand,
    silent,
)
from labharness.work.task.following import followed, found_again, read_up_to
from labharness.work.task.queue import (
    READY,
    Need,
    Needs,
    next_task,
    obstacle,
    reviewed,
    waiting,
    waits,
)
from labharness.work.task.record import Attempt, Job, Task, Tasks
from labharness.work.task.states import TERMINAL, may_become

LOG = logging.getLogger(__name__)

CHECKPOINT: Final = "checkpoint:"
"""Beginning of the reference of a checkpoint: its session and its id follow."""

LOST_S: Final = 10.0
"""World time (s) without an answer of the line owner, or without a record of an ended run that can
be read, after which the run counts as lost."""

WHOLE_LINE: Final = Need(("line",))


@dataclass(eq=False)
class House(Intake):
    """The tasks of one lab, from submission to their end.

    Attributes:
        owner: The line owner.
        runs: The folders of the runs.
        needs: Returns what a run of a task needs; by default the whole line, alone.
        tell: Tells people of failed background work; not where lab time has another speed.
        desk: Carries out tasks without instruments; ``None`` where the line has them all.
        create_job: As of `HouseJobs.create`.
    """

    owner: LineOwnerWorker
    runs: RunFiles
    _: KW_ONLY
    needs: Needs = lambda task: WHOLE_LINE
    tell: Callable[[str], None] = lambda text: None
    desk: DeskWorker | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        self._heard_s = self.now_s()  # when the line owner last answered
        self._unread_s: dict[str, float] = {}  # runs whose journals cannot be read, and since when
        self._speed: float | None = 1.0  # of the line, as its owner said last
        self._called: frozenset[tuple[str, str]] = frozenset()  # requests that persons were told of
        self._jobs = HouseJobs(
            self.journal, self._submit_run, self.home, self.now_s, self.new_id, self._told
        )
        self.create_job = self._jobs.create

    @property
    def tasks(self) -> Tasks:
        """The state of all tasks."""
        return self.journal.tasks

    # ---- requests of callers and operators

    def submit(
        self,
        data: bytes,
        *,
        seed: int | None = None,
        links: Iterable[str] = (),
        via: str = "",
        way: Way = "local",
    ) -> Submitted:
        """Keep a ``task_submit`` message as a task; it is on the disk before this returns.

        Args:
            data: The message; its ``message_id`` is the idempotency key of its caller.
            seed: Of a simulated run.
            links: Tasks that must be completed before it.
            via: The service that sends its sessions' messages to the caller; ``""`` for none.
            way: How it came, which decides about confidential data.

        Raises:
            NotHcp: The bytes are not an HCP message.
            BadPayload: Its payload cannot be read.
            TaskRefused: The queue is full, a task before it is not known, or the key was used.
            JournalFailed: It could not be written.
        """
        asked = ReceivedSubmission(data, decode(data), seed, tuple(links), via=via, way=way)
        return self.take(asked)

    def _told(self, text: str) -> None:
        if self._speed == 1.0:
            self.tell(text)

    def _submit_run(self, data: bytes, job: Job, run: str, title: str) -> None:
        owned = {"job_id": job.job_id, "job_run": run, "visibility": "background"}
        if title:
            owned["title"] = title[:TITLE_CHARACTERS]
        self.take(ReceivedSubmission(data, decode(data), job.seed, owned=owned))

    def give(self, command: TaskCommand, actor: TaskActor) -> None:
        """Carry out a command of a person or a caller on a task.

        A hold or a resume of a task at work is asked of the line; the task follows what it does.

        Raises:
            TaskRefused: The control plane refuses, or the line owner does.
            JournalFailed: It could not be written.
        """
        task = self.tasks.by_id.get(command.task_id)
        run = task.current if task is not None else None
        if run is not None and isinstance(command, PauseTask | ResumeTask):
            do = "hold" if isinstance(command, PauseTask) else "resume"
            try:
                self._worker(run).ask(run.run_id, do, getattr(command, "reason", ""), actor.name)
            except LabError as why:
                raise TaskRefused(str(why)) from None
            return
        if isinstance(command, RetryTask) and task is not None and task.status not in TERMINAL:
            raise TaskRefused("house.not_ended", status=task.status)
        must(self.journal.give(command, actor, self.now_s()))

    def confirm(self, task_id: str, step: str, by: str) -> str:
        """Confirm to a run that a person has done the manual step that it waits for.

        Returns:
            The step.

        Raises:
            TaskRefused: There is no such task at work, or it waits for another step.
        """
        task = self.tasks.by_id.get(task_id)
        if task is None or task.current is None:
            raise TaskRefused("house.not_at_work", task_id=task_id)
        try:
            return self._worker(task.current).confirm(task.current.run_id, step, by)
        except LabError as why:
            raise TaskRefused(str(why)) from None

    def needs_line(self, task_id: str) -> bool:
        """Return whether there is such a task, and it is one for the line."""
        task = self.tasks.by_id.get(task_id)
        return task is not None and not self._is_for_desk(task)

    def retry(self, task_id: str, run_id: str, reason: str, by: str, *, resume: bool) -> None:
        """Try an ended task once more, from its last checkpoint if ``resume``; raises as `give`."""
        refs: tuple[str, ...] = ()
        task = self.tasks.by_id.get(task_id)
        if resume and task is not None:
            run = next((each for each in reversed(task.attempts) if each.checkpoint_refs), None)
            if run is None:
                raise TaskRefused("house.no_checkpoint", task_id=task_id)
            refs = (f"{CHECKPOINT}{run.run_id}/{run.checkpoint_refs[-1]}",)
        self.give(
            RetryTask(
                task_id=task_id,
                run_id=run_id,
                worker=WORKER if task is None or not self._is_for_desk(task) else DESK,
                reason=reason,
                input_refs=refs,
            ),
            TaskActor(by, "operator"),
        )

    def close(self) -> None:
        """Close what it has opened itself; the journal is its owner's."""
        self.kept.close()

    # ---- the house's own turn

    def step(self) -> None:
        """Follow every run, pass cancellations on, and begin the next task if the line is free.

        Raises:
            JournalFailed: A fact could not be written; the house must be opened again.
        """
        self._begin_at_desk()
        status = self.owner.status()  # before the journals: what it does not run has ended
        if status is not None:
            self._heard_s, self._speed = self.now_s(), status.speed
        for task in self.tasks.unended_tasks:
            if task.current is not None:
                self._follow(task, task.current, self._status_of(task.current, status))
        for task in silent(self.tasks, self.now_s()):
            if task.current is not None:
                self._ask(task.current, "time_out")
        self.journal.expire(self.now_s())  # each fact has its own time: they stand in order
        if status is not None:  # else it is not known whether lab time is a person's
            self._call_persons()
        self._release(status)
        self._jobs.step()
        self._say(reviewed(self.tasks))
        latched_out = _called_elsewhere(self.tasks, self.needs, self.runs.begun)
        if latched_out and (why := self.owner.latch_reason()):
            self._say(_latched_commands(latched_out, why))
        free = status is not None and not status.run_id and not status.leaving
        held = self._begin_next() if free else ""
        away = why_away(status, silent=self.now_s() - self._heard_s > LOST_S)
        self._say(waits(self.tasks, self.needs, held, away))
        self.journal.flush()

    def _call_persons(self) -> None:
        """Call people for a manual step or an approval that a run waits for: task and action alone.

        Each request is told once. A house that starts again tells the open ones again: a message
        may so come twice, and none is lost with a process.
        """
        waiting = {
            (task.current.run_id, task.request.action): task.task_id
            for task in self.tasks.unended_tasks
            if task.current is not None and task.request is not None
        }
        for key, task_id in waiting.items():
            if key not in self._called:
                self._told(Text("house.waits_for_person", task_id=task_id, action=key[1]))
        self._called = frozenset(waiting)

    def _release(self, status: OwnerStatus | None) -> None:
        """End the leases of runs that have ended, once their line owner says that it is free."""
        for lease in self.tasks.leases.values():
            task = self.tasks.by_id[lease.task_id]
            run = task.current
            seen = self._status_of(attempt_of(task, lease.run_id), status)
            carried_out = seen is None or seen.run_id == lease.run_id
            if not carried_out and (run is None or run.run_id != lease.run_id):
                self._say([ReleaseInstruments(task_id=lease.task_id, run_id=lease.run_id)])

    def _lease(self, task: Task, run: Attempt) -> bool:
        """Return whether a run has its lease, which it takes now if it can."""
        need = self.needs(task)
        if run.run_id not in self.tasks.leases and not obstacle(self.tasks, task, need):
            self._say([_lease_command(task.task_id, run.run_id, need)])
        return run.run_id in self.tasks.leases

    def _follow(self, task: Task, run: Attempt, status: OwnerStatus | None) -> None:
        """Follow the new records of a run, piece by piece; then see what its worker does."""
        after, more, ended = read_up_to(run), True, False
        while more and task.current is not None:
            try:
                records = next_records(self.runs, run.run_id, after)
            except JournalFailed as why:  # of one run; all others go on
                self._unreadable(task, run, status, why)
                return
            self._unread_s.pop(run.run_id, None)
            more = len(records) == RECORDS_MAX
            after = records[-1].seq if records else after
            if run.worker == DESK and status is not None and status.run_id:
                # its answer is on its way to its folder; a line's answer stands there already
                records = [each for each in records if each.kind != "terminal"]
            ended = ended or any(each.kind == "terminal" for each in records)
            self._say(followed(task, task.current, records))
            task = self.tasks.by_id[task.task_id]
        if task.current is not None:
            self._judge(task, task.current, status, ended=ended)

    def _judge(self, task: Task, run: Attempt, status: OwnerStatus | None, *, ended: bool) -> None:
        """See what becomes of a run that its records leave open, though they may have its end."""
        if ended:
            self._say([FailTask(task_id=task.task_id, error_code="unreconciled")])
        elif status is None:
            self._doubt(task, run)
        elif status.run_id == run.run_id:
            self._found(task, run)
        elif not self.runs.begun(run.run_id):
            self._not_begun(task, run, status)
        else:
            self._over(task, run)

    def _unreadable(
        self, task: Task, run: Attempt, status: OwnerStatus | None, why: JournalFailed
    ) -> None:
        """End a run that is over, and whose journal could not be read for long enough."""
        since_s = self._unread_s.setdefault(run.run_id, self.now_s())
        if status is None:
            return
        if status.run_id == run.run_id:
            self._found(task, run)
        elif isinstance(why, KeyMissing) or self.now_s() - since_s > LOST_S:
            LOG.error("the journal of run %s cannot be read: %s", run.run_id, why)
            self._over(task, run, why.code)
        elif task.status != "unknown" and may_become(task.status, "unknown"):
            self._say([ReportStatus(task_id=task.task_id, to="unknown", reason=why.code)])

    def _doubt(self, task: Task, run: Attempt) -> None:
        """Call a run lost when the line owner is silent for too long; it may be found again."""
        silent = self.now_s() - self._heard_s > LOST_S
        if silent and task.status != "lost" and self.runs.begun(run.run_id):
            self._say([ReportStatus(task_id=task.task_id, to="lost", reason="line_owner_silent")])

    def _found(self, task: Task, run: Attempt) -> None:
        if task.status in ("lost", "unknown"):
            self._say(found_again(task))
        self._lease(task, run)  # of a house before there were leases
        if task.status == "cancelling":  # until its journal says that it has ended
            self._ask(run, "abort", task.status_reason or "cancelled")

    def _ask(self, run: Attempt, do: str, reason: str = "") -> None:
        with suppress(LabError):  # it has just ended, or is away; the next turn sees which
            self._worker(run).ask(run.run_id, do, reason)

    def _not_begun(self, task: Task, run: Attempt, status: OwnerStatus) -> None:
        """Repeat the order of a run that has left nothing: the house died before it, or a retry."""
        if task.cancel_requested:
            self._say([ReportStatus(task_id=task.task_id, to="cancelled", reason="not_begun")])
        elif not status.run_id and not self._worker(run).held() and self._lease(task, run):
            self._order(task, run)

    def _over(self, task: Task, run: Attempt, code: str = "worker_lost") -> None:
        """End a task whose run has no terminal message and is not carried out any more."""
        left, why = self.runs.left(run.run_id)
        code, why = (left, why) if left else (code, Text("house.worker_lost"))
        if task.status not in ("lost", "cancelling"):
            self._say([ReportStatus(task_id=task.task_id, to="lost", reason=code)])
        self._say([FailTask(task_id=task.task_id, error_code=code, reason=why)])

    def _begin_next(self) -> str:
        """Begin the next task; return what keeps the line from it, or ``""``."""
        task = next_task(self.tasks, self.needs)
        if task is None or self._is_for_desk(task):  # it is begun there, by itself
            return ""
        if held := self.owner.held():
            return held
        self._say(self._starting(task, WORKER))
        self._order_of(task.task_id)
        return ""

    def _begin_at_desk(self) -> None:
        """Begin each task that needs no instruments and may begin."""
        if self.desk is None:
            return
        draft, begun = self.journal.draft(self.now_s()), []
        for task in filter(self._is_for_desk, waiting(self.tasks)):
            need = self.needs(task)
            if task.status in READY and not obstacle(draft.tasks, task, need):
                for command in self._starting(task, DESK):
                    draft.give(command, RUNTIME)
                begun.append(task.task_id)
        self.journal.keep(draft)
        for task_id in begun:
            self._order_of(task_id)

    def _starting(self, task: Task, worker: str) -> tuple[TaskCommand, TaskCommand]:
        """Return the commands that begin a task with its lease."""
        known = "" if task.attempts else task.session_id
        start = StartTask(task_id=task.task_id, run_id=known or self.new_id(), worker=worker)
        return start, _lease_command(task.task_id, start.run_id, self.needs(task))

    def _order_of(self, task_id: str) -> None:
        task = self.tasks.by_id[task_id]
        if task.current is not None:
            self._order(task, task.current)

    def _is_for_desk(self, task: Task) -> bool:
        return self.desk is not None and not self.needs(task).instruments

    def _worker(self, run: Attempt) -> Worker:
        return self.desk if run.worker == DESK and self.desk is not None else self.owner

    def _status_of(self, run: Attempt | None, line: OwnerStatus | None) -> OwnerStatus | None:
        """Return the state of a run's worker: the desk has many runs, and knows each."""
        if run is None or run.worker != DESK or self.desk is None:
            return line
        return self.desk.status_of(run.run_id)

    def _order(self, task: Task, run: Attempt) -> None:
        order = RunOrder(
            run_id=run.run_id,
            folder=self.runs.folder(run.run_id),
            submit=str(made_submit_file(self.home, self.kept, task.task_id)),
            seed=task.profile.get("seed"),
            resume_from=_resumed_from(run),
        )
        # it may be away or busy; the attempt stands, and the next turn asks again
        with suppress(LabError):
            self._worker(run).begin(order)

    def _say(self, commands: Iterable[TaskCommand]) -> None:
        self.journal.give_all(commands, RUNTIME, self.now_s())


def _lease_command(task_id: str, run_id: str, need: Need) -> LeaseInstruments:
    """Return the command by which a run takes what it needs."""
    return LeaseInstruments(
        task_id=task_id, run_id=run_id, instruments=need.instruments, places=need.places
    )


def _called_elsewhere(tasks: Tasks, needs: Needs, begun: Callable[[str], bool]) -> list[Task]:
    """Return the tasks of callers elsewhere that wait for the line, or whose order is not taken.

    Args:
        tasks: The state of all tasks.
        needs: Of each task.
        begun: Returns whether a run has left anything.
    """

    def waits(task: Task) -> bool:
        if not task.attempts:
            return task.status in READY
        first = task.attempts[0]
        return task.status == "preparing" and first is task.current and not begun(first.run_id)

    theirs = (each for each in tasks.unended_tasks if each.profile.get("via"))
    return [each for each in theirs if needs(each).instruments and waits(each)]


def _latched_commands(tasks: Iterable[Task], why: str) -> Iterator[TaskCommand]:
    """Return the commands that answer callers elsewhere whose line is latched (ruling 6).

    They do not see what their tasks wait for, and can clear nothing.
    """
    for task in tasks:
        code = "resource_unavailable"
        yield FailTask(task_id=task.task_id, error_code=code, reason=why)


def _resumed_from(run: Attempt) -> dict[str, str] | None:
    """Return the checkpoint that an attempt goes on from, as ``task_submit`` names it."""
    for ref in run.input_refs:
        if ref.startswith(CHECKPOINT):
            session_id, _, checkpoint_id = ref.removeprefix(CHECKPOINT).partition("/")
            return {"session_id": session_id, "checkpoint_id": checkpoint_id}
    return None
