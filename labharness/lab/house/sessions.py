"""Finds the task of a session, and carries out its caller's abort."""

from contextlib import suppress

from labharness.core.errors import LabError
from labharness.core.vocabulary.texts import Text
from labharness.lab.house.house import House
from labharness.lab.house.house_commands import TaskRefused, attempt_of
from labharness.lab.house.intake import RUNTIME
from labharness.lab.house.message_store import MessageStore
from labharness.lab.house.orders import LineOwnerWorker
from labharness.protocols.hcp.codec import HcpMessage
from labharness.protocols.hcp.terms import CONFIDENTIAL
from labharness.work.admission.token import is_token
from labharness.work.task.commands import AppendProgress, CancelTask, TaskActor
from labharness.work.task.record import Attempt, Task, Tasks
from labharness.work.task.states import TERMINAL


def abort_session(
    house: House, kept: MessageStore, caller_id: str, session_id: str, token: str, reason: str
) -> str:
    """Carry out the abort that a caller asks of its session; it sticks to the task.

    A session whose run has not begun needs no token (ruling 5).

    Args:
        house: Keeps the task.
        kept: With the message that has the session's token.
        caller_id: The caller, as the broker vouches for it.
        session_id: Of the session.
        token: That it states; ``""`` for none.
        reason: That it gives; of a confidential task it is not kept.

    Returns:
        ``asked``, or why nothing changes: ``unknown`` for a session that is not this caller's,
        ``token`` where it is not the session's own, ``closed`` where it has ended.

    Raises:
        TaskRefused: The control plane refuses it.
        JournalFailed: It could not be written.
    """
    task, run = session_of(house.tasks, session_id)
    if task is None or task.requested_by != caller_id:
        return "unknown"
    if task.status in TERMINAL or (run is not None and run.ended_at_s is not None):
        return "closed"
    if task.cancel_requested:
        return "asked"
    accepted = kept.acceptance(session_id) if token or run is not None else None
    if accepted is not None and not _is_token(token, accepted):
        return "token"
    if task.constraints.get("data_classification") in CONFIDENTIAL:
        reason = Text("data.aborted")
    house.give(CancelTask(task_id=task.task_id, reason=reason), TaskActor(caller_id, "caller"))
    return "asked"


def deliver(house: House, session_id: str) -> None:
    """Keep that the answer of a session has arrived where its caller finds it.

    Raises:
        JournalFailed: It could not be written.
    """
    task, _ = session_of(house.tasks, session_id)
    if task is not None and task.delivery != "delivered":
        with suppress(TaskRefused):  # it is archived
            house.give(AppendProgress(task_id=task.task_id, delivery="delivered"), RUNTIME)


def session_of(tasks: Tasks, session_id: str) -> tuple[Task | None, Attempt | None]:
    """Return the task and the attempt of a session; no attempt where it has none yet."""
    task = tasks.by_id.get(tasks.sessions.get(session_id, ""))
    return task, None if task is None else attempt_of(task, session_id)


def warn_caller(owner: LineOwnerWorker, session_id: str, code: str) -> None:
    """Have a run tell its caller of a refused request, by an event of its session."""
    with suppress(LabError):  # it has just ended
        owner.ask(session_id, "warn", code)


def _is_token(token: str, accepted: HcpMessage) -> bool:
    return is_token(token, str(getattr(accepted.payload, "session_token", "")))
