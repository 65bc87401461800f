"""How the answer of a capability is shown: plainly, or as the capability's own face has it.

Entry points of the group ``labharness.reports`` are named like a capability and lead to its face.
"""

from collections.abc import Iterator, Mapping
from importlib.metadata import entry_points
from typing import Any

from labharness.core.vocabulary import share_text
from labharness.faces.report.svg import exact

__all__ = ["AnswerFace", "face_of", "output_text"]


class AnswerFace:
    """The plain face, which shows the answer of any capability; a capability may refine it."""

    def lines(self, outputs: Mapping[str, Any], summary: Mapping[str, Any]) -> Iterator[str]:
        """Return what ``labharness run`` prints of a completed task."""
        said = ", ".join(
            output_text(name, value)
            for name, value in outputs.items()
            if isinstance(value, int | float | str)
        )
        yield f"completed: {said}" if said else "completed"
        if summary.get("finding"):
            yield str(summary["finding"])


def output_text(name: str, value: float | str) -> str:
    """Return one output in words; a confidence is rounded down."""
    if name == "confidence" and isinstance(value, float):
        return f"{name} {share_text(value, 6)}"
    return f"{name} {exact(value) if isinstance(value, float) else value}"


def face_of(capability: str) -> AnswerFace:
    """Return the face of a capability; the plain one where it has none that can be imported."""
    for point in entry_points(group="labharness.reports", name=capability):
        try:
            face = point.load()
        except Exception:  # noqa: BLE001 - somebody else's module may raise anything
            break
        if isinstance(face, AnswerFace):
            return face
    return AnswerFace()
