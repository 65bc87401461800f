"""An envelope in words, with each of its numbers and names, for the person who approves it."""

import math
from collections.abc import Iterable, Iterator

from labharness.core.vocabulary.texts import Text
from labharness.lab import LabPlan
from labharness.line.hindrances import Room
from labharness.line.instrument import Contact
from labharness.safety.kernel import Interlock, Limit, Plausible, Procedure, Purge


def rules(plan: LabPlan) -> Iterator[str]:
    """Return every row of a line, one line each; no row that decides is left out."""
    envelope = plan.envelope
    yield Text("rule.line", name=envelope.line)
    yield Text("rule.room", room=_room(plan.room))
    for contact in plan.contacts:
        yield Text("rule.contact", contact=_contact(contact), source=contact.source)
    for limit in envelope.limits.values():
        yield Text("rule.limit", limit=_limit(limit), source=limit.source)
        if said := _foreign(limit):
            yield Text("rule.foreign", channel=limit.readback or limit.channel, said=said)
        if limit.always_safe:
            values = _some(limit.always_safe)
            yield Text("rule.always", channel=limit.channel, values=values)
    for interlock in envelope.interlocks:
        yield Text("rule.interlock", name=interlock.name, said=_interlock(interlock))
    yield from (Text("rule.purge", said=said) for said in _purge(envelope.purge))
    yield from map(_plausible, envelope.plausible)
    for trip in envelope.trips:
        yield Text(
            "rule.trip",
            channel=trip.channel,
            bounds=_within(trip.low, trip.high, trip.unit),
            procedure=trip.procedure or "warning",
            cause=trip.cause,
            name=trip.name,
        )
    for cause, procedure in envelope.procedure_of.items():
        yield Text("rule.cause", cause=cause, procedure=procedure)
    for watch in envelope.watches.values():
        runs = watch.procedure or "-"
        yield Text("rule.watch", channel=watch.channel, stale_s=watch.stale_s, procedure=runs)
    yield from map(_procedure, envelope.procedures.values())


def _some(values: tuple[float, ...]) -> str:
    return ", ".join(f"{value:g}" for value in values)


def _states(conditions: Iterable[object]) -> list[str]:
    return [str(each) for each in conditions]


def _within(low: float, high: float, unit: str = "") -> str:
    blank = " " if unit else ""
    return Text("rule.within", low=low, high=high, unit=f"{blank}{unit}")


def _room(room: Room) -> str:
    known = room.ambient is not None
    ambient = Text("rule.ambient", value=room.ambient) if known else Text("rule.no_ambient")
    if not room.channel:
        return ambient
    return Text(
        "rule.seen",
        ambient=ambient,
        channel=room.channel,
        most=room.differ_max,
        states=_states(room.during),
    )


def _contact(contact: Contact) -> str:
    if contact.off is None:
        return Text("rule.feeds_nothing", channel=contact.channel)
    adds = [*contact.feeds, *([str(contact.adds)] if contact.adds else [])]
    return Text("rule.cuts", channel=contact.channel, off=contact.off, cut=adds)


def _limit(limit: Limit) -> str:
    bounds = _within(limit.low, limit.high, limit.unit)
    said: list[str] = [Text("hand.ended", channel=limit.channel, ending=bounds)]
    if limit.step_max < math.inf:
        said.append(Text("rule.step", most=limit.step_max))
    if limit.readback and limit.readback != limit.channel:
        said.append(Text("rule.readback", channel=limit.readback))
    if limit.moves:
        said.append(Text("rule.followed", channels=list(limit.moves)))
    if limit.role == "prepare":
        said.append(Text("rule.too", role=limit.role))
    return Text("items", parts=said)


