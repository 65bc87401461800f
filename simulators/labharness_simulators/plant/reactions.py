"""What else is in the gas: oxygen burns vapour and film, hydrogen etches, pressure slows."""

from math import exp

from labharness_simulators.plant.gas import ATMOSPHERE_PA

__all__ = ["arrival_share", "burnt", "film_kept", "growth_share"]

OXYGEN_PER_SULFUR = 8.0  # S8 + 8 O2 -> 8 SO2
FILM_BURNS_PA_S = 12_000.0  # hot MoS2 in 0.1 % of oxygen is gone within minutes (judgement)
# Above 5-10 % of hydrogen domains are smaller, MoS2 going back into H2S; published growths take up
# to 20 %. Half the speed at 15 % is judgement.
HALF_HYDROGEN_PA = 0.15 * ATMOSPHERE_PA
# A vapour's way through the boundary layer and its reaction at the surface stand in series. The
# first goes with the diffusivity, which is inverse to the pressure (Chapman and Enskog); that both
# are alike at 1 atm is judgement.
EVEN_PA = ATMOSPHERE_PA


def burnt(sulfur_pa: float, oxygen_pa: float) -> tuple[float, float]:
    """Return the sulfur and the oxygen in Pa that are left once they have met in the hot gas.

    Each takes the other away in the ratio of the reaction, the more fully the scarcer it is.
    """
    if sulfur_pa <= 0.0 or oxygen_pa <= 0.0:
        return sulfur_pa, oxygen_pa
    wanted_pa = OXYGEN_PER_SULFUR * sulfur_pa
    both_pa = wanted_pa + oxygen_pa
    return sulfur_pa * wanted_pa / both_pa, oxygen_pa * oxygen_pa / both_pa


def film_kept(oxygen_pa: float, dt_s: float) -> float:
    """Return the share of a hot film that is left after `dt_s` in so much oxygen, in Pa."""
    return exp(-oxygen_pa * dt_s / FILM_BURNS_PA_S)


def growth_share(hydrogen_pa: float) -> float:
    """Return what hydrogen leaves of the speed of nuclei and edges, 0..1."""
    relative = hydrogen_pa / HALF_HYDROGEN_PA
    return 1.0 / (1.0 + relative * relative)


def arrival_share(pressure_pa: float) -> float:
    """Return how much of a vapour arrives, against what arrives at 1 atm."""
    return (EVEN_PA + ATMOSPHERE_PA) / (EVEN_PA + pressure_pa)
