"""The dialogues of a lab and the clients that take part: each context is kept in step for all.

A client speaks for one caller. It sends what its user asks and what its own tools have found; what
a model, a tool of the lab or the harness says comes from here alone.
"""

import logging
from collections.abc import Callable, Mapping
from concurrent.futures import Future, InvalidStateError, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from threading import RLock
from typing import Final

import msgspec

from labharness.core.clock import Chance, utc_text, wall_clock_utc
from labharness.core.errors import LabError
from labharness.core.vocabulary.texts import Text
from labharness.faces.dialogue.asking import FOLDER, HARNESS, Dialogue, Model
from labharness.faces.dialogue.calling import CONSENT, Calling, NoClient, error_of
from labharness.faces.dialogue.tools import Agent, NotForAgent, known_tools
from labharness.journal.access_log import UNDECLARED, log_access
from labharness.protocols.mcp_cp.codec import decode, must
from labharness.protocols.mcp_cp.context import VERSION
from labharness.protocols.mcp_cp.errors import NotMcpCp, answer_to, error_response
from labharness.protocols.mcp_cp.messages import (
    AddMessage,
    ClientCapabilities,
    ErrorDetails,
    ErrorResponse,
    ErrorSource,
    McpMessage,
    SystemMessage,
    ToolAvailabilityRequest,
    ToolAvailabilityResponse,
    ToolCallRequest,
    ToolCallResponse,
)
from labharness.protocols.mcp_cp.parts import Part
from labharness.protocols.mcp_cp.tools import SupportedTool, ToolCall, ToolResult, availability
from labharness.work.dialogue.calls import Calls
from labharness.work.dialogue.course import BEGINS, Bounds

LOG = logging.getLogger(__name__)

TURNS_MAX: Final = 16
"""Most dialogues of one server that go on at once; another one waits for its turn."""

STOPS_MAX: Final = 4
"""Most stop requests at work at once; they wait for no turn."""

VIA: Final = "mcp-cp"


@dataclass(eq=False)
class Participant:
    """A program that takes part in dialogues.

    Attributes:
        caller_id: The caller that it speaks for; its connection vouches for it.
        send: Sends it a message; called from any thread, and does not wait.
        announced: Its tools and limits, once it has said so.
    """

    caller_id: str
    send: Callable[[McpMessage], None]
    announced: ClientCapabilities | None = None

    def tools(self) -> Mapping[str, SupportedTool]:
        """Return its tools by their ids; none takes the name of a tool of the lab."""
        offered = () if self.announced is None else self.announced.supported_tools
        return {each.tool_id: each for each in offered if each.tool_id not in known_tools()}

    def most_s(self) -> float | None:
        """Return the longest time of one of its tools, if it states one."""
        limits = None if self.announced is None else self.announced.limitations
        most_ms = None if limits is None else limits.max_processing_time
        return None if most_ms is None else most_ms / 1000


@dataclass(eq=False)
class DialogueRoom:
    """One context: its dialogue, and the clients in it.

    Attributes:
        dialogue: The dialogue.
        clients: Those that take part.
        is_at_work: Whether a turn goes on.
    """

    dialogue: Dialogue
    clients: list[Participant] = field(default_factory=list)
    is_at_work: bool = False

    def __post_init__(self) -> None:
        self._asked: dict[str, tuple[Participant, ToolCall, Future[ToolResult]]] = {}
        self._authors: dict[str, Participant] = {}
        self.dialogue.told, self.dialogue.clients = self.tell, self

    def tell(self, message: McpMessage) -> None:
        """Send a message to all clients but the one that it came from."""
        author = self._authors.pop(message.message_id, None)
        for each in [*self.clients]:
            if each is not author:
                each.send(message)

    def message(
        self, kind: str, content: Part, metadata: Mapping[str, object] | None = None
    ) -> McpMessage:
        """Return a message of the harness that is not in the history."""
        return self.dialogue.message(kind, HARNESS, content, metadata)

    def take(self, client: Participant, message: McpMessage) -> None:
        """Have a message of a client in the history, and tell the others."""
        self._authors[message.message_id] = client
        try:
            applied = self.dialogue.take(message)
        finally:
            self._authors.pop(message.message_id, None)
        if applied.told:
            client.send(self.message("SYSTEM_MESSAGE", SystemMessage("WARNING", applied.told)))

    def show(self, client: Participant, version: object) -> None:
        """Send a client the context, and the messages unless it has this version already."""
        with self.dialogue.entering:  # what comes meanwhile stands behind the history
            shown = self.dialogue.context.shown()
            messages = self.dialogue.messages if version != shown["metadata"][VERSION] else ()
            said = SystemMessage("INFO", Text("dialogue.joined", count=len(messages)))
            context = {"context": {**shown, "messages": []}}
            client.send(self.message("SYSTEM_MESSAGE", said, context))
            for each in messages:
                client.send(each)

    # ---- the tools of clients

    def tools(self) -> Mapping[str, SupportedTool]:
        """Return the tools of all clients, by name; of one name, that of the first."""
        return {name: each for one in self.clients[::-1] for name, each in one.tools().items()}

    def run(self, call: ToolCall, within_s: float) -> Future[ToolResult]:
        """Forward a call to the first client that has the tool; its result is waited for."""
        client = next((each for each in self.clients if call.name in each.tools()), None)
        if client is None or call.call_id in self._asked:
            return NoClient().run(call, within_s)
        tool = client.tools()[call.name]
        prompt = call.user_prompt
        if tool.permission_level == CONSENT and not prompt:
            prompt = Text("dialogue.consent", name=call.name)
        within_s = min(within_s, client.most_s() or within_s)
        forwarded = msgspec.structs.replace(
            call, runtime="FRONTEND", user_prompt=prompt, timeout_client=within_s, required_after=()
        )
        future: Future[ToolResult] = Future()
        self._asked[call.call_id] = client, call, future
        future.add_done_callback(lambda _: self._asked.pop(call.call_id, None))
        client.send(self.message("TOOL_CALL_REQUEST", ToolCallRequest((forwarded,))))
        return future

    def answered(self, client: Participant, result: ToolResult) -> bool:
        """Take the result of a call from the client that it was forwarded to, once."""
        asked, _, future = self._asked.get(result.call_id, (None, None, None))
        return asked is client and future is not None and _ended(future, result)

    def leave(self, client: Participant, *, hears: bool = False) -> None:
        """Take a client out; the calls that it has not answered have no result."""
        client.announced = None
        if client in self.clients and not hears:
            self.clients.remove(client)
        for asked, call, future in [*self._asked.values()]:
            if asked is client:
                why = Text("dialogue.no_client", name=call.name)
                _ended(future, error_of(call.call_id, "NOT_AVAILABLE", why))


