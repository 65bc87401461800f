"""``labharness serve`` as a process of its own, which tests start, kill and end."""

import base64
import http.client
import json
import os
import re
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from broker import PASSWORD
from commands import COMMAND, say
from up_lab import until

PACED = "4"  # times real time: faster, a loaded machine's line trips, as its polls come late


class Service:
    """``labharness serve`` of one lab; it begins at once, and waits until it is connected.

    Args:
        lab: The lab file.
        url: Of the broker, with the lab's account.
        runs: Folder of the runs.
        speed: Lab seconds per second, or ``fast``.
        options: More words of the command.
    """

    def __init__(self, lab: Path, url: str, runs: Path, speed: str, *options: str) -> None:
        self.lab, self.runs = lab, runs
        self.env = {**os.environ, "LABHARNESS_BROKER": url}
        self._options = ("--speed", speed, *options)
        self._log = runs.parent / "serve.log"
        self.process = self.start()

    def start(self) -> "subprocess.Popen[bytes]":
        before = self.connections()
        with self._log.open("ab") as log:
            process = subprocess.Popen(
                [
                    *(*COMMAND, "serve", "--lab", str(self.lab), "--runs", str(self.runs)),
                    *self._options,
                ],
                env=self.env,
                stdin=subprocess.DEVNULL,
                stderr=log,
            )
        self.process = process
        until(lambda: self.connections() > before or process.poll() is not None)
        assert process.poll() is None, self.said()
        return process

    def connections(self) -> int:
        return self.said().count("connected; ")

    def said(self) -> str:
        return self._log.read_text() if self._log.exists() else ""

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(30)

    def end(self) -> None:
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(60) == 0, self.said()

    def page(
        self, path: str, account: str = "", password: str = PASSWORD, **headers: str
    ) -> tuple[int, bytes]:
        """Return the status and the content of one of its pages, asked for by an account."""
        found = re.search(r"http://(127\.0\.0\.1:\d+)", self.said())
        assert found is not None, self.said()
        if account:
            coded = base64.b64encode(f"{account}:{password}".encode()).decode()
            headers["Authorization"] = f"Basic {coded}"
        with closing(http.client.HTTPConnection(found[1], timeout=30)) as asking:
            asking.request("GET", path, headers=headers)
            answer = asking.getresponse()
            return answer.status, answer.read()

    def owner(self) -> int:
        return int(json.loads(say("status", "--lab", self.lab, "--json").out)["line_owner"]["pid"])

    def down(self) -> None:
        """End it and its line owner, whatever either does."""
        if self.process.poll() is None:
            self.process.terminate()
            self.process.wait(60)
        say("down", "--lab", self.lab, "--stop")
        until(self._is_down)

    def _is_down(self) -> bool:
        status = json.loads(say("status", "--lab", self.lab, "--json").out)
        return status["line_owner"] is None


def approve(lab: Path, name: str = "Olga") -> None:
    request = say("approvals", "list", "--lab", lab).out.split()[0]
    said = say(
        *("approvals", "approve", request, "--name", name, "--reason", "looked at it"),
        *("--lab", lab),
    )
    assert said.code == 0, said.err


@contextmanager
def services(url: str, runs: Path) -> Iterator[Callable[..., Service]]:
    """Return what begins a service at a broker; all of them are ended behind the block."""
    made: list[Service] = []

    def begin(lab: Path, speed: str = "fast", *options: str) -> Service:
        made.append(Service(lab, url, runs, speed, *options))
        return made[-1]

    yield begin
    for each in made:
        each.down()
