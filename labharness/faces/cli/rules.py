"""An envelope in words, each number and name of it: what a person reads who approves it."""

import math
from collections.abc import Iterator

from labharness.lab import LabPlan
from labharness.line.hindrances import Room
from labharness.line.instrument import Contact
from labharness.safety.kernel import Interlock, Limit, Plausible, Procedure, Purge

__all__ = ["rules"]


def rules(plan: LabPlan) -> Iterator[str]:
    """Return every row of a line, one line each; nothing that decides is left out."""
    envelope = plan.envelope
    yield f"line {envelope.line}"
    yield f"room       {_room(plan.room)}"
    yield from (f"contact    {_contact(each)}" for each in plan.contacts)
    for limit in envelope.limits.values():
        yield f"limit      {_limit(limit)} ({limit.source})"
        if said := _foreign(limit):
            yield f"foreign    {limit.readback or limit.channel} not as confirmed{said}"
        if limit.always_safe:
            values = _some(limit.always_safe)
            yield f"always     {limit.channel} = {values}: no interlock holds it up"
    yield from (f"interlock  {_interlock(row)}" for row in envelope.interlocks)
    yield from (f"purge      {said}" for said in _purge(envelope.purge))
    yield from (f"plausible  {_plausible(row)}" for row in envelope.plausible)
    for trip in envelope.trips:
        yield (
            f"trip       {trip.channel} outside {_within(trip.low, trip.high, trip.unit)}: "
            f"{trip.procedure or 'warning'}, {trip.cause} ({trip.name})"
        )
    for cause, procedure in envelope.procedure_of.items():
        yield f"cause      {cause}: {procedure}"
    for watch in envelope.watches.values():
        runs = watch.procedure or "-"
        yield f"watch      {watch.channel}: stale after {watch.stale_s:g} s: {runs}"
    yield from (f"procedure  {_procedure(each)}" for each in envelope.procedures.values())


def _some(values: tuple[float, ...]) -> str:
    return ", ".join(f"{value:g}" for value in values)


def _within(low: float, high: float, unit: str = "") -> str:
    return f"{low:g} to {high:g} {unit}".rstrip()


def _room(room: Room) -> str:
    ambient = "of unknown pressure" if room.ambient is None else f"at {room.ambient:g}"
    if not room.channel:
        return ambient
    during = ", ".join(map(str, room.during))
    return f"{ambient}, seen by {room.channel} to {room.differ_max:g} while {during}"


def _contact(contact: Contact) -> str:
    if contact.off is None:
        return f"{contact.channel} feeds nothing that adds energy ({contact.source})"
    adds = [*contact.feeds, *([str(contact.adds)] if contact.adds else [])]
    return f"{contact.channel} = {contact.off:g} cuts {', '.join(adds)} ({contact.source})"


def _limit(limit: Limit) -> str:
    said = f"{limit.channel} {_within(limit.low, limit.high, limit.unit)}"
    if limit.step_max < math.inf:
        said += f", by {limit.step_max:g} at most"
    if limit.readback and limit.readback != limit.channel:
        said += f", read back by {limit.readback}"
    return said + (f", {limit.role} too" if limit.role == "prepare" else "")


def _foreign(limit: Limit) -> str:
    said = f" to {limit.resolution:g}" if limit.resolution < math.inf else ""
    said += f" nor {_some(limit.own)}" if limit.own else ""
    runs = limit.on_foreign or ("warning" if said else "")
    said += f": {runs}" if runs else ""
    return said + (f" while {limit.foreign_while}" if limit.foreign_while else "")


def _interlock(row: Interlock) -> str:
    guarded = ", ".join(row.guards)
    bounds = [f"above {row.above:g}"] if row.above < math.inf else []
    bounds += [f"up to {row.upto:g}"] if row.upto < math.inf else []
    bounds += [f"below {row.below:g}"] if row.below > -math.inf else []
    about = f"{guarded} {' or '.join(bounds)} takes" if guarded else "takes"
    during = f"while {row.during}: " if row.during is not None else ""
    needs = [str(condition) for condition in row.require]
    needs += [f"never {state}" for state in row.forbid]
    lost = f", lost: {row.on_loss}" if row.on_loss else ""
    prohibits = f", prohibits {row.prohibits}" if row.prohibits else ""
    return f"{row.name}: {during}{about} {'; '.join(needs)}{lost}{prohibits}"


def _purge(purge: Purge) -> Iterator[str]:
    if not purge.outside:
        return
    inert = ", ".join(f"{flow} up to {told}" for flow, told in purge.inert.items())
    yield f"{purge.volume_cm3:g} cm3, counted by {inert}"
    for contaminant, states in purge.present.items():
        around = ", which is all around" if contaminant == purge.outside else ""
        seen = " or ".join(map(str, states))
        yield f"{contaminant}{around}, may be in the tube while {seen}"
    fill, check = purge.backfill, purge.leak_check
    if fill is not None:
        yield (
            f"or {fill.cycles} times {fill.channel} from {fill.low:g} to {fill.high:g}, of "
            f"{fill.atmosphere:g} an atmosphere, {fill.unmeasured_max:g} of it unmeasured at most, "
            f"dilutes by {fill.dilution_min:g} at least"
        )
    if check is not None:
        yield (
            f"leak-checked: {check.channel} below {check.below:g} for {check.over_s:g} s, leak at "
            f"most {check.leak_max:g} per s, while {', '.join(map(str, check.isolated))}; ended by "
            f"{', '.join(check.inlets)}"
        )


def _plausible(row: Plausible) -> str:
    wants = [f"rises by {row.rise_min:g}"] if row.rise_min > -math.inf else []
    wants += [f"moves by {row.span_min:g} at least"] if row.span_min else []
    wants += [f"moves by {row.span_max:g} at most"] if row.span_max < math.inf else []
    wants += [f"expects {row.expects}"] if row.expects is not None else []
    if row.agrees_with or row.differ_max < math.inf:
        wants += [f"is within {row.differ_max:g} of {row.agrees_with or 'itself'}"]
    during = f" while {', '.join(map(str, row.during))}" if row.during else ""
    return (
        f"{row.channel}: {row.name}: {', '.join(wants)}{during}, found within {row.found_s:g} s: "
        f"{row.procedure or 'warning'}, {row.cause}"
    )


def _procedure(procedure: Procedure) -> str:
    steps = ", ".join(
        f"{step.channel} = {step.value:g}{' ' * bool(step.unit)}{step.unit}"
        f"{' if it can' * step.optional}"
        for step in procedure.steps
    )
    states = " or ".join(map(str, procedure.when))
    instead = f"; {procedure.instead}" if procedure.instead else ""
    instead += f" while {states}" if states else ""
    instead += f", unless {procedure.unless}" if procedure.unless else ""
    return (
        f"{procedure.name} (sent within {procedure.wire_s_max:g} s, verified within "
        f"{procedure.verify_s_max:g} s): {steps}{instead}"
    )
