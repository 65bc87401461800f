"""The values of arguments: each is read from its text, or refused with what is allowed."""

import argparse
import json
import re
from collections.abc import Callable, Sequence
from datetime import date

WORKERS_MAX = 64  # processes
PORT_MAX = 65_535
SEED_MAX = 10**18 - 1
NUMBER = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)(e[+-]?[0-9]+)?", re.IGNORECASE)
"""A number. Python's float() also takes ``5_0`` for 50, and the digits of any script."""
NO_NUMBER = re.compile(r"[+-]?(nan|inf)", re.IGNORECASE | re.ASCII)  # for the gate to refuse
WINDOW = re.compile(r"(-?[0-9]+(?:\.[0-9]*)?)\s*[-:–]\s*(-?[0-9]+(?:\.[0-9]*)?)")
"""From low to high; a shift below the laser's is negative."""
WHOLE = re.compile(r"[0-9]{1,18}")


def number(text: str) -> float:
    """Return a number, also a NaN or an infinity, which the gate refuses."""
    if NUMBER.fullmatch(text) or NO_NUMBER.fullmatch(text):
        return float(text)
    glued = re.fullmatch(r"([+-]?[0-9]+[0-9.]*)([A-Za-z%].*)", text)
    if glued:
        raise _wrong("value.blank", word=repr(text), number=glued[1], unit=glued[2])
    raise _wrong("value.number", word=repr(text))


def _wrong(code: str, **params: str | float | Sequence[str]) -> argparse.ArgumentTypeError:
    from labharness.core.vocabulary.texts import Text  # only an error waits for it

    return argparse.ArgumentTypeError(Text(code, **params))


def speed(text: str) -> float | None:
    """Return lab seconds per second, or nothing for as fast as possible."""
    if text == "fast":
        return None
    if text == "real":
        return 1.0
    return _up_to(text, 1e6, "value.speed")


def times(text: str) -> float:
    """Return a speed at which simulators can be served."""
    from labharness.lab.wiring.serve_simulated import SPEED_MAX

    return _up_to(text, SPEED_MAX, "value.up_to")


def seed(text: str) -> int:
    """Return a seed."""
    return _whole(text, 0, SEED_MAX, "value.seed")


def window(text: str) -> tuple[float, float]:
    """Return a window in cm⁻¹, from low to high."""
    found = WINDOW.fullmatch(text)
    low, high = (float(each) for each in found.groups()) if found else (0.0, 0.0)
    if not low < high:
        raise _wrong("value.window", word=repr(text))
    return low, high


def positive(text: str) -> float:
    """Return a number above zero."""
    return _up_to(text, 1e9, "value.up_to")


def lasting(unit_s: float) -> Callable[[str], float]:
    """Return a type that reads a duration into a unit, which a number alone is in."""

    def duration(text: str) -> float:
        from labharness.core.vocabulary.durations import TYPED_S, NotADuration, read_duration

        try:
            found = read_duration(text, unit_s) / unit_s
        except NotADuration:
            found = 0.0
        if not 0 < found <= 1e9:
            raise _wrong("value.duration", word=repr(text), units=tuple(TYPED_S))
        return found

    return duration


seconds, minutes, hours = lasting(1.0), lasting(60.0), lasting(3600.0)


def _whole(text: str, least: int, most: int, refusal: str) -> int:
    if not WHOLE.fullmatch(text) or not least <= int(text) <= most:
        raise _wrong(refusal, word=repr(text), most=most)
    return int(text)


def _up_to(text: str, most: float, refusal: str) -> float:
    value = float(text) if NUMBER.fullmatch(text) else 0.0
    if not 0 < value <= most:
        raise _wrong(refusal, word=repr(text), most=most)
    return value


def workers(text: str) -> int:
    """Return a number of processes."""
    return _whole(text, 1, WORKERS_MAX, "value.workers")


def port(text: str) -> int:
    """Return the number of a TCP port; 0 is any that is free."""
    return _whole(text, 0, PORT_MAX, "value.port")


def rate(text: str) -> float:
    """Return a factor, zero or above."""
    return 0.0 if text == "0" else positive(text)


def day(text: str) -> date:
    """Return a day."""
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise _wrong("value.day", word=repr(text)) from None


def one_of(allowed: tuple[str, ...]) -> Callable[[str], str]:
    """Return a type that takes one of a few words."""

    def choice(text: str) -> str:
        if text not in allowed:
            from labharness.core.vocabulary.spelling import did_you_mean

            near = did_you_mean(text, allowed)
            raise _wrong("usage.command", name=repr(text), hint=near, names=allowed)
        return text

    return choice


def words(text: str) -> str:
    """Return a text that is printable and not empty."""
    if not text.strip():
        raise _wrong("value.empty")
    if not text.isprintable():  # such as text that came by a terminal of another encoding
        raise _wrong("value.unprintable", word=repr(text))
    return text


def json_or_word(text: str) -> object:
    """Return a value as JSON has it, or else as a word."""
    try:
        return json.loads(text)
    except ValueError:
        return text


text = str
