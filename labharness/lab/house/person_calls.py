"""Calls persons for what the runs at work ask of them: a manual step, an approval."""

from collections.abc import Callable

from labharness.core.vocabulary.texts import Text
from labharness.work.task.record import Tasks


class PersonCalls:
    """Tells each request once; a house that starts again tells the open ones again.

    A message may so come twice, and none is lost with a process.

    Args:
        tell: Sends a text to the people of the lab.
    """

    def __init__(self, tell: Callable[[str], None]) -> None:
        self._tell = tell
        self._told: frozenset[tuple[str, str]] = frozenset()

    def call(self, tasks: Tasks) -> None:
        """Send the requests that were not sent yet: the task and the action alone."""
        waiting = {
            (task.current.run_id, task.request.action): task.task_id
            for task in tasks.unended_tasks
            if task.current is not None and task.request is not None
        }
        for key, task_id in waiting.items():
            if key not in self._told:
                self._tell(Text("house.waits_for_person", task_id=task_id, action=key[1]))
        self._told = frozenset(waiting)
