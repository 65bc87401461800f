"""Films of known thickness on instruments with errors of their own, and what is claimed of them.

What a plant changes the analysis does not know: that is what its confidence is held against.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from random import Random

import numpy as np
from scipy.stats import binomtest

from clean_spots import spot
from labharness.analysis import (
    LAYER_CLASSES,
    Reference,
    Spectrum,
    SpotEvidence,
    fit_peaks,
    fit_silicon,
    judge_layers,
    la_over_e,
    peak_height,
    shift_from_wavelength,
)
from labharness.analysis.assess import FILM_ROWS
from labharness.analysis.evidence import (
    CVD_ROWS,
    NANOCRYSTALLINE_ROW,
    THICK_LAYERS,
    SeparationRow,
)
from labharness_simulators.plant.optics import LASER_NM, Spectrometer
from labharness_simulators.plant.sample import Sample, draw_sample
from labharness_simulators.plant.spectrum import Band, Light, Line, light_of

BINS = ((0.0, 0.75), (0.75, 0.85), (0.85, 0.95), (0.95, 0.99), (0.99, 1.01))
FILMS = 400
TEMPLATE = spot(a1g_si=0.12, pl=20.0)
LASER_MW = 0.3
RAMAN_S, PL_S = 5.0, 0.5
RAMAN_NM, PL_NM, TURN_S = 545.0, 662.0, 100.0
LA_CM1, LA_FWHM_CM1, LA_OVER_E = 227.0, 15.0, (0.4, 0.75)
"""LA(M) of disordered film: 0.42 to 0.72 of E was seen (10.1038/s41598-025-09826-x)."""

TWISTED_CM1, TWISTED_SD_CM1 = 20.6, 0.3
EDGE = (0.2, 0.9)
"""How much of a spot over an edge lies on film."""


@dataclass(frozen=True, slots=True)
class Plant:
    """How a plant's films and microscope differ from those the analysis assumes.

    Attributes:
        strain_percent, doping_e13: Added to each film's own (biaxial, %; 1e13 electrons per cm²).
        oxide_factor: On A1g/Si.
        pl_factor: On the photoluminescence of every film.
        pl_single: Only films of one layer are quenched: their substrate takes the light.
        disordered: Films show LA(M) and have the separations of nanocrystalline film, with lines
            no wider than others.
        twisted: Every bilayer is twisted.
        edge: Every spot lies partly on bare substrate.
        fano: Silicon is asymmetric and wide, as of a doped wafer.
        shoulders: Lines have shoulders that no fit has, and spectra are ten times brighter: the
            reduced chi-squared is 46 in the middle, that of bright real spectra 5 to 41.
    """

    name: str
    strain_percent: float = 0.0
    doping_e13: float = 0.0
    oxide_factor: float = 1.0
    pl_factor: float = 1.0
    pl_single: bool = False
    disordered: bool = False
    twisted: bool = False
    edge: bool = False
    fano: bool = False
    shoulders: bool = False


PLANTS = (
    Plant("nominal"),
    Plant("strain +0.15 %", strain_percent=0.15),
    Plant("strain −0.15 %", strain_percent=-0.15),
    Plant("strain +0.3 %", strain_percent=0.3),
    Plant("strain −0.3 %", strain_percent=-0.3),
    Plant("more doping", doping_e13=0.2),
    Plant("less doping", doping_e13=-0.2),
    Plant("oxide ×0.5", oxide_factor=0.5),
    Plant("oxide ×2", oxide_factor=2.0),
    Plant("oxide ×3", oxide_factor=3.0),
    Plant("PL quenched 30 ×", pl_factor=1 / 30),
    Plant("PL of one layer quenched 30 ×", pl_factor=1 / 30, pl_single=True),
    Plant("oxide ×2, PL quenched 30 ×", oxide_factor=2.0, pl_factor=1 / 30),
    Plant("disordered", disordered=True),
    Plant("twisted bilayers", twisted=True),
    Plant("spots over an edge", edge=True),
    Plant("Fano silicon", fano=True),
    Plant("shoulders", shoulders=True),
)
"""Doping is moved by one standard deviation of the generator, strain by one and two."""

EVERY_DAY = ("nominal",)

ONE_LAYER_A1G_SI, ONE_LAYER_PL = 0.12, 20.0
CALIBRATED_LN = 0.15
"""Error of the calibration of a microscope, as it states it."""

WAYS: dict[str, tuple[str, tuple[SeparationRow, ...]]] = {
    "calibrated": ("calibrated", CVD_ROWS),
    "uncalibrated": ("uncalibrated", CVD_ROWS),
    "separation alone": ("none", CVD_ROWS),
    "separation alone, growth unknown": ("none", FILM_ROWS["unknown"]),
}
"""What a judgement may rest on. *Calibrated*: a known monolayer was measured on the same microscope
and oxide, with an error. *Uncalibrated*: A1g/Si and PL/Raman as broad priors. The last is what
``labharness analyse`` says of a file about which nothing is stated."""


def reference_of(plant: Plant, way: str, chance: Random) -> Reference | None:
    """Give what is known of the microscope that measures a film."""
    kind = WAYS[way][0]
    if kind == "none":
        return None
    if kind == "uncalibrated":
        return Reference()
    a1g_si = ONE_LAYER_A1G_SI * plant.oxide_factor * chance.lognormvariate(0.0, CALIBRATED_LN)
    pl = ONE_LAYER_PL * chance.lognormvariate(0.0, CALIBRATED_LN)
    return Reference(
        a1g_si_monolayer=a1g_si,
        a1g_si_uncertainty=CALIBRATED_LN * a1g_si,
        a1g_si_source="a known monolayer",
        pl_raman_monolayer=pl,
        pl_raman_uncertainty=CALIBRATED_LN * pl,
        pl_raman_source="the same",
    )


@dataclass(frozen=True, slots=True)
class Claim:
    """What was said of one film, and what it was.

    ``said`` is None where the count was undetermined.
    """

    truth: int
    said: int | None
    confidence: float
    credible_set: tuple[int, ...]
    right: bool


@cache
def films(plant: Plant, count: int = FILMS) -> tuple[tuple[int, SpotEvidence], ...]:
    """Measure films of every class, each as likely, on instruments with errors of their own."""
    chance = Random(20_260)
    found = []
    for _ in range(count):
        truth = chance.choice(LAYER_CLASSES)
        layers = chance.choice(THICK_LAYERS) if truth == LAYER_CLASSES[-1] else truth
        shines = partial(light, off_nominal(plant, chance), layers, plant, change_of(plant, chance))
        found.append((truth, measured(Spectrometer(shines, chance), 10 if plant.shoulders else 1)))
    return tuple(found)


def off_nominal(plant: Plant, chance: Random) -> Sample:
    """Draw a film."""
    film = draw_sample(chance, "film", "SiO2/Si")
    return replace(
        film,
        strain_percent=film.strain_percent + plant.strain_percent,
        doping_e13=film.doping_e13 + plant.doping_e13,
        raman_factor=film.raman_factor * plant.oxide_factor,
    )


@dataclass(frozen=True, slots=True)
class Change:
    """What chance adds to one film of a plant: a normal number, and two within 0 and 1."""

    normal: float
    share: float
    other: float


def change_of(plant: Plant, chance: Random) -> Change:
    """Draw it, the same numbers for every plant."""
    own = Random(chance.random())
    return Change(own.gauss(0.0, 1.0), own.random(), own.random())


def light(film: Sample, layers: int, plant: Plant, change: Change, exposure_s: float) -> Light:
    """Shine as a film of the plant does."""
    found = light_of(film, layers, 0.0, 0.0, LASER_MW, exposure_s)
    *silicon, e2g, a1g, second = found.lines
    bands = found.bands
    more: list[Line] = []
    if plant.disordered:
        at = min(layers, len(LAYER_CLASSES)) - 1
        row = NANOCRYSTALLINE_ROW
        separation = row.centre_cm1[at] + row.tau_cm1[at] * change.normal
        a1g = replace(a1g, centre_cm1=e2g.centre_cm1 + separation)
        low, high = LA_OVER_E
        more.append(Line(LA_CM1, LA_FWHM_CM1, (low + (high - low) * change.share) * e2g.height))
    if plant.twisted and layers == 2:
        separation = TWISTED_CM1 + TWISTED_SD_CM1 * change.normal
        a1g = replace(a1g, centre_cm1=e2g.centre_cm1 + separation)
    if plant.edge:
        part = EDGE[0] + (EDGE[1] - EDGE[0]) * change.other
        e2g, a1g, second = (dimmed(line, part) for line in (e2g, a1g, second))
        bands = tuple(replace(band, height=part * band.height) for band in bands)
    if plant.pl_factor != 1.0 and (layers == 1 or not plant.pl_single):
        bands = tuple(replace(band, height=plant.pl_factor * band.height) for band in bands)
    if plant.fano:
        silicon = [*fano(silicon[0]), *silicon[1:]]
    if plant.shoulders:
        more += [
            Line(e2g.centre_cm1 - 8.0, 9.0, 0.1 * e2g.height),
            Line(a1g.centre_cm1 - 6.0, 8.0, 0.08 * a1g.height),
            Line(a1g.centre_cm1 + 13.0, 14.0, 0.07 * a1g.height),
        ]
    return replace(found, lines=(*silicon, e2g, a1g, second, *more), bands=bands)


def dimmed(line: Line, part: float) -> Line:
    """Take only part of a line."""
    return replace(line, height=part * line.height)


def fano(line: Line) -> tuple[Line, ...]:
    """Make silicon asymmetric, its foot towards higher shifts, as in a wafer doped with boron."""
    rows = ((0.0, 4.0, 0.6), (2.5, 7.0, 0.3), (6.0, 12.0, 0.12))
    return tuple(Line(line.centre_cm1 + by, width, part * line.height) for by, width, part in rows)


def measured(spectrometer: Spectrometer, brighter: float = 1.0) -> SpotEvidence:
    """Measure one spot as a growth does."""
    dark = spectrometer.BIAS_COUNTS
    shift = shift_from_wavelength(LASER_NM, spectrometer.wavelengths_nm())
    exposure_s = RAMAN_S * brighter
    counts = np.array(spectrometer.exposure(exposure_s)) - dark
    spectrum = Spectrum(shift, counts, spectrometer.READ_NOISE_COUNTS)
    (fit,) = fit_peaks([spectrum])
    spectrometer.centre_nm = PL_NM
    spectrometer.advance_to(TURN_S)
    glow = peak_height(spectrometer.wavelengths_nm(), np.array(spectrometer.exposure(PL_S)) - dark)
    ratio = glow / PL_S * exposure_s / fit.a_height_counts if fit.a_height_counts > 0 else None
    return SpotEvidence(fit, fit_silicon(spectrum), ratio, la_over_e(spectrum, fit))


def claims(plant: Plant, way: str, count: int = FILMS) -> list[Claim]:
    """Judge every film of a plant by one spot."""
    chance = Random(7)
    rows = WAYS[way][1]
    return [
        claim(truth, spot, reference_of(plant, way, chance), rows)
        for truth, spot in films(plant, count)
    ]


def claim(
    truth: int, spot: SpotEvidence, reference: Reference | None, rows: Sequence[SeparationRow]
) -> Claim:
    """Judge one film by one spot."""
    verdict = judge_layers([spot], reference, rows)
    said = verdict.layer_count
    return Claim(truth, said, verdict.confidence, verdict.credible_set, said == truth)


# ---- films of more than one class

SPOTS = 9
MIXED_PLANTS = tuple(
    plant for plant in PLANTS if not (plant.disordered or plant.fano or plant.shoulders)
)
"""What changes the lines and not their numbers is proven on single spots."""

CLAIMED_SHARE = 0.75
UNIFORM = 0.5
"""Half of the films are of one class; of the others two neighbours share the area, each share as
likely as any other."""

NUMBER_SIGMA_CM1, NUMBER_LN = 0.08, 0.03
SPACING_UM = 60.0


def mixed_claims(
    plant: Plant,
    way: str,
    count: int,
    shared: Callable[[Random], float] = Random.random,
) -> list[Claim]:
    """Judge films by nine spots whose numbers are taken from the light, with noise and no camera.

    A claim of one class is right where that has three quarters of the film; a claim of a
    predominant class where it has more than the other.
    """
    chance = Random(31)
    made = []
    for _ in range(count):
        first = chance.choice(LAYER_CLASSES[:-1])
        share = 1.0 if chance.random() < UNIFORM else shared(chance)
        film = off_nominal(plant, chance)
        reference = reference_of(plant, way, chance)
        spots = []
        for index in range(SPOTS):
            layers = first if chance.random() < share else first + 1
            where = (SPACING_UM * (index % 3), SPACING_UM * (index // 3))
            change = change_of(plant, chance)
            on_edge = plant if index < 3 else replace(plant, edge=False)
            spots.append(numbers(film, layers, on_edge, where, change, chance))
        verdict = judge_layers(spots, reference, WAYS[way][1])
        most = max(share, 1 - share)
        truth = first if share >= 0.5 else first + 1
        right = verdict.layer_count == truth
        if verdict.claim is not None and verdict.claim.kind == "film":
            right = right and most >= CLAIMED_SHARE
        made.append(
            Claim(truth, verdict.layer_count, verdict.confidence, verdict.credible_set, right)
        )
    return made


def numbers(
    film: Sample,
    layers: int,
    plant: Plant,
    where: tuple[float, float],
    change: Change,
    chance: Random,
) -> SpotEvidence:
    """Take separation and ratios straight from the light of a spot."""
    shone = light_of(film, layers, *where, LASER_MW, RAMAN_S)
    silicon, _, _, e2g, a1g, _ = shone.lines
    separation = a1g.centre_cm1 - e2g.centre_cm1
    if plant.twisted and layers == 2:
        separation = TWISTED_CM1 + TWISTED_SD_CM1 * change.normal
    part = EDGE[0] + (EDGE[1] - EDGE[0]) * change.other if plant.edge else 1.0
    dark = plant.pl_factor if layers == 1 or not plant.pl_single else 1.0
    band: Band = shone.bands[0]
    height = part * a1g.height * chance.lognormvariate(0.0, NUMBER_LN)
    fit = replace(
        TEMPLATE.fit,
        separation_cm1=separation + chance.gauss(0.0, NUMBER_SIGMA_CM1),
        separation_sigma_cm1=NUMBER_SIGMA_CM1,
        a_height_counts=height,
        a_height_sigma_counts=NUMBER_LN * height,
    )
    assert TEMPLATE.silicon is not None
    line = replace(TEMPLATE.silicon, height_counts=silicon.height)
    return SpotEvidence(fit, line, dark * part * band.height / height)


# ---- stated against right


@dataclass(frozen=True, slots=True)
class Kept:
    """Claims of one bin: how many, the mean of what was stated, how many were right."""

    low: float
    high: float
    claims: int
    stated: float
    right: int

    @property
    def p_value(self) -> float:
        """Chance of so few right answers if the stated confidence were true."""
        return float(binomtest(self.right, self.claims, self.stated, alternative="less").pvalue)


def kept(made: Sequence[Claim]) -> list[Kept]:
    """Count the right ones in fixed bins of what was stated."""
    found = []
    for low, high in BINS:
        one = [c for c in made if c.said is not None and low <= c.confidence < high]
        if one:
            stated = min(sum(c.confidence for c in one) / len(one), 1.0)
            found.append(Kept(low, high, len(one), stated, sum(c.right for c in one)))
    return found
