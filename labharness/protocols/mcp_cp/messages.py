"""The messages of MCP-CP 1.0: one form, and the content of each of its eleven types."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any, Final, Literal

import msgspec

from labharness.core.vocabulary.digests import digest_of
from labharness.protocols.mcp_cp.parts import (
    END,
    INSTRUCTIONS_MAX,
    Count,
    Part,
    Seconds,
    Timestamp,
    Unfit,
    Word,
    check_moment,
)
from labharness.protocols.mcp_cp.tools import (
    CALLS_MAX,
    TOOLS_MAX,
    AskedTool,
    AvailableTool,
    CallMode,
    Capabilities,
    Limitations,
    SupportedTool,
    ToolCall,
    ToolResult,
    check_calls,
    check_distinct,
)

ATTACHMENTS_MAX: Final = 32
"""Most attachments of one message."""

ATTACHMENT_BYTES_MAX: Final = 1_073_741_824
"""Size (bytes) of the largest attachment that a message may name; it travels by its address."""

PATH_CHARACTERS_MAX: Final = 1_024
"""Longest path below `state`."""


class Sender(Part, frozen=True):
    """Where a message comes from."""

    id: Word
    type: Literal["USER", "MODEL", "SYSTEM", "TOOL"]


class McpMessage(Part, frozen=True):
    """A message. The type of `content` follows from `type`: `CONTENTS` has those of the text."""

    message_id: Word
    context_id: Word
    timestamp: Timestamp
    type: Word
    sender: Sender
    content: Any
    metadata: dict[str, Any] = msgspec.field(default_factory=dict)

    def __post_init__(self) -> None:
        check_moment("timestamp", self.timestamp)


_MIME_TYPE: Final = (
    rf'^[a-z]+/[\w!#$&^.+-]+( *; *[\w!#$&^.+-]+=([\w!#$&^.+-]+|"[^"\x00-\x1f]*"))*{END}'
)


class AttachmentFacts(Part, frozen=True):
    """Name, size (bytes) and type of an attachment, and the digest of its bytes."""

    file_name: Annotated[str, msgspec.Meta(max_length=255, pattern=rf"^[^/\\\x00-\x1f\x7f]+{END}")]
    file_size: Annotated[int, msgspec.Meta(ge=0, le=ATTACHMENT_BYTES_MAX)]
    mime_type: Annotated[str, msgspec.Meta(max_length=255, pattern=_MIME_TYPE)]
    digest: Annotated[str, msgspec.Meta(pattern="^sha256:[0-9a-f]{64}" + END)] | None = None


class Attachment(Part, frozen=True):
    """A file that a user adds, by its address."""

    type: Literal["IMAGE", "FILE", "AUDIO", "VIDEO"]
    url: Annotated[str, msgspec.Meta(max_length=1_048_576, pattern="^(?:https?|data):")]
    metadata: AttachmentFacts

    def __post_init__(self) -> None:
        mime_type = self.metadata.mime_type
        if self.type not in ("FILE", mime_type.partition("/")[0].upper()):
            raise Unfit("mcp_cp.attachment_type", type=self.type, mime_type=mime_type)

    def check(self, data: bytes) -> None:
        """Hold the bytes behind the address to what the message says of them.

        Raises:
            Unfit: They have another size or another digest.
        """
        stated = self.metadata
        if len(data) != stated.file_size:
            raise Unfit("mcp_cp.attachment_size", found=len(data), stated=stated.file_size)
        if stated.digest not in (None, digest_of(data)):
            raise Unfit("mcp_cp.attachment_digest", stated=stated.digest)


class UserInput(Part, frozen=True):
    """``USER_INPUT``."""

    text: str
    attachments: Annotated[tuple[Attachment, ...], msgspec.Meta(max_length=ATTACHMENTS_MAX)] = ()


class Usage(Part, frozen=True):
    """Tokens that a response has taken."""

    prompt_tokens: Count
    completion_tokens: Count
    total_tokens: Count


class ModelResponse(Part, frozen=True, kw_only=True):
    """``MODEL_RESPONSE``; mode and times of its calls stand beside them (4.6.1)."""

    text: str
    tool_calls: Annotated[tuple[ToolCall, ...], msgspec.Meta(max_length=CALLS_MAX)] = ()
    finish_reason: Literal["STOP", "LENGTH", "TOOL_CALLS", "ERROR"]
    usage: Usage | None = None
    execution_mode: CallMode = "SYNC"
    timeout: Seconds | None = None
    frontend_timeout: Seconds | None = None
    backend_timeout: Seconds | None = None

    def __post_init__(self) -> None:
        check_calls(self.tool_calls)
        if self.finish_reason == "TOOL_CALLS" and not self.tool_calls:
            raise Unfit("mcp_cp.no_calls")


class ToolCallRequest(Part, frozen=True):
    """``TOOL_CALL_REQUEST``; `tools.total_s` has the time of a request that states none."""

    calls: Annotated[tuple[ToolCall, ...], msgspec.Meta(min_length=1, max_length=CALLS_MAX)]
    execution_mode: CallMode = "SYNC"
    timeout: Seconds | None = None
    frontend_timeout: Seconds | None = None
    backend_timeout: Seconds | None = None

    def __post_init__(self) -> None:
        check_calls(self.calls)


class ToolCallResponse(Part, frozen=True):
    """``TOOL_CALL_RESPONSE``."""

    results: Annotated[tuple[ToolResult, ...], msgspec.Meta(min_length=1, max_length=CALLS_MAX)]

    def __post_init__(self) -> None:
        check_distinct(each.call_id for each in self.results)


class SystemData(Part, frozen=True):
    """The subject of a system message."""

    code: Word | None = None
    severity: Word | None = None
    affected_components: Capabilities = ()


class SystemMessage(Part, frozen=True):
    """``SYSTEM_MESSAGE``."""

    action: Literal["NOTIFICATION", "WARNING", "ERROR", "INFO"]
    text: str
    data: SystemData | None = None


class InstructionForm(Part, frozen=True):
    """The form of an instruction (5.1), which has its own place for what the text does not name."""

    instruction_id: Word
    action: Word
    parameters: dict[str, Any] = msgspec.field(default_factory=dict)
    dependencies: Annotated[tuple[Word, ...], msgspec.Meta(max_length=INSTRUCTIONS_MAX)] = ()
    condition: str = ""
    timeout: Seconds | None = None
    metadata: dict[str, Any] = msgspec.field(default_factory=dict)
    over: None = None


class LoopForm(Part, frozen=True):
    """The form of a loop, which stands in the place of an instruction; `work` holds the rest."""

    instruction_id: Word
    over: Annotated[dict[str, Any], msgspec.Meta(min_length=1)]
    instructions: Annotated[
        tuple[dict[str, Any], ...], msgspec.Meta(min_length=1, max_length=INSTRUCTIONS_MAX)
    ]
    dependencies: Annotated[tuple[Word, ...], msgspec.Meta(max_length=INSTRUCTIONS_MAX)] = ()
    metadata: dict[str, Any] = msgspec.field(default_factory=dict)


class InstructionMessage(Part, frozen=True):
    """``INSTRUCTION``: each instruction has its form, and is kept as it came."""

    instructions: Annotated[
        tuple[dict[str, Any], ...], msgspec.Meta(min_length=1, max_length=INSTRUCTIONS_MAX)
    ]
    execution_mode: Literal["SEQUENTIAL", "PARALLEL", "CONDITIONAL"]
    timeout: Seconds | None = None
    goes_on: bool = False


class ClientCapabilities(Part, frozen=True):
    """``CLIENT_CAPABILITIES``: what a client announces on connecting."""

    client_id: Word
    device_type: str
    platform: str
    version: str
    supported_tools: Annotated[tuple[SupportedTool, ...], msgspec.Meta(max_length=TOOLS_MAX)] = ()
    supported_features: Capabilities = ()
    limitations: Limitations | None = None


class ToolAvailabilityRequest(Part, frozen=True):
    """``TOOL_AVAILABILITY_REQUEST``."""

    tools: Annotated[tuple[AskedTool, ...], msgspec.Meta(min_length=1, max_length=TOOLS_MAX)]


class ToolAvailabilityResponse(Part, frozen=True):
    """``TOOL_AVAILABILITY_RESPONSE``."""

    available_tools: Annotated[tuple[AvailableTool, ...], msgspec.Meta(max_length=TOOLS_MAX)]


class ErrorSource(StrEnum):
    """Where an error comes from: the words of the text; their English is read too (ruling 38)."""

    CLIENT = "客户端"
    SERVER = "服务端"
    TOOL = "工具"
    SYSTEM = "系统"

    @classmethod
    def _missing_(cls, value: object) -> "ErrorSource | None":
        known = cls.__members__.items()
        return next((each for name, each in known if value in (name, name.lower())), None)


class ErrorDetails(Part, frozen=True):
    """Facts about an error; there is no place for anything else."""

    request_id: Word | None = None
    timestamp: Timestamp | None = None
    trace_id: Word | None = None
    violated_policies: Capabilities = ()

    def __post_init__(self) -> None:
        if self.timestamp is not None:
            check_moment("timestamp", self.timestamp)


class ErrorResponse(Part, frozen=True, kw_only=True):
    """``ERROR_RESPONSE``; `errors.ERROR_CODES` has the class of each code."""

    error_code: Word
    message: str
    details: ErrorDetails = ErrorDetails()
    source: ErrorSource
    recoverable: bool
    suggested_action: str | None = None


class AddMessage(Part, frozen=True, tag_field="operation", tag="ADD_MESSAGE"):
    """``CONTEXT_UPDATE``: a whole message is appended to the history."""

    message: McpMessage


StatePath = Annotated[
    str, msgspec.Meta(max_length=PATH_CHARACTERS_MAX, pattern=rf"^[^.]+(\.[^.]+)*{END}")
]


class UpdateState(Part, frozen=True, tag_field="operation", tag="UPDATE_STATE"):
    """``CONTEXT_UPDATE``: a value of the state, by its path with dots."""

    path: StatePath
    value: Any


class HistoryFilter(Part, frozen=True):
    """The messages that are forgotten: those before a moment."""

    before_timestamp: Timestamp

    def __post_init__(self) -> None:
        check_moment("beforeTimestamp", self.before_timestamp)


class ClearHistory(Part, frozen=True, tag_field="operation", tag="CLEAR_HISTORY"):
    """``CONTEXT_UPDATE``: all messages are forgotten, or those that the filter takes."""

    filter: HistoryFilter | None = None


CONTENTS: Final[Mapping[str, Any]] = {
    "USER_INPUT": UserInput,
    "MODEL_RESPONSE": ModelResponse,
    "TOOL_CALL_REQUEST": ToolCallRequest,
    "TOOL_CALL_RESPONSE": ToolCallResponse,
    "SYSTEM_MESSAGE": SystemMessage,
    "INSTRUCTION": InstructionMessage,
    "CLIENT_CAPABILITIES": ClientCapabilities,
    "TOOL_AVAILABILITY_REQUEST": ToolAvailabilityRequest,
    "TOOL_AVAILABILITY_RESPONSE": ToolAvailabilityResponse,
    "ERROR_RESPONSE": ErrorResponse,
    "CONTEXT_UPDATE": AddMessage | UpdateState | ClearHistory,
}
"""The type of `content` of each type of message that the text names."""
