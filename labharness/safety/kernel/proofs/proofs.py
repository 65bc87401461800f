"""Both proofs of a line: what adds to them, what takes them back, and whether they hold now.

A contaminant *may be* in the tube while one of the states that let it in may be so. As long as
that lasts nothing is proven about it, and what was counted before counts no more. Air is all
around: what lets it in takes the leak check back as well.
"""

import math
from collections.abc import Callable

from labharness.core.vocabulary.texts import Said, Text
from labharness.safety.kernel.conditions import Bound
from labharness.safety.kernel.proofs.leak import LeakProof
from labharness.safety.kernel.proofs.purged import Meter, PurgeProof
from labharness.safety.kernel.proofs.rows import Backfill, LeakTight, Proof, Purge
from labharness.safety.kernel.tracks import Shown, Track, may_be


class Proofs:
    """The proofs of one line.

    Args:
        row: How they are made.
        track: Finds the track of a channel.
        shown: Puts bounds beside their tracks, and counts when their truth changes.

    Attributes:
        present: For each contaminant the states in which it may be in the tube.
        purged: Inert gas that has passed.
        leak: The leak check.
    """

    def __init__(
        self,
        row: Purge,
        track: Callable[[str], Track],
        shown: Callable[[tuple[Bound, ...]], Shown],
    ) -> None:
        fill, check = row.backfill, row.leak_check
        self.present = {contaminant: shown(states) for contaminant, states in row.present.items()}
        self.purged = PurgeProof(row)
        isolated = tuple((each, track(each.channel)) for each in (check.isolated if check else ()))
        self.leak = LeakProof(isolated, row.volume_cm3)
        self._row = row
        self._meters = {meter: Meter(track(setpoint)) for meter, setpoint in row.inert.items()}
        self._shows: dict[str, list[tuple[str, Bound]]] = {}
        for contaminant, states in row.present.items():
            for state in states:
                self._shows.setdefault(state.channel, []).append((contaminant, state))
        for channel in (*row.inert, *self._shows, *(g.channel for g in (fill, check) if g)):
            track(channel).proves = True

    def see(self, track: Track, value: float, now: float) -> None:
        """Take a reading of a channel that proves something, before it is the track's."""
        fill, check = self._row.backfill, self._row.leak_check
        meter = self._meters.get(track.channel)
        if meter is not None:
            self.purged.count_flow(meter, track, value, now)
        if fill is not None and track.channel == fill.channel:
            self._fill(fill, track, value, now)
        if check is not None and track.channel == check.channel:
            self.leak.take(check, track, value, now)
        for contaminant, state in self._shows.get(track.channel, ()):
            if state.holds(value) or not track.fresh(now):
                self.take_back(contaminant)

    def sent(self, channel: str, value: float) -> None:
        """Notice before its bytes leave what a command lets into the tube."""
        for contaminant, state in self._shows.get(channel, ()):
            if state.holds(value):
                self.take_back(contaminant)
        check = self._row.leak_check
        if check is not None and channel in check.inlets:
            self.leak.restart(math.inf, math.inf)  # gas that is let in is not a leak

    def tick(self, now: float) -> None:
        """Take back what is no longer known: a channel that is silent shows nothing."""
        for contaminant, states in self.present.items():
            if may_be(states, now) is not None:
                self.take_back(contaminant)

    def take_back(self, contaminant: str) -> None:
        """Take back every proof about a contaminant, because it may be in the tube."""
        self.purged.restart(contaminant)
        if contaminant == self._row.outside:
            self.leak.tight = False

    def hold(self, proof: Proof, now: float) -> bool:
        """Return whether something is proven."""
        if isinstance(proof, LeakTight):
            proven = self.leak.tight
        else:
            proven = self.purged.holds(proof.contaminant, proof.volumes)
        return proven and may_be(self.present[proof.contaminant], now) is None

    def found(self, proof: Proof) -> Said | str:
        """Return how far a proof has come, for a refusal."""
        if isinstance(proof, LeakTight):
            return self.leak.void or Said("leak.none")
        fills = self.purged.backfills[proof.contaminant]
        backfills = Said("purge.backfills", count=fills) if self._row.backfill else ""
        volumes = self.purged.volumes(proof.contaminant)
        return Said("purge.found", volumes=volumes, backfills=backfills)

    def _fill(self, fill: Backfill, track: Track, pressure: float, now: float) -> None:
        share, volume_cm3 = fill.unmeasured_max, self._row.volume_cm3
        if self.purged.unmeasured_cm3(fill, track, pressure, now) > share * volume_cm3:
            self.take_back(self._row.outside)
            self.leak.void = Text("leak.unmeasured", share=share, volume=volume_cm3)
        self.purged.count_cycle(fill, track, pressure)
