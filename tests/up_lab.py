"""A lab that is up, as real processes: what is said of it, and how its processes are killed."""

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

from commands import say
from labharness.core.clock import pause, steady_s

WAIT_S_MAX = 90.0


class Up:
    """A lab that is up: what is said of it, and how its processes are killed."""

    def __init__(self, lab: Path, runs: Path) -> None:
        self.lab, self.runs = lab, runs
        self.start()

    def start(self) -> None:
        said = say("up", "--lab", self.lab, "--runs", self.runs)
        assert said.code == 0, said.err

    def kill(self, what: str) -> None:
        os.kill(self.status()[what]["pid"], signal.SIGKILL)
        until(lambda: self.status()[what] is None)

    def status(self) -> dict[str, Any]:
        said = say("status", "--lab", self.lab, "--json")
        found: dict[str, Any] = json.loads(said.out)
        return found

    def down(self) -> bool:
        return self.status() == {"line_owner": None, "house": None}

    def submit(self, task: Path, *more: str) -> str:
        said = say("submit", task, "--lab", self.lab, "--json", *more)
        assert said.code == 0, said.err
        return str(json.loads(said.out)["task_id"])

    def task(self, task_id: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(
            say("tasks", "show", task_id, "--lab", self.lab, "--json").out
        )
        return found

    def is_(self, task_id: str, *statuses: str) -> bool:
        return self.task(task_id)["status"] in statuses


def until(true: Callable[[], bool], wait_s: float = WAIT_S_MAX) -> None:
    end_s = steady_s() + wait_s
    while not true():
        assert steady_s() < end_s
        pause(0.1)
