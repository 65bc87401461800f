"""Plants whose films and microscope differ from those that the analysis assumes, one thing each."""

from dataclasses import dataclass, replace
from random import Random

from labharness.analysis.evidence import LAYER_CLASSES, NANOCRYSTALLINE_ROW
from labharness_simulators.plant.sample import Sample, draw_sample
from labharness_simulators.plant.spectrum import Light, RamanLine, light_of

LASER_MW = 0.3
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
        a1g_power: A1g/Si grows with this power of the layers besides what it does anyway: measured
            beside the silicon that they dim it goes as N^1.1 to N^1.2.
        pl_factor: On the photoluminescence of every film.
        pl_single: Only films of one layer are quenched: their substrate takes the light.
        relaxed: Two layers and more are not strained at all.
        steps_cm1: Added to the separation of each class.
        step_sd_cm1: The same, drawn anew for each class of each film: one standard deviation.
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
    a1g_power: float = 0.0
    pl_factor: float = 1.0
    pl_single: bool = False
    relaxed: bool = False
    steps_cm1: tuple[float, ...] = (0.0,) * len(LAYER_CLASSES)
    step_sd_cm1: float = 0.0
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
    Plant("thick films relaxed", relaxed=True),
    Plant("more doping", doping_e13=0.2),
    Plant("less doping", doping_e13=-0.2),
    Plant("steps alternate", steps_cm1=(-0.3, 0.3, -0.3, 0.3, -0.3, 0.3)),
    Plant("steps compressed", steps_cm1=(0.0, -0.3, -0.6, -0.9, -1.2, -1.5)),
    Plant("steps stretched", steps_cm1=(0.0, 0.3, 0.6, 0.9, 1.2, 1.5)),
    Plant("steps drawn", step_sd_cm1=0.3),
    Plant("oxide ×0.5", oxide_factor=0.5),
    Plant("oxide ×2", oxide_factor=2.0),
    Plant("oxide ×3", oxide_factor=3.0),
    Plant("A1g/silicon × N^0.2", a1g_power=0.2),
    Plant("PL quenched 30 ×", pl_factor=1 / 30),
    Plant("PL of one layer quenched 30 ×", pl_factor=1 / 30, pl_single=True),
    Plant("oxide ×2, PL quenched 30 ×", oxide_factor=2.0, pl_factor=1 / 30),
    Plant("disordered", disordered=True),
    Plant("twisted bilayers", twisted=True),
    Plant("spots over an edge", edge=True),
    Plant("Fano silicon", fano=True),
    Plant("shoulders", shoulders=True),
)
"""Doping is moved by one standard deviation of the generator, strain by one and two. Classes
stand 0.3 cm-1 high and low in turns, every step is 0.3 cm-1 shorter or longer, or each class of
each film is moved by a number of its own, with a standard deviation of 0.3 cm-1."""

EVERY_DAY = ("nominal", "steps drawn")

MIXED_PLANTS = tuple(
    plant for plant in PLANTS if not (plant.disordered or plant.fano or plant.shoulders)
)
"""What changes the lines and not their numbers is proven on single spots."""


@dataclass(frozen=True, slots=True)
class Film:
    """A film of a plant, and what is added to the separation of each of its classes in cm⁻¹."""

    plant: Plant
    sample: Sample
    steps_cm1: tuple[float, ...]


def drawn(plant: Plant, chance: Random) -> Film:
    """Draw a film; what is drawn is the same for every plant."""
    sample = draw_sample(chance, "film", "SiO2/Si")
    own = Random(chance.random())
    normal = [own.gauss(0.0, 1.0) for _ in LAYER_CLASSES]
    sample = replace(
        sample,
        strain_percent=sample.strain_percent + plant.strain_percent,
        doping_e13=sample.doping_e13 + plant.doping_e13,
        raman_factor=sample.raman_factor * plant.oxide_factor,
    )
    steps = (
        fixed + plant.step_sd_cm1 * by for fixed, by in zip(plant.steps_cm1, normal, strict=True)
    )
    return Film(plant, sample, tuple(steps))


@dataclass(frozen=True, slots=True)
class Change:
    """What chance adds to one spot of a plant: a normal number, and two within 0 and 1."""

    normal: float
    share: float
    other: float


def change_of(chance: Random) -> Change:
    """Draw it, the same numbers for every plant."""
    own = Random(chance.random())
    return Change(own.gauss(0.0, 1.0), own.random(), own.random())


def light(
    film: Film,
    layers: int,
    change: Change,
    exposure_s: float,
    where: tuple[float, float] = (0.0, 0.0),
    *,
    on_edge: bool = True,
) -> Light:
    """Shine as a film of the plant does; ``on_edge`` says whether an edge lies under this spot."""
    plant, sample = film.plant, film.sample
    if plant.relaxed and layers > 1:
        sample = replace(sample, strain_percent=0.0)
    found = light_of(sample, layers, *where, LASER_MW, exposure_s)
    *silicon, e2g, a1g, second = found.lines
    bands = found.bands
    at = min(layers, len(LAYER_CLASSES)) - 1
    more: list[RamanLine] = []
    if plant.disordered:
        row = NANOCRYSTALLINE_ROW
        separation = row.centre_cm1[at] + row.tau_cm1[at] * change.normal
        a1g = replace(a1g, centre_cm1=e2g.centre_cm1 + separation)
        low, high = LA_OVER_E
        more.append(
            RamanLine(LA_CM1, LA_FWHM_CM1, (low + (high - low) * change.share) * e2g.height)
        )
    if plant.twisted and layers == 2:
        separation = TWISTED_CM1 + TWISTED_SD_CM1 * change.normal
        a1g = replace(a1g, centre_cm1=e2g.centre_cm1 + separation)
    a1g = replace(a1g, centre_cm1=a1g.centre_cm1 + film.steps_cm1[at])
    part = layers**plant.a1g_power
    if plant.edge and on_edge:
        part *= EDGE[0] + (EDGE[1] - EDGE[0]) * change.other
    e2g, a1g, second = (dimmed(line, part) for line in (e2g, a1g, second))
    if layers == 1 or not plant.pl_single:
        part *= plant.pl_factor
    bands = tuple(replace(band, height=part * band.height) for band in bands)
    if plant.fano:
        silicon = [*fano(silicon[0]), *silicon[1:]]
    if plant.shoulders:
        more += [
            RamanLine(e2g.centre_cm1 - 8.0, 9.0, 0.1 * e2g.height),
            RamanLine(a1g.centre_cm1 - 6.0, 8.0, 0.08 * a1g.height),
            RamanLine(a1g.centre_cm1 + 13.0, 14.0, 0.07 * a1g.height),
        ]
    return replace(found, lines=(*silicon, e2g, a1g, second, *more), bands=bands)


def dimmed(line: RamanLine, part: float) -> RamanLine:
    """Take only part of a line."""
    return replace(line, height=part * line.height)


def fano(line: RamanLine) -> tuple[RamanLine, ...]:
    """Make silicon asymmetric, its foot towards higher shifts, as in a wafer doped with boron."""
    rows = ((0.0, 4.0, 0.6), (2.5, 7.0, 0.3), (6.0, 12.0, 0.12))
    return tuple(
        RamanLine(line.centre_cm1 + by, width, part * line.height) for by, width, part in rows
    )
