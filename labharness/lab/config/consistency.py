"""Checks whether a lab's files agree with each other; every fault is one sentence."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from labharness.core.files.tables import every_text
from labharness.core.vocabulary import OPERATOR
from labharness.core.vocabulary.channels import split_channel
from labharness.core.vocabulary.texts import Text
from labharness.core.vocabulary.units import TEMPERATURES, incomparable, temperature_in
from labharness.instruments.driver import Channel, Cools
from labharness.lab.config.envelopes import KindLimits, LineFile
from labharness.lab.config.wires import answer_s, scanned
from labharness.line import Contact, Instrument
from labharness.line.instrument import channel_of
from labharness.safety.kernel import Bound, Envelope, Role


def addresses(instruments: Sequence[Instrument]) -> Iterator[str]:
    """Name two instruments of one port that would both answer, settings left out included."""
    seen: dict[str, dict[object, str]] = {}
    for each in instruments:
        address = getattr(each.driver, "unit", getattr(each.driver, "address", None))
        others = seen.setdefault(each.port, {})
        if address in others or (others and (address is None or None in others)):
            other = others.get(address) or next(iter(others.values()))
            both = Text("agree.address", other=other, name=each.name, port=each.port)
            why = Text("agree.no_address") if address is None or None in others else f"{address!r}"
            yield Text("pair", what=both, why=why)
        others[address] = each.name


def channels_of(instruments: Sequence[Instrument]) -> dict[str, Channel]:
    """Return every channel of a line, by its full name, as its driver declares it."""
    return {
        f"{each.name}.{channel}": spec
        for each in instruments
        for channel, spec in each.driver.channels.items()
    }


def missing_limits(
    line: LineFile, instruments: Sequence[Instrument], kinds: Mapping[str, KindLimits]
) -> Iterator[str]:
    """Name each channel that can be set but has no limit, with the row to paste."""
    rows = {row.channel for row in line.limit}
    for each in instruments:
        for channel, spec in each.driver.channels.items():
            if spec.settable and f"{each.name}.{channel}" not in rows:
                own = kinds[each.name].limits.get(channel)
                low, high = ("LOW", "HIGH") if own is None else (f"{own.low:g}", f"{own.high:g}")
                row = (
                    f'channel = "{each.name}.{channel}", unit = "{spec.unit}", low = {low}, '
                    f'high = {high}, source = "WHY"'
                )
                yield Text("agree.no_limit", name=each.name, channel=channel, row=row)


def missing_watches(line: LineFile, instruments: Sequence[Instrument]) -> Iterator[str]:
    """Name each reading that a rule needs and no plausibility row watches, with the missing row."""
    rules = ("trip", "plausible", "ambient", "purge", "opening")
    named = set(every_text(line.model_dump(include={*rules})))
    named |= set(every_text([row.model_dump(exclude={"guards"}) for row in line.interlock]))
    named -= {row.channel for row in line.watch}
    for channel, each, scan in scanned(instruments):
        period_s = (each.polls or {}).get(scan.name, scan.period_s)
        if channel in named and period_s is not None:
            stale_s = math.ceil(2 * answer_s(period_s, scan.request)) / 2
            yield Text("agree.unwatched", channel=channel, stale_s=stale_s)


def unknown_procedure_channels(line: LineFile, instruments: Sequence[Instrument]) -> Iterator[str]:
    """Name the channels that a procedure sets and no instrument has."""
    by_name = {each.name: each for each in instruments}
    for name, row in line.procedures.items():
        for channel, *_ in row.steps:
            try:
                channel_of(by_name, channel)
            except LookupError as why:
                yield Text("agree.step", name=name, channel=channel, why=str(why))


def wiring(line: LineFile, instruments: Sequence[Instrument]) -> Iterator[str]:
    """Return the faults in the rows of relays and of temperatures."""
    by_name = {each.name: each for each in instruments}
    seen: set[str] = set()
    for row in line.contact:
        who = Text("agree.contact", channel=row.channel)
        try:
            instrument, channel, _ = channel_of(by_name, row.channel)
            instrument.driver.settable(channel)
        except (LookupError, ValueError) as why:
            yield Text("pair", what=who, why=str(why))
        if row.channel in seen:
            yield Text("agree.twice", who=who)
        seen.add(row.channel)
        for fed in row.feeds:
            if fed not in by_name or not by_name[fed].driver.off:
                able = ", ".join(each.name for each in instruments if each.driver.off)
                yield Text("agree.feeds", who=who, fed=fed, able=able or "none")
    known = _declared(instruments)
    for cools in line.cooling:
        if cools.channel not in known:
            said = ", ".join(known) or "none"
            yield Text("agree.cooling", channel=cools.channel, said=said)


def units(envelope: Envelope, instruments: Sequence[Instrument]) -> Iterator[str]:
    """Name the rows on channels that are not read, not set at arming, or in another unit."""
    read = {channel for channel, *_ in scanned(instruments)}
    for channel in envelope.watches:
        if channel not in read:
            yield Text("agree.watch", channel=channel)
    known = {channel: spec.unit for channel, spec in channels_of(instruments).items()}
    rows = [
        (f"limit {name}", name, limit.unit)
        for name, limit in envelope.limits.items()
        if not name.startswith(f"{OPERATOR}.")
    ]
    rows += [(f"trip {row.name!r}", row.channel, row.unit) for row in envelope.trips]
    for what, channel, unit in rows:
        if known.get(channel) != unit:
            yield Text(
                "agree.unit", what=what, channel=channel, known=known.get(channel), unit=unit
            )
    for each in instruments:
        for channel, spec in each.driver.channels.items():
            if incomparable(channel, spec.unit):
                name, allowed = f"{each.name}.{channel}", ", ".join(TEMPERATURES)
                yield Text("agree.temperature", channel=name, unit=spec.unit, allowed=allowed)
        for channel, value in each.prepare:
            name = f"{each.name}.{channel}"
            limit = envelope.limits.get(name)
            if limit is None or limit.role is not Role.PREPARE or not math.isfinite(value):
                yield Text("agree.prepare", name=name, value=value)


def ineffective_bounds(envelope: Envelope, instruments: Sequence[Instrument]) -> Iterator[str]:
    """Name each bound that a reading never meets, or always meets."""
    shows = {channel: spec.shows for channel, spec in channels_of(instruments).items()}
    for who, bound in _asked(envelope):
        name, said = bound.channel, str(bound)
        low, high = shows.get(name, (-math.inf, math.inf))
        never = bound.low > high or bound.high < low
        if never or (math.isfinite(low) and bound.low <= low and high <= bound.high):
            so = "never" if never else "always"
            yield Text("agree.never", who=who, bound=said, so=so, channel=name, low=low, high=high)


def _rows(envelope: Envelope) -> Iterator[tuple[str, Iterable[object]]]:
    for lock in envelope.interlocks:
        yield f"interlock {lock.name!r}", (*lock.require, *lock.forbid, lock.during)
    for plausible in envelope.plausible:
        yield f"plausible {plausible.name!r}", (*plausible.during, plausible.expects)
    for limit in envelope.limits.values():
        yield f"limit {limit.channel}: foreign_while", (limit.foreign_while,)
    for procedure in envelope.procedures.values():
        yield f"procedure {procedure.name!r}", (*procedure.when, procedure.unless)
    yield from ((f"purge: {name}", states) for name, states in envelope.purge.present.items())
    if envelope.purge.leak_check:
        yield "the leak check", envelope.purge.leak_check.isolated


def _asked(envelope: Envelope) -> Iterator[tuple[str, Bound]]:
    """Return every bound on a reading with the row that states it."""
    for who, bounds in _rows(envelope):
        yield from ((who, each) for each in bounds if isinstance(each, Bound))
    for trip in envelope.trips:
        yield f"trip {trip.name!r}", Bound(trip.channel, trip.low, trip.high)


def contacts(line: LineFile) -> tuple[Contact, ...]:
    """Return the contacts: the channels that the relays of a line feed."""
    return tuple(Contact(**row.model_dump()) for row in line.contact)


def cooling(line: LineFile, instruments: Sequence[Instrument]) -> dict[str, Cools]:
    """Return the cooling of each temperature without heat, by its driver or a row of the line."""
    found, specs = _declared(instruments), channels_of(instruments)
    for row in line.cooling:
        own = split_channel(row.channel)[1]
        found[row.channel] = Cools(channel=own, **row.model_dump(exclude={"channel", "source"}))
    return {name: replace(row, unit=specs[name].unit) for name, row in found.items()}


def cold(line: LineFile, instruments: Sequence[Instrument]) -> dict[str, float]:
    """Return for each temperature that a line watches, in its own unit, below what it is cold."""
    row, specs = line.cold, channels_of(instruments)
    watched = [(each.channel, specs[each.channel]) for each in line.watch]
    return {
        channel: temperature_in(spec.unit, row.below, row.unit)
        for channel, spec in watched
        if spec.unit in TEMPERATURES and not spec.settable and "setpoint" not in channel
    }


def follows(line: LineFile, instruments: Sequence[Instrument]) -> dict[str, tuple[str, ...]]:
    """Return for each channel the readings in its unit that follow what it is set to."""
    pairs = [
        (setpoint, meter) for meter, setpoint in (line.purge.inert if line.purge else {}).items()
    ]
    for each in instruments:
        specs = each.driver.channels
        pairs += [
            (f"{each.name}.{drive}", f"{each.name}.{off.dark.channel}")
            for off in each.driver.off or ()
            for drive in off.drives
            if off.dark is not None and specs[drive].unit == specs[off.dark.channel].unit
        ]
    found: dict[str, tuple[str, ...]] = {}
    for setpoint, meter in dict.fromkeys(pairs):
        found[setpoint] = (*found.get(setpoint, ()), meter)
    return found


def _declared(instruments: Sequence[Instrument]) -> dict[str, Cools]:
    return {
        f"{each.name}.{off.cools.channel}": off.cools
        for each in instruments
        for off in each.driver.off or ()
        if off.cools is not None
    }
