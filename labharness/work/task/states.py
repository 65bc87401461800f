"""The 20 statuses of a task; a change that is not in the table is refused.

The names are those of the agent-task contract and of its published snapshot schema. The page of
states (`docs/reference/states.md`) has those of an attempt, and how all of them correspond.
"""

from typing import Final

WAITING: Final = ("waiting_input", "waiting_permission", "waiting_resource")
FOR_PERSONS: Final = frozenset({"waiting_input", "waiting_permission"})
"""Statuses that last until a person acts."""

_DOUBT: Final = ("lost", "stale", "unknown")
_ENDS: Final = ("cancelling", "timed_out", "failed")
_UNDER_WAY: Final = ("queued", "preparing", "running", *WAITING, "blocked", "paused")


def _onward(status: str, *more: str) -> tuple[str, ...]:
    """Return the changes of a status under way: to the others, to an end, and into doubt."""
    others = tuple(each for each in _UNDER_WAY if each != status)
    return (*others, *more, *_ENDS, *_DOUBT)


# Status -> the statuses that it may become. A cancelled task is never retried: its cancellation
# sticks to the graph. A lost worker may be found again, or its task is retried or failed; it is
# never taken for a success. From `stale` and `unknown` facts lead back to any status but these.
TRANSITIONS: Final[dict[str, tuple[str, ...]]] = {
    "draft": ("accepted", "cancelling", "archived"),
    "accepted": ("queued", "preparing", "running", *WAITING, "blocked", *_ENDS, *_DOUBT),
    **{each: _onward(each) for each in _UNDER_WAY if each != "running"},
    "running": _onward("running", "completed"),
    "retrying": ("queued", "preparing", "running", *WAITING, "blocked", *_ENDS, *_DOUBT),
    "cancelling": ("cancelled", "failed", "lost"),
    "cancelled": ("archived",),
    "timed_out": ("retrying", "archived"),
    "failed": ("retrying", "archived"),
    "lost": ("running", "retrying", "cancelling", "failed"),
    "completed": ("archived",),
    "archived": (),
    "stale": (*_UNDER_WAY, *_ENDS, "lost", "unknown"),
    "unknown": (*_UNDER_WAY, *_ENDS, "lost", "stale"),
}

STATUSES: Final = tuple(TRANSITIONS)
TERMINAL: Final = frozenset({"cancelled", "timed_out", "failed", "completed", "archived"})
"""Statuses in which no work goes on. A new attempt can follow `timed_out` and `failed`."""

ACTIVE: Final = frozenset(STATUSES) - TERMINAL


def may_become(status: str, to: str) -> bool:
    """Return whether the table has the change; an unknown status becomes nothing."""
    return to in TRANSITIONS.get(status, ())
