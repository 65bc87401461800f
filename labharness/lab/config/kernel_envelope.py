"""Turns a line's envelope file into one frozen ``kernel.Envelope``: its rows, and their units.

Units are converted here, so that the kernel only compares. Quartz and O-rings fail by the
difference to the room, a purge counts absolute pressure; so each pressure of a file says in its
unit which one it is, ``Torr gauge`` or ``Torr absolute``. The kernel compares absolute readings,
and knows nothing of rooms.
"""

import math
from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from labharness.core.files.tables import all_errors
from labharness.core.vocabulary import OPERATOR, Cause
from labharness.core.vocabulary.channels import split_channel
from labharness.core.vocabulary.texts import Text, several
from labharness.core.vocabulary.units import ATMOSPHERE_TORR, CELSIUS, TEMPERATURES, temperature_in
from labharness.instruments.driver import Channel
from labharness.lab.config.envelopes import (
    BoundRow,
    InterlockRow,
    KindLimits,
    LimitRow,
    LineFile,
    OpeningRow,
    Parameter,
    PurgedRow,
    PurgeRow,
    SafetyEnvelope,
    TightRow,
    TripTable,
)
from labharness.lab.config.wires import Finding
from labharness.line import Room
from labharness.safety.kernel import (
    Backfill,
    Bound,
    Condition,
    Envelope,
    EnvelopeInvalid,
    Interlock,
    LeakCheck,
    LeakTight,
    Limit,
    Plausible,
    Procedure,
    Purge,
    PurgedOf,
    Step,
    TripRow,
    Watch,
)

R = TypeVar("R")
Ends = dict[str, float]

TORR_PER = {
    # of the units in which drivers state pressures
    "Torr": 1.0,
    "mbar": ATMOSPHERE_TORR / 1013.25,
    "hPa": ATMOSPHERE_TORR / 1013.25,
    "kPa": ATMOSPHERE_TORR / 101.325,
    "Pa": ATMOSPHERE_TORR / 101_325.0,
    "bar": ATMOSPHERE_TORR / 1.01325,
    "psi": ATMOSPHERE_TORR / 14.69595,
}
QUANTITIES = {  # HCP L3's unit (of a pressure: absolute by now), the house's, cause of its trip
    "temperature": ("celsius", CELSIUS, Cause.OVER_TEMPERATURE),
    "pressure": ("torr", "Torr", Cause.OVER_PRESSURE),
    "gas_flow_rate": ("sccm", "sccm", Cause.OVER_FLOW),
}
NO_PURGE = Purge(volume_cm3=1.0, inert={}, present={}, outside="")
"""The purge of a line on which no rule asks for one: it proves nothing."""

GAUGE, ABSOLUTE = " gauge", " absolute"
PARAMETER_TORR = {"atm": ATMOSPHERE_TORR, "torr": 1.0}
"""HCP's units of a pressure; without more they are absolute, as HCP L3's own example has them."""


