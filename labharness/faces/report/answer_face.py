"""The display of an answer, of one run or two: plain, or by the face of its capability.

Entry points of the group ``labharness.reports`` are named like a capability and lead to its face.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import entry_points
from itertools import islice
from typing import Any, Final

from labharness.core.vocabulary import share_text
from labharness.core.vocabulary.texts import Text
from labharness.faces.report.document import section
from labharness.faces.report.facts import RunFacts
from labharness.faces.report.markup import COLOURS, Html, el, exact, joined, text


@dataclass(frozen=True, slots=True)
class ComparedRun:
    """One of the two, with its place and its name on the page."""

    at: int
    name: str
    facts: RunFacts

    @property
    def colour(self) -> str:
        """Return the colour of its curves."""
        return COLOURS[self.at]

    @property
    def trace(self) -> str:
        """Return the class of a measured curve: the upper one lets the lower one through."""
        return "trace over" if self.at else "trace"

    @property
    def label(self) -> Html:
        """Return its name with its colour: the legend."""
        return joined(el("i", "●", class_=f"c{self.at}"), f" {self.at + 1}: {self.name}")


LINES_MAX: Final = 100
LIST_SHOWN_MAX: Final = 20
"""Lines of a JSON value, and items of a list of numbers or words, that the page shows."""


def data(value: object) -> Html:
    """Show a JSON value: a line for each scalar, what it is part of before it."""
    if isinstance(value, str) or value in ({}, []):
        return text(value or "–")
    lines = islice(_lines(value, ""), LINES_MAX + 1)
    return el("pre", "\n".join("…" if at == LINES_MAX else one for at, one in enumerate(lines)))


def _lines(value: object, name: str) -> Iterator[str]:
    if isinstance(value, Mapping) and value:
        for each, part in value.items():
            yield from _lines(part, f"{name}.{each}" if name else str(each))
    elif isinstance(value, list) and any(isinstance(each, dict | list) for each in value):
        for index, part in enumerate(value):
            yield from _lines(part, f"{name}[{index}]")
    else:
        yield f"{name}: {_scalar(value)}" if name else _scalar(value)


def _scalar(value: object) -> str:
    if isinstance(value, list):
        more = [] if len(value) <= LIST_SHOWN_MAX else [f"… ({len(value)})"]
        return ", ".join([*map(_scalar, value[:LIST_SHOWN_MAX]), *more])
    return exact(value) if isinstance(value, float) else str(value)


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
