"""The grown film: triangles on one square millimetre, looked up by position."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from labharness_simulators.plant.growth import TRIANGLE

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

HALF_WIDTH_UM = 500.0
MARGIN_UM_MAX = 250.0  # nuclei this far outside still reach the sample
TRIANGLES_MAX = 20_000  # per layer
CLOSED_AREA = 12.0  # at this extended area less than 1e-5 stays bare
CROWDED_AREA = 2.0  # above it the next layer may start anywhere on this one
BURN_RADIUS_UM = 1.0
BURNS_MAX = 1_000


@dataclass(frozen=True, slots=True)
class _Triangles:
    """The triangles of one layer: centres, the radii of their inscribed circles, orientations."""

    x_um: NDArray[np.float64]
    y_um: NDArray[np.float64]
    inner_um: NDArray[np.float64]
    angle: NDArray[np.float64]

    def cover(self, x_um: float, y_um: float) -> bool:
        """Return whether any triangle holds the point."""
        import numpy as np

        dx, dy = x_um - self.x_um, y_um - self.y_um
        near = np.flatnonzero(dx * dx + dy * dy <= 4.0 * self.inner_um * self.inner_um)
        dx, dy, inner, angle = dx[near], dy[near], self.inner_um[near], self.angle[near]
        inside = np.ones(len(near), dtype=bool)
        for third in range(3):
            side = angle + third * (2.0 * math.pi / 3.0)
            inside &= dx * np.cos(side) + dy * np.sin(side) <= inner
        return bool(inside.any())


class Film:
    """A finished film: each layer is a seeded random set of triangles with the grown N and X.

    Radii are uniform from 0 to the largest, the result of constant nucleation and growth. Higher
    layers start on triangles of the layer below and exist only where it does.
    """

    __slots__ = ("_burns", "_layers")

    def __init__(
        self, nuclei_per_m2: Sequence[float], extended_area: Sequence[float], seed: int
    ) -> None:
        import numpy as np

        generator = np.random.Generator(np.random.PCG64(seed))
        self._burns: list[tuple[float, float]] = []
        self._layers: list[_Triangles | None] = []  # None is a closed layer
        ground: _Triangles | None = None
        for nuclei, area in zip(nuclei_per_m2, extended_area, strict=True):
            layer = None
            if area < CLOSED_AREA:
                layer = _scatter(generator, nuclei * 1e-12, area, ground)
                if layer is None:
                    break
            self._layers.append(layer)
            ground = layer if area < CROWDED_AREA else None

    def layers_at(self, x_um: float, y_um: float) -> int:
        """Return the number of layers, 0 to 6, at a stage position in um; 0 off the sample."""
        if max(abs(x_um), abs(y_um)) > HALF_WIDTH_UM:
            return 0
        for burnt_x, burnt_y in self._burns:
            if math.hypot(x_um - burnt_x, y_um - burnt_y) <= BURN_RADIUS_UM:
                return 0
        count = 0
        for layer in self._layers:
            if layer is not None and not layer.cover(x_um, y_um):
                break
            count += 1
        return count

    def burn(self, x_um: float, y_um: float) -> None:
        """Remove the film within 1 um of a position; the oldest of 1000 burns is forgotten."""
        self._burns.append((x_um, y_um))
        del self._burns[:-BURNS_MAX]


def _scatter(
    generator: np.random.Generator, per_um2: float, area: float, below: _Triangles | None
) -> _Triangles | None:
    """Place one layer's triangles, on those of the layer below if there are any; None if empty."""
    import numpy as np

    if per_um2 <= 0.0 or area <= 0.0:
        return None
    # E[R²] of a uniform radius is R_max²/3, and a·N·E[R²] = X.
    largest_um = math.sqrt(3.0 * area / (TRIANGLE * per_um2))
    half_um = HALF_WIDTH_UM + min(largest_um, MARGIN_UM_MAX)
    expected = per_um2 * (2.0 * half_um) ** 2
    if expected > TRIANGLES_MAX:
        largest_um *= math.sqrt(expected / TRIANGLES_MAX)
        expected = TRIANGLES_MAX
    count = int(generator.poisson(expected))
    if count == 0:
        return None
    angle = generator.uniform(0.0, 2.0 * math.pi, count)
    inner_um = 0.5 * largest_um * generator.uniform(0.0, 1.0, count)
    if below is None:
        x_um = generator.uniform(-half_um, half_um, count)
        y_um = generator.uniform(-half_um, half_um, count)
    else:
        weight = below.inner_um**2
        host = generator.choice(len(weight), count, p=weight / weight.sum())
        # Uniform in a triangle: fold the weights of two corners back into it.
        first, second = generator.uniform(0.0, 1.0, (2, count))
        fold = first + second > 1.0
        first[fold], second[fold] = 1.0 - first[fold], 1.0 - second[fold]
        radius = 2.0 * below.inner_um[host]
        # The corners are opposite to the sides' normals.
        corners = [below.angle[host] + math.pi + k * (2.0 * math.pi / 3.0) for k in range(3)]
        shares = (first, second, 1.0 - first - second)
        x_um, y_um = below.x_um[host], below.y_um[host]
        for corner, share in zip(corners, shares, strict=True):
            x_um = x_um + radius * share * np.cos(corner)
            y_um = y_um + radius * share * np.sin(corner)
    return _Triangles(x_um, y_um, inner_um, angle)
