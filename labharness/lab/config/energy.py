"""Lists the energy sources of a line, from its drivers and its envelope's contacts."""

from collections.abc import Iterator
from dataclasses import replace

from labharness.core.vocabulary.units import CELSIUS, TEMPERATURES, temperature_in
from labharness.instruments.driver import Adds
from labharness.lab.config.harm import is_harmless
from labharness.lab.config.lab_plan import LabPlan
from labharness.line import Instrument
from labharness.work.desk import EnergySource


def energy_sources(plan: LabPlan) -> tuple[EnergySource, ...]:
    """Return each energy source of a line; one without a description counts as the gravest."""
    return (*_instruments(plan), *_relays(plan))


def _instruments(plan: LabPlan) -> Iterator[EnergySource]:
    for each in plan.instruments:
        fed = {
            contact.channel: contact.off
            for contact in plan.contacts
            if each.name in contact.feeds and contact.off is not None
        }
        unknown = each.driver.off is None
        for off in each.driver.off or ():
            own = {f"{each.name}.{channel}": value for channel, value in off.steps}
            found = _source(plan, each, off.adds, off.gas, fed, own)
            yield replace(found, harmless=is_harmless(each, off, plan.envelope.limits))
        settable = any(spec.settable for spec in each.driver.channels.values())
        if unknown and settable:
            for adds in (Adds.HEAT, Adds.GAS):
                gas = f"whatever {each.name} lets in" if adds is Adds.GAS else ""
                yield _source(plan, each, adds, gas, fed, {})


def _source(
    plan: LabPlan,
    instrument: Instrument,
    adds: Adds,
    gas: str,
    fed: dict[str, float],
    own: dict[str, float],
) -> EnergySource:
    """Sort an instrument's channels into switches, targets, and channels without a bound."""
    driver = instrument.driver
    status = None if driver.programmer is None else driver.programmer.status
    reset = 0.0 if driver.programmer is None else driver.programmer.reset
    switches, powers, targets = dict(fed), dict[str, float](), dict[str, float]()
    for name, spec in driver.channels.items():
        channel = f"{instrument.name}.{name}"
        limit = plan.envelope.limits.get(channel)
        if not spec.settable or limit is None or spec.wired:
            continue
        if channel in own:
            (powers if spec.unit else switches)[channel] = own[channel]
        elif adds is Adds.HEAT and spec.unit in TEMPERATURES:
            targets[channel] = temperature_in(CELSIUS, limit.high, spec.unit)
        elif "/" not in spec.unit and spec.unit != "ms":  # rates and watchdogs add nothing
            powers[channel] = reset if name == status else 0.0
    shown = {
        f"{instrument.name}.{name}": spec.unit
        for name, spec in driver.channels.items()
        if adds is Adds.HEAT and spec.unit in TEMPERATURES and not spec.settable
    }
    return EnergySource(
        name=instrument.name,
        adds=adds,
        gas=gas,
        switches=switches,
        powers=powers,
        targets=targets,
        shown=shown,
    )


def _relays(plan: LabPlan) -> Iterator[EnergySource]:
    """Return the relays that add energy by themselves, and those without a row."""
    described = {each.channel for each in plan.contacts}
    for contact in plan.contacts:
        if contact.adds is not None and contact.off is not None:
            gas = f"whatever {contact.channel} lets in" if contact.adds is Adds.GAS else ""
            off = {contact.channel: contact.off}
            yield EnergySource(name=contact.channel, adds=contact.adds, gas=gas, switches=off)
    for each in plan.instruments:
        for name, spec in each.driver.channels.items():
            channel = f"{each.name}.{name}"
            if spec.wired and spec.settable and channel not in described:
                gas = f"whatever {channel} lets in"
                off = {channel: 0.0}
                yield EnergySource(name=channel, adds=Adds.GAS, gas=gas, switches=off)
                yield EnergySource(name=channel, adds=Adds.HEAT, switches=off)
