"""A client that knows the text of MCP-CP 1.0 and `websockets`, and nothing of labharness."""

import json
import re
import time
import uuid
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

from websockets.sync.client import connect

Told = dict[str, Any]
HEAD = {"messageId", "contextId", "timestamp", "type", "sender", "content"}
NAMES = """USER_INPUT MODEL_RESPONSE TOOL_CALL_REQUEST TOOL_CALL_RESPONSE SYSTEM_MESSAGE INSTRUCTION
CLIENT_CAPABILITIES TOOL_AVAILABILITY_REQUEST TOOL_AVAILABILITY_RESPONSE ERROR_RESPONSE
CONTEXT_UPDATE"""
TYPES = set(NAMES.split())
SENDERS = {"USER", "MODEL", "SYSTEM", "TOOL"}
SOURCES = {"客户端", "服务端", "工具", "系统"}
MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
CLIENT = {"clientId": "client_abc123", "deviceType": "desktop", "platform": "Linux"}
CLIENT |= {"version": "15.0"}
WAIT_S_MAX = 30.0
BYTES_MAX = 16_777_216


def check_form(told: Told) -> None:
    """Hold a message of the server to chapter 2.2, and an error to 7.2."""
    sender, content = told["sender"], told["content"]
    assert HEAD <= told.keys() <= HEAD | {"metadata"}, told
    assert sender.keys() == {"id", "type"}, told
    assert (told["type"] in TYPES, sender["type"] in SENDERS) == (True, True), told
    assert sender["type"] == "USER" or MOMENT.fullmatch(told["timestamp"]), told
    if told["type"] == "ERROR_RESPONSE":
        assert content.keys() >= {"errorCode", "message", "details", "source", "recoverable"}
        assert content["source"] in SOURCES
        assert "\n" not in content["message"]
        assert "traceId" in content["details"]


class McpCpClient:
    """One connection, which speaks for one caller in one context unless it says otherwise."""

    def __init__(self, address: str, caller_id: str, context_id: str, **options: Any) -> None:
        self.caller_id, self.context_id = caller_id, context_id
        self.heard: list[Told] = []
        address = f"{address}?caller={caller_id}"
        self._connecting = connect(address, max_size=BYTES_MAX, proxy=None, **options)

    def __enter__(self) -> "McpCpClient":
        self.connection = self._connecting.__enter__()
        return self

    def __exit__(self, *ended: Any) -> None:
        self._connecting.__exit__(*ended)

    def message(self, kind: str, content: Any, **head: Any) -> Told:
        now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        return {
            "messageId": str(uuid.uuid4()),
            "contextId": self.context_id,
            "timestamp": now,
            "type": kind,
            "sender": {"id": self.caller_id, "type": "USER"},
            "content": content,
            **head,
        }

    def send(self, kind: str, content: Any, **head: Any) -> Told:
        """Send a message; return it."""
        sent = self.message(kind, content, **head)
        self.connection.send(json.dumps(sent, ensure_ascii=False))
        return sent

    def say(self, text: str, **head: Any) -> Told:
        return self.send("USER_INPUT", {"text": text}, **head)

    def call(self, name: str, mode: str = "SYNC", times: int = 1, **parameters: Any) -> Told:
        """Ask for one call, or for several that are alike."""
        calls = [
            {"callId": str(uuid.uuid4()), "name": name, "parameters": parameters}
            for _ in range(times)
        ]
        return self.send("TOOL_CALL_REQUEST", {"calls": calls, "executionMode": mode})

    def update(self, operation: str, version: int | None = None, **content: Any) -> Told:
        head = {} if version is None else {"metadata": {"contextVersion": version}}
        return self.send("CONTEXT_UPDATE", {"operation": operation, **content}, **head)

    def result(self, call: Told, result: Any, **more: Any) -> Told:
        """Answer a call that was forwarded."""
        found = {"callId": call["callId"], "status": "SUCCESS", "executionTime": 5, **more}
        found |= {} if "error" in more else {"result": result}
        sender = {"id": self.caller_id, "type": "TOOL"}
        return self.send("TOOL_CALL_RESPONSE", {"results": [found]}, sender=sender)

    def hear(self, most_s: float = WAIT_S_MAX) -> Told:
        """Return the next message."""
        told: Told = json.loads(self.connection.recv(most_s))
        check_form(told)
        self.heard.append(told)
        return told

    def until(self, true: Callable[[Told], bool], most_s: float = WAIT_S_MAX) -> list[Told]:
        """Hear messages up to the first of which something is true; return them."""
        end_s, told = time.monotonic() + most_s, list[Told]()
        while not told or not true(told[-1]):
            told.append(self.hear(max(0.0, end_s - time.monotonic())))
        return told

    def of(self, kind: str, most_s: float = WAIT_S_MAX) -> Told:
        """Return the next message of a type."""
        return self.until(lambda told: told["type"] == kind, most_s)[-1]

    def turn(self, most_s: float = WAIT_S_MAX) -> list[Told]:
        """Return the messages up to the answer of the model that ends a turn."""
        return self.until(is_end, most_s)

    def forwarded(self) -> Told:
        """Return the next call that is this client's to carry out."""
        asked = ("TOOL_CALL_REQUEST", "SYSTEM")
        (call,) = self.until(lambda told: kinds([told]) == [asked])[-1]["content"]["calls"]
        found: Told = call
        return found

    def join(self, tools: Sequence[Told] = (), **limits: Any) -> Told:
        """Announce itself (4.7.1); return the context, once its messages have come."""
        content = {"supportedTools": list(tools), "limitations": limits}
        self.send("CLIENT_CAPABILITIES", CLIENT | content)
        shown = self.until(lambda told: "context" in told.get("metadata", {}))[-1]
        found: Told = shown["metadata"]["context"]
        count = int(re.findall(r"\d+", shown["content"]["text"])[-1])
        found["messages"] = [self.hear() for _ in range(count)]
        return found

    def quiet(self) -> list[Told]:
        """Return all messages that were on their way, by a question whose answer is the last."""
        self.send("TOOL_AVAILABILITY_REQUEST", {"tools": [{"toolId": "none"}]})
        *before, last = self.until(lambda told: told["type"] == "TOOL_AVAILABILITY_RESPONSE")
        (tool,) = last["content"]["availableTools"]
        assert tool["available"] is False
        assert {"reason", "message"} <= tool.keys()
        return before

    def refused(self) -> str:
        """Return the code of the one message that comes, which is an error."""
        (told,) = self.quiet()
        assert told["type"] == "ERROR_RESPONSE", told
        code: str = told["content"]["errorCode"]
        return code


def is_end(told: Told) -> bool:
    kind, content = told["type"], told["content"]
    return bool(kind == "MODEL_RESPONSE" and content["finishReason"] != "TOOL_CALLS")


def kinds(messages: Sequence[Told]) -> list[tuple[str, str]]:
    return [(each["type"], each["sender"]["type"]) for each in messages]
