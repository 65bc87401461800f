"""The limits of a run, written into its journal when it begins and drawn into its report."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from labharness.safety.kernel import Envelope

__all__ = ["Bar", "RecordedRules", "read_rules", "rules_record"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """A value that a trace may not pass.

    Attributes:
        name: What the envelope calls it; the channel for the limit of a setpoint.
        channel: ``instrument.channel`` that is watched or set.
        unit: Of ``value``.
        value: Where it lies.
        trips: A reading beyond it trips; otherwise it warns, or bounds what may be set.
        below: It lies below what it bounds.
        source: Where the number comes from.
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
    """What a report needs of an envelope.

    Attributes:
        units: Unit of each watched channel; ``""`` for switches and codes.
        setpoints: The channel that shows what was set, by the channel that can be set.
        bars: All finite limits.
    """

    units: Mapping[str, str]
    setpoints: Mapping[str, str]
    bars: tuple[Bar, ...]


def rules_record(envelope: Envelope, watched: Mapping[str, str]) -> dict[str, Any]:
    """Return the part of the ``planned`` record that names units and limits.

    Args:
        envelope: Of the line.
        watched: Unit of each watched channel.
    """
    return {
        "watched": dict(watched),
        "limits": [
            {
                "channel": limit.channel,
                "readback": limit.readback,
                "unit": limit.unit,
                "low": limit.low,
                "high": limit.high,
                "source": limit.source,
            }
            for limit in envelope.limits.values()
            if limit.unit
        ],
        "trips": [
            {
                "name": row.name,
                "channel": row.channel,
                "unit": row.unit,
                "low": row.low if math.isfinite(row.low) else None,
                "high": row.high if math.isfinite(row.high) else None,
                "warns_only": not row.procedure,
                "source": row.source,
            }
            for row in envelope.trips
            if row.unit
        ],
    }


def read_rules(record: Mapping[str, Any]) -> RecordedRules:
    """Read what `rules_record` wrote; of a run that planned nothing there are no rules."""
    return RecordedRules(
        units=dict(record.get("watched", {})),
        setpoints={
            row["channel"]: row["readback"] or row["channel"] for row in record.get("limits", ())
        },
        bars=tuple(_bars(record)),
    )


def _bars(record: Mapping[str, Any]) -> Iterator[Bar]:
    for row in record.get("trips", ()):
        for below, value in ((True, row["low"]), (False, row["high"])):
            if value is not None:
                yield Bar(
                    name=row["name"],
                    channel=row["channel"],
                    unit=row["unit"],
                    value=value,
                    trips=not row["warns_only"],
                    below=below,
                    source=row["source"],
                )
    for row in record.get("limits", ()):
        yield Bar(
            name=row["channel"],
            channel=row["channel"],
            unit=row["unit"],
            value=row["high"],
            trips=False,
            below=False,
            source=row["source"],
        )
