"""Turns envelope files into one frozen ``kernel.Envelope``: their tables, key by key, and its rows.

Any other key is an error. Units are converted here, so that the kernel only compares.
"""

import math
from collections.abc import Iterator, Mapping
from typing import Any, Literal, Self, TypeVar

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    StrictBool,
    StrictFloat,
    StrictInt,
    ValidationError,
    field_validator,
    model_validator,
)

from labharness.core.files.tables import BadTable, all_errors, read_table
from labharness.core.vocabulary import OPERATOR, Cause
from labharness.core.vocabulary.channels import split_channel
from labharness.core.vocabulary.texts import Text, several
from labharness.core.vocabulary.units import CELSIUS, TEMPERATURES, temperature_in
from labharness.instruments.driver import Adds, Channel
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
    Role,
    Step,
    TripRow,
    Watch,
)

ProhibitedAction = Literal["simultaneous_gas_mixing_without_purge"]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class Parameter(_Strict):
    """One row of HCP L3's ``parameters``."""

    max: StrictFloat
    unit: str
    hard_limit: StrictBool
    source: str = "HCP safety envelope"


class SafetyEnvelope(_Strict):
    """HCP L3's ``safety_envelope``, with its names checked."""

    parameters: dict[Literal["temperature", "pressure", "gas_flow_rate"], Parameter] = Field(
        default_factory=dict
    )
    prohibited_actions: tuple[ProhibitedAction, ...] = ()
    emergency_procedures: dict[Cause, str] = Field(default_factory=dict)

    def to_json(self, ambient_torr: float | None) -> dict[str, Any]:
        """Return it as HCP L3 writes it.

        Args:
            ambient_torr: Pressure of the room; stands beside a pressure that is stated against it.
        """
        said: dict[str, Any] = self.model_dump(mode="json")
        for parameter in said["parameters"].values():
            del parameter["source"]
            if parameter["unit"].endswith(" gauge") and ambient_torr is not None:
                parameter["ambient_torr"] = ambient_torr
        return said


class LimitRow(_Strict):
    """A ``[[limit]]``."""

    channel: str
    unit: str
    low: StrictFloat
    high: StrictFloat
    source: str
    role: Role = Role.OPERATE
    step_max: StrictFloat | None = None
    always_safe: tuple[StrictFloat, ...] = ()
    on_foreign: str = ""
    foreign_while: "BoundRow | None" = None


class OpeningRow(_Strict):
    """An ``[[opening]]``: a part that a person is asked to open, and the contact that shows it."""

    action: str
    opens: str
    source: str


class BoundRow(_Strict):
    """A bound on a reading; one end or both. Of a pressure the unit says which pressure it is."""

    channel: str
    at_least: StrictFloat | None = None
    at_most: StrictFloat | None = None
    unit: str | None = None

    def read(self) -> Bound:
        """Return it as the kernel has it."""
        low = -math.inf if self.at_least is None else self.at_least
        return Bound(self.channel, low, math.inf if self.at_most is None else self.at_most)


class PurgedRow(_Strict):
    """A purge proof that is asked for."""

    purged_of: str
    volumes: StrictFloat

    def read(self) -> PurgedOf:
        """Return it as the kernel has it."""
        return PurgedOf(self.purged_of, self.volumes)


class TightRow(_Strict):
    """A leak check that is asked for."""

    tight_since: str

    def read(self) -> LeakTight:
        """Return it as the kernel has it."""
        return LeakTight(self.tight_since)


class InterlockRow(_Strict):
    """An ``[[interlock]]``."""

    name: str
    guards: tuple[str, ...] = ()
    require: tuple[dict[str, Any], ...] = ()
    forbid: tuple[BoundRow, ...] = ()
    during: BoundRow | None = None
    source: str
    above: StrictFloat | None = None
    upto: StrictFloat | None = None
    below: StrictFloat | None = None
    on_loss: str = ""
    prohibits: str = ""


class WatchRow(_Strict):
    """The age that a reading of a channel may have before its silence trips."""

    channel: str
    stale_s: StrictFloat
    trips: StrictBool = True


class _TripRow(_Strict):
    name: str
    channel: str
    cause: Cause
    unit: str
    source: str
    low: StrictFloat | None = None
    high: StrictFloat | None = None


