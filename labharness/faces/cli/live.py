"""One line on a terminal that shows the progress of a run."""

import io
import sys
from collections.abc import Mapping
from typing import Literal

from labharness.core.clock import steady_s
from labharness.faces.cli.line_writer import TERMINAL

SHOWN_S_MIN = 0.1  # between two drawings: the eye sees no more
BAR_CELLS, SHARE_CELLS = 20, 5


class LiveLine:
    """The progress of a run: share, phase, step, values, time left; drawn by rich."""

    def __init__(self) -> None:
        self._percent = 0.0
        self._words: dict[str, str] = {}
        self._shown_s = -SHOWN_S_MIN

    def show(self, percent: float | None = None, *, now: bool = False, **words: str) -> None:
        """Draw it again.

        Args:
            percent: Progress; without it the last one.
            now: Draw it even if it has just been drawn.
            words: ``phase``, ``step``, ``values``, ``left``; each stays until it is replaced.
        """
        self._percent = self._percent if percent is None else percent
        self._words |= words
        at_s = steady_s()
        if now or at_s - self._shown_s >= SHOWN_S_MIN:
            self._shown_s = at_s
            TERMINAL.pin(sys.stderr, drawn(self._percent, self._words))


def drawn(
    percent: float,
    words: Mapping[str, str],
    width: int | None = None,
    color_system: Literal["auto", "truecolor"] = "auto",
) -> str:
    """Return the line drawn in the width of the terminal.

    Args:
        percent: 0 to 100.
        words: As ``LiveLine.show`` takes them.
        width: Cells of a terminal other than that of standard error.
        color_system: Colours of that terminal.
    """
    from rich.console import Console
    from rich.progress_bar import ProgressBar
    from rich.table import Table
    from rich.text import Text

    # one cell is left free: in the last one some terminals begin a new line
    cells = Console(stderr=True).width - 1 if width is None else width
    buffer = io.StringIO()
    line = Table.grid(padding=(0, 1), expand=True)
    line.add_column(min_width=BAR_CELLS)
    line.add_column(min_width=SHARE_CELLS, justify="right", no_wrap=True)
    line.add_column(no_wrap=True, overflow="ellipsis", ratio=1)
    said = Text(no_wrap=True, overflow="ellipsis")
    parts = [(words.get("phase", ""), "bold"), (words.get("left", ""), "")]
    parts += [(words.get("step", ""), ""), (words.get("values", ""), "dim")]
    for text, style in parts:
        text = "".join(each if each.isprintable() else "\ufffd" for each in text)
        if text:
            said.append(" · " if said else "").append(text, style)
    line.add_row(ProgressBar(100.0, percent, width=BAR_CELLS), f"{percent:.0f} %", said)
    out = Console(
        file=buffer, highlight=False, width=cells, force_terminal=True, color_system=color_system
    )
    out.print(line, end="", no_wrap=True, crop=True)
    return buffer.getvalue().split("\n")[0].rstrip()
