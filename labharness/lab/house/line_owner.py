"""The line owner: a process that carries out one run after the other and outlives the house.

Its main thread serves the owner's socket in real time. A run has a thread and a loop of its own, at
the speed of the lab, so that a run in virtual time is owned in the same way. The line itself is
locked by each run, so that between two runs a person may drive it by hand.
"""

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from threading import Thread
from typing import Any, Final

from labharness.core.files.signing_key import BadKey
from labharness.core.vocabulary.texts import Text, words_of
from labharness.instruments.link import local
from labharness.journal.encryption import KeyMissing
from labharness.lab.config.lab_file import BadLabFile
from labharness.lab.config.lab_plan import LabPlan, read_lab
from labharness.lab.house.intake import read_submission
from labharness.lab.house.message_store import keep_message
from labharness.lab.house.orders import (
    SESSION,
    BadOrder,
    RunOrder,
    has_begun,
    leave_end,
    order_from_json,
)
from labharness.lab.wiring.control import ControlSocket, on_stop_signals, serve_alone
from labharness.lab.wiring.operators import RemoteOperator
from labharness.lab.wiring.runs import BadOutput
from labharness.lab.wiring.tasks import TaskRun
from labharness.protocols.hcp.messages import ResumeFrom

LOG = logging.getLogger(__name__)

OWNER_LOCK: Final = "owner.lock"
HAND_S_MAX: Final = 10.0
"""Longest real time (s) for a hold or a resume to be answered."""

OF_FILES: Final = (BadKey, KeyMissing, BadLabFile, BadOutput)
"""Errors of a run before anything is armed; they name files, and quote no input."""

WARNINGS: Final = ("token_refused",)
"""Codes of the warnings that an event of the session may tell a caller."""


