"""Read and write numbers, words and arrays in lines of text."""

import math
import re
from collections.abc import Callable, Mapping

from labharness.core.vocabulary import BadReply, Request, Until
from labharness.instruments.driver.driver import fault

_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


def line_request(
    line: str,
    *,
    end: bytes = b"\r",
    reply_end: bytes = b"\r",
    prefix: bytes = b"",
    timeout_s: float = 0.3,
    obeyed: bytes = b"",
    bytes_max: int = 512,
) -> Request:
    """Make the request for one line of text, answered by one line.

    Args:
        line: The command without its terminator; ASCII.
        end: End of the command.
        reply_end: End of the reply.
        prefix: Beginning that the reply must have (the unit's address, an acknowledgement).
        timeout_s: Longest wait for the reply.
        obeyed: Regular expression of the replies that mean that it was done.
        bytes_max: Longest reply.
    """
    rule = Until(reply_end, prefix, bytes_max)
    return Request(line.encode("ascii") + end, rule, timeout_s, obeyed=obeyed)


def decimal(value: float, decimals: int) -> bytes:
    """Return the regular expression of a number as an instrument may write it: sign and zeros."""
    whole, _, fraction = f"{abs(value):.{decimals}f}".partition(".")
    is_zero = float(f"{value:.{decimals}f}") == 0  # as it is written: -0.04 may be 0.0
    sign = "[+-]?" if is_zero else "-" if value < 0 else "[+]?"
    point = rf"\.{fraction}0*" if fraction else r"(?:\.0*)?"
    return f"{sign}0*{whole}{point}".encode()


def number(text: str, what: str) -> float:
    """Read a plain finite decimal number; anything else is a bad reply, never a guess.

    Raises:
        BadReply: ``text`` is not a finite decimal number.
    """
    if not _NUMBER.fullmatch(text):
        raise BadReply(f"{what}: {text!r} is not a number")
    value = float(text)
    if not math.isfinite(value):
        raise BadReply(f"{what}: {text!r} is out of range")
    return value


def scientific(value: float, decimals: int = 6) -> bytes:
    """Return the regular expression of a number as SCPI writes it: ``+1.000000E-03``."""
    shown = re.escape(f"{abs(value):.{decimals}E}".encode())
    return (b"[+-]?" if value == 0 else b"-" if value < 0 else b"[+]?") + shown


def whole(most: int) -> Callable[[str, str], float]:
    """Return what reads a whole number of 0 to ``most``."""

    def read(said: str, what: str) -> float:
        value = number(said, what)
        if value not in range(most + 1):
            raise BadReply(f"{what}: {value} is not a whole number of 0 to {most}")
        return value

    return read


def among(values: Mapping[str, float], otherwise: str = "") -> Callable[[str, str], float]:
    """Return the reader of one of some words; any other is a bad reply, or a device fault.

    Args:
        values: Value of each word.
        otherwise: Words of the device fault; ``""`` for a bad reply.
    """

    def read(said: str, what: str) -> float:
        if said in values:
            return values[said]
        if otherwise:
            raise fault(what, f"{said[:40]!r}{otherwise}")
        raise BadReply(f"{what}: {said[:40]!r} is none of {', '.join(values)}")

    return read


def text(said: str, what: str) -> str:
    """Read a text as it is."""
    return said
