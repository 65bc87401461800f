"""The top of a report: how the run ended, how sure that is, why, and what a glance needs."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from labharness.faces.report.answer_face import face_of, percent
from labharness.faces.report.facts import RunFacts, took_s
from labharness.faces.report.html import Html, el, joined
from labharness.faces.report.svg import clock
from labharness.faces.report.words import both, known, say

__all__ = ["in_brief", "intent", "verdict"]

QUIET: Final = {"confirmed", "unconfirmed"}
"""Endings of commands that leave no doubt; the latter's channels have nothing to read back."""


def verdict(facts: RunFacts) -> Html:
    """Return the box at the top."""
    parts, face = in_brief(facts), face_of(facts.asked)
    confidence = face.confidence(facts)
    if isinstance(confidence, float | int) and confidence > 0:
        parts.append(_sureness(float(confidence), facts))
    parts += [*face.beneath(facts), *_whys(facts), _glance(facts)]
    if facts.answer and not facts.answer_chained:
        parts.append(el("p", say("unchained"), class_="alarm"))
    seed = facts.header.get("seed")
    if seed is not None:
        parts.append(el("p", say("simulated", seed=seed), class_="simulated"))
    head = el("h1", say("title"), " · ", intent(facts))
    return joined(head, el("div", *parts, class_=f"verdict {facts.ending}"), Html("\n"))


def in_brief(facts: RunFacts) -> list[Html]:
    """Return how a run ended, and what came of it."""
    return [el("div", _ending(facts), class_="ending"), _headline(facts)]


def _ending(facts: RunFacts) -> Html:
    code = facts.answer.get("error_code") or facts.answer.get("reason_code")
    if facts.ending == "none" and facts.by_hand:
        return say("driven_by", who=facts.by_hand)
    ending = say("no_answer" if facts.ending == "none" else facts.ending)
    if facts.ending == "none" and facts.state:
        ending = joined(ending, " · ", say("last_state", state=known("state", facts.state)))
    return joined(ending, f" ({code})") if code else ending


def _headline(facts: RunFacts) -> Html:
    answer = facts.answer
    if facts.by_hand:
        # what was refused is what a reader must see first
        told = facts.happened("unconfirmed") or facts.happened("by_hand")
        return el("div", both(told[-1].text) if told else "", class_="big long")
    if facts.ending == "aborted":
        reason = both(_mapping(answer.get("data")).get("reason", ""))
        return el("div", say("stopped", reason=reason), class_="big long")
    if answer.get("reason_message"):
        rejected = say("rejected", reason=both(answer["reason_message"]))
        return el("div", rejected, class_="big long")
    said = face_of(facts.asked).headline(facts)
    if said is not None:
        return el("div", said, class_="big")
    if answer.get("error_message"):
        return el("div", both(answer["error_message"]), class_="big long")
    return el("div", intent(facts), class_="big long")


def _sureness(confidence: float, facts: RunFacts) -> Html:
    threshold = _mapping(facts.asked.get("constraints")).get("confidence_threshold")
    share = min(max(confidence, 0.0), 1.0)
    parts = [el("rect", x=0.0, y=0.0, width=100 * share, height=10.0, fill="#00875a")]
    said: list[object] = [say("confidence", value=percent(share))]
    if isinstance(threshold, float | int):
        at = 100.0 * min(max(threshold, 0.0), 1.0)
        parts.append(el("rect", x=at - 0.4, y=0.0, width=0.8, height=10.0, fill="#1c2127"))
        said += ["; ", say("asked_confidence", value=f"{float(threshold) * 100:g} %")]
    bar = el("svg", *parts, viewBox="0 0 100 10", preserveAspectRatio="none", role="img")
    return joined(el("div", bar, class_="sure"), el("div", *said))


def _whys(facts: RunFacts) -> Iterable[Html]:
    answer = facts.answer
    details = _mapping(answer.get("error_details"))
    message = answer.get("error_message")
    if message:
        where = say(
            "failed_in", phase=known("phase", str(details.get("phase"))), step=details.get("step")
        )
        if face_of(facts.asked).headline(facts) is not None:
            yield el("p", el("b", say("reason")), ": ", both(message), " ", where)
        else:
            yield el("p", el("b", say("where")), ": ", where)
    if answer.get("suggestion"):
        yield el("p", el("b", say("suggestion")), ": ", both(answer["suggestion"]))
    if facts.ending not in ("task_completed", "task_rejected"):
        yield _made_safe(facts)


def _made_safe(facts: RunFacts) -> Html:
    done = facts.happened("verified")
    acts = (*facts.happened("make_safe"), *facts.happened("trip"))
    if not done or (acts and acts[-1].at_s > done[-1].at_s):
        return el("p", say("safe_unknown"), class_="alarm")
    if ";" in done[-1].text:
        return el("p", say("safe_no"), class_="alarm")
    return el("p", say("safe_yes"))


def _glance(facts: RunFacts) -> Html:
    rows = list(face_of(facts.asked).glance(facts))
    if facts.accepted or facts.by_hand:
        rows.append((say("duration"), clock(took_s(facts.answer, facts.duration_s))))
    risk = facts.accepted.get("risk_level") or facts.answer.get("assessed_risk_level")
    if risk:
        rows.append((say("risk"), risk))
    if facts.steps:
        done = sum(each.status == "COMPLETED" for each in facts.steps)
        rows.append((say("steps_done"), say("of", count=done, total=len(facts.steps))))
    if facts.steps or facts.by_hand:
        rows.append((say("trips"), len(facts.happened("trip"))))
        rows.append((say("warnings"), len(facts.happened("warning"))))
    unconfirmed_commands = sum(count for name, count in facts.commands.items() if name not in QUIET)
    if unconfirmed_commands:
        rows.append((say("unconfirmed_commands"), el("span", unconfirmed_commands, class_="alarm")))
    if facts.happened("by_hand"):
        rows.append((say("hand_acts"), len(facts.happened("by_hand"))))
    cells = [el("div", el("dt", name), el("dd", value)) for name, value in rows]
    return el("dl", *cells, class_="glance") if cells else Html("")


def intent(facts: RunFacts) -> str:
    """Return what the run was for, or who drove the line."""
    found = facts.asked.get("intent") or facts.by_hand or facts.header.get("session_id", "")
    return str(found)


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
