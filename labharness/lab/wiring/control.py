"""The control socket: how another terminal reaches the process that owns a line.

A local socket in the lab's state directory, for its owner's account only. One JSON object a
line each way; a request is answered before the next one is. Only a run whose time is real, or N
times real, serves it: in virtual time no person keeps up. Windows has no such socket in Python:
there a run is stopped at its own terminal.
"""

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from labharness.core.clock import Clock, PacedLoop, run
from labharness.core.errors import LabError
from labharness.core.vocabulary.texts import from_json
from labharness.instruments.link import local
from labharness.instruments.link.conversation import LINE_BYTES_MAX, line_of
from labharness.lab.config.lab_plan import LabPlan, read_lab
from labharness.lab.config.lease import lease_within
from labharness.safety.guard.service import LOOK_S, DoorPaths

CLIENTS_MAX = 8
IDLE_S_MAX = 600.0  # a terminal that is silent for so long is disconnected
WRITE_S_MAX = 10.0  # and so is one that does not take its answer
ENDING_S = 5.0  # longest wait for a process before this one, whose socket has ended, to end
LAST_S_MAX = 2.0  # for answers on their way when the line's owner ends

QUESTIONS = ("read", "status")  # any other request is carried out without a listener too

Answer = Callable[[Mapping[str, Any]], Awaitable[dict[str, Any]]]


