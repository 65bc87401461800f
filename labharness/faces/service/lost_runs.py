"""The end of a session whose run has died: its caller gets an answer all the same."""

from collections.abc import Callable

from labharness.core.vocabulary.texts import Text
from labharness.faces.service.session_messages import SessionState
from labharness.protocols.hcp import answers
from labharness.protocols.hcp.codec import HcpMessage
from labharness.protocols.hcp.session import TERMINAL, next_state
from labharness.protocols.hcp.terms import ReasonCode, Rejected
from labharness.work.desk.left_behind import LeftBehind
from labharness.work.task.record import Attempt, Task


def end_of_lost(
    task: Task,
    run: Attempt | None,
    session_id: str,
    found: SessionState,
    *,
    left: LeftBehind,
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
        left: Of its results.
        accepted: It was accepted on receipt.
        new_id: Mints the ids of the messages.
        timestamp: Of now.
    """
    ending = _Ending(session_id, found, new_id, timestamp)
    aborted = task.cancel_requested or task.status == "cancelled"
    state, why = found.state, str(Text("hcp.lost.reason"))
    if accepted and state == "PENDING":  # its run has left nothing
        ending.become("RUNNING", "accepted")
        why = Text("hcp.lost.unbegun")
        if aborted:
            why = task.status_reason or Text("hcp.lost.aborted")
            ending.become("ABORTING", why)
    elif state in ("PENDING", "REJECTED"):
        return ending.as_rejected(task, aborted=aborted)
    ending.end(why)
    if ending.state != "ABORTED":
        ending.failed(task, run, left)
    ending.close(why)
    return tuple(ending.said)


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
        self.state = found.state
        # the event that was withheld is told now, with its number
        self._sequence = found.sequence - found.withheld
        self._new_id, self._timestamp = new_id, timestamp
        self.said: list[HcpMessage] = []

    def become(self, to: str, reason: str) -> None:
        before, self.state = self.state, next_state(self.state, to)
        self._event("state_changed", {"from_state": before, "to_state": to, "reason": reason})

    def end(self, reason: str) -> None:
        """Come to a last state from whatever state it is in."""
        if self.state == "PAUSED":
            self.become("RUNNING", reason)
        if self.state not in TERMINAL:
            self.become("ABORTED" if self.state == "ABORTING" else "FAILED", reason)

    def close(self, reason: str) -> None:
        self._event("session_closed", {"final_state": self.state, "reason": reason})

    def as_rejected(self, task: Task, *, aborted: bool) -> tuple[HcpMessage, ...]:
        """Return the end of a session that was not accepted."""
        code: ReasonCode = "aborted" if aborted else "resource_unavailable"
        if self.state == "PENDING":
            self.become("REJECTED", code)
        why: str = Text("hcp.lost.aborted" if aborted else "hcp.lost.unbegun")
        if task.status_reason and (aborted or task.error_code == code):
            why = task.status_reason
        again = None if aborted else Text("hcp.lost.again")
        self.said.append(
            answers.task_rejected(
                message_id=self._new_id(),
                timestamp=self._timestamp,
                in_reply_to=str(task.profile.get("message_id", "")),
                rejected=Rejected(code, why, suggestion=again),
            )
        )
        self.close(code)
        return tuple(self.said)

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

    def failed(self, task: Task, run: Attempt | None, left: LeftBehind) -> None:
        points = () if run is None else run.checkpoint_refs
        late = task.status == "timed_out"
        details = {
            "phase": task.progress.phase,
            "step": 0 if run is None else len({each.step_id for each in run.steps}),
            "last_checkpoint": points[-1] if points else None,
            "recoverable": left.way_on is not None,
        }
        way_out = Text("hcp.lost.again")
        if left.way_on is not None:
            session, last = left.way_on.session_id, left.way_on.checkpoint_id
            way_out = Text("advice.resume", session=session, checkpoint=last)
        self.said.append(
            answers.task_failed(
                message_id=self._new_id(),
                timestamp=self._timestamp,
                session_id=self._session_id,
                error_code="timeout" if late else "execution_error",
                error_message=task.status_reason if late else Text("hcp.lost.failed"),
                suggestion=way_out,
                error_details=details,
                partial_outputs=left.outputs or None,
                artifacts=left.artifacts,
                execution_summary=left.summary,
            )
        )