def _ended(future: Future[ToolResult], result: ToolResult) -> bool:
    """Return whether a call took its result; one that is overdue or answered takes none."""
    try:
        future.set_result(result)
    except InvalidStateError:
        return False
    return True


@dataclass(eq=False)
class Rooms:
    """All contexts of a server.

    Attributes:
        lab: The lab file.
        state_dir: Of the lab; its access log has who has joined which context, and each refusal.
        model: The model of all dialogues.
        bounds: Of one input.
        on_loopback: The model is on this machine.
    """

    lab: Path
    state_dir: Path
    model: Model
    bounds: Bounds = field(default_factory=Bounds)
    on_loopback: bool = False

    def __post_init__(self) -> None:
        self._folder = self.state_dir / FOLDER
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._rooms: dict[str, DialogueRoom] = {}
        self._lock = RLock()
        self._turns = ThreadPoolExecutor(TURNS_MAX, thread_name_prefix="turn")
        self._stops = ThreadPoolExecutor(STOPS_MAX, thread_name_prefix="stop")
        self._chance = Chance(None)

    def take(self, client: Participant, data: bytes) -> None:
        """Take what a client has sent; a refusal is one message to it."""
        message: McpMessage | None = None
        try:
            message = decode(data)
            self._take(client, message)
        except NotMcpCp as why:
            if message is not None:
                why.message_id, why.context_id = message.message_id, message.context_id
            trace_id, now = self._chance.uuid4(), utc_text(wall_clock_utc())
            self._refuse(client, answer_to(why, now, trace_id), why)
        except LabError as why:
            code = "AUTH_FAILED" if isinstance(why, NotForAgent) else "SYSTEM_ERROR"
            self._refuse(client, self._fault(code, str(why), message), message)
        except Exception:  # one message does not end the others
            fault = self._fault("SYSTEM_ERROR", Text("dialogue.fault"), message)
            LOG.exception("a message was not taken: %s", fault.details.trace_id)
            self._refuse(client, fault, message)

    def leave(self, client: Participant, *, hears: bool = False) -> None:
        """Take a client out of all contexts; one that still hears has but no tools any more."""
        with self._lock:
            for context_id, room in [*self._rooms.items()]:
                room.leave(client, hears=hears)
                self._drop_idle(context_id, room)

    def unsent(self, client: Participant, message: McpMessage, why: NotMcpCp) -> None:
        """Refuse a client the message that cannot be written."""
        self._refuse(client, self._fault("SYSTEM_ERROR", str(why)), message)

    def close(self) -> None:
        """Wait for what is at work."""
        self._turns.shutdown()
        self._stops.shutdown()
        for room in self._rooms.values():
            room.dialogue.release()

    def _take(self, client: Participant, message: McpMessage) -> None:
        if message.sender.id != client.caller_id or message.sender.type not in ("USER", "TOOL"):
            raise must("$.sender", message.sender.id, client.caller_id, "FORBIDDEN")
        room, content = self._room(client, message.context_id), message.content
        match content:
            case ClientCapabilities():
                client.announced = content
                room.show(client, message.metadata.get(VERSION))
                self._begin(room)
            case ToolAvailabilityRequest(tools):
                supported = [*room.tools().values()]
                found = tuple(availability(each, supported) for each in tools)
                said = ToolAvailabilityResponse(found)
                client.send(room.message("TOOL_AVAILABILITY_RESPONSE", said))
            case ToolCallResponse(results):
                for each in results:
                    if not room.answered(client, each):
                        allowed = Text("dialogue.no_call")
                        raise must("$.content.results", each.call_id, allowed, "FORBIDDEN")
            case ToolCallRequest(calls) if all(is_stop(each) for each in calls):
                self._stops.submit(self._stop, client, room, content)
            case _ if message.type in BEGINS or isinstance(content, AddMessage):
                with self._lock:
                    if room.is_at_work and not room.dialogue.waits:
                        raise NotMcpCp(Text("dialogue.at_work"), "$", "RATE_LIMITED")
                    room.take(client, message)
                    self._begin(room)
            case _ if (answer := getattr(content, "answer", None)) is not None:
                client.send(room.message(*answer(room.dialogue.agent)))  # a plug-in's type
            case _:
                room.take(client, message)

    def _agent(self, caller_id: str) -> Agent:
        """Return the agent of a caller; it is one for all contexts, because it reads the lab."""
        agents = [each.dialogue.agent for each in [*self._rooms.values()]]
        own = next((each for each in agents if each.caller_id == caller_id), None)
        agent = own or Agent(self.lab, caller_id, self.on_loopback)
        _ = agent.plan  # a caller that the lab does not know is refused here
        return agent

    def _room(self, client: Participant, context_id: str) -> DialogueRoom:
        agent = None if context_id in self._rooms else self._agent(client.caller_id)
        with self._lock:  # a stop request waits for it, and not for the files of a lab
            room = self._rooms.get(context_id)
            if room is not None and room.dialogue.agent.caller_id != client.caller_id:
                why = Text("dialogue.other_caller", context_id=context_id)
                raise NotMcpCp(why, "$.contextId", "FORBIDDEN")
            if room is None:
                agent = agent or self._agent(client.caller_id)
                room = DialogueRoom(Dialogue(agent, self.model, context_id, self.bounds))
                room.dialogue.hold()
                self._rooms[context_id] = room
            if client not in room.clients:
                self._log(client, f"context {context_id}")
                room.clients.append(client)
            return room

    def _begin(self, room: DialogueRoom) -> None:
        """Have a dialogue go on, unless it waits for its user or goes on already."""
        with self._lock:
            if room.is_at_work or room.dialogue.waits:
                return
            room.is_at_work = True
            self._turns.submit(self._turn, room)

    def _turn(self, room: DialogueRoom) -> None:
        well = False
        try:
            room.dialogue.go_on()
            well = True
        except Exception:  # one dialogue does not end the others
            fault = self._fault("SYSTEM_ERROR", Text("dialogue.fault"))
            LOG.exception("a dialogue was broken off: %s", fault.details.trace_id)
            room.tell(room.message("ERROR_RESPONSE", fault))
        with self._lock:
            room.is_at_work = False
            if well:
                self._begin(room)  # with what has come as it ended
            self._drop_idle(room.dialogue.context_id, room)

    def _stop(self, client: Participant, room: DialogueRoom, asked: ToolCallRequest) -> None:
        calls = tuple(msgspec.structs.replace(each, required_after=()) for each in asked.calls)
        results = Calling(room.dialogue.agent, room, Calls(calls, "PARALLEL")).results()
        client.send(room.message("TOOL_CALL_RESPONSE", ToolCallResponse(tuple(results))))

    def _drop_idle(self, context_id: str, room: DialogueRoom) -> None:
        if not room.clients and not room.is_at_work:
            self._rooms.pop(context_id, None)
            room.dialogue.release()

    def _fault(self, code: str, why: str, asked: McpMessage | None = None) -> ErrorResponse:
        request_id = None if asked is None else asked.message_id
        details = ErrorDetails(request_id, utc_text(wall_clock_utc()), self._chance.uuid4())
        return error_response(code, why, ErrorSource.SERVER, details)

    def _refuse(
        self, client: Participant, fault: ErrorResponse, of: McpMessage | NotMcpCp | None
    ) -> None:
        try:
            self._log(client, f"refused {fault.error_code} {fault.details.trace_id}")
        except Exception:  # it is told all the same
            LOG.exception("a refusal was not logged: %s", fault.details.trace_id)
        now = utc_text(wall_clock_utc())
        context_id = (of and of.context_id) or "none"
        head = self._chance.uuid4(), context_id, now, "ERROR_RESPONSE", HARNESS
        client.send(McpMessage(*head, fault))

    def _log(self, client: Participant, what: str) -> None:
        log_access(self._folder, data_class=UNDECLARED, reader=client.caller_id, via=VIA, what=what)


def is_stop(call: ToolCall) -> bool:
    """Return whether a call is a stop request, which waits for nothing."""
    return call.name in known_tools() and known_tools()[call.name].kind == "safe"
