"""Tools of MCP-CP (chapter 4): their definitions, what is available, calls and results."""

import graphlib
import re
from collections.abc import Collection, Iterable, Sequence
from typing import Annotated, Any, Final, Literal

import msgspec

from labharness.core.vocabulary.texts import Text
from labharness.protocols.mcp_cp.parts import (
    Count,
    Milliseconds,
    Part,
    Runtime,
    Seconds,
    Share,
    Timestamp,
    Unfit,
    Word,
    check_moment,
)
from labharness.protocols.strict_json import Json

CALLS_MAX: Final = 64
"""Most calls, and most results, of one message."""

TOOLS_MAX: Final = 256
"""Most tools that a client announces, or that a message asks for."""

CAPABILITIES_MAX: Final = 64
"""Most capabilities of one tool, and most features of one client."""

TIMEOUT_S: Final = 30.0
"""Time (s) of calls that state none (ruling 35)."""

CallMode = Literal[
    "SYNC",
    "ASYNC",
    "PARALLEL",
    "SEQUENTIAL",
    "FRONTEND_FIRST",
    "BACKEND_FIRST",
    "CLIENT_SERVER_PARALLEL",
]

Capabilities = Annotated[tuple[Word, ...], msgspec.Meta(max_length=CAPABILITIES_MAX)]


class ToolCall(Part, frozen=True):
    """A call of a tool; what follows `timeout` belongs to tools that run at the client."""

    call_id: Word
    name: Word
    parameters: dict[str, Any]
    description: str | None = None
    required_after: Annotated[tuple[Word, ...], msgspec.Meta(max_length=CALLS_MAX)] = ()
    timeout: Seconds | None = None
    runtime: Runtime | None = None
    user_prompt: str | None = None
    fallback_behavior: Literal["ABORT", "SKIP", "USE_ALTERNATIVE"] | None = None
    ui_settings: dict[str, Any] | None = None
    timeout_client: Seconds | None = None


class ToolError(Part, frozen=True):
    """The error of a call. A `stackTrace` in its details is forgotten when it is read."""

    code: Word
    message: str
    details: dict[str, Any] = msgspec.field(default_factory=dict)

    def __post_init__(self) -> None:
        msgspec.structs.force_setattr(self, "details", without(self.details, TRACE))


class ClientInfo(Part, frozen=True):
    """The client that has run a tool."""

    device_type: str | None = None
    browser: str | None = None
    version: str | None = None
    capabilities: Capabilities = ()


class ToolResult(Part, frozen=True, kw_only=True):
    """The result of a call; `execution_time` is in milliseconds."""

    call_id: Word
    status: Literal["SUCCESS", "ERROR", "TIMEOUT"]
    result: Any = None
    error: ToolError | None = None
    execution_time: Milliseconds
    client_info: ClientInfo | None = None

    def __post_init__(self) -> None:
        wrong = {
            "SUCCESS": self.error is not None,
            "ERROR": self.error is None,
            "TIMEOUT": self.error is not None and self.error.code != "TIMEOUT",
        }
        if wrong[self.status]:
            raise Unfit("mcp_cp.result_error", status=self.status)


class ToolValue(Part, frozen=True, kw_only=True):
    """The usual form of `ToolResult.result` (4.4), and the outcome that ours have besides."""

    value: Any
    unit: str | None = None
    confidence: Share | None = None
    parsed: bool
    source: str
    timestamp: Timestamp
    outcome: Word | None = None

    def __post_init__(self) -> None:
        check_moment("timestamp", self.timestamp)


class SupportedTool(Part, frozen=True):
    """A tool that a client announces; it may state the whole definition."""

    tool_id: Word
    version: Word
    capabilities: Capabilities = ()
    name: Word | None = None
    description: str | None = None
    runtime: Runtime | None = None
    parameters: dict[str, Any] | None = None
    returns: dict[str, Any] | None = None
    permission_level: Word | None = None


class ToolDefinition(Part, frozen=True):
    """The definition of a tool (4.5.1); `parameters` and `returns` are JSON Schemas."""

    tool_id: Word
    name: Word
    description: str
    version: Word
    runtime: Runtime
    parameters: dict[str, Any]
    capabilities: Capabilities = ()
    returns: dict[str, Any] | None = None
    permission_level: Word | None = None


class Limitations(Part, frozen=True):
    """Limits of a client: bytes of a file, milliseconds of a tool."""

    max_file_size: Count | None = None
    max_processing_time: Milliseconds | None = None


class AskedTool(Part, frozen=True):
    """A tool of which somebody asks whether it is available."""

    tool_id: Word
    min_version: Word | None = None
    required_capabilities: Capabilities = ()


class AvailableTool(Part, frozen=True):
    """The answer for one tool: what it is, or the reason why it is not available."""

    tool_id: Word
    available: bool
    version: Word | None = None
    capabilities: Capabilities = ()
    reason: Word | None = None
    message: str | None = None

    def __post_init__(self) -> None:
        if (self.version if self.available else self.reason) is None:
            raise Unfit("mcp_cp.available", name="version" if self.available else "reason")


