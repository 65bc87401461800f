"""The page of promises, and of each the tests and planted bugs from the code.

``python tests/promised.py`` writes their lists into ``build/pages/promises.md``.
"""

import ast
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

from planted_bug import PlantedBug
from planted_bugs import PLANTED
from planted_harms import HARMS

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "reference" / "promises.md"
LISTS = ROOT / "build" / "pages" / "promises.md"
"""The lists; what a program prints is not kept."""

ROWS = re.findall(
    r"^\| (\d+) \| (.+?) \| (.+?) \| (.+?) \|$", PAGE.read_text("utf-8"), re.MULTILINE
)
PROMISES = {int(number): (promise, bound) for number, promise, bound, _ in ROWS}
"""Each promise and its bound, by its number."""

DAILY_OF = {int(number): bug for number, _, _, bug in ROWS}
"""The planted bug that the page names, by the number of its promise."""

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
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                for number in _promises_in(node):
                    found.setdefault(number, []).append(f"{file}::{node.name}")
    return {number: tuple(tests) for number, tests in found.items()}


def _promises_in(test: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[int]:
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


def lists() -> str:
    """Return the tests and the planted bugs of each promise, as the code has them."""
    told = ["# The tests and planted bugs of each promise\n"]
    for number, (promise, _) in PROMISES.items():
        tests = "".join(f"- `{each}`\n" for each in held_by(number))
        bugs = "".join(f"- {bug} ({detector})\n" for bug, detector in bugs_of(number).items())
        told.append(f"## {number}\n\n{promise}\n\nTests:\n\n{tests}\nPlanted bugs:\n\n{bugs}")
    return "\n".join(told)


if __name__ == "__main__":
    LISTS.parent.mkdir(parents=True, exist_ok=True)
    LISTS.write_text(lists(), "utf-8")
