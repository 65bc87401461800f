"""Quantities that share a chart: all channels of one unit, with their limits."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from labharness.core.vocabulary.channels import owner_of
from labharness.faces.report.facts import RunFacts
from labharness.faces.report.markup import COLOURS
from labharness.faces.report.words import phrase
from labharness.work.desk.rules_record import Bar

UNITS: Final = {"degC": "°C", "degC/min": "°C/min", "degF": "°F", "um": "µm"}
FIRST: Final = ("degC", "K", "degF", "sccm", "Torr")


@dataclass(frozen=True, slots=True)
class ChartedQuantity:
    """All channels of one unit: measured, set, and their limits.

    Attributes:
        settable: The limits of settings, by instrument.
        watched: The limits that trip or warn when they are passed.
    """

    unit: str
    measured: tuple[str, ...]
    set: tuple[str, ...]
    settable: tuple[Bar, ...]
    watched: tuple[Bar, ...]

    @property
    def owners(self) -> tuple[str, ...]:
        """The instruments that measure it, in order."""
        return tuple(dict.fromkeys(owner_of(each) for each in self.measured))

    def colour_index(self, channel: str) -> int | None:
        """Return the colour of a channel's instrument; None where it measures nothing of this."""
        owner = owner_of(channel)
        return self.owners.index(owner) % len(COLOURS) if owner in self.owners else None

    def colour(self, channel: str) -> str:
        """Return its colour in CSS; grey where there is none."""
        index = self.colour_index(channel)
        return "#555" if index is None else COLOURS[index]


def unit_text(unit: str) -> str:
    """Return a unit as people write it."""
    return UNITS.get(unit, unit)


def quantity_key(unit: str) -> str:
    """Return the key of the name of the quantity that has a unit."""
    key = f"quantity.{unit}"
    return key if phrase(key) else "quantity.other"


def quantities(facts: RunFacts) -> list[ChartedQuantity]:
    """Return each quantity that is measured and can trip the line, in the order of the page."""
    rules = facts.rules
    shown = set(rules.setpoints.values()) | {each for each in rules.units if _is_set(each)}
    found = []
    for unit in dict.fromkeys((*FIRST, *rules.units.values())):
        bars = tuple(bar for bar in rules.bars if bar.unit == unit)
        measured = tuple(
            channel
            for channel, its in rules.units.items()
            if its == unit and channel not in shown and channel in facts.traces
        )
        can_set = {bar.channel for bar in bars}
        asked = (shows for channel, shows in rules.setpoints.items() if channel in can_set)
        held = (each for each, its in rules.units.items() if its == unit and _is_set(each))
        set_ = tuple(each for each in dict.fromkeys((*asked, *held)) if each in facts.traces)
        settable = tuple(bar for bar in bars if bar.channel in rules.setpoints)
        watched = tuple(bar for bar in bars if bar.channel not in rules.setpoints)
        if unit and measured and any(bar.channel in rules.units for bar in bars):
            found.append(ChartedQuantity(unit, measured, set_, settable, watched))
    return found


def _is_set(channel: str) -> bool:
    """Return whether a channel is read but nothing that is measured, as a setpoint that ramps."""
    return channel.endswith("setpoint")


def acting(bars: Iterable[Bar]) -> list[Bar]:
    """Return of each channel's trips the one on either side that a reading passes first."""
    first: dict[tuple[str, bool], Bar] = {}
    for bar in bars:
        at = bar.channel, bar.below
        if bar.trips and (at not in first or (bar.value < first[at].value) != bar.below):
            first[at] = bar
    return list(first.values())
