"""Read the keys of a terminal that shows a live table: they scroll it, and end the command."""

import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from threading import Thread
from typing import Any

PAGE, ALL = 10, 10**6
ROWS = {
    b"\x1b[A": -1,
    b"\x1bOA": -1,
    b"k": -1,
    b"\x1b[B": 1,
    b"\x1bOB": 1,
    b"j": 1,
    b"\x1b[5~": -PAGE,
    b"\x1b[6~": PAGE,
    b" ": PAGE,
    b"\x1b[H": -ALL,
    b"\x1b[1~": -ALL,
    b"g": -ALL,
    b"\x1b[F": ALL,
    b"\x1b[4~": ALL,
    b"G": ALL,
}
"""Rows down that a key means, as xterm and its like send it (ECMA-48; XTerm Control Sequences)."""


def rows_of(key: bytes) -> int:
    """Return how many rows down a key goes; 0 of any other."""
    return ROWS.get(key, 0)


class Keys:
    """Reads the keys of a terminal in a thread; without a terminal it does nothing.

    ``q`` ends the command like Ctrl-C, which works all the time.

    Args:
        scroll: Takes the number of rows to move down; it is called from that thread.
    """

    def __init__(self, scroll: Callable[[int], None]) -> None:
        self._scroll = scroll
        self._before: list[Any] | None = None

    def start(self) -> None:
        """Begin to read keys one by one, not by lines."""
        if os.name != "posix" or not sys.stdin.isatty():
            return
        import termios
        import tty

        with suppress(termios.error, OSError, ValueError):
            number = sys.stdin.fileno()
            self._before = termios.tcgetattr(number)
            tty.setcbreak(number)
            # a shell ignores SIGINT for what it runs in the background; a key must end that too
            if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
                signal.signal(signal.SIGINT, signal.default_int_handler)
            Thread(target=self._hear, args=(number,), name="keys", daemon=True).start()

    def stop(self) -> None:
        """Restore the terminal."""
        if self._before is not None:
            import termios

            with suppress(termios.error, OSError, ValueError):
                termios.tcsetattr(sys.stdin.fileno(), termios.TCSADRAIN, self._before)
            self._before = None

    def _hear(self, number: int) -> None:
        with suppress(OSError):  # the terminal has gone
            while key := os.read(number, 16):
                if key in (b"q", b"Q"):
                    os.kill(os.getpid(), signal.SIGINT)
                    return
                if rows := rows_of(key):
                    self._scroll(rows)
