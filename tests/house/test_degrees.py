"""No bare number of degrees stands outside a row: a temperature is compared in its row's unit."""

import ast
from collections.abc import Iterator

import pytest

from rig import HERE

ROOT = HERE.parent
ROOMS = ("core", "instruments", "safety", "line", "lab", "chaos", "faces", "work", "protocols")
OWN_ROOMS = ("work/capability/", "faces/report/cvd/")  # of materials, whose lab files are in degC
ROWS = {
    "labharness/core/vocabulary/units.py",  # the table
    "labharness/lab/config/envelopes.py",  # [cold] without a row of its own
    "labharness/work/admission/quantities.py",  # the unit of the SI, of any text
    "labharness/work/plan/prediction.py",  # tolerances by unit
    "labharness/faces/report/quantities.py",  # signs and order by unit
    "labharness/work/task/persistent_map.py",  # K of keys, no kelvin
}
SHOWN_ONLY = {"labharness/faces/cli/hand.py"}  # a program is assumed to begin in a room
UNITS = {"degC", "K", "degF"}


def bare(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Find units of temperature, names of channels, and numbers that are called degrees."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and node.value in UNITS:
            yield node.lineno, f"the unit {node.value!r}"
        if isinstance(node, ast.Constant) and node.value in (".temperature", "temperature_c"):
            yield node.lineno, f"the name {node.value!r}"
        if isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(node.value, ast.Constant):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            number = isinstance(node.value.value, int | float) and node.value.value != 0
            for each in targets:
                name = each.id if isinstance(each, ast.Name) else getattr(each, "attr", "")
                if number and name.lower().endswith(("_c", "_k", "_degc", "_f")):
                    yield node.lineno, f"{name} is a number"


def test_no_number_of_degrees_stands_outside_a_row() -> None:
    found = []
    for path in sorted(
        each for room in ROOMS for each in (ROOT / "labharness" / room).rglob("*.py")
    ):
        name = path.relative_to(ROOT).as_posix()
        if name in ROWS | SHOWN_ONLY or name.startswith(
            tuple(f"labharness/{a}" for a in OWN_ROOMS)
        ):
            continue
        found += [
            f"{name}:{line}: {what}" for line, what in bare(ast.parse(path.read_text("utf-8")))
        ]
    assert found == []


@pytest.mark.parametrize(
    "text",
    ["COLD_C = 60.0", 'if unit == "degC": pass', 'name.endswith(".temperature")', "self.low_k = 3"],
)
def test_a_bare_number_of_degrees_is_found(text: str) -> None:
    assert list(bare(ast.parse(text)))
