"""The page of promises: its paragraphs, and below each the tests and planted bugs from the code.

``python tests/promised.py`` writes the lists.
"""

import ast
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

from planted_bug import PlantedBug
from planted_bugs import PLANTED
from planted_harms import HARMS

__all__ = ["PAGE", "PROMISES", "ROOT", "bugs_of", "held_by", "page"]

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "reference" / "promises.md"
SECTION = re.compile(
    r"^### (\d+)\. ([^\n]+)\n\n([^<]+)\n<!-- from the code -->\n(.*?)<!-- end -->$",
    re.MULTILINE | re.DOTALL,
)
PROMISES = {int(found[1]): found[3] for found in SECTION.finditer(PAGE.read_text("utf-8"))}
"""The paragraph of each promise, by its number."""

OF_HARMS, REFEREE = 6, "referee"


@cache
def _marked() -> Mapping[int, tuple[str, ...]]:
    """Return the tests that name each promise in a mark, as ``file::test``."""
    found: dict[int, list[str]] = {number: [] for number in PROMISES}
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        text = path.read_text("utf-8")
        if "mark.promise(" not in text:
            continue
        file = path.relative_to(ROOT / "tests").as_posix()
        for node in ast.parse(text).body:
            if isinstance(node, ast.FunctionDef):
                for number in _promises_in(node):
                    found.setdefault(number, []).append(f"{file}::{node.name}")
    return {number: tuple(tests) for number, tests in found.items()}


def _promises_in(test: ast.FunctionDef) -> Iterator[int]:
    for each in test.decorator_list:
        if isinstance(each, ast.Call) and ast.unparse(each.func) == "pytest.mark.promise":
            yield from (ast.literal_eval(number) for number in each.args)


def held_by(number: int) -> tuple[str, ...]:
    """Return the tests that hold a promise, as ``file::test``."""
    return _marked().get(number, ())


def bugs_of(number: int) -> dict[str, str]:
    """Return the planted bugs of a promise, each with what detects it."""
    planted: list[PlantedBug] = [bug for bug in PLANTED if bug.promise == number]
    harms = HARMS if number == OF_HARMS else ()
    return {bug.name: bug.detector for bug in planted} | {harm.name: REFEREE for harm in harms}


def page() -> str:
    """Return the page with its lists as the code has them."""

    def section(found: re.Match[str]) -> str:
        number = int(found[1])
        tests = "".join(f"- `{each}`\n" for each in held_by(number))
        bugs = "".join(f"- {bug} ({detector})\n" for bug, detector in bugs_of(number).items())
        lists = f"\nTests:\n\n{tests}\nPlanted bugs:\n\n{bugs}\n"
        head, mark, _ = found[0].partition("<!-- from the code -->\n")
        return f"{head}{mark}{lists}<!-- end -->"

    return SECTION.sub(section, PAGE.read_text("utf-8"))


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
