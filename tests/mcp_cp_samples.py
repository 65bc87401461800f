"""Messages of MCP-CP with every field of its text, and messages that are nearly so."""

import json
import random
from copy import deepcopy
from pathlib import Path
from typing import Any

from fuzzed import places

AT = "2025-12-01T12:34:56.789Z"
HEAD: dict[str, Any] = {
    "messageId": "msg_1",
    "contextId": "ctx_1",
    "timestamp": AT,
    "sender": {"id": "user_1", "type": "USER"},
}
ATTACHMENT = {
    "type": "IMAGE",
    "url": "https://example.com/a.jpg",
    "metadata": {
        "fileName": "a.jpg",
        "fileSize": 3,
        "mimeType": "image/jpeg",
        "digest": "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
    },
}
CALL = {
    "callId": "call_2",
    "name": "file_picker",
    "parameters": {"accept": ".csv", "from": "${results.call_1.result.path}", "deep": {"n": 1.5}},
    "description": "why it is called",
    "requiredAfter": ["call_1"],
    "timeout": 12.5,
    "runtime": "FRONTEND",
    "userPrompt": "May I?",
    "fallbackBehavior": "ABORT",
    "uiSettings": {"modal": True},
    "timeoutClient": 5.5,
}
CALLS: list[dict[str, Any]] = [
    {"callId": "call_1", "name": "calculator", "parameters": {"expression": "2*(3+4)"}},
    CALL,
]
TIMES = {
    "executionMode": "CLIENT_SERVER_PARALLEL",
    "timeout": 60.5,
    "frontendTimeout": 20.5,
    "backendTimeout": 30.5,
}
RESULT = {
    "callId": "call_1",
    "status": "ERROR",
    "result": {"data": [1], "metadata": {"processingTime": 120}},
    "error": {"code": "OFFLINE", "message": "m", "details": {"hint": "h"}},
    "executionTime": 1234.5,
    "clientInfo": {
        "deviceType": "desktop",
        "browser": "chrome",
        "version": "96.0",
        "capabilities": ["camera"],
    },
}
TOOL = {
    "toolId": "screenshot",
    "name": "Screenshot",
    "description": "d",
    "version": "1.2.0",
    "runtime": "FRONTEND",
    "capabilities": ["photo"],
    "parameters": {"type": "object"},
    "returns": {"type": "object"},
    "permissionLevel": "USER_CONSENT",
}
INSTRUCTION = {
    "instructionId": "inst_2",
    "action": "QUERY_DATA",
    "parameters": {"data": "${dependencies.inst_1.result.data}", "limit": 10},
    "dependencies": ["inst_1"],
    "condition": "dependencies.inst_1.status == 'COMPLETED'",
    "timeout": 10.5,
    "metadata": {"kind": "QUERY"},
    "over": None,
}

CONTENTS: dict[str, dict[str, Any]] = {
    "USER_INPUT": {"text": "你好", "attachments": [ATTACHMENT]},
    "MODEL_RESPONSE": {
        "text": "t",
        "toolCalls": CALLS,
        "finishReason": "TOOL_CALLS",
        "usage": {"promptTokens": 123, "completionTokens": 456, "totalTokens": 579},
        **TIMES,
    },
    "TOOL_CALL_REQUEST": {"calls": CALLS, **TIMES},
    "TOOL_CALL_RESPONSE": {"results": [RESULT]},
    "SYSTEM_MESSAGE": {
        "action": "NOTIFICATION",
        "text": "t",
        "data": {"code": "SYS_001", "severity": "medium", "affectedComponents": ["auth"]},
    },
    "INSTRUCTION": {
        "instructions": [INSTRUCTION],
        "executionMode": "SEQUENTIAL",
        "timeout": 60.5,
    },
    "CLIENT_CAPABILITIES": {
        "clientId": "client_1",
        "deviceType": "smartphone",
        "platform": "iOS",
        "version": "15.0",
        "supportedTools": [TOOL],
        "supportedFeatures": ["offline_execution"],
        "limitations": {"maxFileSize": 50_000_000, "maxProcessingTime": 60_000.5},
    },
    "TOOL_AVAILABILITY_REQUEST": {
        "tools": [{"toolId": "camera", "minVersion": "1.0.0", "requiredCapabilities": ["photo"]}]
    },
    "TOOL_AVAILABILITY_RESPONSE": {
        "availableTools": [
            {"toolId": "camera", "available": True, "version": "1.2.0", "capabilities": ["photo"]},
            {
                "toolId": "place",
                "available": False,
                "reason": "PERMISSION_DENIED",
                "message": "m",
            },
        ]
    },
    "ERROR_RESPONSE": {
        "errorCode": "AUTH_FAILED",
        "message": "m",
        "details": {
            "requestId": "req_1",
            "timestamp": AT,
            "traceId": "trace_1",
            "violatedPolicies": ["rate_limit"],
        },
        "source": "服务端",
        "recoverable": True,
        "suggestedAction": "s",
    },
}


