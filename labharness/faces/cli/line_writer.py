"""Write lines to a terminal from a thread, so that a stalled terminal does not stall a run.

Ctrl-S, a stalled ssh or a sleeping reader stops every write to a terminal, for hours perhaps. The
instruments are driven meanwhile, and a stop request is heard; the printed lines wait here.
"""

import os
import sys
from contextlib import suppress
from queue import Empty, SimpleQueue
from threading import Event, Thread
from typing import TextIO

from labharness.core.texts import ENGLISH

LINES_MAX = 1000  # in the queue; older ones are left out, and counted
FLUSH_S_MAX = 2.0  # for a stalled terminal, once
ERASED = "\r\x1b[2K"  # back to the first column, and nothing in the line (ECMA-48, CR and EL)


class LineWriter:
    """Writes lines in their order, in a thread; ``put`` may be called from a signal handler.

    On a terminal one line below the others, which shows progress, is written over again and again.

    Attributes:
        left_out: Number of lines dropped since the last that was written.
        language: Of the printed texts.
        command: Name of the command that prints.
    """

    def __init__(self) -> None:
        self.left_out = 0
        self.language = ENGLISH
        self.command = ""
        self._lines: SimpleQueue[tuple[TextIO, str] | Event | None] = SimpleQueue()
        self._pinned: tuple[TextIO, str] | None = None
        self._shown: tuple[TextIO, str] | None = None
        self._thread: Thread | None = None
        self._still = False

    def put(self, stream: TextIO, text: str) -> None:
        """Queue a line; a lost reader is not an error."""
        while self._lines.qsize() >= LINES_MAX:
            with suppress(Empty):
                oldest = self._lines.get_nowait()
                if isinstance(oldest, Event):
                    oldest.set()
                elif oldest is not None:
                    self.left_out += 1
        self._go_on((stream, text))

    def pin(self, stream: TextIO, text: str) -> None:
        """Show one line below all others, in place of the one before.

        Only the newest is written: a stalled terminal gets no old ones later.

        Args:
            stream: A terminal.
            text: Of one line, no wider than it.
        """
        self._pinned = (stream, text)
        if self._lines.empty():
            self._go_on(None)

    def unpin(self) -> None:
        """Remove that line, for example before a question or the result."""
        if self._pinned is not None or self._shown is not None:
            self._pinned = None
            self._go_on(None)

    def _go_on(self, line: tuple[TextIO, str] | None) -> None:
        self._lines.put(line)
        if self._thread is None or not self._thread.is_alive():
            self._thread = Thread(target=self._write, name="terminal", daemon=True)
            self._thread.start()

    def flush(self) -> None:
        """Wait until all lines are written, or the terminal is known to stall."""
        if self._thread is None:
            return
        written = Event()
        self._lines.put(written)
        if not written.wait(0.0 if self._still else FLUSH_S_MAX):
            self._still = True

    def _write(self) -> None:
        while True:
            line = self._lines.get()
            with suppress(OSError, ValueError):
                if isinstance(line, tuple):
                    self._erase()
                    stream, text = line
                    left_out, self.left_out = self.left_out, 0
                    if left_out:
                        from labharness.core.vocabulary.texts import Text, in_language

                        said = in_language(Text("cli.left_out", count=left_out), self.language)
                        text = f"{said}\n{text}"
                    _write_whole(stream, text + "\n")
                if isinstance(line, Event) or self._lines.empty():
                    self._draw()
            self._still = False
            if isinstance(line, Event):
                line.set()

    def _erase(self) -> None:
        if self._shown is not None:
            stream, self._shown = self._shown[0], None
            _write_whole(stream, ERASED)

    def _draw(self) -> None:
        """Show the pinned line of this moment."""
        pinned = self._pinned
        if pinned != self._shown:
            self._erase()
            if pinned is not None:
                self._shown = pinned
                _write_whole(*pinned)


TERMINAL = LineWriter()
"""The writer of this process, which keeps the order of lines over both streams."""


def is_live() -> bool:
    """Return whether standard error is a terminal on which a line can be written over."""
    return sys.stderr.isatty() and os.environ.get("TERM", "") not in ("", "dumb")


def _write_whole(stream: TextIO, text: str) -> None:
    """Write past the stream's buffer, because a stalled terminal would keep its lock."""
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
