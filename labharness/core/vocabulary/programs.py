"""A temperature program that an instrument runs by itself: its segments, and the file format."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from labharness.core.vocabulary.spelling import did_you_mean
from labharness.core.vocabulary.texts import CodedError

SEGMENTS_MAX = 200  # more than any instrument stores; the driver states its own limit
VALUE_MAX = 1e6  # above any temperature, rate or dwell of a furnace
SEGMENT_KEYS = ("ramp_to_c", "at_c_per_min", "dwell_min", "step_to_c")
KEYS = ("title", "holdback_c", "segment")
TITLE_MAX = 200  # characters


class BadProgram(CodedError, ValueError, code="bad_program", usage=True):
    """A program that is not valid; the message names the place and the allowed values."""


@dataclass(frozen=True, slots=True)
class Segment:
    """One segment: a ramp to a target, a step to it, or a dwell at the last target.

    Attributes:
        target_c: Temperature at its end; ``None`` for a dwell.
        rate_c_per_min: Rate of a ramp; 0 for a step.
        dwell_s: Length of a dwell; 0 for the others.
    """

    target_c: float | None = None
    rate_c_per_min: float = 0.0
    dwell_s: float = 0.0

    def __str__(self) -> str:
        if self.target_c is None:
            return f"dwell of {self.dwell_s / 60:g} min"
        if self.rate_c_per_min:
            return f"ramp to {self.target_c:g} degC at {self.rate_c_per_min:g} degC/min"
        return f"step to {self.target_c:g} degC"

    def written(self) -> dict[str, float]:
        """Return the segment in the form of a program file."""
        if self.target_c is None:
            return {"dwell_min": self.dwell_s / 60}
        if self.rate_c_per_min:
            return {"ramp_to_c": self.target_c, "at_c_per_min": self.rate_c_per_min}
        return {"step_to_c": self.target_c}


@dataclass(frozen=True, slots=True)
class Program:
    """Segments in order. After the last one the controller returns to its own setpoint.

    Attributes:
        segments: At least one. The first is not a dwell, because its temperature would be unknown.
        holdback_c: The program waits while the temperature is further than this from its course; 0
            means that it never waits.
    """

    segments: tuple[Segment, ...]
    holdback_c: float = 0.0

    @property
    def highest_c(self) -> float:
        """The highest target temperature."""
        return max(each.target_c for each in self.segments if each.target_c is not None)

    def course(self) -> tuple[tuple[float, float], ...]:
        """Return each segment's last temperature and its rate (0 for step and dwell)."""
        found: list[tuple[float, float]] = []
        for each in self.segments:
            target_c = found[-1][0] if each.target_c is None else each.target_c
            found.append((target_c, each.rate_c_per_min))
        return tuple(found)

    def duration_s(self, from_c: float) -> float:
        """Return the duration from a start temperature, if the program never waits."""
        total_s, at_c = 0.0, from_c
        for each, (target_c, rate_c_per_min) in zip(self.segments, self.course(), strict=True):
            total_s += each.dwell_s
            total_s += abs(target_c - at_c) / rate_c_per_min * 60 if rate_c_per_min else 0.0
            at_c = target_c
        return total_s

    def written(self) -> dict[str, Any]:
        """Return the program in the form of a program file."""
        return {
            "holdback_c": self.holdback_c,
            "segment": [each.written() for each in self.segments],
        }


def read_program(table: object) -> Program:
    """Return the program in a table from a file or a message.

    Raises:
        BadProgram: Part of it is not valid; the message names the segment and the allowed values.
    """
    if not isinstance(table, Mapping):
        raise BadProgram("segments.table")
    _refuse_unknown(table, KEYS, "a program")
    title = table.get("title", "")
    if not isinstance(title, str) or len(title) > TITLE_MAX:
        raise BadProgram("segments.title", most=TITLE_MAX)
    rows = table.get("segment", [])
    if not isinstance(rows, list) or not 1 <= len(rows) <= SEGMENTS_MAX:
        raise BadProgram("segments.count", most=SEGMENTS_MAX)
    holdback_c = _number(table, "holdback_c", "holdback_c") if "holdback_c" in table else 0.0
    if holdback_c < 0:
        raise BadProgram("segments.holdback", holdback_c=holdback_c)
    segments = tuple(_segment(row, f"segment {n}") for n, row in enumerate(rows, 1))
    if segments[0].target_c is None:
        raise BadProgram("segments.first")
    return Program(segments, holdback_c)


def _segment(row: object, where: str) -> Segment:
    if not isinstance(row, Mapping):
        raise BadProgram("segments.row", where=where)
    _refuse_unknown(row, SEGMENT_KEYS, where)
    kinds = [each for each in ("ramp_to_c", "dwell_min", "step_to_c") if each in row]
    if len(kinds) != 1:
        raise BadProgram("segments.kinds", where=where, count=len(kinds))
    value = _number(row, kinds[0], where)
    if kinds[0] != "ramp_to_c" and "at_c_per_min" in row:
        raise BadProgram("segments.rate_only", where=where)
    if kinds[0] == "step_to_c":
        return Segment(value)
    if kinds[0] == "dwell_min":
        # Rounded to the microsecond: 31 s are 0.516666... min, and would come back as another
        # dwell.
        dwell_s = round(value * 60, 6)
        if dwell_s <= 0:
            raise BadProgram("segments.dwell", where=where, value=value)
        return Segment(None, 0.0, dwell_s)
    if "at_c_per_min" not in row:
        raise BadProgram("segments.no_rate", where=where)
    rate_c_per_min = _number(row, "at_c_per_min", where)
    if rate_c_per_min <= 0:
        raise BadProgram("segments.rate", where=where, rate=rate_c_per_min)
    return Segment(value, rate_c_per_min)


def _number(row: Mapping[str, object], name: str, where: str) -> float:
    value = row[name]
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise BadProgram("segments.number", where=where, name=name, found=str(value)[:40])
    if not abs(value) <= VALUE_MAX or not math.isfinite(value):  # also refuses NaN
        raise BadProgram("segments.up_to", where=where, name=name, most=VALUE_MAX)
    return float(value)


def _refuse_unknown(row: Mapping[Any, object], allowed: tuple[str, ...], where: str) -> None:
    for name in row:
        if name not in allowed:
            what = str(name)[:40]
            near = did_you_mean(what, allowed)
            raise BadProgram(
                "segments.unknown", where=where, what=what, near=near, known=", ".join(allowed)
            )
