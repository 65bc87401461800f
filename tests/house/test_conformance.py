"""The page of conformance is true: what it cites is there, and its counts are those of its rows."""

import ast
import re
from functools import cache
from itertools import groupby

import pytest

from conformance import (
    CITED,
    IN_PART,
    KEPT,
    LAYERS,
    NOT_KEPT,
    PAGE,
    ROOT,
    Row,
    is_served,
    page,
    rows,
)

ROWS = rows()
SYMBOL = re.compile(r"`([\w/]+(?:\.py)?)(?::([\w.]+))?`")
WHY = re.compile(r"\b(?:rulings? \d+[a-z]?|not yet)\b")
LEAST = 300
"""Requirements; a page whose rows are no longer read would hold without one."""


def test_the_counts_are_those_of_the_rows() -> None:
    assert page() == PAGE.read_text("utf-8"), "make conformance"
    assert len(ROWS) >= LEAST
    numbered = re.findall(r"^\| [A-Z]\w*-\d", PAGE.read_text("utf-8"), re.MULTILINE)
    assert len(numbered) == len(ROWS), "each row is read"


def test_the_numbers_of_a_layer_have_no_gap() -> None:
    for layer, found in groupby(ROWS, key=lambda each: each.layer):
        numbers = [each.number for each in found]
        assert numbers == list(range(1, len(numbers) + 1)), layer
    assert [layer for layer, _ in groupby(ROWS, key=lambda each: each.layer)] == [*LAYERS]


@cache
def _tests_of(file: str) -> frozenset[str]:
    tree = ast.parse((ROOT / "tests" / file).read_text("utf-8"))
    return frozenset(
        each.name for each in tree.body if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)
    )


@cache
def names_of(file: str) -> frozenset[str]:
    """Return what a module defines: ``name``, and ``Class.name``."""
    return frozenset(_names(ast.parse((ROOT / "labharness" / file).read_text("utf-8")).body, ""))


def _names(body: list[ast.stmt], within: str) -> list[str]:
    found: list[str] = []
    for each in body:
        if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.append(within + each.name)
        if isinstance(each, ast.ClassDef):
            found += _names(each.body, f"{each.name}.")
        targets = each.targets if isinstance(each, ast.Assign) else []
        targets += [each.target] if isinstance(each, ast.AnnAssign) else []
        found += [within + one.id for one in targets if isinstance(one, ast.Name)]
    return found


def check_cited(row: Row) -> None:
    assert row.kept in (KEPT, IN_PART, NOT_KEPT)
    for file, symbol in SYMBOL.findall(row.where):
        if file.endswith(".py") or "/" in file:
            assert (ROOT / "labharness" / file).exists(), file
            assert not symbol or symbol in names_of(file), symbol
    if row.kept == KEPT:
        assert SYMBOL.match(row.where)
    else:
        assert WHY.search(row.where), "a ruling, or what is not yet built"
    if row.shown_by == "—":
        assert row.kept != KEPT
        return
    cited = CITED.findall(row.shown_by)
    assert row.shown_by == ", ".join(f"`{file}::{test}`" for file, test in cited)
    for file, test in cited:
        assert test in _tests_of(file), test


def test_what_a_row_cites_is_there() -> None:
    for row in ROWS:
        check_cited(row)


def test_what_meets_a_served_lab_is_seen_through_its_fixtures() -> None:
    assert is_served("faces/service/test_serve.py", "test_who_is_not_who_it_says_is_refused")
    rights = "faces/service/test_broker_rights.py"
    assert is_served(rights, "test_these_rights_are_enough_for_both_sides")
    assert not is_served("faces/service/test_inbox.py", "test_a_hostile_message_has_a_fate")
    assert not is_served(
        "protocols/hcp/test_hcp_codec.py", "test_a_bad_envelope_is_no_hcp_and_says_why"
    )


def test_a_row_that_cites_what_is_not_there_is_seen() -> None:
    good = next(each for each in ROWS if each.kept == KEPT)
    for bad in (
        Row("L1", 1, "r", KEPT, "`protocols/hcp/wire.py:no_such_name`", good.shown_by),
        Row("L1", 1, "r", KEPT, "`protocols/hcp/none.py`", good.shown_by),
        Row("L1", 1, "r", KEPT, good.where, "`protocols/hcp/test_hcp_codec.py::test_none`"),
        Row("L1", 1, "r", KEPT, good.where, "—"),
        Row("L1", 1, "r", NOT_KEPT, "later", "—"),
        Row("L1", 1, "r", "yes", good.where, good.shown_by),
    ):
        with pytest.raises(AssertionError):
            check_cited(bad)
