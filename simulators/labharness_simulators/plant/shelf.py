"""The samples that lie ready in the lab: those that it states, and those that were grown before."""

import math
import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from labharness_simulators.plant.film import CLOSED_AREA, Film
from labharness_simulators.plant.growth import LAYERS
from labharness_simulators.plant.sample import STRAIN_PERCENT, Sample

MATERIAL, SUBSTRATE = "MoS2", "SiO2/Si"
"""The only ones of which the plant has lines."""

ISLANDS_PER_M2 = 5e8
"""Of a stated film: at half a coverage its triangles are some 60 um wide, as grown ones are."""

LYING_MAX = 100
"""Samples on the shelf; of more the one that has lain there longest is thrown away."""

STATED = {"layers": 1, "coverage": 1.0, "strain_percent": STRAIN_PERCENT, "disorder": 1.0}
"""The numbers that a lab may state of a sample, each with its value if it is left out."""

RANGES = {
    "layers": (0, LAYERS),
    "coverage": (0.0, 1.0),
    "strain_percent": (-2.0, 2.0),  # a film slides or tears beyond that
    "disorder": (0.0, 100.0),
}


class SeenFilm(Protocol):
    """A film as a laser meets it."""

    def layers_at(self, x_um: float, y_um: float) -> int:
        """Return the number of layers at a stage position in um."""
        ...

    def burn(self, x_um: float, y_um: float) -> None:
        """Remove the film at a stage position in um."""
        ...


class StatedFilm:
    """A film that was not grown here: islands of one thickness on a share of the sample.

    Args:
        layers: Their thickness; 0 for a bare substrate.
        coverage: Share of the sample, 0 to 1.
        seed: For the places of the islands.
    """

    def __init__(self, layers: int, coverage: float, seed: int) -> None:
        area = CLOSED_AREA if coverage >= 1.0 else -math.log1p(-coverage)
        self._layers = layers
        self._islands = Film((ISLANDS_PER_M2,), (area,), seed)

    def layers_at(self, x_um: float, y_um: float) -> int:
        """Return the number of layers at a stage position in um; 0 off the sample."""
        return self._layers * self._islands.layers_at(x_um, y_um)

    def burn(self, x_um: float, y_um: float) -> None:
        """Remove the film within 1 um of a position."""
        self._islands.burn(x_um, y_um)


@dataclass(frozen=True, slots=True)
class Lying:
    """A sample with its film, and the covered fraction of each layer."""

    sample: Sample
    film: SeenFilm
    coverage: tuple[float, ...]


class Shelf:
    """The samples by their ids.

    Args:
        stated: The statements of the lab on each: ``material``, ``substrate``, and the names in
            `STATED`.
        chance: Of the places of islands, and of the scatter from spot to spot; ``None`` is the
            nominal lab, without any.

    Raises:
        ValueError: A sample cannot be as it is stated.
    """

    def __init__(
        self, stated: Mapping[str, Mapping[str, object]], chance: random.Random | None
    ) -> None:
        if len(stated) > LYING_MAX:
            raise ValueError(f"CvdTube: {len(stated)} samples; allowed at most {LYING_MAX}")
        self._nominal = chance is None
        self._stated = tuple(stated)
        self._lying = {name: _made(name, about, chance) for name, about in stated.items()}

    def put(self, lying: Lying) -> None:
        """Put a sample there; an older one of the same id is thrown away."""
        self._lying.pop(lying.sample.sample_id, None)
        self._lying[lying.sample.sample_id] = lying
        while len(self._lying) > LYING_MAX:
            del self._lying[next(iter(self._lying))]

    def find(self, sample_id: str) -> Lying:
        """Return a sample.

        A plan is flown on the nominal lab before it is real, and a lab with real instruments
        states no samples: there any id is a bare substrate.

        Raises:
            ValueError: There is no such sample.
        """
        found = self._lying.get(sample_id)
        if found is not None:
            return found
        if self._nominal:
            return _made(sample_id, {"layers": 0}, None)
        known = ", ".join(self._stated) or "none"
        raise ValueError(
            f"CvdTube: there is no sample {sample_id!r}; the lab file states {known}, by "
            "[plant.samples.<id>], and what has been grown lies here too"
        )


def _made(sample_id: str, about: Mapping[str, object], chance: random.Random | None) -> Lying:
    where = f"CvdTube: sample {sample_id!r}"
    _must_be_known(where, about)
    values = {name: _number(where, name, about.get(name, usual)) for name, usual in STATED.items()}
    layers, coverage = int(values["layers"]), values["coverage"]
    seeds = (0, None) if chance is None else (chance.getrandbits(63), chance.getrandbits(63))
    sample = Sample(
        sample_id,
        SUBSTRATE,
        strain_percent=values["strain_percent"],
        disorder=values["disorder"],
        film_seed=seeds[0],
        spot_seed=seeds[1],
    )
    covered = tuple(coverage if layer < layers else 0.0 for layer in range(LAYERS))
    return Lying(sample, StatedFilm(layers, coverage, seeds[0]), covered)


def _must_be_known(where: str, about: Mapping[str, object]) -> None:
    for name, only in (("material", MATERIAL), ("substrate", SUBSTRATE)):
        if about.get(name, only) != only:
            raise ValueError(f"{where}: {name} is {about[name]!r}; this plant knows {only!r}")
    known = ("material", "substrate", *STATED)
    for name in about:
        if name not in known:
            raise ValueError(f"{where}: unknown {name!r}; known: {', '.join(known)}")


def _number(where: str, name: str, value: object) -> float:
    low, high = RANGES[name]
    whole = isinstance(low, int)
    kinds = int if whole else (int, float)
    if isinstance(value, bool) or not isinstance(value, kinds) or not low <= value <= high:
        what = "a whole number" if whole else "a number"
        raise ValueError(f"{where}: {name} is {value!r}; allowed {what} from {low} to {high}")
    return float(value)
