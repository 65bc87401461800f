"""The envelope of a line: all its rows, checked against each other.

Everything here is data. A thing that is not written in the envelope is refused.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from labharness.core.vocabulary import Cause
from labharness.core.vocabulary.texts import Text, several
from labharness.safety.kernel.conditions import Bound, EnvelopeInvalid
from labharness.safety.kernel.proofs.rows import LeakTight, Purge
from labharness.safety.kernel.rows import Interlock, Limit, Plausible, Procedure, TripRow, Watch


@dataclass(frozen=True, slots=True, kw_only=True)
class Envelope:
    """All rules of one line."""

    line: str
    limits: Mapping[str, Limit]
    interlocks: tuple[Interlock, ...]
    watches: Mapping[str, Watch]
    trips: tuple[TripRow, ...]
    procedures: Mapping[str, Procedure]
    purge: Purge
    procedure_of: Mapping[Cause, str]
    plausible: tuple[Plausible, ...] = ()

    def __post_init__(self) -> None:
        wrong = [
            Text("envelope.names", who=Text(code, who=who), name=name)
            for code, who, table, names in self._named()
            for name in sorted({*names}.difference(table))
        ]
        if wrong:
            raise EnvelopeInvalid(Text("envelope.lacks", missing=several(*wrong)))

    def _named(self) -> Iterable[tuple[str, str, Collection[str], Iterable[str]]]:
        """Return the code of each reference, its row, the table it must be in, and the names."""
        purge, watches, check = self.purge, self.watches, self.purge.leak_check
        for row in self.interlocks:
            who = f"interlock {row.name!r}"
            yield "envelope.guards", who, self.limits, row.guards
            relied = _channels((*row.require, *row.forbid, row.during))
            yield "envelope.relies", who, watches, relied
            proofs = [each.contaminant for each in row.require if not isinstance(each, Bound)]
            yield "envelope.asks", who, purge.present, proofs
            tight = [each.contaminant for each in row.require if isinstance(each, LeakTight)]
            yield "envelope.asks_tight", who, [purge.outside] if check else [], tight
            yield "envelope.runs", who, self.procedures, filter(None, [row.on_loss])
        alarms: tuple[TripRow | Plausible, ...] = (*self.trips, *self.plausible)
        for trip in alarms:
            yield "envelope.watches", repr(trip.name), watches, [trip.channel]
            yield "envelope.runs", repr(trip.name), self.procedures, filter(None, [trip.procedure])
        for plausible in self.plausible:
            seen = [plausible.agrees_with, *_channels((*plausible.during, plausible.expects))]
            yield "envelope.relies", repr(plausible.name), watches, filter(None, seen)
        for limit in self.limits.values():
            if limit.on_foreign:
                relied = [limit.shown_by[0], *_channels([limit.foreign_while])]
                yield "envelope.runs", f"limit {limit.channel}", self.procedures, [limit.on_foreign]
                yield "envelope.relies", f"limit {limit.channel}", watches, relied
        for watch in watches.values():
            who = f"watch {watch.channel}"
            yield "envelope.runs", who, self.procedures, filter(None, [watch.procedure])
        yield "envelope.purge_counts", "", watches, (*purge.inert, *purge.inert.values())
        yield "envelope.contaminant", "", watches, _channels(sum(purge.present.values(), ()))
        gauges = [each.channel for each in (purge.backfill, check) if each]
        yield "envelope.gauge", "", watches, gauges
        yield "envelope.leak_relies", "", watches, _channels(check.isolated if check else ())
        yield "envelope.outside", "", purge.present, filter(None, [purge.outside])
        for procedure in self.procedures.values():
            who = f"procedure {procedure.name!r}"
            yield "envelope.asks", who, watches, _channels((*procedure.when, procedure.unless))
            yield "envelope.gives_way", who, self.procedures, filter(None, [procedure.instead])
            yield "envelope.sets", who, self.limits, [step.channel for step in procedure.steps]


def _channels(conditions: Iterable[object]) -> list[str]:
    return [each.channel for each in conditions if isinstance(each, Bound)]
