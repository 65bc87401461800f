"""A caller of labs over a broker: submits tasks, follows them, and goes on where it was."""

import asyncio
import json
import logging
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Final, Self, TypeVar

from labharness.core.clock import Chance, steady_s, utc_text, wall_clock_utc
from labharness.core.errors import LabError
from labharness.core.vocabulary.texts import CodedError, Text
from labharness.faces.broker.connection import Broker, cancelled
from labharness.faces.caller.caller_file import CallerFile
from labharness.faces.caller.connection import CallerConnection, NoCallee
from labharness.faces.caller.task_state import Gap, KnownTask
from labharness.protocols.hcp.codec import HCP_VERSION, HcpMessage, decode
from labharness.protocols.hcp.messages import TaskSubmit
from labharness.work.admission.confidential import declared_class, is_confidential

LOG = logging.getLogger(__name__)

T = TypeVar("T")

CONNECT_S: Final = 15.0
"""Time (s) for the broker to let a caller in, unless another is given."""

SEND_S: Final = 60.0
"""Time (s) for the broker to confirm a message, lost connections included."""

RECEIVE_S: Final = 60.0
"""Time (s) for a lab to say that it has a task."""

CLOSING_S: Final = 1.0
"""Time (s) for the message that closes a session behind the one that ends it."""

ANSWER_S_MAX: Final = 86_400.0
"""Time (s) for an acceptance or a rejection: a person may have to approve the task."""

RESULT_S_MAX: Final = 7 * 86_400.0
"""Time (s) for the end of a task; tasks wait in a queue, and each may take days."""

RESUBMIT_S: Final = (30.0, 600.0)
"""Shortest and longest wait (s) before a submission without any answer is sent again."""


class AnswerLate(CodedError, TimeoutError, code="no_answer"):
    """A lab, or its broker, has not answered within the time that was given."""


class NotOurs(CodedError, ValueError, code="other_caller"):
    """A submission names another caller than the account that would send it."""


class NotSecured(CodedError, ValueError, code="not_secured"):
    """Confidential data are not sent where others may read them on the way."""


