"""One dialogue with a model about a lab: every message is on the disk before what follows from it.

The model proposes, the tools are those of its caller, and persons agree elsewhere.
"""

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import RLock
from typing import IO, Any, Final, Literal, Protocol

from labharness.core.clock import Chance, utc_text, wall_clock_utc
from labharness.core.errors import LabError
from labharness.core.files.durable import append_durably, write_durably
from labharness.core.files.named import hold_alone, open_named, open_own
from labharness.core.vocabulary.digests import digest_of
from labharness.core.vocabulary.texts import Text
from labharness.faces.dialogue.calling import Calling, Clients, NoClient, error_of
from labharness.faces.dialogue.instructing import GROUP, Action, carry_out, checked
from labharness.faces.dialogue.plugins import loaded
from labharness.faces.dialogue.tools import Agent
from labharness.protocols.mcp_cp.codec import decode, encode, must
from labharness.protocols.mcp_cp.context import (
    HISTORY_BYTES_MAX,
    Applied,
    Context,
    kept,
    opened,
    restored,
    without_address,
)
from labharness.protocols.mcp_cp.errors import NotMcpCp
from labharness.protocols.mcp_cp.messages import (
    AddMessage,
    McpMessage,
    ModelResponse,
    Sender,
    SystemData,
    SystemMessage,
    ToolCallResponse,
    UserInput,
)
from labharness.protocols.mcp_cp.parts import Part
from labharness.protocols.mcp_cp.tools import ToolResult, accepted
from labharness.work.dialogue.course import (
    ASKS,
    BEGINS,
    RESULTS,
    AskModel,
    Bounds,
    Briefing,
    Ended,
    RunCalls,
    RunSet,
    Step,
    TakeSet,
    claims_in,
    next_step,
    response_of,
    turn_of,
    waits,
)
from labharness.work.dialogue.intents import prompt_of

FILE_BYTES_MAX: Final = 2 * HISTORY_BYTES_MAX
"""Size (bytes) of the largest file of a dialogue; it is written anew before it grows beyond."""

HARNESS: Final = Sender("labharness", "SYSTEM")
FOLDER: Final = "dialogues"
CONTEXT: Final = re.compile("[0-9A-Za-z][0-9A-Za-z_-]{0,63}")
"""A context's id as it names a file."""


class Model(Protocol):
    """A model as a dialogue asks it."""

    def answer(self, briefing: Briefing) -> ModelResponse:
        """Return its answer to a dialogue; a failure of the model is an answer too."""


