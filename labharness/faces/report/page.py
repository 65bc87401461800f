"""The report of one run as one page: its top, its charts, and the tables under them."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from labharness.core.vocabulary.channels import owner_of
from labharness.faces.report.answer_face import data, face_of, percent
from labharness.faces.report.comm_loss import comm_loss
from labharness.faces.report.document import document
from labharness.faces.report.facts import QUIET, Phase, RunFacts, as_mapping, took_s
from labharness.faces.report.markup import Html, clock, el, exact, joined, number
from labharness.faces.report.quantities import acting, quantities, unit_text
from labharness.faces.report.traces import charts, key_samples, prediction_text
from labharness.faces.report.words import both, known, phrase, plain, say
from labharness.work.desk.rules_record import Bar

Trip = tuple[str, bool, str]
"""A value at which a channel trips or warns, whether it acts first, and the key of a remark."""

Extremes = tuple[str, str, str, str, list[Trip], str]
"""A channel, its lowest and highest reading, what may be set, its trips, and their sources."""

Follows = tuple[str, list[tuple[Html, bool]], Html]
"""A phase, sentences, each with whether it is alarming, and each channel with its new state."""


def extremes(facts: RunFacts) -> Iterator[Extremes]:
    """Return the extremes of each charted channel, beside its limits."""
    for each in quantities(facts):
        unit = unit_text(each.unit)
        for channel in each.measured:
            values = [value for _, value in facts.traces[channel] if value == value]  # not NaN
            if not values:
                continue
            owner = owner_of(channel)
            settable = [bar for bar in each.settable if owner_of(bar.channel) == owner]
            watched = [bar for bar in each.watched if bar.channel == channel]
            sources = dict.fromkeys(bar.source for bar in (*settable, *watched))
            yield (
                channel,
                f"{number(min(values))} {unit}",
                f"{number(max(values))} {unit}",
                ", ".join(f"{exact(bar.value)} {unit}" for bar in settable) or "–",
                list(_trips(watched, unit)),
                "; ".join(sources),
            )


def _trips(watched: Sequence[Bar], unit: str) -> Iterator[Trip]:
    """Return the bounds that act first, then those after them, then warnings."""
    first = acting(watched)
    later = [bar for bar in watched if bar.trips and bar not in first]
    warns = [bar for bar in watched if not bar.trips]
    for bars, word in ((first, "first" if later else ""), (later, "later"), (warns, "warns_only")):
        for bar in bars:
            value = f"{'< ' if bar.below else ''}{exact(bar.value)} {unit}"
            yield value, bars is first, word


def phase_rows(facts: RunFacts) -> Iterator[tuple[Phase, float | None]]:
    """Return each phase, and its duration in s that pre-flight expected."""
    for each in facts.phases:
        names = _steps_of(each, facts)
        if facts.prediction is None or not names:
            yield each, None
        else:
            yield each, sum(facts.prediction.took_s.get(name, 0.0) for name in names)


def follows(facts: RunFacts) -> Iterator[Follows]:
    """Return for each phase what a loss of communication at its end leads to."""
    prediction = facts.prediction
    if prediction is None:
        return
    for each in facts.phases:
        names = _steps_of(each, facts)
        if not names:
            continue
        sentences = []
        if names[-1] in prediction.stays:  # a journal of an older version has the channels alone
            stays = prediction.stays[names[-1]]
            for key, fields in comm_loss(stays, prediction.hardware, unit_text):
                loud = ".hold" in key or ".unknown" in key
                alarming = loud and not key.startswith("killed.flows")
                sentences.append((say(key, **fields), alarming))
        rows = prediction.if_killed.get(names[-1], ())
        yield each.name, sentences, joined(*map(both, rows), between="; ")


def _steps_of(phase: Phase, facts: RunFacts) -> list[str]:
    return [step.name for step in facts.steps if step.phase == phase.name]


RUN_DIGITS: Final = 8

Masthead = tuple[list[str], str]
"""Date and lab, where they are recorded, and the begin of the run's id."""

InBrief = tuple[Html, Html, bool]
"""The ending of a run, its answer or the reason why there is none, and whether that is short."""


