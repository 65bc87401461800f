"""The top of a report: heading, ending, answer, confidence, reasons and conditions."""

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from labharness.faces.report.answer_face import face_of, percent
from labharness.faces.report.facts import RunFacts, took_s
from labharness.faces.report.html import Html, el, joined
from labharness.faces.report.svg import clock
from labharness.faces.report.words import both, known, say

RUN_DIGITS: Final = 8
QUIET: Final = {"confirmed", "unconfirmed"}
"""Endings of commands that leave no doubt; the latter's channels have nothing to read back."""


class Masthead(NamedTuple):
    """Date and lab, where they are recorded, and the begin of the run's id."""

    parts: tuple[str, ...]
    run: str


class InBrief(NamedTuple):
    """The ending of a run, and its answer or the reason why there is none."""

    ending: Html
    headline: Html
    short: bool


class Sureness(NamedTuple):
    """The confidence as a bar and as a sentence."""

    bar: Html
    said: Html


class VerdictBox(NamedTuple):
    """The box at the top of a report.

    Attributes:
        beneath: Sentences of the capability's face.
        whys: Key of a phrase, and the sentence after it.
        safe: Key of the sentence on the safe state; empty where the run has no need of it.
        glance: Name and value.
    """

    brief: InBrief
    sureness: Sureness | None
    beneath: tuple[Html, ...]
    whys: tuple[tuple[str, Html], ...]
    safe: str
    glance: tuple[tuple[Html, object], ...]


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


def verdict(facts: RunFacts) -> VerdictBox:
    """Return the values of the box at the top."""
    face = face_of(facts.asked)
    confidence = face.confidence(facts)
    sureness = None
    if isinstance(confidence, float | int) and confidence > 0:
        sureness = _sureness(float(confidence), facts)
    settled = facts.ending in ("task_completed", "task_rejected")
    return VerdictBox(
        brief=in_brief(facts),
        sureness=sureness,
        beneath=tuple(face.beneath(facts)),
        whys=tuple(_whys(facts)),
        safe="" if settled else _made_safe(facts),
        glance=(*face.glance(facts), *_glance(facts)),
    )


def in_brief(facts: RunFacts) -> InBrief:
    """Return how a run ended, and its answer."""
    answer = facts.answer
    said: Html | None
    if facts.by_hand:
        # what was refused is what a reader must see first
        told = facts.happened("unconfirmed") or facts.happened("by_hand")
        said = both(told[-1].text if told else "")
    elif facts.ending == "aborted":
        said = say("stopped", reason=both(_mapping(answer.get("data")).get("reason", "")))
    elif answer.get("reason_message"):
        said = say("rejected", reason=both(answer["reason_message"]))
    else:
        said = face_of(facts.asked).headline(facts)
        if said is not None:
            return InBrief(_ending(facts), said, short=True)
        finding = _mapping(answer.get("execution_summary")).get("finding")
        said = both(answer.get("error_message") or finding or intent(facts))
    return InBrief(_ending(facts), said, short=False)


def _ending(facts: RunFacts) -> Html:
    if facts.ending == "none":
        if facts.by_hand:
            return say("driven_by", who=facts.by_hand)
        last = [say("last_state", state=known("state", facts.state))] if facts.state else []
        return joined(say("no_answer"), *last, between=" · ")
    code = facts.answer.get("error_code") or facts.answer.get("reason_code")
    return joined(say(facts.ending), f" ({code})" if code else "")


def _sureness(confidence: float, facts: RunFacts) -> Sureness:
    threshold = _mapping(facts.asked.get("constraints")).get("confidence_threshold")
    share = min(confidence, 1.0)
    parts = [el("rect", x=0.0, y=0.0, width=100 * share, height=10.0, fill="#00875a")]
    said: list[object] = [say("confidence", value=percent(share))]
    if isinstance(threshold, float | int):
        at = 100.0 * min(max(threshold, 0.0), 1.0)
        parts.append(el("rect", x=at - 0.4, y=0.0, width=0.8, height=10.0, fill="#1c2127"))
        said += ["; ", say("asked_confidence", value=f"{float(threshold) * 100:g} %")]
    bar = el("svg", *parts, viewBox="0 0 100 10", preserveAspectRatio="none", role="img")
    return Sureness(bar, joined(*said))


def _whys(facts: RunFacts) -> Iterator[tuple[str, Html]]:
    answer = facts.answer
    details = _mapping(answer.get("error_details"))
    message = answer.get("error_message")
    if message:
        phase = known("phase", str(details.get("phase")))
        where = say("failed_in", phase=phase, step=details.get("step"))
        if face_of(facts.asked).headline(facts) is None:
            yield "where", where
        else:
            yield "reason", joined(both(message), " ", where)
    if answer.get("suggestion"):
        yield "suggestion", both(answer["suggestion"])


def _made_safe(facts: RunFacts) -> str:
    done = facts.happened("verified")
    acts = (*facts.happened("make_safe"), *facts.happened("trip"))
    if not done or (acts and acts[-1].at_s > done[-1].at_s):
        return "safe_unknown"
    return "safe_no" if ";" in done[-1].text else "safe_yes"


def _glance(facts: RunFacts) -> Iterator[tuple[Html, object]]:
    if facts.accepted or facts.by_hand:
        yield say("duration"), clock(took_s(facts.answer, facts.duration_s))
    risk = facts.accepted.get("risk_level") or facts.answer.get("assessed_risk_level")
    if risk:
        yield say("risk"), risk
    if facts.steps:
        done = sum(each.status == "COMPLETED" for each in facts.steps)
        yield say("steps_done"), say("of", count=done, total=len(facts.steps))
    if facts.steps or facts.by_hand:
        yield say("trips"), len(facts.happened("trip"))
        yield say("warnings"), len(facts.happened("warning"))
    doubtful = sum(count for name, count in facts.commands.items() if name not in QUIET)
    if doubtful:
        yield say("unconfirmed_commands"), el("span", doubtful, class_="alarm")
    if facts.happened("by_hand"):
        yield say("hand_acts"), len(facts.happened("by_hand"))


def intent(facts: RunFacts) -> str:
    """Return the purpose of the run, or the person who drove the line."""
    found = facts.asked.get("intent") or facts.by_hand or facts.header.get("session_id", "")
    return str(found)


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
