"""Lines for a terminal, written beside whoever says them: one that stands still holds up nobody.

Ctrl-S, a stalled ssh or a reader that sleeps stops every write to a terminal, for hours perhaps. A
line of instruments is driven meanwhile, and a stop request is heard: what it says waits here.
"""

import os
from contextlib import suppress
from queue import Empty, SimpleQueue
from threading import Event, Thread
from typing import TextIO

__all__ = ["BESIDE", "FLUSH_S_MAX", "LINES_MAX", "Beside"]

LINES_MAX = 1000  # that wait; of more the oldest are left out, and counted
FLUSH_S_MAX = 2.0  # for a terminal that stands still, once


class Beside:
    """Writes lines in their order, in a thread; ``put`` may be called from a signal handler.

    Attributes:
        left_out: Lines that did not wait any more, since the last that was written.
    """

    def __init__(self) -> None:
        self.left_out = 0
        self._lines: SimpleQueue[tuple[TextIO, str] | Event] = SimpleQueue()
        self._thread: Thread | None = None
        self._still = False

    def put(self, stream: TextIO, text: str) -> None:
        """Have a line written; nobody to read it is no error."""
        while self._lines.qsize() >= LINES_MAX:
            with suppress(Empty):
                oldest = self._lines.get_nowait()
                if isinstance(oldest, Event):
                    oldest.set()
                else:
                    self.left_out += 1
        self._lines.put((stream, text))
        if self._thread is None or not self._thread.is_alive():
            self._thread = Thread(target=self._write, name="terminal", daemon=True)
            self._thread.start()

    def flush(self) -> None:
        """Wait until what was said is written, or the terminal is known to stand still."""
        if self._thread is None:
            return
        written = Event()
        self._lines.put(written)
        if not written.wait(0.0 if self._still else FLUSH_S_MAX):
            self._still = True

    def _write(self) -> None:
        while True:
            line = self._lines.get()
            if isinstance(line, Event):
                line.set()
                continue
            stream, text = line
            left_out, self.left_out = self.left_out, 0
            if left_out:
                text = f"({left_out} lines were left out: nobody took them)\n{text}"
            with suppress(OSError, ValueError):
                _write_whole(stream, text + "\n")
            self._still = False


BESIDE = Beside()
"""This process's: the order of lines holds over both of its streams."""


def _write_whole(stream: TextIO, text: str) -> None:
    """Write past the stream's buffer, whose lock a terminal that stands still would keep."""
    number = -1
    if os.name == "posix":  # elsewhere a console takes more than bytes
        with suppress(OSError, ValueError):  # no file, such as a test's
            number = stream.fileno()
    if number < 0:
        stream.write(text)
        stream.flush()
        return
    data = text.encode(stream.encoding, stream.errors or "strict")
    while data:
        data = data[os.write(number, data) :]
