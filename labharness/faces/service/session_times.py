"""The parts of a session that has ended, by its run's journal: their names, codes and times (pure).

Codes of ours alone are taken: no words, inputs or results of a caller are among them.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from itertools import pairwise
from typing import Final

from labharness.journal.chain import Record

CODE: Final = re.compile(r"[A-Za-z0-9_.-]{0,64}")

CLOCKS_APART_S: Final = 3_600.0
"""A run whose own time is farther from the house's is one in virtual time: its spans then begin
when the house began it, and last as long as they did for the line."""

STAGES_MAX: Final = 256
"""Stages of one run that have a span; a plan has about ten."""


def code_in(value: object) -> str:
    """Return a code as an attribute; what is no code of ours is left out."""
    return text if CODE.fullmatch(text := str(value)) else ""


@dataclass(slots=True)
class SessionTimes:
    """What a journal says of a session.

    Attributes:
        at_s: Times in seconds since 1970 by the kinds of records.
        stages: The stages of its run, and when each began.
        end: Type of its last message; ``""`` where there is none.
        risk_level: ``""`` where it was not accepted.
    """

    at_s: dict[str, float] = field(default_factory=dict)
    stages: list[tuple[str, float]] = field(default_factory=list)
    end: str = ""
    risk_level: str = ""


def times_in(began_s: float, records: Iterable[Record]) -> SessionTimes:
    """Return what a journal says; it is read once, piece by piece.

    Args:
        began_s: When the house began the run, in seconds since 1970.
        records: The run's journal.
    """
    found = SessionTimes()
    for each, at_s in _timed(began_s, records):
        found.at_s.setdefault("first", at_s)
        found.at_s["last"] = at_s
        accepted = "task_accepted" in found.at_s
        if each.kind == "event" and each.body["event_type"] == "progress":
            stage = code_in(each.body["data"].get("stage", ""))
            if not accepted:
                found.at_s.setdefault(stage, at_s)
            elif [s for s, _ in found.stages[-1:]] != [stage] and len(found.stages) < STAGES_MAX:
                found.stages.append((stage, at_s))
        elif each.kind == "task_accepted" and not accepted:
            found.at_s.pop("step", None)
            found.at_s[each.kind] = at_s
            found.risk_level = code_in(each.body.get("risk_level", ""))
        elif each.kind == "terminal":
            found.end = code_in(each.body["type"])
            break  # what follows is the watch of a line that cools
        elif each.kind in ("planned", "prediction", "step"):
            found.at_s[each.kind] = at_s
    return found


def _timed(began_s: float, records: Iterable[Record]) -> Iterator[tuple[Record, float]]:
    """Return each record with its time; of a run in lab time each event states its own."""
    base_s, last_s, lab_time = None, 0.0, False
    for each in records:
        own_s = 0.0
        with suppress(KeyError, ValueError):
            own_s = datetime.fromisoformat(str(each.body["timestamp"])).timestamp()
        if base_s is None:  # the second since 1970 at which the run's own time was 0
            near = abs(own_s - began_s) <= CLOCKS_APART_S
            last_s = max(own_s, began_s) if near else began_s
            base_s = last_s - each.at_s
        lab_time = lab_time or "metadata" in each.body
        last_s = max(last_s, own_s) if lab_time else base_s + each.at_s
        yield each, last_s


PARTS: Final = (
    ("queue", "begin", ("started",)),
    ("audit", "first", ("planned", "task_accepted", "last")),
    ("preflight", "planned", ("prediction",)),
    ("approval", "awaiting_approval", ("task_accepted", "last")),
    ("run", "task_accepted", ("last",)),
)
"""Spans of a session: the name, where it begins, and where it ends, whichever there is first."""


def parts_of(
    at_s: Mapping[str, float], stages: Sequence[tuple[str, float]]
) -> Iterator[tuple[str, float, float]]:
    """Return name, begin and end of each span below a session's; below its run, behind it."""
    for name, begin, ends in PARTS:
        end = next((each for each in ends if each in at_s), "")
        if begin in at_s and end:
            yield name, at_s[begin], at_s[end]
    if "task_accepted" in at_s:
        done_s = at_s.get("step", at_s["last"])
        for (stage, since_s), (_, until_s) in pairwise([*stages, ("", done_s)]):
            yield f"stage {stage}", since_s, until_s
        yield "answer", done_s, at_s["last"]
