"""Films of known thickness on instruments with errors of their own, and what is claimed of them.

What a plant changes the analysis does not know: that is what its confidence is held against.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from random import Random

import numpy as np

from clean_spots import spot
from labharness.analysis.assess import FILM_ROWS
from labharness.analysis.evidence import CVD_ROWS, LAYER_CLASSES, Reference, SeparationRow
from labharness.analysis.film import peak_height
from labharness.analysis.layers import SpotEvidence, judge_layers, la_over_e
from labharness.analysis.peaks import fit_peaks, fit_silicon
from labharness.analysis.spectrum import Spectrum, shift_from_wavelength
from labharness_simulators.plant.optics import LASER_NM, Spectrometer
from plants_drawn import PLANTS, Film, Plant, change_of, drawn, light

BINS = ((0.0, 0.75), (0.75, 0.85), (0.85, 0.95), (0.95, 0.99), (0.99, 1.01))
FILMS = 400
FILM_SEED, KNOWN_SEED, MANY_SEED = 20_260, 7, 31
"""Of the films of one place, of what is known of their microscope, of films of many spots."""

THICK_LAYERS = (6, 7, 8, 10, 12)
"""Layer counts that represent the class of six or more."""

TEMPLATE = spot(a1g_si=0.12, pl=20.0)
RAMAN_S, PL_S = 5.0, 0.5
PL_NM, TURN_S = 662.0, 100.0

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
    """Return what is known of the microscope that measures a film."""
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


# ---- films of one class, looked at in one place


@cache
def films(
    plant: Plant, count: int = FILMS, seed: int = FILM_SEED
) -> tuple[tuple[int, SpotEvidence], ...]:
    """Measure films of every class, each as likely, on instruments with errors of their own."""
    chance = Random(seed)
    found = []
    for _ in range(count):
        truth = chance.choice(LAYER_CLASSES)
        layers = chance.choice(THICK_LAYERS) if truth == LAYER_CLASSES[-1] else truth
        shines = partial(light, drawn(plant, chance), layers, change_of(chance))
        found.append((truth, measured(Spectrometer(shines, chance), 10 if plant.shoulders else 1)))
    return tuple(found)


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
    ratio = glow / PL_S * exposure_s / fit.a.height_counts if fit.a.height_counts > 0 else None
    return SpotEvidence(fit, fit_silicon(spectrum), ratio, la_over_e(spectrum, fit))


def claims(plant: Plant, way: str, count: int = FILMS, shift: int = 0) -> list[Claim]:
    """Judge every film of a plant by one spot; ``shift`` moves every seed."""
    chance = Random(KNOWN_SEED + shift)
    rows = WAYS[way][1]
    return [
        claim(truth, spot, reference_of(plant, way, chance), rows)
        for truth, spot in films(plant, count, FILM_SEED + shift)
    ]


def claim(
    truth: int, spot: SpotEvidence, reference: Reference | None, rows: Sequence[SeparationRow]
) -> Claim:
    """Judge one film by one spot."""
    verdict = judge_layers([spot], reference, rows)
    said = verdict.layer_count
    return Claim(truth, said, verdict.confidence, verdict.credible_set, said == truth)


# ---- films of one class or of two, looked at in many places

NINE, MANY = (9, 9), (60, 100)
"""Spots of a film, from the fewest to the most; how many a film has is drawn."""

CLAIMED_SHARE = 0.75
UNIFORM = 0.5
"""Half of the films are of one class, six or more too; of the others two neighbours share the area,
each share as likely as any other."""

EDGES_MIN, SPOTS_AN_EDGE = 3, 10
"""How many spots of a film lie over an edge, where the plant has edges: three, or one in ten."""

NUMBER_SIGMA_CM1, NUMBER_LN = 0.08, 0.03
SPACING_UM, COLUMNS = 60.0, 10


def mixed_claims(
    plant: Plant,
    way: str,
    count: int,
    shared: Callable[[Random], float] = Random.random,
    spots: tuple[int, int] = NINE,
    shift: int = 0,
) -> list[Claim]:
    """Judge films by spots whose numbers are taken from the light, with noise and no camera.

    A claim of one class is right where that has three quarters of the film; a claim of a
    predominant class where it has more than the other.
    """
    chance = Random(MANY_SEED + shift)
    made = []
    for _ in range(count):
        alike = chance.random() < UNIFORM
        first = chance.choice(LAYER_CLASSES if alike else LAYER_CLASSES[:-1])
        share = 1.0 if alike else shared(chance)
        thick = chance.choice(THICK_LAYERS)
        layers = [thick if each == LAYER_CLASSES[-1] else each for each in (first, first + 1)]
        film = drawn(plant, chance)
        reference = reference_of(plant, way, chance)
        size = chance.randint(*spots)
        seen = [
            numbers(film, layers[chance.random() >= share], index, size, chance)
            for index in range(size)
        ]
        verdict = judge_layers(seen, reference, WAYS[way][1])
        most = max(share, 1 - share)
        truth = first if share >= 0.5 else first + 1
        right = verdict.layer_count == truth
        if verdict.claim is not None and verdict.claim.kind == "film":
            right = right and most >= CLAIMED_SHARE
        made.append(
            Claim(truth, verdict.layer_count, verdict.confidence, verdict.credible_set, right)
        )
    return made


def numbers(film: Film, layers: int, index: int, size: int, chance: Random) -> SpotEvidence:
    """Take separation and ratios of a spot straight from its light."""
    where = (SPACING_UM * (index % COLUMNS), SPACING_UM * (index // COLUMNS))
    change = change_of(chance)
    on_edge = index < max(EDGES_MIN, size // SPOTS_AN_EDGE)
    shone = light(film, layers, change, RAMAN_S, where, on_edge=on_edge)
    silicon, _, _, e2g, a1g, *_ = shone.lines
    height = a1g.height * chance.lognormvariate(0.0, NUMBER_LN)
    separation = a1g.centre_cm1 - e2g.centre_cm1
    fit = replace(
        TEMPLATE.fit,
        separation_cm1=separation + chance.gauss(0.0, NUMBER_SIGMA_CM1),
        separation_sigma_cm1=NUMBER_SIGMA_CM1,
        a=replace(TEMPLATE.fit.a, height_counts=height, height_sigma_counts=NUMBER_LN * height),
    )
    assert TEMPLATE.silicon is not None
    line = replace(TEMPLATE.silicon, height_counts=silicon.height)
    return SpotEvidence(fit, line, shone.bands[0].height / height)


# ---- films of one class whose strain nobody knows, looked at in nine places

STRAIN_PERCENT, LAYERS = (-0.5, 0.6), (1, 2, 3, 4, 5)
"""Strain is found there in films of one making or another; uniform, for each stated origin."""


@cache
def origin_claims(rows: tuple[SeparationRow, ...], seed: int) -> list[Claim]:
    """Judge maps of films of one thickness with a calibrated microscope."""
    chance, made = Random(seed), []
    for number in range(FILMS):
        layers = LAYERS[number % len(LAYERS)]
        film = drawn(PLANTS[0], chance)
        strained = replace(film.sample, strain_percent=chance.uniform(*STRAIN_PERCENT))
        film = replace(film, sample=strained)
        reference = reference_of(PLANTS[0], "calibrated", chance)
        seen = [numbers(film, layers, index, NINE[0], chance) for index in range(NINE[0])]
        found = judge_layers(seen, reference, rows)
        said = found.layer_count
        made.append(Claim(layers, said, found.confidence, found.credible_set, said == layers))
    return made


# ---- stated against right


@dataclass(frozen=True, slots=True)
class Bin:
    """Claims of one bin: how many, the mean of what was stated, how many were right."""

    low: float
    high: float
    claims: int
    stated: float
    right: int

    @property
    def p_value(self) -> float:
        """Chance of so few right answers if the stated confidence were true."""
        from scipy.stats import binomtest  # half a second in each worker, if it stood above

        return float(binomtest(self.right, self.claims, self.stated, alternative="less").pvalue)


def kept(made: Sequence[Claim]) -> list[Bin]:
    """Count the right ones in fixed bins of what was stated."""
    found = []
    for low, high in BINS:
        one = [c for c in made if c.said is not None and low <= c.confidence < high]
        if one:
            stated = min(sum(c.confidence for c in one) / len(one), 1.0)
            found.append(Bin(low, high, len(one), stated, sum(c.right for c in one)))
    return found
