"""A small line owner, and what is true of a house's tasks in each order of events: a reference.

It is written from the documents, not from the code: a task is what its run says, one run has the
line, the next one is by priority and then by age, and nothing ended begins again by itself.
"""

from dataclasses import dataclass, field
from typing import Any

from labharness.core.errors import LabError
from labharness.core.vocabulary.texts import Text
from labharness.journal.chain import Record
from labharness.lab.house.orders import OwnerStatus, RunOrder
from labharness.work.task.queue import PRIORITIES


class Away(LabError, ConnectionError, code="away"):
    """The line owner does not do it."""


def _state(before: str, to: str) -> tuple[str, dict[str, Any]]:
    data = {"from_state": before, "to_state": to, "reason": "why"}
    return "event", {"event_type": "state_changed", "data": data}


def _end(kind: str, **payload: Any) -> tuple[str, dict[str, Any]]:
    return "terminal", {"type": kind, "payload": payload}


WAITS = {"stage": "approval", "message": Text("approval.waiting")}
SAYS: dict[str, tuple[tuple[str, ...], tuple[tuple[str, dict[str, Any]], ...]]] = {
    "submitted": (("",), (("submitted", {}),)),
    "asks": (("submitted",), (("event", {"event_type": "progress", "data": WAITS}),)),
    "running": (("submitted", "asks"), (_state("PENDING", "RUNNING"),)),
    "held": (("running",), (_state("RUNNING", "PAUSED"),)),
    "goes on": (("held",), (_state("PAUSED", "RUNNING"),)),
    "completed": (("running",), (_end("task_completed", outputs={"raman": 1}),)),
    "failed": (("running", "held"), (_end("task_failed", error_code="execution_error"),)),
    "late": (("running", "held"), (_end("task_failed", error_code="timeout"),)),
    "rejected": (("submitted", "asks"), (_end("task_rejected", reason_code="approval_denied"),)),
    "aborted": (
        ("running", "held"),
        (_state("RUNNING", "ABORTING"), _end("event", data={"reason": "asked"})),
    ),
}
"""What a run may write: after which of these, and the records."""


class Line:
    """A line owner with its runs, without processes: it does what it is told, and no more."""

    def __init__(self) -> None:
        self.up, self.latched, self.pid = True, "", 1
        self.run = self.stage = ""
        self.disk: dict[str, list[Record]] = {}
        self.taken: list[RunOrder] = []
        self.asked: list[tuple[str, str, str]] = []

    def status(self) -> OwnerStatus | None:
        return OwnerStatus(pid=self.pid, run_id=self.run, speed=1.0) if self.up else None

    def held(self) -> str:
        return self.latched

    def latch_reason(self) -> str:
        return self.latched

    def begin(self, order: RunOrder) -> None:
        if not self.up:
            raise Away("it is away")
        assert not self.run, "a second run beside the first"
        assert order.run_id not in self.disk, "a run that has left something, ordered again"
        self.run, self.stage = order.run_id, ""
        self.taken.append(order)

    def ask(self, run_id: str, do: str, reason: str, by: str = "") -> None:
        if not self.up or self.run != run_id:
            raise Away("it has no such run")
        self.asked.append((run_id, do, by))

    def confirm(self, run_id: str, step: str, by: str) -> str:
        raise Away("it waits for no step")

    def write(self, what: str) -> None:
        self.stage = what
        written = self.disk.setdefault(self.run, [])
        for kind, body in SAYS[what][1]:
            written.append(Record(len(written) + 1, 0.0, kind, body, ""))

    def folder(self, run_id: str) -> str:
        return run_id

    def begun(self, run_id: str) -> bool:
        return run_id in self.disk

    def records(self, run_id: str, after: int) -> list[Record]:
        return self.disk.get(run_id, [])[after:]

    def left(self, run_id: str) -> tuple[str, str]:
        return "", ""


