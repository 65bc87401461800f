"""One session as facts in the journal: its state, and its numbered events."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final

from labharness.core.clock import Clock, utc_text
from labharness.core.vocabulary.texts import Text
from labharness.journal import JournalFailed, SqliteJournal
from labharness.protocols.hcp.codec import HCP_VERSION
from labharness.protocols.hcp.session import (
    INITIAL,
    TERMINAL,
    IllegalTransition,
    SessionState,
    next_state,
)
from labharness.work.admission.token import Scope, TokenRecord, beyond, in_force, revoke
from labharness.work.desk.redaction import redacted_event

WHOLE: Final = "whole_event"
"""The record of all that an event of a confidential task would say; it takes the key to read it."""

IGNORED_MAX: Final = 20
"""Most unknown names of one submission that are warned of, each by itself."""

NAME_CHARACTERS: Final = 160


@dataclass(eq=False, repr=False)
class Session:
    """A session from its first event to its last.

    Attributes:
        session_id: Made on receipt.
        journal: The record of its events, written before they are reported.
        clock: Lab time, and the calendar's.
        new_id: Mints the ids of its events.
        tell: Called with every event as it happens (the command line's progress, an outbox).
        sequence: Number of the newest event.
        token: Its token; ``None`` before it is accepted.
        scope: The work that it does; ``None`` before it is accepted.
        metadata: Further facts of it, for example the id of its submission.
        confidential: Its events quote nothing of its task.
    """

    session_id: str
    journal: SqliteJournal
    clock: Clock
    new_id: Callable[[], str]
    tell: Callable[[str, Mapping[str, Any]], None]

    def __post_init__(self) -> None:
        self.state: SessionState = INITIAL
        self.sequence = 0
        self.token: TokenRecord | None = None
        self.scope: Scope | None = None
        self.metadata: dict[str, str] = {}
        self.confidential = self._encrypted = False
        self._created_at = self._updated_at = utc_text(self.clock.utc())

    def record(self, kind: str, body: Mapping[str, Any]) -> None:
        """Append a record of the run to its journal; raises ``JournalFailed``."""
        self.journal.append(kind, body, self.clock.now_s())

    def properties(self) -> dict[str, Any]:
        """Return the properties that HCP layer 2 names; the token itself is never among them."""
        token = self.token
        times = {} if token is None else {"token_expires_at": utc_text(token.expires_at)}
        return {
            "session_id": self.session_id,
            "state": self.state,
            "created_at": self._created_at,
            "updated_at": self._updated_at,
            "session_token": None,
            "risk_level": None if self.scope is None else self.scope.risk_level,
            "metadata": {**self.metadata, **times},
        }

    @property
    def closed(self) -> bool:
        """Whether the session has ended."""
        return self.state in TERMINAL

    def confide(self, *, encrypted: bool) -> None:
        """Keep all that may quote the data of its task out of its events, from now on.

        Args:
            encrypted: The journal is, and holds the whole of each event beside what is told.
        """
        tell = self.tell

        def told(kind: str, data: Mapping[str, Any]) -> None:
            if (clear := redacted_event(kind, data)) is not None:
                tell(kind, clear)

        self.confidential, self._encrypted, self.tell = True, encrypted, told

    def event(self, event_type: str, data: Mapping[str, Any]) -> None:
        """Record an event, then report it, even if the journal is lost."""
        self.sequence += 1
        self._updated_at = utc_text(self.clock.utc())
        body = {
            "event_type": event_type,
            "sequence": self.sequence,
            "message_id": self.new_id(),  # kept, so that an event told again is the same message
            "timestamp": self._updated_at,
            "data": self._clear(event_type, data),
            **self.clock.metadata(),
        }
        with suppress(JournalFailed):  # the line has tripped on it, and its answer says so
            self.record("event", body)
            if self._encrypted and body["data"] != data:
                whole = {"sequence": self.sequence, "data": dict(data)}
                self.record(WHOLE, whole)
        self.tell(event_type, data)

    def _clear(self, event_type: str, data: Mapping[str, Any]) -> dict[str, Any]:
        """Return the data of an event as everybody may know it."""
        return (redacted_event(event_type, data) or {}) if self.confidential else dict(data)

    def warn_of_ignored(self, names: Sequence[str]) -> None:
        """Record a warning for each name that only a higher minor version of HCP knows."""
        for name in names[:IGNORED_MAX]:
            text = Text("name.ignored", name=name[:NAME_CHARACTERS], version=HCP_VERSION)
            self.event("warning", {"code": "name_ignored", "message": text, "details": {}})

    def authorises(self, now_utc: datetime) -> bool:
        """Return whether the session's token is in force: accepted, not expired, not revoked."""
        return in_force(self.token, now_utc)

    def beyond(self, instrument: str) -> str:
        """Return why the session's token does not cover an instrument; ``""`` if it does."""
        if self.token is None or self.scope is None:
            return Text("token.void")
        return beyond(self.token.scope, replace(self.scope, instruments=(instrument,)))

    def become(self, to: str, reason: str) -> None:
        """Change state, as the table allows; a token ends with its session's work.

        Raises:
            IllegalTransition: The table does not allow it; the journal has a record of that.
        """
        if self.token is not None and to not in ("RUNNING", "PAUSED"):
            self.token = revoke(self.token)
        before = self.state
        try:
            self.state = next_state(before, to)
        except IllegalTransition as why:
            refused = {"from_state": before, "to_state": to, "reason": reason, "why": str(why)}
            with suppress(JournalFailed):
                self.record("transition_refused", refused)
            raise
        self.event("state_changed", {"from_state": before, "to_state": to, "reason": reason})
        if self.clock.stands:  # a wait for a person may follow, in which no block of it ends
            with suppress(JournalFailed):
                self.journal.commit()
        if self.closed:
            self.event("session_closed", {"final_state": to, "reason": reason})
