"""The referee's rules: those of any line, and those of one line's faults file.

A harm behind a mask is not a violation but a *demand*: it is counted, because a hardware safeguard
has to answer it. Decision 0013 has the reasons.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from labharness.chaos.fault_rows import Way
from labharness.chaos.formula import Formula
from labharness.chaos.table import FaultTable
from labharness.chaos.times import KILL_S, PASS_S, PAUSE_S, REPEATS_S, TRIP_S


@dataclass(frozen=True, slots=True)
class Rule:
    """One harm.

    Attributes:
        name: Its name.
        broken: Condition under which the harm is present.
        allowed_s: How long it may last.
        blinded_by: Masks that make it a demand instead of a violation.
        counts: Name of a total of the plant; what came under a mask is not counted.
    """

    name: str
    broken: Formula
    allowed_s: float
    blinded_by: frozenset[str] = frozenset()
    counts: str | None = None


ANY_LINE = (
    ("energised after a stop request", "energised and stopped", TRIP_S),
    ("energised while a watched port is silent", "energised and watched_port_cut", TRIP_S),
    ("energised though the harness is dead", "energised and harness == 'killed'", KILL_S),
    ("energised though the harness stands still", "energised and harness == 'paused'", PAUSE_S),
    ("energised after the run has ended", "energised and harness == 'gone'", KILL_S),
    ("energised while it must be latched", "energised and latched", TRIP_S),
)


def rules_of(table: FaultTable) -> tuple[Rule, ...]:
    """Return all rules of a line."""
    return (
        *(rule for way in table.way for rule in _left_on(way)),
        *(
            Rule(row.name, row.when, row.allowed_s, frozenset(row.masks), row.counts)
            for row in table.rule
        ),
        *(Rule(name, Formula(when), allowed_s) for name, when, allowed_s in ANY_LINE),
    )


def _left_on(way: Way) -> Iterator[Rule]:
    """Return the rules for one way to a safe state, for the guard and for the line.

    With one way left on, the next fault of the other one is a harm.
    """
    on, port = f"({way.on.text})", repr(way.port)
    by_the_guard = f"guarded and {port} not in deaf and {on}"
    yield Rule(f"{way.name} left on by the guard", Formula(by_the_guard), KILL_S + PASS_S)
    in_use = f"harness == 'alive' and used and (latched or stopped) and {port} not in deaf"
    ended = f"harness == 'gone' and {port} not in disturbed"
    by_the_line = f"not guarded and ({in_use} or {ended}) and {on}"
    yield Rule(f"{way.name} left on by the line", Formula(by_the_line), TRIP_S + REPEATS_S)