@dataclass(eq=False)
class ControlSocket:
    """Serves one line while it is owned.

    Attributes:
        state_dir: The lab's state directory; the process that serves holds its ``line.lock``.
        answer: Returns the answer to one request.
        speed: Lab seconds a real second; waits are in real time.
        name: Of the socket's file.
        line_bytes_max: Size (bytes) of the largest request.
        shared: The group of the state directory may connect too, if it may use that directory.

    Entered, it raises ``OSError`` where the socket cannot be made: no such thing on this system, or
    its path is too long.
    """

    state_dir: Path
    answer: Answer
    speed: float
    name: str = local.CONTROL
    line_bytes_max: int = LINE_BYTES_MAX
    shared: bool = False

    def __post_init__(self) -> None:
        self._server: asyncio.Server | None = None
        self._clients: dict[asyncio.StreamWriter, None] = {}
        self._answers: set[asyncio.Task[dict[str, Any]]] = set()

    async def __aenter__(self) -> "ControlSocket":
        path = self.state_dir / self.name
        made = local.listening_at(path, shared=self.shared)  # we hold the lock
        self._server = await asyncio.start_server(self._serve, sock=made, limit=self.line_bytes_max)
        return self

    async def __aexit__(self, *ended: object) -> None:
        if self._server is not None:
            self._server.close()
            if self._answers:  # a terminal that made the line safe, and so ended its owner, is told
                await asyncio.wait(self._answers, timeout=LAST_S_MAX * self.speed)
            for each in list(self._clients):
                each.close()
            (self.state_dir / self.name).unlink(missing_ok=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._clients) >= CLIENTS_MAX:  # a stop must find a door: the longest idle goes
            idle = next(iter(self._clients))
            del self._clients[idle]
            idle.transport.abort()
        heard = asyncio.create_task(reader.readuntil())
        try:
            while True:
                self._clients.pop(writer, None)
                self._clients[writer] = None  # the one heard last stands last
                async with asyncio.timeout(IDLE_S_MAX * self.speed):
                    text = await heard
                heard = asyncio.create_task(reader.readuntil())
                answer = await self._answer_to(
                    text, heard, local.account_behind(writer.get_extra_info("socket"))
                )
                if answer is None:
                    return
                async with asyncio.timeout(WRITE_S_MAX * self.speed):
                    writer.write(line_of(answer))
                    await writer.drain()
        except asyncio.LimitOverrunError:
            said = {"ok": False, "error": f"a request has at most {self.line_bytes_max} bytes"}
            writer.write(line_of(said))
        except (asyncio.IncompleteReadError, TimeoutError, ConnectionError):
            pass  # it hung up, or was asleep
        finally:
            _hung_up(heard)  # or its end would stay unknown
            heard.cancel()
            self._clients.pop(writer, None)
            writer.close()

    async def _answer_to(
        self, text: bytes, heard: asyncio.Task[bytes], account: str
    ) -> dict[str, Any] | None:
        """Return the answer; ``None`` to a question whose asker has hung up meanwhile."""
        try:
            asked = from_json(text)
        except (ValueError, RecursionError):
            asked = None
        if not isinstance(asked, dict):
            return {"ok": False, "error": "a request is one JSON object on one line"}
        answering = asyncio.create_task(self._answered({**asked, "account": account}))
        if asked.get("do") not in QUESTIONS:
            self._answers.add(answering)
            answering.add_done_callback(self._answers.discard)
            return await answering
        await asyncio.wait((answering, heard), return_when=asyncio.FIRST_COMPLETED)
        if not answering.done() and _hung_up(heard):
            answering.cancel()  # or it would wait in the queue of its port without a listener
            return None
        return await answering

    async def _answered(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        try:
            return await self.answer(asked)
        except LabError as why:
            return {"ok": False, "error": str(why), "code": why.code}
        except Exception as why:  # noqa: BLE001 - a terminal's question must not end what runs
            return {"ok": False, "error": f"internal failure: {why!r}"}


def _hung_up(heard: asyncio.Task[bytes]) -> bool:
    """Return whether the other side has gone."""
    ended = heard.exception() if heard.done() and not heard.cancelled() else None
    return isinstance(ended, asyncio.IncompleteReadError | ConnectionError)


@asynccontextmanager
async def served(
    state_dir: Path,
    answer: Answer,
    clock: Clock,
    tell: Callable[[str], None],
    lost: Callable[[str], None] | None = None,
) -> AsyncIterator[None]:
    """Serve a line's control socket where time is real; where it cannot be, say so and go on.

    Args:
        state_dir: The lab's state directory.
        answer: Gives the answer to one request.
        clock: Of the line.
        tell: Told why no other terminal can reach it.
        lost: Called once when the socket or its folder is not there any more, and says which.
    """
    async with AsyncExitStack() as stack:
        if clock.speed is not None:
            try:
                await stack.enter_async_context(ControlSocket(state_dir, answer, clock.speed))
            except OSError as why:
                tell(f"no other terminal can reach this line: {why}")
            if lost is not None:
                places = DoorPaths((state_dir / local.CONTROL, state_dir))
                watching = asyncio.create_task(_watch(places, lost, clock.speed), name="door")
                stack.callback(watching.cancel)
        yield


async def _watch(places: DoorPaths, lost: Callable[[str], None], speed: float) -> None:
    while not (why := places.lost()):  # noqa: ASYNC110 - a folder tells of nothing by itself
        await asyncio.sleep(LOOK_S * speed)
    lost(why)


def serve_alone(
    lab: Path, lock: str, name: str, serve: Callable[[LabPlan], Coroutine[Any, Any, None]]
) -> None:
    """Serve a lab in real time until the end, as the only process of its name.

    Args:
        lab: The lab file.
        lock: Name of a file in the lab's state directory, which is held meanwhile.
        name: Of the process, for others that want the lock.
        serve: Serves.

    Raises:
        BadLabFile: The lab's files cannot be honoured.
        Leased: Another such process of this lab is up.
        OSError: The state directory cannot be written.
    """
    plan = read_lab(lab)
    plan.make_state_dir()
    lease = lease_within(plan.state_dir / lock, f"{name} {os.getpid()}", ENDING_S)
    try:
        run(serve(plan), PacedLoop(1.0))
    finally:
        lease.release()


def on_stop_signals(stop: Callable[[], None]) -> None:
    """Call a function of the running loop when the system asks this process to end."""
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop)
