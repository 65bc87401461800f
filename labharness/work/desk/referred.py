"""The results of a confidential task: artifacts hold them, and its messages refer to these."""

from collections.abc import Mapping
from typing import Any, Final

from labharness.journal.chain import canonical
from labharness.work.capability import Answer, ArtifactContent, NoAnswer

__all__ = ["FAILURE", "failure", "references", "remarks", "results"]

RESULTS: Final = "results"
"""Name of the artifact with the outputs of a confidential task, as a message would hold them."""

REMARKS: Final = "remarks"
"""Name of the artifact with its finding in one line, and its warnings."""

FAILURE: Final = "failure"
"""Name of the artifact that says why it has no answer."""


def results(outputs: Mapping[str, Any]) -> ArtifactContent:
    """Return the artifact with the outputs of a task, or those that there are all the same."""
    return ArtifactContent(RESULTS, "application/json", canonical(outputs))


def remarks(answer: Answer) -> ArtifactContent:
    """Return the artifact with what an answer says beside its outputs."""
    said = {"finding": answer.finding, "warnings": answer.warnings}
    return ArtifactContent(REMARKS, "application/json", canonical(said))


def failure(why: str, answer: NoAnswer | None) -> ArtifactContent:
    """Return the artifact with the reason of a failure, and a suggestion."""
    said = {"error_message": why, "suggestion": "" if answer is None else answer.suggestion}
    return ArtifactContent(FAILURE, "application/json", canonical(said))


def references(outputs: Mapping[str, Any], uri: str) -> dict[str, str]:
    """Return where each output stands in an artifact: its address and a JSON Pointer (RFC 6901)."""
    return {name: f"{uri}#/{_token(name)}" for name in outputs}


def _token(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1")
