"""The runner of a set: it begins what the course says, and waits; it decides nothing."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, cast

from labharness.core.vocabulary import Command, Ending, Outcome
from labharness.core.vocabulary.texts import Text
from labharness.work.plan.actions import ActionSchema
from labharness.work.plan.course import (
    Failure,
    Ready,
    Records,
    Turn,
    after,
    at_first,
    begun,
    failure_of,
    next_turn,
)
from labharness.work.plan.executor import Progress
from labharness.work.plan.instructions import InstructionSet
from labharness.work.plan.operations import Operations
from labharness.work.plan.records import Status, StepRecord
from labharness.work.plan.recovery import BadInstruction
from labharness.work.plan.step import FailureKind, RunningStep, StepFailed, Verb
from labharness.work.plan.verbs import judged_commands

LOOK_S: Final = 0.001
"""Least time between two looks at a set in which nothing happened, in seconds."""


class SetRunner:
    """Carries out any set: what is ready is begun, and what happens is entered in its records.

    Args:
        plan: The set.
        operations: The line.
        verbs: The verb of each action.
        actions: Kind and schema of each action.
        observer: Called at each begin and at the end of each instruction.

    Attributes:
        found: The record of each instruction so far.

    Raises:
        BadInstruction: An action has no verb.
    """

    def __init__(
        self,
        plan: InstructionSet,
        operations: Operations,
        verbs: Mapping[str, Verb],
        actions: Mapping[str, ActionSchema],
        observer: Callable[[Progress], None] = lambda progress: None,
    ) -> None:
        for each in plan.instructions:
            other = each.recovery and each.recovery.fallback
            for action in (each.action, *((other.action,) if other else ())):
                if action not in verbs:
                    name, known = each.instruction_id, ", ".join(verbs)
                    raise BadInstruction(
                        "instruction.no_verb", name=name, action=action, known=known
                    )
        self.found: Records = at_first(plan)
        self._plan, self._operations, self._verbs = plan, operations, verbs
        self._actions, self._observer = actions, observer
        self._tasks: dict[str, asyncio.Task[Mapping[str, Any] | Failure]] = {}
        self._started_s = 0.0

    async def run(self) -> Records:
        """Carry out the set; return its records, which a trip or a cancellation completes too.

        Raises:
            StepFailed: The set has ended, and failed.
            Exception: That of the line, where it has tripped; nothing is recovered from it. Any
                other of a verb ends the set in the same way, but for ``StepFailed`` and
                ``ConnectionError``: a plan cannot tell it from a trip.
        """
        self._started_s = self._now_s()
        watch = asyncio.create_task(self._watch())
        try:
            while True:
                self._operations.check()
                turn = self._turn(tripped=False)
                for error in await self._stop(turn.stopped):
                    raise error
                if turn.over:
                    break
                refused = await self._refused(turn)
                ended = any(each.done() for each in self._tasks.values())  # while it was held
                if ended or self._begin(turn, refused):
                    await self._event(turn.wake_s, watch)
        except BaseException as why:
            errors: list[BaseException] = []
            try:
                errors += self._enter()
                self._turn(tripped=True)
            finally:  # also where no record can be kept
                errors += await self._stop(tuple(self._tasks))
            if errors and isinstance(why, asyncio.CancelledError):
                raise errors[0] from why  # no cancellation hides a trip
            raise
        finally:
            watch.cancel()
            await asyncio.gather(watch, return_exceptions=True)
        if failure := failure_of(self._plan, self.found):
            raise failure
        return self.found

    def records(self) -> tuple[StepRecord, ...]:
        """Return the record of each instruction so far, in the order of the set."""
        return tuple(self.found.values())

    async def _watch(self) -> None:
        """Ask the line at each of its polls, also in a pause; it raises when the line trips."""
        while True:
            await self._operations.next_tick()

    def _now_s(self) -> float:
        return self._operations.now_s() - self._operations.held_s()

    def _turn(self, *, tripped: bool) -> Turn:
        now_s, started_s = self._now_s(), self._started_s
        turn = next_turn(
            self._plan, self.found, self._actions, now_s, started_s=started_s, tripped=tripped
        )
        self._take(turn.records)
        return turn

    async def _refused(self, turn: Turn) -> Mapping[str, str]:
        """Judge all operations together before the first one begins (ruling 28)."""
        sends = {one.instruction.instruction_id for one in turn.operations}
        if not any(one.instruction.instruction_id in sends for one in turn.ready):
            return {}
        commands = [
            (what.instruction_id, command)
            for what, asked in turn.operations
            for command in judged_commands(what.action, asked)
        ]
        said = await self._operations.refusals([command for _, command in commands])
        return {name: why for (name, _), why in zip(commands, said, strict=True) if why}

    def _begin(self, turn: Turn, refused: Mapping[str, str]) -> bool:
        """Begin what is ready; return false where operations were refused instead."""
        sends = {one.instruction.instruction_id for one in turn.operations}
        for name, why in refused.items():
            record = begun(self.found[name], self._now_s())
            self._put(name, after(record, Failure(why, FailureKind.REFUSED), self._now_s()))
        for one in turn.ready:
            name = one.instruction.instruction_id
            if not (refused and name in sends):
                self._put(name, begun(self.found[name], self._now_s()))
                self._tasks[name] = asyncio.create_task(self._act(one, self.found[name].due_s))
        return not refused

    async def _event(self, wake_s: float, watch: asyncio.Task[None]) -> None:
        """Wait until something has ended or is due, and enter what has ended."""
        left_s = max(wake_s - self._now_s(), LOOK_S)
        await asyncio.wait(
            (watch, *self._tasks.values()), timeout=left_s, return_when=asyncio.FIRST_COMPLETED
        )
        errors = self._enter()
        if watch.done():
            watch.result()
        if errors:
            raise errors[0]

    def _enter(self) -> list[BaseException]:
        """Enter the results of all that has ended; return the errors of the rest of it."""
        errors: list[BaseException] = []
        for name, task in list(self._tasks.items()):
            if not task.done():
                continue
            del self._tasks[name]
            error = asyncio.CancelledError() if task.cancelled() else task.exception()
            if error is None:
                self._put(name, after(self.found[name], task.result(), self._now_s()))
            else:  # its record stays open: the end of the set ends it
                errors.append(error)
        return errors

    async def _act(self, one: Ready, due_s: float) -> Mapping[str, Any] | Failure:
        noting = _Noting(self._operations)
        what, operations = one.instruction, cast(Operations, noting)
        step = RunningStep(what, operations, one.parameters, due_s)
        try:
            return await self._verbs[what.action](step)
        except StepFailed as why:
            refused = why.kind is FailureKind.REFUSED
            kind = FailureKind.EXECUTION if refused and noting.sent else why.kind
            return Failure(why.reason, kind, why.part)
        except ConnectionError as why:
            return Failure(Text("instrument.silent", why=str(why)), FailureKind.UNAVAILABLE)

    async def _stop(self, names: Sequence[str]) -> list[BaseException]:
        """Cancel what runs; return the errors with which it ended instead."""
        ended = [task for name in names if (task := self._tasks.pop(name, None)) is not None]
        for task in ended:
            task.cancel()
        found = await asyncio.gather(*ended, return_exceptions=True)
        return [each for each in found if isinstance(each, Exception)]

    def _put(self, name: str, record: StepRecord) -> None:
        self._take({**self.found, name: record})

    def _take(self, records: Records) -> None:
        """Take new records, and tell of each instruction that has begun or ended."""
        before, self.found = self.found, records
        for name, record in records.items():
            if record.status not in (before[name].status, Status.PENDING):
                ended, total = sum(each.has_ended() for each in records.values()), len(records)
                stage, said = record.instruction.stage, record.instruction.description
                at, why = min(ended + 1, total), record.error or record.reason
                self._observer(Progress(stage, at, total, name, said, record.status, why))


class _Noting:
    """The line as one instruction sees it; it notes whether anything may have left."""

    def __init__(self, operations: Operations) -> None:
        self._operations = operations
        self._sent = False
        self._open = 0  # what has no known end, which may have left

    def __getattr__(self, name: str) -> object:
        return getattr(self._operations, name)

    @property
    def sent(self) -> bool:
        """Whether a byte may have left, or a person may have been asked."""
        return self._sent or self._open > 0

    async def perform(self, command: Command) -> Outcome:
        """Carry out one command."""
        self._open += 1
        outcome = await self._operations.perform(command)
        self._open -= 1
        self._sent |= outcome.ending is not Ending.REFUSED
        return outcome

    async def query(
        self, instrument: str, name: str, about: Mapping[str, object] | None = None
    ) -> object:
        """Ask an instrument, which may expose a sample for it."""
        self._sent = True
        return await self._operations.query(instrument, name, about)

    async def confirm(self, action: str, text: str, details: Mapping[str, object]) -> str:
        """Have a step done by hand; where the envelope refuses it, no person was asked."""
        self._open += 1
        try:
            by = await self._operations.confirm(action, text, details)
        except PermissionError:
            self._open -= 1
            raise
        return by
