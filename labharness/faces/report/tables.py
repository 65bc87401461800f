"""The tables under the charts: extremes beside their limits, phases, and loss of communication."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from labharness.core.vocabulary.channels import owner_of
from labharness.faces.report.comm_loss import comm_loss
from labharness.faces.report.facts import Phase, RunFacts
from labharness.faces.report.html import Html, joined
from labharness.faces.report.quantities import acting, quantities, unit_text
from labharness.faces.report.svg import exact, number
from labharness.faces.report.words import both, say
from labharness.work.desk.rules_record import Bar


class TripCell(NamedTuple):
    """A value at which a channel trips or warns; `word` is the key of a remark."""

    value: str
    acts: bool
    word: str


class ExtremesRow(NamedTuple):
    """The lowest and highest reading of one channel beside its limits."""

    channel: str
    lowest: str
    highest: str
    settable: str
    trips: tuple[TripCell, ...]
    sources: str


class Follows(NamedTuple):
    """The consequences if everything that talks to the line died at the end of one phase.

    Attributes:
        sentences: Each with whether it is alarming.
        channels: Each channel and its new state; empty where none is recorded.
    """

    phase: str
    sentences: tuple[tuple[Html, bool], ...]
    channels: Html


def extremes(facts: RunFacts) -> Iterator[ExtremesRow]:
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
            yield ExtremesRow(
                channel,
                f"{number(min(values))} {unit}",
                f"{number(max(values))} {unit}",
                ", ".join(f"{exact(bar.value)} {unit}" for bar in settable) or "–",
                tuple(_trips(watched, unit)),
                "; ".join(sources),
            )


def _trips(watched: Sequence[Bar], unit: str) -> Iterator[TripCell]:
    """Return the bounds that act first, then those after them, then warnings."""
    first = acting(watched)
    later = [bar for bar in watched if bar.trips and bar not in first]
    warns = [bar for bar in watched if not bar.trips]
    for bars, word in ((first, "first" if later else ""), (later, "later"), (warns, "warns_only")):
        for bar in bars:
            value = f"{'< ' if bar.below else ''}{exact(bar.value)} {unit}"
            yield TripCell(value, bars is first, word)


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
        yield Follows(each.name, tuple(sentences), joined(*map(both, rows), between="; "))


def _steps_of(phase: Phase, facts: RunFacts) -> list[str]:
    return [step.name for step in facts.steps if step.phase == phase.name]
