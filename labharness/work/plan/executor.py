"""The executor: it carries out one instruction after the other, and records each."""

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from labharness.core.vocabulary.texts import Text
from labharness.work.plan.instructions import (
    Instruction,
    InstructionSet,
    resolve,
)
from labharness.work.plan.operations import Operations
from labharness.work.plan.records import Status, StepRecord
from labharness.work.plan.recovery import BadInstruction
from labharness.work.plan.step import FailureKind, RunningStep, StepFailed, Verb


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of a run.

    Attributes:
        index: Number of the instruction, from 1; 0 before the first.
        total: Number of instructions.
        why: The reason of the end of an instruction in a set that goes on after it.
    """

    stage: str
    index: int
    total: int
    instruction_id: str
    description: str
    status: Status
    why: str = ""


@dataclass(eq=False)
class Executor:
    """Carries out the chain of a capability in its order, each step within its time.

    A set with conditions, recovery or another mode is `SetRunner`'s.

    Attributes:
        instructions: The plan.
        operations: The line.
        verbs: The verb of each action.
        observer: Called at the start and at the end of each instruction.
        reached: Called with all records after an instruction at which a later run may go on.
        done: Records of an earlier run: of each instruction up to one at which a later run may
            go on.

    Raises:
        BadInstruction: An action has no verb, or the set is not a plain chain.
    """

    instructions: InstructionSet
    operations: Operations
    verbs: Mapping[str, Verb]
    observer: Callable[[Progress], None] = lambda progress: None
    reached: Callable[[Sequence[StepRecord]], Awaitable[None]] | None = None
    done: Sequence[StepRecord] = ()

    def __post_init__(self) -> None:
        if not self.instructions.is_plain():
            raise BadInstruction("instruction.not_plain")
        for each in self.instructions.instructions:
            if each.action not in self.verbs:
                name, known = each.instruction_id, ", ".join(self.verbs)
                raise BadInstruction(
                    "instruction.no_verb", name=name, action=each.action, known=known
                )
        self._first = len(self.done)
        left = self.instructions.instructions[self._first :]
        self._records = [*self.done, *map(StepRecord, left)]
        self._index = 0

    async def run(self) -> tuple[StepRecord, ...]:
        """Carry out every instruction; return their records.

        After any early end (also a trip of the line, or cancellation) the instruction that ran is
        FAILED or TIMEOUT, and all after it are SKIPPED.

        Raises:
            StepFailed: An instruction failed.
        """
        results = {
            each.instruction.instruction_id: each.result
            for each in self._records
            if each.result is not None
        }
        try:
            for index in self._order():
                self._index = index + 1
                what = self._records[index].instruction
                results[what.instruction_id] = await self._carry_out(index, results)
                if what.checkpoint and self.reached is not None and index >= self._first:
                    await self.reached(self._records[: index + 1])
        finally:
            self._records = [
                replace(each, status=Status.SKIPPED) if each.status is Status.PENDING else each
                for each in self._records
            ]
        return self.records()

    def _order(self) -> Iterator[int]:
        """Return the instructions to carry out: after an earlier run some of its own again."""
        last = self._records[self._first - 1].instruction if self._first else None
        again = () if last is None or last.checkpoint is None else last.checkpoint.again
        for index, record in enumerate(self._records):
            if index >= self._first or record.instruction.instruction_id in again:
                yield index

    def records(self) -> tuple[StepRecord, ...]:
        """Return the record of each instruction so far, in order."""
        return tuple(self._records)

    def progress(self) -> Progress:
        """Return the progress of the run."""
        total = len(self._records)
        if not self._index:
            return Progress("", 0, total, "", "", Status.PENDING)
        record = self._records[self._index - 1]
        what = record.instruction
        return Progress(
            what.stage, self._index, total, what.instruction_id, what.description, record.status
        )

    async def _carry_out(
        self, index: int, results: Mapping[str, Mapping[str, Any]]
    ) -> Mapping[str, Any]:
        instruction = self._records[index].instruction
        started_s = self.operations.now_s()
        self._put(index, status=Status.RUNNING, started_s=started_s)
        status, error, result = Status.FAILED, "interrupted", None
        try:
            result = await self._result(instruction, results, started_s)
            status, error = Status.COMPLETED, ""
        except StepFailed as why:
            status = Status.TIMEOUT if why.kind is FailureKind.TIMEOUT else Status.FAILED
            error = why.reason
            raise
        finally:
            ended_s = self.operations.now_s()
            self._put(index, status=status, ended_s=ended_s, result=result, error=error)
        return result

    async def _result(
        self, instruction: Instruction, results: Mapping[str, Mapping[str, Any]], started_s: float
    ) -> Mapping[str, Any]:
        stage, name = instruction.stage, instruction.instruction_id
        try:
            parameters = resolve(instruction.parameters, results)
        except LookupError as why:
            raise StepFailed(name, stage, str(why), FailureKind.EXECUTION) from None
        deadline_s = started_s - self.operations.held_s() + instruction.timeout_s
        step = RunningStep(instruction, self.operations, parameters, deadline_s)
        try:
            return await self.verbs[instruction.action](step)
        except ConnectionError as why:
            raise step.failed(Text("instrument.silent", why=str(why))) from why

    def _put(self, index: int, **changes: Any) -> None:  # noqa: ANN401 - fields of a record
        self._records[index] = replace(self._records[index], **changes)
        self.observer(self.progress())
