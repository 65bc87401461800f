"""Maps an operator's words (cancel, pause, link, ...) to commands on tasks and jobs."""

from collections.abc import Callable, Mapping
from typing import Final

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

COMMANDS_BY_WORD: Final[Mapping[str, tuple[Callable[..., TaskCommand], tuple[str, ...]]]] = {
    "cancel": (CancelTask, ("task_id", "reason")),
    "pause": (PauseTask, ("task_id", "reason")),
    "resume": (ResumeTask, ("task_id",)),
    "end_job": (EndJob, ("job_id", "reason")),
    "update": (UpdateTask, ("task_id",)),
    "archive": (ArchiveTask, ("task_id",)),
    "link": (LinkTasks, ("task_id", "kind", "target_id")),
    "unlink": (UnlinkTasks, ("task_id", "kind", "target_id")),
}
"""The command of each word that an operator may say, and what it takes."""


def command_of(word: str, said: Mapping[str, str]) -> TaskCommand:
    """Return the command that an operator gives by a word; one without a reason has an empty one.

    Raises:
        KeyError: The word is not known, or something that it takes was not said.
    """
    command, takes = COMMANDS_BY_WORD[word]
    given: dict[str, object] = {name: {"reason": "", **said}[name] for name in takes}
    if command is UpdateTask:
        given["changes"] = {name: said[name] for name in OF_PEOPLE if name in said}
    return command(**given)
