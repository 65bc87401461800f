"""The tables of docs/reference/states.md: those that are made from the code, and the others."""

import re
from collections.abc import Iterable

from commands import ROOT
from labharness.protocols.hcp.session import TERMINAL as SESSION_TERMINAL
from labharness.protocols.hcp.session import TRANSITIONS as SESSION
from labharness.work.task.states import TERMINAL, TRANSITIONS

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


TABLES = {"session": _session, "task": _task}


def with_tables(page: str) -> str:
    """Return the page with each table between its two marks made anew."""
    for name, table in TABLES.items():
        marks = re.compile(rf"(<!-- made: {name} -->\n).*?(<!-- end -->)", re.DOTALL)
        assert marks.search(page), name
        page = marks.sub(lambda found: f"{found[1]}{table()}\n{found[2]}", page)  # noqa: B023 - used at once
    return page


def rows_under(head: str) -> list[list[str]]:
    """Return the rows of a table of the page, found by its first column, without code marks."""
    table = STATES_PAGE.read_text("utf-8").split(f"\n| {head} |")[1].split("\n\n")[0]
    lines = table.splitlines()[2:]
    return [[cell.strip().strip("`") for cell in line.strip("|").split("|")] for line in lines]
