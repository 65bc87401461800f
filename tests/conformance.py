"""The page of conformance: its rows, what of them was run, and the counts at its top.

``python tests/conformance.py`` runs every test of a row that meets a served lab over a real broker,
and writes the page where all of them pass; a row that they refute is named instead.
"""

import ast
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "reference" / "conformance.md"
ROW = re.compile(
    r"^\| (L\d|M)-(\d+) \| (.+?) \| (.+?) \| (.+?) \| (.+?) \| (run|—) \|$", re.MULTILINE
)
CITED = re.compile(r"`([\w/]+\.py)::(test_\w+)`")
COUNTS = re.compile(r"(<!-- from the rows -->\n).*?(<!-- end -->)", re.DOTALL)
LAYERS = {"L1": "1", "L2": "2", "L3": "3", "L4": "4", "M": "MCP-CP"}
"""The beginning of each number of a row, and its name among the counts."""
HEAD = "| layer | kept | in part | not kept | requirements | run |\n|---|---|---|---|---|---|"
KEPT, IN_PART, NOT_KEPT = "✓", "in part", "✗"
RUN, NOT_RUN = "run", "—"
SERVED = {"Service", "PlainCaller", "secured_broker"}
"""Names of a served lab and of a caller at a real broker; a test that reaches one meets them."""


@dataclass(frozen=True, slots=True)
class Row:
    """One requirement.

    Attributes:
        layer: Of HCP, or MCP-CP: one of `LAYERS`.
        number: Within its layer.
        kept: One of ``✓``, ``in part`` and ``✗``.
        where: The symbol that keeps it, and what is lacking.
        shown_by: The tests that show it; ``—`` for none.
        run: ``run`` where one of them meets a served lab over a broker, or else ``—``.
    """

    layer: str
    number: int
    requirement: str
    kept: str
    where: str
    shown_by: str
    run: str = NOT_RUN

    @property
    def name(self) -> str:
        """Return its number as the page has it."""
        return f"{self.layer}-{self.number}"

    @property
    def served(self) -> tuple[str, ...]:
        """Return those of its tests that meet a served lab."""
        return tuple(
            f"{file}::{test}"
            for file, test in CITED.findall(self.shown_by)
            if is_served(file, test)
        )


def rows() -> tuple[Row, ...]:
    """Return the rows of the page, in their order."""
    found = ROW.findall(PAGE.read_text("utf-8"))
    return tuple(Row(layer, int(number), *rest) for layer, number, *rest in found)


def page() -> str:
    """Return the page with what is run of each row, and the counts of its rows."""
    lines = [HEAD]
    for layer, named in LAYERS.items():
        lines.append(_counted(named, [each for each in rows() if each.layer == layer]))
    lines.append(_counted("all", rows()))
    table = "\n".join(lines)
    told = PAGE.read_text("utf-8")
    for row in rows():
        cells = (row.name, row.requirement, row.kept, row.where, row.shown_by)
        before = f"| {' | '.join((*cells, row.run))} |"
        told = told.replace(before, f"| {' | '.join((*cells, RUN if row.served else NOT_RUN))} |")
    return COUNTS.sub(lambda found: f"{found[1]}\n{table}\n\n{found[2]}", told)


def _counted(layer: str, of: Iterable[Row]) -> str:
    found = tuple(of)
    marks = [each.kept for each in found]
    counts = [str(marks.count(mark)) for mark in (KEPT, IN_PART, NOT_KEPT)]
    run = str(sum(bool(each.served) for each in found))
    return f"| {' | '.join((layer, *counts, str(len(marks)), run))} |"


@cache
def _used(file: str) -> dict[str, frozenset[str]]:
    """Return, of each function of a test file, the names that it takes and uses."""
    tree = ast.parse((ROOT / "tests" / file).read_text("utf-8"))
    return {
        each.name: frozenset(
            {node.id for node in ast.walk(each) if isinstance(node, ast.Name)}
            | {node.arg for node in ast.walk(each) if isinstance(node, ast.arg)}
        )
        for each in tree.body
        if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)
    }


def is_served(file: str, test: str) -> bool:
    """Return whether a test meets a served lab: by itself, its fixtures or its helpers."""
    used, seen, todo = _used(file), {test}, [test]
    while todo:
        onward = used.get(todo.pop(), frozenset()) - seen
        seen |= onward
        todo += onward
    return bool(seen & SERVED)


def _refuted() -> Iterator[str]:
    """Run what meets a served lab; name each row that it refutes, and show why."""
    tests = sorted({each for row in rows() for each in row.served})
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-rpfE",
        "--no-header",
        *(f"tests/{each}" for each in tests),
    ]
    out = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False).stdout
    passed = {
        re.split(r"[\[ ]", each)[0]
        for each in re.findall(r"^PASSED tests/(\S+)", out, re.MULTILINE)
    }
    failed = {
        re.split(r"[\[ ]", each)[0]
        for each in re.findall(r"^(?:FAILED|ERROR) tests/(\S+)", out, re.MULTILINE)
    }
    if failed:
        sys.stderr.write(out)
    for row in rows():
        if bad := [each for each in row.served if each in failed or each not in passed]:
            yield f"{row.name} is refuted, or was not run: {', '.join(bad)}"


if __name__ == "__main__":
    if "--counts" not in sys.argv and (wrong := [*_refuted()]):
        sys.exit("\n".join(wrong))
    PAGE.write_text(page(), "utf-8")
