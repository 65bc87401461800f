"""The envelope of a line: all its rows, checked against each other.

Everything here is data. A thing that is not written in the envelope is refused.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from labharness.core.vocabulary import Cause
from labharness.safety.kernel.conditions import Bound, EnvelopeInvalid
from labharness.safety.kernel.proofs.rows import LeakTight, Purge
from labharness.safety.kernel.rows import Interlock, Limit, Plausible, Procedure, TripRow, Watch

__all__ = ["Envelope"]


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
        missing = ((who, {*names}.difference(table)) for who, table, names in self._named())
        wrong = [f"{who} {name!r}" for who, names in missing for name in sorted(names)]
        if wrong:
            raise EnvelopeInvalid(f"{'; '.join(wrong)}, which this envelope does not have")

    def _named(self) -> Iterable[tuple[str, Collection[str], Iterable[str]]]:
        """Return each row that names others, the table they must be in, and their names."""
        purge, watches, check = self.purge, self.watches, self.purge.leak_check
        for row in self.interlocks:
            who = f"interlock {row.name!r}"
            yield f"{who} guards", self.limits, row.guards
            yield f"{who} relies on", watches, _channels((*row.require, *row.forbid, row.during))
            proofs = [each.contaminant for each in row.require if not isinstance(each, Bound)]
            yield f"{who} asks", purge.present, proofs
            tight = [each.contaminant for each in row.require if isinstance(each, LeakTight)]
            yield f"{who} asks for a leak check since", [purge.outside] if check else [], tight
            yield f"{who} runs", self.procedures, filter(None, [row.on_loss])
        alarms: tuple[TripRow | Plausible, ...] = (*self.trips, *self.plausible)
        for trip in alarms:
            yield f"{trip.name!r} watches", watches, [trip.channel]
            yield f"{trip.name!r} runs", self.procedures, filter(None, [trip.procedure])
        for plausible in self.plausible:
            seen = [plausible.agrees_with, *_channels((*plausible.during, plausible.expects))]
            yield f"{plausible.name!r} relies on", watches, filter(None, seen)
        for limit in self.limits.values():
            if limit.on_foreign:
                relied = [limit.readback or limit.channel, *_channels([limit.foreign_while])]
                yield f"limit {limit.channel} runs", self.procedures, [limit.on_foreign]
                yield f"limit {limit.channel} relies on", watches, relied
        for watch in watches.values():
            yield f"watch {watch.channel} runs", self.procedures, filter(None, [watch.procedure])
        yield "the purge proof counts", watches, (*purge.inert, *purge.inert.values())
        yield "a contaminant is seen by", watches, _channels(sum(purge.present.values(), ()))
        gauges = [each.channel for each in (purge.backfill, check) if each]
        yield "pressure is seen by", watches, gauges
        yield "the leak check relies on", watches, _channels(check.isolated if check else ())
        yield "what is outside is", purge.present, filter(None, [purge.outside])
        for procedure in self.procedures.values():
            who = f"procedure {procedure.name!r}"
            yield f"{who} asks", watches, _channels((*procedure.when, procedure.unless))
            yield f"{who} gives way to", self.procedures, filter(None, [procedure.instead])
            yield f"{who} sets", self.limits, [step.channel for step in procedure.steps]


def _channels(conditions: Iterable[object]) -> list[str]:
    return [each.channel for each in conditions if isinstance(each, Bound)]
