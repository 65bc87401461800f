"""Runs tasks that need no line in threads of the house.

Documents of these tasks are read by processes of their own. A house that dies takes these runs with
it: a run that has left a journal without an end is lost then, and its task has failed.
"""

import logging
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from threading import Thread
from typing import Any, Final

from labharness.journal.encryption import KeyMissing
from labharness.lab.house.intake import read_submission
from labharness.lab.house.message_store import keep_message, told_on_receipt
from labharness.lab.house.orders import BadOrder, OwnerStatus, RunOrder, has_begun, leave_end
from labharness.lab.house.screening import LabFiles
from labharness.lab.wiring.tasks import TaskRun

LOG = logging.getLogger(__name__)

LEAVE_S: Final = 5.0
"""Longest time (s) that a house which leaves waits for the runs of its desk, which it aborts."""


@dataclass(eq=False)
class DeskWork:
    """The `DeskWorker` of a house.

    Attributes:
        files: Of the lab.
        news: Called when a run has ended, in its thread.
        accepted: Called when a run was accepted, in its thread; its caller waits for that.
    """

    files: LabFiles
    news: Callable[[], None] = lambda: None
    accepted: Callable[[], None] = lambda: None

    def __post_init__(self) -> None:
        self._runs: dict[str, tuple[Thread, TaskRun]] = {}

    def held(self) -> str:
        """Return that nothing keeps it from a run."""
        return ""

    def status_of(self, run_id: str) -> OwnerStatus:
        """Return whether it carries out a run."""
        self._runs = {name: each for name, each in self._runs.items() if each[0].is_alive()}
        return OwnerStatus(pid=os.getpid(), run_id=run_id if run_id in self._runs else "", speed=1)

    def begin(self, order: RunOrder) -> None:
        """Begin a run; one that has been begun before is left as it is.

        Raises:
            BadOrder: The order is wrong.
            BadLabFile: The lab's files cannot be honoured.
        """
        folder = Path(order.folder)
        if has_begun(folder):
            return
        plan, facts = self.files.current()
        try:
            message, payload = read_submission(Path(order.submit))
        except KeyMissing as why:  # asked again, it would be missing for ever
            self._leave(folder, order.run_id, why)
            return
        run = TaskRun(
            plan,
            message,
            payload,
            without_line=facts,
            out=folder,
            session_id=order.run_id,
            tell=self._told,
            accepted=partial(keep_message, plan.state_dir, order.run_id, "accepted"),
            on_receipt=told_on_receipt(plan.state_dir, order.run_id),
        )
        thread = Thread(target=self._carry_out, args=(run,), name="desk", daemon=True)
        self._runs[order.run_id] = (thread, run)
        thread.start()

    def ask(self, run_id: str, do: str, reason: str, by: str = "") -> None:
        """Abort a run.

        Raises:
            BadOrder: It has no such run, or something else is asked of it.
        """
        if run_id not in self._runs:
            raise BadOrder("order.other", run_id=run_id)
        if do != "abort":
            raise BadOrder("hold.nothing")
        self._runs[run_id][1].abort(reason)

    def confirm(self, run_id: str, step: str, by: str) -> str:
        """Refuse: a task without a line asks for no manual step."""
        raise BadOrder("operator.not_asked")

    def leave(self, reason: str) -> None:
        """Abort every run, and wait for their answers for a bounded time."""
        for _, run in self._runs.values():
            run.abort(reason)
        for thread, _ in self._runs.values():
            thread.join(LEAVE_S)

    def _told(self, kind: str, data: Mapping[str, Any]) -> None:
        if kind == "task_accepted":
            self.accepted()

    def _carry_out(self, run: TaskRun) -> None:
        """Carry out a run, in its thread; it leaves a file with its end whatever happens."""
        ended: Exception | None = None
        try:
            run.execute()
        except Exception as why:
            LOG.exception("run %s ended by an error", run.session_id)
            ended = why
        self._leave(run.folder, run.session_id, ended)

    def _leave(self, folder: Path, run_id: str, why: Exception | None) -> None:
        leave_end(folder, run_id, why)
        self.news()
