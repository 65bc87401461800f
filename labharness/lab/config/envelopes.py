"""Turns envelope files into one frozen ``kernel.Envelope``; tables are strict.

Units are converted here, so that the kernel only compares.
"""

import math
from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from labharness.core.files.tables import BadTable, all_errors, read_table
from labharness.core.vocabulary import OPERATOR, Cause
from labharness.core.vocabulary.channels import split_channel
from labharness.core.vocabulary.texts import Text, several
from labharness.core.vocabulary.units import CELSIUS, TEMPERATURES, temperature_in
from labharness.instruments.driver import Channel
from labharness.lab.config.envelope_rows import (
    BoundRow,
    InterlockRow,
    KindLimits,
    LimitRow,
    LineFile,
    OpeningRow,
    Parameter,
    PlausibleRow,
    PurgedRow,
    PurgeRow,
    SafetyEnvelope,
    TightRow,
)
from labharness.safety.kernel import (
    Backfill,
    Bound,
    Condition,
    Envelope,
    EnvelopeInvalid,
    Interlock,
    LeakCheck,
    Limit,
    Plausible,
    Procedure,
    Purge,
    Step,
    TripRow,
    Watch,
)

T = TypeVar("T", bound=BaseModel)

QUANTITY_UNITS = {  # HCP L3's unit: the house's unit, factor
    "temperature": {"celsius": (CELSIUS, 1.0)},
    "pressure": {"torr": ("Torr", 1.0)},  # absolute by now
    "gas_flow_rate": {"sccm": ("sccm", 1.0)},
}
NO_PURGE = Purge(volume_cm3=1.0, inert={}, present={}, outside="")
"""The purge of a line on which no rule asks for one: it proves nothing."""

NOT_OF_A_BACKFILL = {"source", "low_unit", "high_unit"}
QUANTITY_CAUSES = {
    "temperature": Cause.OVER_TEMPERATURE,
    "pressure": Cause.OVER_PRESSURE,
    "gas_flow_rate": Cause.OVER_FLOW,
}


def parse_line(text: str, where: str) -> LineFile:
    """Read a line's envelope file.

    Raises:
        EnvelopeInvalid: Not TOML, an unknown key or name, a missing row; says where.
    """
    return _parse(LineFile, text, where)


def parse_kind(text: str, where: str) -> KindLimits:
    """Read a kind's envelope file; raises as ``parse_line`` does."""
    return _parse(KindLimits, text, where)


def build_envelope(
    file: LineFile,
    kinds: Mapping[str, KindLimits],
    channels: Mapping[str, Channel],
    *,
    volume_cm3: float | None,
    follows: Mapping[str, tuple[str, ...]],
) -> Envelope:
    """Make the kernel's envelope of a line.

    Args:
        file: The line's rules, their pressures absolute.
        kinds: For each instrument on the line its own limits.
        channels: Each channel, as its driver declares it.
        volume_cm3: Volume of the tube, as the lab file states it; a purge proof takes one.
        follows: For each channel the readings that follow what it is set to.

    Raises:
        EnvelopeInvalid: A rule contradicts an instrument's own limits, or another rule.
    """
    procedure_of = file.contract.emergency_procedures
    wrong = list(_unanswered(file, volume_cm3))
    limits: dict[str, Limit] = {}
    rows = [row.channel for row in file.limit]
    doubled = dict.fromkeys(each for each in rows if rows.count(each) > 1)
    wrong += [Text("envelope.two_limits", each=each) for each in doubled]
    for row in file.limit:
        try:
            limits[row.channel] = _limit(row, file, kinds, channels, follows.get(row.channel, ()))
        except EnvelopeInvalid as why:
            wrong.append(str(why))
    if wrong:
        raise EnvelopeInvalid(several(*wrong))
    limits |= {f"{OPERATOR}.{row.action}": _opening(row, file, kinds) for row in file.opening}
    units = {channel: limit.unit for channel, limit in limits.items()}
    return Envelope(
        line=file.line,
        limits=limits,
        interlocks=tuple(
            Interlock(
                name=row.name,
                guards=row.guards,
                require=tuple(_condition(each, row.name) for each in row.require),
                forbid=tuple(each.read() for each in row.forbid),
                during=_bound(row.during),
                source=row.source,
                above=_above(row),
                upto=math.inf if row.upto is None else row.upto,
                below=-math.inf if row.below is None else row.below,
                on_loss=row.on_loss,
                prohibits=row.prohibits,
            )
            for row in file.interlock
        ),
        watches={
            row.channel: Watch(
                channel=row.channel,
                stale_s=row.stale_s,
                procedure=procedure_of[Cause.COMMUNICATION] if row.trips else "",
            )
            for row in file.watch
        },
        trips=(*_declared_trips(file), *_quantity_trips(file, limits, channels)),
        procedures={
            name: Procedure(
                name=name,
                steps=tuple(
                    Step(
                        channel=each[0],
                        value=each[1],
                        unit=units.get(each[0], ""),
                        optional=len(each) == 3,
                    )
                    for each in row.steps
                ),
                wire_s_max=row.wire_s_max,
                verify_s_max=row.verify_s_max,
                when=tuple(each.read() for each in row.when),
                unless=_bound(row.unless),
                instead=row.instead,
            )
            for name, row in file.procedures.items()
        },
        purge=_purge(file.purge, volume_cm3),
        procedure_of=procedure_of,
        plausible=tuple(_plausible(row, procedure_of) for row in file.plausible),
    )


