"""The table of operations: what one row says is seen in help, page and rights."""

import subprocess
import sys
from importlib import import_module

import pytest

from commands import say
from labharness.core.operations import GROUPS, ROOMS, operations, option, steer
from labharness.faces.cli import MODULES, module_of
from labharness.work.task import jobs
from labharness.work.task import operations as of_tasks
from labharness.work.task.commands import COMMANDS, MAY, rights
from pages import command_line

NEWCOMERS_MAX = 10
LISTED = (
    "import sys; from labharness.core.operations import operations; print(len(operations()))\n"
    "print(*(name for name in sys.modules if name.startswith('labharness')))"
)


def test_an_operation_added_in_one_file_is_in_help_page_and_rights(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    added = steer(
        "mend",
        "mend what is known of a task",
        option("--how", "HOW", "the way to mend it", required=True),
        where="house",
        group="tasks",
        right="caller",
        request="fail_task",
    )
    rows = (*of_tasks.OPERATIONS, added)
    monkeypatch.setattr(of_tasks, "OPERATIONS", rows)
    assert "    mend          mend what is known of a task\n" in say("--help").out
    assert "--how HOW     the way to mend it" in say("mend", "--help").out
    assert say("mend").code == 64
    assert "usage: labharness mend [-h] --how HOW" in command_line()
    assert rights(rows)["fail_task"] == {"caller"}
    assert MAY["fail_task"] == {"operator", "runtime"}
    assert rights(rows)["pause_task"] == MAY["pause_task"]


def test_each_row_is_whole() -> None:
    rows = operations()
    above = {name.rpartition(" ")[0] for name in rows} - {""}
    for name, each in rows.items():
        assert bool(each.kind) != (name in above), "a heading does nothing, all else something"
        assert (each.group in GROUPS) != (" " in name), name
        assert not each.told.endswith("."), name
        assert all(one.name.startswith("--") or one.shown for one in each.each()), name
    assert sum(each.group == "first" for each in rows.values()) <= NEWCOMERS_MAX
    requests = [each.request for each in rows.values() if each.request]
    assert len(set(requests)) == len(requests)
    assert jobs.CreateJob.word in COMMANDS, "its module adds it"
    assert set(requests) <= set(COMMANDS)


def test_each_name_stands_in_one_room_and_is_carried_out_by_one_module() -> None:
    rows = operations()
    stated = [
        one for room in ROOMS for one in import_module(f"labharness.{room}.operations").OPERATIONS
    ]
    assert len(stated) == len(rows), "no name stands twice"
    count = subprocess.run([sys.executable, "-c", LISTED], capture_output=True, text=True).stdout
    listed, loaded = count.splitlines()
    assert int(listed) == len(rows)
    packages = {"labharness", "labharness.core", "labharness.core.on_demand"}
    for room in (*ROOMS, "core"):
        parts = f"labharness.{room}.operations".split(".")
        packages |= {".".join(parts[:n]) for n in range(1, len(parts) + 1)}
    assert set(loaded.split()) <= packages, "listing all rows loads no room"
    for name in rows:
        first, verb = name.replace("-", "_").partition(" ")[::2]
        carrier = import_module(f"labharness.faces.cli.{module_of(first)}")
        work = getattr(carrier, f"{first}_{verb}", None) or getattr(carrier, first, None)
        assert (work is not None and work.__module__) == carrier.__name__ or not rows[name].kind
    words = {name.partition(" ")[0].replace("-", "_") for name in rows}
    assert words >= {name for own in MODULES.values() for name in own}
