"""A simulated lab served by a process of its own, for tests that meet it over real links."""

import json
import select
import signal
import subprocess
from pathlib import Path
from typing import Any

import serial

from commands import COMMAND
from labharness.instruments.simulation.control import ask
from rig import SHORT_LINE

READY_S_MAX = 30.0
ANSWER_S_MAX = 10.0
END_S_MAX = 10.0


class Served:
    """One `labharness simulate`, ready when it is made, ended at the end of a ``with``.

    Attributes:
        status: What its ready line said.
    """

    def __init__(self, folder: Path, *options: object, lab: Path = SHORT_LINE) -> None:
        self.folder = folder
        command = [*COMMAND, "simulate", lab, "--folder", folder, *options]
        self.process = subprocess.Popen(
            [str(each) for each in command],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        if self.process.stdout is None or self.process.stderr is None:
            raise RuntimeError("a pipe was asked for")
        there, _, _ = select.select([self.process.stdout], [], [], READY_S_MAX)
        line = self.process.stdout.readline() if there else b""
        if not line:
            self.process.kill()
            raise RuntimeError(self.process.communicate()[1].decode())
        self.status: dict[str, Any] = json.loads(line)

    def __enter__(self) -> "Served":
        return self

    def __exit__(self, *ended: object) -> None:
        self.end()

    @property
    def lab_file(self) -> Path:
        """The lab file for the harness's side."""
        return Path(self.status["lab_file"])

    def ask(self, what: str, **request: Any) -> dict[str, Any]:
        """Ask the control port."""
        return ask(self.status["control"], {"ask": what, **request}, ANSWER_S_MAX)

    def truth(self) -> dict[str, Any]:
        """What is really so in the plant."""
        found: dict[str, Any] = self.ask("truth")["truth"]
        return found

    def log(self, port: str, since: int = 0) -> list[tuple[int, int, str, bytes]]:
        """The wire log of one port: monotonic ns, client, event, bytes."""
        found = []
        while (answer := self.ask("bytes", since=since))["rows"]:
            since = answer["next"]
            found += [row[1:] for row in answer["rows"]]
        return [(at, who, what, bytes.fromhex(h)) for at, p, who, what, h in found if p == port]

    def serial(self, port: str, timeout_s: float = 1.0) -> serial.Serial:
        """Open a port as any program would."""
        return serial.Serial(self.status["ports"][port], 9600, timeout=timeout_s, exclusive=True)

    def address(self, port: str) -> tuple[str, int]:
        """Host and number of a TCP port."""
        host, _, number = self.status["ports"][port].rpartition(":")
        return host, int(number)

    def end(self, number: signal.Signals = signal.SIGTERM) -> int:
        """End it; return its exit code."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        self.process.communicate(timeout=END_S_MAX)
        return self.process.returncode