@dataclass(eq=False)
class Dialogue:
    """One dialogue.

    Attributes:
        agent: The tools, as its caller.
        model: The model.
        context_id: Names the dialogue; its messages are kept in the lab's state directory.
        bounds: Of one input.
        told: Called with each message once it is on the disk.
        clients: The programs of the user.
        context: The context as its messages have made it.
    """

    agent: Agent
    model: Model
    context_id: str
    bounds: Bounds = field(default_factory=Bounds)
    told: Callable[[McpMessage], None] = lambda message: None
    clients: Clients = field(default_factory=NoClient)

    def __post_init__(self) -> None:
        if not CONTEXT.fullmatch(self.context_id):
            raise NotMcpCp(Text("dialogue.context", context_id=self.context_id[:80]))
        self._path: Path = self.agent.plan.state_dir / FOLDER / f"{self.context_id}.jsonl"
        self.entering = RLock()
        self._held: IO[bytes] | None = None
        self._chance = Chance(None)
        self._actions = loaded(Action, GROUP)
        self.context = _kept(self._path, self.context_id, self.agent.caller_id)
        if self.context.metadata[OWNER] != self.agent.caller_id:
            raise NotMcpCp(
                Text("dialogue.other_caller", context_id=self.context_id), error_code="FORBIDDEN"
            )

    def hold(self) -> None:
        """Keep other processes from this context until `release`, and read it as they left it.

        Raises:
            NotMcpCp: Another process has it.
        """
        self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._held = os.fdopen(open_own(self._path.with_suffix(".lock"), os.O_RDWR), "rb")
        try:
            hold_alone(self._held.fileno())
        except OSError:
            self.release()
            why = Text("dialogue.elsewhere", context_id=self.context_id)
            raise NotMcpCp(why, "$.contextId", "RATE_LIMITED") from None
        self.context = _kept(self._path, self.context_id, self.agent.caller_id)

    def release(self) -> None:
        """Leave the context to other processes."""
        if self._held is not None:
            self._held.close()

    @property
    def messages(self) -> Sequence[McpMessage]:
        """The messages that it has not forgotten, the oldest first."""
        return self.context.messages

    def say(self, text: str) -> None:
        """Take an input of the user; the dialogue goes on by `go_on`."""
        self.take(self.message("USER_INPUT", Sender(self.agent.caller_id, "USER"), UserInput(text)))

    def take(self, message: McpMessage) -> Applied:
        """Take a message of its user, or an update; the dialogue goes on by `go_on`.

        Raises:
            NotMcpCp: It is not the user's to send, or does not fit into the context.
        """
        _check_own(message, self.agent.caller_id)
        if isinstance(message.content, AddMessage):
            _check_own(message.content.message, self.agent.caller_id)
        return self._enter(without_address(message))

    def next_step(self) -> Step:
        """Return the step that follows now."""
        return next_step(self.messages, self.bounds, wall_clock_utc(), self._actions)

    @property
    def waits(self) -> bool:
        """Whether nothing follows until its user says something."""
        return waits(self.messages, self.bounds, wall_clock_utc(), self._actions)

    def go_on(self) -> str:
        """Go on to where the user is waited for; return the bound that it met, if any."""
        with ThreadPoolExecutor(1, thread_name_prefix="later") as pool:
            later: Future[None] | None = None
            while True:
                step = self.next_step()
                if later is not None and isinstance(step, RunCalls | Ended):
                    later.result()  # what went on beside has ended
                    later = None
                elif isinstance(step, RunCalls) and step.asked.mode == "ASYNC":
                    for each in step.asked.calls:
                        if each.call_id not in {*step.found, *step.accepted}:
                            self._put_result(accepted(each.call_id, 0.0))
                    later = pool.submit(self._run, step)
                elif isinstance(step, Ended):
                    return self._end(step)
                else:
                    self._carry_out(step)

    @property
    def last_answer(self) -> ModelResponse | None:
        """The last answer of the model to the last input; ``None`` before the first."""
        turn = turn_of(self.messages)
        answers = [each.content for each in turn if isinstance(each.content, ModelResponse)]
        return answers[-1] if answers else None

    @property
    def question(self) -> str:
        """The question that the next input answers; ``""`` for none."""
        answer = self.last_answer
        asked = [each for each in answer.tool_calls if each.name == ASKS] if answer else []
        return str(asked[0].parameters.get("question", "")) if asked else ""

    @property
    def claims(self) -> tuple[str, ...]:
        """The numbers of the last answer that no tool has returned."""
        answer = self.last_answer
        return () if answer is None else claims_in(answer.text, self.messages)

    def _carry_out(self, step: AskModel | RunCalls | TakeSet | RunSet) -> None:
        match step:
            case AskModel(intent):
                prompt = prompt_of(intent, self._actions)
                number = 1 + sum(each.type == "MODEL_RESPONSE" for each in self.messages)
                briefing = Briefing(prompt, self.messages, number, self.clients.tools())
                self._put_answer(self.model.answer(briefing), briefing)
            case RunCalls():
                self._run(step)
            case TakeSet(content):
                with self._refusing():
                    self._put("INSTRUCTION", HARNESS, checked(content, self._actions))
            case RunSet(content):
                with self._refusing():
                    found = carry_out(content, self._actions)
                    said = Text("dialogue.set_ended", count=len(found))
                    self._tell("INFO", said, "SET_ENDED", found)

    @contextmanager
    def _refusing(self) -> Iterator[None]:
        """Keep the reason of a refusal as a message; a model may return another set."""
        try:
            yield
        except LabError as why:
            self._tell("ERROR", str(why), "SET_REFUSED", str(why))

    def _tell(
        self, action: Literal["INFO", "ERROR"], text: str, code: str, results: object
    ) -> None:
        content = SystemMessage(action, text, SystemData(code))
        self._put("SYSTEM_MESSAGE", HARNESS, content, {RESULTS: results})

    def _run(self, step: RunCalls) -> None:
        for each in Calling(
            self.agent, self.clients, step.asked, dict(step.found), self.context_id
        ).results():
            self._put_result(each)
            if isinstance(self.next_step(), Ended):
                break  # a bound is met, and the calls that are left are answered with it

    def _end(self, step: Ended) -> str:
        for each in step.left:  # a model that is asked again wants a result of each
            self._put_result(error_of(each.call_id, "BOUND", step.bound))
        if step.bound:
            self._put("SYSTEM_MESSAGE", HARNESS, SystemMessage("WARNING", step.bound))
        return step.bound

    def _put_answer(self, answer: ModelResponse, briefing: Briefing) -> None:
        digest = {"promptDigest": digest_of(briefing.prompt.encode())}
        model = Sender("model", "MODEL")
        try:
            self._put("MODEL_RESPONSE", model, answer, digest)
        except NotMcpCp as why:  # too large, too deep, or a text or a number that JSON has not
            said = Text("dialogue.unwritten", why=str(why))
            failed = response_of(str(said), (), "error", None, briefing.number)
            self._put("MODEL_RESPONSE", model, failed, digest)

    def _put_result(self, result: ToolResult) -> None:
        self._put("TOOL_CALL_RESPONSE", HARNESS, ToolCallResponse((result,)))

    def _put(
        self, kind: str, sender: Sender, content: Part, metadata: Mapping[str, Any] | None = None
    ) -> None:
        self._enter(self.message(kind, sender, content, metadata))

    def message(
        self, kind: str, sender: Sender, content: Part, metadata: Mapping[str, Any] | None = None
    ) -> McpMessage:
        """Return a message of this context that is not in its history."""
        now = utc_text(wall_clock_utc())
        message_id = self._chance.uuid4()
        return McpMessage(
            message_id, self.context_id, now, kind, sender, content, dict(metadata or {})
        )

    def _enter(self, message: McpMessage) -> Applied:
        """Have a message on the disk and in the context, and tell of it."""
        line = encode(message).decode()  # refused here, if it cannot be written
        with self.entering:
            applied = _applied(self.context, message)
            if applied.context is self.context:
                return applied
            forgets = applied.context.cleared != self.context.cleared
            if self._path.exists() and not forgets and self._has_room(line):
                append_durably(self._path, line)
            else:
                self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
                write_durably(self._path, kept(applied.context) + b"\n")
            self.context = applied.context
            self.told(message)  # in the order of the history
        return applied

    def _has_room(self, line: str) -> bool:
        return self._path.stat().st_size + 4 * len(line) < FILE_BYTES_MAX


