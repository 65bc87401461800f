"""The heading line of a report, and its table of conditions."""

from typing import Final, NamedTuple

from labharness.faces.report.answer_face import face_of
from labharness.faces.report.facts import RunFacts

__all__ = ["Masthead", "conditions", "masthead"]

RUN_DIGITS: Final = 8


class Masthead(NamedTuple):
    """Date and lab, where they are recorded, and the begin of the run's id."""

    parts: tuple[str, ...]
    run: str


def masthead(facts: RunFacts) -> Masthead:
    """Return when and in which lab a run was, and its id."""
    at = str(facts.about.get("at") or facts.header.get("epoch", ""))[:16].replace("T", " ")
    lab = str(facts.about.get("lab") or facts.about.get("lab_file") or "")
    parts = (f"{at} UTC" if at else "", lab)
    run = str(facts.header.get("session_id") or "")[:RUN_DIGITS]
    return Masthead(tuple(each for each in parts if each), run)


def conditions(facts: RunFacts) -> list[tuple[str, object]]:
    """Return key and value of each condition; none where the outputs have another shape."""
    try:
        return list(face_of(facts.asked).conditions(facts))
    except (KeyError, IndexError, TypeError, ValueError):
        return []
