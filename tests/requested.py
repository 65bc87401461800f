"""Requests that wait for a person: the lab, the hot task, and what waits."""

import json
from typing import Any

from commands import payload, say
from labharness.work.admission.approval import ApprovalRequest
from rig import EXAMPLE, ON_SHORT

GROWTH, PAPER, CURVE = (
    json.loads((EXAMPLE.parent / f"{name}.json").read_text("utf-8"))["payload"]
    for name in ("mos2-monolayer", "document-analysis", "iv-curve")
)
HOT: dict[str, Any] = {"min": 820, "max": 830, "unit": "celsius"}  # R4: no standing approval


def hot() -> dict[str, Any]:
    return payload(HOT, "inputs", "temperature_range")


def waiting() -> str:
    """The id of the one request that waits."""
    lines = say("approvals", "list", *ON_SHORT).out.splitlines()
    assert len(lines) == 1, lines
    return lines[0].split()[0]


def request(**changes: Any) -> ApprovalRequest:
    fields: dict[str, Any] = {
        "session_id": "s",
        "requester": "grace",
        "capability": "c",
        "risk_level": "R4",
        "risk_reasons": ("hot",),
        "intent": "",
        "inputs": {},
        "instructions": {"instructions": [{"instructionId": "a"}]},
        "duration_s": 1.0,
        "prediction": None,
        "envelope_digest": "e",
        "lab_digest": "l",
        "why": "",
        "expired": False,
    }
    return ApprovalRequest(**{**fields, **changes})
