"""Which of what a line can add may harm somebody: for that a lab names hazards and callers."""

from collections.abc import Iterator, Mapping, Sequence

from labharness.instruments.driver import Adds, Off
from labharness.line import Contact, Instrument
from labharness.safety.kernel import Limit

__all__ = ["harmful", "is_harmless"]

EXTRA_LOW_V = 60.0
"""A direct voltage up to here is no hazard to whoever touches it in the dry (IEC 61010-1:2010,
6.3.1), and the envelope bounds what may be set."""


def harmful(
    instruments: Sequence[Instrument], contacts: Sequence[Contact], limits: Mapping[str, Limit]
) -> Iterator[str]:
    """Name each instrument and each relay that adds what may harm; what nobody describes does."""
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
