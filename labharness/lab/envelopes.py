"""Reading envelope files: strict tables in, one frozen ``kernel.Envelope`` out.

This is a face: units are converted here, so that the kernel only compares.
"""

import math
from collections.abc import Mapping
from typing import Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from labharness.kernel import (
    AtLeast,
    AtMost,
    Bound,
    Condition,
    Envelope,
    EnvelopeInvalid,
    Interlock,
    Limit,
    Procedure,
    Purge,
    PurgedOf,
    Role,
    Step,
    TripRow,
    Watch,
)
from labharness.lab.tables import BadTable, read_table
from labharness.vocabulary import Cause

__all__ = [
    "KindLimits",
    "LineFile",
    "SafetyEnvelope",
    "build_envelope",
    "parse_kind",
    "parse_line",
]

T = TypeVar("T", bound=BaseModel)

PROHIBITED_ACTIONS = ("simultaneous_gas_mixing_without_purge",)
PROCEDURES = ("immediate_shutdown", "close_all_valves_and_alert", "relieve_pressure")
TORR_PER_ATM = 760.0  # definition of the torr, CGPM 1954
QUANTITY_UNITS = {  # HCP L3's unit: the house's unit, factor
    "temperature": {"celsius": ("degC", 1.0)},
    "pressure": {"atm": ("Torr", TORR_PER_ATM), "torr": ("Torr", 1.0)},
    "gas_flow_rate": {"sccm": ("sccm", 1.0)},
}
QUANTITY_CAUSES = {
    "temperature": Cause.OVER_TEMPERATURE,
    "pressure": Cause.OVER_PRESSURE,
    "gas_flow_rate": Cause.OVER_FLOW,
}


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=False, allow_inf_nan=False)


class Parameter(_Strict):
    """One row of HCP L3's ``parameters``."""

    max: float
    unit: str
    hard_limit: bool
    source: str = "HCP safety envelope"


class SafetyEnvelope(_Strict):
    """HCP L3's ``safety_envelope``, with its names checked."""

    parameters: dict[Literal["temperature", "pressure", "gas_flow_rate"], Parameter]
    prohibited_actions: tuple[Literal[PROHIBITED_ACTIONS], ...] = ()  # type: ignore[valid-type]  # one list of names
    emergency_procedures: dict[Cause, Literal[PROCEDURES]] = Field(default_factory=dict)  # type: ignore[valid-type]

    def to_json(self) -> dict[str, Any]:
        """Give it as HCP L3 writes it."""
        said: dict[str, Any] = self.model_dump(mode="json")
        for parameter in said["parameters"].values():
            del parameter["source"]
        return said


class _LimitRow(_Strict):
    channel: str
    unit: str
    low: float
    high: float
    source: str
    role: Role = Role.OPERATE
    step_max: float | None = None


class _ConditionRow(_Strict):
    channel: str | None = None
    at_least: float | None = None
    at_most: float | None = None
    purged_of: str | None = None
    volumes: float | None = None

    def condition(self) -> Condition:
        if self.purged_of is not None and self.volumes is not None and self.channel is None:
            return PurgedOf(self.purged_of, self.volumes)
        return self.bound()

    def bound(self) -> Bound:
        if self.channel is not None and self.purged_of is None:
            if self.at_least is not None and self.at_most is None:
                return AtLeast(self.channel, self.at_least)
            if self.at_most is not None and self.at_least is None:
                return AtMost(self.channel, self.at_most)
        raise EnvelopeInvalid(
            "a condition is {channel, at_least}, {channel, at_most} or {purged_of, volumes}; "
            f"got {self.model_dump(exclude_none=True)}"
        )


class _InterlockRow(_Strict):
    name: str
    guards: tuple[str, ...]
    require: tuple[_ConditionRow, ...]
    source: str
    above: float | None = None
    below: float | None = None
    on_loss: str = ""
    prohibits: str = ""


class _WatchRow(_Strict):
    channel: str
    stale_s: float
    trips: bool = True


class _TripRow(_Strict):
    name: str
    channel: str
    cause: Cause
    unit: str
    source: str
    low: float | None = None
    high: float | None = None


class _ProcedureRow(_Strict):
    wire_s_max: float
    verify_s_max: float
    steps: tuple[tuple[str, float] | tuple[str, float, Literal["optional"]], ...]
    when: _ConditionRow | None = None
    instead: str = ""


class _PurgeRow(_Strict):
    inert: tuple[str, ...]
    present: dict[str, _ConditionRow]
    source: str


class LineFile(_Strict):
    """The envelope file of a whole line."""

    line: str
    description: str
    safety_envelope: SafetyEnvelope
    quantities: dict[Literal["temperature", "pressure", "gas_flow_rate"], tuple[str, ...]]
    limit: tuple[_LimitRow, ...]
    watch: tuple[_WatchRow, ...]
    interlock: tuple[_InterlockRow, ...]
    trip: tuple[_TripRow, ...]
    procedures: dict[str, _ProcedureRow]
    purge: _PurgeRow


class _KindLimit(_Strict):
    unit: str
    low: float
    high: float
    source: str


