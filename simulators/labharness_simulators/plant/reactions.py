"""Effects of other gases: oxygen burns vapour and film, hydrogen etches, pressure slows growth."""

from math import exp

from labharness_simulators.plant.gas import ATMOSPHERE_PA

OXYGEN_PER_SULFUR = 8.0  # S8 + 8 O2 -> 8 SO2
FILM_BURNS_PA_S = 12_000.0  # hot MoS2 in 0.1 % of oxygen burns within minutes (judgement)
# Above 5-10 % of hydrogen the domains are smaller, because MoS2 turns into H2S; published growths
# use up to 20 %. Half the speed at 15 % is judgement.
HALF_HYDROGEN_PA = 0.15 * ATMOSPHERE_PA
# Diffusion of a vapour through the boundary layer and its reaction at the surface are in series.
# Diffusion is inverse to the pressure (Chapman and Enskog). Equal resistance of both at 1 atm is
# judgement.
EVEN_PA = ATMOSPHERE_PA


def burnt(sulfur_pa: float, oxygen_pa: float) -> tuple[float, float]:
    """Return the sulfur and the oxygen in Pa that are left after their reaction in the hot gas.

    Each removes the other in the ratio of the reaction; the scarcer one is used up more completely.
    """
    if sulfur_pa <= 0.0 or oxygen_pa <= 0.0:
        return sulfur_pa, oxygen_pa
    wanted_pa = OXYGEN_PER_SULFUR * sulfur_pa
    both_pa = wanted_pa + oxygen_pa
    return sulfur_pa * wanted_pa / both_pa, oxygen_pa * oxygen_pa / both_pa


def film_kept(oxygen_pa: float, dt_s: float) -> float:
    """Return the share of a hot film that is left after `dt_s` in this pressure of oxygen."""
    return exp(-oxygen_pa * dt_s / FILM_BURNS_PA_S)


def growth_share(hydrogen_pa: float) -> float:
    """Return the factor of hydrogen on the speed of nuclei and edges, 0..1."""
    relative = hydrogen_pa / HALF_HYDROGEN_PA
    return 1.0 / (1.0 + relative * relative)


def arrival_share(pressure_pa: float) -> float:
    """Return how much of a vapour arrives, relative to 1 atm."""
    return (EVEN_PA + ATMOSPHERE_PA) / (EVEN_PA + pressure_pa)
