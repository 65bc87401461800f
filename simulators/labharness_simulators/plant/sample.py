"""One sample: its label, and its deviations from the nominal run."""

import math
import random
from dataclasses import dataclass, replace
from statistics import NormalDist

STRAIN_PERCENT = 0.43
"""Biaxial strain of a usual film: cooling from 750 °C it shrinks by up to 0.5 % more than its
substrate, and slides a little. It puts a monolayer at 19.9 cm⁻¹, as grown by CVD, against 18.7
exfoliated."""

BITS = 15  # of a seed, for one drawn number


@dataclass(frozen=True, slots=True)
class Sample:
    """A substrate with the run-to-run scatter that its growth and its film will show.

    Attributes:
        delivery_factor: on the arriving metal.
        nucleation_factor: on the rate of nucleation.
        temperature_offset_k: substrate minus the tube node.
        strain_percent: biaxial strain of the film after cooling.
        doping_e13: electrons in 1e13 cm⁻².
        raman_factor: on A1g/Si.
        a_over_e: height of A1g over E2g.
        pl_factor: on photoluminescence/A1g.
        background_factor: on the spectra's background.
        disorder: on the shoulders of its lines and on LA(M).
        height_um: of its middle, above the plane in which the stage is in focus at z = 0. tilt_x,
            tilt_y: rise over its own length.
        film_seed: for the places of the triangles.
        spot_seed: for the scatter from spot to spot, or None.
    """

    sample_id: str
    substrate: str
    delivery_factor: float = 1.0
    nucleation_factor: float = 1.0
    temperature_offset_k: float = 0.0
    strain_percent: float = STRAIN_PERCENT
    doping_e13: float = 0.15
    raman_factor: float = 1.0
    a_over_e: float = 2.0
    pl_factor: float = 1.0
    background_factor: float = 1.0
    disorder: float = 1.0
    height_um: float = 0.0
    tilt_x: float = 0.0
    tilt_y: float = 0.0
    film_seed: int = 0
    spot_seed: int | None = None

    def height_at_um(self, x_um: float, y_um: float) -> float:
        """Return its height in um at a place of the stage."""
        return self.height_um + self.tilt_x * x_um + self.tilt_y * y_um


def draw_sample(chance: random.Random | None, sample_id: str, substrate: str) -> Sample:
    """Draw a sample's scatter in a fixed order; without `chance` return the nominal sample.

    Widths are judgement: powder CVD repeats poorly. Strain and doping spread the separation of a
    monolayer by ± 0.69 cm⁻¹.
    """
    if chance is None:
        return Sample(sample_id, substrate)
    drawn = Sample(
        sample_id,
        substrate,
        delivery_factor=chance.lognormvariate(0.0, 0.25),
        nucleation_factor=chance.lognormvariate(0.0, 0.20),
        temperature_offset_k=chance.normalvariate(0.0, 5.0),
        strain_percent=chance.normalvariate(STRAIN_PERCENT, 0.15),
        doping_e13=chance.normalvariate(0.15, 0.20),
        raman_factor=chance.lognormvariate(0.0, 0.35),
        a_over_e=chance.lognormvariate(math.log(2.0), 0.10),
        pl_factor=chance.lognormvariate(0.0, 0.40),
        background_factor=chance.lognormvariate(0.0, 0.40),
        film_seed=chance.getrandbits(63),
        spot_seed=chance.getrandbits(63),
    )
    # Later additions use the bits of that seed, so that the older draws stay the same.
    first, second, third, fourth = (_normal(drawn.spot_seed, number) for number in range(4))
    return replace(
        drawn,
        disorder=math.exp(0.25 * first),
        height_um=0.30 * second,
        tilt_x=5e-4 * third,
        tilt_y=5e-4 * fourth,
    )


def _normal(seed: int | None, number: int) -> float:
    """Return a standard normal number from 15 bits of a seed of 63: number 0 to 3."""
    bits = (seed or 0) >> number * BITS & (1 << BITS) - 1
    return NormalDist().inv_cdf((bits + 0.5) / (1 << BITS))