def masthead(facts: RunFacts) -> Masthead:
    """Return when and in which lab a run was, and its id."""
    at = str(facts.about.get("at") or facts.header.get("epoch", ""))[:16].replace("T", " ")
    lab = str(facts.about.get("lab") or facts.about.get("lab_file") or "")
    parts = (f"{at} UTC" if at else "", lab)
    run = str(facts.header.get("session_id") or "")[:RUN_DIGITS]
    return [each for each in parts if each], run


def conditions(facts: RunFacts) -> list[tuple[str, object]]:
    """Return key and value of each condition; none where the outputs have another shape."""
    try:
        return list(face_of(facts.asked).conditions(facts))
    except (KeyError, IndexError, TypeError, ValueError):
        return []


def in_brief(facts: RunFacts) -> InBrief:
    """Return how a run ended, and its answer."""
    answer = facts.answer
    said: Html | None
    if facts.by_hand:
        # what was refused is what a reader must see first
        told = facts.happened("unconfirmed") or facts.happened("by_hand")
        said = both(told[-1].text if told else "")
    elif facts.ending == "aborted":
        said = say("stopped", reason=both(as_mapping(answer.get("data")).get("reason", "")))
    elif answer.get("reason_message"):
        said = say("rejected", reason=both(answer["reason_message"]))
    else:
        said = face_of(facts.asked).headline(facts)
        if said is not None:
            return _ending(facts), said, True
        finding = as_mapping(answer.get("execution_summary")).get("finding")
        said = both(answer.get("error_message") or finding or intent(facts))
    return _ending(facts), said, False


def _ending(facts: RunFacts) -> Html:
    if facts.ending == "none":
        if facts.by_hand:
            return say("driven_by", who=facts.by_hand)
        last = [say("last_state", state=known("state", facts.state))] if facts.state else []
        return joined(say("no_answer"), *last, between=" · ")
    code = facts.answer.get("error_code") or facts.answer.get("reason_code")
    return joined(say(facts.ending), f" ({code})" if code else "")


def _sureness(confidence: object, facts: RunFacts) -> tuple[Html, Html] | None:
    """Return the confidence as a bar and as a sentence; None where there is none."""
    if not (isinstance(confidence, float | int) and confidence > 0):
        return None
    threshold = as_mapping(facts.asked.get("constraints")).get("confidence_threshold")
    share = min(confidence, 1.0)
    parts = [el("rect", x=0.0, y=0.0, width=100 * share, height=10.0, fill="#00875a")]
    said: list[object] = [say("confidence", value=percent(share))]
    if isinstance(threshold, float | int):
        at = 100.0 * min(max(threshold, 0.0), 1.0)
        parts.append(el("rect", x=at - 0.4, y=0.0, width=0.8, height=10.0, fill="#1c2127"))
        said += ["; ", say("asked_confidence", value=f"{float(threshold) * 100:g} %")]
    bar = el("svg", *parts, viewBox="0 0 100 10", preserveAspectRatio="none", role="img")
    return bar, joined(*said)


def _whys(facts: RunFacts) -> Iterator[tuple[str, Html]]:
    answer = facts.answer
    details = as_mapping(answer.get("error_details"))
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
    face = face_of(facts.asked)
    settled = facts.ending in ("task_completed", "task_rejected")
    return document(
        "page.html.j2",
        f"{plain('title', language)}: {intent(facts)}",
        language,
        run=facts,
        about=masthead(facts),
        intent=intent(facts),
        brief=in_brief(facts),
        sureness=_sureness(face.confidence(facts), facts),
        beneath=face.beneath(facts),
        whys=_whys(facts),
        safe="" if settled else _made_safe(facts),
        glance=[*face.glance(facts), *_glance(facts)],
        conditions=conditions(facts),
        asked=_asked(facts),
        **(_traces(facts) if facts.plan else {}),
        sections=face.sections(facts),
        events_max=EVENTS_MAX,
        commands=list(_commands(facts)) if facts.commands else (),
        provenance=_provenance(facts),
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
