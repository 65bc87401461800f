"""The house as a process: its journal, its socket, and a turn every fraction of a second.

All of the house runs in one thread, which alone writes its journal; the socket is served beside it,
so that a slow disk or line owner delays an answer and loses no connection.
"""

import asyncio
import gc
import json
import logging
import os
from collections.abc import AsyncIterator, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any, Final, TypeVar

from labharness.core.clock import Chance, wall_clock_utc
from labharness.core.files.durable import write_durably
from labharness.core.vocabulary.texts import Text, in_language, words_of
from labharness.instruments.link import local
from labharness.journal import JournalFailed
from labharness.journal.chain import VerifyReport
from labharness.lab.config.lab_file import BadLabFile
from labharness.lab.config.lab_plan import LabPlan
from labharness.lab.config.lease import Lease
from labharness.lab.house.access import Face, HouseAccess, Submitting
from labharness.lab.house.desk_work import DeskWork
from labharness.lab.house.house import House
from labharness.lab.house.orders import HOUSE_FILE, RunFolders, TaskRefused
from labharness.lab.house.owner_client import OwnerClient
from labharness.lab.house.screening import LabFiles, needs_of
from labharness.lab.house.spoken import COMMANDS_BY_WORD, command_of
from labharness.lab.wiring.alarms import channels, senders
from labharness.lab.wiring.control import ControlSocket, on_stop_signals, serve_alone
from labharness.protocols.hcp.codec import MESSAGE_BYTES_MAX, decode, encode
from labharness.safety.alarm.board import Severity
from labharness.safety.alarm.outlets import Channels, NullSenders, recipients
from labharness.work.task.commands import TaskActor
from labharness.work.task.house import HouseJournal
from labharness.work.task.kept import HOUSE_JOURNAL
from labharness.work.task.record import RetryPolicy

LOG = logging.getLogger(__name__)

HOUSE_LOCK: Final = "house.lock"
TURN_S: Final = 0.25
"""World time (s) between two turns of the house."""

QUIET_S: Final = 0.05
"""World time (s) without a request before a turn: who waits for an acceptance has it before the
work of others goes on."""

NEWS_S_MAX: Final = 1.0
"""Longest world time (s) of such a wait for quiet; a whole queue is accepted within it."""

REQUEST_BYTES_MAX: Final = 4 * MESSAGE_BYTES_MAX  # a message as text within JSON
REOPEN_S: Final = 5.0
REOPENS_MAX: Final = 720
"""Tries to open the journal again after a write that failed: an hour, then the house ends."""

T = TypeVar("T")


def salvage_house(plan: LabPlan) -> VerifyReport | None:
    """Keep the valid beginning of a damaged journal of the house; return what was found.

    The damaged file is kept beside it. ``None`` where the journal was whole.

    Raises:
        Leased: The house is up.
        JournalFailed: It cannot be read or written.
        OSError: The state directory cannot be written.
    """
    lease = Lease(plan.state_dir / HOUSE_LOCK, f"salvage {os.getpid()}")
    try:
        journal = HouseJournal(plan.state_dir / HOUSE_JOURNAL, salvaging=True)
        journal.close()
        return journal.damage
    finally:
        lease.release()


