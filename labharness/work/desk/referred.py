"""Puts the results of a confidential task into artifacts, to which its messages refer."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from labharness.core.vocabulary.texts import Text
from labharness.journal.chain import canonical
from labharness.work.capability import ArtifactContent, NoAnswer

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