class Pressures:
    """Reads the rows of one line's file as the kernel has them: every pressure is absolute.

    Args:
        units: Unit of each channel of the line.
        stated_torr: Pressure of the room; one that is not stated counts as sea level, and with
            that a line that states a pressure against the room is not armed.
    """

    def __init__(self, units: Mapping[str, str], stated_torr: float | None) -> None:
        self.units = units
        self._stated_torr = stated_torr
        self._asked = False

    @property
    def known_torr(self) -> float | None:
        """The room's pressure, if it is known, or if nothing was stated against it."""
        if self._stated_torr is None and not self._asked:
            return ATMOSPHERE_TORR
        return self._stated_torr

    def _room_torr(self) -> float:
        self._asked = True
        return ATMOSPHERE_TORR if self._stated_torr is None else self._stated_torr

    def value(self, channel: str, value: float, said: str | None, where: str) -> float:
        """Return one number in the channel's own unit, absolute where it is a pressure.

        Raises:
            EnvelopeInvalid: A pressure does not say which one it is, or another quantity does.
        """
        unit = self.units.get(channel, "")
        if unit not in TORR_PER:
            if said not in (None, unit):
                raise EnvelopeInvalid(
                    "ambient.other_unit", where=where, channel=channel, unit=unit, said=said
                )
            return value
        if said == unit + GAUGE:
            return value + in_unit(self._room_torr(), unit, where)
        if said != unit + ABSOLUTE:
            none = said is None
            raise EnvelopeInvalid(
                "ambient.pressure",
                where=where,
                channel=channel,
                stands=Text("ambient.no_unit") if none else Text("ambient.its_unit", said=said),
                unit=unit + GAUGE,
                unit2=unit + ABSOLUTE,
            )
        return value

    def ends(self, channel: str, unit: str | None, where: str, **stated: float | None) -> Ends:
        """Return those ends of a range that are stated."""
        return {
            end: self.value(channel, value, unit, where)
            for end, value in stated.items()
            if value is not None
        }

    def bounds(self, value: object, where: str) -> Any:  # noqa: ANN401 - whatever a row holds
        """Return a value of a file with each bound in it as the kernel has it."""
        if isinstance(value, BoundRow):
            low, high = value.at_least, value.at_most
            ends = self.ends(value.channel, value.unit, where, low=low, high=high)
            return Bound(value.channel, **ends)
        if isinstance(value, tuple):
            return tuple(self.bounds(each, where) for each in value)
        return value

    def row(self, kernels: type[R], stated: BaseModel, where: str, **found: object) -> R:
        """Return a row of the kernel: the values of the file by their names, and those found.

        A key that the file leaves out has the kernel's own value.
        """
        names = kernels.__annotations__.keys() & type(stated).model_fields.keys() - found.keys()
        given = {name: self.bounds(getattr(stated, name), where) for name in names}
        return kernels(**{name: each for name, each in given.items() if each is not None}, **found)

    def parameter(self, row: Parameter) -> Parameter:
        """Return HCP's own parameter of pressures, in Torr."""
        unit, _, said = row.unit.partition(" ")
        if unit not in PARAMETER_TORR or said not in ("", "gauge", "absolute"):
            known = ", ".join(f"{each}{more}" for each in PARAMETER_TORR for more in ("", GAUGE))
            raise EnvelopeInvalid("ambient.parameter", unit=row.unit, known=known)
        against_torr = self._room_torr() if said == "gauge" else 0.0
        most = row.max * PARAMETER_TORR[unit] + against_torr
        return row.model_copy(update={"max": most, "unit": "torr"})


def room_of(line: LineFile, pressures: Pressures, envelope: Envelope) -> Room:
    """Return the facts about the room, in the unit of the gauge that shows it.

    Raises:
        EnvelopeInvalid: The gauge, or the channel that shows the tube open, is not watched.
    """
    row = line.ambient
    if row is None:
        return Room(ambient=pressures.known_torr)
    for channel in (row.channel, *(each.channel for each in row.during)):
        if channel not in envelope.watches:
            raise EnvelopeInvalid("ambient.not_watched", channel=channel)
    during = pressures.bounds(row.during, "ambient")
    torr = pressures.known_torr
    ambient = in_unit(torr or 0.0, pressures.units[row.channel], f"ambient: {row.channel}")
    return Room(
        ambient=None if torr is None else ambient,
        channel=row.channel,
        during=during,
        differ_max=row.differ_max,
    )


def unknown_room(room: Room) -> tuple[Finding, ...]:
    """Find that pressures are stated against a room whose pressure is not stated."""
    if room.ambient is not None:
        return ()
    return (Finding("lab.ambient_torr", Text("ambient.missing"), Text("ambient.paste")),)


def in_unit(pressure_torr: float, unit: str, where: str) -> float:
    """Return a pressure in the unit of a gauge.

    Raises:
        EnvelopeInvalid: The unit is not a unit of pressure.
    """
    if unit not in TORR_PER:
        raise EnvelopeInvalid("ambient.unit", where=where, unit=unit, known=", ".join(TORR_PER))
    return pressure_torr / TORR_PER[unit]


