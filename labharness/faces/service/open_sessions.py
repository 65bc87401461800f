"""The sessions of a lab that are not known to be done with, as they come up among its tasks."""

from collections.abc import Callable, Iterator
from itertools import takewhile

from labharness.lab.house.access import session_of
from labharness.work.task.record import Attempt, Task, Tasks
from labharness.work.task.states import TERMINAL


def is_over(task: Task, run: Attempt | None) -> bool:
    """Return whether a session has ended, which has a run or never had one."""
    return task.status in TERMINAL if run is None else run.ended_at_s is not None


class OpenSessions:
    """Finds each session once, however many the lab ever had, and keeps it until it is dropped."""

    def __init__(self) -> None:
        self._newest = ""  # of the sessions that were looked at
        self._open: dict[str, None] = {}

    def look(
        self, tasks: Tasks, wanted: Callable[[Task], bool]
    ) -> Iterator[tuple[str, Task, Attempt | None]]:
        """Return those that are open, the oldest first; one whose run is no more is dropped.

        Args:
            tasks: The state of all tasks.
            wanted: Returns whether a session of a task that was opened since the last look counts.
        """
        new = list(takewhile(lambda each: each != self._newest, reversed(tasks.sessions)))
        for session_id in reversed(new):
            if wanted(tasks.by_id[tasks.sessions[session_id]]):
                self._open[session_id] = None
        self._newest = new[0] if new else self._newest
        for session_id in list(self._open):
            task, run = session_of(tasks, session_id)
            if task is None or (run is None and task.attempts):
                self.drop(session_id)
            else:
                yield session_id, task, run

    def drop(self, session_id: str) -> None:
        """Have done with a session."""
        self._open.pop(session_id, None)
