"""The statuses of a task are those of the contract, and one page shows all tables of states."""

import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from labharness.protocols.hcp.session import STATES as SESSION_STATES
from labharness.safety.kernel.modes import Mode
from labharness.work.task.states import ACTIVE, STATUSES, TERMINAL, TRANSITIONS, may_become
from rig import HERE
from task_pages import STATES_PAGE, rows_under, with_tables

SCHEMAS: Path = HERE / "data" / "agent_task"
DEFS = json.loads((SCHEMAS / "agentruntime-snapshot.schema.json").read_text("utf-8"))["$defs"]


def test_the_statuses_are_the_twenty_of_the_published_schema() -> None:
    assert len(STATUSES) == 20
    assert set(STATUSES) == set(DEFS["taskStatusValue"]["enum"])
    assert {row[0] for row in rows_under("attempt")} <= set(DEFS["statusValue"]["enum"])


def test_the_table_leads_to_known_statuses_and_each_is_reached_from_a_draft() -> None:
    reached, todo = {"draft"}, ["draft"]
    while todo:
        todo += [each for each in TRANSITIONS[todo.pop()] if each not in reached]
        reached.update(todo)
    assert reached == set(STATUSES)


@given(st.lists(st.sampled_from(STATUSES), max_size=12))
def test_no_walk_leads_from_doubt_to_success_without_work_that_was_seen(walk: list[str]) -> None:
    status, seen = "draft", False
    for to in walk:
        if may_become(status, to):
            seen = to == "running" or (seen and to == "completed")
            status = to
            assert to != "completed" or seen


@pytest.mark.parametrize("status", ["lost", "stale", "unknown", "paused", "cancelling"])
def test_doubt_does_not_become_success(status: str) -> None:
    assert not may_become(status, "completed")


def test_a_cancelled_task_is_not_retried_and_an_archived_one_does_not_change() -> None:
    assert TRANSITIONS["cancelled"] == ("archived",)
    assert TRANSITIONS["archived"] == ()
    assert set(STATUSES) == TERMINAL | ACTIVE
    assert not any(may_become("nothing", to) for to in STATUSES)


def test_the_corresponding_states_are_states_of_their_own_tables() -> None:
    lines, sessions, tasks, attempts, _ = zip(*rows_under("line"), strict=True)
    assert set(sessions) == set(SESSION_STATES)
    assert set(tasks) <= set(STATUSES)
    assert set(lines) == {mode.value for mode in Mode}
    assert {each.split()[0] for each in attempts} <= {
        "-",
        *(row[0] for row in rows_under("attempt")),
    }
    held = sessions.index("PAUSED")
    assert (lines[held], tasks[held]) == ("held", "paused")
    assert attempts[held] == "running (`native_status` `held`)"


def test_the_page_of_states_shows_the_tables_of_the_code() -> None:
    page = STATES_PAGE.read_text("utf-8")
    if os.environ.get("WRITE_PAGES"):
        STATES_PAGE.write_text(with_tables(page), "utf-8")
        page = STATES_PAGE.read_text("utf-8")
    assert page == with_tables(page)
