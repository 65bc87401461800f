"""The table of promises as it is written: its rows, and the planted bugs of each."""

import re
from pathlib import Path

__all__ = ["PAGE", "ROOT", "ROWS", "bugs_of"]

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "reference" / "promises.md"
ROW = re.compile(r"^\| (\d+) \| (.+) \| (.+) \| (.+) \| (.+) \|$", re.MULTILINE)
BUG = re.compile(r"(.+) \(([a-z ]+)\)")
ROWS = {int(row[1]): row for row in ROW.finditer(PAGE.read_text("utf-8"))}


def bugs_of(number: int) -> dict[str, str]:
    """Give the planted bugs of a promise, each with its detector."""
    found = [BUG.fullmatch(each) for each in ROWS[number][5].split("; ")]
    assert None not in found, ROWS[number][5]
    return {each[1]: each[2] for each in found if each is not None}