class AsyncCaller:
    """Submits tasks to labs over a broker, and hears of them; an asynchronous context.

    Its file keeps the submissions, what was heard, and how far that was read, so that a caller that
    is started again goes on. Programs of one account share one file.

    Args:
        broker: The broker; its account is the ``caller_id``.
        file: The caller's file.
        warn: Called with a line for people, such as a gap; by default it goes to the log.

    Raises:
        CallerFileFailed: The file cannot be used.
    """

    def __init__(
        self, broker: Broker, file: Path, *, warn: Callable[[str], None] = LOG.warning
    ) -> None:
        self.caller_id = broker.account
        self._secured = broker.secured
        self.file = CallerFile(file)
        self._connection = CallerConnection(broker, self.file, warn)
        self._jobs: list[asyncio.Future[None]] = []

    async def __aenter__(self) -> Self:
        """Begin to connect; no broker needs to be there."""
        connection = self._connection
        asked = (connection.run(), connection.follow())
        self._jobs = [asyncio.ensure_future(each) for each in asked]
        for job in self._jobs:
            job.add_done_callback(lambda _: connection.news.tell())
        return self

    async def __aexit__(self, *ended: object) -> None:
        """Hang up, and close the file."""
        await cancelled(self._jobs)
        self.file.close()

    async def connected(self, within_s: float = CONNECT_S) -> None:
        """Wait for the broker.

        Raises:
            BrokerRefused: It does not let this account in.
            BrokerAway: It does not answer in time.
        """
        await self._until(lambda: self._connection.up, within_s)

    async def submit(
        self,
        callee_id: str,
        payload: Mapping[str, Any],
        *,
        message_id: str | None = None,
        within_s: float = SEND_S,
    ) -> str:
        """Submit a task; return its `message_id`, by which all else is asked for.

        It is kept in the file before it is sent, and sent again until a lab's queue has it: also
        after an error here, by the next caller with this file, unless the error is `NoCallee`.

        Args:
            callee_id: The lab.
            payload: Of the ``task_submit``; its ``caller_id`` may be left out.
            message_id: The id; the same one is the same task, however often it is submitted.
            within_s: Time (s) for the broker to confirm it.

        Raises:
            NotHcp: The payload is no JSON, or too large.
            BadPayload: A field of it is missing or has another type.
            NotOurs: It names another caller.
            NotSecured: Its data are confidential, and the broker is reached without TLS.
            KeyReused: The id was used for another submission.
            NoCallee: The broker has no queue for this lab; a new submission is forgotten then.
            AnswerLate: The broker has not confirmed it in time.
            BrokerAway, BrokerRefused: There is no connection.
        """
        message = self._message("task_submit", None, payload, message_id)
        asked = message.payload
        if isinstance(asked, TaskSubmit) and asked.caller_id != self.caller_id:
            raise NotOurs("call.other", named=asked.caller_id, account=self.caller_id)
        if isinstance(asked, TaskSubmit) and not self._secured and is_confidential(asked):
            raise NotSecured("call.plain", found=declared_class(asked))
        fresh = await asyncio.to_thread(self.file.submit, callee_id, message)
        try:
            sent = self.file.submission(message.message_id)
            await self._send(callee_id, sent, within_s)
        except NoCallee:
            if fresh:
                await asyncio.to_thread(self.file.withdraw, message.message_id)
            raise
        return message.message_id

    async def received(self, message_id: str, within_s: float = RECEIVE_S) -> KnownTask:
        """Wait until a lab has a task: it then has a session, or is rejected.

        Raises:
            UnknownTask: The file has no such task.
            AnswerLate: Neither is heard in time.
            QueueTaken, BrokerAway, BrokerRefused: Nothing can be heard.
        """
        return await self._until(
            lambda: task if (task := self.file.task(message_id)).session or task.end else None,
            within_s,
            message_id,
        )

    async def answer(self, message_id: str, within_s: float = ANSWER_S_MAX) -> HcpMessage:
        """Wait for the ``task_accepted`` or ``task_rejected`` of a task; raises as `received`."""
        return await self._message_by(lambda task: task.answer, message_id, within_s)

    async def result(self, message_id: str, within_s: float = RESULT_S_MAX) -> HcpMessage:
        """Wait for the message that ends a task; raises as `received`.

        Returns:
            ``task_completed``, ``task_failed``, ``task_rejected``, or after an abort the ``event``
            ``session_closed``.
        """
        return await self._message_by(lambda task: task.end, message_id, within_s)

    async def _message_by(
        self, wanted: Callable[[KnownTask], str], message_id: str, within_s: float
    ) -> HcpMessage:
        found = await self._until(lambda: wanted(self.file.task(message_id)), within_s, message_id)
        return self.file.message(found)

    async def events(
        self, message_id: str, within_s: float = RESULT_S_MAX
    ) -> AsyncGenerator[HcpMessage | Gap, None]:
        """Return what is heard of a task and was not read yet, up to its end.

        A message counts as read once the next one is asked for; a caller that is started again goes
        on behind it. Raises as `received`.

        Args:
            message_id: Of the submission.
            within_s: Longest time (s) between two of them.
        """
        position = await asyncio.to_thread(self.file.position, message_id)
        last: HcpMessage | Gap | None = None
        while True:
            ended = self.file.task(message_id).end
            told = await asyncio.to_thread(self.file.after, message_id, position)
            for position, last in told:
                yield last
                await asyncio.to_thread(self.file.read, message_id, position)
            if not told and isinstance(last, HcpMessage) and last.message_id == ended:
                last = None
                with suppress(LabError):  # a lab of another version has closed it before
                    await self._until(partial(self.file.after, message_id, position), CLOSING_S)
            elif not told and ended:
                return
            elif not told:
                news = partial(self._news_of, message_id, position)
                await self._until(news, within_s, message_id)

    def _news_of(self, message_id: str, position: int) -> object:
        """Return the end of a task, or what there is more to read of it, if either is there."""
        return self.file.task(message_id).end or self.file.after(message_id, position)

    async def abort(self, message_id: str, reason: str = "", within_s: float = SEND_S) -> None:
        """Ask a lab to abort a task; its end is heard as of any task.

        Args:
            message_id: Of the submission.
            reason: That people of the lab read.
            within_s: Time (s) to hear of its session, and again for the broker to confirm this.

        Raises:
            AnswerLate: No session of it is heard in time, or the broker does not confirm.
            NoCallee: The broker has no queue for its lab.
            UnknownTask, QueueTaken, BrokerAway, BrokerRefused: As `received`.
        """
        task = await self.received(message_id, within_s)
        session = task.session
        if session is None or task.end:
            return
        told = {"session_token": session.token, "reason": reason}
        payload = {name: value for name, value in told.items() if value}
        message = self._message("abort", session.session_id, payload, None)
        await self._send(task.callee_id, message, within_s)

    # ---- sending and waiting

    def _message(
        self, kind: str, session_id: str | None, payload: Mapping[str, Any], message_id: str | None
    ) -> HcpMessage:
        """Return a message as the codec reads it, so that the lab will read it too."""
        body = {
            "hcp_version": HCP_VERSION,
            "message_id": message_id or Chance(None).uuid4(),
            "timestamp": utc_text(wall_clock_utc()),
            "session_id": session_id,
            "type": kind,
            "payload": {"caller_id": self.caller_id, **payload},
        }
        return decode(json.dumps(body, ensure_ascii=False).encode())

    async def _send(self, callee_id: str, message: HcpMessage, within_s: float) -> None:
        try:
            async with asyncio.timeout(within_s):
                await self._connection.publish(callee_id, message)
        except TimeoutError:
            text = Text("call.unconfirmed", message_id=message.message_id, within_s=within_s)
            raise self._connection.away or AnswerLate(text) from None

    async def _until(
        self, found: Callable[[], T | None], within_s: float, message_id: str = ""
    ) -> T:
        """Wait until something is found in the file.

        Args:
            found: Looks for it; nothing and what is empty count as not found.
            within_s: Time (s) for it.
            message_id: Of the submission that is sent again while nothing is heard of it.
        """
        connection, end_s = self._connection, steady_s() + within_s
        resubmit_s = RESUBMIT_S[0]
        again_s = steady_s() + resubmit_s
        while not (value := found()):
            if connection.refused is not None:
                raise connection.refused
            for each in self._jobs:
                if each.done():
                    each.result()  # a fault ends the wait, and not only its job
            if steady_s() >= end_s:
                late = AnswerLate("call.no_answer", message_id=message_id, within_s=within_s)
                raise connection.away or connection.taken or late
            if message_id and steady_s() >= again_s:
                await self._resubmit(message_id, end_s - steady_s())
                resubmit_s = min(2 * resubmit_s, RESUBMIT_S[1])
                again_s = steady_s() + resubmit_s
            with suppress(TimeoutError):
                async with asyncio.timeout(max(min(end_s, again_s) - steady_s(), 0.0)):
                    await connection.news.wait()
        return value

    async def _resubmit(self, message_id: str, within_s: float) -> None:
        """Send a submission again of which nothing was heard, not even a session."""
        task = self.file.task(message_id)
        if task.session is None and not task.end and task.callee_id:
            await self._send(task.callee_id, self.file.submission(message_id), within_s)
