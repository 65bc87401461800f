"""One session as facts in the journal: its state, and its numbered events."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from typing import Any

from labharness.core.clock import utc_text
from labharness.core.vocabulary.texts import Text
from labharness.journal import Journal, JournalFailed
from labharness.protocols.hcp.session import INITIAL, TERMINAL, SessionState, next_state
from labharness.work.admission.token import Scope, TokenRecord, beyond, in_force, revoke

__all__ = ["Session"]


class Session:
    """A session from its first event to its last.

    Args:
        session_id: Made on receipt.
        journal: The record of its events, written before they are reported.
        now_s: Lab time.
        utc: Returns the calendar's time.
        new_id: Mints the ids of its events.
        tell: Called with every event as it happens (the command line's progress, an outbox).

    Attributes:
        sequence: Number of the newest event.
        token: Its token; ``None`` before it is accepted.
        scope: The work that it does; ``None`` before it is accepted.
    """

    def __init__(
        self,
        session_id: str,
        journal: Journal,
        now_s: Callable[[], float],
        utc: Callable[[], datetime],
        new_id: Callable[[], str],
        tell: Callable[[str, Mapping[str, Any]], None],
    ) -> None:
        self.session_id = session_id
        self.state: SessionState = INITIAL
        self._journal = journal
        self._now_s = now_s
        self._utc = utc
        self._new_id = new_id
        self.tell = tell
        self.sequence = 0
        self.token: TokenRecord | None = None
        self.scope: Scope | None = None

    @property
    def closed(self) -> bool:
        """Whether the session has ended."""
        return self.state in TERMINAL

    def event(self, event_type: str, data: Mapping[str, Any]) -> None:
        """Record an event, then report it, even if the journal is lost."""
        self.sequence += 1
        body = {
            "event_type": event_type,
            "sequence": self.sequence,
            "message_id": self._new_id(),  # kept, so that an event told again is the same message
            "timestamp": utc_text(self._utc()),
            "data": dict(data),
        }
        with suppress(JournalFailed):  # the line has tripped on it, and its answer says so
            self._journal.append("event", body, self._now_s())
        self.tell(event_type, data)

    def authorises(self, now_utc: datetime) -> bool:
        """Return whether the session's token is in force: accepted, not expired, not revoked."""
        return in_force(self.token, now_utc)

    def beyond(self, instrument: str) -> str:
        """Return why the session's token does not cover an instrument; ``""`` if it does."""
        if self.token is None or self.scope is None:
            return Text("token.void")
        return beyond(self.token.scope, replace(self.scope, instruments=(instrument,)))

    def become(self, to: str, reason: str) -> None:
        """Change state, as the table allows; a token ends with its session's work."""
        if self.token is not None and to not in ("RUNNING", "PAUSED"):
            self.token = revoke(self.token)
        before, self.state = self.state, next_state(self.state, to)
        self.event("state_changed", {"from_state": before, "to_state": to, "reason": reason})
        if self.closed:
            self.event("session_closed", {"final_state": to, "reason": reason})
