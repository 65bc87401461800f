"""Asks the houses of a campaign's labs; each answer, or its absence, is an outcome."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from labharness.core.clock import pause, steady_s
from labharness.instruments.link.conversation import house_door
from labharness.work.task.states import TERMINAL

LOOK_S_MIN: Final = 0.5
"""World time (s) between the first two looks of one wait; each pause doubles the one before."""

LOOK_S_MAX: Final = 30.0
"""Longest world time (s) between two looks."""

NO_TASK: Final = "unknown_task"

WAIT_S_MAX: Final = 600.0
"""World time (s) after which a wait is recorded, though nothing has happened."""


def submit_to(home: Path, message: str, seed: int | None) -> dict[str, Any]:
    """Submit a message; its ``message_id`` is the key, so that it may be repeated."""
    try:
        answer = _asked(home, do="submit", message=message, seed=seed)
    except OSError:  # no house, or no answer of it
        return {"away": True}
    return {"task_id": answer["task_id"]} if answer["ok"] else {"refused": answer["error"]}


def look_at(
    homes: Mapping[str, Path], tasks: Mapping[str, str], away: tuple[str, ...], most_s: float
) -> dict[str, Any]:
    """Wait until a task has ended, or a house that was away answers, or one no longer does.

    Args:
        homes: State directory of each lab.
        tasks: The task at work in each lab.
        away: Labs whose house did not answer last.
        most_s: The longest wait; `WAIT_S_MAX` if that is shorter.
    """
    began_s, look_s = steady_s(), LOOK_S_MIN
    while True:
        seen = {lab: _seen(homes[lab], tasks.get(lab, "")) for lab in {*tasks, *away}}
        silent = sorted(lab for lab, state in seen.items() if state is None)
        ended = {lab: state for lab, state in seen.items() if state and _has_ended(state)}
        waited_s = steady_s() - began_s
        over = waited_s >= min(WAIT_S_MAX, most_s)
        if ended or over or silent != sorted(away):
            return {"ended": ended, "away": silent, "waited_s": round(waited_s + 0.001, 3)}
        pause(min(look_s, max(0.0, most_s - waited_s)))
        look_s = min(2 * look_s, LOOK_S_MAX)


def _has_ended(state: Mapping[str, str]) -> bool:
    return state["status"] in TERMINAL or state["reason"] == NO_TASK


def _seen(home: Path, task_id: str) -> dict[str, str] | None:
    """Return status and reason of a task; ``None`` where its house does not answer."""
    try:
        answer = _asked(home, do="task", task_id=task_id) if task_id else _asked(home, do="status")
    except OSError:
        return None
    if not task_id:
        return {"status": "", "reason": ""}
    if not answer["ok"]:  # its journal is another one now
        return {"status": "unknown", "reason": NO_TASK}
    return {"status": answer["status"], "reason": answer["reason"]}


def _asked(home: Path, **asked: object) -> dict[str, Any]:
    with house_door(home) as door:
        return door.ask(**asked)
