"""A lab's tasks without a journal: commands are decided and their facts folded at once."""

from labharness.work.task.commands import (
    REFUSALS,
    AppendProgress,
    CreateTask,
    LinkTasks,
    ReportStatus,
    StartTask,
    TaskActor,
    TaskCommand,
)
from labharness.work.task.facts import CommandRefused, TaskFact, folded
from labharness.work.task.record import RetryPolicy, Task, Tasks

ANA, BEN = TaskActor("ana", "caller"), TaskActor("ben", "caller")
OLGA, RUNTIME = TaskActor("olga", "operator"), TaskActor("house", "runtime")


class TasksAlone:
    """The state, the facts behind it, and a clock that a test sets."""

    def __init__(self) -> None:
        self.tasks = Tasks()
        self.facts: list[TaskFact] = []
        self.now_s = 1000.0

    def __call__(self, command: TaskCommand, actor: TaskActor = RUNTIME) -> str:
        """Carry out a command; return the code of its refusal, or ``""``."""
        self.now_s += 1.0
        made = command.decide(self.tasks, actor, self.now_s)
        self.facts += made
        self.tasks = folded(made, self.tasks)
        refused = [each.reason for each in made if isinstance(each, CommandRefused)]
        assert set(refused) <= REFUSALS
        assert not refused or len(made) == 1
        return "".join(refused)

    def __getitem__(self, task_id: str) -> Task:
        return self.tasks.by_id[task_id]

    def running(
        self, task_id: str = "t", parent: str = "", retry: RetryPolicy | None = None
    ) -> str:
        """Bring a new task of ana's to work, and return its id."""
        create = CreateTask(
            task_id=task_id,
            objective="grow",
            parent_task_id=parent,
            acceptance=("raman",),
            retry=retry or RetryPolicy(),
        )
        assert not self(create, ANA)
        assert not self(ReportStatus(task_id=task_id, to="accepted"))
        assert not self(StartTask(task_id=task_id, run_id=f"{task_id}-1", worker="line"))
        assert not self(ReportStatus(task_id=task_id, to="running"))
        return task_id

    def reconcile(self, task_id: str) -> None:
        """Cover the acceptance of a task, register its outputs and deliver them."""
        say = AppendProgress(task_id=task_id, covered=("raman",), output_offsets={"map": 9})
        assert not self(say)
        assert not self(LinkTasks(task_id=task_id, kind="produced_artifact", target_id="map"))
        assert not self(AppendProgress(task_id=task_id, delivery="delivered"))
