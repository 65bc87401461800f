"""The referee of histories: it finds each loss, double and disorder in an honest history."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from house_kept import Kept
from labharness.work.task import facts as f
from labharness.work.task.kept import read_history
from line_world import message
from task_history import faults_of

Facts = list[f.TaskFact]
Spoil = Callable[[Facts], Facts]


@pytest.fixture(scope="module")
def honest(tmp_path_factory: pytest.TempPathFactory) -> tuple[Facts, list[str]]:
    """Return the facts of three tasks that a house has carried out, and their ids."""
    home = tmp_path_factory.mktemp("house")
    kept = Kept(home, 3)
    names = [kept.house.submit(message(f"k{number}")).task_id for number in range(3)]
    for _ in range(60):
        kept.turn()
    kept.journal.close()
    return [fact for _, fact, _, _ in read_history(Path(home / "house.sqlite"))], names


def at(facts: Sequence[f.TaskFact], kind: type[f.TaskFact], number: int = 0) -> int:
    return [i for i, fact in enumerate(facts) if isinstance(fact, kind)][number]


def without(kind: type[f.TaskFact]) -> Spoil:
    return lambda facts: [fact for i, fact in enumerate(facts) if i != at(facts, kind)]


def twice(kind: type[f.TaskFact]) -> Spoil:
    return lambda facts: [*facts[: at(facts, kind) + 1], *facts[at(facts, kind) :]]


def moved_to(to: str, change: str) -> Spoil:
    def spoil(facts: Facts) -> Facts:
        moves = [(i, x) for i, x in enumerate(facts) if isinstance(x, f.TaskMoved)]
        first, move = next((i, x) for i, x in moves if x.to == to)
        spoilt = [replace(move, to=change)] if change else []
        return [*facts[:first], *spoilt, *facts[first + 1 :]]

    return spoil


def swapped(facts: Facts) -> Facts:
    one, two = at(facts, f.AttemptStarted), at(facts, f.AttemptEnded)
    facts = list(facts)
    at_s = (facts[one].at_s, facts[two].at_s)
    facts[one], facts[two] = replace(facts[two], at_s=at_s[0]), replace(facts[one], at_s=at_s[1])
    return facts


def late(facts: Facts) -> Facts:
    return [replace(facts[0], at_s=facts[-1].at_s + 1.0), *facts[1:]]


def test_an_honest_history_has_no_fault(honest: tuple[Facts, list[str]]) -> None:
    facts, names = honest
    assert faults_of(facts, names) == []
    assert {type(each) for each in facts} >= {f.InstrumentsLeased, f.AttemptEnded, f.TaskMoved}


SPOILS: dict[str, tuple[Spoil, str]] = {
    "task lost": (without(f.TaskCreated), "lost"),
    "task doubled": (twice(f.TaskCreated), "task made twice"),
    "attempt lost": (without(f.AttemptStarted), "without an attempt"),
    "attempt doubled": (twice(f.AttemptStarted), "run begun twice"),
    "end of an attempt lost": (without(f.AttemptEnded), "open attempt"),
    "end of an attempt doubled": (twice(f.AttemptEnded), "not open"),
    "progress doubled": (twice(f.TaskProgressed), "followed twice"),
    "lease lost": (without(f.InstrumentsLeased), "not there"),
    "lease never ended": (without(f.InstrumentsReleased), "two runs"),
    "end lost": (moved_to("completed", ""), "not ended"),
    "acceptance lost": (moved_to("accepted", ""), "draft becomes queued"),
    "work begun before its time": (moved_to("accepted", "completed"), "draft becomes completed"),
    "attempt ended before it began": (swapped, "not open"),
    "time that runs backwards": (late, "backwards"),
}


@pytest.mark.parametrize("name", SPOILS)
def test_what_was_lost_doubled_or_put_out_of_order_is_found(
    honest: tuple[Facts, list[str]], name: str
) -> None:
    facts, names = honest
    spoil, fault = SPOILS[name]
    found = faults_of(spoil(facts), names)
    assert any(fault in each for each in found), found


def test_other_steps_than_those_of_the_run_are_found(honest: tuple[Facts, list[str]]) -> None:
    facts, names = honest
    runs = [each.run_id for each in facts if isinstance(each, f.AttemptStarted)]
    assert any("other steps" in each for each in faults_of(facts, names, {runs[0]: [("x", "y")]}))
    assert any("more tasks" in each for each in faults_of(facts, names[1:]))
