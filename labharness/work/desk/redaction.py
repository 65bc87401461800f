"""Redacts the events of a confidential task, by a table of the fields that may be told.

A field that the table does not name is not told, so a field that is added to an event later stays
untold until it is named. A sentence is told if nothing was put into it.
"""

from collections.abc import Mapping
from typing import Any, Final

from labharness.core.texts import known
from labharness.core.vocabulary.texts import Text
from labharness.protocols.hcp.terms import REASON_CODES

ACCEPTED: Final = "accepted"
RECOVERED: Final = "recovered_from_checkpoint"
"""HCP's reason of the change of state of a session that goes on after a checkpoint."""

FIXED: Final = frozenset(
    {*REASON_CODES, ACCEPTED, RECOVERED}
    | {"execution_error", "input_error", "timeout", "internal_error"}
)
"""Reasons that are codes of HCP; any other plain string may be a person's or a program's words."""

AS_IT_IS: Final[Mapping[str, tuple[str, ...]]] = {
    "session_created": ("state", "risk_level", "session_token"),
    "session_closed": ("final_state",),
    "state_changed": ("from_state", "to_state"),
    "progress": ("stage", "percent"),
    "checkpoint_created": ("checkpoint_id", "resumable", "created_at"),
    "intermediate_result": ("result_type", "is_partial"),
    "warning": ("code",),
    "error": ("code", "recoverable"),
    "log": ("level",),
    "task_accepted": (
        *("session_token", "risk_level", "data_classification", "safety_envelope"),
        *("constraints", "in_reply_to"),
    ),
    "begun": (),
    "approval_asked": ("id", "wait_s"),
    "cooling": ("message",),
    "cooled": ("message",),
}
"""Fields by kind of event: ids, codes, states, times. The last two are of the line and not of the
task: whether it is still hot, which people must know without a key."""

SENTENCES: Final = ("message", "reason", "description")
RESULT: Final = ("step", "instrument", "record")
"""Of a measurement: where it stands in the journal, which the key reads."""
OF_A_STEP: Final = ("required_action", "confirmed_by")
"""Of a log about a manual step: what a person has to do, a word of ours, and who did it."""


def redacted_event(kind: str, data: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return what may be told of an event; ``None`` of a kind that is not told at all."""
    named = AS_IT_IS.get(kind)
    if named is None:
        return None
    told = {name: data[name] for name in named if name in data}
    said: dict[str, Any] = {
        name: sentence(data[name]) for name in SENTENCES if name in data and name not in told
    }
    if kind == "intermediate_result":
        said["data"] = {name: data["data"][name] for name in RESULT if name in data["data"]}
    if kind == "log":
        details = data.get("details", {})
        said["details"] = {name: details[name] for name in OF_A_STEP if name in details}
    if kind == "task_accepted":
        said["risk_reasons"] = [Text("data.withheld")]
    return {**told, **said}


def sentence(text: object) -> str:
    """Return a known sentence that quotes nothing, or a code; else that it is withheld.

    A text with parameters may quote an input in one of them, and one whose code is unknown is shown
    by its code, which may be of another author.
    """
    if isinstance(text, Text):
        return text if not text.params and known(text.code) else Text("data.withheld")
    return text if isinstance(text, str) and text in FIXED else Text("data.withheld")
