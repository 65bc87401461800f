"""The display of an answer: plain, or by the face that its capability brings.

Entry points of the group ``labharness.reports`` are named like a capability and lead to its face.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib.metadata import entry_points
from typing import Any

from labharness.core.vocabulary import share_text
from labharness.core.vocabulary.texts import Text
from labharness.faces.report.compared_run import ComparedRun
from labharness.faces.report.document import section
from labharness.faces.report.facts import RunFacts
from labharness.faces.report.html import Html
from labharness.faces.report.svg import exact
from labharness.faces.report.values import data


class AnswerFace:
    """The plain face, which shows the answer of any capability; a capability may refine it.

    Attributes:
        series: Keys of series and tables in the answer; a comparison of two runs leaves them out.
    """

    series: frozenset[str] = frozenset()

    def lines(self, outputs: Mapping[str, Any], summary: Mapping[str, Any]) -> Iterator[str]:
        """Return the lines that ``labharness run`` prints of a completed task."""
        said = ", ".join(
            output_text(name, value)
            for name, value in outputs.items()
            if isinstance(value, int | float | str)
        )
        yield Text("cli.completed_with", outputs=said) if said else Text("cli.completed")
        if summary.get("finding"):
            yield str(summary["finding"])

    def headline(self, facts: RunFacts) -> Html | None:
        """Return the finding, for the top of the report; None where there is none."""
        return None

    def confidence(self, facts: RunFacts) -> object:
        """Return the confidence in the finding; None where there is none."""
        return facts.results.get("confidence")

    def beneath(self, facts: RunFacts) -> Iterator[Html]:
        """Return sentences for below the headline and its confidence."""
        return iter(())

    def glance(self, facts: RunFacts) -> Iterator[tuple[Html, object]]:
        """Return rows for the short table of the verdict: name and value."""
        return iter(())

    def conditions(self, facts: RunFacts) -> Iterator[tuple[str, object]]:
        """Return rows for the table of conditions: the key of the words, and the value."""
        return iter(())

    def sections(self, facts: RunFacts) -> Iterator[Html]:
        """Return the sections that show the finding."""
        if facts.results:
            yield section("results", data(facts.results))

    def compared(self, runs: Sequence[ComparedRun]) -> Iterator[Html]:
        """Return the sections that show the findings of two runs beside each other."""
        return iter(())


PLAIN = AnswerFace()


def output_text(name: str, value: float | str) -> str:
    """Return one output in words; a confidence is rounded down."""
    if name == "confidence" and isinstance(value, float):
        return f"{name} {share_text(value, 6)}"
    return f"{name} {exact(value) if isinstance(value, float) else value}"


def percent(share: float) -> str:
    """Write a probability in percent, rounded down: not even 1 is 100 %."""
    return f"{float(share_text(share, 4)) * 100:.4g} %"


def face_of(asked: Mapping[str, Any]) -> AnswerFace:
    """Return the face of the requested capability.

    Args:
        asked: The payload of the submission.
    """
    return _face(str(asked.get("capability", "")))


@cache  # what is installed does not change while a process runs
def _face(capability: str) -> AnswerFace:
    for point in entry_points(group="labharness.reports", name=capability):
        try:
            face = point.load()
        except Exception:  # noqa: BLE001 - somebody else's module may raise anything
            break
        if isinstance(face, AnswerFace):
            return face
    return PLAIN
