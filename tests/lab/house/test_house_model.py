"""Every order of events in a small house ends as a reference says: walks by chance, each seeded."""

import re
from contextlib import nullcontext
from pathlib import Path
from random import Random

import pytest

from house_reference import ENDS, SAYS, Line, Reference, Row
from labharness.core.vocabulary.texts import Text
from labharness.lab.house.house import House
from labharness.lab.house.orders import TaskRefused
from labharness.work.task.commands import CancelTask, TaskActor
from labharness.work.task.house import HouseJournal
from labharness.work.task.kept import read_tasks
from labharness.work.task.queue import PRIORITIES
from line_world import message
from tasks_alone import OLGA

LOOKS, LINKED = 0.7, 0.2  # how often the house looks after an event, and a task waits for another
CALLERS = ("ana", "ben")
KEYS = "klm"
WALKS, EVENTS = 12, 150


class SmallHouse:
    """A house on a disk, its line, and the reference that is told of the same events."""

    def __init__(self, home: Path, seed: int) -> None:
        self.home, self.random = home, Random(seed)
        (self.home / "tasks").mkdir()
        self.line = Line()
        self.truth = Reference(self.line)
        self.now_s, self.minted = 1000.0, 0
        self.events: list[str] = []
        self.open()

    def open(self) -> None:
        self.journal = HouseJournal(self.home / "house.sqlite")
        self.house = House(
            self.journal,
            self.line,
            self.line,
            home=self.home,
            lab="lab",
            now_s=lambda: self.now_s,
            new_id=self.mint,
        )

    def mint(self) -> str:
        self.minted += 1
        return f"id-{self.minted}"

    def event(self) -> None:
        """Let one thing happen; the house looks after most."""
        weighed = {
            "submit": 3,
            "cancel": 1,
            "retry": 2,
            "run_writes": 8,
            "run_is_cold": 3,
            "owner_dies": 1,
            "owner_rises": 2,
            "latch_opens": 2,
            "house_is_killed": 2,
        }
        (name,) = self.random.choices([*weighed], [*weighed.values()])
        self.events.append(name)
        getattr(self, name)()
        if self.random.random() < LOOKS:
            self.look(self.random.choice((0.25, 0.25, 11.0)))

    def row(self) -> Row | None:
        return self.random.choice(self.truth.rows) if self.truth.rows else None

    # ---- callers and an operator

    def submit(self) -> None:
        caller, key = self.random.choice(CALLERS), self.random.choice(KEYS)
        priority, before = self.random.choice(PRIORITIES), self.row()
        links = (before.name,) if before is not None and self.random.random() < LINKED else ()
        known = next((r for r in self.truth.rows if (r.caller, r.key) == (caller, key)), None)
        asked = message(key, priority, caller)
        if known is not None and known.priority != priority:
            with pytest.raises(TaskRefused):
                self.house.submit(asked, links=links)
            return
        kept = self.house.submit(asked, links=links)
        assert kept.fresh is (known is None)
        if known is not None:
            assert kept.task_id == known.name
            return
        row = Row(kept.task_id, caller, priority, "".join(links), key, kept.session_id)
        self.truth.rows.append(row)

    def cancel(self) -> None:
        row, who = self.row(), self.random.choice((*CALLERS, "olga"))
        if row is None:
            return
        actor = OLGA if who == "olga" else TaskActor(who, "caller")
        stranger = who != "olga" and who != row.caller
        code = "unknown_task" if stranger else self.truth.cancel(row)
        told = re.escape(str(Text(f"task.{code}")))
        with pytest.raises(TaskRefused, match=told) if code else nullcontext():
            self.house.give(CancelTask(task_id=row.name, reason="asked"), actor)

    def retry(self) -> None:
        row, run = self.row(), f"again-{self.mint()}"
        if row is None:
            return
        code = self.truth.retry(row, run)
        with pytest.raises(TaskRefused) if code else nullcontext():
            self.house.retry(row.name, run, "again", "olga", resume=False)

    # ---- the line

    def run_writes(self) -> None:
        line = self.line
        may = [what for what, (after, _) in SAYS.items() if line.run and line.stage in after]
        if (line.run, "abort", "") not in line.asked and "aborted" in may:
            may.remove("aborted")
        if may:
            what = self.random.choice(may)
            line.write(what)
            self.truth.said[line.run] = what

    def run_is_cold(self) -> None:
        if self.line.stage in ENDS:
            self.line.run = self.line.stage = ""

    def owner_dies(self) -> None:
        self.line.latched = "left armed" if self.line.run in self.line.disk else self.line.latched
        self.line.up, self.line.run, self.line.stage = False, "", ""

    def owner_rises(self) -> None:
        self.line.up = True

    def latch_opens(self) -> None:
        self.line.latched = ""

    # ---- the house

    def look(self, wait_s: float) -> None:
        self.now_s += wait_s
        self.truth.silent_s += wait_s
        taken = len(self.line.taken)
        self.truth.step()
        self.house.step()
        assert len(self.line.taken) <= taken + 1
        for row in self.truth.rows:
            task = self.house.tasks.by_id[row.name]
            assert (task.status, row) == (row.status, row)
            assert [each.run_id for each in task.attempts] == row.runs
            assert task.status not in ("failed", "timed_out") or task.error_code == row.code
        assert set(self.house.tasks.leases) == {self.truth.lease} - {""}

    def house_is_killed(self) -> None:
        self.house.close()
        self.journal._journal._database.close()
        self.truth.silent_s = 0.0
        self.open()

    def close(self) -> None:
        self.house.close()
        self.journal.close()
        assert read_tasks(self.home / "house.sqlite") == self.house.tasks


@pytest.mark.promise(61)
@pytest.mark.promise(63)
@pytest.mark.parametrize("seed", range(WALKS))
def test_each_order_of_events_in_a_small_house_ends_as_the_reference_says(
    tmp_path: Path, seed: int
) -> None:
    small = SmallHouse(tmp_path, seed)
    for _ in range(EVENTS):
        small.event()
    small.close()