class PlausibleRow(_Strict):
    """A ``[[plausible]]``."""

    name: str
    channel: str
    cause: Cause
    found_s: StrictFloat
    source: str
    warns: StrictBool = False
    during: tuple[BoundRow, ...] = ()
    rise_min: StrictFloat | None = None
    span_min: StrictFloat = 0.0
    span_max: StrictFloat | None = None
    expects: BoundRow | None = None
    agrees_with: str = ""
    differ_max: StrictFloat | None = None


class ProcedureRow(_Strict):
    """The steps that make the line safe, with the times that they may take."""

    wire_s_max: StrictFloat
    verify_s_max: StrictFloat
    steps: tuple[tuple[str, StrictFloat] | tuple[str, StrictFloat, Literal["optional"]], ...]
    when: tuple[BoundRow, ...] = ()
    unless: BoundRow | None = None
    instead: str = ""


class BackfillRow(_Strict):
    """Pumping and filling, as a purge counts them."""

    channel: str
    cycles: StrictInt
    low: StrictFloat
    low_unit: str | None = None
    high: StrictFloat
    high_unit: str | None = None
    atmosphere: StrictFloat
    unmeasured_max: StrictFloat
    dilution_min: StrictFloat
    source: str

    @field_validator("unmeasured_max")
    @classmethod
    def _share(cls, given: float) -> float:
        """With 1 or more, no inflow would ever count as coming from outside."""
        if given >= 1.0:
            raise ValueError(Text("envelope.share", given=given))
        return given


class LeakCheckRow(_Strict):
    """A rise of pressure in the shut tube, as proof that it is tight."""

    channel: str
    isolated: tuple[BoundRow, ...]
    inlets: tuple[BoundRow, ...]
    below: StrictFloat
    below_unit: str | None = None
    over_s: StrictFloat
    leak_max: StrictFloat
    source: str


class PurgeRow(_Strict):
    """The ``[purge]``."""

    inert: dict[str, str]
    present: dict[str, tuple[BoundRow, ...]]
    outside: str
    source: str
    backfill: BackfillRow | None = None
    leak_check: LeakCheckRow | None = None


class AmbientRow(_Strict):
    """The ``[ambient]``: the state in which the line's own gauge shows the pressure of the room."""

    channel: str
    during: tuple[BoundRow, ...] = Field(min_length=1)
    differ_max: StrictFloat = Field(gt=0)
    source: str


class ContactRow(_Strict):
    """A ``[[contact]]``: a relay, and the channel that gets power or gas through it."""

    channel: str
    source: str
    off: StrictFloat | None = None
    feeds: tuple[str, ...] = ()
    adds: Adds | None = None

    @model_validator(mode="after")
    def _complete(self) -> Self:
        energises = bool(self.feeds) or self.adds is not None
        if energises != (self.off is not None):
            raise ValueError(Text("envelope.contact", channel=self.channel))
        return self


class CoolingRow(_Strict):
    """A ``[[cooling]]``: how fast a temperature of this line falls without heat."""

    channel: str
    lag_s: StrictFloat = Field(gt=0, le=3600)
    over_s: StrictFloat = Field(gt=0, le=3600)
    rise_max: StrictFloat = Field(gt=0)
    above: StrictFloat
    source: str


class ColdRow(_Strict):
    """The ``[cold]``: below it a tube may be touched, and a line that was hot may be left."""

    below: StrictFloat = 60.0
    unit: Literal["degC", "K", "degF"] = "degC"
    source: str = "may be touched (background knowledge)"


