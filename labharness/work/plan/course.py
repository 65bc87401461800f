"""The course of a set: of all records and the time, what may begin, and what ends unbegun. Pure."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, Final, NamedTuple

from labharness.core.vocabulary.texts import Text
from labharness.protocols.mcp_cp.conditions import ConditionFailed
from labharness.work.plan.actions import ActionSchema, misfit
from labharness.work.plan.instructions import (
    ExecutionMode,
    Instruction,
    InstructionKind,
    InstructionSet,
    OutOfBounds,
    resolve,
)
from labharness.work.plan.records import FAILURES, Status, StepRecord
from labharness.work.plan.recovery import Otherwise
from labharness.work.plan.step import FailureKind, StepFailed

RUNNING_MAX: Final = 16
"""Most instructions of one set that run at once."""

Records = Mapping[str, StepRecord]
"""The record of each instruction by its id."""


class SkipReason(StrEnum):
    """Why an instruction never ran."""

    CONDITION = "condition"
    DEPENDENCY = "dependency"
    RECOVERY = "recovery"
    ABORT = "abort"
    TIMEOUT = "timeout"
    TRIP = "trip"


_GRAVITY: Final = (Status.FAILED, Status.TIMEOUT, Status.COMPLETED, Status.SKIPPED)
_CAUSES: Final = {SkipReason.TRIP: Status.FAILED, SkipReason.TIMEOUT: Status.TIMEOUT}


@dataclass(frozen=True, slots=True)
class Failure:
    """One attempt that failed.

    Attributes:
        part: The part of its result that it had until then.
    """

    error: str
    kind: FailureKind
    part: Mapping[str, Any] | None = None


class Ready(NamedTuple):
    """An instruction that may begin, with the action of its fall-back where that is its turn."""

    instruction: Instruction
    parameters: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """The consequences of all records at one time.

    Attributes:
        records: All records, with what has ended meanwhile.
        ready: Those that are to begin now, in this order.
        operations: Every operation that might begin, to be judged together before the first one
            does; they begin one after the other (ruling 28).
        stopped: Those that ran and have ended by this turn: they are to be cancelled.
        held: Those whose condition or reference cannot be decided, with the reason (ruling 36).
        wake_s: The lab time at which something is due without an event.
        over: Every instruction has ended.
    """

    records: Records
    ready: tuple[Ready, ...] = ()
    operations: tuple[Ready, ...] = ()
    stopped: tuple[str, ...] = ()
    held: Mapping[str, str] = field(default_factory=dict)
    wake_s: float
    over: bool


def at_first(instructions: InstructionSet) -> Records:
    """Return the records of a set of which nothing has begun."""
    return {each.instruction_id: StepRecord(each) for each in instructions.instructions}


def begun(record: StepRecord, now_s: float) -> StepRecord:
    """Return the record of an instruction that begins."""
    return replace(
        record,
        status=Status.RUNNING,
        started_s=now_s if record.started_s is None else record.started_s,
        attempts=record.attempts + 1,
        due_s=now_s + record.instruction.timeout_s,
    )


def after(record: StepRecord, found: Mapping[str, Any] | Failure, now_s: float) -> StepRecord:
    """Return the record of an instruction after an attempt, by the recovery that it declares."""
    if not isinstance(found, Failure):
        tried = "fallback" if record.fell_back else "retry" if record.attempts > 1 else ""
        done = replace(record, status=Status.COMPLETED, ended_s=now_s, result=found)
        return replace(done, recovered=tried)
    record = replace(record, error=found.error, failure=found.kind)
    recovery, kind = record.instruction.recovery, record.instruction.kind
    sent = record.attempts > 0 and found.kind is not FailureKind.REFUSED
    if recovery is not None and not (kind is InstructionKind.OPERATION and sent):
        transient = found.kind is not FailureKind.INPUT
        if transient and not record.fell_back and record.attempts < recovery.retry.attempts:
            again_s = now_s + recovery.retry.pause_s(record.attempts)
            return replace(record, status=Status.PENDING, again_s=again_s)
        if recovery.fallback and not record.fell_back:
            return replace(record, status=Status.PENDING, fell_back=True)
        if recovery.otherwise is Otherwise.PARTIAL and found.part is not None:
            done = replace(record, status=Status.COMPLETED, ended_s=now_s, result=found.part)
            return replace(done, recovered=Otherwise.PARTIAL.value)
        if recovery.otherwise is Otherwise.SKIP:
            return _skipped(record, SkipReason.RECOVERY, now_s)
    timeout = found.kind is FailureKind.TIMEOUT
    return replace(record, status=Status.TIMEOUT if timeout else Status.FAILED, ended_s=now_s)


def status_of(records: Records) -> Status:
    """Return the status of a set: that of its gravest member (ruling 33)."""
    found = {each.status for each in records.values()}
    if not all(each.has_ended() for each in records.values()):
        began = found - {Status.PENDING} or any(each.attempts for each in records.values())
        return Status.RUNNING if began else Status.PENDING
    found |= {
        status
        for reason, status in _CAUSES.items()
        if any(each.reason == reason for each in records.values())
    }
    return next((each for each in _GRAVITY if each in found), Status.COMPLETED)


def failure_of(plan: InstructionSet, records: Records) -> StepFailed | None:
    """Return the failure of a set that has ended: that of its first gravest member, if any."""
    status = status_of(records)
    if status not in FAILURES:
        return None
    ended = sorted(records.values(), key=lambda each: each.ended_s or 0.0)
    first = next((each for each in ended if each.status is status), ended[0])
    what, late = first.instruction, status is Status.TIMEOUT
    why = first.error or _why_ended(SkipReason.TIMEOUT, plan)  # it was over while nothing ran
    kind = FailureKind.TIMEOUT if late else first.failure or FailureKind.EXECUTION
    return StepFailed(what.instruction_id, what.stage, why, kind)


def next_turn(
    plan: InstructionSet,
    records: Records,
    actions: Mapping[str, ActionSchema],
    now_s: float,
    *,
    started_s: float,
    tripped: bool = False,
) -> Turn:
    """Return the consequences now.

    Args:
        plan: The set.
        records: The record of each instruction so far.
        actions: The actions that it names; parameters must fit them once they are filled in.
        now_s: Lab time, less that for which the line was held.
        started_s: The same at the beginning of the set.
        tripped: The line has tripped, or the run was ended: nothing is recovered.
    """
    found = dict(records)
    late = now_s >= started_s + plan.limit_s()
    ran = [name for name, each in found.items() if each.status is Status.RUNNING]
    for name in ran:
        if now_s >= found[name].due_s and not (tripped or late):
            why = Text("course.timeout", allowed_s=found[name].instruction.timeout_s)
            found[name] = after(found[name], Failure(why, FailureKind.TIMEOUT), now_s)
    cause = SkipReason.TRIP if tripped else SkipReason.TIMEOUT if late else None
    while True:
        if cause is None and any(map(_aborts, found.values())):
            cause = SkipReason.ABORT
        if cause is not None:
            error = _why_ended(cause, plan)
            found |= {name: _ended(each, cause, error, now_s) for name, each in found.items()}
        step = _Pass(plan, found, actions, now_s)
        if step.anew:
            continue
        waits = any(each.status is Status.RUNNING or each.again_s > now_s for each in step.open())
        if step.ready or waits or not step.held:
            break
        for name, reason in step.held.items():  # nothing that still runs could change it
            if name in step.undecided:  # its set is wrong: nothing takes its place
                found[name] = _failed(found[name], reason, now_s)
            else:
                found[name] = after(found[name], Failure(reason, FailureKind.INPUT), now_s)
    return Turn(
        records=found,
        ready=tuple(step.ready),
        operations=tuple(step.operations),
        stopped=tuple(name for name in ran if found[name].status is not Status.RUNNING),
        held=step.held,
        wake_s=min(started_s + plan.limit_s(), *step.wakes()),
        over=all(each.has_ended() for each in found.values()),
    )


class _Pass:
    """One look at all instructions, dependencies first; ends are entered in ``found``.

    Attributes:
        held: Those that cannot be decided, with the reason.
        undecided: Those of them whose condition it is, or whose reference leads nowhere.
        anew: An end has consequences for others that were looked at before.
    """

    def __init__(
        self,
        plan: InstructionSet,
        found: dict[str, StepRecord],
        actions: Mapping[str, ActionSchema],
        now_s: float,
    ) -> None:
        self._plan, self._found, self._actions, self._now_s = plan, found, actions, now_s
        self._sequential = plan.mode is ExecutionMode.SEQUENTIAL
        self.ready: list[Ready] = []
        self.operations: list[Ready] = []
        self.held: dict[str, str] = {}
        self.undecided: set[str] = set()
        self.anew = False
        running = [each for each in found.values() if each.status is Status.RUNNING]
        self._free = RUNNING_MAX - len(running)
        self._operates = any(map(_operates, running))
        self._failed = {name for name, each in found.items() if each.status in FAILURES}
        for each in plan.instructions:
            name = each.instruction_id
            if found[name].status is Status.PENDING:
                self._look_at(found[name])
            if self._sequential and not found[name].has_ended():
                break

    def open(self) -> Iterator[StepRecord]:
        """Return the record of each instruction that has not ended."""
        return (each for each in self._found.values() if not each.has_ended())

    def wakes(self) -> Iterator[float]:
        """Return the times at which something is due, once what is ready has begun."""
        yield math.inf
        yield from (self._now_s + one.instruction.timeout_s for one in self.ready)
        for each in self.open():
            if each.status is Status.RUNNING:
                yield each.due_s
            elif each.again_s > self._now_s:
                yield each.again_s

    def _look_at(self, record: StepRecord) -> None:
        what = record.instruction
        if not all(self._found[name].has_ended() for name in what.dependencies):
            return
        if lost := self._lost(record):
            record = self._without(record, frozenset(what.dependencies) >= lost)
        if not record.has_ended() and self._decided(record):
            return
        self._found[what.instruction_id] = record
        if record.has_ended():
            self.anew |= _aborts(record)
            if record.status in FAILURES:
                self._failed.add(what.instruction_id)
        elif record.again_s <= self._now_s:
            self._offer(record)

    def _decided(self, record: StepRecord) -> bool:
        """Return whether its condition keeps it from beginning."""
        what = record.instruction
        condition = what.parsed_condition()
        if condition is None:
            return False
        told = {name: self._found[name].told() for name in what.dependencies}
        try:
            if condition.holds({"dependencies": told, "results": told}):
                return False
        except ConditionFailed as why:
            self.held[what.instruction_id] = str(why)
            self.undecided.add(what.instruction_id)
            return True
        skipped = _skipped(record, SkipReason.CONDITION, self._now_s)
        self._found[what.instruction_id] = skipped
        return True

    def _lost(self, record: StepRecord) -> frozenset[str]:
        """Return those after whose end it must not begin (rulings 28 and 33)."""
        what, found = record.instruction, self._found
        needed = frozenset(what.dependencies)
        lost = {name for name in needed if found[name].status is not Status.COMPLETED}
        if self._sequential:
            lost |= self._failed - needed
        elif what.kind is InstructionKind.OPERATION and not self._plan.goes_on:
            lost |= {name for name in self._failed - needed if _operates(found[name])}
        if lost and (condition := what.parsed_condition()) is not None:
            lost -= condition.asked_status()
        return frozenset(lost)

    def _without(self, record: StepRecord, dependency: bool) -> StepRecord:
        """Return the record of one that must not begin: its recovery speaks of its dependencies."""
        recovery = record.instruction.recovery
        if record.attempts:  # between two attempts: it has its own error already
            return replace(record, status=Status.FAILED, ended_s=self._now_s)
        if dependency and recovery is not None and recovery.fallback:
            return replace(record, fell_back=True)
        if dependency and recovery is not None and recovery.otherwise is Otherwise.ABORT:
            return _failed(record, Text("course.dependency"), self._now_s)
        return _skipped(record, SkipReason.DEPENDENCY, self._now_s)

    def _offer(self, record: StepRecord) -> None:
        what, recovery = record.instruction, record.instruction.recovery
        operates = _operates(record)
        if not (operates and self.operations) and (
            len(self.ready) >= self._free or (operates and self._operates)
        ):
            return  # no place is free, and it is not judged together with one that begins
        if record.fell_back and recovery is not None and (other := recovery.fallback):
            what = replace(what, action=other.action, parameters=other.parameters)
        known = {name: self._found[name].result for name in what.dependencies}
        results = {name: each for name, each in known.items() if each is not None}
        try:
            parameters = resolve(what.parameters, results)
        except LookupError as why:
            if operates and isinstance(why, OutOfBounds):  # the run refuses it (ruling 47)
                failure = Failure(str(why), FailureKind.INPUT)
                self._found[what.instruction_id] = after(record, failure, self._now_s)
                self.anew = True
            else:
                self.held[what.instruction_id] = str(why)
                if not isinstance(why, OutOfBounds):
                    self.undecided.add(what.instruction_id)
            return
        if why_not := misfit(self._actions[what.action], parameters, filled=True):
            self.held[what.instruction_id] = why_not
            return
        one = Ready(what, parameters)
        if not (operates and self.operations):
            self.ready.append(one)
        if operates:
            self.operations.append(one)


def _operates(record: StepRecord) -> bool:
    return record.instruction.kind is InstructionKind.OPERATION


def _aborts(record: StepRecord) -> bool:
    recovery = record.instruction.recovery
    wants = recovery is not None and recovery.otherwise is Otherwise.ABORT
    return wants and record.status in FAILURES


def _skipped(record: StepRecord, reason: SkipReason, now_s: float) -> StepRecord:
    return replace(record, status=Status.SKIPPED, reason=reason.value, ended_s=now_s)


def _failed(record: StepRecord, error: str, now_s: float) -> StepRecord:
    kind = FailureKind.INPUT  # it never began
    return replace(record, status=Status.FAILED, error=error, failure=kind, ended_s=now_s)


def _why_ended(cause: SkipReason, plan: InstructionSet) -> Text:
    if cause is SkipReason.TIMEOUT:
        return Text("course.timeout", allowed_s=plan.limit_s())
    return Text("course.abort") if cause is SkipReason.ABORT else Text("course.trip")


def _ended(record: StepRecord, cause: SkipReason, error: str, now_s: float) -> StepRecord:
    """Return the record of one that the end of the set ends."""
    if record.has_ended():
        return record
    if record.status is Status.PENDING and not record.attempts:
        return _skipped(record, cause, now_s)
    status = Status.TIMEOUT if cause is SkipReason.TIMEOUT else Status.FAILED
    return replace(record, status=status, error=record.error or error, ended_s=now_s)