class LineOwnerProcess:
    """Owns the line of one lab, run by run, until it is told to leave.

    Args:
        lab: The lab file; it is read again for each run.
        speed: Lab seconds a real second; ``None`` for virtual time.
    """

    def __init__(self, lab: Path, speed: float | None) -> None:
        self._lab = lab
        self._speed = speed
        self._order: RunOrder | None = None
        self._task: TaskRun | None = None
        self._leaving = self._stopping = False
        self._idle = asyncio.Event()
        self._words: dict[str, Callable[[Mapping[str, Any]], Awaitable[dict[str, Any]]]] = {
            "status": self._status,
            "begin": self._begin,
            "abort": self._to_run,
            "time_out": self._to_run,
            "hold": self._by_hand,
            "resume": self._by_hand,
            "confirm": self._confirm,
            "warn": self._to_run,
            "leave": self._leave,
            "stay": self._stay,
        }

    def run(self) -> None:
        """Serve until the end.

        Raises:
            BadLabFile: The lab's files cannot be honoured.
            Leased: Another line owner of this lab runs.
            OSError: The state directory cannot be written, or the system has no Unix sockets.
        """
        serve_alone(self._lab, OWNER_LOCK, "line owner", self._serve)

    async def _serve(self, plan: LabPlan) -> None:
        self._home = plan.state_dir
        on_stop_signals(self._stopped)
        async with ControlSocket(plan.state_dir, self._answer, 1.0, local.OWNER):
            while not (self._leaving and self._order is None):
                self._idle.clear()
                await self._idle.wait()

    async def _answer(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        word = asked.get("do")
        work = self._words.get(word) if isinstance(word, str) else None
        if work is None:
            raise BadOrder("by_hand.word", word=word, words=", ".join(self._words))
        return {"ok": True, **await work(asked)}

    async def _status(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        run_id = "" if self._order is None else self._order.run_id
        about = {"pid": os.getpid(), "speed": self._speed, "leaving": self._leaving}
        return {**about, "run_id": run_id}

    async def _begin(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        order = order_from_json(asked, self._home)
        if self._order is not None and self._order.run_id == order.run_id:
            return {"begun": True}
        if has_begun(Path(order.folder)):
            return {"begun": True}  # by an owner before this one, or it is over already
        if self._order is not None or self._leaving:
            raise BadOrder("order.busy", run_id=self._order.run_id if self._order else "-")
        self._order = order
        Thread(target=self._carry_out, args=(order, asyncio.get_running_loop()), name="run").start()
        return {"begun": True}

    def _carry_out(self, order: RunOrder, loop: asyncio.AbstractEventLoop) -> None:
        """Carry out a run, in its thread; it leaves a file with its end whatever happens."""
        ended: Exception | None = None
        try:
            self._task = self._task_of(order)
            self._task.execute()
        except Exception as why:
            LOG.error("run %s ended by an error", order.run_id, exc_info=self._may_tell(why))
            ended = why
        told = ended is None or self._may_tell(ended)
        leave_end(Path(order.folder), order.run_id, ended, told=told)
        loop.call_soon_threadsafe(self._over)

    def _may_tell(self, why: Exception) -> bool:
        """Return whether an error may be written in clear: it may quote a confidential input."""
        confidential = self._task is not None and self._task.confidential
        return not confidential or isinstance(why, OF_FILES)

    def _task_of(self, order: RunOrder) -> TaskRun:
        plan = read_lab(self._lab)
        person = plan.file.operator.kind == "terminal"
        if person and self._speed is None:
            raise BadLabFile(Text("order.no_time", path=str(self._lab)))
        message, payload = read_submission(Path(order.submit))
        if order.resume_from is not None:
            point = ResumeFrom.model_validate(dict(order.resume_from))
            payload = payload.model_copy(update={"resume_from": point})
            message = replace(message, payload=payload)
        return TaskRun(
            plan,
            message,
            payload,
            speed=self._speed,
            seed=order.seed,
            out=Path(order.folder),
            operator=RemoteOperator() if person else None,
            approval_wait_s=order.approval_wait_s,
            session_id=order.run_id,
            earlier=_earlier(Path(order.folder), payload.resume_from),
            accepted=partial(keep_message, plan.state_dir, order.run_id, "accepted"),
            by_calendar=True,
        )

    def _over(self) -> None:
        self._order = self._task = None
        self._idle.set()

    async def _to_run(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        """Pass a request on to the run, which may have just ended."""
        self._named(asked)
        do, reason = asked["do"], words_of(asked, "reason")
        if do == "warn" and reason not in WARNINGS:
            raise BadOrder("order.wrong", name="reason")
        if self._task is not None and do == "time_out":
            self._task.time_out()
        elif self._task is not None:
            (self._task.warn if do == "warn" else self._task.abort)(reason)
        return {}

    async def _by_hand(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        self._named(asked)
        said = {name: words_of(asked, name) for name in ("do", "by", "reason")}
        return await self._asked(said, "hold.nothing")

    async def _confirm(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        self._named(asked)
        said = {name: words_of(asked, name) for name in ("do", "by", "step")}
        return await self._asked(said, "operator.not_asked")

    async def _asked(self, said: Mapping[str, Any], without_a_line: str) -> dict[str, Any]:
        """Ask the run as at its control socket; a code says what is wrong where it has no line."""
        future = self._task.ask(said) if self._task is not None else None
        if future is None:
            raise BadOrder(without_a_line)
        try:
            async with asyncio.timeout(HAND_S_MAX):
                return await asyncio.wrap_future(future)
        except TimeoutError:
            raise BadOrder("control.slow", most_s=HAND_S_MAX) from None

    def _named(self, asked: Mapping[str, Any]) -> None:
        if self._order is None or asked.get("run_id") != self._order.run_id:
            raise BadOrder("order.other", run_id=words_of(asked, "run_id"))

    async def _leave(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        """Leave once the line is free; what runs comes to its end first."""
        self._leaving = True
        self._idle.set()
        return {"run_id": "" if self._order is None else self._order.run_id}

    async def _stay(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        """Stay after all, unless it is ending already."""
        if self._stopping or self._order is None:
            raise BadOrder("order.ending")
        self._leaving = False
        return {}

    def _stopped(self) -> None:
        """Stop what runs, as a stop request; a watch until its line is cold is broken off."""
        self._leaving = self._stopping = True
        if self._task is not None:
            self._task.stop(Text("stop.signal", name="SIGTERM"))
        self._idle.set()


def _earlier(folder: Path, point: ResumeFrom | None) -> Path | None:
    """Return the folder of the run to go on from: it stands beside that of the new one."""
    if point is None or not SESSION.fullmatch(point.session_id):
        return None
    return folder.parent / point.session_id