class LineFile(_Strict):
    """The envelope file of a whole line.

    Attributes:
        safe_procedure: The procedure that every run begins and ends with, and that answers each
            cause without one of its own (ruling 8). A line with one procedure need not name it.
        purge: The way of the purge proof; ``None`` where no rule asks for one.
    """

    line: str
    description: str
    safe_procedure: str = ""
    safety_envelope: SafetyEnvelope = Field(default_factory=SafetyEnvelope)
    quantities: dict[Literal["temperature", "pressure", "gas_flow_rate"], tuple[str, ...]] = Field(
        default_factory=dict
    )
    ambient: AmbientRow | None = None
    limit: tuple[LimitRow, ...]
    opening: tuple[OpeningRow, ...] = ()
    watch: tuple[WatchRow, ...]
    interlock: tuple[InterlockRow, ...] = ()
    trip: tuple[_TripRow, ...] = ()
    plausible: tuple[PlausibleRow, ...] = ()
    contact: tuple[ContactRow, ...] = ()
    cooling: tuple[CoolingRow, ...] = ()
    cold: ColdRow = ColdRow()
    procedures: dict[str, ProcedureRow] = Field(min_length=1)
    purge: PurgeRow | None = None

    @property
    def safe(self) -> str:
        """The procedure that every run begins and ends with; ``""`` where none is named."""
        return self.safe_procedure or self._only

    @property
    def contract(self) -> SafetyEnvelope:
        """HCP's safety envelope, in which the safe procedure answers what no other answers."""
        if not self.safe:
            return self.safety_envelope
        given = self.safety_envelope.emergency_procedures
        others = {cause: self.safe for cause in Cause if cause not in given}
        answers = {**given, **others}
        return self.safety_envelope.model_copy(update={"emergency_procedures": answers})

    @property
    def _only(self) -> str:
        *others, only = self.procedures
        return "" if others else only


class KindLimit(_Strict):
    """A limit of an instrument kind itself."""

    unit: str
    low: StrictFloat
    high: StrictFloat
    source: str


class KindLimits(_Strict):
    """The limits an instrument of one kind has by itself."""

    kind: str
    limits: dict[str, KindLimit] = Field(default_factory=dict)


T = TypeVar("T", bound=BaseModel)
R = TypeVar("R")

QUANTITY_UNITS = {  # HCP L3's unit: the house's unit, factor
    "temperature": {"celsius": (CELSIUS, 1.0)},
    "pressure": {"torr": ("Torr", 1.0)},  # absolute by now
    "gas_flow_rate": {"sccm": ("sccm", 1.0)},
}
NO_PURGE = Purge(volume_cm3=1.0, inert={}, present={}, outside="")
"""The purge of a line on which no rule asks for one: it proves nothing."""

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
            _read(
                Interlock,
                row,
                require=tuple(_condition(each, row.name) for each in row.require),
                above=_above(row),
            )
            for row in file.interlock
        ),
        watches={
            row.channel: _read(
                Watch, row, procedure=procedure_of[Cause.COMMUNICATION] if row.trips else ""
            )
            for row in file.watch
        },
        trips=(
            *(_read(TripRow, row, procedure=procedure_of[row.cause]) for row in file.trip),
            *_quantity_trips(file, limits, channels),
        ),
        procedures={
            name: _read(
                Procedure,
                row,
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
            )
            for name, row in file.procedures.items()
        },
        purge=_purge(file.purge, volume_cm3),
        procedure_of=procedure_of,
        plausible=tuple(
            _read(Plausible, row, procedure="" if row.warns else procedure_of[row.cause])
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


def _read(row: type[R], stated: BaseModel, **found: object) -> R:
    """Return a row of the kernel: the values of the file under its names, and those found here.

    A key that the file leaves out has the kernel's own value.
    """
    names = row.__annotations__.keys() & type(stated).model_fields.keys() - found.keys()
    given = {name: _kernels(getattr(stated, name)) for name in names}
    return row(**{name: value for name, value in given.items() if value is not None}, **found)


def _kernels(value: object) -> object:
    """Return a value of a file as the kernel has it: its bounds are the kernel's."""
    if isinstance(value, BoundRow):
        return value.read()
    if isinstance(value, dict):
        return {name: _kernels(each) for name, each in value.items()}
    return tuple(map(_kernels, value)) if isinstance(value, tuple) else value


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


def _purge(row: PurgeRow | None, volume_cm3: float | None) -> Purge:
    if row is None or volume_cm3 is None:
        return NO_PURGE
    fill, check = row.backfill, row.leak_check
    return _read(
        Purge,
        row,
        volume_cm3=volume_cm3,
        backfill=None if fill is None else _read(Backfill, fill),
        leak_check=None
        if check is None
        else _read(
            LeakCheck,
            check,
            isolated=tuple(each.read() for each in check.isolated + check.inlets),
            inlets=tuple(each.channel for each in check.inlets),
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
    return _read(
        Limit,
        row,
        high=high,
        readback=shown_by,
        moves=moves,
        resolution=math.inf if spec is None or itself is None else spec.resolution,
        own=itself or (),
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
        there = ", ".join(known)
        why = Text("envelope.parameter", quantity=quantity, unit=parameter.unit, known=there)
        raise EnvelopeInvalid(why)
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
