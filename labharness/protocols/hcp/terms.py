"""The vocabulary of HCP: risk levels, data classes, reasons, a submission, a rejection."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, get_args

RiskLevel = Literal["R1", "R2", "R3", "R4", "R5"]

RISK_LEVELS: Final[tuple[RiskLevel, ...]] = get_args(RiskLevel)


DataClass = Literal["T1", "T2", "T3", "T4"]

DATA_CLASSES: Final[tuple[DataClass, ...]] = get_args(DataClass)

OPEN: Final[tuple[DataClass, ...]] = ("T1", "T2")
CONFIDENTIAL: Final[tuple[DataClass, ...]] = ("T3", "T4")
"""The classes whose data are encrypted."""


ReasonCode = Literal[
    "unauthorized",
    "forbidden",
    "invalid_input",
    "risk_too_high",
    "safety_violation",
    "resource_unavailable",
    "approval_denied",
    "approval_expired",
    "aborted",
]

Priority = Literal["low", "normal", "high", "urgent"]

REASON_CODES: Final[tuple[ReasonCode, ...]] = get_args(ReasonCode)

PRIORITIES: Final[tuple[Priority, ...]] = get_args(Priority)


@dataclass(frozen=True, slots=True)
class Submission:
    """A caller's request, independent of the message format. None marks a field that was not given.

    `unknown` holds the names of fields that the harness ignores, by the object they were found in.
    `newer` says that its message has a higher minor version of HCP, which may know these fields.
    """

    caller_id: str
    capability: str
    intent: str
    inputs: Mapping[str, Any]
    capability_version: str | None = None
    max_duration: str | None = None
    confidence_threshold: float | None = None
    data_classification: str | None = None
    priority: str | None = None
    output_format: str | None = None
    required_fields: tuple[str, ...] = ()
    output_schema: Mapping[str, Any] | None = None
    context: object = None
    unknown: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    newer: bool = False


@dataclass(frozen=True, slots=True)
class Rejected:
    """Why a submission does not run, in the fields of HCP's ``task_rejected``."""

    reason_code: ReasonCode
    reason_message: str
    assessed_risk_level: RiskLevel | None = None
    suggestion: str | None = None