def _foreign(limit: Limit) -> str:
    resolution, own = limit.resolution, limit.own
    said = Text("rule.to", resolution=resolution) if resolution < math.inf else ""
    said = Text("rule.nor", said=said, own=_some(own)) if own else said
    if runs := limit.on_foreign or ("warning" if said else ""):
        said = Text("rule.runs", said=said, procedure=runs)
    during = limit.foreign_while
    return Text("rule.while", said=said, state=str(during)) if during else said


def _interlock(row: Interlock) -> str:
    bounds = [Text("rule.above", value=row.above)] if row.above < math.inf else []
    bounds += [Text("rule.upto", value=row.upto)] if row.upto < math.inf else []
    bounds += [Text("rule.below", value=row.below)] if row.below > -math.inf else []
    needs = _states(row.require)
    needs += [Text("rule.never", state=str(state)) for state in row.forbid]
    said: str = Text("rule.takes", needs=needs)
    if row.guards:
        said = Text("rule.guards", channels=list(row.guards), bounds=bounds, takes=said)
    if row.during is not None:
        said = Text("rule.during", state=str(row.during), said=said)
    said = Text("rule.lost", said=said, procedure=row.on_loss) if row.on_loss else said
    return Text("rule.prohibits", said=said, what=row.prohibits) if row.prohibits else said


def _purge(purge: Purge) -> Iterator[str]:
    if not purge.outside:
        return
    inert = [Text("rule.up_to", flow=flow, most=str(most)) for flow, most in purge.inert.items()]
    yield Text("rule.volume", volume_cm3=purge.volume_cm3, flows=inert)
    for contaminant, states in purge.present.items():
        around = Text("rule.around") if contaminant == purge.outside else ""
        yield Text("rule.present", gas=contaminant, around=around, states=_states(states))
    fill, check = purge.backfill, purge.leak_check
    if fill is not None:
        yield Text(
            "rule.backfill",
            cycles=fill.cycles,
            channel=fill.channel,
            low=fill.low,
            high=fill.high,
            atmosphere=fill.atmosphere,
            unmeasured=fill.unmeasured_max,
            dilution=fill.dilution_min,
        )
    if check is not None:
        yield Text(
            "rule.leak_check",
            channel=check.channel,
            below=check.below,
            over_s=check.over_s,
            leak=check.leak_max,
            states=_states(check.isolated),
            inlets=list(check.inlets),
        )


def _plausible(row: Plausible) -> str:
    wants = [Text("rule.rises", value=row.rise_min)] if row.rise_min > -math.inf else []
    wants += [Text("rule.moves_least", value=row.span_min)] if row.span_min else []
    wants += [Text("rule.moves_most", value=row.span_max)] if row.span_max < math.inf else []
    wants += [Text("rule.expects", state=str(row.expects))] if row.expects is not None else []
    if row.agrees_with or row.differ_max < math.inf:
        other = row.agrees_with or Text("rule.itself")
        wants.append(Text("rule.agrees", value=row.differ_max, channel=other))
    said: str = Text("items", parts=wants)
    if row.during:
        said = Text("rule.while", said=said, state=Text("items", parts=_states(row.during)))
    return Text(
        "rule.plausible",
        channel=row.channel,
        name=row.name,
        said=said,
        found_s=row.found_s,
        procedure=row.procedure or "warning",
        cause=row.cause,
    )


def _procedure(procedure: Procedure) -> str:
    steps = []
    for step in procedure.steps:
        to = f"{step.channel} = {step.value:g}{' ' * bool(step.unit)}{step.unit}"
        steps.append(Text("rule.optional", step=to) if step.optional else to)
    said: str = Text("items", parts=steps)
    if procedure.instead:
        said = Text("rule.instead", said=said, procedure=procedure.instead)
    if procedure.when:
        said = Text("rule.whenever", said=said, states=_states(procedure.when))
    if procedure.unless:
        said = Text("rule.unless", said=said, state=str(procedure.unless))
    return Text(
        "rule.procedure",
        name=procedure.name,
        wire_s=procedure.wire_s_max,
        verify_s=procedure.verify_s_max,
        said=said,
    )
