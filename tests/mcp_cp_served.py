"""A server of MCP-CP as a process, with a model that is scripted over its wire."""

import json
import os
import re
import shutil
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import chapter_nine
from commands import COMMAND
from mcp_cp_client import McpCpClient
from up_lab import until

HOLD_S_MAX = 60.0
ABORTED = 3
Turn = Mapping[str, Any] | Callable[[], Mapping[str, Any]]


class Script:
    """The answers of a model, by the words of its user.

    Attributes:
        turns: The answers to each input, the first first.
        bodies: Its requests.
        words: The input that each of them is about.
        go: Whether a model that is held may answer.
    """

    def __init__(self) -> None:
        self.turns: dict[str, Sequence[Turn]] = {}
        self.bodies: list[dict[str, Any]] = []
        self.words: list[str] = []
        self.go = threading.Event()

    def __call__(self, body: dict[str, Any]) -> Mapping[str, Any]:
        self.bodies.append(body)
        said = body["messages"]
        users = [(at, each["content"]) for at, each in enumerate(said) if each["role"] == "user"]
        at, words = [each for each in users if each[1] in self.turns][-1]
        self.words.append(words)
        turn = self.turns[words][sum(each["role"] == "assistant" for each in said[at:])]
        found: Mapping[str, Any] = turn() if callable(turn) else turn
        return found

    def held(self) -> Mapping[str, Any]:
        """Return an answer once it may go."""
        assert self.go.wait(HOLD_S_MAX)
        return {"text": "At last."}

    def until_asked(self, times: int) -> None:
        """Wait until the model was asked so often, about whatever input."""
        until(lambda: len(self.bodies) >= times)

    def asked(self, words: str) -> int:
        """Return how often the model was asked about an input."""
        return self.words.count(words)


class McpCpServer:
    """``labharness mcp-cp --websocket`` as a process."""

    def __init__(self, lab: Path, state: Path, *more: str) -> None:
        self.state = state
        self.place, self.said = state / "mcp-cp.json", state / "mcp-cp.err"
        packages = state / "packages"
        if not packages.exists():
            about = packages / "chapter_nine-1.0.dist-info"
            about.mkdir(parents=True)
            about.joinpath("METADATA").write_text(
                "Metadata-Version: 2.1\nName: chapter-nine\nVersion: 1.0\n", "utf-8"
            )
            about.joinpath("entry_points.txt").write_text(chapter_nine.POINTS, "utf-8")
            shutil.copy(chapter_nine.__file__, packages)
        self.command = [*COMMAND, "mcp-cp", "--lab", str(lab), "--websocket", "0", *more]
        path = os.pathsep.join(filter(None, (str(packages), os.environ.get("PYTHONPATH"))))
        self._environment = {**os.environ, "PYTHONPATH": path}
        self.start()

    def start(self) -> None:
        self.place.unlink(missing_ok=True)  # of one that was killed
        with self.said.open("a") as said:
            self.process = subprocess.Popen(
                self.command, stdin=subprocess.DEVNULL, stderr=said, env=self._environment
            )
        until(lambda: self.place.exists() or self.process.poll() is not None)
        assert self.process.poll() is None, self.said.read_text()

    @property
    def address(self) -> str:
        found: str = json.loads(self.place.read_text())["address"]
        return found

    def client(self, context_id: str, caller_id: str = "operator", **options: Any) -> McpCpClient:
        return McpCpClient(self.address, caller_id, context_id, **options)

    def file(self, context_id: str) -> Path:
        return self.state / "dialogues" / f"{context_id}.jsonl"

    def ran(self, city: str) -> int:
        """Return how often the tool of chapter 9 was carried out for a city."""
        path = self.state / chapter_nine.RAN
        return path.read_text().splitlines().count(city) if path.exists() else 0

    def __enter__(self) -> "McpCpServer":
        return self

    def __exit__(self, *ended: object) -> None:
        self.end()

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(HOLD_S_MAX)

    def end(self) -> None:
        if self.process.poll() is None:
            self.process.terminate()
            assert self.process.wait(HOLD_S_MAX) == ABORTED, self.said.read_text()
        assert not self.place.exists()
        said = self.said.read_text()
        assert not re.search("broken off|was not taken|ASGI", said), said


@contextmanager
def model_in(lab: Path, script: Script) -> Iterator[None]:
    """Have a lab file name a model that is a script, which goes on at the end of the block."""
    from labharness.faces.testing.model_wire import model_at_port

    with model_at_port(script) as url:
        lab.write_text(f'{lab.read_text()}\n[model]\nurl = "{url}"\nname = "m"\n', "utf-8")
        try:
            yield
        finally:
            script.go.set()
