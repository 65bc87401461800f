"""The table of promises is true: its tests exist, and each planted bug has its detector."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from planted_bugs import PLANTED
from planted_harms import HARMS
from promised import ROOT, ROWS, bugs_of

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]

PROMISED = [*range(1, 17), *range(20, 25), 33, 35, 36, *range(40, 53)]
BUGS_MIN = 30
DETECTORS = {
    "referee",
    "byte log",
    "deadline",
    "journal audit",
    "alarm audit",
    "verdict",
    "lint",
}

NOT_DAILY = {"pytest.mark.soak", "pytest.mark.thorough"}

TEST = re.compile(r"`(test_\w+\.py)::(test_\w+)`")

# What an untrained reader takes for more than software is: each needs its denial beside it.
CLAIMS = re.compile(
    r"\bSIL\b|emergency[ -]stop button|fail-?safe|certified|guarantees? safety", re.IGNORECASE
)
DENIAL = re.compile(r"\b(?:no|not|never|nor|none|without)\b", re.IGNORECASE)


@cache
def names_in(file: str) -> set[str]:
    tree = ast.parse((ROOT / "tests" / file).read_text("utf-8"))
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


def test_every_promise_stands_in_the_table_with_a_bound_a_test_and_a_bug() -> None:
    assert list(ROWS) == PROMISED
    for number, row in ROWS.items():
        assert row[3].strip(), f"promise {number} has no bound"
        assert TEST.findall(row[4]), f"promise {number} has no test"
        assert bugs_of(number), f"promise {number} has no planted bug"


@pytest.mark.parametrize("number", PROMISED)
def test_every_test_that_a_promise_names_exists(number: int) -> None:
    named = TEST.findall(ROWS[number][4])
    assert [(file, name) for file, name in named if name not in names_in(file)] == []
    assert len(named) == ROWS[number][4].count("::")


@cache
def daily_in(file: str) -> set[str]:
    """Name the tests of a file that no mark takes out of ``make test``; tidy ones are checked."""
    tree = ast.parse((ROOT / "tests" / file).read_text("utf-8"))
    return {
        node.name
        for node in tree.body
        if isinstance(node, ast.FunctionDef)
        and not any(ast.unparse(each) in NOT_DAILY for each in node.decorator_list)
    }


def test_every_promise_keeps_a_test_for_every_day() -> None:
    for number, row in ROWS.items():
        named = TEST.findall(row[4])
        assert any(name in daily_in(file) for file, name in named), f"promise {number}"


def test_every_planted_bug_attacks_one_promise_and_has_its_detector() -> None:
    listed = [name for number in ROWS for name in bugs_of(number)]
    planted = [each.promise for each in PLANTED] + [each.name for each in HARMS]
    assert sorted(listed) == sorted(planted)
    assert len(PLANTED) >= BUGS_MIN
    used = {each for number in ROWS for each in bugs_of(number).values()}
    assert used == DETECTORS
    assert {bugs_of(6)[each.name] for each in HARMS} == {"referee"}


def test_the_test_that_a_planted_bug_turns_red_is_one_of_its_promise() -> None:
    for number, row in ROWS.items():
        tests = {f"tests/{file}::{name}" for file, name in TEST.findall(row[4])}
        for bug in PLANTED:
            if bug.promise in bugs_of(number):
                assert bug.test.partition("[")[0] in tests, f"{number}: {bug.promise}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_no_page_claims_more_than_software_may(page: Path) -> None:
    sentences = re.split(r"(?<=[.:;|])\s", page.read_text("utf-8"))
    bold = [each for each in sentences if CLAIMS.search(each) and not DENIAL.search(each)]
    assert bold == []


def test_a_claim_is_seen() -> None:
    assert CLAIMS.search("This is rated SIL 2.")
    assert not DENIAL.search("This is rated SIL 2.")
    assert DENIAL.search("no SIL is claimed")
    text = (ROOT / "README.md").read_text("utf-8")
    assert "never an emergency stop" in text
