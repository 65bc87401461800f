"""Branches of a set: each way that it may go is a set to be flown.

Results decide in conditions. Each comparison of a result is taken for true and for false, so that
no way is left out; two that say the opposite of each other are one. No way has a failure in it.
"""

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Final

from labharness.work.plan.instructions import InstructionKind, InstructionSet
from labharness.work.plan.prediction import Prediction

FLIGHTS_MAX: Final = 16
"""Most ways of one set that are flown."""


def ways_of(plan: InstructionSet) -> Iterator[InstructionSet]:
    """Return each way that a set may go: every branch, with numbers within bounds at both ends.

    Those of two instructions are at the same end, and at opposite ones: heat at its highest beside
    gas at its lowest is a way too.
    """
    open_ = [each.instruction_id for each in plan.instructions if each.has_range()]
    decisions = sorted({each for step in plan.instructions for each in step.comparisons()})
    for truths in itertools.product((True, False), repeat=len(decisions)):
        known = dict(zip(decisions, truths, strict=True))
        for ends in itertools.product(("max", "min"), repeat=len(open_)):
            at = dict(zip(open_, ends, strict=True))
            steps = (each.one_way(known, at.get(each.instruction_id)) for each in plan.instructions)
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
        if each.outlives_a_failure()
        or (plan.goes_on and each.kind is InstructionKind.OPERATION)
        or (each.condition and each.instruction_id not in shown)
        or (few and (each.comparisons() or each.has_range()))
    )
