"""The light of one spot: Raman lines, photoluminescence and background, before the instrument."""

import random
from dataclasses import dataclass, replace

from labharness_simulators.plant.sample import STRAIN_PERCENT, Sample

SILICON_CM1 = 520.7
SILICON_WIDTH_CM1 = 2.8  # natural, 2.7-3.0
SILICON_LINES = 3  # the first order, 2TA and 2TO

# E2g of 1..5 and 6 or more layers, exfoliated, cm⁻¹; and A1g - E2g as measured in one paper (Lee
# 2010, 10.1021/nn1003937; five layers are interpolated). The analysis has its own tables: if the
# plant shared them, the two would always agree.
E2G_CM1 = (385.0, 384.2, 383.8, 383.4, 383.1, 382.6)
SEPARATION_CM1 = (18.7, 21.5, 22.5, 23.5, 24.25, 25.0)
E2G_WIDTH_CM1 = 3.5  # CVD, 3-5
A1G_WIDTH_CM1 = 4.8  # 4-5.5
# Shifts: biaxial strain, Lloyd 2016, 10.1021/acs.nanolett.6b02615; doping, arXiv:1206.1758.
E2G_PER_STRAIN = -5.2
A1G_PER_STRAIN = -1.7
A1G_PER_DOPING = -2.2
A1G_WIDTH_PER_DOPING = 1.0
E2G_PER_K = -0.013
A1G_PER_K = -0.016
HEATING_K_PER_MW = 10.0  # under 5 K below 0.5 mW with a 100x objective

SILICON_COUNTS_PER_MW_S = 5_000.0
SILICON_DIMMED_PER_LAYER = 0.92  # 0.78 at three layers, seen in real spectra
# Of one layer; real spectra of one instrument have 0.12. A1g grows with the layers (JOM 2025,
# 10.1007/s11837-025-07448-2); each dims those below it a little (judgement).
A1G_OVER_SILICON = 0.115
A1G_DIMMED_PER_LAYER = 0.97
BACKGROUND_COUNTS_PER_MW_S = 200.0
EXCITON_A_EV = 1.87
EXCITON_B_EV = 2.02
EXCITON_WIDTH_EV = 0.055
EXCITON_EV_PER_STRAIN = -0.09  # per % biaxial
# Photoluminescence A over Raman A1g, by layers: only one layer has a direct gap (10-100 times a
# bilayer).
PL_OVER_A1G = (18.0, 0.6, 0.2, 0.1, 0.07, 0.05)

SPOT_STRAIN_PERCENT = 0.02
SPOT_DOPING_E13 = 0.03
SPOT_INTENSITY = 0.05


@dataclass(frozen=True, slots=True)
class RamanLine:
    """A Lorentzian Raman line: its centre, intrinsic width and height in counts."""

    centre_cm1: float
    width_cm1: float
    height: float


@dataclass(frozen=True, slots=True)
class Band:
    """A photoluminescence band: its energy, width and height in counts."""

    centre_ev: float
    width_ev: float
    height: float


@dataclass(frozen=True, slots=True)
class Light:
    """All light of one spot, in counts per pixel of one exposure."""

    lines: tuple[RamanLine, ...]
    bands: tuple[Band, ...]
    background: float


