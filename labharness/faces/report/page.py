"""The report of one run as one page."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from labharness.faces.report.answer_face import face_of
from labharness.faces.report.conditions import conditions, masthead
from labharness.faces.report.document import document, section
from labharness.faces.report.facts import RunFacts, StepRow
from labharness.faces.report.html import Html, el, joined, table
from labharness.faces.report.svg import clock
from labharness.faces.report.tables import extremes, phase_table
from labharness.faces.report.traces import charts
from labharness.faces.report.values import data
from labharness.faces.report.verdict import intent, verdict
from labharness.faces.report.words import PHRASES, both, cell, known, plain, say

__all__ = ["page"]

EVENTS_MAX: Final = 300
"""Rows of the table of events; a line that warns every second would hide what matters."""


def page(facts: RunFacts, language: str = "en") -> str:
    """Return the whole page.

    Args:
        facts: The run.
        language: Which of ``LANGUAGES`` is shown first; the page holds all.

    Raises:
        KeyError: There is no such language.
    """
    title = f"{plain('title', language)}: {intent(facts)}"
    return document(title, _sections(facts), language)


def _sections(facts: RunFacts) -> Iterable[Html]:
    yield masthead(facts)
    yield verdict(facts)
    shown = conditions(facts)
    if shown is not None:
        yield section("conditions", shown)
    if not facts.by_hand:
        yield section("asked", _asked(facts))
    if facts.plan:
        yield section("traces", charts(facts), extremes(facts), phase_table(facts))
    yield from face_of(facts.asked).sections(facts)
    if facts.steps:
        yield section("steps", _steps(facts.steps))
    if facts.happenings:
        yield section("events", _events(facts))
    yield section("instruments", _instruments(facts))
    yield section("provenance", _provenance(facts))
    yield el("footer", say("foot"), f" labharness {facts.about.get('labharness', '')}")


# ---- the sections


def _asked(facts: RunFacts) -> Html:
    asked = facts.asked
    capability = f"{asked.get('capability', '')} {asked.get('capability_version', '')}"
    rows: list[tuple[str, object]] = [
        ("intent", asked.get("intent", "")),
        ("capability", capability.strip()),
        ("caller", asked.get("caller_id", "")),
        ("inputs", data(asked.get("inputs", {}))),
        ("constraints", data(asked.get("constraints", {}))),
    ]
    if facts.plan.get("recipe"):
        rows.append(("recipe", data(facts.plan["recipe"])))
    if asked.get("context"):
        rows.append(("context", el("div", data(asked["context"]), class_="quoted")))
    if facts.approval:
        who = ", ".join(str(each) for each in facts.approval["by"])
        rows.append(("approval", f"{who}: {facts.approval['reason']}"))
    return _facts(rows)


def _steps(steps: Sequence[StepRow]) -> Html:
    rows = [
        el(
            "tr",
            el("td", index, class_="number"),
            cell("phase", known("phase", each.phase)),
            cell("description", both(each.description), class_="said"),
            cell("start", clock(each.start_s), class_="time"),
            cell("took", clock(_took(each)), class_="time"),
            cell("status", known("status", each.status)),
            class_="bad" if each.status in ("FAILED", "TIMEOUT", "RUNNING") else None,
        )
        for index, each in enumerate(steps, 1)
    ]
    heads = ["", *map(say, ("phase", "description", "start", "took", "status"))]
    return table(heads, rows, class_="cards")


def _took(step: StepRow) -> float | None:
    if step.start_s is None or step.end_s is None:
        return None
    return step.end_s - step.start_s


def _events(facts: RunFacts) -> Html:
    rows = [
        el(
            "tr",
            el("td", clock(each.at_s), class_="time"),
            el("td", known("event", each.kind)),
            el("td", both(each.text), class_="said"),
            class_="bad" if each.kind in ("trip", "error", "unconfirmed") else None,
        )
        for each in facts.happenings[:EVENTS_MAX]
    ]
    more = len(facts.happenings) - EVENTS_MAX
    said = [el("p", say("and_more", count=more))] if more > 0 else []
    if facts.commands:
        said.append(el("p", say("commands"), ": ", *_commands(facts), class_="note"))
    return joined(table([say("time"), say("kind"), say("recorded")], rows), *said)


def _commands(facts: RunFacts) -> Iterator[object]:
    """Return how the physical commands ended; whatever left doubt stands out."""
    unshown = sum(facts.unshown.values())
    confirmed = facts.commands.get("confirmed", 0)
    yield say("ending.confirmed", count=confirmed)
    if unshown:
        rows = ", ".join(f"{channel} ({count})" for channel, count in facts.unshown.items())
        yield joined("; ", say("unshown", count=unshown, rows=rows))
    for ending, count in facts.commands.items():
        left = count - unshown if ending == "unconfirmed" else count
        key = f"ending.{ending}"
        if left and ending != "confirmed":
            said = say(key, count=left) if key in PHRASES else f"{left} {ending}"
            yield joined("; ", el("span", said, class_="alarm"))


def _instruments(facts: RunFacts) -> Html:
    if not facts.instruments:
        return el("p", say("no_instruments"))
    rows = [
        el(
            "tr",
            el("td", each.name),
            el("td", each.model or say("not_stated")),
            el("td", each.firmware or say("not_stated")),
        )
        for each in facts.instruments
    ]
    return table([say("instrument"), say("model"), say("firmware")], rows)


def _provenance(facts: RunFacts) -> Html:
    header, about, chain = facts.header, facts.about, facts.chain
    key = "chain_holds" if chain.ok else "chain_broken"
    count = chain.head.seq if chain.ok else chain.first_bad_seq
    seed = header.get("seed")
    rows: list[tuple[str, object]] = [
        ("by_hand", facts.by_hand)
        if facts.by_hand
        else ("session", _digest(header.get("session_id", ""))),
        ("began", header.get("epoch", "")),
        (
            "chain",
            el(
                "span",
                say(key, count=count, reason=chain.reason),
                class_=None if chain.ok else "alarm",
            ),
        ),
        ("chain_head", _digest(chain.head.hash)),
        ("plan_digest", _digest(facts.plan.get("digest", "–"))),
        ("lab_digest", _digest(header.get("lab_digest", ""))),
        ("envelope_digest", _digest(header.get("envelope_digest", ""))),
        ("ambient_torr", header.get("ambient_torr") or say("not_stated")),
        ("versions", ", ".join(f"{name} {about.get(name)}" for name in ("labharness", "python"))),
        ("seed", say("none") if seed is None else seed),
    ]
    return joined(_facts(rows), _files(facts))


def _files(facts: RunFacts) -> Html:
    rows = [
        el(
            "tr",
            el("td", each.name),
            el("td", each.size_bytes, class_="number"),
            el("td", each.checksum, class_="digest"),
            el(
                "td",
                say("holds" if each.holds else "broken"),
                class_=None if each.holds else "alarm",
            ),
        )
        for each in facts.artifacts
    ]
    heads = [say("artifacts"), say("bytes"), say("checksum"), ""]
    return table(heads, rows) if rows else Html("")


# ---- forms


def _facts(rows: Iterable[tuple[str, object]]) -> Html:
    cells = [joined(el("dt", say(key)), el("dd", value, class_="said")) for key, value in rows]
    return el("dl", *cells, class_="facts")


def _digest(value: object) -> Html:
    return el("span", value, class_="digest")
