"""Finds the sentences that state a quantity, a condition or an outcome.

Each sentence is judged by marks that an expression recognises. A mark speaks for a finding or
against it, by a fixed weight; `confidence` is the logistic function of their sum. So it is monotone
(a mark that speaks for it never lowers it), it is the same for the same sentence, and
`KeyFinding.basis` names its marks. It holds as a frequency of being right for sentences like those
that the weights were fitted to (docs/reference/document-analysis.md).

Reads the parameters of a growth from a paper, as far as its sentences state them. Only what stands
in a sentence about a growth is taken, and not what such a sentence compares it with. Where
sentences disagree on the temperature, that of most of them is proposed, the first one of equals; a
person, and the admission of the task, decide on it.
"""

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final, Literal

from labharness.work.capability.document_analysis.quantities import Quantity, quantities
from labharness.work.capability.document_analysis.sections import Section, sentences

FINDINGS_MAX: Final = 100
"""Most findings of one document; those of the highest confidence are kept."""

WORDS_MIN: Final = 4
"""A shorter text is a caption or a row of a table, not a sentence."""

BEGIN: Final = -0.1
"""Sum without any mark: a confidence of 0.48, which a sentence without a mark never has."""

MARKS: Final = {
    "quantity": 1.4,  # a number with a known unit
    "more_quantities": 0.5,
    "outcome": 1.1,  # a verb that says what was found or reached
    "comparison": 0.7,
    "trend": 1.2,
    "cause": 0.6,
    "condition": 0.8,
    "first_hand": 0.4,  # "we measured", "this work"
    "section_results": 0.9,
    "section_methods": 0.4,
    "section_background": -1.3,
    "hedged": -1.9,
    "of_others": -1.2,
    "future": -1.4,
    "pointer": -1.9,
    "question": -2.0,
}
"""The weight of each mark, fitted to sentences with the facts of twelve papers; its sign, which
says whether it speaks for a finding, was chosen by hand."""

_WEIGHED: Final = {
    "outcome": re.compile(
        r"\b(?:achiev|show|exhibit|demonstrat|reveal|increas|decreas|improv|reduc|yield|enhanc|"
        r"observ|measur|obtain|reach|exceed|indicat|confirm|correspond|outperform|suppress|"
        r"produc|deliver|attain|soften|stiffen|weaken|broaden|narrow|shrink|grow|fall|ris|lower|rais|"
        r"quench|split|shift|chang|evolv|remain|stay|determin|promot|activat|limit|merg|mov|behav|"
        r"becom|peak|work|react|form|rang|differ|stand)\w{0,3}\b|"
        r"\b(?:found|grew|gave|gives|results? in|resulted in|"
        r"leads? to|led to|rose|fell|drops?|dropped|is|are|was|were) (?=\D{0,40}\d)|"
        r"达到|提高|降低|增加|减少|显示|表明|得到|测得|观察到|获得|超过"
    ),
    "comparison": re.compile(
        r"\b(?:compared (?:to|with)|relative to|than|versus|vs\.?|baseline|control sample|"
        r"respectively)\b|相比|高于|低于|优于",
        re.IGNORECASE,
    ),
    "trend": re.compile(
        r"\b(?:with (?:increasing|decreasing|each|higher|lower)|for each|as \w[^,;]{0,60} "
        r"(?:increas|decreas|ris|fall|grow|shrink)\w{1,3}|scales? with|monotonic\w*|linear(?:ly)?|"
        r"depends? on|independent of|insensitive to|unchanged|from (?:\w+ ){1,3}to|"
        r"(?:times|twice) as|more \w+ than)\b|随着|正比|无关",
        re.IGNORECASE,
    ),
    "cause": re.compile(
        r"\b(?:because|due to|owing to|attributed to|aris(?:es?|ing) from|originates? from|"
        r"caused by|since|therefore|thereby|leads? to|led to|so that|explains?|whereas)\b|"
        r"由于|因此|导致",
        re.IGNORECASE,
    ),
    "condition": re.compile(
        r"\b(?:under|using|when|while|after|during|if|annealed|heated|deposited|grown|exposed|"
        r"ambient|vacuum|atmosphere)\b|\b(?:at|for|in|with|from) (?=[~≈<>]?\s?\d)|"
        r"条件下|温度下|气氛",
        re.IGNORECASE,
    ),
    "first_hand": re.compile(
        r"\b(?:we|our|this (?:work|study|paper)|here)\b|本文|我们", re.IGNORECASE
    ),
    "hedged": re.compile(
        r"\b(?:may|might|could|possibl[ey]|probabl[ey]|likely|perhaps|presumably|appears?|seems?|"
        r"speculate|hypothesi[sz]e|assum(?:e|ed|ing)|would|expect(?:ed)?|estimated?)\b|"
        r"可能|也许|或许|估计",
        re.IGNORECASE,
    ),
    "of_others": re.compile(
        r"\bet al\b|\b(?:previous(?:ly)?|earlier|prior) (?:work|stud|report)|"
        r"\b(?:reported (?:by|in|that)|in the literature|according to)\b|"
        r"\[\d{1,3}(?:[,–-]\s?\d{1,3})*\]|"
        r"文献",
        re.IGNORECASE,
    ),
    "future": re.compile(
        r"\b(?:will be|future work|further (?:work|stud)|remains? to be|should be investigated|"
        r"we plan|to be determined)\b|今后|未来",
        re.IGNORECASE,
    ),
    "pointer": re.compile(
        r"\b(?:fig(?:ure|\.)|table|(?:is|are) (?:shown|plotted|listed) in|we now|"
        r"the aim|in this section)(?!\w)|见图|如图",
        re.IGNORECASE,
    ),
    "question": re.compile(r"[?？]\s*$"),
}

_RESULTS: Final = re.compile(
    r"result|discussion|conclusion|abstract|summary|finding|结果|讨论|结论|摘要"
)
_METHODS: Final = re.compile(
    r"method|experiment|synthesis|growth|fabrication|procedure|实验|方法|制备"
)
_BACKGROUND: Final = re.compile(r"introduction|background|related|outlook|motivation|引言|背景")
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
        return {
            "statement": self.statement,
            "confidence": self.confidence,
            "source_section": self.source_section,
            "kind": self.kind,
            "basis": list(self.basis),
            "quantities": [each.to_json() for each in self.quantities],
        }


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
    found = {name for name, pattern in _WEIGHED.items() if pattern.search(sentence)}
    if measured:
        found.add("quantity")
    if len(measured) > 1:
        found.add("more_quantities")
    if _BACKGROUND.search(top):
        found.add("section_background")
    elif _RESULTS.search(top):
        found.add("section_results")
    elif _METHODS.search(top):
        found.add("section_methods")
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
