"""Makes a ``task_submit`` of the growth that a paper describes; others decide to send it."""

from collections.abc import Mapping
from typing import Any, Final

from labharness.core.errors import LabError
from labharness.protocols.hcp.codec import HcpMessage, decode, encode
from labharness.protocols.hcp.messages import TaskSubmit
from labharness.work.admission.schemas import input_fault
from labharness.work.capability.cvd import CAPABILITY

WANTED: Final = ("peak_distance", "layer_count", "confidence")


def proposed_task(
    growth: Mapping[str, Any] | None,
    *,
    caller_id: str,
    message_id: str,
    timestamp: str,
    source: str,
) -> bytes | None:
    """Return the message, as its codec writes it; ``None`` where too little is stated.

    It is proposed and not sent: what a paper states may lie beyond this lab's limits, and admission
    says so.

    Args:
        growth: As `growth.growth_of` returns it.
        caller_id: Of the caller who asked for the analysis.
        message_id: Of the message.
        timestamp: Of the message.
        source: Digest of the document.
    """
    if growth is None or growth["substrate"] is None:
        return None
    inputs: dict[str, Any] = {
        "target_material": growth["target_material"],
        "substrate": growth["substrate"],
        "temperature_range": dict(growth["temperature_range"]),
    }
    if growth["recipe"]:
        inputs["recipe"] = dict(growth["recipe"])
    growing = CAPABILITY.declaration
    if input_fault(growing.input_schema, inputs) is not None:
        return None
    payload = {
        "capability": growing.name,
        "capability_version": "1.x",
        "caller_id": caller_id,
        "intent": f"Synthesize {inputs['target_material']} on {inputs['substrate']} as described",
        "inputs": inputs,
        "expected_output": {"required_fields": list(WANTED)},
        "context": {
            "purpose": "Proposed by document-analysis",
            "references": [source],
            "notes": " ".join(growth["sources"]),
        },
    }
    try:
        message = HcpMessage(
            type="task_submit",
            message_id=message_id,
            timestamp=timestamp,
            session_id=None,
            payload=TaskSubmit.model_validate(payload),
        )
        data = encode(message)
        decode(data)  # what is proposed can be sent
    except (LabError, ValueError):
        return None
    return data
