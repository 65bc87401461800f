"""The table of promises is true: its tests exist, and each planted bug has its detector."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from marked import NAMED_OF, PROMISES, ROOT, held_by
from planted_bugs import PLANTED
from planted_harms import HARMS
from promised import bugs_of, lists

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]

PROMISED = [*range(1, 17), *range(20, 25), 33, 35, 36, *range(40, 79)]
BUGS_MIN = 30
DETECTORS = {"referee", "byte log", "deadline", "journal audit", "alarm audit", "verdict", "lint"}

NOT_DAILY = {"pytest.mark.soak", "pytest.mark.thorough"}

# What an untrained reader takes for more than software is: each needs its denial beside it.
CLAIMS = re.compile(
    r"\bSIL\b|emergency[ -]stop button|fail-?safe|certified|guarantees? safety", re.IGNORECASE
)
DENIAL = re.compile(r"\b(?:no|not|never|nor|none|without)\b", re.IGNORECASE)


def test_the_lists_have_every_planted_bug_and_each_test_that_it_turns_red() -> None:
    told = lists()
    for bug in PLANTED:
        assert f"- {bug.name} ({bug.detector})" in told
        assert f"- `{bug.test.partition('[')[0].removeprefix('tests/')}`" in told


@pytest.mark.parametrize("number", PROMISED)
def test_every_promise_has_a_bound_a_test_and_a_bug(number: int) -> None:
    assert list(PROMISES) == PROMISED
    assert held_by(number)
    assert NAMED_OF[number] in bugs_of(number)


def test_no_test_and_no_bug_names_a_promise_that_is_not_there() -> None:
    named = {bug.promise for bug in PLANTED} | {number for number in range(100) if held_by(number)}
    assert named == set(PROMISED)


@cache
def daily_in(file: str) -> set[str]:
    """Name the tests of a file that no mark takes out of ``make test``; tidy ones are checked."""
    tree = ast.parse((ROOT / "tests" / file).read_text("utf-8"))
    return {
        node.name
        for node in tree.body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and not any(ast.unparse(each) in NOT_DAILY for each in node.decorator_list)
    }


@pytest.mark.parametrize("number", PROMISED)
def test_every_promise_keeps_a_test_for_every_day(number: int) -> None:
    named = (each.split("::") for each in held_by(number))
    assert any(test in daily_in(file) for file, test in named)


def test_the_page_names_a_bug_of_each_promise_that_runs_before_a_change_lands() -> None:
    named = [bug for bug in PLANTED if bug.named]
    assert {bug.promise for bug in named} == {bug.promise for bug in PLANTED}
    assert [bug.name for bug in named if bug.dear] == []


def test_every_planted_bug_has_its_own_name_and_detector() -> None:
    names = [each.name for each in PLANTED] + [each.name for each in HARMS]
    assert len(names) == len(set(names))
    assert len(PLANTED) >= BUGS_MIN
    assert {each.detector for each in PLANTED} == DETECTORS


def test_the_test_that_a_planted_bug_turns_red_is_one_of_its_promise() -> None:
    for bug in PLANTED:  # one test for all: each of so many would take longer to begin than to run
        assert bug.test.partition("[")[0].removeprefix("tests/") in held_by(bug.promise), bug.name


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
@pytest.mark.promise(35)
def test_no_page_claims_more_than_software_may(path: Path) -> None:
    sentences = re.split(r"(?<=[.:;|])\s", path.read_text("utf-8"))
    bold = [each for each in sentences if CLAIMS.search(each) and not DENIAL.search(each)]
    assert bold == []


def test_a_claim_is_seen() -> None:
    assert CLAIMS.search("This is rated SIL 2.")
    assert not DENIAL.search("This is rated SIL 2.")
    assert DENIAL.search("no SIL is claimed")
    text = (ROOT / "README.md").read_text("utf-8")
    assert "never an emergency stop" in text
