"""The payloads of HCP messages, as strict models that keep unknown fields."""

import json
from typing import Annotated, Any, Final, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    PrivateAttr,
    StringConstraints,
    ValidationError,
    ValidatorFunctionWrapHandler,
    WrapValidator,
    model_validator,
)
from pydantic_core import PydanticCustomError

from labharness.core.vocabulary import texts
from labharness.protocols.hcp.terms import DataClass, RiskLevel


def _kept(value: object, check: ValidatorFunctionWrapHandler) -> object:
    return value if isinstance(value, texts.Text) else check(value)


Said = Annotated[str, WrapValidator(_kept)]
"""A text of ours keeps its code for the journal; in a message it is its English."""

ERROR_CODES: Final = (
    "execution_error",
    "timeout",
    "safety_violation",
    "resource_unavailable",
    "internal_error",
    "input_error",
)

Identifier = Annotated[str, StringConstraints(min_length=1, max_length=128)]
# A caller's id is a word of AMQP topics, in which its dots are escaped (`wire.word`). The wildcards
# '*' and '#' would let one caller bind another one's topics.
CALLERS: Final = "[A-Za-z0-9_-][A-Za-z0-9_.-]{0,127}"
"""Ids of callers, as a regular expression of the whole text."""

CallerId = Annotated[str, StringConstraints(pattern=f"^{CALLERS}$")]
Text = Annotated[str, StringConstraints(min_length=1)]


CONTEXT_BYTES_MAX: Final = 65_536
"""Size (bytes) of the largest `context`, as compact JSON in UTF-8 (ruling 44)."""


def _bounded(value: object) -> object:
    try:
        size = len(
            json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()
        )
    except ValueError:
        raise PydanticCustomError("context", "it cannot be written as JSON") from None
    if size > CONTEXT_BYTES_MAX:
        told = {"size": size, "most": CONTEXT_BYTES_MAX}
        raise PydanticCustomError("context", "it has {size} bytes as JSON; at most {most}", told)
    return value


Context = Annotated[Any, AfterValidator(_bounded)]
"""Whatever its caller wants to say: it is kept and held to no rule; its words may propose."""


class Payload(BaseModel):
    """Base of every payload and of every object inside one."""

    model_config = ConfigDict(strict=True, frozen=True, extra="allow", allow_inf_nan=False)

    def stated(self) -> dict[str, Any]:
        """Return the fields that were stated, by the names of the specification."""
        return self.model_dump(by_alias=True, exclude_unset=True)


class Constraints(Payload):
    """Constraints of a submission. Only types are checked here; admission judges the values."""

    max_duration: str | None = None
    confidence_threshold: float | None = None
    data_classification: str | None = None
    priority: str | None = None


class ExpectedOutput(Payload):
    """The outputs that the caller expects."""

    format: str | None = None
    required_fields: list[str] = []
    output_schema: dict[str, Any] | None = Field(default=None, alias="schema")


class ResumeFrom(Payload):
    """The checkpoint of an earlier session of the same task, to go on from."""

    model_config = ConfigDict(extra="forbid")

    session_id: Identifier
    checkpoint_id: Identifier


class TaskSubmit(Payload):
    """``task_submit``: a caller's request."""

    capability: Identifier
    capability_version: str | None = None
    caller_id: CallerId
    intent: Text
    inputs: dict[str, Any]
    constraints: Constraints | None = None
    expected_output: ExpectedOutput | None = None
    context: Context = None
    resume_from: ResumeFrom | None = None
    _is_newer: bool = PrivateAttr(default=False)

    @property
    def is_newer(self) -> bool:
        """Whether it came in a message of a higher minor version than ours (ruling 24)."""
        return self._is_newer

    def as_newer(self) -> Self:
        """Return it as a part of a message of a higher minor version."""
        found = self.model_copy()
        found._is_newer = True
        return found


class AcceptedConstraints(Payload):
    """Constraints of an accepted task, as ISO 8601 durations."""

    max_duration: str
    abort_timeout: str


class TaskAccepted(Payload):
    """``task_accepted``: the one message that carries the token."""

    session_token: Text
    risk_level: RiskLevel
    data_classification: DataClass
    safety_envelope: dict[str, Any]
    constraints: AcceptedConstraints
    in_reply_to: Identifier | None = None


