"""Finds the sentences that state a quantity, a condition or an outcome.

Each sentence is judged by marks that an expression recognises (``marks.toml``). A mark speaks for a
finding or against it, by a fixed weight; `confidence` is the logistic function of their sum. So it
is monotone (a mark that speaks for it never lowers it), it is the same for the same sentence, and
`KeyFinding.basis` names its marks. It holds as a frequency of being right for sentences like those
that the weights were fitted to (docs/reference/document-analysis.md).

Reads the parameters of a growth from a paper, as far as its sentences state them. Only what stands
in a sentence about a growth is taken, and not what such a sentence compares it with. Where
sentences disagree on the temperature, that of most of them is proposed, the first one of equals; a
person, and the admission of the task, decide on it.
"""

import math
import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Final, Literal

from labharness.core.vocabulary.units import celsius_from_kelvin
from labharness.work.admission.quantities import Quantity, quantities
from labharness.work.capability.document_analysis.sections import Section, sentences

FINDINGS_MAX: Final = 100
"""Most findings of one document; those of the highest confidence are kept."""

WORDS_MIN: Final = 4
"""A shorter text is a caption or a row of a table, not a sentence."""

BEGIN: Final = -0.1
"""Sum without any mark: a confidence of 0.48, which a sentence without a mark never has."""

_TABLE: Final = tomllib.loads(Path(__file__).with_name("marks.toml").read_text("utf-8"))

MARKS: Final[Mapping[str, float]] = {name: mark["weight"] for name, mark in _TABLE.items()}
"""The weight of each mark."""

_IN_SENTENCE: Final = {
    name: re.compile("|".join(mark["any"])) for name, mark in _TABLE.items() if "any" in mark
}
_IN_HEADING: Final = {
    name: re.compile(mark["heading"]) for name, mark in _TABLE.items() if "heading" in mark
}
_NO_FINDINGS: Final = re.compile(
    r"^(?:references|bibliography|literature|acknowledge?ments?|funding|author contributions|"
    r"参考文献|致谢)"
)

Kind = Literal["outcome", "condition", "quantity"]


@dataclass(frozen=True, slots=True)
class KeyFinding:
    """A sentence that states something.

    Attributes:
        confidence: 0 to 1, made of ``basis``.
        kind: ``outcome`` where it says what was found, ``condition`` where it says how a thing was
            done, else ``quantity``.
        basis: The marks that were recognised, in the order of `MARKS`.
    """

    statement: str
    confidence: float
    source_section: str
    kind: Kind
    basis: tuple[str, ...]
    quantities: tuple[Quantity, ...]

    def to_json(self) -> dict[str, Any]:
        """Return it as an output has it."""
        measured = [each.to_json() for each in self.quantities]
        return {**asdict(self), "basis": list(self.basis), "quantities": measured}


def findings(sections: Iterable[Section]) -> tuple[KeyFinding, ...]:
    """Return the findings of a document in the order of its text, each statement once."""
    found: dict[str, KeyFinding] = {}
    for section in sections:
        for each in _of_section(section):
            known = found.get(each.statement)
            if known is None or known.confidence < each.confidence:
                found[each.statement] = each
    best = sorted(found.values(), key=lambda each: -each.confidence)[:FINDINGS_MAX]
    kept = {each.statement for each in best}
    return tuple(each for each in found.values() if each.statement in kept)


def _of_section(section: Section) -> Iterator[KeyFinding]:
    if _NO_FINDINGS.search(section.top):
        return
    for sentence in sentences(section.text):
        if len(sentence.split()) < WORDS_MIN and sentence.isascii():
            continue
        measured = quantities(sentence)
        marks = marks_of(sentence, measured, section.top)
        if _states(marks):
            kind: Kind = "outcome" if "outcome" in marks else "quantity"
            if kind == "quantity" and "condition" in marks:
                kind = "condition"
            yield KeyFinding(sentence, confidence_of(marks), section.name, kind, marks, measured)


def _states(marks: tuple[str, ...]) -> bool:
    """Return whether a sentence states a quantity in a context, or an outcome.

    An outcome without a number counts where it is compared, has a trend or a cause, or stands among
    the results.
    """
    if "question" in marks:
        return False
    context = {"comparison", "trend", "cause", "section_results"}.intersection(marks)
    if "quantity" in marks:
        return bool(context) or "outcome" in marks or "condition" in marks
    return "trend" in marks or "cause" in marks or ("outcome" in marks and bool(context))


def marks_of(sentence: str, measured: tuple[Quantity, ...], top: str) -> tuple[str, ...]:
    """Return the marks of a sentence in a section, in the order of `MARKS`."""
    found = {name for name, pattern in _IN_SENTENCE.items() if pattern.search(sentence)}
    if measured:
        found.add("quantity")
    if len(measured) > 1:
        found.add("more_quantities")
    kinds = (name for name, pattern in _IN_HEADING.items() if pattern.search(top))
    found.update(islice(kinds, 1))
    return tuple(name for name in MARKS if name in found)


def confidence_of(marks: Iterable[str]) -> float:
    """Return the confidence that marks make: the logistic function of the sum of their weights."""
    return round(1.0 / (1.0 + math.exp(-(BEGIN + sum(MARKS[name] for name in set(marks))))), 3)


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
        "recipe": _recipe(said),
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
    pairs = (pair for sentence in said for pair in MATERIALS.findall(sentence))
    counts = Counter(f"{metal}2" if metal else other for metal, other in pairs)
    return max(counts, key=counts.__getitem__, default=None)


def _temperatures(said: list[str]) -> Iterator[tuple[float, float]]:
    for sentence in said:
        if not OF_THE_GROWTH.search(sentence) or NOT_THE_FURNACE.search(sentence):
            continue
        beside = COMPARED.search(sentence)
        for each in quantities(sentence[: beside.start()] if beside else sentence):
            low, high = HOT_ENOUGH_K
            if each.si_unit == "K" and low <= each.si_low <= each.si_high <= high:
                yield (
                    round(celsius_from_kelvin(each.si_low), 2),
                    round(celsius_from_kelvin(each.si_high), 2),
                )


def _recipe(said: list[str]) -> dict[str, float]:
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
    return found
