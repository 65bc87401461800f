"""The tables of docs/reference/states.md that are made from the tables of the code."""

import re
from collections.abc import Iterable

from commands import ROOT
from labharness.protocols.hcp.session import TERMINAL as SESSION_TERMINAL
from labharness.protocols.hcp.session import TRANSITIONS as SESSION
from labharness.work.task.states import (
    ATTEMPT_ENDED,
    ATTEMPT_STATUSES,
    CORRESPONDING,
    TERMINAL,
    TRANSITIONS,
)

__all__ = ["STATES_PAGE", "with_tables"]

STATES_PAGE = ROOT / "docs" / "reference" / "states.md"


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    return "\n".join([_row(*head), "|" + "---|" * len(head), *(_row(*each) for each in rows)])


def _names(statuses: Iterable[str]) -> str:
    return ", ".join(f"`{each}`" for each in statuses) or "-"


def _yes(truth: bool) -> str:
    return "yes" if truth else ""


def _session() -> str:
    rows = (
        (state, _yes(state in SESSION_TERMINAL), to, why)
        for state, onward in SESSION.items()
        for to, why in (onward.items() or [("-", "-")])
    )
    return _table(("session", "ended", "becomes", "when"), rows)


def _task() -> str:
    rows = ((f"`{s}`", _yes(s in TERMINAL), _names(onward)) for s, onward in TRANSITIONS.items())
    return _table(("task", "ended", "becomes"), rows)


def _attempt() -> str:
    rows = ((f"`{s}`", _yes(s in ATTEMPT_ENDED), why) for s, why in ATTEMPT_STATUSES.items())
    return _table(("attempt", "ended", "meaning"), rows)


def _corresponding() -> str:
    rows = ((f"`{e.line}`", e.session, f"`{e.task}`", *e[3:]) for e in CORRESPONDING)
    return _table(("line", "HCP session", "task", "attempt", "instruction"), rows)


TABLES = {
    "session": _session,
    "task": _task,
    "attempt": _attempt,
    "corresponding": _corresponding,
}


def with_tables(page: str) -> str:
    """Return the page with each table between its two marks made anew."""
    for name, table in TABLES.items():
        marks = re.compile(rf"(<!-- made: {name} -->\n).*?(<!-- end -->)", re.DOTALL)
        assert marks.search(page), name
        page = marks.sub(lambda found: f"{found[1]}{table()}\n{found[2]}", page)  # noqa: B023 - used at once
    return page