def light_of(
    sample: Sample, layers: int, x_um: float, y_um: float, laser_mw: float, exposure_s: float
) -> Light:
    """Return the light of a spot with this many layers (0 is bare substrate).

    The scatter between spots belongs to the place: the same spot always gives the same lines.
    """
    dose = laser_mw * exposure_s
    background = BACKGROUND_COUNTS_PER_MW_S * dose * sample.background_factor
    silicon = SILICON_COUNTS_PER_MW_S * dose if "Si" in sample.substrate else 0.0
    dimmed = silicon * SILICON_DIMMED_PER_LAYER**layers
    lines = [
        RamanLine(SILICON_CM1, SILICON_WIDTH_CM1, dimmed),
        RamanLine(303.0, 10.0, 0.03 * dimmed),
        RamanLine(960.0, 60.0, 0.06 * dimmed),
    ]
    if layers == 0:
        return Light(tuple(lines), (), background)
    strain, doping, factor = sample.strain_percent, sample.doping_e13, sample.raman_factor
    if sample.spot_seed is not None:
        place = (round(x_um) << 24) ^ round(y_um)
        spot = random.Random(sample.spot_seed ^ place)  # seeded by the place, not by time
        strain += spot.gauss(0.0, SPOT_STRAIN_PERCENT)
        doping += spot.gauss(0.0, SPOT_DOPING_E13)
        factor *= 1.0 + spot.gauss(0.0, SPOT_INTENSITY)
    kind = min(layers, len(E2G_CM1)) - 1
    heating_k = HEATING_K_PER_MW * laser_mw
    e2g = E2G_CM1[kind] + E2G_PER_STRAIN * strain + E2G_PER_K * heating_k
    a1g = (
        E2G_CM1[kind]
        + SEPARATION_CM1[kind]
        + A1G_PER_STRAIN * strain
        + A1G_PER_DOPING * doping
        + A1G_PER_K * heating_k
    )
    a1g_width = A1G_WIDTH_CM1 + A1G_WIDTH_PER_DOPING * max(0.0, doping)
    # The reference is silicon under one layer in the same spectrum; without silicon, its bare
    # height.
    reference = silicon * SILICON_DIMMED_PER_LAYER if silicon else SILICON_COUNTS_PER_MW_S * dose
    stacked = layers * A1G_DIMMED_PER_LAYER ** (layers - 1)
    a1g_height = A1G_OVER_SILICON * stacked * factor * reference
    lines += [
        RamanLine(e2g, E2G_WIDTH_CM1, a1g_height / sample.a_over_e),
        RamanLine(a1g, a1g_width, a1g_height),
        RamanLine(452.0, 22.0, 0.1 * a1g_height),  # 2LA(M)
    ]
    glow = PL_OVER_A1G[kind] * sample.pl_factor * a1g_height
    shift = EXCITON_EV_PER_STRAIN * (strain - STRAIN_PERCENT)
    bands = (
        Band(EXCITON_A_EV + shift, EXCITON_WIDTH_EV, glow),
        Band(EXCITON_B_EV + shift, 1.6 * EXCITON_WIDTH_EV, 0.15 * glow),
    )
    return Light(tuple(lines), bands, background)


# Disorder, as seen beside the lines of a usual CVD film: distance from E2g or A1g, width, and
# height relative to that line. LA(M) at 227 cm⁻¹, LO(M) beside E2g and ZO(M) beside A1g: Mignuzzi
# 2015, 10.1103/PhysRevB.91.195411. The foot of A1g, from places with more doping, and all heights
# are judgement: bright real spectra fit two lines with a chi-squared of 5 to 41.
LA_M_CM1, LA_M_WIDTH_CM1, LA_M_OVER_E2G = 227.0, 15.0, 0.07
E2G_SHOULDERS = ((-7.5, 9.0, 0.06),)
A1G_SHOULDERS = ((-6.0, 9.0, 0.05), (9.0, 10.0, 0.05))


def with_disorder(light: Light, sample: Sample) -> Light:
    """Return a clean film's light with the shoulders and LA(M) of its disorder.

    Args:
        light: From `light_of`: silicon's three lines, then E2g, A1g and 2LA(M). Light without a
            film is returned unchanged.
        sample: Its `disorder` scales all of them.
    """
    if len(light.lines) <= SILICON_LINES:
        return light
    e2g, a1g = light.lines[SILICON_LINES : SILICON_LINES + 2]
    more = [RamanLine(LA_M_CM1, LA_M_WIDTH_CM1, LA_M_OVER_E2G * sample.disorder * e2g.height)]
    for line, shoulders in ((e2g, E2G_SHOULDERS), (a1g, A1G_SHOULDERS)):
        more += [
            RamanLine(line.centre_cm1 + by, width, sample.disorder * part * line.height)
            for by, width, part in shoulders
        ]
    return replace(light, lines=(*light.lines, *more))
