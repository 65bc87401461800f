"""What tests of alarms share: an armed line with its alarms, and servers that hear of them."""

import asyncio
import json
import re
import socket
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from commands import edited_lab
from labharness.core.clock import Chance, Clock, PacedLoop, VirtualLoop, run
from labharness.journal import SqliteJournal
from labharness.journal.reading import read
from labharness.lab import Lab, LabPlan
from labharness.line import LineAlarms
from labharness.safety.alarm.outlets import AlarmFile, AlertChannel, Channels, NullSenders
from rig import SAFE_TABLE, approved_copy

Act = Callable[[Lab], None]


@dataclass
class Watched:
    """An armed line and its alarms, while or after something happened to it."""

    lab: Lab
    alarms: LineAlarms
    folder: Path
    _closed: bool = False

    async def close(self) -> None:
        """Close the line, and have all that it told on the disk."""
        if not self._closed:
            self._closed = True
            await self.lab.line.close()
            journal = self.lab.line.journal
            assert isinstance(journal, SqliteJournal)
            journal.commit()

    def journaled(self, kind: str) -> list[dict[str, Any]]:
        rows = read(self.folder / "journal.sqlite")
        return [{**each.body, "at_s": each.at_s} for each in rows if each.kind == kind]

    def calls(self) -> list[str]:
        return [each["alarm"] for each in self.journaled("alarm") if each["called"]]

    async def until(self, seen: Callable[[], object], within_s: float) -> None:
        loop = asyncio.get_running_loop()
        end_s = loop.time() + within_s
        while not seen():
            assert loop.time() < end_s, "it did not come"
            await asyncio.sleep(0.02)


def journal_in(folder: Path) -> SqliteJournal:
    folder.mkdir(exist_ok=True)
    return SqliteJournal(folder / "journal.sqlite")


@asynccontextmanager
async def watching(
    plan: LabPlan,
    folder: Path,
    channels: Sequence[AlertChannel] = (AlertChannel(name="first"),),
    senders: Channels | None = None,
) -> AsyncIterator[Watched]:
    """Arm a line, with its alarms wired, and close it at the end."""
    with journal_in(folder) as journal:
        clock = Clock(asyncio.get_running_loop())
        lab = Lab(plan, clock=clock, chance=Chance(1), journal=journal)
        alarms = LineAlarms(
            line=lab.line,
            clock=lab.clock,
            file=AlarmFile(plan.state_dir / "alarms.jsonl"),
            channels=channels,
            senders=senders or NullSenders(),
            title=plan.file.lab.title,
        )
        watched = Watched(lab, alarms, folder)
        try:
            await lab.line.open()
            await lab.line.arm(SAFE_TABLE)
            lab.line.start()
            yield watched
        finally:
            await watched.close()


def watch(
    plan: LabPlan,
    folder: Path,
    work: Callable[[Watched], Awaitable[None]],
    *,
    speed: float | None = None,
    afterwards: Callable[[Watched], Awaitable[None]] | None = None,
    **wired: Any,
) -> Watched:
    """Let ``work`` happen to an armed line; close it, and go on."""

    async def main() -> Watched:
        async with watching(plan, folder, **wired) as watched:
            await work(watched)
            await watched.close()
            if afterwards is not None:
                await afterwards(watched)
        return watched

    return run(main(), VirtualLoop() if speed is None else PacedLoop(speed))


@dataclass
class Hears:
    """A server that people would read: what it was sent, and when it is to be silent."""

    url: str
    said: list[dict[str, Any]] = field(default_factory=list)
    close: Callable[[], None] = lambda: None

    def titles(self) -> list[str]:
        return [str(each["title"]) for each in self.said]


@contextmanager
def server() -> Iterator[Hears]:
    """A real HTTP server on a port of its own."""
    heard = Hears("")

    class Answers(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            heard.said.append(json.loads(body))
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            """Keep quiet."""

    httpd = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    heard.url = f"json://127.0.0.1:{httpd.server_port}/?token=hush"
    thread = threading.Thread(target=httpd.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()

    def close() -> None:
        if thread.is_alive():
            httpd.shutdown()
            httpd.server_close()
            thread.join()

    heard.close = close
    try:
        yield heard
    finally:
        close()


@contextmanager
def silent_server() -> Iterator[str]:
    """A server that takes connections and never answers."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen(8)
        yield f"json://127.0.0.1:{listening.getsockname()[1]}/?token=hush"


ESTOP = "emergency_stop_loop/box.estop_closed"


def after(act: Act, minutes: float) -> Callable[[Watched], Awaitable[None]]:
    async def work(watched: Watched) -> None:
        act(watched.lab)
        await asyncio.sleep(minutes * 60)

    return work


def warns_of_pressure(folder: Path) -> tuple[LabPlan, str]:
    """A line on which too much pressure only warns, and the name of that alarm."""

    def edit(text: str) -> str:
        hard = 'max = 0.15\nunit = "atm gauge"\nhard_limit = '
        return text.replace(f"{hard}true", f"{hard}false")

    return approved_copy(folder, edit=edit), "over_pressure/gauge.pressure/warning"


def quick_lab(folder: Path) -> Path:
    """Return the short line without what takes the spectrometer long to prepare."""
    lab = edited_lab(folder, "[operator]", "[operator]")
    text = lab.read_text("utf-8")
    lab.write_text(re.sub(r"prepare = \[\n.*mono_open.*\n\]\n", "", text), "utf-8")
    return lab
