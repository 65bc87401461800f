"""A lab, a model and clients in memory: dialogues as a server has them, without a wire."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from threading import Condition
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from labharness.core.clock import Chance, utc_text, wall_clock_utc
from labharness.faces.dialogue.rooms import Participant, Rooms
from labharness.faces.dialogue.tools import TOOLS, NotForAgent
from labharness.protocols.mcp_cp.codec import encode
from labharness.protocols.mcp_cp.messages import McpMessage
from labharness.work.dialogue.course import Briefing, response_of

CONTEXT_ID = "c-1"
PATIENCE_S = 20.0
IDS = Chance(None)


class Lab:
    """An agent at a lab in memory, which knows two callers."""

    def __init__(self, folder: Path, caller_id: str = "ana") -> None:
        self._folder, self.caller_id = folder, caller_id
        self.called: list[tuple[str, Mapping[str, Any]]] = []
        self.threads: list[str] = []
        self.work: Callable[[str], object] = lambda name: None

    @property
    def plan(self) -> SimpleNamespace:
        if self.caller_id not in ("ana", "ben"):
            raise NotForAgent("caller.unknown", caller=self.caller_id)
        return SimpleNamespace(state_dir=self._folder)

    def answer(
        self, name: str, arguments: Mapping[str, Any], thread_id: str = ""
    ) -> tuple[bool, dict[str, Any]]:
        self.called.append((name, arguments))
        self.threads.append(thread_id)
        if name not in TOOLS:
            return False, {"code": "not_for_agent", "message": "no such tool"}
        self.work(name)
        return True, {"name": name}


class Model:
    """A model whose answers stand in a list: a text, calls by name, or calls and their mode."""

    def __init__(self, *answers: Any) -> None:
        self.answers, self.prompts, self.tools = [*answers], list[str](), list[Any]()

    def answer(self, briefing: Briefing) -> Any:
        self.prompts.append(briefing.prompt)
        self.tools.append(briefing.tools)
        found = self.answers.pop(0) if self.answers else "Nothing more."
        if isinstance(found, Exception):
            raise found
        if isinstance(found, str):
            return response_of(found, (), "stop", None, briefing.number)
        calls, mode = found if isinstance(found, tuple) else (found, "SYNC")
        made = response_of("", [(name, "{}") for name in calls], "tool_call", None, briefing.number)
        return msgspec.structs.replace(made, execution_mode=mode)


class Served(Rooms):
    """The rooms of a lab in memory."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch, *answers: Any) -> None:
        self.labs: list[Any] = []

        def agent(lab: Path, caller_id: str, on_loopback: bool) -> Lab:
            found = Lab(folder, caller_id)
            self.labs.append(found)
            return found

        patch.setattr("labharness.faces.dialogue.rooms.Agent", agent)
        self.path = folder / "dialogues" / f"{CONTEXT_ID}.jsonl"
        super().__init__(folder / "lab.toml", folder, Model(*answers))

    def end(self) -> None:
        """Have no client any more, so that nothing waits for one, and close."""
        for client in [each for room in self._rooms.values() for each in room.clients]:
            self.leave(client)
        self.close()


class Program:
    """A client in memory, and what it has heard: each message is one that can be written."""

    def __init__(self, rooms: Any, caller_id: str = "ana") -> None:
        self.rooms, self.caller_id = rooms, caller_id
        self.client = Participant(caller_id, self._hear)
        self.heard: list[dict[str, Any]] = []
        self._news = Condition()

    def _hear(self, message: McpMessage) -> None:
        with self._news:
            self.heard.append(json.loads(encode(message)))
            self._news.notify_all()

    def send(self, kind: str, content: Mapping[str, Any], **more: Any) -> str:
        """Send a message; return its id."""
        now, sender = utc_text(wall_clock_utc()), {"id": self.caller_id, "type": "USER"}
        head = {"messageId": IDS.uuid4(), "contextId": CONTEXT_ID, "timestamp": now}
        body: dict[str, Any] = {**head, "type": kind, "sender": sender, "content": content, **more}
        self.rooms.take(self.client, json.dumps(body).encode())
        return str(body["messageId"])

    def say(self, text: str, **more: Any) -> str:
        return self.send("USER_INPUT", {"text": text}, **more)

    def announce(self, *tools: Mapping[str, Any], **more: Any) -> None:
        who = {"clientId": "p", "deviceType": "desktop", "platform": "Linux", "version": "1"}
        limits = {"limitations": {"maxProcessingTime": 7000}, "supportedTools": [*tools]}
        self.send("CLIENT_CAPABILITIES", {**who, **limits}, **more)

    def call(self, *names: str, **more: Any) -> str:
        """Send calls of tools, `call-0` and so on; return the id of the message."""
        calls = [
            {"callId": f"call-{at}", "name": e, "parameters": {}} for at, e in enumerate(names)
        ]
        return self.send("TOOL_CALL_REQUEST", {"calls": calls, **more})

    def answer(self, asked: Mapping[str, Any], result: object = 7, **more: Any) -> None:
        """Answer the one call of a request that was forwarded."""
        head = {"callId": asked["content"]["calls"][0]["callId"], "status": "SUCCESS"}
        found = {**head, "result": result, "executionTime": 5.0, **more}
        self.send("TOOL_CALL_RESPONSE", {"results": [found]})

    def of(self, kind: str) -> list[dict[str, Any]]:
        return [each for each in self.heard if each["type"] == kind]

    def until(self, kind: str, count: int = 1) -> dict[str, Any]:
        """Wait for the message of a type that makes so many; return it."""
        with self._news:
            assert self._news.wait_for(lambda: len(self.of(kind)) >= count, PATIENCE_S), self.heard
        return self.of(kind)[count - 1]

    @property
    def results(self) -> list[dict[str, Any]]:
        return [each["content"]["results"][0] for each in self.of("TOOL_CALL_RESPONSE")]

    @property
    def refused(self) -> tuple[str, str]:
        """The code of the last refusal, and the id of the message that it is about."""
        content = self.of("ERROR_RESPONSE")[-1]["content"]
        return content["errorCode"], content["details"].get("requestId", "")