@dataclass
class Row:
    """One task as it must be."""

    name: str
    caller: str
    priority: str
    before: str = ""
    key: str = ""
    session: str = ""  # of its first run
    status: str = "queued"
    code: str = ""
    cancelled: bool = False
    run: str = ""  # that is open
    runs: list[str] = field(default_factory=list)

    def follows(self, said: str) -> str:
        """Return its status while its run is at work and has said this."""
        return "cancelling" if self.cancelled else FOLLOWS.get(said, self.status)


FOLLOWS = {"asks": "waiting_permission", "running": "running", "held": "paused"}
FOLLOWS["goes on"] = "running"
ENDS = {"completed": ("completed", ""), "aborted": ("cancelled", "")}
ENDS |= {"failed": ("failed", "execution_error"), "rejected": ("failed", "approval_denied")}
ENDS |= {"late": ("timed_out", "timeout")}
OVER = ("completed", "failed", "timed_out", "cancelled")


@dataclass
class Reference:
    """All tasks of a house, and which run has the line leased."""

    line: Line
    rows: list[Row] = field(default_factory=list)
    said: dict[str, str] = field(default_factory=dict)  # the newest word of each run
    lease: str = ""
    silent_s: float = 0.0

    def row(self, name: str) -> Row:
        return next(each for each in self.rows if each.name == name)

    def cancel(self, row: Row) -> str:
        if row.status in OVER or row.status == "cancelling":
            return "illegal_status"
        row.cancelled, row.status = True, "cancelling" if row.run else "cancelled"
        return ""

    def retry(self, row: Row, run: str) -> str:
        if row.status not in ("failed", "timed_out"):
            return "illegal_status" if row.status in OVER else "not ended"
        if row.cancelled:
            return "cancelled_graph"
        row.status, row.code, row.run = "retrying", "", run
        row.runs.append(run)
        self.rows.remove(row)
        self.rows.append(row)  # of several that are tried again the one that was asked for first
        return ""

    def step(self) -> None:
        """Let the house look once."""
        seen = self.line.run if self.line.up else None
        self.silent_s = 0.0 if seen is not None else self.silent_s
        for row in [each for each in self.rows if each.run]:
            self._follow(row, seen)
        ended = not any(each.run == self.lease for each in self.rows)
        if ended and seen is not None and self.lease != seen:
            self.lease = ""
        for row in self.rows:
            done = not row.before or self.row(row.before).status == "completed"
            if row.status in ("blocked", "queued", "waiting_resource"):
                row.status = "queued" if done else "blocked"
        ready = [each for each in self.rows if each.status == "queued"]
        ready.sort(key=lambda each: PRIORITIES.index(each.priority))  # and by age
        if ready and seen == "" and not self.line.latched and not self.lease:
            first = ready.pop(0)
            first.run = self.lease = first.session
            first.runs.append(first.run)
            first.status = "preparing"
        for row in ready:
            row.status = "waiting_resource" if self._held(row, ready, seen) else "queued"

    def _held(self, row: Row, ready: list[Row], seen: str | None) -> bool:
        if seen is None and self.silent_s > 10.0:
            return True  # there is no line owner
        return bool(self.lease) or (row is ready[0] and seen == "" and bool(self.line.latched))

    def _follow(self, row: Row, seen: str | None) -> None:
        said = self.said.get(row.run, "")
        if said in ENDS:
            row.status, row.code = ENDS[said]
            if row.cancelled and row.status == "completed":
                row.status = "cancelled"
            if row.cancelled and row.status == "timed_out":
                row.status = "failed"
            row.run = ""
        elif seen is None:
            silent = self.silent_s > 10.0 and self.line.begun(row.run)
            row.status = "lost" if silent or row.status == "lost" else row.follows(said)
        elif seen == row.run:
            row.status = row.follows(said)
        elif self.line.begun(row.run):
            row.status, row.code, row.run = "failed", "worker_lost", ""
        elif row.cancelled:
            row.status, row.run = "cancelled", ""
        elif not seen and not self.line.latched and self.lease in ("", row.run):
            self.lease = row.run
