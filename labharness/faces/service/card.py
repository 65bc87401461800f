"""The A2A agent card (protocol 1.0) of a lab: how agents find it, and what it may be asked for.

HCP's specification has a capability declaration and no message that asks for one, so declarations
are not told over the broker. The card holds them whole, in an extension.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from labharness.protocols.hcp import wire
from labharness.protocols.hcp.codec import HCP_VERSION
from labharness.work.admission.declaration import Declaration

CARD_PATH: Final = "/.well-known/agent-card.json"
"""The place that A2A names (specification 1.0, section 8.2)."""

EXTENSION: Final = f"urn:hcp:{HCP_VERSION}:capabilities"
"""The extension with the declarations; a client that does not know HCP cannot use the lab."""

BINDING: Final = f"HCP/{HCP_VERSION}+AMQP"
"""The binding of the interface; none of A2A's own is served."""

JSON: Final = "application/json"


def agent_card(
    *,
    lab_id: str,
    title: str,
    version: str,
    address: str,
    declarations: Iterable[Declaration],
    safety_envelope: Mapping[str, Any],
) -> dict[str, Any]:
    """Return the card of a lab.

    Args:
        lab_id: Id of the lab, which is the id of the callee.
        title: Its name for people.
        version: Of labharness.
        address: Of the broker, without account and password.
        declarations: Of the capabilities that it offers.
        safety_envelope: The limits that the lab enforces (ruling 8).
    """
    known = list(declarations)
    params = {
        "callee_id": lab_id,
        "commands_exchange": wire.COMMANDS,
        "events_exchange": wire.EVENTS,
        "declarations": [each.to_json() for each in known],
        "safety_envelope": dict(safety_envelope),
    }
    extension = {
        "uri": EXTENSION,
        "description": "Tasks are HCP task_submit messages to the exchange of commands, with the "
        "callee_id as routing key.",
        "required": True,
        "params": params,
    }
    return {
        "name": title,
        "description": f"A laboratory that takes tasks by HCP {HCP_VERSION} over AMQP 0-9-1.",
        "version": version,
        "supportedInterfaces": [
            {"url": address, "protocolBinding": BINDING, "protocolVersion": HCP_VERSION}
        ],
        "capabilities": {"streaming": True, "pushNotifications": False, "extensions": [extension]},
        "defaultInputModes": [JSON],
        "defaultOutputModes": [JSON],
        "skills": [
            {
                **dict.fromkeys(("id", "name"), each.name),
                "description": each.description,
                "tags": [f"risk_ceiling:{each.safety.risk_ceiling}", *each.safety.resource_types],
            }
            for each in known
        ],
    }
