"""A condition is true, false, or an error with a reason; nothing is guessed and nothing is run."""

import math
import random
import statistics
import sys
import time
from collections import Counter
from collections.abc import Iterator
from importlib.metadata import EntryPoint
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from labharness.protocols.mcp_cp import conditions
from labharness.protocols.mcp_cp.conditions import (
    CHARACTERS_MAX,
    DEPTH_MAX,
    BadCondition,
    ConditionFailed,
    condition_of,
)
from mcp_cp_samples import resident_bytes

CONTEXT: dict[str, Any] = {
    "dependencies": {
        "inst_1": {
            "status": "COMPLETED",
            "result": {
                "score": 0.92,
                "items": ["apple", "banana", 3, True],
                "metadata": {"source": "primary", "note": "it's", "blank": "  ", "none": None},
                "found": True,
                "empty": {},
                "样品": 1,
            },
        },
        "inst-2": {"status": "FAILED", "result": {"count": 5, "threshold": 0.75, "odd": math.nan}},
    },
    "ANDROID": {"x": 1},
    "yes": True,
    "no": False,
}
ONE, TWO = "dependencies.inst_1.result", "dependencies.inst-2.result"


def holds(text: str) -> bool:
    return condition_of(text).holds(CONTEXT)


@pytest.mark.parametrize(
    ("text", "true"),
    [
        ("dependencies.inst_1.status == 'COMPLETED'", True),
        (f"dependencies.inst_1.status == 'COMPLETED' AND {ONE}.score > 0.8", True),
        (f"{ONE}.score < 0.5 OR {TWO}.count > 3", True),
        (
            f"(dependencies.inst_1.status == 'COMPLETED' AND {ONE}.score > 0.95) OR "
            "(dependencies.inst-2.status == 'FAILED')",
            True,
        ),
        (f"{ONE}.score > {TWO}.threshold", True),
        (f"{TWO}.count != 5.0", False),
        (f"-1 <= {TWO}.count AND 5e0 >= {TWO}.count", True),
        (f"{ONE}.found == true", True),
        (f"NOT {ONE}.found == false", True),
        (f"{ONE}.found", True),
        (f"{ONE}.items.1 == 'banana'", True),
        (f"{ONE}.metadata.note == 'it''s'", True),
        (f"{ONE}.metadata.source == 'a AND b OR (c'", False),
        (f"contains({ONE}.items, 'apple')", True),
        (f"contains({ONE}.items, 'pear')", False),
        (f"contains({ONE}.items, 1)", False),
        (f"contains({ONE}.items, {TWO}.count) == false", True),
        (f"isEmpty({ONE}.metadata.blank) AND isEmpty({ONE}.empty)", True),
        (f"isEmpty({ONE}.metadata.none) AND NOT isEmpty({ONE}.items)", True),
        (f"isEmpty({TWO}.count)", False),
        (f"{ONE}.样品 == 1", True),
        ("ANDROID.x == 1", True),
        ("NOT(no)", True),
        ("'b' > 'a'", True),
        ("NOT yes", False),
    ],
)
def test_a_condition_is_what_its_words_say(text: str, true: bool) -> None:
    assert holds(text) is true


@pytest.mark.parametrize(
    ("text", "true"),
    [
        ("yes OR yes AND no", True),  # OR first: (yes OR yes) AND no is false
        ("no AND no OR yes", True),
        ("NOT no AND no", False),  # NOT last: NOT (no AND no) is true
        ("NOT yes OR yes", True),
        ("no OR no OR yes", True),  # the sample drops all but two
        ("yes AND yes AND no", False),
        ("(yes OR yes) AND no", False),
        ("yes AND (no OR (yes AND NOT no))", True),
    ],
)
def test_not_binds_before_and_and_and_before_or(text: str, true: bool) -> None:
    assert holds(text) is true


def written(depth: int) -> st.SearchStrategy[tuple[str, str]]:
    """Return conditions as MCP-CP and as Python write them."""
    leaf = st.sampled_from([("yes", "True"), ("no", "False"), ("1 < 2", "1 < 2")])
    if not depth:
        return leaf
    below = written(depth - 1)
    pairs = st.lists(below, min_size=2, max_size=3)
    return st.one_of(
        leaf,
        below.map(lambda one: (f"NOT {one[0]}", f"not {one[1]}")),
        below.map(lambda one: (f"({one[0]})", f"({one[1]})")),
        pairs.map(lambda two: (" AND ".join(a for a, _ in two), " and ".join(b for _, b in two))),
        pairs.map(lambda two: (" OR ".join(a for a, _ in two), " or ".join(b for _, b in two))),
    )


