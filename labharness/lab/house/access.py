"""Lets a service use the house: its requests are carried out in the house's own thread.

Submissions that come together are kept together. Sessions are found, aborted and delivered here.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from operator import methodcaller
from pathlib import Path
from typing import Final, TypeVar

from labharness.core.errors import LabError
from labharness.core.vocabulary.texts import Text
from labharness.lab.house.house import House
from labharness.lab.house.intake import RUNTIME, ReceivedSubmission, Submitted, attempt_of
from labharness.lab.house.message_store import MessageStore
from labharness.lab.house.orders import LineOwnerWorker, RunFiles, TaskRefused
from labharness.protocols.hcp.codec import HcpMessage
from labharness.protocols.hcp.terms import CONFIDENTIAL
from labharness.work.admission.confidential import Way
from labharness.work.admission.token import is_token
from labharness.work.desk.left_behind import LeftBehind
from labharness.work.task.commands import AppendProgress, CancelTask, TaskActor
from labharness.work.task.record import Attempt, Task, Tasks
from labharness.work.task.states import TERMINAL

T = TypeVar("T")


WithHouse = Callable[[Callable[[House], T]], Awaitable[T]]

TOGETHER_MAX: Final = 32
"""Most submissions that the house keeps in one go."""


def abort_session(
    house: House, kept: MessageStore, caller_id: str, session_id: str, token: str, reason: str
) -> str:
    """Carry out the abort that a caller asks of its session; it sticks to the task.

    A session whose run has not begun needs no token (ruling 5).

    Args:
        house: Keeps the task.
        kept: With the message that has the session's token.
        caller_id: The caller, as the broker vouches for it.
        session_id: Of the session.
        token: That it states; ``""`` for none.
        reason: That it gives; of a confidential task it is not kept.

    Returns:
        ``asked``, or why nothing changes: ``unknown`` for a session that is not this caller's,
        ``token`` where it is not the session's own, ``closed`` where it has ended.

    Raises:
        TaskRefused: The control plane refuses it.
        JournalFailed: It could not be written.
    """
    task, run = session_of(house.tasks, session_id)
    if task is None or task.requested_by != caller_id:
        return "unknown"
    if task.status in TERMINAL or (run is not None and run.ended_at_s is not None):
        return "closed"
    if task.cancel_requested:
        return "asked"
    accepted = kept.acceptance(session_id) if token or run is not None else None
    if accepted is not None and not _is_token(token, accepted):
        return "token"
    if task.constraints.get("data_classification") in CONFIDENTIAL:
        reason = Text("data.aborted")
    house.give(CancelTask(task_id=task.task_id, reason=reason), TaskActor(caller_id, "caller"))
    return "asked"


def deliver(house: House, session_id: str) -> None:
    """Keep that the answer of a session has arrived where its caller finds it.

    Raises:
        JournalFailed: It could not be written.
    """
    task, _ = session_of(house.tasks, session_id)
    if task is not None and task.delivery != "delivered":
        with suppress(TaskRefused):  # it is archived
            house.give(AppendProgress(task_id=task.task_id, delivery="delivered"), RUNTIME)


def session_of(tasks: Tasks, session_id: str) -> tuple[Task | None, Attempt | None]:
    """Return the task and the attempt of a session; no attempt where it has none yet."""
    task = tasks.by_id.get(tasks.sessions.get(session_id, ""))
    return task, None if task is None else attempt_of(task, session_id)


def warn_caller(owner: LineOwnerWorker, session_id: str, code: str) -> None:
    """Have a run tell its caller of a refused request, by an event of its session."""
    with suppress(LabError):  # it has just ended
        owner.ask(session_id, "warn", code)


def _is_token(token: str, accepted: HcpMessage) -> bool:
    return is_token(token, str(getattr(accepted.payload, "session_token", "")))


class Submitting:
    """Has the house keep together what came together, so that a disk is waited for once.

    Args:
        with_house: As of `HouseAccess`.
    """

    def __init__(self, with_house: WithHouse[list[Submitted | Exception]]) -> None:
        self._with_house = with_house
        self._waiting: list[tuple[ReceivedSubmission, asyncio.Future[Submitted]]] = []
        self._at_work: asyncio.Future[None] | None = None

    async def submit(self, submission: ReceivedSubmission) -> Submitted:
        """Keep a submission, with those that come while the house keeps others."""
        kept: asyncio.Future[Submitted] = asyncio.get_running_loop().create_future()
        self._waiting.append((submission, kept))
        if self._at_work is None or self._at_work.done():
            self._at_work = asyncio.ensure_future(self._work())
        return await kept

    async def _work(self) -> None:
        while self._waiting:
            now, self._waiting = self._waiting[:TOGETHER_MAX], self._waiting[TOGETHER_MAX:]
            submissions = [submission for submission, _ in now]
            found: list[Submitted | Exception]
            try:
                found = await self._with_house(methodcaller("submit_all", submissions))
            except Exception as why:  # noqa: BLE001 - each that waits raises it
                found = [why] * len(now)
            for (_, kept), each in zip(now, found, strict=True):
                if kept.done():  # its connection has ended, and the submission comes again
                    continue
                if isinstance(each, Exception):
                    kept.set_exception(each)
                else:
                    kept.set_result(each)


@dataclass(frozen=True, slots=True)
class HouseAccess:
    """A house that is up.

    Attributes:
        lab_id: Id of the lab; it is the id of the callee.
        home: The lab's state directory.
        runs: The folders of its runs.
        owner: Its line owner.
        with_house: Calls a function with the house, in the house's own thread, and returns what it
            returns; the next turn of the house follows at once.
        tasks: Returns the tasks as they are.
        changed: Set whenever something may have changed; the face clears it.
        submitting: Has the house keep submissions.
        left_behind: Returns what a killed run has left in its folder.
    """

    lab_id: str
    home: Path
    runs: RunFiles
    owner: LineOwnerWorker
    with_house: Callable[[Callable[[House], T]], Awaitable[T]]
    tasks: Callable[[], Tasks]
    changed: asyncio.Event
    submitting: Submitting
    left_behind: Callable[[Path], LeftBehind]

    async def submit(
        self, data: bytes, decoded: HcpMessage, via: str, way: Way, traceparent: object = None
    ) -> Submitted:
        """Keep a submission; raises as `House.submit`.

        A caller's ``traceparent`` is of use where tasks are traced alone.
        """
        return await self.submitting.submit(ReceivedSubmission(data, decoded, via=via, way=way))

    async def abort(self, caller_id: str, session_id: str, token: str, reason: str) -> str:
        """Carry out the abort of a session by its caller; as `abort_session`."""
        with MessageStore(self.home) as kept:
            return await self.with_house(
                lambda house: abort_session(house, kept, caller_id, session_id, token, reason)
            )

    async def delivered(self, session_id: str) -> None:
        """Keep that the caller of a session has its answer; raises as `deliver`."""
        await self.with_house(lambda house: deliver(house, session_id))

    async def warn(self, session_id: str, code: str) -> None:
        """Have a run tell its caller of a refused request; as `warn_caller`."""
        await self.with_house(lambda _: warn_caller(self.owner, session_id, code))


Face = Callable[[HouseAccess], Awaitable[None]]
"""Serves callers until it is cancelled; a face that returns or raises ends its house."""
