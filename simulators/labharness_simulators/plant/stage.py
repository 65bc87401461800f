"""The microscope's stage: a position that moves at a finite speed."""

import math


class MicroscopeStage:
    """A three-axis stage that moves in a straight line at 5 mm/s.

    The plant's step sets the time, or more finely a face through `advance_to`; both count seconds
    from the plant's start. A time before the latest one changes nothing.
    """

    __slots__ = ("_now_s", "_position_um", "_target_um")

    SPEED_UM_PER_S = 5_000.0

    def __init__(self) -> None:
        self._now_s = 0.0
        self._position_um = (0.0, 0.0, 0.0)
        self._target_um = (0.0, 0.0, 0.0)

    @property
    def position_um(self) -> tuple[float, float, float]:
        """The measured position x, y and z in um."""
        return self._position_um

    @property
    def moving(self) -> bool:
        """True until the target is reached."""
        return self._position_um != self._target_um

    def move_to(self, x_um: float, y_um: float, z_um: float) -> None:
        """Start a move to a position in um.

        Raises:
            ValueError: a coordinate is not finite.
        """
        if not all(map(math.isfinite, (x_um, y_um, z_um))):
            raise ValueError(f"stage: asked for {(x_um, y_um, z_um)} um; coordinates are finite")
        self._target_um = (float(x_um), float(y_um), float(z_um))

    def stop(self) -> None:
        """Stop at the present position."""
        self._target_um = self._position_um

    def advance_to(self, now_s: float) -> None:
        """Move until `now_s`."""
        elapsed_s = now_s - self._now_s
        if elapsed_s <= 0.0:
            return
        self._now_s = now_s
        if self._position_um == self._target_um:
            return
        distance_um = math.dist(self._position_um, self._target_um)
        reach_um = elapsed_s * self.SPEED_UM_PER_S
        if reach_um >= distance_um:
            self._position_um = self._target_um
            return
        share = reach_um / distance_um
        x, y, z = (
            here + (there - here) * share
            for here, there in zip(self._position_um, self._target_um, strict=True)
        )
        self._position_um = (x, y, z)
