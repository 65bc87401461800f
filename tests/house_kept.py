"""A house on a disk that can be closed and opened again, and its line."""

from pathlib import Path
from typing import Any

from labharness.lab.house.house import House
from labharness.protocols.hcp.terms import Rejected
from labharness.work.task.house import HouseJournal
from line_world import LineWorld

__all__ = ["Kept", "house_of"]


def house_of(kept: Any, **more: Any) -> House:
    """Return a house by its set-up, which has home, journal, world, time, ids and what is told."""
    return House(
        kept.journal,
        kept.world,
        kept.world,
        kept.home,
        lab="lab",
        now_s=lambda: kept.now_s,
        new_id=kept.mint,
        tell=kept.told.append,
        **more,
    )


class Kept:
    """A house on a disk that can be closed and opened again, and its line."""

    def __init__(self, home: Path) -> None:
        (home / "tasks").mkdir()
        self.rejected: Rejected | None = None
        self.home, self.world, self.now_s, self.minted = home, LineWorld(1), 1000.0, 0
        self.told: list[str] = []
        self.open()

    def open(self, **more: Any) -> None:
        self.journal = HouseJournal(self.home / "house.sqlite")
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
