"""Redacts a confidential task: fields of its events by a table, its results by reference.

A field that the table does not name is not told, so a field that is added to an event later stays
untold until it is named. A sentence is told if nothing was put into it.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from labharness.core.texts import known
from labharness.core.vocabulary.texts import Text
from labharness.journal.chain import canonical
from labharness.protocols.hcp.terms import REASON_CODES
from labharness.work.capability import ArtifactContent, NoAnswer

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
OF_A_RESULT: Final = ("step", "instrument", "record")
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
        said["data"] = {name: data["data"][name] for name in OF_A_RESULT if name in data["data"]}
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


RESULTS: Final = "results"
"""Name of the artifact with the outputs of a confidential task, as a message would hold them."""

REMARKS: Final = "remarks"
"""Name of the artifact with its finding in one line, its warnings and its trips."""

FAILURE: Final = "failure"
"""Name of the artifact that says why it has no answer."""


def results(outputs: Mapping[str, Any]) -> ArtifactContent:
    """Return the artifact with the outputs of a task, or those that there are all the same."""
    return ArtifactContent(RESULTS, "application/json", canonical(outputs))


def remarks(
    finding: str, warnings: Sequence[str], risk_events: Sequence[Mapping[str, Any]] = ()
) -> ArtifactContent:
    """Return the artifact with what a run says beside its outputs."""
    said = {"finding": finding, "warnings": list(warnings), "risk_events": list(risk_events)}
    return ArtifactContent(REMARKS, "application/json", canonical(said))


def failure(why: str, answer: NoAnswer | None) -> ArtifactContent:
    """Return the artifact with the reason of a failure, and a suggestion."""
    said = {"error_message": why, "suggestion": "" if answer is None else answer.suggestion}
    return ArtifactContent(FAILURE, "application/json", canonical(said))


def references(outputs: Mapping[str, Any], uri: str) -> dict[str, str]:
    """Return where each output stands in an artifact: its address and a JSON Pointer (RFC 6901)."""
    return {name: f"{uri}#/{_token(name)}" for name in outputs}


def referred_in(outputs: Mapping[str, Any]) -> str:
    """Return the address of the artifact that all outputs refer to; ``""`` of open ones."""
    ends = {name: f"#/{_token(name)}" for name in outputs}
    told = {
        value.removesuffix(ends[name])
        for name, value in outputs.items()
        if isinstance(value, str) and value.startswith("hcp://") and value.endswith(ends[name])
    }
    whole = len(told) == 1 and all(isinstance(each, str) for each in outputs.values())
    return told.pop() if whole else ""


def bare(summary: Mapping[str, Any]) -> dict[str, Any]:
    """Return an execution summary with what a confidential task tells of itself.

    That it tripped, by which cause and when, is told; value and limit are in the remarks.
    """
    events = [
        {"code": each["code"], "at": each["at"], "text": Text("data.withheld")}
        for each in summary["risk_events"]
    ]
    return {**summary, "risk_events": events, "warnings": []}


def _token(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1")
