"""The laser's spot on a film: its size and focus, and the mean light of the layers in it."""

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from labharness_simulators.plant.sample import Sample
from labharness_simulators.plant.shelf import SeenFilm
from labharness_simulators.plant.spectrum import Light, light_of, with_disorder

WAIST_UM = 0.5  # radius at 1/e² in focus; a 100x objective of NA 0.9 gives 0.3 to 0.6
FOCUS_UM = math.pi * WAIST_UM**2 / 0.532  # Rayleigh length of a Gaussian beam of 532 nm

# Thirteen points of equal weight: the middle, and six on each of two rings. The radii, in waists,
# halve the light of each ring: the light within r is 1 - exp(-2 r²/w²).
RINGS = tuple(math.sqrt(-0.5 * math.log(1.0 - within)) for within in ((1 + 3) / 13, (7 + 3) / 13))
AROUND = 6
POINTS = 1 + AROUND * len(RINGS)


def waist_um(defocus_um: float) -> float:
    """Return the spot's radius at 1/e² in um."""
    return WAIST_UM * math.hypot(1.0, defocus_um / FOCUS_UM)


def collected(defocus_um: float) -> float:
    """Return the share of the light, relative to focus, that a confocal microscope collects."""
    return 1.0 / (1.0 + (defocus_um / FOCUS_UM) ** 2)


def places(x_um: float, y_um: float, radius_um: float) -> Iterator[tuple[float, float]]:
    """Return the points that represent a spot."""
    yield x_um, y_um
    for number, ring in enumerate(RINGS):
        for step in range(AROUND):
            angle = (step + 0.5 * number) * 2.0 * math.pi / AROUND
            yield (
                x_um + ring * radius_um * math.cos(angle),
                y_um + ring * radius_um * math.sin(angle),
            )


def layers_under(film: SeenFilm, x_um: float, y_um: float, radius_um: float) -> dict[int, float]:
    """Return the share of a spot's light that falls on each number of layers, 0 for bare."""
    counts = Counter(film.layers_at(x, y) for x, y in places(x_um, y_um, radius_um))
    return {layers: count / POINTS for layers, count in sorted(counts.items())}


def spot_light(
    film: SeenFilm,
    sample: Sample,
    position_um: tuple[float, float, float],
    laser_mw: float,
    exposure_s: float,
) -> Light:
    """Return the light of a spot: the sum over its parts, each by its share.

    Args:
        film: The grown film.
        sample: Its substrate, with height and tilt under the objective.
        position_um: Stage position: x, y and z.
        laser_mw: Laser power at the sample.
        exposure_s: Exposure of the camera.
    """
    x_um, y_um, z_um = position_um
    defocus_um = z_um - sample.height_at_um(x_um, y_um)
    sharp = collected(defocus_um)
    parts = [
        (
            sharp * share,
            with_disorder(light_of(sample, layers, x_um, y_um, laser_mw, exposure_s), sample),
        )
        for layers, share in layers_under(film, x_um, y_um, waist_um(defocus_um)).items()
    ]
    return Light(
        lines=tuple(
            replace(line, height=share * line.height) for share, one in parts for line in one.lines
        ),
        bands=tuple(
            replace(band, height=share * band.height) for share, one in parts for band in one.bands
        ),
        background=sum(share * one.background for share, one in parts),
    )
