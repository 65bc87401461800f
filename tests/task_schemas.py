"""The published schemas of agent tasks, closed: a name that they do not have is refused."""

import copy
import json
from functools import cache
from typing import Any

from jsonschema import Draft202012Validator

from rig import HERE

FOLDER = HERE / "data" / "agent_task"
NAMES = json.loads((FOLDER / "names.json").read_text("utf-8"))
FREE = {"scope", "constraints", "taskProfile"}
"""What callers fill in with names of their own."""

NAMED = {"task", "taskAttempt", "taskRelationship"}
EXTENSIONS = {
    "taskAttempt": {"nativeStatus": {"type": "string"}},
    "taskRelationship": {"sourceId": {"type": "string"}},
}


def _read(name: str) -> Any:
    return json.loads((FOLDER / f"agentruntime-{name}.schema.json").read_text("utf-8"))


EVENT_TYPES = frozenset(
    each
    for each in _read("event")["properties"]["type"]["enum"]
    if each.startswith("task.") and each != "task.profile.resolved"
)


def _closed_object(properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "additionalProperties": False, "properties": properties}


def _closed_field(name: str, schema: dict[str, Any]) -> dict[str, Any]:
    if name in NAMED:
        return {"$ref": f"#/$defs/{name}"}
    if name == "taskGraph":
        edges = {"type": "array", "items": {"$ref": "#/$defs/taskRelationship"}}
        return _closed_object({"relationships": edges})
    plain = _closed_object({each: {} for each in NAMES.get(name, ())})
    if schema.get("type") == "object" and name not in FREE:
        return plain
    if schema.get("type") == "array" and schema.get("items") == {"type": "object"}:
        return {"type": "array", "items": plain}
    return schema


def _close(schema: dict[str, Any]) -> dict[str, Any]:
    fields = schema["properties"]
    closed = {name: _closed_field(name, each) for name, each in fields.items()}
    return {**schema, "additionalProperties": False, "properties": closed}


def _defs() -> dict[str, Any]:
    defs = copy.deepcopy(_read("snapshot")["$defs"])
    for name, more in EXTENSIONS.items():
        defs[name]["properties"].update(more)
    return {name: _close(each) if "properties" in each else each for name, each in defs.items()}


@cache
def snapshot_validator() -> Draft202012Validator:
    """Return the validator of snapshots; `attempts` at the top is a named extension."""
    schema = _read("snapshot")
    attempts = {"type": "array", "items": {"$ref": "#/$defs/taskAttempt"}}
    closed = _close(schema)
    closed["properties"] |= {"attempts": attempts, "threads": {"const": []}}
    return Draft202012Validator({**closed, "$defs": _defs()})


@cache
def event_validator() -> Draft202012Validator:
    """Return the validator of events."""
    return Draft202012Validator({**_close(_read("event")), "$defs": _defs()})
