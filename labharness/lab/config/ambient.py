"""Converts an envelope's pressures to absolute ones, by the pressure of the room.

Quartz and O-rings fail by the difference to the room, a purge counts absolute pressure; so each
pressure of an envelope file says in its unit which one it is, ``Torr gauge`` or ``Torr absolute``.
The kernel compares absolute readings, and knows nothing of rooms.
"""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from labharness.core.vocabulary.texts import Text
from labharness.core.vocabulary.units import ATMOSPHERE_TORR
from labharness.lab.config.envelopes import BoundRow, LineFile, Parameter
from labharness.lab.config.wires import Finding
from labharness.line import Room
from labharness.safety.kernel import Envelope, EnvelopeInvalid

T = TypeVar("T", bound=BaseModel)

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
GAUGE, ABSOLUTE = " gauge", " absolute"
PARAMETER_TORR = {"atm": ATMOSPHERE_TORR, "torr": 1.0}
"""HCP's units of a pressure; without more they are absolute, as HCP L3's own example has them."""


def absolute(line: LineFile, units: Mapping[str, str], ambient_torr: float) -> LineFile:
    """Return a line's rules with every pressure absolute, in its channel's own unit.

    Args:
        line: As its file states them.
        units: Unit of each channel of the line.
        ambient_torr: Pressure of the room.

    Raises:
        EnvelopeInvalid: A pressure does not say which one it is, or another quantity does.
    """
    room = _Room(units, ambient_torr)
    purge, contract = line.purge, line.safety_envelope
    fill, check = (purge.backfill, purge.leak_check) if purge else (None, None)
    if fill is not None:
        fill = fill.model_copy(
            update={
                "low": room.value(fill.channel, fill.low, fill.low_unit, "purge.backfill.low"),
                "high": room.value(fill.channel, fill.high, fill.high_unit, "purge.backfill.high"),
            }
        )
    if check is not None:
        where = "purge.leak_check.below"
        below = room.value(check.channel, check.below, check.below_unit, where)
        check = room.rows(check.model_copy(update={"below": below}), "purge.leak_check")
    parameters = {
        name: room.parameter(row) if name == "pressure" else row
        for name, row in contract.parameters.items()
    }
    return line.model_copy(
        update={
            "safety_envelope": contract.model_copy(update={"parameters": parameters}),
            "limit": tuple(room.rows(row, f"limit {row.channel}") for row in line.limit),
            "interlock": tuple(room.rows(row, f"interlock {row.name!r}") for row in line.interlock),
            "plausible": tuple(room.rows(row, f"plausible {row.name!r}") for row in line.plausible),
            "trip": tuple(room.trip(row) for row in line.trip),
            "procedures": {
                name: room.rows(row, f"procedure {name!r}") for name, row in line.procedures.items()
            },
            "purge": purge
            and purge.model_copy(
                update={
                    "backfill": fill,
                    "leak_check": check,
                    "present": {
                        name: tuple(room.bound(row, f"purge.present.{name}") for row in rows)
                        for name, rows in purge.present.items()
                    },
                }
            ),
            "ambient": None if line.ambient is None else room.rows(line.ambient, "ambient"),
        }
    )


def in_the_room(
    line: LineFile, units: Mapping[str, str], stated_torr: float | None
) -> tuple[LineFile, float | None]:
    """Return a line's rules, absolute, and the room's pressure (Torr) if known or not needed.

    A room that is not stated counts as sea level, and with that the line is not armed.

    Raises:
        EnvelopeInvalid: As ``absolute`` does.
    """
    if stated_torr is not None:
        return absolute(line, units, stated_torr), stated_torr
    here = absolute(line, units, ATMOSPHERE_TORR)
    is_no_matter = here == absolute(line, units, ATMOSPHERE_TORR / 2)
    return here, ATMOSPHERE_TORR if is_no_matter else None


def room_of(
    line: LineFile, ambient_torr: float | None, envelope: Envelope, units: Mapping[str, str]
) -> Room:
    """Return the facts about the room, in the unit of the gauge that shows it.

    Raises:
        EnvelopeInvalid: The gauge, or the channel that shows the tube open, is not watched.
    """
    row = line.ambient
    if row is None:
        return Room(ambient=ambient_torr)
    for channel in (row.channel, *(each.channel for each in row.during)):
        if channel not in envelope.watches:
            raise EnvelopeInvalid(Text("ambient.not_watched", channel=channel))
    ambient = in_unit(ambient_torr or 0.0, units[row.channel], f"ambient: {row.channel}")
    return Room(
        ambient=None if ambient_torr is None else ambient,
        channel=row.channel,
        during=tuple(each.read() for each in row.during),
        differ_max=row.differ_max,
    )