def _unanswered(file: LineFile, volume_cm3: float | None) -> Iterator[str]:
    procedure_of = file.contract.emergency_procedures
    there, first = ", ".join(file.procedures), next(iter(file.procedures))
    missing = [cause.value for cause in Cause if cause not in procedure_of]
    if missing:
        paste = "; ".join(f'{name} = "{first}"' for name in missing)
        yield (
            Text(
                "envelope.no_procedure",
                known=", ".join(map(repr, missing)),
                first=first,
                paste=paste,
            )
        )
    for cause, named in procedure_of.items():
        if named not in file.procedures:
            yield Text("envelope.procedure_unknown", value=cause.value, named=named, there=there)
    if file.purge is not None and volume_cm3 is None:
        yield Text("envelope.no_tube")
    if not file.safe:
        yield Text("envelope.no_safe", there=there, first=first)
    elif file.safe not in file.procedures:
        yield Text("envelope.safe_unknown", safe=file.safe, there=there)
    for action in file.safety_envelope.prohibited_actions:
        if not any(row.prohibits == action for row in file.interlock):
            yield Text("envelope.not_prohibited", action=action)


def _bound(row: BoundRow | None) -> Bound | None:
    return None if row is None else row.read()


def _condition(row: Mapping[str, Any], name: str) -> Condition:
    for model in (BoundRow, PurgedRow, TightRow):
        if set(row) <= set(model.model_fields):
            try:
                read: Condition = model.model_validate(row).read()
            except ValidationError as why:
                raise EnvelopeInvalid(
                    Text("envelope.interlock", name=name, why=all_errors(why, row, model))
                ) from None
            return read
    raise EnvelopeInvalid(Text("envelope.condition", name=name, dict=str(dict(row))))


def _plausible(row: PlausibleRow, procedure_of: Mapping[Cause, str]) -> Plausible:
    return Plausible(
        name=row.name,
        channel=row.channel,
        found_s=row.found_s,
        cause=row.cause,
        procedure="" if row.warns else procedure_of[row.cause],
        source=row.source,
        during=tuple(each.read() for each in row.during),
        rise_min=-math.inf if row.rise_min is None else row.rise_min,
        span_min=row.span_min,
        span_max=math.inf if row.span_max is None else row.span_max,
        expects=_bound(row.expects),
        agrees_with=row.agrees_with,
        differ_max=math.inf if row.differ_max is None else row.differ_max,
    )


def _purge(row: PurgeRow | None, volume_cm3: float | None) -> Purge:
    if row is None or volume_cm3 is None:
        return NO_PURGE
    fill, check = row.backfill, row.leak_check
    return Purge(
        volume_cm3=volume_cm3,
        inert=row.inert,
        present={name: tuple(each.read() for each in rows) for name, rows in row.present.items()},
        outside=row.outside,
        backfill=None if fill is None else Backfill(**fill.model_dump(exclude=NOT_OF_A_BACKFILL)),
        leak_check=None
        if check is None
        else LeakCheck(
            channel=check.channel,
            isolated=tuple(each.read() for each in check.isolated + check.inlets),
            inlets=tuple(each.channel for each in check.inlets),
            below=check.below,
            over_s=check.over_s,
            leak_max=check.leak_max,
        ),
    )


def _limit(
    row: LimitRow,
    file: LineFile,
    kinds: Mapping[str, KindLimits],
    channels: Mapping[str, Channel],
    moves: tuple[str, ...],
) -> Limit:
    instrument, channel = split_channel(row.channel)
    kind = kinds.get(instrument)
    own = kind.limits.get(channel) if kind is not None else None
    if kind is None or own is None:
        raise EnvelopeInvalid(Text("envelope.not_settable", channel=row.channel))
    if own.unit != row.unit or not own.low <= row.low <= row.high <= own.high:
        raise EnvelopeInvalid(
            Text(
                "envelope.beyond_kind",
                channel=row.channel,
                low=row.low,
                high=row.high,
                unit=row.unit,
                kind=kind.kind,
                low2=own.low,
                high2=own.high,
                unit2=own.unit,
            )
        )
    spec = channels.get(row.channel)
    shown_by = "" if spec is None or spec.readback is None else f"{instrument}.{spec.readback}"
    itself = spec.own if spec is not None and shown_by else None
    if row.on_foreign and itself is None:
        why = Text("envelope.moves") if shown_by else Text("envelope.not_shown")
        raise EnvelopeInvalid(Text("envelope.on_foreign", channel=row.channel, why=why))
    if row.foreign_while is not None and not row.on_foreign:
        raise EnvelopeInvalid(Text("envelope.foreign_while", channel=row.channel))
    high = row.high
    for quantity, parameter in file.safety_envelope.parameters.items():
        if row.channel in file.quantities.get(quantity, ()) and parameter.hard_limit:
            high = min(high, _most(quantity, parameter, row.unit)[0])
    return Limit(
        channel=row.channel,
        unit=row.unit,
        low=row.low,
        high=high,
        source=row.source,
        role=row.role,
        step_max=math.inf if row.step_max is None else row.step_max,
        readback=shown_by,
        moves=moves,
        always_safe=row.always_safe,
        resolution=math.inf if spec is None or itself is None else spec.resolution,
        own=itself or (),
        on_foreign=row.on_foreign,
        foreign_while=_bound(row.foreign_while),
    )


