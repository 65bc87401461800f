"""The hot zone of the tube: powders evaporate, and the film above them grows or burns."""

from labharness_simulators.plant.gas import TubeGas
from labharness_simulators.plant.growth import GROWTH_ONSET_K, Growth
from labharness_simulators.plant.reactions import arrival_share, burnt, film_kept, growth_share
from labharness_simulators.plant.sample import Sample
from labharness_simulators.plant.sources import (
    MOO3_G_PER_MOL,
    SULFUR_G_PER_MOL,
    carried_mg_per_s,
    crusted_moo3_pa,
    delivered_metal_pa,
    delivered_sulfur_pa,
    nuclei_share,
    sulfur_vapour_pa,
)

HOT_SULFUR_K = 383.15  # 110 °C: below it the boat delivers a negligible amount


class HotZone:
    """Two boats, and a sample above one of them.

    Attributes:
        moo3_mass_mg: powder left in the boat under the sample.
        sulfur_mass_mg: sulfur left in the boat upstream.
        sample: the sample in the tube, or None.
        growth: its film.
    """

    __slots__ = ("growth", "moo3_mass_mg", "sample", "sulfur_mass_mg")

    def __init__(self) -> None:
        self.moo3_mass_mg = 0.0
        self.sulfur_mass_mg = 0.0
        self.sample: Sample | None = None
        self.growth = Growth()

    def load(self, sample: Sample, moo3_mg: float, sulfur_mg: float) -> None:
        """Fill both boats, and insert a bare sample."""
        self.sample, self.moo3_mass_mg, self.sulfur_mass_mg = sample, moo3_mg, sulfur_mg
        self.growth = Growth(sample.nucleation_factor)

    def unload(self) -> tuple[Sample, Growth]:
        """Remove and return the sample with its film.

        Raises:
            ValueError: The tube holds no sample.
        """
        if self.sample is None:
            raise ValueError(
                "CvdTube: asked to 'move_to_microscope'; there is no sample in the tube"
            )
        taken = self.sample, self.growth
        self.sample, self.growth = None, Growth()
        return taken

    def step(
        self, dt_s: float, tube_k: float, boat_k: float, flow_sccm: float, gas: TubeGas
    ) -> None:
        """Empty the boats into the gas, and grow or burn the film, for `dt_s`."""
        sulfur_pa = metal_pa = 0.0
        if boat_k > HOT_SULFUR_K and self.sulfur_mass_mg > 0.0:
            vapour_pa = sulfur_vapour_pa(boat_k)
            sulfur_pa = delivered_sulfur_pa(vapour_pa, self.sulfur_mass_mg, flow_sccm)
            lost_mg = carried_mg_per_s(sulfur_pa, flow_sccm, SULFUR_G_PER_MOL) * dt_s
            self.sulfur_mass_mg = max(0.0, self.sulfur_mass_mg - lost_mg)
        sample = self.sample
        if sample is None:
            return
        substrate_k = tube_k + sample.temperature_offset_k
        if substrate_k <= GROWTH_ONSET_K:
            return
        oxygen_pa = gas.oxygen_fraction * gas.pressure_pa
        sulfur_pa, oxygen_pa = burnt(sulfur_pa, oxygen_pa)
        if self.moo3_mass_mg > 0.0:
            crusted_pa = crusted_moo3_pa(substrate_k, sulfur_pa)
            metal_pa = delivered_metal_pa(crusted_pa, self.moo3_mass_mg, flow_sccm)
            lost_mg = carried_mg_per_s(crusted_pa, flow_sccm, MOO3_G_PER_MOL) * dt_s
            self.moo3_mass_mg = max(0.0, self.moo3_mass_mg - lost_mg)
        arrives = arrival_share(gas.pressure_pa)
        growth = self.growth
        growth.advance(
            dt_s,
            substrate_k,
            arrives * metal_pa * sample.delivery_factor,
            arrives * sulfur_pa,
            share=growth_share(gas.hydrogen),
            nuclei_share=nuclei_share(flow_sccm),
        )
        growth.lose(film_kept(oxygen_pa, dt_s))
