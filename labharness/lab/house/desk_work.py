"""Runs tasks that need no line in threads of the house, and reads the lab's files after an edit.

Documents of these tasks are read by processes of their own. A house that dies takes these runs with
it: a run that has left a journal without an end is lost then, and its task has failed.
"""

import json
import logging
import math
import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cached_property, partial
from pathlib import Path
from threading import Lock, Thread
from typing import Any, Final

from labharness.core.clock import Chance, steady_s
from labharness.core.errors import LabError
from labharness.core.files.durable import write_durably
from labharness.core.vocabulary.texts import Text
from labharness.journal.encryption import KeyMissing
from labharness.lab.config.kinds import capabilities
from labharness.lab.config.lab_facts import lab_facts_of
from labharness.lab.config.lab_file import BadLabFile
from labharness.lab.config.lab_plan import LabPlan, read_lab
from labharness.lab.house.message_store import keep_message, told_on_receipt
from labharness.lab.house.orders import LEFT_NAME, BadOrder, OwnerStatus, RunOrder
from labharness.lab.house.screening import screened
from labharness.lab.house.submissions import read_submission
from labharness.lab.wiring.tasks import TaskRun, lab_facts_without_line
from labharness.protocols.hcp.codec import HcpMessage
from labharness.protocols.hcp.messages import TaskSubmit
from labharness.protocols.hcp.terms import Rejected
from labharness.work.admission.confidential import Way, refused_on_way
from labharness.work.admission.declaration import Declaration
from labharness.work.desk.admitting import received_without_line
from labharness.work.desk.facts import LabFacts, is_without_line
from labharness.work.desk.folder import JOURNAL_NAME
from labharness.work.desk.left_behind import LeftBehind, left_behind

LOG = logging.getLogger(__name__)

LEAVE_S: Final = 5.0
"""Longest time (s) that a house which leaves waits for the runs of its desk, which it aborts."""

Signature = tuple[tuple[str, int, int], ...]


LOOK_S: Final = 0.5
"""Longest time (s) until an edit of a lab's files counts. The house looks for one at each of its
turns, of which two fall within this time, so that no caller waits for it."""


class LabFiles:
    """A lab's files for tasks without a line, read again when one of them has changed.

    To read them takes some 0.4 s, and a caller waits for it.

    Args:
        lab: The lab file; those that it names stand in its folder.
    """

    def __init__(self, lab: Path) -> None:
        self._lab = lab
        self._lock = Lock()
        self._seen: Signature = ()
        self._seen_s = -math.inf
        self._known: tuple[LabPlan, LabFacts] | None = None

    def current(self) -> tuple[LabPlan, LabFacts]:
        """Return the plan, and the facts for tasks that need no line.

        Raises:
            BadLabFile: A file cannot be honoured.
        """
        with self._lock:
            if self._known is None or steady_s() - self._seen_s >= LOOK_S:
                return self._looked()
            return self._known

    def look(self) -> None:
        """Look for an edit; where a file cannot be honoured, `current` reads and tells of it."""
        with self._lock, suppress(BadLabFile, OSError):
            if self._known is not None:
                self._looked()

    def _looked(self) -> tuple[LabPlan, LabFacts]:
        seen, now_s = self._signature(), steady_s()
        if self._known is None or seen != self._seen:
            self._known = None
            plan = read_lab(self._lab)
            self._known, self._seen = (plan, lab_facts_without_line(plan)), seen
        self._seen_s = now_s
        return self._known

    def _signature(self) -> Signature:
        with os.scandir(self._lab.resolve().parent) as files:
            found = [(each.name, each.stat()) for each in files if each.name.endswith(".toml")]
        return tuple(sorted((name, about.st_mtime_ns, about.st_size) for name, about in found))

    def data_key(self) -> Path | None:
        """Return the file of the key for confidential data; raises as `current`."""
        return self.current()[0].data_key

    def left_behind(self, folder: Path) -> LeftBehind:
        """Return what a killed run has left in its folder, as far as that can be read."""
        try:
            return left_behind(folder, lab_facts_of(self.current()[0]))
        except (LabError, OSError, LookupError, TypeError, ValueError) as why:
            LOG.error("of the run in %s there is its end alone: %s", folder, type(why).__name__)
            return LeftBehind()

    def needs_no_line(self, payload: TaskSubmit) -> bool:
        """Return whether a task needs no line; raises as `current`."""
        return is_without_line(self.current()[1], payload)

    def received(
        self, message_id: str, payload: TaskSubmit, session_id: str, way: Way
    ) -> Rejected | HcpMessage | None:
        """Return the answer to a task on its receipt, where it can have one.

        A task that can never run, or may not come by its way, is rejected. One that needs no line,
        and no person's agreement, is accepted: it only waits for its turn.

        Raises:
            BadLabFile: A file cannot be honoured.
        """
        _, facts = self.current()
        if is_without_line(facts, payload):
            found = received_without_line(facts, message_id, payload, session_id, Chance(None))
        else:
            found = screened(read_lab(self._lab), payload)
        if isinstance(found, Rejected):
            return found
        return refused_on_way(payload, way, self._declared) or found

    @cached_property
    def _declared(self) -> list[Declaration]:
        """Those of the installed packages, which stay for as long as the process."""
        return [each.declaration for each in capabilities().values()]


class DeskWork:
    """The `DeskWorker` of a house.

    Args:
        files: Of the lab.
        news: Called when a run has ended, in its thread.
        accepted: Called when a run was accepted, in its thread; its caller waits for that.
    """

    def __init__(
        self,
        files: LabFiles,
        news: Callable[[], None] = lambda: None,
        accepted: Callable[[], None] = lambda: None,
    ) -> None:
        self._files = files
        self._news = news
        self._accepted = accepted
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
        if any((folder / name).exists() for name in (JOURNAL_NAME, LEFT_NAME)):
            return
        plan, facts = self._files.current()
        try:
            message = read_submission(Path(order.submit))
        except KeyMissing as why:  # asked again, it would be missing for ever
            self._leave(folder, order.run_id, why)
            return
        if not isinstance(message.payload, TaskSubmit):
            raise BadOrder(Text("order.wrong", name="submit"))
        run = TaskRun(
            plan,
            message,
            message.payload,
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
            raise BadOrder(Text("order.other", run_id=run_id))
        if do != "abort":
            raise BadOrder(Text("hold.nothing"))
        self._runs[run_id][1].abort(reason)

    def confirm(self, run_id: str, step: str, by: str) -> str:
        """Refuse: a task without a line asks for no manual step."""
        raise BadOrder(Text("operator.not_asked"))

    def leave(self, reason: str) -> None:
        """Abort every run, and wait for their answers for a bounded time."""
        for _, run in self._runs.values():
            run.abort(reason)
        for thread, _ in self._runs.values():
            thread.join(LEAVE_S)

    def _told(self, kind: str, data: Mapping[str, Any]) -> None:
        if kind == "task_accepted":
            self._accepted()

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
        """Leave a file with the end of a run."""
        left = {"run_id": run_id, "error": "", "why": ""}
        if why is not None:
            code = why.code if isinstance(why, LabError) else "internal_error"
            left |= {"error": code, "why": str(why)}
        with suppress(OSError):  # a full disk: the house finds no end, and says that it is lost
            folder.mkdir(parents=True, exist_ok=True)
            write_durably(folder / LEFT_NAME, json.dumps(left))
        self._news()
