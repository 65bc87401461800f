"""The course of a campaign: which lab takes which point next, decided from recorded outcomes alone.

A point that was given to a lab stays with it: whether the lab has kept it may be unknown. The same
outcomes always make the same course, so that a killed campaign goes on where it was.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

Outcome = Mapping[str, Any]
"""The outcome of a move, as JSON keeps it."""


@dataclass(frozen=True, slots=True)
class Point:
    """One task of a campaign: its values by their paths, and its lab (``""``: the next free)."""

    number: int
    values: Mapping[str, Any]
    lab: str = ""


@dataclass(frozen=True, slots=True)
class PointEnd:
    """The end of a point.

    Attributes:
        status: Of its task; `unknown` where its lab is away, `not_submitted` where it has none.
    """

    status: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class SubmitPoint:
    """Submit a point to a lab."""

    lab: str
    number: int


@dataclass(frozen=True, slots=True)
class Look:
    """Wait until a task has ended or a house answers again.

    Attributes:
        tasks: The task at work in each lab.
        away: Labs whose house did not answer.
    """

    tasks: Mapping[str, str]
    away: tuple[str, ...]


Move = SubmitPoint | Look


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """A campaign as its outcomes leave it.

    Attributes:
        away_s_max: World time (s) without an answer after which a lab counts as gone.
        stops: A point that did not complete lets no other one begin.
        given: The lab of each point that was given to one.
        tasks: The task of each point that a house has kept.
        away_s: World time (s) for which each lab that is away was waited for.
    """

    points: tuple[Point, ...]
    labs: tuple[str, ...]
    away_s_max: float
    stops: bool = False
    given: Mapping[int, str] = field(default_factory=dict)
    tasks: Mapping[int, str] = field(default_factory=dict)
    ended: Mapping[int, PointEnd] = field(default_factory=dict)
    away_s: Mapping[str, float] = field(default_factory=dict)

    def next_move(self) -> Move | None:
        """Return what is done next; ``None`` at the end of the campaign."""
        busy = self._busy()
        for lab in self.labs:
            if lab not in self.away_s and (lab not in busy or busy[lab] not in self.tasks):
                number = busy.get(lab, self._next_of(lab))
                if number is not None:
                    return SubmitPoint(lab, number)
        tasks = {lab: self.tasks[number] for lab, number in busy.items() if number in self.tasks}
        wanted = tuple(lab for lab in self.labs if lab in self.away_s and self._wants(lab, busy))
        return Look(tasks, wanted) if tasks or wanted else None

    def _busy(self) -> dict[str, int]:
        """Return the point at work in each lab."""
        return {lab: number for number, lab in self.given.items() if number not in self.ended}

    def _wants(self, lab: str, busy: Mapping[str, int]) -> bool:
        here = lab in busy or self._next_of(lab) is not None
        return here and self.away_s[lab] < self.away_s_max

    def _next_of(self, lab: str) -> int | None:
        if self.stops and any(each.status != "completed" for each in self.ended.values()):
            return None
        open_ = (p for p in self.points if p.number not in self.given and p.lab in ("", lab))
        return next((each.number for each in open_), None)

    def after(self, move: Move, outcome: Outcome) -> "Course":
        """Return the course after the outcome of a move."""
        if isinstance(move, SubmitPoint):
            return self._submitted(move, outcome)
        waited_s = float(outcome["waited_s"])
        ended, busy = dict(self.ended), self._busy()
        for lab, end in outcome["ended"].items():
            ended[busy[lab]] = PointEnd(end["status"], end["reason"])
        away_s = {lab: self.away_s.get(lab, 0.0) + waited_s for lab in outcome["away"]}
        for number, lab in self.given.items():  # those of a lab that is gone end in doubt
            if away_s.get(lab, 0.0) >= self.away_s_max:
                ended.setdefault(number, PointEnd("unknown", AWAY))
        return replace(self, ended=ended, away_s=away_s)

    def _submitted(self, move: SubmitPoint, outcome: Outcome) -> "Course":
        course = replace(self, given={**self.given, move.number: move.lab})
        if "task_id" in outcome:
            return replace(course, tasks={**course.tasks, move.number: outcome["task_id"]})
        if "refused" in outcome:
            refused = PointEnd("refused", outcome["refused"])
            return replace(course, ended={**course.ended, move.number: refused})
        return replace(course, away_s={**course.away_s, move.lab: 0.0})

    def left(self) -> Mapping[int, PointEnd]:
        """Return the end of each point, also of those that no lab got; at the campaign's end."""
        failed = any(each.status != "completed" for each in self.ended.values())
        none = PointEnd("not_submitted", "stopped" if self.stops and failed else AWAY)
        return {each.number: self.ended.get(each.number, none) for each in self.points}


AWAY: Final = "house_away"


def fold(course: Course, outcomes: Iterable[Outcome]) -> Course:
    """Return the course that recorded outcomes lead to."""
    for outcome in outcomes:
        if (move := course.next_move()) is not None:
            course = course.after(move, outcome)
    return course
