"""JSON Schemas (2020-12) of MCP-CP's messages, made of the types that the codec reads.

A schema cannot say all that the codec holds: that a date exists, that no key or id stands twice,
which calls wait for each other, how large and how deep a message may be.
"""

from typing import Any, Final

import msgspec

from labharness.protocols.json_numbers import INTEGER_MAX
from labharness.protocols.json_schemas import DIALECT, plain
from labharness.protocols.mcp_cp.codec import DEPTH_MAX, MESSAGE_BYTES_MAX, message_types
from labharness.protocols.mcp_cp.messages import (
    CONTENTS,
    ErrorSource,
    InstructionForm,
    LoopForm,
    McpMessage,
)

KINDS: Final = tuple(CONTENTS)
"""The types of message."""


def message_schema(kind: str) -> dict[str, Any]:
    """Return the schema of one type of message."""
    made = msgspec.json.schema_components(
        [McpMessage, message_types()[kind], InstructionForm, LoopForm],
        ref_template="#/$defs/{name}",
    )
    (_, content, *forms), parts = made
    parts = {name: plain(each) for name, each in parts.items()}
    if "ErrorSource" in parts:
        english = [spelt for name in ErrorSource.__members__ for spelt in (name, name.lower())]
        parts["ErrorSource"] = {"enum": [*ErrorSource, *english]}
    if kind == "INSTRUCTION":
        for name in ("InstructionMessage", "LoopForm"):
            parts[name]["properties"]["instructions"]["items"] = {"anyOf": forms}
    head = parts["McpMessage"] if kind == "CONTEXT_UPDATE" else parts.pop("McpMessage")
    if kind != "INSTRUCTION":
        del parts["InstructionForm"], parts["LoopForm"]
    return {
        "$schema": DIALECT,
        "title": kind,
        "description": f"At most {MESSAGE_BYTES_MAX} bytes of UTF-8, nested at most {DEPTH_MAX} "
        f"deep, no key twice in one object, integers within ±{INTEGER_MAX}.",
        **head,
        "properties": {**head["properties"], "type": {"const": kind}, "content": plain(content)},
        "$defs": parts,
    }