def _opening(row: OpeningRow, file: LineFile, kinds: Mapping[str, KindLimits]) -> Limit:
    """Turn an opening by hand into a command: its contact goes to 0, judged like any other."""
    if OPERATOR in kinds:
        raise EnvelopeInvalid(Text("envelope.operator", action=row.action, operator=OPERATOR))
    if row.opens not in {watch.channel for watch in file.watch}:
        raise EnvelopeInvalid(Text("envelope.opens", action=row.action, opens=row.opens))
    return Limit(
        channel=f"{OPERATOR}.{row.action}",
        unit="",
        low=0.0,
        high=0.0,
        source=row.source,
        readback=row.opens,
    )


def _above(row: InterlockRow) -> float:
    """A row with only ``below`` does not guard a command upwards."""
    if row.above is not None:
        return row.above
    return 0.0 if row.below is None else math.inf


def _declared_trips(file: LineFile) -> tuple[TripRow, ...]:
    return tuple(
        TripRow(
            name=row.name,
            channel=row.channel,
            cause=row.cause,
            procedure=file.contract.emergency_procedures[row.cause],
            unit=row.unit,
            source=row.source,
            low=-math.inf if row.low is None else row.low,
            high=math.inf if row.high is None else row.high,
        )
        for row in file.trip
    )


def _quantity_trips(
    file: LineFile, limits: Mapping[str, Limit], specs: Mapping[str, Channel]
) -> tuple[TripRow, ...]:
    """Ruling 8: a parameter applies to every channel of its quantity, each by itself."""
    rows: list[TripRow] = []
    contract = file.contract
    for quantity, channels in file.quantities.items():
        parameter = contract.parameters.get(quantity)
        if parameter is None:
            continue
        cause = QUANTITY_CAUSES[quantity]
        for channel in channels:
            if channel in limits:
                continue
            high, unit = _most(quantity, parameter, specs[channel].unit if channel in specs else "")
            rows.append(
                TripRow(
                    name=f"{quantity} above the safety envelope",
                    channel=channel,
                    cause=cause,
                    procedure=contract.emergency_procedures[cause] if parameter.hard_limit else "",
                    unit=unit,
                    source=parameter.source,
                    high=high,
                )
            )
    return tuple(rows)


def told_envelope(file: LineFile, envelope: Envelope) -> SafetyEnvelope:
    """Return HCP's safety envelope as it is enforced, for callers (ruling 8).

    A quantity is told as no higher than the highest of its channels may be set: no plan passes with
    more. A channel with a lower limit has a row of its own beside it.
    """
    told = dict(file.contract.parameters)
    for quantity, parameter in file.contract.parameters.items():
        limits = (envelope.limits.get(each) for each in file.quantities.get(quantity, ()))
        known = [each for each in limits if each is not None]
        if parameter.hard_limit and known:
            unit, factor = QUANTITY_UNITS[quantity][parameter.unit]
            highs = [_converted(unit, each.high, each.unit) for each in known]
            most = min(parameter.max, max(highs) / factor)
            told[quantity] = parameter.model_copy(update={"max": most})
    return file.contract.model_copy(update={"parameters": told})


def _most(quantity: str, parameter: Parameter, of: str) -> tuple[float, str]:
    """Return the most of a quantity in the unit of a channel, or in the house's; and that unit."""
    known = QUANTITY_UNITS[quantity]
    if parameter.unit not in known:
        raise EnvelopeInvalid(
            Text(
                "envelope.parameter", quantity=quantity, unit=parameter.unit, known=", ".join(known)
            )
        )
    unit, factor = known[parameter.unit]
    most = _converted(of, parameter.max * factor, unit)
    return most, of if {unit, of} <= TEMPERATURES.keys() else unit


def _converted(unit: str, value: float, of: str) -> float:
    """Convert a temperature; a value of another quantity is in the house's unit already."""
    return temperature_in(unit, value, of) if {unit, of} <= TEMPERATURES.keys() else value


def _parse(model: type[T], text: str, where: str) -> T:
    try:
        return read_table(model, text, where)
    except BadTable as why:
        raise EnvelopeInvalid(str(why)) from None
