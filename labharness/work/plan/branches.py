"""Branches of a set: each way that it may go is a set to be flown.

Results decide in conditions. Each comparison of a result is taken for true and for false, so that
no way is left out; two that say the opposite of each other are one. No way has a failure in it.
"""

import itertools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Final

from labharness.work.plan.instructions import Instruction, InstructionKind, InstructionSet, at_end
from labharness.work.plan.prediction import Prediction
from labharness.work.plan.recovery import Otherwise

FLIGHTS_MAX: Final = 16
"""Most ways of one set that are flown."""


def ways_of(plan: InstructionSet) -> Iterator[InstructionSet]:
    """Return each way that a set may go: every branch, with numbers within bounds at both ends.

    Those of two instructions are at the same end, and at opposite ones: heat at its highest beside
    gas at its lowest is a way too.
    """
    decisions = sorted({each for step in plan.instructions for each in _decisions(step)})
    open_ = [each.instruction_id for each in plan.instructions if _is_filled_in(each)]
    for truths in itertools.product((True, False), repeat=len(decisions)):
        known = dict(zip(decisions, truths, strict=True))
        for ends in itertools.product(("max", "min"), repeat=len(open_)):
            at = dict(zip(open_, ends, strict=True))
            steps = (_decided(each, known, at) for each in plan.instructions)
            yield replace(plan, instructions=tuple(steps))


def unflown(plan: InstructionSet, flown: Iterable[Prediction]) -> tuple[str, ...]:
    """Return the instructions with a branch that no flight has shown.

    Args:
        plan: The set.
        flown: Of its ways, in their order; none where there is no plant.
    """
    flights = tuple(flown)
    shown = {step.instruction_id for each in flights for step in each.steps}
    few = next(itertools.islice(ways_of(plan), len(flights), None), None) is not None
    return tuple(
        each.instruction_id
        for each in plan.instructions
        if _goes_on(each)
        or (plan.goes_on and each.kind is InstructionKind.OPERATION)
        or (each.condition and each.instruction_id not in shown)
        or (few and (_decisions(each) or _is_filled_in(each)))
    )


def _decided(step: Instruction, truths: Mapping[str, bool], ends: Mapping[str, str]) -> Instruction:
    parsed = step.parsed_condition()
    if parsed is not None and parsed.decisions():
        step = replace(step, condition=parsed.decided(truths))
    end = ends.get(step.instruction_id)
    return step if end is None else replace(step, parameters=at_end(step.parameters, end))


def _decisions(step: Instruction) -> frozenset[str]:
    parsed = step.parsed_condition()
    return frozenset() if parsed is None else parsed.decisions()


def _is_filled_in(step: Instruction) -> bool:
    return bool(at_end(step.parameters, "min") != at_end(step.parameters, "max"))


def _goes_on(step: Instruction) -> bool:
    """Return whether it may begin after a failure, or others as if it had not failed."""
    recovery, parsed = step.recovery, step.parsed_condition()
    ends = (Otherwise.SKIP, Otherwise.PARTIAL)
    recovers = recovery is not None and (recovery.fallback or recovery.otherwise in ends)
    return bool(recovers) or (parsed is not None and parsed.may_follow_a_failure())
