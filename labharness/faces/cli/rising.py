"""Whether what was made safe still gets hotter: known minutes after ``safe``, and waited for.

Where a process drives the line it watches, in its own time, and is asked. Where none does, this one
measures real instruments twice; the line is nobody's meanwhile.
"""

from collections.abc import Callable, Sequence

from labharness.core.clock import pause
from labharness.instruments.driver import Cools
from labharness.instruments.link import LinkLost
from labharness.lab import LabPlan
from labharness.lab.config.lock import LineBusy
from labharness.lab.operate.idle_line import read_now
from labharness.lab.wiring.control import LineControl, NoOwner
from labharness.line.effects import warmer

__all__ = ["still_rising"]

ASK_S = 0.5  # between two questions to who watches
NAN = float("nan")


def still_rising(
    plan: LabPlan,
    hot: Sequence[str],
    owner: Callable[[], LineControl | None],
    tell: Callable[[str], None],
) -> list[str]:
    """Wait for the lag of what is hot, and longer; return what has risen, or was not read.

    Args:
        plan: The lab's files, which say how long.
        hot: The temperatures to watch; none, and nothing is waited for.
        owner: Reaches the process that drives the line, if one does.
        tell: Told how long it takes.
    """
    rows = {
        name: row
        for each in plan.instruments
        for row in each.cools
        if (name := f"{each.name}.{row.channel}") in hot
    }
    if not rows:
        return []
    names = ", ".join(rows)
    longest_s = max(row.lag_s for row in rows.values()) + max(row.over_s for row in rows.values())
    tell(
        f"hot: {names}; whether anything still rises is known in {longest_s:.0f} s (Ctrl-C ends "
        "this wait, and nothing else)"
    )
    found = _asked(owner)
    if found is None and not plan.real_ports:
        return []  # a room that was simulated by who has ended: nothing is left to measure
    if found is None:
        found = _measured_twice(plan, rows)
    if not found:
        tell(f"nothing rises: {names}")
    return found


def _asked(owner: Callable[[], LineControl | None]) -> list[str] | None:
    """Ask who drives the line until it knows; ``None`` where nobody does, or no more."""
    while True:
        try:
            reached = owner()
            if reached is None:
                return None
            with reached:
                answer = reached.ask(do="cooling")
        except NoOwner:
            return None
        if not answer["ok"]:
            return None
        if answer["known"]:
            return [str(each) for each in answer["contradicted"]]
        pause(ASK_S)


def _measured_twice(plan: LabPlan, rows: dict[str, Cools]) -> list[str]:
    pause(max(row.lag_s for row in rows.values()))
    before = _look(plan, list(rows))
    pause(max(row.over_s for row in rows.values()))
    after = _look(plan, list(rows))
    said = [warmer(name, row, before[name], after[name]) for name, row in rows.items()]
    return [each for each in said if each]


def _look(plan: LabPlan, names: Sequence[str]) -> dict[str, float]:
    try:
        found = read_now(plan, names)
    except (LineBusy, LinkLost, OSError):  # of what was not read it is said that it was not
        return dict.fromkeys(names, NAN)
    values = [each.get("value") if each["ok"] else None for each in found]
    return {
        name: NAN if value is None else value for name, value in zip(names, values, strict=True)
    }