def build_envelope(
    file: LineFile,
    kinds: Mapping[str, KindLimits],
    channels: Mapping[str, Channel],
    pressures: Pressures,
    *,
    volume_cm3: float | None,
    follows: Mapping[str, tuple[str, ...]],
) -> Envelope:
    """Make the kernel's envelope of a line.

    Args:
        file: The line's rules.
        kinds: For each instrument on the line its own limits.
        channels: Each channel, as its driver declares it.
        pressures: Reads them in the room of the lab.
        volume_cm3: Volume of the tube, as the lab file states it; a purge proof takes one.
        follows: For each channel the readings that follow what it is set to.

    Raises:
        EnvelopeInvalid: A rule contradicts an instrument's own limits, or another rule.
    """
    contract = file.contract
    procedure_of, most = contract.emergency_procedures, dict(contract.parameters)
    if "pressure" in most:
        most["pressure"] = pressures.parameter(most["pressure"])
    file = file.model_copy(
        update={"safety_envelope": contract.model_copy(update={"parameters": most})}
    )
    wrong = list(_unanswered(file, volume_cm3))
    limits: dict[str, Limit] = {}
    rows = [row.channel for row in file.limit]
    doubled = dict.fromkeys(each for each in rows if rows.count(each) > 1)
    wrong += [Text("envelope.two_limits", each=each) for each in doubled]
    for row in file.limit:
        try:
            found = _limit(row, file, kinds, channels)
            limits[row.channel] = pressures.row(
                Limit, row, f"limit {row.channel}", moves=follows.get(row.channel, ()), **found
            )
        except EnvelopeInvalid as why:
            wrong.append(str(why))
    if wrong:
        raise EnvelopeInvalid(several(*wrong))
    limits |= {f"{OPERATOR}.{row.action}": _opening(row, file, kinds) for row in file.opening}
    return Envelope(
        line=file.line,
        limits=limits,
        interlocks=tuple(_interlock(row, pressures) for row in file.interlock),
        watches={
            row.channel: pressures.row(
                Watch, row, "", procedure=procedure_of[Cause.COMMUNICATION] if row.trips else ""
            )
            for row in file.watch
        },
        trips=(
            *(_trip(row, pressures, procedure_of[row.cause]) for row in file.trip),
            *_quantity_trips(file, limits, channels),
        ),
        procedures={
            name: pressures.row(
                Procedure,
                row,
                f"procedure {name!r}",
                name=name,
                steps=tuple(
                    Step(
                        channel=channel,
                        value=value,
                        unit=limits[channel].unit if channel in limits else "",
                        optional=bool(optional),
                    )
                    for channel, value, *optional in row.steps
                ),
            )
            for name, row in file.procedures.items()
        },
        purge=_purge(file.purge, volume_cm3, pressures),
        procedure_of=procedure_of,
        plausible=tuple(
            pressures.row(
                Plausible,
                row,
                f"plausible {row.name!r}",
                procedure="" if row.warns else procedure_of[row.cause],
            )
            for row in file.plausible
        ),
    )


def _unanswered(file: LineFile, volume_cm3: float | None) -> Iterator[str]:
    procedure_of = file.contract.emergency_procedures
    there, first = ", ".join(file.procedures), next(iter(file.procedures))
    missing = [cause.value for cause in Cause if cause not in procedure_of]
    if missing:
        paste = "; ".join(f'{name} = "{first}"' for name in missing)
        known = ", ".join(map(repr, missing))
        yield Text("envelope.no_procedure", known=known, first=first, paste=paste)
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


def _interlock(row: InterlockRow, pressures: Pressures) -> Interlock:
    who = f"interlock {row.name!r}"
    above = row.above
    if above is None:  # a row with only ``below`` does not guard a command upwards
        above = 0.0 if row.below is None else math.inf
    require = tuple(_condition(each, row.name, pressures) for each in row.require)
    return pressures.row(Interlock, row, who, require=require, above=above)


def _condition(row: Mapping[str, Any], name: str, pressures: Pressures) -> Condition:
    for model in (BoundRow, PurgedRow, TightRow):
        if set(row) <= set(model.model_fields):
            try:
                stated = model.model_validate(row)
            except ValidationError as why:
                text = all_errors(why, row, model)
                raise EnvelopeInvalid("envelope.interlock", name=name, why=text) from None
            if isinstance(stated, PurgedRow):
                return PurgedOf(stated.purged_of, stated.volumes)
            if isinstance(stated, TightRow):
                return LeakTight(stated.tight_since)
            found: Bound = pressures.bounds(stated, f"interlock {name!r}")
            return found
    raise EnvelopeInvalid("envelope.condition", name=name, dict=str(dict(row)))


def _trip(row: TripTable, pressures: Pressures, procedure: str) -> TripRow:
    """Return a trip row; units other than those of pressures are checked with the channels."""
    own = pressures.units.get(row.channel, "")
    said, unit = (row.unit, own) if own in TORR_PER else (None, row.unit)
    who = f"trip {row.name!r}"
    ends = pressures.ends(row.channel, said, who, low=row.low, high=row.high)
    return pressures.row(TripRow, row, who, procedure=procedure, unit=unit, **ends)


def _purge(row: PurgeRow | None, volume_cm3: float | None, pressures: Pressures) -> Purge:
    if row is None or volume_cm3 is None:
        return NO_PURGE
    found: dict[str, Any] = {
        "present": {
            name: pressures.bounds(rows, f"purge.present.{name}")
            for name, rows in row.present.items()
        }
    }
    value, fill, check = pressures.value, row.backfill, row.leak_check
    if fill is not None:
        low = value(fill.channel, fill.low, fill.low_unit, "purge.backfill.low")
        high = value(fill.channel, fill.high, fill.high_unit, "purge.backfill.high")
        found["backfill"] = pressures.row(Backfill, fill, "", low=low, high=high)
    if check is not None:
        where = "purge.leak_check"
        found["leak_check"] = pressures.row(
            LeakCheck,
            check,
            where,
            below=value(check.channel, check.below, check.below_unit, f"{where}.below"),
            isolated=pressures.bounds(check.isolated + check.inlets, where),
            inlets=tuple(each.channel for each in check.inlets),
        )
    return pressures.row(Purge, row, "", volume_cm3=volume_cm3, **found)


