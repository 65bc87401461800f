"""The values of arguments: each is read from its text, or refused with what is allowed."""

import argparse
import re
from collections.abc import Callable
from datetime import date

__all__ = [
    "day",
    "number",
    "one_of",
    "positive",
    "rate",
    "seed",
    "speed",
    "times",
    "window",
    "words",
    "workers",
]

WORKERS_MAX = 64  # processes
NUMBER = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)(e[+-]?[0-9]+)?", re.IGNORECASE)
"""A number. Python's float() also takes ``5_0`` for 50, and the digits of any script."""
NO_NUMBER = re.compile(r"[+-]?(nan|inf)", re.IGNORECASE | re.ASCII)  # for the gate to refuse
WINDOW = re.compile(r"(-?[0-9]+(?:\.[0-9]*)?)\s*[-:–]\s*(-?[0-9]+(?:\.[0-9]*)?)")
"""From low to high; a shift below the laser's is negative."""
WHOLE = re.compile(r"[0-9]+")


def number(text: str) -> float:
    """Return a number, also a NaN or an infinity, which the gate refuses."""
    if NUMBER.fullmatch(text) or NO_NUMBER.fullmatch(text):
        return float(text)
    number = re.match(r"[+-]?[0-9]+[0-9.]*(?=[A-Za-z%])", text)
    hint = (
        f"; put a blank before the unit: {number[0]} {text[number.end() :]}"
        if number
        else ": write it as 100, 0.5, 1e-3"
    )
    raise argparse.ArgumentTypeError(f"{text!r} is no number{hint}")


def speed(text: str) -> float | None:
    """Return lab seconds per second, or nothing for as fast as possible."""
    if text == "fast":
        return None
    if text == "real":
        return 1.0
    return _up_to(text, 1e6, "fast, real, or a number up to 1000000")


def times(text: str) -> float:
    """Return a speed at which simulators can be served."""
    from labharness.lab.wiring.simulate import SPEED_MAX

    return _up_to(text, SPEED_MAX, f"a number above 0, up to {SPEED_MAX:g}")


def seed(text: str) -> int:
    """Return a seed."""
    if not WHOLE.fullmatch(text) or len(text) > 18:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at most 18 digits")
    return int(text)


def window(text: str) -> tuple[float, float]:
    """Return a window in cm⁻¹, from low to high."""
    found = WINDOW.fullmatch(text)
    low, high = (float(each) for each in found.groups()) if found else (0.0, 0.0)
    if not low < high:
        raise argparse.ArgumentTypeError(
            f"{text!r} is no window; write it from low to high in cm⁻¹, as 360-435"
        )
    return low, high


def positive(text: str) -> float:
    """Return a number above zero."""
    return _up_to(text, 1e9, "a number above 0, up to 1e+09")


def _up_to(text: str, most: float, allowed: str) -> float:
    value = float(text) if NUMBER.fullmatch(text) else 0.0
    if not 0 < value <= most:
        raise argparse.ArgumentTypeError(f"{text!r} is not {allowed}")
    return value


def workers(text: str) -> int:
    """Return a number of processes."""
    if not WHOLE.fullmatch(text) or not 1 <= int(text[:9]) <= WORKERS_MAX:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1 to {WORKERS_MAX}")
    return int(text)


def rate(text: str) -> float:
    """Return a factor, zero or above."""
    return 0.0 if text == "0" else positive(text)


def day(text: str) -> date:
    """Return a day."""
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no day written as 2026-01-31") from None


def one_of(allowed: tuple[str, ...]) -> Callable[[str], str]:
    """Return a type that takes one of a few words."""

    def choice(text: str) -> str:
        if text not in allowed:
            from labharness.core.vocabulary.spelling import meant  # only an error waits for it

            near = meant(text, allowed)
            raise argparse.ArgumentTypeError(f"no {text!r}{near}; there are {', '.join(allowed)}")
        return text

    return choice


def words(text: str) -> str:
    """Return a text that is printable and not empty."""
    if not text.strip():
        raise argparse.ArgumentTypeError("it is empty")
    if not text.isprintable():  # also what a terminal of another encoding made of it
        raise argparse.ArgumentTypeError(f"{text!r} has characters that cannot be written down")
    return text
