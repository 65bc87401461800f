"""Powder sources: the vapours of MoO3 and sulfur, and how much of them the gas delivers."""

from math import sqrt

from labharness_simulators.plant.furnace import ZERO_C_K
from labharness_simulators.plant.gas import ATMOSPHERE_PA

PA_PER_MMHG = 133.322
MOO3_G_PER_MOL = 143.94
SULFUR_G_PER_MOL = 256.5  # S8, the vapour near 200 °C
SCC_PER_MOL = 22_414.0
NOMINAL_MOO3_MG = 15.0
NOMINAL_FLOW_SCCM = 50.0
LEAST_FLOW_SCCM = 5.0  # the fit ends here; below it transport falls to 0 with the flow
BOAT_MG = 50.0  # more powder than covers the floor of a boat lies deeper (judgement)
DELIVERY_EFFICIENCY = 0.0045  # fitted to the growth calibration points, see growth.py
# The sulfurised crust flattens the slope of the vapour pressure (20 Pa fitted at the usual sulfur),
# and too much sulfur poisons the source. Twice as much without sulfur, and the square root, are
# judgement.
CRUST_PA = 40.0
NOMINAL_SULFUR_PA = 15.6  # delivered by a boat at 200 °C in 50 sccm
SULFUR_PICK_UP = 0.05
COLD_SULFUR_C = 20.0


def moo3_vapour_pa(temperature_k: float) -> float:
    """Return the vapour pressure of MoO3 in Pa, in MoO3 units (three to a Mo3O9).

    Exponent linear in 1/T through 1 mmHg at 734 °C and 5 mmHg at 785 °C (Perry's Handbook,
    unverified). It gives 15.5 mmol/m³ at 700 °C, as in Wang 2014, Chem. Mater. 26, 6371.
    """
    return float(3.0 * PA_PER_MMHG * 10.0 ** (14.50 - 14_600.0 / temperature_k))


def sulfur_vapour_pa(temperature_k: float) -> float:
    """Return the vapour pressure of sulfur in Pa: Antoine, 312 Pa at 200 °C; none below 20 °C.

    The constants are from memory; checked against the boiling point, 760 mmHg at 444.6 °C.
    """
    temperature_c = temperature_k - ZERO_C_K
    if temperature_c <= COLD_SULFUR_C:
        return 0.0
    return float(PA_PER_MMHG * 10.0 ** (6.84359 - 2_500.12 / (temperature_c + 186.30)))


def crusted_moo3_pa(temperature_k: float, sulfur_pa: float = NOMINAL_SULFUR_PA) -> float:
    """Return the pressure in Pa over a MoO3 boat whose powder has a sulfurised crust.

    Args:
        temperature_k: Temperature of the boat.
        sulfur_pa: Sulfur over the boat; more of it makes the crust denser.
    """
    vapour = moo3_vapour_pa(temperature_k)
    most = CRUST_PA / (1.0 + sqrt(sulfur_pa / NOMINAL_SULFUR_PA))
    return vapour / (1.0 + vapour / most)


def delivered_metal_pa(crusted_pa: float, mass_mg: float, flow_sccm: float) -> float:
    """Return the pressure of MoO3 in Pa that reaches the substrate.

    The surface of a ridge of powder grows with the root of its mass, until it covers the boat.
    """
    if mass_mg <= 0.0 or flow_sccm <= 0.0:
        return 0.0
    nominal = NOMINAL_MOO3_MG / (1.0 + NOMINAL_MOO3_MG / BOAT_MG)
    boat = sqrt(mass_mg / (1.0 + mass_mg / BOAT_MG) / nominal)
    if flow_sccm < LEAST_FLOW_SCCM:
        carried = float((NOMINAL_FLOW_SCCM / LEAST_FLOW_SCCM) ** 0.5) * flow_sccm / LEAST_FLOW_SCCM
    else:
        carried = float((NOMINAL_FLOW_SCCM / flow_sccm) ** 0.5)
    return DELIVERY_EFFICIENCY * crusted_pa * boat * carried


def nuclei_share(flow_sccm: float) -> float:
    """Return the number of nuclei at a flow in sccm, relative to 50 sccm, at equal metal pressure.

    A slow gas leaves a thick boundary layer, in which desorbed metal finds an edge before it is
    carried away (arXiv:2311.15007). The thickness goes with the flow to the power of -1/2, and a
    nucleus needs two arrivals. The flow does set the density of nuclei: Materials 2018, 11, 870.
    """
    return flow_sccm / NOMINAL_FLOW_SCCM


def delivered_sulfur_pa(vapour_pa: float, mass_mg: float, flow_sccm: float) -> float:
    """Return the pressure of sulfur in Pa that reaches the substrate."""
    if mass_mg <= 0.0 or flow_sccm <= 0.0:
        return 0.0
    if flow_sccm < LEAST_FLOW_SCCM:
        carried = float((NOMINAL_FLOW_SCCM / LEAST_FLOW_SCCM) ** 0.3) * flow_sccm / LEAST_FLOW_SCCM
    else:
        carried = float((NOMINAL_FLOW_SCCM / flow_sccm) ** 0.3)
    return SULFUR_PICK_UP * vapour_pa * carried


def carried_mg_per_s(vapour_pa: float, flow_sccm: float, g_per_mol: float) -> float:
    """Return the mass in mg/s that the carrier takes from a boat at 1 atm."""
    return vapour_pa / ATMOSPHERE_PA * flow_sccm / SCC_PER_MOL / 60.0 * g_per_mol * 1e3
