"""Reads a caller's words, and holds them against the inputs; it changes nothing.

A sentence is read wholly or not at all. Each word of it must stand in the table of this room
(``intent.toml``) or in that of the capability, and the words must follow each other in one of the
ways of `_TILES`. A sentence that compares, tells or refers to another one is not read, and one that
asks says nothing, so that no honest task is refused for it. Sentences that were not read are told.
"""

import math
import re
import tomllib
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain, product
from pathlib import Path
from typing import Any, ClassVar, Final, Literal, NamedTuple

from labharness.core.vocabulary.texts import Text
from labharness.protocols.hcp.terms import Submission
from labharness.protocols.strict_json import Json
from labharness.work.admission.quantities import Quantity, in_si, quantities

CHARACTERS_MAX: Final = 8_192
"""Length of an intent, and of a text of a context, that is read; it bounds the time."""

SENTENCE_MAX: Final = 400
"""Length of a sentence that is read."""

CONTEXT_READ: Final = ("purpose", "notes")
SHOWN: Final = 120
SHOWN_MAX: Final = 5

_GENERAL: Final = tomllib.loads(Path(__file__).with_name("intent.toml").read_text("utf-8"))
_END: Final = re.compile(r"(?<=[!?。\n])|(?<=\.)(?=\s|$)")
_STOPS: Final = " .。!?\n\t"
_EDGE: Final = r"(?:(?<![A-Za-z0-9])|(?![A-Za-z0-9]))"  # not within a word of Latin letters
_ENDS: Final = ("const", "min", "max", "minimum", "maximum")
_HUGE: Final = 1e300
_NEAR: Final = 1e-9  # 700 degC is 700 degC in kelvin too
_MIXED: Final = re.compile(_GENERAL["tiles"]["mixed"])
_TILES: Final = re.compile(_GENERAL["tiles"]["expression"])
_STAGE: Final = re.compile(_GENERAL["stage"]["words"], re.IGNORECASE)
Way = Literal["", "at_most", "at_least", "not"]


@dataclass(frozen=True, slots=True)
class SpokenInput:
    """The ways in which one input is spoken of.

    Attributes:
        at: Its places in a submission; a proposal is made for the first.
        kind: A name of ``values``, a count (``2-5`` in ``values`` is a range), or a quantity.
        values: The expression of each value.
        unit: Of a quantity.
        topic: The expression that a quantity of it needs beside it, where the unit is not enough.
        none: Zero is meant where its topic is denied.
        on: It may be named as what the others are put on.
        range: It is an object of ``min``, ``max`` and ``unit``.
    """

    __pydantic_config__: ClassVar = {"extra": "forbid"}
    at: tuple[str, ...]
    kind: Literal["name", "count", "quantity"]
    values: Mapping[str, str] = field(default_factory=dict)
    unit: str = ""
    topic: str = ""
    none: bool = False
    on: bool = False
    range: bool = False

    @property
    def si_unit(self) -> str:
        """Unit of the SI in which it is compared; ``""`` of a name and a count."""
        return (in_si(0.0, self.unit) or (0.0, ""))[1]

    def ends(self, value: str) -> tuple[float, float]:
        """Return a value as an interval: a count, or the number of a name; of no name any."""
        if self.kind == "count":
            low, _, high = value.partition("-")
            return float(low), float(high or low)
        number = list(self.values).index(value) if value else math.inf
        return number if value else -number, number


