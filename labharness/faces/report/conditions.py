"""The heading line of a report, and its table of conditions."""

from typing import Final

from labharness.faces.report.answer_face import face_of
from labharness.faces.report.facts import RunFacts
from labharness.faces.report.html import Html, el, joined
from labharness.faces.report.words import say

__all__ = ["conditions", "masthead"]

RUN_DIGITS: Final = 8


def masthead(facts: RunFacts) -> Html:
    """Return when it was, in which lab, and which run it is."""
    at = str(facts.about.get("at") or facts.header.get("epoch", ""))[:16].replace("T", " ")
    lab = facts.about.get("lab") or facts.about.get("lab_file") or ""
    run = str(facts.header.get("session_id") or "")[:RUN_DIGITS]
    parts = [f"{at} UTC" if at else "", lab]
    said = [Html(el("span", part)) for part in parts if part]
    said += [joined(say("run"), f" {run}")] if run else []
    return el("p", Html(" · ".join(said)), class_="masthead")


def conditions(facts: RunFacts) -> Html | None:
    """Tabulate the conditions; None where a run has none of them."""
    try:
        rows = list(face_of(facts.asked).conditions(facts))
    except (KeyError, IndexError, TypeError, ValueError):  # of another capability's shape
        return None
    if not rows:
        return None
    cells = [joined(el("dt", say(key)), el("dd", value, class_="said")) for key, value in rows]
    return el("dl", *cells, class_="facts")
