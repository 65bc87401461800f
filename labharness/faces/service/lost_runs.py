"""The end of a session whose run has died: its caller gets an answer all the same."""

from collections.abc import Callable

from labharness.core.vocabulary.texts import Text
from labharness.faces.service.session_messages import SessionState
from labharness.protocols.hcp import answers
from labharness.protocols.hcp.codec import HcpMessage
from labharness.protocols.hcp.session import TERMINAL, next_state
from labharness.protocols.hcp.terms import Rejected
from labharness.work.task.record import Attempt, Task

__all__ = ["closed_already", "end_of_lost"]


def end_of_lost(
    task: Task,
    run: Attempt | None,
    session_id: str,
    found: SessionState,
    *,
    accepted: bool,
    new_id: Callable[[], str],
    timestamp: str,
) -> tuple[HcpMessage, ...]:
    """Return the messages that end a session without a terminal message in its journal.

    Args:
        task: Its task, which is at its end or has another attempt.
        run: The attempt; ``None`` where it never had one.
        session_id: Of the session.
        found: Its state as the journal leaves it.
        accepted: It was accepted on receipt.
        new_id: Mints the ids of the messages.
        timestamp: Of now.
    """
    ending = _Ending(session_id, found, new_id, timestamp)
    aborted = task.cancel_requested or task.status == "cancelled"
    if accepted and found.state == "PENDING":
        return ending.unbegun(task, run, aborted=aborted)
    if found.state in ("PENDING", "REJECTED"):
        code = "aborted" if aborted else "resource_unavailable"
        if found.state == "PENDING":
            ending.become("REJECTED", code)
        why: str = Text("hcp.lost.aborted" if aborted else "hcp.lost.unbegun")
        if aborted and task.status_reason:
            why = task.status_reason
        return (*ending.said, ending.rejected(task.profile.get("message_id", ""), code, why))
    if found.state not in TERMINAL:
        if found.state == "PAUSED":
            ending.become("RUNNING", Text("hcp.lost.reason"))
        if found.state == "ABORTING":
            ending.become("ABORTED", Text("hcp.lost.reason"))
            return tuple(ending.said)
        ending.become("FAILED", Text("hcp.lost.reason"))
    if found.state == "ABORTED":
        ending.close_aborted(withheld=found.withheld)
        return tuple(ending.said)
    return (*ending.said, ending.failed(task, run))


def closed_already(
    session_id: str, sequence: int, *, new_id: Callable[[], str], timestamp: str
) -> HcpMessage:
    """Return the answer to an abort of a session that has ended (ruling 10b)."""
    data = {"code": "session_already_closed", "message": Text("hcp.closed_already"), "details": {}}
    return answers.event(
        message_id=new_id(),
        timestamp=timestamp,
        session_id=session_id,
        event_type="warning",
        sequence=sequence,
        data=data,
    )


class _Ending:
    """The messages of an end, numbered on from the last event of the journal."""

    def __init__(
        self, session_id: str, found: SessionState, new_id: Callable[[], str], timestamp: str
    ) -> None:
        self._session_id = session_id
        self._state, self._sequence = found.state, found.sequence
        self._new_id, self._timestamp = new_id, timestamp
        self.said: list[HcpMessage] = []

    def become(self, to: str, reason: str) -> None:
        before, self._state = self._state, next_state(self._state, to)
        self._event("state_changed", {"from_state": before, "to_state": to, "reason": reason})
        if to in TERMINAL:
            self._event("session_closed", {"final_state": to, "reason": reason})

    def unbegun(self, task: Task, run: Attempt | None, *, aborted: bool) -> tuple[HcpMessage, ...]:
        """Return the end of an accepted session whose run left nothing."""
        self.become("RUNNING", "accepted")
        if aborted:
            for state in ("ABORTING", "ABORTED"):
                self.become(state, task.status_reason or Text("hcp.lost.aborted"))
            return tuple(self.said)
        self.become("FAILED", Text("hcp.lost.unbegun"))
        return (*self.said, self.failed(task, run))

    def close_aborted(self, *, withheld: bool) -> None:
        """Close a session whose run was aborted; an event that was withheld had the number."""
        self._sequence -= withheld
        self._event("session_closed", {"final_state": "ABORTED", "reason": Text("hcp.lost.reason")})

    def _event(self, event_type: str, data: dict[str, str]) -> None:
        self._sequence += 1
        self.said.append(
            answers.event(
                message_id=self._new_id(),
                timestamp=self._timestamp,
                session_id=self._session_id,
                event_type=event_type,
                sequence=self._sequence,
                data=data,
            )
        )

    def rejected(self, in_reply_to: str, code: str, why: str) -> HcpMessage:
        aborted = code == "aborted"
        return answers.task_rejected(
            message_id=self._new_id(),
            timestamp=self._timestamp,
            in_reply_to=in_reply_to,
            rejected=Rejected("aborted" if aborted else "resource_unavailable", why),
        )

    def failed(self, task: Task, run: Attempt | None) -> HcpMessage:
        points = () if run is None else run.checkpoint_refs
        details = {
            "phase": task.progress.phase,
            "step": 0 if run is None else len({each.step_id for each in run.steps}),
            "last_checkpoint": points[-1] if points else None,
            "recoverable": False,
        }
        return answers.task_failed(
            message_id=self._new_id(),
            timestamp=self._timestamp,
            session_id=self._session_id,
            error_code="execution_error",
            error_message=Text("hcp.lost.failed"),
            suggestion=Text("hcp.lost.again"),
            error_details=details,
        )
