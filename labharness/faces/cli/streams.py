"""The three standard streams, such that a command may count on them however it was started."""

import os
import sys
from io import TextIOWrapper
from typing import Literal, TextIO

__all__ = ["settle_streams"]


def settle_streams() -> None:
    """Lead a stream that was closed nowhere, and let no character fail to be printed.

    The number of a closed stream (`>&-`, a service) would go to the next file that is opened, and
    what is printed into a journal or to a port. What the encoding of a terminal does not have is
    printed by its number.
    """
    sys.stdin = sys.stdin or _nowhere(0, "r")
    sys.stdout = sys.stdout or _nowhere(1, "w")
    sys.stderr = sys.stderr or _nowhere(2, "w")
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _nowhere(number: int, mode: Literal["r", "w"]) -> TextIO:
    """Return a free number to the null device, for the processes that this one starts as well."""
    null = os.open(os.devnull, os.O_RDWR)
    if null != number:
        os.dup2(null, number)
        os.close(null)
    os.set_inheritable(number, True)
    return os.fdopen(number, mode, encoding="utf-8", closefd=False)