class TaskRejected(Payload):
    """``task_rejected``: the reason, and a suggestion."""

    reason_code: Text
    reason_message: Said
    assessed_risk_level: RiskLevel | None = None
    suggestion: Said | None = None
    in_reply_to: Identifier | None = None


class ArtifactReference(Payload):
    """A result file by its address."""

    name: str
    type: str
    uri: str
    size_bytes: Annotated[int, Field(ge=0)]
    checksum: str | None = None


class RiskEvent(Payload):
    """A trip of a run: its cause, the channel that showed it, value, limit, time and sentence."""

    code: str
    channel: str | None = None
    value: float | None = None
    limit: float | None = None
    at: str | None = None
    text: Said


class ExecutionSummary(Payload):
    """Duration, steps and warnings of a run; our risk events are objects (ruling 31)."""

    duration: str | None = None
    steps_executed: int | None = None
    checkpoints_created: int | None = None
    risk_events: list[RiskEvent | Said] = []
    warnings: list[str] = []


class TaskCompleted(Payload):
    """``task_completed``: the outputs."""

    outputs: dict[str, Any]
    artifacts: list[ArtifactReference] = []
    execution_summary: ExecutionSummary | None = None


class TaskFailed(Payload):
    """``task_failed``: the error, and the partial results."""

    error_code: Text
    error_message: Said
    suggestion: Said | None = None
    error_details: dict[str, Any] | None = None
    partial_outputs: dict[str, Any] | None = None
    artifacts: list[ArtifactReference] = []
    execution_summary: ExecutionSummary | None = None


class Abort(Payload):
    """``abort``: a caller ends its session; a PENDING session needs no token."""

    session_token: str | None = None
    caller_id: CallerId | None = None
    reason: str | None = None


class _SessionCreated(Payload):
    state: str
    risk_level: RiskLevel | None
    session_token: str | None


class _StateChanged(Payload):
    from_state: str
    to_state: str
    reason: str


class _Progress(Payload):
    stage: str
    percent: Annotated[float, Field(ge=0, le=100)] | None = None
    message: str


class _IntermediateResult(Payload):
    result_type: str
    data: Any
    is_partial: bool


class _Log(Payload):
    level: str
    message: str
    details: dict[str, Any] | None = None


class _Warning(Payload):
    code: str
    message: str
    details: dict[str, Any] | None = None


class _Error(Payload):
    code: str
    message: str
    recoverable: bool


class _CheckpointCreated(Payload):
    checkpoint_id: str
    description: str
    resumable: bool
    created_at: str


class _SessionClosed(Payload):
    final_state: str
    reason: str


EVENT_DATA: Final[dict[str, type[Payload]]] = {
    "session_created": _SessionCreated,
    "state_changed": _StateChanged,
    "progress": _Progress,
    "intermediate_result": _IntermediateResult,
    "log": _Log,
    "warning": _Warning,
    "error": _Error,
    "checkpoint_created": _CheckpointCreated,
    "session_closed": _SessionClosed,
}


class EventPayload(Payload):
    """``event``: something that happened in a session, in the order of `sequence`."""

    event_type: str
    sequence: Annotated[int, Field(ge=0)]
    data: dict[str, Any]
    in_reply_to: Identifier | None = None

    @model_validator(mode="after")
    def _data_fits_its_type(self) -> Self:
        model = EVENT_DATA.get(self.event_type)
        if model is None:
            raise ValueError(f"event_type {self.event_type[:80]!r} is none of {[*EVENT_DATA]}")
        try:
            model.model_validate(self.data)
        except ValidationError as error:
            fault = error.errors()[0]
            where = ".".join(str(part) for part in ("data", *fault["loc"]))
            raise ValueError(f"{where}: {fault['msg']}") from error
        return self


PAYLOADS: Final[dict[str, type[Payload]]] = {
    "task_submit": TaskSubmit,
    "task_accepted": TaskAccepted,
    "task_rejected": TaskRejected,
    "event": EventPayload,
    "task_completed": TaskCompleted,
    "task_failed": TaskFailed,
    "abort": Abort,
}
