"""The report of one run as one page."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from labharness.faces.report.answer_face import face_of
from labharness.faces.report.document import document
from labharness.faces.report.facts import RunFacts
from labharness.faces.report.html import Html, el, joined
from labharness.faces.report.tables import extremes, follows, phase_rows
from labharness.faces.report.traces import charts, key_samples, prediction_text
from labharness.faces.report.values import data
from labharness.faces.report.verdict import conditions, intent, masthead, verdict
from labharness.faces.report.words import phrase, plain, say

EVENTS_MAX: Final = 300
"""Rows of the table of events; a line that warns every second would hide what matters."""


def page(facts: RunFacts, language: str = "en") -> str:
    """Return the whole page.

    Args:
        facts: The run.
        language: The one of ``LANGUAGES`` that is shown first; the page holds all.

    Raises:
        KeyError: There is no such language.
    """
    return document(
        "page.html.j2",
        f"{plain('title', language)}: {intent(facts)}",
        language,
        run=facts,
        about=masthead(facts),
        intent=intent(facts),
        verdict=verdict(facts),
        conditions=conditions(facts),
        asked=list(_asked(facts)),
        **(_traces(facts) if facts.plan else {}),
        sections=face_of(facts.asked).sections(facts),
        events_max=EVENTS_MAX,
        commands=list(_commands(facts)) if facts.commands else (),
        provenance=list(_provenance(facts)),
    )


def _traces(facts: RunFacts) -> Mapping[str, Any]:
    return {
        "charts": charts(facts),
        "samples": key_samples(facts),
        "forecast": prediction_text(facts),
        "extremes": list(extremes(facts)),
        "phases": list(phase_rows(facts)),
        "follows": list(follows(facts)),
    }


def _asked(facts: RunFacts) -> Iterator[tuple[str, object]]:
    asked = facts.asked
    capability = f"{asked.get('capability', '')} {asked.get('capability_version', '')}"
    yield "intent", asked.get("intent", "")
    yield "capability", capability.strip()
    yield "caller", asked.get("caller_id", "")
    yield "inputs", data(asked.get("inputs", {}))
    yield "constraints", data(asked.get("constraints", {}))
    if facts.plan.get("recipe"):
        yield "recipe", data(facts.plan["recipe"])
    if asked.get("context") is not None:
        yield "context", el("div", data(asked["context"]), class_="quoted")
    if facts.approval:
        who = ", ".join(str(each) for each in facts.approval["by"])
        yield "approval", f"{who}: {facts.approval['reason']}"


def _commands(facts: RunFacts) -> Iterator[tuple[Html, bool]]:
    """Return how the physical commands ended, and whether that leaves a doubt."""
    unshown = sum(facts.unshown.values())
    yield say("ending.confirmed", count=facts.commands.get("confirmed", 0)), False
    if unshown:
        rows = ", ".join(f"{channel} ({count})" for channel, count in facts.unshown.items())
        yield say("unshown", count=unshown, rows=rows), False
    for ending, count in facts.commands.items():
        left = count - unshown if ending == "unconfirmed" else count
        key = f"ending.{ending}"
        if left and ending != "confirmed":
            yield say(key, count=left) if phrase(key) else joined(f"{left} {ending}"), True


def _provenance(facts: RunFacts) -> Iterator[tuple[str, object]]:
    header, about, chain = facts.header, facts.about, facts.chain
    if facts.by_hand:
        yield "by_hand", facts.by_hand
    else:
        yield "session", _digest(header.get("session_id", ""))
    yield "began", header.get("epoch", "")
    if chain.ok:
        yield "chain", say("chain_holds", count=chain.head.seq)
    else:
        broken = say("chain_broken", count=chain.first_bad_seq, reason=chain.reason)
        yield "chain", el("span", broken, class_="alarm")
    yield "chain_head", _digest(chain.head.hash)
    yield "plan_digest", _digest(facts.plan.get("digest", "–"))
    yield "lab_digest", _digest(header.get("lab_digest", ""))
    yield "envelope_digest", _digest(header.get("envelope_digest", ""))
    yield "ambient_torr", header.get("ambient_torr") or say("not_stated")
    yield "versions", ", ".join(f"{name} {about.get(name)}" for name in ("labharness", "python"))
    yield "seed", say("none") if header.get("seed") is None else header["seed"]


def _digest(value: object) -> Html:
    return el("span", value, class_="digest")