class HouseProcess:
    """Serves the house of one lab until it is told to leave.

    Args:
        lab: The lab file.
        runs: The folder of the runs.
        face: Serves callers elsewhere as long as the house is up.
    """

    def __init__(self, lab: Path, runs: Path, face: Face | None = None) -> None:
        self._lab = lab
        self._face = face
        self._runs = runs.resolve()
        self._leaving = asyncio.Event()
        self._news = asyncio.Event()
        self._changed = asyncio.Event()
        self._requests = 0  # of a face, in progress
        self._failure = ""
        self._files = LabFiles(lab)
        self._desk = DeskWork(self._files, self._wake, self._tell_face)
        self._words: dict[str, Callable[[Mapping[str, Any]], dict[str, Any]]] = {
            "status": self._status,
            "task": self._task,
            "submit": self._submit,
            "create_job": self._create_job,
            "retry": self._retry,
            "confirm": self._confirm,
        }

    def run(self) -> None:
        """Serve until the end.

        Raises:
            BadLabFile: The lab's files cannot be honoured.
            Leased: Another house of this lab is up.
            JournalFailed: Its journal cannot be opened, or is damaged.
            OSError: The state directory cannot be written, or the system has no Unix sockets.
        """
        serve_alone(self._lab, HOUSE_LOCK, "house", self._serve)

    async def _serve(self, plan: LabPlan) -> None:
        self._loop = asyncio.get_running_loop()
        on_stop_signals(self._leaving.set)
        (plan.state_dir / "tasks").mkdir(mode=0o700, exist_ok=True)
        self._runs.mkdir(parents=True, exist_ok=True)
        write_durably(plan.state_dir / HOUSE_FILE, json.dumps({"runs": str(self._runs)}))
        with ThreadPoolExecutor(1, "house") as pool:
            self._pool = pool
            await self._in_house(self._open, plan)
            # Most objects that are there by now stay. A full collection would walk them while all
            # callers wait 40 ms.
            gc.collect()
            gc.freeze()
            try:
                async with (
                    ControlSocket(
                        plan.state_dir,
                        self._answer,
                        1.0,
                        local.HOUSE,
                        REQUEST_BYTES_MAX,
                        shared=True,
                    ),
                    self._faced(plan),
                ):
                    await self._turns(plan)
            finally:
                await self._in_house(self._left)

    @asynccontextmanager
    async def _faced(self, plan: LabPlan) -> AsyncIterator[None]:
        """Serve callers elsewhere meanwhile; a face that ends takes the house down with it."""
        if self._face is None:
            yield
            return
        access = HouseAccess(
            plan.file.lab.id,
            plan.state_dir,
            RunFolders(self._runs),
            OwnerClient(plan),
            self._with_house,
            lambda: self._house.tasks,
            self._changed,
            Submitting(self._with_house),
            self._files.left_behind,
        )
        serving = asyncio.ensure_future(self._face(access))
        serving.add_done_callback(lambda _: self._leave())
        try:
            yield
        finally:
            serving.cancel()
            with suppress(asyncio.CancelledError):
                await serving

    async def _with_house(self, work: Callable[[House], T]) -> T:
        """Do something with the house for a face, and take the house's next turn."""
        self._requests += 1
        try:
            return await self._in_house(lambda: work(self._house))
        finally:
            self._requests -= 1
            self._news.set()

    def _leave(self) -> None:
        self._leaving.set()
        self._news.set()

    async def _in_house(self, work: Callable[..., T], *given: object) -> T:
        """Do something in the house's own thread."""
        return await asyncio.get_running_loop().run_in_executor(self._pool, work, *given)

    def _open(self, plan: LabPlan) -> None:
        with suppress(BadLabFile):  # read before the first caller waits for it
            self._files.current()
        self._journal = HouseJournal(plan.state_dir / HOUSE_JOURNAL)
        self._house = House(
            self._journal,
            OwnerClient(plan),
            RunFolders(self._runs),
            home=plan.state_dir,
            lab=plan.file.lab.id,
            now_s=lambda: wall_clock_utc().timestamp(),
            new_id=Chance(None).uuid4,
            receive=self._files.received,
            data_key=self._files.data_key,
            needs_no_line=self._files.needs_no_line,
            needs=needs_of(plan),
            tell=_alerts(plan),
            desk=self._desk,
            retries=RetryPolicy(
                attempts_max=plan.file.lab.attempts_max,
                inactivity_timeout_s=plan.file.lab.inactivity_s,
            ),
        )

    def _left(self) -> None:
        """End the runs of the desk, follow them, and close the journal."""
        self._desk.leave(Text("house.down"))
        with suppress(JournalFailed):
            self._house.step()
        self._house.close()
        self._journal.close()

    async def _turns(self, plan: LabPlan) -> None:
        reopened = 0
        while not self._leaving.is_set():
            try:
                await self._in_house(self._turn)
                self._failure = ""
                self._changed.set()
            except JournalFailed as why:
                reopened += 1
                if reopened > REOPENS_MAX:
                    raise
                LOG.error("the journal of the house failed: %s", why)
                self._failure = str(why)
                await self._pause(REOPEN_S)
                await self._in_house(self._open_again, plan)
                continue
            await self._pause(TURN_S)

    def _turn(self) -> None:
        self._files.look()
        self._house.step()

    def _open_again(self, plan: LabPlan) -> None:
        self._house.close()
        try:
            self._journal.close()
        except JournalFailed:
            LOG.info("what was told of these facts stands with the messages of tasks")
        self._open(plan)

    async def _pause(self, most_s: float) -> None:
        """Wait for news and for quiet behind it, or until the next turn is due."""
        with suppress(TimeoutError):
            async with asyncio.timeout(most_s):
                await self._news.wait()
            async with asyncio.timeout(NEWS_S_MAX):
                while not self._leaving.is_set() and (self._requests or self._news.is_set()):
                    self._news.clear()
                    await asyncio.sleep(QUIET_S)
        self._news.clear()

    async def _answer(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        word = words_of(asked, "do")
        if word == "leave":
            self._leave()
            return {"ok": True}
        said = await self._in_house(self._answered, word, asked)
        if word not in ("status", "task"):
            self._news.set()
        return {"ok": True, **said}

    def _answered(self, word: str, asked: Mapping[str, Any]) -> dict[str, Any]:
        if word in self._words:
            return self._words[word](asked)
        if word not in COMMANDS_BY_WORD:
            words = ", ".join((*self._words, "leave", *COMMANDS_BY_WORD))
            raise TaskRefused("by_hand.word", word=word, words=words)
        try:
            command = command_of(word, {name: words_of(asked, name) for name in asked})
        except KeyError as why:
            raise TaskRefused("order.wrong", name=str(why.args[0])) from None
        self._house.give(command, TaskActor(_who(asked), "operator"))
        return {"id": command.concerns}

    def _task(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        task = self._house.tasks.by_id.get(words_of(asked, "task_id"))
        if task is None:
            raise TaskRefused("house.unknown_task", task_id=words_of(asked, "task_id"))
        return {"status": task.status, "reason": task.error_code or task.status_reason}

    def _submit(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        message, seed = _stated(asked, "message"), _seed_of(asked)
        after = asked.get("after", [])
        if not isinstance(after, list) or not all(isinstance(each, str) for each in after):
            raise TaskRefused("order.wrong", name="after")
        data = message.encode()
        if key := words_of(asked, "message_id"):
            data = encode(replace(decode(data), message_id=key))
        kept = self._house.submit(data, seed=seed, links=after)
        return {"task_id": kept.task_id, "fresh": kept.fresh, "rejected": kept.rejected}

    def _retry(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        task_id, resume = words_of(asked, "task_id"), asked.get("resume") is True
        if resume and self._house.needs_line(task_id) and self._files.current()[0].begins_anew:
            raise TaskRefused("resume.plant")
        self._house.retry(
            task_id,
            Chance(None).uuid4(),
            words_of(asked, "reason"),
            _who(asked),
            resume=resume,
        )
        return {"id": task_id}

    def _confirm(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        task_id, who = words_of(asked, "task_id"), _who(asked)
        name, step = words_of(asked, "name") or who, words_of(asked, "step")
        by = name if name == who else f"{name} ({who})"
        said = self._house.confirm(task_id, step, by)
        return {"id": task_id, "said": said}

    def _create_job(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        vary = asked.get("vary", {})
        if not isinstance(vary, dict) or not all(isinstance(v, list) for v in vary.values()):
            raise TaskRefused("order.wrong", name="vary")
        stated = [_stated(asked, name) for name in ("message", "every", "title", "by")]
        job_id = self._house.create_job(
            stated[0].encode(),
            _who(asked),
            vary,
            every=stated[1],
            title=stated[2],
            seed=_seed_of(asked),
            key=_stated(asked, "key", ""),
        )
        return {"job_id": job_id}

    def _wake(self) -> None:
        """Take the next turn at once; called in another thread than the loop's."""
        with suppress(RuntimeError):  # the loop has ended
            self._loop.call_soon_threadsafe(self._news.set)

    def _tell_face(self) -> None:
        """Have the face look for what callers are to be told; called in another thread.

        It reads the runs' own journals, so it need not wait for the next turn of the house.
        """
        with suppress(RuntimeError):  # the loop has ended
            self._loop.call_soon_threadsafe(self._changed.set)

    def _status(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        counts: dict[str, int] = {}
        for task in self._house.tasks.by_id.values():
            counts[task.status] = counts.get(task.status, 0) + 1
        return {
            "pid": os.getpid(),
            "runs": str(self._runs),
            "tasks": counts,
            "failure": self._failure,
            "leaving": self._leaving.is_set(),
        }


def _who(asked: Mapping[str, Any]) -> str:
    """Return the account that the system names, or else the name that the command states."""
    return words_of(asked, "account") or words_of(asked, "by") or "operator"


def _stated(asked: Mapping[str, Any], name: str, default: str | None = None) -> str:
    """Return a text that a request must hold."""
    found = asked.get(name, default)
    if not isinstance(found, str):
        raise TaskRefused("order.wrong", name=name)
    return found


def _seed_of(asked: Mapping[str, Any]) -> int | None:
    seed = asked.get("seed")
    if type(seed) not in (int, type(None)):
        raise TaskRefused("order.wrong", name="seed")
    return seed


def _alerts(plan: LabPlan) -> Callable[[str], None]:
    """Return what sends a text about background work to the people of a lab; it never raises.

    These texts are not alarms: they need no acknowledgement, and go to the recipients of warnings
    who are called first. One that a channel does not take is in the log of the house.
    """

    @cache
    def opened() -> Channels:
        try:
            return senders(plan)
        except BadLabFile as why:
            LOG.error("no message can be sent: %s", why)
            return NullSenders()

    def ended(channel: str, why: str) -> None:
        if why:
            LOG.error("alert channel %s took no message: %s", channel, why)

    def tell(text: str) -> None:
        LOG.warning("%s", text)
        title = Text("job.title", lab=plan.file.lab.title)
        for each in recipients(channels(plan), (Severity.WARNING,), 0):
            said = (in_language(title, each.language), in_language(text, each.language))
            opened().send(each.name, *said, partial(ended, each.name))

    return tell
