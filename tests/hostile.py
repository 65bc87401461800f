"""Journals whose texts are hostile markup, and a report grown from one."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from labharness.journal import SqliteJournal
from labharness.lab import Lab, read_lab
from labharness.lab.wiring.tasks import TaskRun
from labharness.work.desk.folder import JOURNAL_NAME
from rig import EXAMPLE, SHORT_LINE, as_submit

HOSTILE = (
    "</script><script>alert(1)</script><img src=x onerror='a()'>\"&\u202e{intent}\ud800\x1b[2J"
)


HEATS = {"what": "heats", "value": 1.0}


def grown(folder: Path, act: Callable[[Lab], None] | None = None, **payload: Any) -> Path:
    """Run the example on the short line, with a fault a minute into the growth."""
    body = json.loads(EXAMPLE.read_text("utf-8"))
    for part, values in payload.items():
        body["payload"][part].update(values)
    opened: list[Lab] = []

    def tell(kind: str, data: Any) -> None:
        if act is not None and kind == "progress" and data["stage"] == "material_growth":
            opened[0].clock.loop.call_later(60.0, act, opened[0])

    message, submit = as_submit(body)
    plan = read_lab(SHORT_LINE)
    TaskRun(
        replace(plan, cold=dict.fromkeys(plan.cold, 600.0)),  # its cooling shows nothing more
        message,
        submit,
        speed=None,
        seed=1,
        out=folder,
        tell=tell,
        prepare=opened.append,
    ).execute()
    return folder


def hostile_journal(folder: Path) -> Path:
    """Write a journal whose every free text is hostile."""
    path = folder / JOURNAL_NAME
    journal = SqliteJournal(
        path, run={"session_id": HOSTILE, "seed": None}, about={"python": HOSTILE}
    )
    step = {
        "instructionId": "one",
        "metadata": {"stage": HOSTILE, "description": HOSTILE},
    }
    planned = {"instructions": {"instructions": [step]}, "recipe": {HOSTILE: HOSTILE}}
    asked = {
        "intent": HOSTILE,
        "caller_id": HOSTILE,
        "inputs": {HOSTILE: [HOSTILE, {"a": HOSTILE}]},
    }
    spots = [{"x_um": HOSTILE, "y_um": 0}]
    told = {"event_type": "warning", "data": {"message": HOSTILE}}
    record: list[tuple[str, dict[str, Any]]] = [
        ("submitted", {"payload": {**asked, "context": {HOSTILE: HOSTILE}}}),
        ("approved", {"by": [HOSTILE], "reason": HOSTILE}),
        ("planned", planned),
        (
            "prediction",
            {
                "trajectory": {HOSTILE: [[0.0, 1.0]]},
                "bands": {},
                "units": {HOSTILE: HOSTILE},
                "duration_s": 1.0,
                "steps": [
                    {
                        "instruction": "one",
                        "started_s": 0,
                        "ended_s": 1,
                        "if_killed": [HOSTILE],
                        "stays": [dict.fromkeys(("name", "unit", "does"), HOSTILE) | HEATS],
                    }
                ],
                "hardware": [HOSTILE],
                "gas_used_cm3": {HOSTILE: 1.0},
            },
        ),
        ("identified", {"instrument": HOSTILE, "model": HOSTILE, "firmware": HOSTILE}),
        ("task_accepted", {"risk_level": HOSTILE}),
        ("step", {"instruction": "one", "status": "RUNNING"}),
        ("event", told),
        ("trip", {"cause": HOSTILE, "detail": HOSTILE}),
        (
            "terminal",
            {
                "type": "task_failed",
                "payload": {
                    "error_code": HOSTILE,
                    "error_message": HOSTILE,
                    "error_details": {"phase": HOSTILE, "step": HOSTILE},
                    "partial_outputs": {"raman_analysis": {"spots": spots, HOSTILE: HOSTILE}},
                    "artifacts": [
                        {"name": HOSTILE, "uri": HOSTILE, "size_bytes": 1, "checksum": HOSTILE}
                    ],
                },
            },
        ),
    ]
    for at, (kind, body) in enumerate(record):
        journal.append(kind, body, float(at))
    journal.close()
    return path