def unknown_room(room: Room) -> tuple[Finding, ...]:
    """Find that pressures are stated against a room whose pressure is not stated."""
    if room.ambient is not None:
        return ()
    what = Text("ambient.missing")
    paste = Text("ambient.paste")
    return (Finding("lab.ambient_torr", what, paste),)


def in_unit(pressure_torr: float, unit: str, where: str) -> float:
    """Return a pressure in the unit of a gauge.

    Raises:
        EnvelopeInvalid: The unit is not a unit of pressure.
    """
    if unit not in TORR_PER:
        raise EnvelopeInvalid(
            Text("ambient.unit", where=where, unit=unit, known=", ".join(TORR_PER))
        )
    return pressure_torr / TORR_PER[unit]


@dataclass(frozen=True, slots=True)
class _Room:
    units: Mapping[str, str]
    ambient_torr: float

    def value(self, channel: str, value: float, said: str | None, where: str) -> float:
        """Return one number in the channel's own unit, absolute where it is a pressure."""
        unit = self.units.get(channel, "")
        if unit not in TORR_PER:
            if said not in (None, unit):
                raise EnvelopeInvalid(
                    Text("ambient.other_unit", where=where, channel=channel, unit=unit, said=said)
                )
            return value
        if said == unit + GAUGE:
            return value + in_unit(self.ambient_torr, unit, where)
        if said != unit + ABSOLUTE:
            stands = (
                Text("ambient.no_unit") if said is None else Text("ambient.its_unit", said=said)
            )
            raise EnvelopeInvalid(
                Text(
                    "ambient.pressure",
                    where=where,
                    channel=channel,
                    stands=stands,
                    unit=unit + GAUGE,
                    unit2=unit + ABSOLUTE,
                )
            )
        return value

    def bound(self, row: BoundRow, where: str) -> BoundRow:
        """Return one bound."""
        low, high = (
            None if each is None else self.value(row.channel, each, row.unit, where)
            for each in (row.at_least, row.at_most)
        )
        return row.model_copy(update={"at_least": low, "at_most": high, "unit": None})

    def rows(self, row: T, where: str) -> T:
        """Return a row with each bound in it, alone, in a list, or not read yet."""
        inside = {name: getattr(row, name) for name in type(row).model_fields}
        return row.model_copy(
            update={name: self._inside(value, where) for name, value in inside.items()}
        )

    def _inside(self, value: Any, where: str) -> Any:  # noqa: ANN401 - whatever a row holds
        if isinstance(value, BoundRow):
            return self.bound(value, where)
        if isinstance(value, tuple):
            return tuple(self._inside(each, where) for each in value)
        if isinstance(value, dict) and "channel" in value:
            with suppress(ValidationError):  # the next reader of the row reports the fault
                read = BoundRow.model_validate(value)
                return self.bound(read, where).model_dump(exclude_none=True)
        return value

    def trip(self, row: Any) -> Any:  # noqa: ANN401 - a private row of the envelope's file
        """Return a trip row; its unit is checked against the channel's own elsewhere."""
        if self.units.get(row.channel, "") not in TORR_PER:
            return row
        low, high = (
            None if each is None else self.value(row.channel, each, row.unit, f"trip {row.name!r}")
            for each in (row.low, row.high)
        )
        return row.model_copy(update={"low": low, "high": high, "unit": self.units[row.channel]})

    def parameter(self, row: Parameter) -> Parameter:
        """Return HCP's own parameter of pressures, in Torr."""
        unit, _, said = row.unit.partition(" ")
        if unit not in PARAMETER_TORR or said not in ("", "gauge", "absolute"):
            known = ", ".join(f"{each}{more}" for each in PARAMETER_TORR for more in ("", GAUGE))
            raise EnvelopeInvalid(Text("ambient.parameter", unit=row.unit, known=known))
        against_torr = self.ambient_torr if said == "gauge" else 0.0
        most = row.max * PARAMETER_TORR[unit] + against_torr
        return row.model_copy(update={"max": most, "unit": "torr"})