@dataclass(frozen=True)
class SpokenInputs:
    """The table ``intent.toml`` of a capability: its inputs, and the other words it knows.

    Attributes:
        things: They may be hotter or colder than what is asked for.
        verbs: They ask for something; behind a name they tell of it.
        words: They change nothing.
        beside: They name things that are not in the inputs, and that a quantity may be of.
    """

    __pydantic_config__: ClassVar = {"extra": "forbid"}
    words: str
    verbs: str
    things: str
    beside: str
    input: tuple[SpokenInput, ...]

    @cached_property
    def named(self) -> Mapping[str, tuple[SpokenInput, str, str]]:
        """The input, the value and the expression of each value and topic, by its group."""
        found = [(row, value, words) for row in self.input for value, words in row.values.items()]
        topics = {row.topic: (row, "", row.topic) for row in self.input if row.topic}
        return {f"n{number}": each for number, each in enumerate((*found, *topics.values()))}

    @cached_property
    def expression(self) -> re.Pattern[str]:
        """The expression of any word that is known; its group says which."""
        words = {group: each for group, (_, _, each) in self.named.items()}
        words |= {"b": self.beside, "z": self.things, **_GENERAL["words"]}
        words |= {"V": f"{self.verbs}|{words['V']}", "w": f"{self.words}|{words['w']}"}
        known = "|".join(f"(?P<{name}>{pattern})" for name, pattern in words.items())
        return re.compile(rf"{_EDGE}(?:{known}){_EDGE}|(?P<blank>[\s()]+)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Wish:
    """One thing that the words, or the inputs, say of an input: as written, and as an interval.

    Attributes:
        place: Where it is written, of an input.
        value: The value of a name or a count.
        low, high: Both ends, in SI units; of a topic alone both are infinite.
    """

    row: SpokenInput
    words: str
    low: float
    high: float
    way: Way = ""
    value: str = ""
    place: str = ""


@dataclass(frozen=True, slots=True)
class IntentReading:
    """The meaning of a task's words, as far as they were read; nothing of it is obeyed.

    Attributes:
        goal: The words that ask for something, by the place of the input.
        conflicts: ``words`` that an input contradicts, its ``place``, the value ``asked`` there.
        missing: Places of inputs that the words speak of without a value, and that are not stated.
        proposed_inputs: Inputs that the words state and that were left open, by their places.
        confidence: The share of the sentences of the intent that were read.
        unread: The other ones.
    """

    goal: Mapping[str, Sequence[str]]
    conflicts: Sequence[Mapping[str, str]]
    missing: Sequence[str]
    proposed_inputs: Mapping[str, Any]
    confidence: float
    unread: Sequence[str]

    def refusal(self) -> tuple[Text, Text]:
        """Return why a task whose inputs contradict its words is refused, and a remedy."""
        said = [(each["words"], each["place"], each["asked"]) for each in self.conflicts]
        why = [Text("intent.conflict", words=w, place=p, asked=a) for w, p, a in said]
        how = [Text("intent.settle", words=w, place=p, asked=a) for w, p, a in said]
        return Text("parts", parts=why), Text("sentences", parts=how)

    def warnings(self) -> Iterator[tuple[str, Text]]:
        """Return the code and the text of each warning that it gives."""
        if self.unread:
            quoted = [repr(each[:SHOWN]) for each in self.unread[:SHOWN_MAX]]
            yield "intent_not_read", Text("intent.not_read", sentences=quoted)
        if self.proposed_inputs:
            inputs = [f"{name}: {value}" for name, value in self.proposed_inputs.items()]
            yield "intent_not_stated", Text("intent.not_stated", inputs=inputs)


class _Token(NamedTuple):
    """A word by its letter, and what it means: a value or a topic of an input, or a quantity."""

    letter: str
    start: int
    end: int
    row: SpokenInput | None
    meant: str | Quantity


_Tile = re.Match[str]
_Tokens = Sequence[_Token]
_Wishes = list[Wish] | None
_Told = Mapping[str, _Wishes]


def read(submission: Submission, spoken: SpokenInputs) -> IntentReading:
    """Return what the intent and the context of a submission ask for, beside its inputs.

    The context may propose; it is never held against the inputs.

    Args:
        submission: The submission.
        spoken: How the inputs of its capability are spoken of.
    """
    told = {each: _wishes(each, spoken) for each in _sentences(submission.intent)}
    wished = [one for wishes in told.values() for one in wishes or ()]
    unread = [text for text, wishes in told.items() if wishes is None]
    context = submission.context if isinstance(submission.context, Mapping) else {}
    notes = [each for name in CONTEXT_READ if isinstance(each := context.get(name), str)]
    heard = [_wishes(each, spoken) or () for text in notes for each in _sentences(text)]
    whole = {"inputs": submission.inputs, "expected_output": {"schema": submission.output_schema}}
    goal, proposed = dict[str, Sequence[str]](), dict[str, Any]()
    conflicts, missing = list[Mapping[str, str]](), list[str]()
    for row in spoken.input:
        wishes = [each for each in wished if each.row is row]
        asked, place = list(_asked(row, whole)), row.at[0]
        if words := [each.words for each in wishes if each.way != "not"]:
            goal[place] = words
        for each in asked if wishes and not _unsure(row, wished, told, spoken) else ():
            if said := _against(wishes, each):
                conflicts.append({"words": said, "place": each.place, "asked": each.words})
        if not asked and place.startswith("inputs."):
            beside = [one for said in heard for one in said if one.row is row]
            if (value := _proposed(row, wishes or beside)) is not None:
                proposed[place] = value
            elif words:
                missing.append(place)
    share = round(1.0 - len(unread) / max(len(told), 1), 2)
    return IntentReading(goal, conflicts, missing, proposed, share, unread)


def _sentences(text: str) -> list[str]:
    """Return the sentences of a text in one way of writing; the beginning of a text too long."""
    begun = text[: CHARACTERS_MAX + 1].replace("º", "°").replace("˚", "°")
    plain = unicodedata.normalize("NFKC", begun)
    if len(plain) > CHARACTERS_MAX:
        return [plain[: SENTENCE_MAX + 1]]
    for pattern, other in _GENERAL["instead"].items():
        plain = re.sub(pattern, other, plain)
    return [each.strip() for each in _END.split(plain) if each.strip(_STOPS)]


def _wishes(sentence: str, spoken: SpokenInputs) -> _Wishes:
    """Return what a sentence says; None where it is not read. A question asks for nothing."""
    text = sentence.rstrip(_STOPS)
    tokens = _tokens(text, spoken) if len(text) <= SENTENCE_MAX else None
    letters = "".join(each.letter for each in tokens or ())
    if tokens is None or _MIXED.search(letters):
        return None
    found, place = list[Wish](), 0
    for tile in _TILES.finditer(letters):
        said = _said(tile, tokens, text, spoken) if tile.start() == place else None
        if said is None:
            return None
        found, place = found + said, tile.end()
    return None if place < len(tokens) else [] if sentence.endswith("?") else found


def _tokens(text: str, spoken: SpokenInputs) -> list[_Token] | None:
    """Return the words of a sentence; None where one is not known."""
    numbers = {each.start: each for each in quantities(text)}
    found, place = list[_Token](), 0
    while place < len(text):
        match, number = spoken.expression.match(text, place), numbers.get(place)
        if match is not None and match.lastgroup is not None:
            row, value, _ = spoken.named.get(match.lastgroup, (None, "", ""))
            letter = match.lastgroup if row is None else row.kind[0] if value else "t"
            found.append(_Token(letter, place, match.end(), row, value))
        elif number is not None and " and " not in number.text:  # "5 and 10 min" are two numbers
            found.append(_Token("q", place, number.end, None, number))
        else:
            return None
        place = found[-1].end
    return [each for each in found if each.letter != "blank"]


def _said(tile: _Tile, tokens: _Tokens, text: str, spoken: SpokenInputs) -> _Wishes:
    """Return what one part of a sentence says; None where it may be meant otherwise."""
    letters, (first, last) = tile.string, tile.span()
    at = next((each for each in range(first, last) if letters[each] in "nctq"), None)
    if at is None:
        return None if tile[0] == "V" and re.search("[nc][^a]*$", letters[:first]) else []
    row, meant = tokens[at][3:]
    words = text[tokens[first].start : tokens[last - 1].end][:SHOWN]
    if isinstance(meant, Quantity):
        of = _row_of(tile, tokens, at, text, spoken)
        return None if of is None else [Wish(of, words, *_bounds(tile, meant, of))]
    if row is None or (tile["on"] and not row.on):
        return None
    if meant:
        return [Wish(row, words, *row.ends(meant), "not" if tile["off"] else "", meant)]
    rows = [each for each in spoken.input if each.topic == row.topic and each.none]
    if tile["off"]:
        return [Wish(each, words, -math.inf, 0.0, "at_most") for each in rows] or None
    return [Wish(each, words, math.inf, math.inf) for each in rows]


def _row_of(
    tile: _Tile, words: _Tokens, at: int, text: str, spoken: SpokenInputs
) -> SpokenInput | None:
    """Return the one input that a quantity may be of: of its topic, else of its unit alone.

    A bound on a time or a rate is of no input beside a topic, or a word of another stage.
    """
    before = tile.string[:at]
    begin = max(map(before.rfind, "ay")) + 1
    clause = re.split("[ay]", tile.string[begin:])[0]
    named = [each.row for each in words[begin : begin + len(clause)] if each.letter == "t"]
    unit = getattr(words[at].meant, "si_unit", None)
    rows = [each for each in spoken.input if each.si_unit == unit]
    of = [each for each in rows if any(one and one.topic == each.topic for one in named)]
    of = of or [each for each in rows if not each.topic]
    bounds = tile["way"] or tile["fixed"] or tile["after"]
    strange = bounds and ("b" in before or any(one and not one.none for one in named))
    part = words[before.rfind("a") + 1 : begin + len(clause)]
    staged = any(each.letter == "t" for each in part) or _STAGE.search(
        text, part[0].start, part[-1].end
    )
    strange = strange or (bounds and unit in _GENERAL["stage"]["units"] and staged)
    sure = len(of) == 1 and "b" not in clause and not (strange and not of[0].topic)
    return of[0] if sure else None


def _bounds(tile: _Tile, number: Quantity, row: SpokenInput) -> tuple[float, float, Way]:
    """Return the interval that a quantity leaves; "under 50 sccm argon" is not a bound."""
    bound = tile["way"] or tile["fixed"] or tile["after"]
    if not bound or (bound == "d" and row.topic):
        return number.si_low, number.si_high, ""
    if (bound in "lLG") != bool(tile["neg"]):
        return number.si_low, math.inf, "at_least"
    return -math.inf, number.si_high, "at_most"


def _asked(row: SpokenInput, whole: Mapping[str, Any]) -> Iterator[Wish]:
    """Return what is asked of an input, at each of its places; of a range of a quantity its top."""
    for place in row.at:
        value: Any = whole
        for name in place.split("."):
            value = value.get(name) if isinstance(value, Mapping) else None
        if row.kind == "name" and value is not None:
            text = unicodedata.normalize("NFKC", str(value)[:SHOWN]).strip()
            known = (each for each, words in row.values.items() if _apart(words).fullmatch(text))
            yield Wish(row, text, *row.ends(next(known, "")), place=place)
        elif value is not None:
            stated = value if isinstance(value, Mapping) else {"const": value}
            unit = str(stated.get("unit", row.unit))
            ends = {name: float(stated[name]) for name in _ENDS if _is_number(stated.get(name))}
            shown = ", ".join(f"{name} {each:g}" for name, each in ends.items())
            si = {name: (in_si(each, unit) or (each, ""))[0] for name, each in ends.items()}
            low = si.get("const", si.get("minimum", -math.inf))
            high = si.get("const", si.get("maximum", math.inf))
            if row.kind == "quantity":
                low = high = max(si.values(), default=math.nan)
            shown = f"{shown} {unit}".removeprefix("const ").strip()
            yield Wish(row, shown, low, high, place=place)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < _HUGE


def _unsure(row: SpokenInput, wished: list[Wish], told: _Told, spoken: SpokenInputs) -> bool:
    """Return whether a sentence may speak of an input otherwise than what was read of it.

    One that was not read names another value, or takes something back; or any one speaks of
    something else of the same unit.
    """
    goals = {each.value for each in wished if each.row is row and each.way != "not"}
    doubts = [words for value, words in row.values.items() if value not in goals]
    unread = [text for text, wishes in told.items() if wishes is None]
    known = {each.row.topic for each in wished if each.low < math.inf} | {""}
    of_unit = {each.topic for each in spoken.input if each.si_unit == row.si_unit and not row.topic}
    pairs = chain(
        product([_GENERAL["doubt"]["words"], *doubts], unread), product(of_unit - known, told)
    )
    return any(_apart(words).search(text) for words, text in pairs)


def _against(wishes: Sequence[Wish], asked: Wish) -> str | None:
    """Return the first words that an input contradicts; a number may differ, and pass no bound."""
    near = _NEAR * abs(asked.low)
    within = [each.low - near <= asked.high and asked.low <= each.high + near for each in wishes]
    ways = {each.way for each, fits in zip(wishes, within, strict=True) if fits} - {"not"}
    for each, fits in zip(wishes, within, strict=True):
        hard = bool(each.way) or each.row.kind != "quantity"
        whole = each.low <= asked.low and asked.high <= each.high
        against = hard and (whole if each.way == "not" else not fits)
        if against and not math.isnan(asked.low) and not ways & {"", each.way}:
            return each.words
    return None


def _proposed(row: SpokenInput, wishes: Sequence[Wish]) -> Json:
    """Return the one value that the words state for an input; None for none, and for several."""
    said = {(each.low, each.high) for each in wishes if each.way != "not" and each.low < math.inf}
    if len(said) != 1:
        return None
    ((low, high),) = said
    if row.kind == "name":
        return list(row.values)[int(low)]
    zero, one = ((in_si(each, row.unit) or (each, ""))[0] for each in (0.0, 1.0))
    least, most = (float(f"{(each - zero) / (one - zero):.9g}") for each in (low, high))
    if row.range:
        ends = {"min": least, "max": most, "unit": row.unit}
        return {name: each for name, each in ends.items() if each not in (-math.inf, math.inf)}
    return most if high in (low, 0.0) else None


def _apart(words: str) -> re.Pattern[str]:
    """Return the expression of words that stand by themselves."""
    return re.compile(rf"{_EDGE}(?:{words}){_EDGE}", re.IGNORECASE)
