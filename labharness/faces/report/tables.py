"""The tables under the charts: extremes beside their limits, phases, and what would follow."""

from collections.abc import Iterator, Sequence

from labharness.core.vocabulary.channels import owner_of
from labharness.faces.report.comm_loss import comm_loss
from labharness.faces.report.facts import Phase, RecordedPrediction, RunFacts
from labharness.faces.report.html import Html, el, joined, table
from labharness.faces.report.quantities import acting, quantities, unit_text
from labharness.faces.report.svg import clock, exact, number
from labharness.faces.report.words import both, cell, known, say
from labharness.work.desk.rules_record import Bar

__all__ = ["extremes", "phase_table"]


def extremes(facts: RunFacts) -> Html:
    """Tabulate the lowest and highest reading of each charted channel, beside its limits."""
    rows = []
    for each in quantities(facts):
        unit = unit_text(each.unit)
        for channel in each.measured:
            values = [value for _, value in facts.traces[channel] if value == value]  # not NaN
            if not values:
                continue
            owner = owner_of(channel)
            settable = [bar for bar in each.settable if owner_of(bar.channel) == owner]
            watched = [bar for bar in each.watched if bar.channel == channel]
            settings = ", ".join(f"{exact(bar.value)} {unit}" for bar in settable) or "–"
            sources = dict.fromkeys(bar.source for bar in (*settable, *watched))
            rows.append(
                el(
                    "tr",
                    cell("channel", channel, class_="name"),
                    cell("lowest", f"{number(min(values))} {unit}", class_="time"),
                    cell("highest", f"{number(max(values))} {unit}", class_="time"),
                    cell("settable", settings, class_="time"),
                    cell("trips_at", *_trips(watched, unit), class_="time"),
                    cell("source", "; ".join(sources), class_="said source"),
                )
            )
    keys = ("channel", "lowest", "highest", "settable", "trips_at", "source")
    return table(map(say, keys), rows, class_="cards") if rows else Html("")


def _trips(watched: Sequence[Bar], unit: str) -> Iterator[Html]:
    """Name what acts first, then what would come after it."""
    first = acting(watched)
    later = [bar for bar in watched if bar.trips and bar not in first]
    warns = [bar for bar in watched if not bar.trips]
    for bars, word in ((first, "first" if later else ""), (later, "later"), (warns, "warns_only")):
        for bar in bars:
            value = joined("< " if bar.below else "", f"{exact(bar.value)} {unit}")
            shown = el("b", value) if bars is first else value
            yield el("div", shown, " ", say(word) if word else "")
    if not watched:
        yield Html("–")


def phase_table(facts: RunFacts) -> Html:
    """Tabulate the phases under the numbers of the charts, beside what pre-flight expected."""
    prediction = facts.prediction
    rows = []
    follows: list[Html] = []
    for index, each in enumerate(facts.phases, 1):
        cells = [
            el("td", str(index), class_="number"),
            el("td", known("phase", each.name)),
            el("td", clock(each.start_s), class_="time"),
            el("td", clock(each.end_s - each.start_s), class_="time"),
        ]
        names = [step.name for step in facts.steps if step.phase == each.name]
        if prediction is not None and names:
            expected = sum(prediction.took_s.get(name, 0.0) for name in names)
            cells.append(el("td", clock(expected), class_="time"))
            follows += _follows(each, prediction, names[-1])
        rows.append(el("tr", *cells))
    if not rows:
        return Html("")
    heads = ["", say("phase"), say("start"), say("took")]
    if prediction is None:
        return table(heads, rows, class_="slim")
    known_hardware = el(
        "p", say("killed_hardware", rows="; ".join(prediction.hardware)), class_="note"
    )
    return joined(
        table([*heads, say("expected")], rows, class_="slim"),
        el("h3", say("if_killed")),
        el("dl", *follows, class_="facts small"),
        known_hardware if prediction.hardware else "",
    )


def _follows(phase: Phase, prediction: RecordedPrediction, last: str) -> Iterator[Html]:
    """Return what a person must know of a phase's end, then what it is made of."""
    parts = []
    if last in prediction.stays:  # a journal of an older version has the channels alone
        sentences = comm_loss(prediction.stays[last], prediction.hardware, unit_text)
        for key, fields in sentences:
            loud = ".hold" in key or ".unknown" in key
            alarming = loud and not key.startswith("killed.flows")
            parts.append(el("div", say(key, **fields), class_="alarm" if alarming else None))
    killed = prediction.if_killed.get(last, ())
    if killed:
        parts.append(el("div", say("killed_channels", rows=_does(killed)), class_="note"))
    yield el("dt", known("phase", phase.name))
    yield el("dd", *(parts or [Html("–")]), class_="said")


def _does(killed: Sequence[str]) -> Html:
    """List channels and what each does, in the page's words where they are the drivers'."""
    parts: list[object] = []
    for each in killed:
        parts += ["; " if parts else "", both(each)]
    return joined(*parts)
