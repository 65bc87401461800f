"""The read model of a lab's tasks: one snapshot in the words of the published schema."""

import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from typing import Any, Final

from labharness.work.task.record import Attempt, Edge, Task, TaskProgress, Tasks
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
        "blockedTasks": [
            _blocked(tasks, each) for each in every if each.status in (*WAITING, "blocked")
        ],
        "deliveryState": {
            "tasks": [{"taskId": each.task_id, "status": each.delivery} for each in every]
        },
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


def _blocked(tasks: Tasks, task: Task) -> dict[str, Any]:
    return {
        "taskId": task.task_id,
        "status": task.status,
        "statusReason": task.status_reason or "unknown",
        "blockers": list(tasks.targets(task.task_id, "blocked_by")),
        "requiredActionIds": [task.required_action] if task.required_action else [],
    }


def utc(at_s: float) -> str:
    """Return a second of world time as RFC 3339."""
    return datetime.fromtimestamp(at_s, UTC).isoformat().replace("+00:00", "Z")


@cache
def _attribute(name: str) -> str:
    return re.sub("[A-Z]", lambda capital: f"_{capital[0].lower()}", name)


def named(row: object, *names: str) -> dict[str, Any]:
    """Return fields of a row by their names in the schema: ``taskId`` is its ``task_id``."""
    return {name: getattr(row, _attribute(name)) for name in names}


def _said(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields that have a value: the schemas have no null, and absence claims nothing."""
    return {name: value for name, value in fields.items() if value not in ("", None)}


def progress_of(task: Task) -> dict[str, Any]:
    """Return progress; what was never reported is `unknown` or `not_applicable`."""
    progress = task.progress
    return {
        "phase": progress.phase,
        "percent": _percent(progress.counters),
        "currentStep": progress.current_step or "unknown",
        "counters": dict(progress.counters),
        "acceptanceCoverage": _coverage(task, progress),
    }


def _percent(counters: Mapping[str, int]) -> int | str:
    """Return the share of the plan's steps that are completed."""
    steps = counters.get("steps", 0)
    return 100 * counters.get("steps_completed", 0) // steps if steps else "unknown"


def _coverage(task: Task, progress: TaskProgress) -> str:
    if not task.acceptance:
        return "not_applicable"
    return f"{len(progress.covered & set(task.acceptance))}/{len(task.acceptance)}"


def attempt_of(tasks: Tasks, run: Attempt, task: Task) -> dict[str, Any]:
    """Return one attempt; its outputs are references with the bytes written so far.

    Its worker has `instruments` for as long as the run has its lease.
    """
    lease, policy = tasks.leases.get(run.run_id), task.retry
    instruments = {} if lease is None else {"instruments": list(lease.instruments)}
    return _said(
        {
            "runId": run.run_id,
            "attemptId": run.run_id,
            "status": run.status,
            "nativeStatus": run.native_status,
            "worker": {"id": run.worker, **instruments},
            "inputRefs": [{"ref": each} for each in run.input_refs],
            "outputRefs": [{"ref": r, "offset": n} for r, n in run.output_offsets.items()],
            "checkpointRefs": [{"ref": each} for each in run.checkpoint_refs],
            "startedAt": utc(run.started_at_s),
            "endedAt": None if run.ended_at_s is None else utc(run.ended_at_s),
            "attemptCount": run.ordinal,
            "retryPolicy": {
                "maxAttempts": policy.attempts_max,
                "backoff": policy.back_off_s,
                "nonRetryableErrors": list(policy.not_retried),
                "timeoutPolicy": {"inactivity": policy.inactivity_timeout_s or "not_applicable"},
            },
            "lastError": {"code": run.error_code} if run.error_code else None,
            "completionSummary": run.summary,
        }
    )


def edge_of(edge: Edge) -> dict[str, Any]:
    """Return one relationship with the task it belongs to."""
    return _said(
        {
            **named(edge, "sourceId", "kind", "targetId", "status", "reason"),
            "createdAt": utc(edge.created_at_s),
            "updatedAt": utc(edge.updated_at_s),
        }
    )


def graph_of(tasks: Tasks) -> dict[str, Any]:
    """Return all edges, from which views of parents and dependencies are made."""
    return {"relationships": [edge_of(each) for each in tasks.edges]}


def task_of(tasks: Tasks, task: Task) -> dict[str, Any]:
    """Return one task with its attempts and relationships."""
    mine = tasks.edges_of.get(task.task_id, ())
    artifacts = tasks.targets(task.task_id, "produced_artifact")
    return _said(
        {
            **named(task, "taskId", "parentTaskId", "rootTaskId", "sessionId", "title"),
            **named(task, "objective", "taskKind", "taskFamily", "visibility", "priority"),
            "requestedBy": {"id": task.requested_by},
            "owner": {"id": task.owner or "unknown"},
            "assignee": {"id": task.assignee or "unknown"},
            "scope": dict(task.scope),
            "constraints": dict(task.constraints),
            "taskProfile": dict(task.profile),
            **named(task, "status", "nativeStatus", "statusReason"),
            "acceptance": [
                {"criterion": each, "covered": each in task.progress.covered}
                for each in task.acceptance
            ],
            "progress": progress_of(task),
            "currentRunId": task.current.run_id if task.current else None,
            "deliveryState": {"status": task.delivery},
            "lastError": last_error(task),
            "createdAt": utc(task.created_at_s),
            "updatedAt": utc(task.updated_at_s),
            "startedAt": None if task.started_at_s is None else utc(task.started_at_s),
            "endedAt": None if task.ended_at_s is None else utc(task.ended_at_s),
            "attempts": [attempt_of(tasks, each, task) for each in task.attempts],
            "relationships": [edge_of(each) for each in mine],
            "artifacts": [{"ref": each} for each in artifacts],
            "evidenceRefs": list(tasks.targets(task.task_id, "evidence")),
        }
    )


def last_error(task: Task) -> dict[str, str] | None:
    """Return the error of a task: its code, and its reason in words where it has ended by it."""
    if not task.error_code:
        return None
    why = task.status_reason if task.status in ("failed", "timed_out") else ""
    return _said({"code": task.error_code, "message": why})
