"""The promises of the page, and the tests that name one in a mark."""

import ast
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "reference" / "promises.md"

ROWS = re.findall(
    r"^\| (\d+) \| (.+?) \| (.+?) \| (.+?) \|$", PAGE.read_text("utf-8"), re.MULTILINE
)
PROMISES = {int(number): (promise, bound) for number, promise, bound, _ in ROWS}
"""Each promise and its bound, by its number."""

NAMED_OF = {int(number): bug for number, _, _, bug in ROWS}
"""The planted bug that the page names, by the number of its promise."""

TEST = re.compile(r"^(?:async )?def (test_\w+)", re.MULTILINE)


@cache
def _files() -> Mapping[str, tuple[str, ...]]:
    """Return the files of a test, by its name."""
    found: dict[str, tuple[str, ...]] = {}
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        file = path.relative_to(ROOT).as_posix()
        for name in TEST.findall(path.read_text("utf-8")):
            found[name] = (*found.get(name, ()), file)
    return found


def file_of_test(name: str) -> str:
    """Return the file of a test, from the root of the tree.

    Raises:
        LookupError: No file has a test of that name, or several do.
    """
    files = _files().get(name, ())
    if len(files) != 1:
        raise LookupError(f"{name} stands in {len(files)} files, not in one: {files}")
    return files[0]


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


@cache
def _held() -> Mapping[str, tuple[int, ...]]:
    """Return the promises that each test names, by ``file::test``."""
    found: dict[str, tuple[int, ...]] = {}
    for number, tests in _marked().items():
        for test in tests:
            found[test] = (*found.get(test, ()), number)
    return found


def promises_of(test: str) -> tuple[int, ...]:
    """Return the promises that a test names in a mark."""
    return _held().get(f"{file_of_test(test).removeprefix('tests/')}::{test}", ())