TRACE: Final = "stackTrace"


def without(value: Json, name: str) -> Json:
    """Return a JSON value without any field of a name, or whose JSON path ends so (ruling 38)."""
    if isinstance(value, dict):
        return {
            key: without(each, name)
            for key, each in value.items()
            if key != name and not key.endswith(f".{name}")
        }
    return [without(each, name) for each in value] if isinstance(value, list) else value


def check_calls(calls: Sequence[ToolCall]) -> None:
    """Hold the calls of one message to each other.

    Raises:
        Unfit: A `callId` stands twice, or calls wait for each other.
    """
    check_distinct(each.call_id for each in calls)
    after = {each.call_id: set(each.required_after) for each in calls}
    try:
        graphlib.TopologicalSorter(after).prepare()
    except graphlib.CycleError as circle:
        raise Unfit("mcp_cp.circle", calls=list(circle.args[1][::-1])) from None


def check_distinct(call_ids: Iterable[str]) -> None:
    """Raise ``Unfit`` where a `callId` stands twice."""
    seen: set[str] = set()
    for each in call_ids:
        if each in seen:
            raise Unfit("mcp_cp.twice", name=each)
        seen.add(each)


def total_s(mode: CallMode, total: float | None, sides: tuple[float | None, float | None]) -> float:
    """Return the longest time (s) of the calls of a message.

    Args:
        mode: Its `executionMode`.
        total: Its `timeout`, if it states one.
        sides: Its `frontendTimeout` and `backendTimeout`.
    """
    if total is not None or sides == (None, None):
        return TIMEOUT_S if total is None else total
    both = [TIMEOUT_S if each is None else each for each in sides]
    return max(both) if mode == "CLIENT_SERVER_PARALLEL" else sum(both)


ACCEPTED: Final[Json] = {"accepted": True}
"""The result of an ASYNC call until it has ended."""


def accepted(call_id: str, took_ms: float) -> ToolResult:
    """Return the first answer to an ASYNC call; the second one has its result (ruling 35)."""
    return ToolResult(call_id=call_id, status="SUCCESS", result=ACCEPTED, execution_time=took_ms)


def is_accepted(result: ToolResult) -> bool:
    """Return whether a result is the first answer to an ASYNC call, and no more."""
    return bool(result.result == ACCEPTED)


def timed_out(call_id: str, took_ms: float) -> ToolResult:
    """Return the answer to a call that took too long (ruling 35)."""
    error = ToolError("TIMEOUT", Text("mcp_cp.timed_out"))
    return ToolResult(call_id=call_id, status="TIMEOUT", error=error, execution_time=took_ms)


def availability(
    asked: AskedTool, supported: Collection[SupportedTool], denied: Collection[str] = ()
) -> AvailableTool:
    """Return whether a tool is available, and if not the reason.

    Args:
        asked: The tool, with the least version and the capabilities that are wanted.
        supported: The tools that the client has announced.
        denied: Ids of tools that its user does not allow.
    """
    least = _rank(asked.min_version or "")
    announced = [each for each in supported if each.tool_id == asked.tool_id]
    tool = max(announced, key=lambda each: _rank(each.version), default=None)
    for each in announced:  # one version may have what the newest has not
        if _rank(each.version) >= least and {*asked.required_capabilities} <= {*each.capabilities}:
            tool = each
    if tool is None:
        return _not_available(asked, "NOT_SUPPORTED", Text("mcp_cp.not_supported"))
    if asked.tool_id in denied:
        return _not_available(asked, "PERMISSION_DENIED", Text("mcp_cp.denied"))
    if asked.min_version is not None and _rank(tool.version) < least:
        old = Text("mcp_cp.old_tool", found=tool.version, least=asked.min_version)
        return _not_available(asked, "VERSION_TOO_LOW", old)
    lacking = [each for each in asked.required_capabilities if each not in tool.capabilities]
    if lacking:
        return _not_available(asked, "CAPABILITY_MISSING", Text("mcp_cp.lacks", names=lacking))
    return AvailableTool(asked.tool_id, True, tool.version, tool.capabilities)


def _not_available(asked: AskedTool, reason: str, message: Text) -> AvailableTool:
    return AvailableTool(asked.tool_id, False, reason=reason, message=message)


def _rank(version: str) -> tuple[tuple[int, ...], bool, str, tuple[int, ...]]:
    """Return the order of a version: 1.0 and 1.0.0 are the same, and 1.0-rc1 is before them."""
    rest = re.sub(r"\Av?[0-9.]*", "", version)
    release, early = version.removesuffix(rest), rest.partition("+")[0]
    return _numbers(release), not early, re.sub("[0-9]", "", early), _numbers(early)


def _numbers(version: str) -> tuple[int, ...]:
    found = [int(each) for each in re.findall(r"[0-9]{1,9}", version)]
    while found and found[-1] == 0:
        found.pop()
    return tuple(found)
