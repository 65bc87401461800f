"""The AsyncAPI document (3.0) of HCP over AMQP, as a lab that serves callers speaks it."""

import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from labharness.protocols.hcp import wire
from labharness.protocols.hcp.codec import HCP_VERSION, MessageType
from labharness.protocols.hcp.schemas import KINDS, message_schema

AMQP_BINDING: Final = "0.3.0"
"""Version of AsyncAPI's bindings for AMQP 0-9-1."""

_SAID: Final = tomllib.loads(Path(__file__).with_name("asyncapi.toml").read_text("utf-8"))
VHOST: Final = _SAID["servers"]["broker"]["pathname"]


def asyncapi() -> dict[str, Any]:
    """Return the document; each message has its JSON Schema in it."""
    info = _SAID["info"]
    return {
        "asyncapi": _SAID["asyncapi"],
        "info": {"title": info["title"], "version": HCP_VERSION, **info},
        "defaultContentType": "application/json",
        "servers": _SAID["servers"],
        "channels": _channels(),
        "operations": _operations(),
        "components": {
            "messages": {kind: _message(kind) for kind in KINDS},
            "securitySchemes": _SAID["securitySchemes"],
        },
    }


def _channels() -> dict[str, Any]:
    to_caller = [kind for kind in KINDS if kind not in wire.TO_CALLEE]
    return {
        "commands": _channel(wire.COMMANDS, "{callee_id}", ("callee_id",), wire.TO_CALLEE),
        "events": _channel(
            wire.EVENTS,
            "{caller_id}.{session_id}.{message_type}",
            ("caller_id", "session_id", "message_type"),
            to_caller,
        ),
        "command_queue": _queue(wire.command_queue("{callee_id}"), "callee_id", wire.TO_CALLEE),
        "event_queue": _queue(wire.event_queue("{caller_id}"), "caller_id", to_caller),
    }


def _channel(
    exchange: str,
    address: str,
    parameters: tuple[str, ...],
    kinds: Sequence[MessageType],
) -> dict[str, Any]:
    bound = {
        "name": exchange,
        "type": wire.EXCHANGES[exchange],
        "durable": True,
        "autoDelete": False,
        "vhost": VHOST,
    }
    return _with(address, parameters, kinds, {"is": "routingKey", "exchange": bound})


def _queue(name: str, parameter: str, kinds: Sequence[MessageType]) -> dict[str, Any]:
    bound = {"name": name, "durable": True, "exclusive": False, "autoDelete": False, "vhost": VHOST}
    return _with(name, (parameter,), kinds, {"is": "queue", "queue": bound})


def _with(
    address: str,
    parameters: tuple[str, ...],
    kinds: Sequence[MessageType],
    binding: Mapping[str, Any],
) -> dict[str, Any]:
    return {
        "address": address,
        "parameters": {name: _SAID["parameters"][name] for name in parameters},
        "messages": {kind: {"$ref": f"#/components/messages/{kind}"} for kind in kinds},
        "bindings": {"amqp": {**binding, "bindingVersion": AMQP_BINDING}},
    }


def _operations() -> dict[str, Any]:
    """Return what a lab does: it takes commands, and tells events."""
    operations = {}
    for kind in wire.TO_CALLEE:
        operations[f"take_{kind}"] = {
            "action": "receive",
            "channel": {"$ref": "#/channels/commands"},
            "messages": [{"$ref": f"#/channels/commands/messages/{kind}"}],
            "reply": {
                "channel": {"$ref": "#/channels/events"},
                "messages": [
                    {"$ref": f"#/channels/events/messages/{one}"} for one in _SAID["replies"][kind]
                ],
            },
            "bindings": {"amqp": {"ack": True, "bindingVersion": AMQP_BINDING}},
        }
    for kind in KINDS:
        if kind not in wire.TO_CALLEE:
            sent = {"deliveryMode": 2, "mandatory": True, "timestamp": True}
            operations[f"tell_{kind}"] = {
                "action": "send",
                "channel": {"$ref": "#/channels/events"},
                "messages": [{"$ref": f"#/channels/events/messages/{kind}"}],
                "bindings": {"amqp": {**sent, "bindingVersion": AMQP_BINDING}},
            }
    return operations


def _message(kind: MessageType) -> dict[str, Any]:
    place = f"#/components/messages/{kind}/payload/schema/$defs/"
    return {
        "name": kind,
        "summary": _SAID["messages"][kind],
        "contentType": "application/json",
        "correlationId": {
            "description": "Also the AMQP property correlation_id.",
            "location": "$message.payload#/session_id",
        },
        "bindings": {
            "amqp": {
                "contentEncoding": "utf-8",
                "messageType": kind,
                "bindingVersion": AMQP_BINDING,
            }
        },
        "payload": {
            "schemaFormat": "application/schema+json;version=draft-2020-12",
            "schema": _moved(message_schema(kind), place),
        },
    }


def _moved(schema: Any, place: str) -> Any:  # noqa: ANN401 - whatever a schema holds
    """Return a schema whose parts are found from the root of the document that it is put into."""
    if isinstance(schema, Mapping):
        return {
            name: each.replace("#/$defs/", place) if name == "$ref" else _moved(each, place)
            for name, each in schema.items()
        }
    return [_moved(each, place) for each in schema] if isinstance(schema, list) else schema
