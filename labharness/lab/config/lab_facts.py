"""Gathers the desk's facts about a lab: callers, capabilities, line, and standing approvals.

Lists the energy sources of a line, from its drivers and its envelope's contacts.

Finds rights in the callers file that can never be used.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import TypeVar

from labharness.core.vocabulary.spelling import did_you_mean
from labharness.core.vocabulary.texts import Text, several
from labharness.core.vocabulary.units import ATMOSPHERE_TORR, CELSIUS, TEMPERATURES, temperature_in
from labharness.instruments.driver import Adds
from labharness.lab.config.approvers import approvers_of
from labharness.lab.config.capability_tables import offered
from labharness.lab.config.consistency import channels_of
from labharness.lab.config.kinds import capabilities, shipped_file
from labharness.lab.config.lab_file import BadLabFile, read_text, tried
from labharness.lab.config.lab_plan import LabPlan
from labharness.lab.config.proven import (
    fed_by,
    is_harmless,
    settable_of,
    undescribed,
    way_off,
)
from labharness.line import Instrument
from labharness.work.admission.approval import public_key_of, read_approval
from labharness.work.admission.callers import Caller, read_callers
from labharness.work.capability import LineFacts, Settings
from labharness.work.desk.energised import EnergySource
from labharness.work.desk.facts import LabFacts

T = TypeVar("T")

REPOSITORY_KEY = "labs/repository.key"


def lab_facts_of(plan: LabPlan) -> LabFacts:
    """Return the desk's facts about a lab, without the flight of plans, which takes a loop.

    Raises:
        BadLabFile: The callers file or an approval cannot be honoured.
    """
    file, wrong = plan.file, list[str]()
    known, named = tried(wrong, capabilities), file.lab.callers
    settings, unfit = ({}, []) if known is None else offered(file.capability, known)
    wrong += unfit
    callers = None if named is None else tried(wrong, _read, plan, named, read_callers)
    there = [path for path in file.lab.approvals if plan.beside(path).exists()]
    approvals = [tried(wrong, _read, plan, path, read_approval) for path in there]
    tried(wrong, approvers_of, plan)  # read where persons are asked; told with the others
    if wrong:
        raise BadLabFile("pair", what=str(plan.path.parent), why=several(*wrong))
    specs = channels_of(plan.instruments)
    return LabFacts(
        lab_digest=plan.lab_digest,
        envelope_digest=plan.envelope_digest,
        link_kinds=plan.links,
        attended=file.lab.attended,
        shared=file.lab.shared,
        safeguards_missing=plan.hazards.missing,
        sources=energy_sources(plan),
        on_comm_loss={channel: spec.on_comm_loss for channel, spec in specs.items()},
        callers=callers,
        capabilities={name: (known or {})[name] for name in settings},
        approvals=tuple(each for each in approvals if each is not None),
        approval_key=public_key_of(repository_key()),
        safety_envelope=plan.safety_envelope,
        line_facts=line_facts(plan, settings),
        safe_procedure=plan.safe_procedure,
        watched={channel: specs[channel].unit for channel in plan.envelope.watches},
        warnings=plan.warnings(),
        lab_option=plan.option,
        encrypts=plan.data_key is not None,
        begins_anew=plan.begins_anew,
    )


def _read(plan: LabPlan, path: str, read: Callable[[str], T]) -> T:
    return read(read_text(plan.beside(path)))


def line_facts(plan: LabPlan, settings: Mapping[str, Settings]) -> dict[str, LineFacts]:
    """Return the view of the line that the planner of each capability on offer gets."""
    file = plan.file
    limits = {
        channel: (limit.low, limit.high, limit.unit)
        for channel, limit in plan.envelope.limits.items()
    }
    return {
        name: LineFacts(
            limits=limits,
            settings=each,
            tube_volume_cm3=None if file.tube is None else file.tube.volume_cm3,
            ambient_torr=file.lab.ambient_torr or ATMOSPHERE_TORR,
            channels=tuple(channels_of(plan.instruments)),
            contaminants=tuple(plan.envelope.purge.present),
        )
        for name, each in settings.items()
    }


def repository_key() -> bytes:
    """Return the private key of the repository.

    It is not a secret: an approval signed with it counts only while every link of the lab is a
    loopback.
    """
    return bytes.fromhex(shipped_file(REPOSITORY_KEY).read_text("utf-8").strip())


def energy_sources(plan: LabPlan) -> tuple[EnergySource, ...]:
    """Return each energy source of a line; one without a description counts as the gravest."""
    return (*_instruments(plan), *_relays(plan))


def _instruments(plan: LabPlan) -> Iterator[EnergySource]:
    for each in plan.instruments:
        fed = fed_by(each, plan.contacts)
        for off in each.driver.off or ():
            found = _source(plan, each, off.adds, off.gas, fed, dict(way_off(each, off)))
            yield replace(found, harmless=is_harmless(each, off, plan.envelope.limits))
        if each.driver.off is None and settable_of(each):
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
    for contact in plan.contacts:
        if contact.adds is not None and contact.off is not None:
            gas = f"whatever {contact.channel} lets in" if contact.adds is Adds.GAS else ""
            off = {contact.channel: contact.off}
            yield EnergySource(name=contact.channel, adds=contact.adds, gas=gas, switches=off)
    for each in plan.instruments:
        for channel in undescribed(each, plan.contacts):
            gas, off = f"whatever {channel} lets in", {channel: 0.0}
            yield EnergySource(name=channel, adds=Adds.GAS, gas=gas, switches=off)
            yield EnergySource(name=channel, adds=Adds.HEAT, switches=off)


def policy_faults(plan: LabPlan, callers: tuple[Caller, ...]) -> Iterator[str]:
    """Return each right that a lab's callers file gives and that can never be used."""
    offered, known = capabilities(), plan.by_name
    for caller in callers:
        for what, names, there in (
            ("capabilities", caller.capabilities, tuple(offered)),
            ("instruments", caller.instruments or (), tuple(known)),
        ):
            for name in names:
                if name not in there:
                    yield Text(
                        "policy.nothing",
                        where=f"[callers.{caller.id}].{what}",
                        name=name,
                        hint=did_you_mean(name, there),
                        known=", ".join(sorted(there)),
                    )
        if not caller.hours.spans:
            yield Text("policy.never", where=f"[callers.{caller.id}].hours")
