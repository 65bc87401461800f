"""A small client of a lab's processes loads nothing that drives, simulates or judges a line."""

import json
import shlex
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from labharness.instruments.link import local
from labharness.lab import read_address
from labharness.work.task.house import HouseJournal
from labharness.work.task.kept import HOUSE_JOURNAL
from rig import EXAMPLE, SHORT_LINE

HEAVY = (
    "numpy",
    "pydantic",
    "labharness_drivers",
    "labharness_simulators",
    "labharness.instruments.driver",
    "labharness.instruments.simulation",
    "labharness.line",
    "labharness.safety.kernel",
    "labharness.lab.config.lab_plan",
)
DRIVES = (
    "labharness.lab.operate.attend",
    "labharness.lab.wiring.runs",
    "labharness.work.desk.desk",
)
RUN = "import sys; from labharness.faces.cli import main; code = main(sys.argv[1:])\n" + (
    "sys.stderr.write(f'{code} ' + ' '.join(sys.modules))"
)
STATUS: Mapping[str, Any] = {
    "ok": True,
    "state": "RUNNING",
    "mode": "on",
    "trip": None,
    "step": "",
    "readings": {"argon.flow": [1.0, "sccm", 0.1]},
    "pid": 1,
    "run_id": "",
    "runs": "runs",
    "tasks": {},
    "failure": "",
    "leaving": False,
    "said": "held",
    "procedure": "vent",
    "unverified": [],
    "latched": False,
    "task_id": "1",
    "fresh": True,
    "rejected": False,
}


@contextmanager
def answering(path: Path) -> Iterator[None]:
    """Serve a socket that has one answer to every request."""
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        server.listen()

        def serve() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                with connection, connection.makefile("rb") as lines:
                    for _ in lines:
                        connection.sendall(json.dumps(STATUS).encode() + b"\n")

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        try:
            yield
        finally:
            server.shutdown(socket.SHUT_RDWR)
            thread.join()


def loaded(command: list[str], heavy: tuple[str, ...]) -> tuple[str, list[str]]:
    """Run a command; return its exit code, and what it loaded of what is heavy."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    code, *modules = done.stderr.splitlines()[-1].split()
    return code, [each for each in modules if each.startswith(heavy)]


ALONE = ("status", "down", "stop", "hold", "resume", "tasks list", "jobs list", "alarms list")
ANSWERED = (
    "status",
    "stop --reason x",
    "hold",
    "resume",
    "watch --for 1 argon",
    "watch --for 1 --json",
    "safe",
    f"submit {shlex.quote(str(EXAMPLE))}",
    "tasks list --json",
)


@pytest.mark.parametrize("words", [*ALONE, *(f"{each} !" for each in ANSWERED)])
def test_a_small_client_loads_nothing_that_drives_or_simulates(
    words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LABHARNESS_STATE", str(tmp_path))
    home = read_address(SHORT_LINE).state_dir
    home.mkdir(parents=True)
    HouseJournal(home / HOUSE_JOURNAL).close()
    asked = shlex.split(words.removesuffix(" !"))
    command = [sys.executable, "-c", RUN, *asked, "--lab", str(SHORT_LINE)]

    def found() -> tuple[str, list[str]]:
        return loaded(command, HEAVY)

    if words.endswith("!"):
        sockets = (local.CONTROL, local.HOUSE, local.OWNER)
        with (
            answering(home / sockets[0]),
            answering(home / sockets[1]),
            answering(home / sockets[2]),
        ):
            assert found() == ("0", [])
    else:
        assert found()[1] == []


def test_a_reading_without_an_owner_loads_nothing_that_only_drives_a_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LABHARNESS_STATE", str(tmp_path))
    command = [sys.executable, "-c", RUN, "read", "furnace.temperature", "--lab", str(SHORT_LINE)]
    assert loaded(command, ("numpy", *DRIVES)) == ("0", [])
