"""Names the energy sources of a line that may harm a person; they need hazards and callers."""

from collections.abc import Iterator, Mapping, Sequence

from labharness.instruments.driver import Adds, Off
from labharness.line import Contact, Instrument
from labharness.safety.kernel import Limit

EXTRA_LOW_V = 60.0
"""A direct voltage up to here is not hazardous live in normal condition and in a dry place: IEC
61010-1, clause 6.3.1, as a test house applies it to 61010-1 (N. Devine, emc-pstc list of the IEEE,
9 May 2000); the edition in force was not at hand. An alternating voltage must not be held against
this bound: its limit there is lower, 30 V r.m.s. and 42.4 V peak by common instrument manuals. The
one driver here that adds a current, the Keithley 2400, is a direct source."""


def harmful(
    instruments: Sequence[Instrument], contacts: Sequence[Contact], limits: Mapping[str, Limit]
) -> Iterator[str]:
    """Name each instrument and relay that may harm; one without a description may."""
    described = {each.channel for each in contacts}
    for each in instruments:
        settable = {name: spec for name, spec in each.driver.channels.items() if spec.settable}
        unknown = each.driver.off is None and bool(settable)
        if unknown or not all(is_harmless(each, off, limits) for off in each.driver.off or ()):
            yield each.name
        for name, spec in settable.items():
            if spec.wired and f"{each.name}.{name}" not in described:
                yield f"{each.name}.{name}"
    yield from (contact.channel for contact in contacts if contact.adds is not None)


def is_harmless(instrument: Instrument, off: Off, limits: Mapping[str, Limit]) -> bool:
    """Return whether an instrument adds an inert gas, or a current at extra-low voltage."""
    if off.adds is not Adds.CURRENT:
        return off.inert
    volts = [
        limits[channel]
        for name, spec in instrument.driver.channels.items()
        if spec.unit == "V" and (channel := f"{instrument.name}.{name}") in limits
    ]
    return bool(volts) and all(low.low >= -EXTRA_LOW_V and low.high <= EXTRA_LOW_V for low in volts)
