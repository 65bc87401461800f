"""Stories of a house in which callers, an operator, a line owner and the house fail by chance."""

from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

from labharness.lab.house.house import House
from labharness.lab.house.intake import ReceivedSubmission, Submitted
from labharness.lab.house.orders import RunOrder
from labharness.protocols.hcp.codec import HcpMessage, decode
from labharness.protocols.hcp.messages import TaskSubmit
from labharness.protocols.hcp.terms import Rejected
from labharness.work.admission.confidential import Way
from labharness.work.task.commands import CancelTask
from labharness.work.task.facts import TaskFact
from labharness.work.task.house import Draft, HouseJournal, PendingRecord
from labharness.work.task.states import TERMINAL
from line_world import LineWorld, message
from tasks_alone import OLGA

TURNS_MAX = 400


class Killed(BaseException):
    """SIGKILL, in one process: nothing catches it."""


class Fuse:
    """Kills at a chosen instant: each point at which a fact or an order leaves is one."""

    def __init__(self) -> None:
        self.left = -1

    def point(self) -> None:
        self.left -= 1
        if self.left == 0:
            raise Killed


class Mortal(HouseJournal):
    """A journal before and after each of whose writes the house may die."""

    def __init__(self, path: Path, fuse: Fuse) -> None:
        self._fuse = fuse
        super().__init__(path)

    def _kept(self, facts: Any, leads_to: Any, now_s: float) -> tuple[TaskFact, ...]:
        if not facts:
            return ()
        self._fuse.point()
        kept = super()._kept(facts, leads_to, now_s)
        self._fuse.point()
        return kept

    def append_pending(self, draft: Draft, record: PendingRecord | None) -> None:
        self._fuse.point()  # its record stands with the submissions, and the caller is not told
        super().append_pending(draft, record)
        self._fuse.point()

    def flush(self) -> None:
        if self.pending_count:
            self._fuse.point()
            super().flush()
            self._fuse.point()

    def die(self) -> None:
        self._journal._database.close()


class MortalDoor:
    """The line owner; the house may die before and after each order."""

    def __init__(self, world: LineWorld, fuse: Fuse) -> None:
        self._world, self._fuse = world, fuse
        self.status, self.held = world.status, world.held
        self.latch_reason = world.latch_reason

    def begin(self, order: RunOrder) -> None:
        self._fuse.point()
        self._world.begin(order)
        self._fuse.point()

    def ask(self, run_id: str, do: str, reason: str, by: str = "") -> None:
        self._fuse.point()
        self._world.ask(run_id, do, reason, by)
        self._fuse.point()

    def confirm(self, run_id: str, step: str, by: str) -> str:
        return self._world.confirm(run_id, step, by)


class Story:
    """Callers, an operator, a line owner and a house, each of which fails by chance."""

    def __init__(self, home: Path, seed: int) -> None:
        self.random = Random(seed)
        self.world = LineWorld(seed)
        self.fuse = Fuse()
        self.home = home
        self.now_s = 1000.0
        self.minted = 0
        self.acknowledged: list[str] = []
        self.guards = 0
        (home / "tasks").mkdir(parents=True)
        self.open()

    def open(self) -> None:
        self.journal = Mortal(self.home / "house.sqlite", self.fuse)
        self.house = House(
            self.journal,
            MortalDoor(self.world, self.fuse),
            self.world,
            home=self.home,
            lab="lab",
            now_s=lambda: self.now_s,
            new_id=self.mint,
            receive=self.receive,
        )

    def receive(
        self, message_id: str, payload: TaskSubmit, session_id: str, way: Way
    ) -> Rejected | HcpMessage | None:
        """Answer nothing at once; a story whose callers are told of their tasks may do so."""
        return None

    def mint(self) -> str:
        self.minted += 1
        return f"id-{self.minted}"

    def alive(self, work: Callable[[], object]) -> None:
        """Do something with the house, which may be killed at it and is then opened again."""
        try:
            work()
        except Killed:
            self.journal.die()
            self.open()

    def turn(self) -> None:
        self.now_s += self.random.choice((0.2, 1.0, 30.0))
        if self.random.random() < 0.3:
            self.fuse.left = self.random.randint(1, 6)
        chance = self.random.random()
        if chance < 0.15 and len(self.acknowledged) < 6:
            self.alive(self.submit)
        elif chance < 0.2:
            self.alive(self.cancel)
        elif chance < 0.24:
            self.world.die()
        elif chance < 0.4:
            self.world.rise()
        elif chance < 0.5:
            self.world.latched = ""  # a person resets it
        elif chance < 0.56:
            self.guards += self.world.armed
            self.world.kill_guard()
        self.world.turn()
        self.alive(self.house.step)
        self.check_leases()

    def check_leases(self) -> None:
        """See that the line is leased to one run: the one at work, until its line is free."""
        leases = self.house.tasks.leases
        assert len(leases) <= 1
        status = self.world.status()
        if status is not None and status.run_id:
            assert set(leases) == {status.run_id}

    via = ""  # the service whose caller submits

    def submit(self) -> None:
        asked = message(f"key-{len(self.acknowledged)}", self.random.choice(PRIORITIES))
        alone = self.random.random() < 0.5
        for _ in range(3):  # a caller that gets no answer asks again, with the same key
            try:
                kept = self.house.submit(asked, via=self.via) if alone else self.served(asked)
            except Killed:
                self.journal.die()
                self.open()
                continue
            self.acknowledged.append(kept.task_id)
            return

    def served(self, asked: bytes) -> Submitted:
        """Submit as a service does: its caller is told before the house's journal is written."""
        received = ReceivedSubmission(asked, decode(asked), via=self.via)
        (kept,) = self.house.submit_all((received,))
        assert isinstance(kept, Submitted), kept
        return kept

    def cancel(self) -> None:
        active = [t for t in self.house.tasks.by_id.values() if t.status not in TERMINAL]
        if active:
            task = self.random.choice(active)
            if not task.cancel_requested and task.status != "lost":
                self.house.give(CancelTask(task_id=task.task_id, reason="asked"), OLGA)

    def settle(self) -> None:
        """Let all come to its end, with nobody failing any more."""
        self.fuse.left = -1
        for _ in range(TURNS_MAX):
            if self.world.status() is None:
                self.world.rise()
            self.world.latched = ""
            self.now_s += 1.0
            self.world.turn()
            self.house.step()
            ended = all(each.status in TERMINAL for each in self.house.tasks.by_id.values())
            if ended and not self.house.tasks.leases:
                return


PRIORITIES = ("low", "normal", "high", "urgent")
