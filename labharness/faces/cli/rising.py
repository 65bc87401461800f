"""Wait after ``safe`` until it is known whether anything still gets hotter.

The owner of the line measures in its own time, and is asked. Without an owner this process measures
real instruments twice; between the two measurements it does not hold the line.
"""

from collections.abc import Callable, Sequence

from labharness.core.clock import pause
from labharness.core.vocabulary.texts import Text
from labharness.instruments.link import LinkLost
from labharness.lab import LabPlan
from labharness.lab.config.lock import LineBusy
from labharness.lab.operate.idle_line import read_now
from labharness.lab.wiring.control import LineControl, NoOwner
from labharness.line.effects import warmer

ASK_S = 0.5  # between two questions to the owner
NAN = float("nan")


def still_rising(
    plan: LabPlan,
    hot: Sequence[str],
    owner: Callable[[], LineControl | None],
    tell: Callable[[str], None],
) -> list[str]:
    """Wait for the lag of hot channels, and longer; return a text for each that rose or is unread.

    Args:
        plan: The lab's files, which state both times.
        hot: The temperatures to watch; if there are none, this returns at once.
        owner: Reaches the process that drives the line, if there is one.
        tell: Told how long the wait takes.
    """
    rows = {
        name: row
        for each in plan.instruments
        for row in each.cools
        if (name := f"{each.name}.{row.channel}") in hot
    }
    if not rows:
        return []
    lag_s = max(row.lag_s for row in rows.values())
    over_s = max(row.over_s for row in rows.values())
    tell(Text("hand.hot", channels=list(rows), within_s=lag_s + over_s))
    found = _asked(owner)
    if found is None and not plan.real_ports:
        return []  # the simulated room ended with its owner: nothing is left to measure
    if found is None:
        pause(lag_s)
        before = _look(plan, list(rows))
        pause(over_s)
        after = _look(plan, list(rows))
        said = [warmer(name, row, before[name], after[name]) for name, row in rows.items()]
        found = [each for each in said if each]
    if not found:
        tell(Text("hand.nothing_rises", channels=list(rows)))
    return found


def _asked(owner: Callable[[], LineControl | None]) -> list[str] | None:
    """Ask the owner of the line until it knows; ``None`` if there is no owner any more."""
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


def _look(plan: LabPlan, names: Sequence[str]) -> dict[str, float]:
    try:
        found = read_now(plan, names)
    except (LineBusy, LinkLost, OSError):  # the answer then says that nothing was read
        return dict.fromkeys(names, NAN)
    values = [each.get("value") if each["ok"] else None for each in found]
    return {
        name: NAN if value is None else value for name, value in zip(names, values, strict=True)
    }
