"""One instruction being carried out: its bounds in lab time, and how it fails."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from labharness.core.errors import LabError
from labharness.core.vocabulary import Command, Ending
from labharness.core.vocabulary.texts import Param, Text
from labharness.work.plan.instructions import Instruction
from labharness.work.plan.operations import Operations


class FailureKind(StrEnum):
    """The reason of a failure."""

    REFUSED = "refused"
    """The kernel refused a command; no byte left."""

    EXECUTION = "execution"
    """An instrument, the process or the sample did not do what was asked."""

    TIMEOUT = "timeout"
    """It took longer than the instruction allows."""

    INPUT = "input"
    """An input of the caller turned out to be useless."""

    UNAVAILABLE = "unavailable"
    """A server or another resource did not answer."""


class StepFailed(LabError, RuntimeError, code="step_failed"):
    """An instruction did not reach its end.

    Attributes:
        reason: One sentence.
        part: The part of its result that it had until then; ``None`` for none.
    """

    def __init__(
        self,
        instruction_id: str,
        stage: str,
        reason: str,
        kind: FailureKind,
        part: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(Text("step.failed", stage=stage, step=instruction_id, why=reason))
        self.instruction_id = instruction_id
        self.stage = stage
        self.reason = reason
        self.kind = kind
        self.part = part


@dataclass(frozen=True, slots=True)
class RunningStep:
    """An instruction under way, as its verb sees it.

    Attributes:
        parameters: Those of the instruction, references replaced by results.
        deadline_s: Lab time, less that for which the line was held, at which it has failed.
    """

    instruction: Instruction
    operations: Operations
    parameters: Mapping[str, Any]
    deadline_s: float

    async def perform(self, channel: str, value: float, unit: str) -> None:
        """Carry out a command.

        Raises:
            StepFailed: It did not end confirmed (or unconfirmed, where nothing can show it).
        """
        self.check_time("wait.set", channel=channel)
        command = Command(channel, value, unit)
        outcome = await self.operations.perform(command)
        if outcome.ending not in (Ending.CONFIRMED, Ending.UNCONFIRMED):
            refused = outcome.ending is Ending.REFUSED
            kind = FailureKind.REFUSED if refused else FailureKind.EXECUTION
            raise self.failed(
                Text("step.ended", asked=command.text, ending=outcome.ending, why=outcome.detail),
                kind,
            )

    async def tick(self, code: str, /, **about: Param) -> None:
        """Wait for the next poll.

        Args:
            code: Of the text that says what is waited for; it is made when the time is over.
            about: Its parameters.

        Raises:
            StepFailed: The time of the instruction is over.
        """
        await self.operations.next_tick()
        self.check_time(code, **about)

    def check_time(self, code: str, /, **about: Param) -> None:
        """Raise ``StepFailed`` when the time of the instruction is over; arguments as `tick`."""
        if self.operations.now_s() - self.operations.held_s() >= self.deadline_s:
            what, allowed_s = Text(code, **about), self.instruction.timeout_s
            raise self.failed(
                Text("step.timeout", what=what, allowed_s=allowed_s), FailureKind.TIMEOUT
            )

    def failed(
        self,
        reason: str,
        kind: FailureKind = FailureKind.EXECUTION,
        part: Mapping[str, Any] | None = None,
    ) -> StepFailed:
        """Make the error that ends this step; ``part`` is the part of its result that it has."""
        name, stage = self.instruction.instruction_id, self.instruction.stage
        return StepFailed(name, stage, reason, kind, part)


Verb = Callable[[RunningStep], Awaitable[Mapping[str, Any]]]
"""Carries out the instructions of one action and gives their result, a JSON object."""
