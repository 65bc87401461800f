"""The leak check: how fast pressure rises in a tube that is evacuated and shut on all sides.

    leak = rise of the pressure * volume of the tube (cm3) / time (s)

The check is passed when that is at most ``leak_max`` after ``over_s``. It is failed at once when
more has come in than the largest leak would let in during the whole check, or when the pressure of
a shut tube passes ``below``.
"""

import math

from labharness.safety.kernel.proofs.rows import LeakCheck
from labharness.safety.kernel.tracks import Shown, Track, lacking


class LeakProof:
    """Watches the pressure, and remembers how the last check ended.

    Args:
        isolated: The conditions under which the tube is shut on all sides.
        volume_cm3: Volume of the tube.

    Attributes:
        tight: The last check was passed, and the tube was not open since.
        void: The event that voided the proofs since the last check; ``""`` for none.
        since_s: When the check under way began; ``inf`` while none is.
        first: The pressure that it began with. Before it begins this is the last pressure, or
            ``inf`` when the line has let something in since.
    """

    def __init__(self, isolated: Shown, volume_cm3: float) -> None:
        self._isolated = isolated
        self._volume_cm3 = volume_cm3
        self.tight = False
        self.void = ""
        self.since_s = math.inf
        self.first = math.nan

    def restart(self, first: float, now: float) -> None:
        """Begin a check, or with ``inf`` for the time wait for one."""
        self.first, self.since_s = first, now

    def take(self, check: LeakCheck, track: Track, pressure: float, now: float) -> None:
        """Take a reading of the pressure, the one after the track's."""
        shut = lacking(self._isolated, now) is None
        if not shut or pressure > check.below or not track.fresh(now):
            if shut and self.first <= check.below < pressure:
                self.tight = False  # a shut tube filled by itself
            self.restart(pressure, math.inf)
        elif self.since_s == math.inf:
            self.restart(pressure, now)
        else:
            came_in, time_s = (pressure - self.first) * self._volume_cm3, now - self.since_s
            if time_s >= check.over_s or came_in > check.leak_max * check.over_s:
                self.tight, self.void = came_in <= check.leak_max * time_s, ""
                self.since_s = math.inf
