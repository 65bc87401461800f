"""Durations in seconds, read and written as ISO 8601 (HCP) and as clock text."""

import math
import re
from functools import lru_cache

from labharness.core.vocabulary.texts import CodedError

DURATION_CHARACTERS_MAX = 64
"""Longest text (characters) that is parsed as a duration."""

TYPED_S = {"s": 1, "min": 60, "h": 3_600, "d": 86_400}
"""The units of a duration that a person types."""

SECONDS_PER = {"W": 604_800, "D": 86_400, "H": 3_600, "M": 60, "S": 1}

_NUMBER = r"[0-9]{1,9}(?:[.,][0-9]{1,9})?"
_DURATION = re.compile(
    rf"P(?:(?P<W>{_NUMBER})W"
    rf"|(?:(?P<D>{_NUMBER})D)?"
    rf"(?P<T>T(?:(?P<H>{_NUMBER})H)?(?:(?P<M>{_NUMBER})M)?(?:(?P<S>{_NUMBER})S)?)?)"
)
_FRACTION_INSIDE = re.compile(r"[.,][0-9]+[A-Z].*[0-9]")
_CALENDAR = re.compile(r"P[0-9.,YMWD]*[YM]")


class NotADuration(CodedError, ValueError, code="not_a_duration"):
    """A text that states no definite length of time."""


@lru_cache(256)
def parse_duration(text: str) -> float:
    """Return the seconds of an ISO 8601 duration such as ``PT2H15M``, ``P3D`` or ``P1W``.

    Weeks stand alone; the last number may have a fraction (``PT0.5H``). Years and months are
    refused, because they have no fixed length.

    Raises:
        NotADuration: The text is anything else, or states no number at all.
    """
    asked = repr(text[:DURATION_CHARACTERS_MAX])
    if len(text) > DURATION_CHARACTERS_MAX:
        raise NotADuration("duration.long", asked=asked, most=DURATION_CHARACTERS_MAX)
    if text.startswith(("-", "P-", "PT-")):
        raise NotADuration("duration.negative", asked=asked)
    if _CALENDAR.match(text):
        raise NotADuration("duration.calendar", asked=asked)
    match = _DURATION.fullmatch(text)
    parts = {} if match is None else {k: v for k, v in match.groupdict().items() if v is not None}
    designator = parts.pop("T", None)
    if not parts or designator == "T" or _FRACTION_INSIDE.search(text):
        raise NotADuration("duration.iso", asked=asked)
    return float(sum(float(n.replace(",", ".")) * SECONDS_PER[unit] for unit, n in parts.items()))


def read_duration(text: str, bare_s: float = 1.0) -> float:
    """Return the seconds of a duration as a person types it: ``60s``, ``5 min``, ``2h``, ``PT2H``.

    Args:
        text: A number and a unit, or ISO 8601.
        bare_s: Seconds of the unit of a number without one.

    Raises:
        NotADuration: Lists what is allowed.
    """
    if text[:1] in ("P", "p"):
        return parse_duration(text.upper())
    match = re.fullmatch(rf"({_NUMBER}) ?({'|'.join(TYPED_S)})?", text)
    if match is None:
        asked, allowed = repr(text[:DURATION_CHARACTERS_MAX]), ", ".join(TYPED_S)
        raise NotADuration("duration.typed", asked=asked, allowed=allowed)
    number, unit = match.groups()
    return float(number.replace(",", ".")) * (TYPED_S[unit] if unit else bare_s)


def format_duration(seconds: float) -> str:
    """Write seconds as ISO 8601 hours, minutes and whole seconds, for example ``PT2H15M``.

    Hours are not folded into days: the specification itself writes ``PT72H``.

    Raises:
        NotADuration: The number is negative, NaN or infinite.
    """
    if not (math.isfinite(seconds) and seconds >= 0):
        raise NotADuration("duration.finite", seconds=seconds)
    hours, rest = divmod(round(seconds), SECONDS_PER["H"])
    minutes, whole_s = divmod(rest, SECONDS_PER["M"])
    text = "".join(f"{n}{unit}" for n, unit in ((hours, "H"), (minutes, "M"), (whole_s, "S")) if n)
    return f"PT{text or '0S'}"


def clock_text(seconds: float) -> str:
    """Write seconds as hours, minutes and whole seconds, for example ``2:15:00``."""
    whole = round(seconds)
    return f"{whole // 3600}:{whole // 60 % 60:02}:{whole % 60:02}"
