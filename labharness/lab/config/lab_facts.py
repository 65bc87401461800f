"""Gathers the desk's facts about a lab: callers, capabilities, line, and standing approvals.

Lists the energy sources of a line, from its drivers and its envelope's contacts.

Finds rights in the callers file that can never be used.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from labharness.core.vocabulary.spelling import did_you_mean
from labharness.core.vocabulary.texts import Text, several
from labharness.core.vocabulary.units import ATMOSPHERE_TORR, CELSIUS, TEMPERATURES, temperature_in
from labharness.instruments.driver import Adds
from labharness.lab.config.approvers import approvers_of
from labharness.lab.config.capability_tables import offered
from labharness.lab.config.consistency import channels_of
from labharness.lab.config.kinds import capabilities, shipped_file
from labharness.lab.config.lab_file import BadLabFile, read_text
from labharness.lab.config.lab_plan import LabPlan
from labharness.lab.config.proven import is_harmless
from labharness.line import Instrument
from labharness.work.admission.approval import (
    BadApproval,
    StandingApproval,
    public_key_of,
    read_approval,
)
from labharness.work.admission.callers import BadCallers, Caller, read_callers
from labharness.work.capability import Capability, LineFacts, Settings
from labharness.work.desk.energised import EnergySource
from labharness.work.desk.facts import LabFacts

REPOSITORY_KEY = "labs/repository.key"


def lab_facts_of(plan: LabPlan) -> LabFacts:
    """Return the desk's facts about a lab, without the flight of plans, which takes a loop.

    Raises:
        BadLabFile: The callers file or an approval cannot be honoured.
    """
    file = plan.file
    known, callers, approvals, settings = _asked_for(plan)
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
        capabilities=known,
        approvals=tuple(approvals),
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


def _asked_for(
    plan: LabPlan,
) -> tuple[
    Mapping[str, Capability],
    Mapping[str, Caller] | None,
    list[StandingApproval],
    Mapping[str, Settings],
]:
    """Read the capabilities on offer, the callers, the approvals, and the settings of each.

    Raises:
        BadLabFile: Names every file that cannot be honoured, and the reason.
    """
    approvals: list[StandingApproval] = []
    wrong: list[str] = []
    callers: Mapping[str, Caller] | None = None
    known: Mapping[str, Capability] = {}
    settings: Mapping[str, Settings] = {}
    try:
        known = capabilities()
        settings, unfit = offered(plan.file.capability, known)
        wrong += unfit
    except LookupError as why:
        wrong.append(str(why))
    try:
        if plan.file.lab.callers is not None:
            callers = read_callers(read_text(plan.beside(plan.file.lab.callers)))
    except (BadCallers, BadLabFile) as why:
        wrong.append(str(why))
    for path in plan.file.lab.approvals:
        try:
            if plan.beside(path).exists():
                approvals.append(read_approval(read_text(plan.beside(path))))
        except (BadApproval, BadLabFile) as why:
            wrong.append(str(why))
    try:
        approvers_of(plan)  # read where persons are asked; a wrong one is told with the others
    except BadLabFile as why:
        wrong.append(str(why))
    if wrong:
        raise BadLabFile("pair", what=str(plan.path.parent), why=several(*wrong))
    return {name: known[name] for name in settings}, callers, approvals, settings


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
