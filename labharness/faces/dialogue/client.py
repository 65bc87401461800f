"""A client of MCP-CP: it says, hears, and carries out the calls that are forwarded to its user."""

import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from threading import Lock
from typing import IO, Final, Literal, cast

from labharness.core.clock import Chance, utc_text, wall_clock_utc
from labharness.core.vocabulary.texts import CodedError
from labharness.faces.dialogue.front_tools import DEVICE, FrontTools
from labharness.faces.dialogue.instructing import GROUP, Action
from labharness.faces.dialogue.plugins import loaded
from labharness.protocols.mcp_cp import messages as forms
from labharness.protocols.mcp_cp.codec import decode, encode
from labharness.protocols.mcp_cp.parts import Part
from labharness.protocols.mcp_cp.tools import TIMEOUT_S, AskedTool, ToolResult
from labharness.work.dialogue.course import Bounds, turn_of, waits

END_S_MAX: Final = 10.0
"""Longest time (s) for a server to end; one that is ended goes on when its context is taken up."""


class DialogueRefused(CodedError, ConnectionError, code="dialogue_refused"):
    """A server does not let a client take part, or has ended."""


@dataclass(eq=False)
class DialogueClient:
    """A client in one context.

    Attributes:
        caller_id: The caller that it speaks for.
        send: Sends one message; called from several threads, one at a time.
        received: The messages that come in, up to the end of the connection.
        tools: The tools of its user.
        context_id: Of the context to take up; ``""`` begins one.
        messages: The history, the oldest first.
    """

    caller_id: str
    send: Callable[[bytes], object]
    received: Iterable[bytes]
    tools: FrontTools
    context_id: str = ""
    messages: list[forms.McpMessage] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._sending, self._chance = Lock(), Chance(None)
        self._lines = iter(self.received)
        self.context_id = self.context_id or self._chance.uuid4()

    def join(self) -> None:
        """Announce what it can do, and read the context as it is.

        Raises:
            DialogueRefused: It is not let in.
        """
        tools = tuple(self.tools.tools().values())
        offered = self.caller_id, DEVICE, sys.platform, version("labharness"), tools
        self._put("CLIENT_CAPABILITIES", forms.ClientCapabilities(*offered))
        asked = tuple(AskedTool(each.tool_id, each.version) for each in tools)
        self._put("TOOL_AVAILABILITY_REQUEST", forms.ToolAvailabilityRequest(asked))
        while (found := self._hear()).type != "TOOL_AVAILABILITY_RESPONSE":
            if found.type == "ERROR_RESPONSE":
                raise DialogueRefused(found.content.message)

    def say(self, said: str | forms.ToolCallRequest) -> Iterator[forms.McpMessage]:
        """Return what follows a text that is said, or calls that are asked for, as `go_on`."""
        kind = "USER_INPUT" if isinstance(said, str) else "TOOL_CALL_REQUEST"
        content = forms.UserInput(said) if isinstance(said, str) else said
        self.messages.append(self._put(kind, content))
        return self.go_on()

    def go_on(self) -> Iterator[forms.McpMessage]:
        """Return each message as it comes, up to where the user is waited for.

        Raises:
            DialogueRefused: The server has ended.
        """
        actions = loaded(Action, GROUP)
        while not waits(self.messages, Bounds(), wall_clock_utc(), actions):
            message = self._hear()
            yield message
            asked = None, turn_of(self.messages)[0].message_id
            if message.type == "ERROR_RESPONSE" and message.content.details.request_id in asked:
                return

    def _hear(self) -> forms.McpMessage:
        line = next(self._lines, None)
        if line is None:
            raise DialogueRefused("client.ended")
        message = decode(line)
        if message.type == "TOOL_CALL_REQUEST" and message.sender.type == "SYSTEM":
            for each in message.content.calls:
                future = self.tools.run(each, each.timeout_client or TIMEOUT_S)
                future.add_done_callback(self._answer)
        elif "context" in message.metadata:
            self.messages.clear()
        elif message.type not in ("ERROR_RESPONSE", "TOOL_AVAILABILITY_RESPONSE"):
            self.messages.append(message)
        return message

    def _answer(self, future: Future[ToolResult]) -> None:
        self._put("TOOL_CALL_RESPONSE", forms.ToolCallResponse((future.result(),)), "TOOL")

    def _put(self, kind: str, said: Part, by: Literal["USER", "TOOL"] = "USER") -> forms.McpMessage:
        now, sender = utc_text(wall_clock_utc()), forms.Sender(self.caller_id, by)
        head = self._chance.uuid4(), self.context_id, now, kind, sender
        message = forms.McpMessage(*head, said)
        data = encode(message)
        with self._sending, suppress(OSError, ValueError):  # the end is heard
            self.send(data)
        return message


@contextmanager
def at_lab(
    lab: Path, caller_id: str, tools: FrontTools, *options: str, context_id: str = ""
) -> Iterator[DialogueClient]:
    """Start a server for a lab as a child, and take part in a context of it.

    Args:
        lab: The lab file.
        caller_id: The caller to speak for.
        tools: The tools of the user.
        options: More of the command, such as ``--model scripted``.
        context_id: Of the context to take up; ``""`` begins one.

    Raises:
        DialogueRefused: The lab does not know the caller, or the server cannot start.
    """
    command = [sys.executable, "-m", "labharness.faces.cli", "mcp-cp", *options]
    command += ["--lab", str(lab), "--caller", caller_id]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        into, out = cast(IO[bytes], child.stdin), cast(IO[bytes], child.stdout)

        def send(data: bytes) -> None:
            into.write(data + b"\n")
            into.flush()

        client = DialogueClient(caller_id, send, out, tools, context_id)
        try:
            client.join()
            yield client
        finally:
            with suppress(OSError, subprocess.TimeoutExpired):
                into.close()
                child.wait(END_S_MAX)
            child.kill()
