"""Maps an operator's words (cancel, pause, link, ...) to commands on tasks and jobs."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from labharness.work.task.commands import (
    ArchiveTask,
    CancelTask,
    LinkTasks,
    PauseTask,
    ResumeTask,
    TaskCommand,
    UnlinkTasks,
    UpdateTask,
)
from labharness.work.task.jobs import EndJob

OF_PEOPLE: Final = ("title", "objective", "priority", "assignee")
"""Fields of a task that its approval does not bind."""

COMMANDS_BY_WORD: Final[Mapping[str, Callable[[Mapping[str, Any], str], TaskCommand]]] = {
    "cancel": lambda asked, new: CancelTask(task_id=asked["task_id"], reason=asked["reason"]),
    "pause": lambda asked, new: PauseTask(task_id=asked["task_id"], reason=asked["reason"]),
    "resume": lambda asked, new: ResumeTask(task_id=asked["task_id"]),
    "end_job": lambda asked, new: EndJob(job_id=asked["job_id"], reason=asked["reason"]),
    "update": lambda asked, new: UpdateTask(
        task_id=asked["task_id"],
        changes={name: asked[name] for name in OF_PEOPLE if name in asked},
    ),
    "archive": lambda asked, new: ArchiveTask(task_id=asked["task_id"]),
    "link": lambda asked, new: LinkTasks(
        task_id=asked["task_id"], kind=asked["kind"], target_id=asked["target_id"]
    ),
    "unlink": lambda asked, new: UnlinkTasks(
        task_id=asked["task_id"], kind=asked["kind"], target_id=asked["target_id"]
    ),
}
"""The command of each word that an operator may say; ``new`` is a fresh session's id."""
