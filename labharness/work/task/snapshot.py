"""The read model of a lab's tasks: one snapshot in the words of the published schema."""

from dataclasses import replace
from typing import Any, Final

from labharness.work.task.projected import attempt_of, graph_of, task_of, utc
from labharness.work.task.record import Task, Tasks
from labharness.work.task.states import TERMINAL, WAITING

SCHEMA_VERSION: Final = "1.0.0"
RECENT_MAX: Final = 20
"""Ended tasks in the summary; older ones are found under `tasks`."""


def snapshot(tasks: Tasks, session_id: str, now_s: float) -> dict[str, Any]:
    """Return the snapshot of all tasks; there are no threads in a laboratory."""
    every = list(tasks.by_id.values())
    return {
        "schemaVersion": SCHEMA_VERSION,
        "sessionId": session_id,
        "updatedAt": utc(now_s),
        "threads": [],
        "taskSummary": _summary(every),
        "tasks": [task_of(tasks, each) for each in every],
        "taskGraph": graph_of(tasks),
        "attempts": [attempt_of(tasks, run, task) for task in every for run in task.attempts],
        "blockedTasks": [_blocked(tasks, each) for each in every if _waits(each)],
        "deliveryState": {"tasks": [_delivery(each) for each in every]},
    }


def unfollowed(tasks: Tasks) -> Tasks:
    """Return the tasks as they are known while no house is up: those at work are `stale`."""
    by_id = tasks.by_id
    for task in tasks.unended_tasks:
        if task.current is not None:
            stale = replace(task, status="stale", native_status=task.status)
            by_id = by_id.with_entry(task.task_id, stale)
    return replace(tasks, by_id=by_id)


def _summary(every: list[Task]) -> dict[str, Any]:
    ended = sorted((t for t in every if t.status in TERMINAL), key=lambda t: t.ended_at_s or 0.0)
    return {
        "activeCount": len(every) - len(ended),
        "terminalCount": len(ended),
        "failedCount": _count(every, "failed"),
        "lostCount": _count(every, "lost"),
        "waitingCount": _count(every, *WAITING),
        "recentTerminalTasks": [each.task_id for each in ended[: -RECENT_MAX - 1 : -1]],
    }


def _count(every: list[Task], *statuses: str) -> int:
    return sum(each.status in statuses for each in every)


def _waits(task: Task) -> bool:
    return task.status in (*WAITING, "blocked")


def _delivery(task: Task) -> dict[str, str]:
    return {"taskId": task.task_id, "status": task.delivery}


def _blocked(tasks: Tasks, task: Task) -> dict[str, Any]:
    return {
        "taskId": task.task_id,
        "status": task.status,
        "statusReason": task.status_reason or "unknown",
        "blockers": list(tasks.targets(task.task_id, "blocked_by")),
        "requiredActionIds": [task.required_action] if task.required_action else [],
    }