@given(written(4))
def test_any_condition_agrees_with_the_same_one_of_another_language(pair: tuple[str, str]) -> None:
    text, other = pair
    assert holds(text) is eval(other)


@pytest.mark.parametrize(
    "text",
    [
        "dependencies.inst_9.status == 'COMPLETED'",
        f"{ONE}.scores > 1",
        f"NOT {ONE}.scores > 1",
        f"{ONE}.items.4 == 1",
        f"isEmpty({ONE}.nothing)",
        f"contains({ONE}.nothing, 1)",
        f"{ONE}.__class__ == 'dict'",
        f"{ONE}.score.real > 0",
    ],
)
def test_an_unknown_path_is_an_error_and_never_false(text: str) -> None:
    with pytest.raises(ConditionFailed, match="leads nowhere"):
        holds(text)


@pytest.mark.parametrize(
    "text",
    [
        f"{ONE}.score == 'high'",
        f"{ONE}.found == 1",
        f"{ONE}.found > false",
        f"{ONE}.metadata.none == 'x'",
        f"{ONE}.items == {ONE}.items",
        f"{ONE}.empty != 'x'",
        f"{TWO}.odd > 0",
        f"{TWO}.odd != 0",
        f"contains({ONE}.metadata.source, 'prim')",
        f"contains({ONE}.items, {ONE}.items)",
        f"{ONE}.score",
        f"NOT {ONE}.metadata.source",
        "yes AND 1",
        "'x' OR yes",
    ],
)
def test_a_type_that_does_not_fit_is_an_error_and_never_false(text: str) -> None:
    with pytest.raises(ConditionFailed, match=r"cannot compare|neither true nor false"):
        holds(text)


def test_and_and_or_look_no_further_than_they_must() -> None:
    assert holds("yes OR nowhere.x == 1")
    assert not holds("no AND nowhere.x == 1")
    with pytest.raises(ConditionFailed):
        holds("nowhere.x == 1 OR yes")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "ends too early"),
        ("a ==", "ends too early"),
        ("(yes", "ends too early"),
        ("yes)", "from character 4"),
        ("a = 1", "from character 3"),
        ("a == b == c", "from character 8"),
        ('a == "x"', "from character 6"),
        ("a == 'x", "from character 6"),
        ("AND", "from character 1"),
        ("a == AND", "from character 6"),
        ("a and b", "from character 3"),
        ("a[0] == 1", "from character 2"),
        ("a..b == 1", "from character 2"),
        ("1e999 > 1", "too large"),
        ("contain(a, 1)", r"'contain' \(did you mean contains\?\); there are contains, isEmpty"),
        ("__import__('os')", "calls '__import__'"),
        ("a.b(1)", "calls 'a.b'"),
        ("contains(a)", "takes 2 values; the condition has 1"),
        ("isEmpty()", "takes 1 values; the condition has 0"),
        ("NOT " * (DEPTH_MAX + 1) + "yes", "more than 32 deep"),
        ("y" * (CHARACTERS_MAX + 1), "2001 characters"),
    ],
)
def test_a_condition_that_cannot_be_read_says_where(text: str, why: str) -> None:
    with pytest.raises(BadCondition, match=why):
        condition_of(text)


def test_the_bounds_themselves_are_within_bounds() -> None:
    assert holds("NOT " * (DEPTH_MAX - 2) + "yes")
    assert holds("(" * 500 + "yes" + ")" * 500)
    assert holds(" " * (CHARACTERS_MAX - 3) + "yes")


@pytest.mark.parametrize(
    "text",
    ["contains(long, 'x')", "many.0 == many.1", " OR ".join(["contains(short, 0)"] * 60)],
)
def test_what_one_evaluation_looks_at_is_bounded(text: str) -> None:
    much = {"long": [""] * 60_000, "many": ["x" * 100_001] * 2, "short": [1] * 2_000}
    with pytest.raises(ConditionFailed, match="compares too much"):
        condition_of(text).holds(much)


def test_success_of_a_status_is_completed_with_a_warning() -> None:
    found = condition_of("'SUCCESS' == results.inst_1.status OR no")
    assert found.holds({"results": {"inst_1": {"status": "COMPLETED"}}, "no": False})
    assert [each.code for each in found.warnings] == ["condition.success"]
    for other in (f"{ONE}.word == 'SUCCESS'", "dependencies.x.status == 'FAILED'"):
        assert condition_of(other).warnings == ()


