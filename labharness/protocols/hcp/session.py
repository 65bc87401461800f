"""The states of an HCP session as one table; a transition that is not in it is refused."""

from typing import Final, Literal

from labharness.core.errors import LabError

SessionState = Literal[
    "PENDING", "RUNNING", "PAUSED", "ABORTING", "REJECTED", "COMPLETED", "FAILED", "ABORTED"
]

INITIAL: Final[SessionState] = "PENDING"
"""State of a new session. It is made on receipt, so that waiting for an approval is visible."""

# State -> next state -> the reason of the change. A PAUSED session that times out or cannot resume
# returns to RUNNING with the reason and fails from there, so it needs no edge of its own.
TRANSITIONS: Final[dict[SessionState, dict[SessionState, str]]] = {
    "PENDING": {
        "RUNNING": "the task is accepted and starts",
        "REJECTED": "admission refuses it, or its caller aborts it",
    },
    "RUNNING": {
        "PAUSED": "the line is held",
        "ABORTING": "its caller aborts it",
        "COMPLETED": "results are delivered",
        "FAILED": "an error ends it, or max_duration has passed",
    },
    "PAUSED": {
        "RUNNING": "it resumes, or ends its pause to fail",
        "ABORTING": "its caller aborts it",
    },
    "ABORTING": {"ABORTED": "the instruments are in their safe state"},
    "REJECTED": {},
    "COMPLETED": {},
    "FAILED": {},
    "ABORTED": {},
}

STATES: Final = tuple(TRANSITIONS)
TERMINAL: Final = frozenset(state for state, onward in TRANSITIONS.items() if not onward)


class IllegalTransition(LabError, ValueError, code="illegal_transition"):
    """A change of state that is not in the table."""


def next_state(state: str, to: str) -> SessionState:
    """Return the new state, if the table allows the change.

    Raises:
        IllegalTransition: The table has no such state, or no such change.
    """
    onward = next((edges for known, edges in TRANSITIONS.items() if known == state), None)
    if onward is None:
        raise IllegalTransition(f"{state!r} is not a session state; there are {', '.join(STATES)}")
    for allowed in onward:
        if allowed == to:
            return allowed
    reachable = ", ".join(onward) or "nothing: the session is closed"
    raise IllegalTransition(f"a session cannot go from {state} to {to}; from {state}: {reachable}")
