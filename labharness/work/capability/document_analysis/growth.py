"""Reads the parameters of a growth from a paper, as far as its sentences state them.

Only what stands in a sentence about a growth is taken, and not what such a sentence compares it
with. Where sentences disagree on the temperature, that of most of them is proposed, the first one
of equals; a person, and the admission of the task, decide on it.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, Final

from labharness.work.capability.document_analysis.quantities import quantities
from labharness.work.capability.document_analysis.sections import Section, sentences

VAPOUR: Final = re.compile(r"\bCVD\b|chemical vapou?r deposition|化学气相沉积", re.IGNORECASE)
MATERIALS: Final = re.compile(
    r"\b(MoS|WS|MoSe|WSe|MoTe|ReS|SnS)[ _{]{0,2}[2₂]\b|\b(graphene|h-?BN)\b"
)
SUBSTRATES: Final = (
    ("SiO2/Si", re.compile(r"SiO[ _{]{0,2}[2₂]\}?\s?/\s?Si\b")),
    ("sapphire", re.compile(r"\bsapphire\b", re.IGNORECASE)),
    ("quartz", re.compile(r"\b(?:quartz|fused silica) substrate", re.IGNORECASE)),
)
OF_THE_GROWTH: Final = re.compile(
    r"\b(?:grow\w*|grew|synthesi\w+|deposit\w+|CVD)\b|生长", re.IGNORECASE
)
NOT_THE_FURNACE: Final = re.compile(
    r"sulfur (?:boat|zone|powder)|anneal|dried|cleaned", re.IGNORECASE
)
COMPARED: Final = re.compile(
    r"\b(?:compared|than|versus|vs|instead|unlike|whereas|while|relative to|control)\b|相比|而",
    re.IGNORECASE,
)
DWELL: Final = re.compile(r"\bfor (?:~|about |another )?$|生长\s?$", re.IGNORECASE)
ARGON: Final = re.compile(r"\s?(?:of |flow of )?(?:Ar\b|argon)", re.IGNORECASE)

ZERO_CELSIUS_K: Final = 273.15
HOT_ENOUGH_K: Final = (673.15, 1773.15)
"""Below 400 degC nothing grows in this way; above 1500 degC no tube stands."""


def growth_of(sections: Iterable[Section]) -> dict[str, Any] | None:
    """Return material, substrate and conditions of a growth; ``None`` where none is described.

    A paper counts where it names chemical vapour deposition, a material, and a temperature in a
    sentence about its growth.
    """
    said = [sentence for each in sections for sentence in sentences(each.text)]
    material = _most_often(said)
    if material is None or not any(VAPOUR.search(each) for each in said):
        return None
    temperatures = list(_temperatures(said))
    if not temperatures:
        return None
    low, high = Counter(temperatures).most_common(1)[0][0]
    sources = [each for each in said if (low, high) in _temperatures([each])]
    return {
        "target_material": material,
        "substrate": _substrate(said, material),
        "temperature_range": {"min": low, "max": high, "unit": "celsius"},
        "recipe": dict(_recipe(said)),
        "sources": list(dict.fromkeys(sources))[:5],
    }


def _substrate(said: list[str], material: str) -> str | None:
    """Return the substrate of a sentence about the growth, of the material itself where one is."""
    grown = [each for each in said if OF_THE_GROWTH.search(each)]
    of_it = [each for each in grown if _most_often([each]) == material]
    for sentence in (*of_it, *grown, *said):
        places = [(form.search(sentence), name) for name, form in SUBSTRATES]
        named = [(found.start(), name) for found, name in places if found]
        if named:
            return min(named)[1]
    return None


def _most_often(said: list[str]) -> str | None:
    counts: dict[str, int] = {}
    for sentence in said:
        for metal, other in MATERIALS.findall(sentence):
            name = f"{metal}2" if metal else other
            counts[name] = counts.get(name, 0) + 1
    return max(counts, key=lambda name: counts[name], default=None)


def _temperatures(said: list[str]) -> Iterator[tuple[float, float]]:
    for sentence in said:
        if not OF_THE_GROWTH.search(sentence) or NOT_THE_FURNACE.search(sentence):
            continue
        beside = COMPARED.search(sentence)
        for each in quantities(sentence[: beside.start()] if beside else sentence):
            low, high = HOT_ENOUGH_K
            if each.si_unit == "K" and low <= each.si_low <= each.si_high <= high:
                yield _celsius(each.si_low), _celsius(each.si_high)


def _recipe(said: list[str]) -> Iterator[tuple[str, float]]:
    """Return dwell and argon flow: the first sentence about the growth that states one counts."""
    found: dict[str, float] = {}
    for sentence in said:
        if OF_THE_GROWTH.search(sentence) and not NOT_THE_FURNACE.search(sentence):
            for each in quantities(sentence):
                before, after = sentence[: each.start], sentence[each.end :]
                if each.low != each.high:
                    continue
                if each.si_unit == "s" and DWELL.search(before):
                    found.setdefault("dwell_s", each.si_low)
                if each.unit == "sccm" and ARGON.match(after):
                    found.setdefault("argon_sccm", each.low)
    yield from found.items()


def _celsius(kelvin: float) -> float:
    return round(kelvin - ZERO_CELSIUS_K, 2)
