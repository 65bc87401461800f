"""One of two runs on a page: its place, its name and its colour."""

from dataclasses import dataclass

from labharness.faces.report.facts import RunFacts
from labharness.faces.report.html import Html, el, joined
from labharness.faces.report.svg import COLOURS


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
