"""The page of conformance: its rows, and the counts at its top, which are made of them.

``python tests/conformance.py`` writes the counts.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

__all__ = ["PAGE", "ROOT", "Row", "page", "rows"]

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "reference" / "conformance.md"
ROW = re.compile(r"^\| L(\d)-(\d+) \| (.+?) \| (.+?) \| (.+?) \| (.+?) \|$", re.MULTILINE)
COUNTS = re.compile(r"(<!-- from the rows -->\n).*?(<!-- end -->)", re.DOTALL)
HEAD = "| layer | kept | in part | not kept | requirements |\n|---|---|---|---|---|"
KEPT, IN_PART, NOT_KEPT = "✓", "in part", "✗"


@dataclass(frozen=True, slots=True)
class Row:
    """One requirement.

    Attributes:
        layer: Of HCP.
        number: Within its layer.
        kept: One of ``✓``, ``in part`` and ``✗``.
        where: The symbol that keeps it, and what is lacking.
        shown_by: The tests that show it; ``—`` for none.
    """

    layer: int
    number: int
    requirement: str
    kept: str
    where: str
    shown_by: str

    @property
    def name(self) -> str:
        """Return its number as the page has it."""
        return f"L{self.layer}-{self.number}"


def rows() -> tuple[Row, ...]:
    """Return the rows of the page, in their order."""
    found = ROW.findall(PAGE.read_text("utf-8"))
    return tuple(Row(int(layer), int(number), *rest) for layer, number, *rest in found)


def page() -> str:
    """Return the page with the counts of its rows."""
    lines = [HEAD]
    for layer in (1, 2, 3, 4):
        lines.append(_counted(str(layer), [each for each in rows() if each.layer == layer]))
    lines.append(_counted("all", rows()))
    table = "\n".join(lines)
    return COUNTS.sub(lambda found: f"{found[1]}\n{table}\n\n{found[2]}", PAGE.read_text("utf-8"))


def _counted(layer: str, of: Iterable[Row]) -> str:
    marks = [each.kept for each in of]
    counts = [str(marks.count(mark)) for mark in (KEPT, IN_PART, NOT_KEPT)]
    return f"| {' | '.join((layer, *counts, str(len(marks))))} |"


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
