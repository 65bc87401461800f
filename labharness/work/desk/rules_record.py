"""The limits of a run, written into its journal when it begins and drawn into its report."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from labharness.safety.kernel import Envelope
from labharness.work.capability import Planned
from labharness.work.desk.facts import LabFacts

LIMIT = ("channel", "readback", "unit", "low", "high", "source")
TRIP = ("name", "channel", "unit", "source")
"""Attributes of a limit and of a trip that are recorded as they are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """A value that a trace may not pass.

    Attributes:
        name: Its name in the envelope; the channel for the limit of a setpoint.
        channel: ``instrument.channel`` that is watched or set.
        unit: Unit of ``value``.
        value: The limit.
        trips: A reading beyond it trips; otherwise it warns, or limits a setpoint.
        below: It is a lower limit.
        source: Source of the number.
    """

    name: str
    channel: str
    unit: str
    value: float
    trips: bool
    below: bool
    source: str


@dataclass(frozen=True, slots=True)
class RecordedRules:
    """The rules of an envelope for a report.

    Attributes:
        units: Unit of each watched channel; ``""`` for switches and codes.
        setpoints: The channel that shows what was set, by the channel that can be set.
        bars: All finite limits.
    """

    units: Mapping[str, str]
    setpoints: Mapping[str, str]
    bars: tuple[Bar, ...]


def plan_record(planned: Planned, facts: LabFacts, envelope: Envelope) -> dict[str, Any]:
    """Return the record of a plan, with units and limits of its line."""
    return {
        "digest": planned.instructions.digest(),
        "instructions": planned.instructions.to_json(),
        "recipe": dict(planned.recipe),
        "duration_s": planned.duration_s,
        "lab_digest": facts.lab_digest,
        "envelope_digest": facts.envelope_digest,
        "rules": {
            "watched": dict(facts.watched),
            "limits": [_told(limit, LIMIT) for limit in envelope.limits.values() if limit.unit],
            "trips": [
                {
                    **_told(row, TRIP),
                    "low": row.low if math.isfinite(row.low) else None,
                    "high": row.high if math.isfinite(row.high) else None,
                    "warns_only": not row.procedure,
                }
                for row in envelope.trips
                if row.unit
            ],
        },
    }


def _told(row: object, names: Sequence[str]) -> dict[str, Any]:
    return {name: getattr(row, name) for name in names}


def read_rules(record: Mapping[str, Any]) -> RecordedRules:
    """Read the rules in the record of `plan_record`; a run without a plan has no rules."""
    return RecordedRules(
        units=dict(record.get("watched", {})),
        setpoints={
            row["channel"]: row["readback"] or row["channel"] for row in record.get("limits", ())
        },
        bars=tuple(_bars(record)),
    )


def _bars(record: Mapping[str, Any]) -> Iterator[Bar]:
    for row in record.get("trips", ()):
        same = {name: row[name] for name in TRIP}
        for below, value in ((True, row["low"]), (False, row["high"])):
            if value is not None:
                yield Bar(**same, value=value, trips=not row["warns_only"], below=below)
    for row in record.get("limits", ()):
        same = {"name": row["channel"], "channel": row["channel"], "unit": row["unit"]}
        yield Bar(**same, value=row["high"], trips=False, below=False, source=row["source"])