def test_a_condition_names_its_paths_and_whose_status_it_speaks_of() -> None:
    found = condition_of(
        f"dependencies.a.status == 'FAILED' OR isEmpty({ONE}.x) AND results.b.status == y"
    )
    assert found.asked_status() == {"a", "b"}
    assert (*ONE.split("."), "x") in found.paths
    assert ("y",) in found.paths


def test_a_condition_that_is_asked_for_again_is_read_once() -> None:
    text = f"{ONE}.score > 0.5"
    assert condition_of(text) is condition_of(text)


@pytest.fixture
def added(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[EntryPoint]]:
    points = [EntryPoint("length", "builtins:len", conditions.FUNCTIONS)]
    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: points)
    for each in (conditions._added, condition_of):
        each.cache_clear()
    yield points
    for each in (conditions._added, condition_of):
        each.cache_clear()


def test_functions_come_by_entry_point_and_their_failure_is_an_error(
    added: list[EntryPoint],
) -> None:
    assert holds(f"length({ONE}.items) == 4")
    with pytest.raises(ConditionFailed, match="'length' of the condition failed: TypeError"):
        holds(f"length({ONE}.score) == 4")
    added.append(EntryPoint("contains", "builtins:any", conditions.FUNCTIONS))
    conditions._added.cache_clear()
    with pytest.raises(BadCondition, match="'contains' of 'builtins:any' is there twice"):
        condition_of("other(1)")


def assert_short(message: str) -> None:
    assert 0 < len(message) < 400


WORDS = (
    "AND",
    "OR",
    "NOT",
    "(",
    ")",
    "==",
    ">",
    "'x'",
    "1",
    "-2e3",
    "true",
    ",",
    "contains(",
    "isEmpty(",
    "dependencies.inst_1.status",
    ONE + ".items",
    "yes",
    "__class__",
    "\\",
    '"',
    "\0",
)


@given(st.lists(st.sampled_from(WORDS), max_size=30) | st.text(max_size=60).map(lambda one: [one]))
def test_any_text_is_true_false_or_a_typed_error(words: list[str]) -> None:
    try:
        found = holds(" ".join(words))
    except (BadCondition, ConditionFailed) as why:
        assert_short(str(why))
    else:
        assert found in (True, False)


MEDIAN_S, GROWTH_BYTES = 1e-3, 64 * 2**20
READABLE = f"contains({ONE}.items, 'apple') AND ({ONE}.score > 0.95 OR NOT isEmpty({TWO}.count))"
ODD = ("(" * 40, "NOT " * 40, "x" * 2_100, "__import__('os')", "eval(yes)", "\ud800", "样品")


def drawn_condition(chance: random.Random) -> str:
    """Return words of the grammar, or a condition that is nearly one."""
    if chance.random() < 0.5:
        return " ".join(chance.choices((*WORDS, *ODD), k=chance.randint(0, 12)))
    at, put = chance.randrange(len(READABLE)), chance.choice(("", *WORDS, *ODD))
    return READABLE[:at] + put + READABLE[at + chance.randint(0, 9) :]


@pytest.mark.parametrize("count", [500, pytest.param(1_000_000, marks=pytest.mark.soak)])
@pytest.mark.timeout(7_200)
def test_fuzzed_conditions_leave_nothing_behind_and_run_nothing(
    count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance, took, before, ended = random.Random(35), list[float](), 0, Counter[str]()
    for number in range(count):
        text = drawn_condition(chance)
        if number == count // 10:  # all is imported by now
            before = resident_bytes()
            for name in ("eval", "exec", "compile"):
                monkeypatch.delattr(f"builtins.{name}")
        began = time.perf_counter()
        try:
            ended[str(holds(text))] += 1
        except (BadCondition, ConditionFailed) as why:
            ended[type(why).__name__] += 1
        took.append(time.perf_counter() - began)
        del took[:-100_000]
    monkeypatch.undo()
    growth, median_s = resident_bytes() - before, statistics.median(took)
    sys.stdout.write(f"{ended}, median {median_s * 1e6:.0f} µs, growth {growth / 2**20:.1f} MB\n")
    assert len(ended) == 4
    assert growth <= GROWTH_BYTES
    assert median_s <= MEDIAN_S or count < 1_000_000
