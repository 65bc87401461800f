"""The purge proof: inert gas counted by its meters, as tube volumes or as pump and backfill cycles.

By volumes. Two readings of a flow meter follow one another. At least this much gas passed between:

    passed (cm3) = the smaller of both flows (sccm) / 60 * the time between them (s)

One sccm is one cm3 a minute. A flow counts up to the setpoint that its controller shows, because a
meter may read garbage while nothing flows; and it counts for nothing while that setpoint is stale
or not confirmed. Nothing counts over a gap in which the reading grew stale. The gas that has passed
since a contaminant was last in the tube, over the volume of the tube, is the number of volumes.

By backfills. A cycle is pressure that was at most ``low`` and then reaches ``high``. It counts when
the gas that filled the tube went through the meters of inert gas. From the lowest pressure on:

    came in (cm3) = rise of the pressure / one atmosphere * volume of the tube (cm3)

Where the meters saw less than that, by more than the allowed share of the tube's volume, the rest
came from outside.
"""

import math
from dataclasses import dataclass

from labharness.safety.kernel.proofs.rows import Backfill, Purge
from labharness.safety.kernel.tracks import Track


@dataclass(slots=True, eq=False)
class Meter:
    """A flow meter of inert gas.

    Attributes:
        setpoint: The setpoint that its controller shows.
        counted_sccm: The part of its last reading that counts.
    """

    setpoint: Track
    counted_sccm: float = 0.0


class PurgeProof:
    """Counts the inert gas that has passed, and the cycles of pumping and backfilling.

    Args:
        row: How the proof is made.

    Attributes:
        passed_cm3: For each contaminant, inert gas measured since it was last in the tube.
        backfills: For each contaminant, pump and backfill cycles since then.
        pumped: The tube was pumped for a backfill, and nothing was let in since but inert gas.
        filled_from: Lowest pressure since the tube was filled last, that two readings one after the
            other agree on; ``inf`` while it is full.
        filled_cm3: Inert gas measured since that pressure, and at most what has come in; what more
            was measured went to the pump.
    """

    def __init__(self, row: Purge) -> None:
        self.passed_cm3 = dict.fromkeys(row.present, 0.0)
        self.backfills = dict.fromkeys(row.present, 0)
        self.pumped = False
        self.filled_from = math.inf
        self.filled_cm3 = 0.0
        self._row = row

    def restart(self, contaminant: str) -> None:
        """Count from nothing again, because a contaminant may be in the tube."""
        self.passed_cm3[contaminant] = 0.0
        self.backfills[contaminant] = 0
        self.pumped = False

    def volumes(self, contaminant: str) -> float:
        """Return the tube volumes that passed since the contaminant was last in the tube."""
        return self.passed_cm3[contaminant] / self._row.volume_cm3

    def holds(self, contaminant: str, volumes: float) -> bool:
        """Return whether so many volumes have passed, or the cycles that stand for them."""
        if self.volumes(contaminant) >= volumes:
            return True
        fill = self._row.backfill
        return fill is not None and self.backfills[contaminant] >= fill.cycles

    def count_flow(self, meter: Meter, track: Track, flow_sccm: float, now: float) -> None:
        """Count what passed a meter since its last reading, the track's."""
        setpoint, before_sccm = meter.setpoint, meter.counted_sccm
        known = setpoint.fresh(now) and not setpoint.unconfirmed
        meter.counted_sccm = min(flow_sccm, setpoint.value) if known else 0.0
        passed_cm3 = min(before_sccm, meter.counted_sccm) / 60 * (now - track.at_s)
        if track.fresh(now) and passed_cm3 > 0:
            self.filled_cm3 += passed_cm3
            for contaminant in self.passed_cm3:
                self.passed_cm3[contaminant] += passed_cm3

    def unmeasured_cm3(self, fill: Backfill, track: Track, pressure: float, now: float) -> float:
        """Return what has come in since the lowest pressure and no meter of inert gas saw."""
        risen_cm3 = (pressure - self.filled_from) / fill.atmosphere * self._row.volume_cm3
        measured_cm3 = self.filled_cm3 if track.fresh(now) else 0.0
        self.filled_cm3 = min(measured_cm3, max(risen_cm3, 0.0))
        return risen_cm3 - self.filled_cm3

    def count_cycle(self, fill: Backfill, track: Track, pressure: float) -> None:
        """Follow the pressure down to ``low`` and up to ``high``."""
        seen = max(pressure, track.value)  # one odd low reading is not yet a vacuum
        self.pumped = self.pumped or seen <= fill.low
        if seen < min(self.filled_from, fill.high):
            self.filled_from, self.filled_cm3 = seen, 0.0
        if pressure >= fill.high:
            for contaminant in self.backfills if self.pumped else ():
                self.backfills[contaminant] += 1
            self.pumped, self.filled_from = False, math.inf