OWNER: Final = "userId"
"""The place in a context's metadata of its caller's id."""


def _check_own(message: McpMessage, caller_id: str) -> None:
    """Raise ``NotMcpCp`` where a message says what its caller may not say, or in another's name."""
    if message.type not in (*BEGINS, "CONTEXT_UPDATE"):
        raise must("$.type", message.type, Text("mcp_cp.one_of", names=[*BEGINS]), "FORBIDDEN")
    if message.sender != Sender(caller_id, "USER"):
        raise must("$.sender", message.sender.id, caller_id, "FORBIDDEN")


def _applied(context: Context, message: McpMessage) -> Applied:
    is_update = message.type == "CONTEXT_UPDATE"
    return context.apply(message) if is_update else context.append(message)


def _kept(path: Path, context_id: str, caller_id: str) -> Context:
    """Return the context in a file; half a line that a killed process has left is cut off."""
    if not path.exists():
        return opened(context_id, utc_text(wall_clock_utc()), {OWNER: caller_id})
    with open_named(path) as file:
        data = file.read(FILE_BYTES_MAX + 1)
    if len(data) > FILE_BYTES_MAX:
        raise NotMcpCp(Text("dialogue.full", path=str(path), most=FILE_BYTES_MAX))
    whole, end, half = data.rpartition(b"\n")
    if half:
        write_durably(path, whole + end)
    context, read = None, 0
    try:
        for line in whole.splitlines():
            context = restored(line) if context is None else _applied(context, decode(line)).context
            read += 1
    except ValueError as why:
        raise NotMcpCp(Text("dialogue.damaged", path=str(path), line=read + 1)) from why
    return context or opened(context_id, utc_text(wall_clock_utc()), {OWNER: caller_id})