def message(kind: str, content: object, **more: object) -> dict[str, Any]:
    """Return a message of a type."""
    return {**deepcopy(HEAD), "type": kind, "content": deepcopy(content), **more}


UPDATES: dict[str, dict[str, Any]] = {
    "ADD_MESSAGE": {
        "operation": "ADD_MESSAGE",
        "message": message("USER_INPUT", {"text": "t"}, metadata={"a": 1}),
    },
    "UPDATE_STATE": {
        "operation": "UPDATE_STATE",
        "path": "userPreferences.language",
        "value": "en",
    },
    "CLEAR_HISTORY": {"operation": "CLEAR_HISTORY", "filter": {"beforeTimestamp": AT}},
}
WHOLE: dict[str, dict[str, Any]] = {
    **{kind: message(kind, content, metadata={"a": 1}) for kind, content in CONTENTS.items()},
    **{name: message("CONTEXT_UPDATE", each, metadata={"a": 1}) for name, each in UPDATES.items()},
}
"""A message of each type, and of each operation of CONTEXT_UPDATE, with every field."""


def written(body: object) -> bytes:
    """Return bytes of JSON, also where JSON has no such value."""
    return json.dumps(body, ensure_ascii=False).encode("utf-8", "surrogatepass")


def changed(body: dict[str, Any], path: tuple[str | int, ...], to: object) -> dict[str, Any]:
    """Return a message with another value at a place; without one where it is `GONE`."""
    found = deepcopy(body)
    place: Any = found
    for name in path[:-1]:
        place = place[name]
    if to is GONE:
        del place[path[-1]]
    else:
        place[path[-1]] = to
    return found


GONE = object()


JUNK: tuple[Any, ...] = (
    *(None, True, 0, -1, 1.5, 2**53, 10**30, "", "x", "\x00", "\u202e", "\ud800", "x" * 129),
    *([], {}, [[]], {"": ""}, ["x"] * 65, {"$ref": "#"}, "2.0", float("nan"), float("inf"), 1e-9),
    *("USER_INPUT", "CONTEXT_UPDATE", "客户端", AT, "2025-02-30T00:00:00Z", AT + "\n", "a.b.c"),
)


def drawn(chance: random.Random) -> bytes:
    """Return bytes that somebody might send: a mutated message, or what is not one."""
    body: Any = deepcopy(chance.choice([*WHOLE.values()]))
    for _ in range(chance.randint(0, 3)):
        everywhere = [each for each in places(body) if each]
        if not everywhere:
            break
        path = chance.choice(everywhere)
        to = chance.choice([GONE, *JUNK, chance.choice([*CONTENTS.values()])])
        body = changed(body, path, to)
    if chance.random() < 0.2:
        body[chance.choice(["more", "a b", "unknownFields", "metadata", ""])] = chance.choice(JUNK)
    data = written(body)
    if chance.random() < 0.2:
        cut = chance.randrange(len(data))
        data = data[:cut] + chance.choice([b"", b"{", b'"', b"\xff", b",", b"[" * 70, b"1e999"])
        data += b"" if chance.random() < 0.5 else written(body)[cut:]
    return data


def resident_bytes() -> int:
    """Return the memory of this process, bytes; 0 where the system does not tell."""
    text = Path("/proc/self/status").read_text("utf-8") if Path("/proc/self").exists() else ""
    return int(text.partition("VmRSS:")[2].split()[0]) * 1024 if text else 0
