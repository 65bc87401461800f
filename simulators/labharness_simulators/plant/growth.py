"""Growth of MoS2: nuclei and edges, layer by layer, under changing temperature and gas."""

from math import exp, sqrt

LAYERS = 6
# 450 °C: below it the onset factor is under 0.4 % and there is almost no metal vapour
GROWTH_ONSET_K = 723.15
BOLTZMANN_EV = 8.617333e-5
REFERENCE_K = 1023.15
TRIANGLE = 3.0 * sqrt(3.0) / 4.0  # area of an equilateral triangle over its circumradius squared

# Fitted, with the plant's boat, crust and cooling, to the nine growths in
# docs/reference/recipes.md: windows assembled from van der Zande 2013 (10.1038/nmat3633), Najmaei
# 2013 (10.1038/nmat3673) and the like. Judgement from the literature, not digitised data.
EDGE_M_PER_S = 4.81e-7  # at 1 Pa of metal, 750 °C
EDGE_EV = 0.932
NUCLEI_PER_M2_S = 4.24e7
NUCLEI_EV = -2.0  # chosen: fewer nuclei when hotter, because the metal desorbs
NEXT_NUCLEI_PER_M2_S = 5.76e8
NEXT_NUCLEI_ORDER = 2.8
HALF_SULFUR_PA = 2.0
SULFURISATION_K = 823.0
SULFURISATION_WIDTH_K = 18.0
DECAY_PER_S = 3.0e-6
DECAY_EV = 4.5
DECAY_REFERENCE_K = 1173.15
NO_GROWTH = 1e-15  # below this theta the next layer cannot start


class Growth:
    """The moments of a growing film (KJMA), valid for any history of temperature and pressure.

    For layer i: dN = J e^-X theta(i-1), dM = N v, dX = 2 a M v; theta = 1 - e^-X.

    Attributes:
        nuclei_per_m2: N of each layer, on the whole area.
        radius_m_per_m2: M of each layer, the sum of circumradii.
        extended_area: X of each layer, the area of all triangles if none overlapped.
    """

    __slots__ = ("_nucleation_factor", "extended_area", "nuclei_per_m2", "radius_m_per_m2")

    def __init__(self, nucleation_factor: float = 1.0) -> None:
        self._nucleation_factor = nucleation_factor
        self.nuclei_per_m2 = [0.0] * LAYERS
        self.radius_m_per_m2 = [0.0] * LAYERS
        self.extended_area = [0.0] * LAYERS

    @property
    def coverage(self) -> tuple[float, ...]:
        """The covered fraction of each layer, at most that of the layer below."""
        below = 1.0
        fractions = []
        for area in self.extended_area:
            below = min(below, 1.0 - exp(-area))
            fractions.append(below)
        return tuple(fractions)

    @property
    def edge_um(self) -> float:
        """The mean edge of the first layer's triangles in um, stopped by their neighbours."""
        nuclei = self.nuclei_per_m2[0]
        if nuclei <= 0.0:
            return 0.0
        free_um = sqrt(3.0) * self.radius_m_per_m2[0] / nuclei * 1e6
        if self.coverage[0] > 0.5:
            return min(free_um, 1e6 / sqrt(nuclei))
        return free_um

    def advance(
        self,
        dt_s: float,
        temperature_k: float,
        metal_pa: float,
        sulfur_pa: float,
        *,
        share: float = 1.0,
        nuclei_share: float = 1.0,
    ) -> None:
        """Advance by `dt_s` at the substrate's temperature and the delivered pressures.

        Args:
            dt_s: A step much shorter than the growth.
            temperature_k: Temperature of the substrate.
            metal_pa: Delivered MoO3.
            sulfur_pa: Delivered sulfur.
            share: Factor of the other gases on the speed of nuclei and edges.
            nuclei_share: Factor of the flow on the nuclei of the first layer.
        """
        sulfur = sulfur_pa / (sulfur_pa + HALF_SULFUR_PA)
        per_kt = 1.0 / (BOLTZMANN_EV * temperature_k)
        self._decompose(dt_s, per_kt, sulfur)
        if metal_pa <= 0.0 or sulfur <= 0.0:
            return
        onset = sulfur / (1.0 + exp((SULFURISATION_K - temperature_k) / SULFURISATION_WIDTH_K))
        hotter = 1.0 / (BOLTZMANN_EV * REFERENCE_K) - per_kt
        spread = share * EDGE_M_PER_S * metal_pa * onset * exp(EDGE_EV * hotter) * dt_s
        seeds = share * onset * self._nucleation_factor * dt_s
        nucleation = (
            NUCLEI_PER_M2_S * metal_pa * metal_pa * seeds * nuclei_share * exp(NUCLEI_EV * hotter)
        )
        next_nucleation = NEXT_NUCLEI_PER_M2_S * metal_pa**NEXT_NUCLEI_ORDER * seeds
        nuclei, radii, areas = self.nuclei_per_m2, self.radius_m_per_m2, self.extended_area
        below = 1.0
        for layer in range(LAYERS):
            bare = exp(-areas[layer])
            nuclei[layer] = count = nuclei[layer] + nucleation * bare * below
            radii[layer] = radius = radii[layer] + count * spread
            areas[layer] += 2.0 * TRIANGLE * radius * spread
            nucleation = next_nucleation
            below = min(below, 1.0 - bare)
            if below < NO_GROWTH:
                return

    def _decompose(self, dt_s: float, per_kt: float, sulfur: float) -> None:
        """Remove the area that decomposes by heat without sulfur above the film."""
        hotter = 1.0 / (BOLTZMANN_EV * DECAY_REFERENCE_K) - per_kt
        rate = DECAY_PER_S * exp(DECAY_EV * hotter) * (1.0 - 0.9 * sulfur)
        if rate * dt_s > 1e-9:
            self.lose(exp(-rate * dt_s))

    def lose(self, kept: float) -> None:
        """Reduce each layer's area to this share, 0..1; all its triangles shrink alike."""
        if kept >= 1.0:
            return
        radii, areas = self.radius_m_per_m2, self.extended_area
        shorter = sqrt(kept)
        for layer in range(LAYERS):
            areas[layer] *= kept
            radii[layer] *= shorter
