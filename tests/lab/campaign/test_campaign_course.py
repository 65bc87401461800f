"""The course of a campaign: each point is given to one lab, and the same outcomes make it again."""

from collections import Counter
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from labharness.lab.campaign.course import Course, Look, Point, SubmitPoint, fold

LABS = ("east", "west")
MOVES_MAX = 500


def course(points: list[str], *, stops: bool = False) -> Course:
    numbered = tuple(Point(number, {}, lab) for number, lab in enumerate(points, 1))
    return Course(points=numbered, labs=LABS, away_s_max=10.0, stops=stops)


class Labs:
    """Houses that are away by chance, and tasks that end by chance."""

    def __init__(self, random: Random) -> None:
        self.random, self.made = random, Counter[tuple[str, int]]()

    def submit(self, move: SubmitPoint) -> dict[str, Any]:
        chance = self.random.random()
        if chance < 0.2:
            return {"away": True}
        if chance < 0.3:
            return {"refused": "the queue is full"}
        self.made[move.lab, move.number] += 1
        return {"task_id": f"task-{move.number}"}

    def look(self, move: Look) -> dict[str, Any]:
        away = [lab for lab in {*move.tasks, *move.away} if self.random.random() < 0.3]
        statuses = ("completed", "completed", "failed")
        ended = {
            lab: {"status": self.random.choice(statuses), "reason": ""}
            for lab in move.tasks
            if lab not in away and self.random.random() < 0.5
        }
        return {"ended": ended, "away": sorted(away), "waited_s": 4.0}


@pytest.mark.promise(61)
@given(st.lists(st.sampled_from(("", *LABS)), max_size=8), st.booleans(), st.integers(0, 10_000))
def test_each_point_is_given_to_one_lab_and_has_an_end(
    points: list[str], stops: bool, seed: int
) -> None:
    begun = now = course(points, stops=stops)
    labs, outcomes = Labs(Random(seed)), list[dict[str, Any]]()
    while (move := now.next_move()) is not None:
        outcome = labs.submit(move) if isinstance(move, SubmitPoint) else labs.look(move)
        if isinstance(move, SubmitPoint) and move.number in now.given:
            assert now.given[move.number] == move.lab
        outcomes.append(outcome)
        now = now.after(move, outcome)
        open_ = [lab for number, lab in now.given.items() if number not in now.ended]
        assert len(open_) == len(set(open_))
        assert len(outcomes) < MOVES_MAX
    assert set(now.left()) == set(range(1, len(points) + 1))
    assert all(number in now.ended for number in now.given)
    assert all(now.given[n] == lab for n, lab in enumerate(points, 1) if lab and n in now.given)
    assert max(labs.made.values(), default=0) <= 1
    assert fold(begun, outcomes) == now


def test_a_lab_that_is_away_for_too_long_leaves_its_point_in_doubt_and_the_rest_to_others() -> None:
    now = course(["", "", ""])
    now = now.after(SubmitPoint("east", 1), {"away": True})
    for number in (2, 3):
        assert now.next_move() == SubmitPoint("west", number)
        now = now.after(SubmitPoint("west", number), {"task_id": f"t{number}"})
        assert now.next_move() == Look({"west": f"t{number}"}, ("east",) if number == 2 else ())
        done = {"west": {"status": "completed", "reason": ""}}
        now = now.after(
            Look({"west": "t"}, ("east",)), {"ended": done, "away": ["east"], "waited_s": 10.0}
        )
    assert now.next_move() is None
    assert [end.status for end in now.left().values()] == ["unknown", "completed", "completed"]


def test_a_failure_stops_a_campaign_that_was_asked_to_stop() -> None:
    now = course(["east", "east"], stops=True)
    now = now.after(SubmitPoint("east", 1), {"task_id": "t"})
    failed = {"east": {"status": "failed", "reason": "timeout"}}
    now = now.after(Look({"east": "t"}, ()), {"ended": failed, "away": [], "waited_s": 1.0})
    assert now.next_move() is None
    assert [each.reason for each in now.left().values()] == ["timeout", "stopped"]
