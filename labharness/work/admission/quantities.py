"""Finds numbers with units in a sentence, and writes each in SI units.

A table of the units that papers on materials use (``units.toml``), and one expression that reads a
number. A number whose unit is not in the table is left out: nothing is guessed.
"""

import math
import re
import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

from labharness.core.vocabulary.units import ZERO_CELSIUS_K

_UNITS: Final = tomllib.loads(Path(__file__).with_name("units.toml").read_text("utf-8"))
_WORDS: Final[Mapping[str, str]] = _UNITS["words"]
"""Other ways to write a unit."""

_CELSIUS: Final = "°C"

_NUMBER: Final = r"[+\-−]?\d{1,3}(?:,\d{3})+(?:\.\d+)?|[+\-−]?\d+(?:\.\d+)?(?:[eE][+\-−]?\d{1,3})?"
_POWER: Final = r"(?:\s?[×x·]\s?10\s?\^?\s?(?P<exponent>[+\-−]?\d{1,3}|[⁺⁻⁰¹²³⁴⁵⁶⁷⁸⁹]{1,4}))?"
_RANGE: Final = (
    r"(?:\s?(?P<to>–|—|-|−|~|to|and|±|\+/-)\s?(?P<second>\d+(?:\.\d+)?))?"  # 700-750, 5 ± 1
)
_SUPERSCRIPTS: Final = str.maketrans("⁺⁻⁰¹²³⁴⁵⁶⁷⁸⁹−", "+-0123456789-")
_BEGIN: Final = r"(?<![A-Za-z0-9_.^])"
_OVER: Final = r"(?![A-Za-z0-9/^⁺⁻⁰¹²³⁴⁵⁶⁷⁸⁹])"  # a unit read to its half is another unit


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number with its unit, as a sentence states it.

    Attributes:
        text: As it stands.
        low: The value, or the lower end of a range, in ``unit``.
        high: The upper end; the value itself where there is no range.
        unit: As it stands, or its usual sign.
        si_low, si_high: The same in ``si_unit``.
        si_unit: ``1`` for a ratio.
        start, end: Where it stands in the sentence.
    """

    text: str
    low: float
    high: float
    unit: str
    si_low: float
    si_high: float
    si_unit: str
    start: int
    end: int

    def to_json(self) -> dict[str, Any]:
        """Return it as an output has it."""
        said = asdict(self)
        del said["start"], said["end"]
        # without the noise of a conversion
        return said | {name: float(f"{said[name]:.9g}") for name in ("si_low", "si_high")}


def quantities(sentence: str) -> tuple[Quantity, ...]:
    """Return the quantities that a sentence states, in their order; a range is one of them."""
    found = (_quantity(match) for match in _expression().finditer(sentence))
    return tuple(each for each in found if each is not None)


def in_si(value: float, unit: str) -> tuple[float, str] | None:
    """Return a number of a unit in SI units, and that unit; None where the unit is not known."""
    known = _WORDS.get(unit, unit)
    scale = _scale_of(known)
    zero = ZERO_CELSIUS_K if known == _CELSIUS else 0.0
    return None if scale is None else (value * scale[0] + zero, scale[1])


def _quantity(match: re.Match[str]) -> Quantity | None:
    written = " ".join(match["unit"].split())
    unit = _WORDS.get(written, written)
    scale = _scale_of(unit)
    if scale is None:
        return None
    factor, si_unit = scale
    ten = _plain(match["exponent"])
    power = 10.0 ** int(ten) if ten and abs(int(ten)) <= 99 else 1.0
    first = float(_plain(match["first"]).replace(",", "")) * power
    low = high = first
    if match["second"] is not None:
        second = float(match["second"]) * power
        within = match["to"] in ("±", "+/-")
        low, high = (first - second, first + second) if within else (first, second)
    if match["to"] == "and" or low > high or not math.isfinite(high):
        low = high = first  # "5 and 3 nm" are two facts; the first has no unit of its own
    offset = ZERO_CELSIUS_K if unit == _CELSIUS else 0.0
    return Quantity(
        text=match[0].strip(),
        low=low,
        high=high,
        unit=unit,
        si_low=low * factor + offset,
        si_high=high * factor + offset,
        si_unit=si_unit,
        start=match.start(),
        end=match.end(),
    )


def _plain(text: str | None) -> str:
    return (text or "").translate(_SUPERSCRIPTS)


@cache
def _atoms() -> dict[str, tuple[float, str]]:
    """Return every unit without powers, by its sign."""
    found: dict[str, tuple[float, str]] = dict(_UNITS["prefixed"])
    for sign, (factor, si_unit) in _UNITS["prefixed"].items():
        for prefix, times in _UNITS["prefixes"].items():
            found.setdefault(prefix + sign, (factor * times, si_unit))
    found |= _UNITS["alone"]
    found |= {"μ" + sign[1:]: scale for sign, scale in found.items() if sign.startswith("µ")}
    found[_CELSIUS] = (1.0, "K")
    return found


def _scale_of(unit: str) -> tuple[float, str] | None:
    """Return the factor to SI units of a unit with powers, such as ``cm2 V-1 s-1``, and its sign.

    ``None`` where a part of it is not known.
    """
    if unit in _atoms():
        return _atoms()[unit]
    factor, parts, below = 1.0, [], 1
    for token in re.findall(r"[^\s·/*]+|/", unit):
        if token == "/":
            below = -1
            continue
        match = re.fullmatch(r"(.+?)\^?([+-]?\d)?", _plain(token))
        atom = _atoms().get(_WORDS.get(match[1], match[1])) if match else None
        if match is None or atom is None:
            return None
        power = int(match[2] or 1) * below
        factor *= atom[0] ** power
        parts.append(atom[1] if power == 1 else f"{atom[1]}^{power}")
    return (factor, " ".join(parts)) if parts else None


@cache
def _expression() -> re.Pattern[str]:
    """Return the expression of a number and its unit; every repeat of it has a bound."""
    signs = sorted((*_atoms(), *_WORDS), key=len, reverse=True)
    atom = "(?:" + "|".join(re.escape(each) for each in signs) + ")"
    power = r"(?:\^?[+\-−]?[1-4](?!\d|\.\d)|[⁺⁻]?[¹²³⁴])?"
    ends = r"(?![A-Za-z])"
    more = rf"(?:\s?[·/*]\s?{atom}{power}{ends}|\s{atom}(?:\^?[\-−][1-4]|⁻[¹²³⁴]){ends})"
    unit = rf"(?P<unit>{atom}{power}{ends}{more}{{0,3}}{_OVER})"
    # a unit may follow at once or behind a space: 5nm, 5 nm, 5-fold; "in 5 days" is one too
    return re.compile(rf"{_BEGIN}(?P<first>{_NUMBER}){_POWER}{_RANGE}\s{{0,2}}{unit}", re.UNICODE)