class KindLimits(_Strict):
    """The limits an instrument of one kind has by itself."""

    kind: str
    limits: dict[str, _KindLimit] = Field(default_factory=dict)


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
    readbacks: Mapping[str, str],
    *,
    volume_cm3: float,
) -> Envelope:
    """Make the kernel's envelope of a line.

    Args:
        file: The line's rules.
        kinds: For each instrument on the line its own limits.
        readbacks: For each settable channel the channel that shows what was set.
        volume_cm3: Volume of the tube, as the lab file states it.

    Raises:
        EnvelopeInvalid: A rule contradicts an instrument's own limits, or another rule.
    """
    procedure_of = file.safety_envelope.emergency_procedures
    for cause in Cause:
        if cause not in procedure_of:
            raise EnvelopeInvalid(f"emergency_procedures has no procedure for {cause.value!r}")
    for action in file.safety_envelope.prohibited_actions:
        if not any(row.prohibits == action for row in file.interlock):
            raise EnvelopeInvalid(f"no interlock says that it prohibits {action!r}")
    limits = {row.channel: _limit(row, file, kinds, readbacks) for row in file.limit}
    if len(limits) != len(file.limit):
        raise EnvelopeInvalid("a channel has two limits")
    units = {channel: limit.unit for channel, limit in limits.items()}
    return Envelope(
        line=file.line,
        limits=limits,
        interlocks=tuple(
            Interlock(
                name=row.name,
                guards=row.guards,
                require=tuple(each.condition() for each in row.require),
                source=row.source,
                above=_above(row),
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
        trips=(*_declared_trips(file), *_quantity_trips(file, limits)),
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
                when=None if row.when is None else row.when.bound(),
                instead=row.instead,
            )
            for name, row in file.procedures.items()
        },
        purge=Purge(
            volume_cm3=volume_cm3,
            inert=file.purge.inert,
            present={name: row.bound() for name, row in file.purge.present.items()},
        ),
        procedure_of=procedure_of,
    )


def _limit(
    row: _LimitRow,
    file: LineFile,
    kinds: Mapping[str, KindLimits],
    readbacks: Mapping[str, str],
) -> Limit:
    instrument, _, channel = row.channel.partition(".")
    kind = kinds.get(instrument)
    own = kind.limits.get(channel) if kind is not None else None
    if kind is None or own is None:
        raise EnvelopeInvalid(f"limit {row.channel}: no instrument on this line can be set so")
    if own.unit != row.unit or not own.low <= row.low <= row.high <= own.high:
        raise EnvelopeInvalid(
            f"limit {row.channel}: {row.low:g} to {row.high:g} {row.unit} is not within what "
            f"{kind.kind} allows, {own.low:g} to {own.high:g} {own.unit}"
        )
    high = row.high
    for quantity, parameter in file.safety_envelope.parameters.items():
        if row.channel in file.quantities.get(quantity, ()) and parameter.hard_limit:
            high = min(high, _in_house_units(quantity, parameter)[0])
    return Limit(
        channel=row.channel,
        unit=row.unit,
        low=row.low,
        high=high,
        source=row.source,
        role=row.role,
        step_max=math.inf if row.step_max is None else row.step_max,
        readback=readbacks.get(row.channel, ""),
    )


def _above(row: _InterlockRow) -> float:
    """A row with only ``below`` stands before no command upwards."""
    if row.above is not None:
        return row.above
    return 0.0 if row.below is None else math.inf


def _declared_trips(file: LineFile) -> tuple[TripRow, ...]:
    return tuple(
        TripRow(
            name=row.name,
            channel=row.channel,
            cause=row.cause,
            procedure=file.safety_envelope.emergency_procedures[row.cause],
            unit=row.unit,
            source=row.source,
            low=-math.inf if row.low is None else row.low,
            high=math.inf if row.high is None else row.high,
        )
        for row in file.trip
    )


def _quantity_trips(file: LineFile, limits: Mapping[str, Limit]) -> tuple[TripRow, ...]:
    """Ruling 8: a parameter applies to every channel of its quantity, each by itself."""
    rows: list[TripRow] = []
    contract = file.safety_envelope
    for quantity, channels in file.quantities.items():
        parameter = contract.parameters.get(quantity)
        if parameter is None:
            continue
        high, unit = _in_house_units(quantity, parameter)
        cause = QUANTITY_CAUSES[quantity]
        rows.extend(
            TripRow(
                name=f"{quantity} above the safety envelope",
                channel=channel,
                cause=cause,
                procedure=contract.emergency_procedures[cause] if parameter.hard_limit else "",
                unit=unit,
                source=parameter.source,
                high=high,
            )
            for channel in channels
            if channel not in limits
        )
    return tuple(rows)


def _in_house_units(quantity: str, parameter: Parameter) -> tuple[float, str]:
    known = QUANTITY_UNITS[quantity]
    if parameter.unit not in known:
        raise EnvelopeInvalid(
            f"parameters.{quantity}: unit {parameter.unit!r} is not one of {', '.join(known)}"
        )
    unit, factor = known[parameter.unit]
    return parameter.max * factor, unit


def _parse(model: type[T], text: str, where: str) -> T:
    try:
        return read_table(model, text, where)
    except BadTable as why:
        raise EnvelopeInvalid(str(why)) from None
