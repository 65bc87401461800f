"""Prepare the three standard streams, so that a command can rely on them."""

import os
import sys
from io import TextIOWrapper
from typing import Literal, TextIO


def settle_streams() -> None:
    """Connect a closed stream to the null device, and make every character printable.

    The number of a closed stream (`>&-`, a service) would go to the next file that is opened, and
    printed lines into a journal or to a port. A character outside the encoding of a terminal is
    printed by its number.
    """
    sys.stdin = sys.stdin or _nowhere(0, "r")
    sys.stdout = sys.stdout or _nowhere(1, "w")
    sys.stderr = sys.stderr or _nowhere(2, "w")
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _nowhere(number: int, mode: Literal["r", "w"]) -> TextIO:
    """Open the null device at a number, also for the processes that this one starts."""
    null = os.open(os.devnull, os.O_RDWR)
    if null != number:
        os.dup2(null, number)
        os.close(null)
    os.set_inheritable(number, True)
    return os.fdopen(number, mode, encoding="utf-8", closefd=False)
