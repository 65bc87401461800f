"""Houses on a disk: one with its line that is closed and opened again, and one with its desk."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from labharness.core.clock import Chance, pause, steady_s, wall_clock_utc
from labharness.lab.config.lab_plan import read_lab
from labharness.lab.house.desk_work import DeskWork
from labharness.lab.house.house import House
from labharness.lab.house.orders import RunFolders
from labharness.lab.house.screening import LabFiles, needs_of
from labharness.protocols.hcp.terms import Rejected
from labharness.work.task.house import HouseJournal
from line_world import LineWorld


def house_of(kept: Any, **more: Any) -> House:
    """Return a house by its set-up, which has home, journal, world, time, ids and what is told."""
    return House(
        kept.journal,
        kept.world,
        kept.world,
        home=kept.home,
        lab="lab",
        now_s=lambda: kept.now_s,
        new_id=kept.mint,
        tell=kept.told.append,
        **more,
    )


class Kept:
    """A house on a disk that can be closed and opened again, and its line."""

    line_of: type[LineWorld] = LineWorld
    journal_of: type[HouseJournal] = HouseJournal

    def __init__(self, home: Path, seed: int = 1) -> None:
        (home / "tasks").mkdir()
        self.rejected: Rejected | None = None
        self.home, self.world, self.now_s, self.minted = home, self.line_of(seed), 1000.0, 0
        self.told: list[str] = []
        self.open()

    def open(self, **more: Any) -> None:
        self.journal = self.journal_of(self.home / "house.sqlite")
        self.house = house_of(
            self,
            receive=lambda message_id, payload, session_id, way: self.rejected,
            **more,
        )

    def mint(self) -> str:
        self.minted += 1
        return f"id-{self.minted}"

    def restart(self) -> None:
        self.journal.close()
        self.open()

    def turn(self) -> None:
        self.now_s += 1.0
        self.house.step()
        self.world.turn()

    def status(self, task_id: str) -> str:
        return self.house.tasks.by_id[task_id].status


class DeskHouse:
    """A house with its desk on a folder, and a line owner that is away."""

    def __init__(self, folder: Path, lab: Path, home: Path | None = None) -> None:
        self.folder, self.lab = folder, lab
        self.home = read_lab(lab).state_dir if home is None else home
        (self.home / "tasks").mkdir(parents=True, exist_ok=True)
        self.journal = HouseJournal(self.home / "house.sqlite")
        self.line = LineWorld(1)
        self.line.up = False
        self.files = LabFiles(lab)
        self.desk = DeskWork(self.files, self.hear, self.hear)
        self.house = House(
            self.journal,
            self.line,
            RunFolders(folder / "runs"),
            home=self.home,
            lab="lab",
            now_s=lambda: wall_clock_utc().timestamp(),
            new_id=Chance(None).uuid4,
            receive=self.files.received,
            data_key=self.files.data_key,
            needs_no_line=self.files.needs_no_line,
            needs=needs_of(read_lab(lab)),
            desk=self.desk,
        )

    def hear(self) -> None:
        """Take the news of a run."""

    def until(self, holds: Callable[[], bool], most_s: float = 30.0) -> None:
        until_s = steady_s() + most_s
        while not holds():
            assert steady_s() < until_s
            pause(0.02)
