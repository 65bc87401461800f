"""Reduce a scenario that breaks a rule to the fewest faults that do so (delta debugging)."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from labharness.chaos.scenario import Fault, Scenario

PLAYS_MAX = 100  # six faults take at most a few dozen


def shrink(scenario: Scenario, breaks: Callable[[Scenario], bool]) -> Scenario:
    """Remove faults while the scenario still breaks its rule.

    Args:
        scenario: A scenario that breaks a rule.
        breaks: Plays a smaller scenario and returns whether it still breaks the rule.

    Returns:
        A scenario from which no single fault can be removed; Zeller's ddmin, with complements only.
    """
    plays = 0

    def still(faults: Sequence[Fault], second_growth: bool) -> bool:
        nonlocal plays
        plays += 1
        smaller = replace(scenario, faults=tuple(faults), second_growth=second_growth)
        return plays <= PLAYS_MAX and breaks(smaller)

    faults = scenario.faults
    second = scenario.second_growth and not still(faults, False)
    parts = 2
    while len(faults) >= 1 and parts >= 1:
        size = max(1, -(-len(faults) // parts))
        for begin in range(0, len(faults), size):
            rest = faults[:begin] + faults[begin + size :]
            if still(rest, second):
                faults, parts = rest, max(1, min(parts, len(rest)))
                break
        else:
            if size == 1:
                break
            parts = min(len(faults), 2 * parts)
    return replace(scenario, faults=faults, second_growth=second)
