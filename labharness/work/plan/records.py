"""The record of an instruction in a run: its status, its times, its result or why it has none."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from labharness.work.plan.instructions import Instruction
from labharness.work.plan.step import FailureKind


class Status(StrEnum):
    """State of an instruction (MCP-CP 5.4)."""

    PENDING = "PENDING"
    RUNNING = "RUNNING"
    COMPLETED = "COMPLETED"
    FAILED = "FAILED"
    SKIPPED = "SKIPPED"
    TIMEOUT = "TIMEOUT"


FAILURES = (Status.FAILED, Status.TIMEOUT)


@dataclass(frozen=True, slots=True)
class StepRecord:
    """State and result of one instruction.

    Attributes:
        started_s: Lab time; None until it is started.
        ended_s: Lab time; None until it has ended.
        result: The result of its verb.
        error: Why it failed; with a recovery, why its last attempt did.
        failure: The kind of that failure, where it is known.
        reason: Why it was skipped.
        attempts: The number of times that it was begun.
        due_s: The lab time at which the present attempt has failed.
        again_s: The lab time before which no further attempt is made.
        fell_back: Its fall-back is carried out in its place.
        recovered: How it came to its result after a failure.
    """

    instruction: Instruction
    status: Status = Status.PENDING
    started_s: float | None = None
    ended_s: float | None = None
    result: Mapping[str, Any] | None = None
    error: str = ""
    failure: FailureKind | None = None
    reason: str = ""
    attempts: int = 0
    due_s: float = 0.0
    again_s: float = 0.0
    fell_back: bool = False
    recovered: str = ""

    def has_ended(self) -> bool:
        """Return whether its status is final."""
        return self.status not in (Status.PENDING, Status.RUNNING)

    def told(self) -> dict[str, Any]:
        """Return it as conditions of other instructions see it (MCP-CP 6.1)."""
        said = {"error": self.error, "reason": self.reason, "recovered": self.recovered}
        return {
            "instructionId": self.instruction.instruction_id,
            "status": self.status.value,
            **({} if self.result is None else {"result": self.result}),
            **{name: text for name, text in said.items() if text},
        }
