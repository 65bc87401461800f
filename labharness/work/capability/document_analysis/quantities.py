"""Finds numbers with units in a sentence, and writes each in SI units.

A table of the units that papers on materials use, and one expression that reads a number. A number
whose unit is not in the table is left out: nothing is guessed.
"""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

_PREFIXES: Final = {
    "T": 1e12,
    "G": 1e9,
    "M": 1e6,
    "k": 1e3,
    "h": 1e2,
    "c": 1e-2,
    "m": 1e-3,
    "µ": 1e-6,
    "n": 1e-9,
    "p": 1e-12,
    "f": 1e-15,
}
"""SI brochure, 9th edition, table 7; what no laboratory writes is left out."""

_PREFIXED: Final = {
    "m": (1.0, "m"),
    "g": (1e-3, "kg"),
    "s": (1.0, "s"),
    "A": (1.0, "A"),
    "K": (1.0, "K"),
    "mol": (1.0, "mol"),
    "Hz": (1.0, "Hz"),
    "N": (1.0, "N"),
    "Pa": (1.0, "Pa"),
    "bar": (1e5, "Pa"),
    "Torr": (101_325 / 760, "Pa"),
    "torr": (101_325 / 760, "Pa"),
    "J": (1.0, "J"),
    "W": (1.0, "W"),
    "V": (1.0, "V"),
    "F": (1.0, "F"),
    "Ω": (1.0, "Ω"),
    "ohm": (1.0, "Ω"),
    "S": (1.0, "S"),
    "eV": (1.602176634e-19, "J"),  # SI brochure, table 8, exact
    "L": (1e-3, "m^3"),
}
"""Units that take a prefix, each in SI units."""

_ALONE: Final = {
    "%": (0.01, "1"),
    "percent": (0.01, "1"),
    "ppm": (1e-6, "1"),
    "ppb": (1e-9, "1"),
    "wt%": (0.01, "1"),
    "at%": (0.01, "1"),
    "mol%": (0.01, "1"),
    "min": (60.0, "s"),
    "h": (3600.0, "s"),
    "d": (86_400.0, "s"),
    "Å": (1e-10, "m"),
    "atm": (101_325.0, "Pa"),
    "psi": (6_894.757, "Pa"),
    "sccm": (1e-6 / 60, "m^3/s"),  # at 0 degC and 101,325 Pa
    "slm": (1e-3 / 60, "m^3/s"),
    "rpm": (1 / 60, "Hz"),
    "inch": (0.0254, "m"),
    "fold": (1.0, "1"),
}
_WORDS: Final = {
    "percent": "percent",
    "seconds": "s",
    "second": "s",
    "sec": "s",
    "minutes": "min",
    "minute": "min",
    "mins": "min",
    "hours": "h",
    "hour": "h",
    "hrs": "h",
    "hr": "h",
    "days": "d",
    "day": "d",
    "inches": "inch",
    "liter": "L",
    "liters": "L",
    "litres": "L",
    "mbar": "mbar",
    "times": "fold",
    "-fold": "fold",
    "wt.%": "wt%",
    "at.%": "at%",
    "degrees Celsius": "°C",
    "degree Celsius": "°C",
    "degC": "°C",
    "℃": "°C",
    "ºC": "°C",
    "Kelvin": "K",
    "摄氏度": "°C",
    "分钟": "min",
    "小时": "h",
    "秒": "s",
    "纳米": "nm",
    "微米": "µm",
}
"""Other ways to write a unit."""

_CELSIUS: Final = "°C"
_ZERO_CELSIUS_K: Final = 273.15

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
        return {
            "text": self.text,
            "low": self.low,
            "high": self.high,
            "unit": self.unit,
            "si_low": float(f"{self.si_low:.9g}"),  # without the noise of a conversion
            "si_high": float(f"{self.si_high:.9g}"),
            "si_unit": self.si_unit,
        }


def quantities(sentence: str) -> tuple[Quantity, ...]:
    """Return the quantities that a sentence states, in their order; a range is one of them."""
    return tuple(_found(sentence))


def _found(sentence: str) -> Iterator[Quantity]:
    for match in _expression().finditer(sentence):
        found = _quantity(match)
        if found is not None:
            yield found


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
    offset = _ZERO_CELSIUS_K if unit == _CELSIUS else 0.0
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
    found = dict(_PREFIXED)
    for sign, (factor, si_unit) in _PREFIXED.items():
        for prefix, times in _PREFIXES.items():
            found.setdefault(prefix + sign, (factor * times, si_unit))
    found |= _ALONE  # "min" is a minute, not a milli-inch, "h" an hour, "d" a day
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