def _limit(
    row: LimitRow,
    file: LineFile,
    kinds: Mapping[str, KindLimits],
    channels: Mapping[str, Channel],
) -> dict[str, Any]:
    """Return what a limit has beside its row."""
    instrument, channel = split_channel(row.channel)
    kind = kinds.get(instrument)
    own = kind.limits.get(channel) if kind is not None else None
    if kind is None or own is None:
        raise EnvelopeInvalid("envelope.not_settable", channel=row.channel)
    if own.unit != row.unit or not own.low <= row.low <= row.high <= own.high:
        raise EnvelopeInvalid(
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
    spec = channels.get(row.channel)
    shown_by = "" if spec is None or spec.readback is None else f"{instrument}.{spec.readback}"
    itself = spec.own if spec is not None and shown_by else None
    if row.on_foreign and itself is None:
        why = Text("envelope.moves") if shown_by else Text("envelope.not_shown")
        raise EnvelopeInvalid("envelope.on_foreign", channel=row.channel, why=why)
    if row.foreign_while is not None and not row.on_foreign:
        raise EnvelopeInvalid("envelope.foreign_while", channel=row.channel)
    high = row.high
    for quantity, parameter in file.safety_envelope.parameters.items():
        if row.channel in file.quantities.get(quantity, ()) and parameter.hard_limit:
            high = min(high, _most(quantity, parameter, row.unit)[0])
    return {
        "high": high,
        "readback": shown_by,
        "resolution": math.inf if spec is None or itself is None else spec.resolution,
        "own": itself or (),
    }


def _opening(row: OpeningRow, file: LineFile, kinds: Mapping[str, KindLimits]) -> Limit:
    """Turn an opening by hand into a command: its contact goes to 0, judged like any other."""
    if OPERATOR in kinds:
        raise EnvelopeInvalid("envelope.operator", action=row.action, operator=OPERATOR)
    if row.opens not in {watch.channel for watch in file.watch}:
        raise EnvelopeInvalid("envelope.opens", action=row.action, opens=row.opens)
    return Limit(
        channel=f"{OPERATOR}.{row.action}",
        unit="",
        low=0.0,
        high=0.0,
        source=row.source,
        readback=row.opens,
    )


def _quantity_trips(
    file: LineFile, limits: Mapping[str, Limit], specs: Mapping[str, Channel]
) -> Iterator[TripRow]:
    """Ruling 8: a parameter applies to every channel of its quantity, each by itself."""
    contract = file.contract
    for quantity, channels in file.quantities.items():
        parameter = contract.parameters.get(quantity)
        for channel in channels:
            if parameter is None or channel in limits:
                continue
            cause = QUANTITIES[quantity][2]
            high, unit = _most(quantity, parameter, specs[channel].unit if channel in specs else "")
            yield TripRow(
                name=f"{quantity} above the safety envelope",
                channel=channel,
                cause=cause,
                procedure=contract.emergency_procedures[cause] if parameter.hard_limit else "",
                unit=unit,
                source=parameter.source,
                high=high,
            )


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
            unit = QUANTITIES[quantity][1]
            highs = (_converted(unit, each.high, each.unit) for each in known)
            told[quantity] = parameter.model_copy(update={"max": min(parameter.max, max(highs))})
    return file.contract.model_copy(update={"parameters": told})


def _most(quantity: str, parameter: Parameter, of: str) -> tuple[float, str]:
    """Return the most of a quantity in the unit of a channel, or in the house's; and that unit."""
    stated, unit, _ = QUANTITIES[quantity]
    if parameter.unit != stated:
        raise EnvelopeInvalid(
            "envelope.parameter", quantity=quantity, unit=parameter.unit, known=stated
        )
    most = _converted(of, parameter.max, unit)
    return most, of if {unit, of} <= TEMPERATURES.keys() else unit


def _converted(unit: str, value: float, of: str) -> float:
    """Convert a temperature; a value of another quantity is in the house's unit already."""
    return temperature_in(unit, value, of) if {unit, of} <= TEMPERATURES.keys() else value
