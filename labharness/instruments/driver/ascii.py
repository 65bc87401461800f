"""ASCII lines for drivers: one request line, one reply line, numbers read strictly."""

import math
import re

from labharness.core.vocabulary import BadReply, Request, Until

__all__ = ["decimal", "line_request", "number"]

_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


def line_request(
    text: str,
    *,
    end: bytes = b"\r",
    reply_end: bytes = b"\r",
    prefix: bytes = b"",
    timeout_s: float = 0.3,
    obeyed: bytes = b"",
) -> Request:
    """Make the request for one line of text, answered by one line.

    Args:
        text: The command without its terminator; ASCII.
        end: What ends the command.
        reply_end: What ends the reply.
        prefix: What the reply must start with (the unit's address, an acknowledgement).
        timeout_s: Longest wait for the reply.
        obeyed: Regular expression of the replies that mean that it was done.
    """
    rule = Until(reply_end, prefix)
    return Request(text.encode("ascii") + end, rule, timeout_s, obeyed=obeyed)


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
        BadReply: ``text`` is no finite decimal number.
    """
    if not _NUMBER.fullmatch(text):
        raise BadReply(f"{what}: {text!r} is no number")
    value = float(text)
    if not math.isfinite(value):
        raise BadReply(f"{what}: {text!r} is out of range")
    return value
