"""The common part of the AMQP, WebSocket and stdio services: gives each message to the house.

It also sends what is due. All decisions are made elsewhere: `inbox.py` says what a message asks
for, and `outbox.py` what is to be told. A subclass carries the messages: over a broker, a WebSocket
or a pair of pipes.
"""

import asyncio
import logging
import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Container, Iterable, Sequence
from contextlib import suppress
from itertools import compress
from typing import ClassVar, Final

from labharness.core.clock import Chance, steady_s
from labharness.core.vocabulary.texts import Text
from labharness.faces.service import inbox
from labharness.faces.service.audience import for_caller
from labharness.faces.service.counts import Counts
from labharness.faces.service.inbox import Refusal, SubmissionAsked, Unanswerable
from labharness.faces.service.outbox import Batch, Outbox, now_text
from labharness.faces.service.session_messages import Outgoing, is_end, on_receipt_in_order
from labharness.journal import JournalFailed
from labharness.lab.house.access import HouseAccess, session_of
from labharness.lab.house.intake import Submitted
from labharness.lab.house.orders import TaskRefused
from labharness.protocols.hcp import answers, wire
from labharness.protocols.hcp.codec import HcpMessage
from labharness.protocols.hcp.terms import Rejected
from labharness.work.admission.confidential import Way

LOG = logging.getLogger(__name__)

WINDOW: Final = 64
"""Most messages of one session that wait for their confirms at once."""

LOOK_S: Final = 0.25
"""Longest time (s) until new records of a run's journal are seen."""

RETRY_S: Final = 5.0
"""World time (s) before a message is taken again that a full disk did not keep."""

TURN_MESSAGES: Final = 8192
"""Once so many messages are due, no further session is read in a turn."""


class MessageService(ABC):
    """A house and its callers, as long as what carries their messages is there.

    Args:
        house: The house.
        outbox: The messages that are due to its callers.
        counts: Where it counts what it does.

    Attributes:
        via: What carries the messages, as tasks have it in their profile.
        way: The same, as far as confidential data are concerned.
        ended_by: What is raised once the other end has gone.
    """

    via: ClassVar[str]
    way: Way = "plain"
    ended_by: tuple[type[Exception], ...] = (BrokenPipeError,)

    def __init__(self, house: HouseAccess, outbox: Outbox, counts: Counts | None = None) -> None:
        self._house = house
        self._outbox = outbox
        self._counts = counts or Counts()
        self._absent: dict[str, tuple[float, wire.BackOff]] = {}  # callers without a queue
        self._left: Counter[str] = Counter()  # messages that each caller's queue did not take
        self._opening: set[str] = set()  # sessions whose callers are told of their receipt now

    @abstractmethod
    async def publish(self, batch: Batch, message: HcpMessage) -> bool:
        """Send one message to a caller; return whether it has arrived where it is kept."""

    @abstractmethod
    async def dead_letter(self, data: bytes, message_id: str | None, found: Unanswerable) -> None:
        """Put a message aside that nobody can be answered to, with the reason."""

    # ---- what is asked

    async def handle_or_dead_letter(
        self, data: bytes, account: str, message_id: str | None = None, traceparent: object = None
    ) -> bool:
        """Carry out what a message asks; return whether it is on the disk or answered.

        What is of `ended_by` is raised: the message comes again, if ever.

        Args:
            data: The message.
            account: Of its sender, as what carries it vouches for.
            message_id: Of the message as what carries it says, for a dead letter.
            traceparent: The trace that it is a part of, as its caller says, if it does.
        """
        try:
            found = inbox.asked(data, account)
            self._counts.taken[KINDS[type(found)]] += 1
            if isinstance(found, SubmissionAsked):
                await self._submit(found, data, traceparent)
            elif isinstance(found, inbox.AbortAsked):
                await self._abort(found, data, message_id)
            elif isinstance(found, Refusal):
                await self._refuse(found, data, message_id)
            else:
                await self.dead_letter(data, message_id, found)
        except self.ended_by:
            raise
        except (JournalFailed, OSError) as why:
            LOG.error("a message waits: %s", why)
            return False
        except Exception:  # what one message makes fail is not to fail all others
            shown = not says_confidential(data)  # a traceback may quote it
            LOG.error("a message was not understood", exc_info=shown)
            await self.dead_letter(data, message_id, Unanswerable(Text("hcp.fault")))
        return True

    async def take_until_kept(self, data: bytes, account: str) -> None:
        """Carry out what a message asks that nobody sends again, as soon as the disk takes it."""
        while not await self.handle_or_dead_letter(data, account):  # noqa: ASYNC110 - a disk tells nothing
            await asyncio.sleep(RETRY_S)

    def came(self, caller_id: str) -> None:
        """Tell a caller that has just come what is due, without a wait for the next try."""
        self._absent.pop(caller_id, None)
        self._house.changed.set()

    async def _submit(self, found: SubmissionAsked, data: bytes, traceparent: object) -> None:
        try:
            kept = await self._house.submit(data, found.message, self.via, self.way, traceparent)
        except TaskRefused as why:
            rejected = Rejected("resource_unavailable", str(why), None, Text("hcp.advice.later"))
            if self._house.tasks().keys.get((found.caller_id, found.message.message_id)):
                rejected = Rejected("invalid_input", Text("hcp.key_reused"))
            await self._refuse_submission(found, rejected, data)
            return
        if kept.opening:
            await self._open(kept)  # nothing else is due of it yet
            return
        if not kept.fresh:
            task = self._house.tasks().by_id[kept.task_id]
            if not self._outbox.may_tell(task):
                rejected = Rejected("forbidden", Text("data.again"), None, Text("data.amqps"))
                await self._refuse_submission(found, rejected, b"")
                return
            for batch in await asyncio.to_thread(list, self._outbox.again(task)):
                await self._publish_all(batch)
        self._house.changed.set()

    async def _open(self, kept: Submitted) -> None:
        """Tell a caller of the receipt of its task; it waits for that."""
        told = on_receipt_in_order(kept.opening)
        self._opening.add(kept.session_id)
        try:
            await self._send_now(Batch(kept.caller_id, kept.session_id, told, told[-1].position))
        finally:
            self._opening.discard(kept.session_id)

    async def _abort(self, found: inbox.AbortAsked, data: bytes, message_id: str | None) -> None:
        ended = await self._house.abort(
            found.caller_id, found.session_id, found.token, found.reason
        )
        if ended == "unknown":
            await self.dead_letter(data, message_id, Unanswerable(Text("hcp.no_session")))
        elif ended == "token":
            await self._house.warn(found.session_id, "token_refused")
        elif ended == "closed":
            task, _ = session_of(self._house.tasks(), found.session_id)
            if task is not None:
                said = await asyncio.to_thread(self._outbox.closed_already, task, found.session_id)
                await self._publish_all(said)

    async def _refuse_submission(
        self, found: SubmissionAsked, rejected: Rejected, data: bytes
    ) -> None:
        message_id = found.message.message_id
        await self._refuse(Refusal(found.caller_id, message_id, rejected), data, message_id)

    async def _refuse(self, found: Refusal, data: bytes, message_id: str | None) -> None:
        self._counts.rejected += 1
        own_id, reply_to, rejected = Chance(None).uuid4(), found.in_reply_to, found.rejected
        message = answers.task_rejected(
            message_id=own_id, timestamp=now_text(), in_reply_to=reply_to, rejected=rejected
        )
        batch = Batch(found.caller_id, "none", (Outgoing(0, message),), 0)
        if not await self._publish_all(batch):  # it has no queue, so its message is all there is
            await self.dead_letter(data, message_id, Unanswerable(str(rejected.reason_message)))

    # ---- what is told

    async def send(self) -> None:
        """Send what is due, session by session, whenever there is news."""
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(LOOK_S):
                    await self._house.changed.wait()
            self._house.changed.clear()
            away = {name for name, (until_s, _) in self._absent.items() if steady_s() < until_s}
            to_send = self._outbox.due(self._house.tasks(), away, self._opening)
            due = await asyncio.to_thread(_turn, to_send)
            if sum(len(each.messages) for each in due) >= TURN_MESSAGES:
                self._house.changed.set()  # there may be more
            sent = await asyncio.gather(*(self._send(each) for each in due))
            self._count_waiting(away, due, sent)

    def _count_waiting(self, away: Container[str], due: Sequence[Batch], sent: list[int]) -> None:
        """Count what was left, of callers that are away what was left when it was last tried."""
        left = Counter({name: count for name, count in self._left.items() if name in away})
        for each, count in zip(due, sent, strict=True):
            left[each.caller_id] += len(each.messages) - count
        self._left, self._counts.waiting = left, left.total()

    async def _send(self, batch: Batch) -> int:
        if batch.session_id in self._opening or not self._outbox.is_due(batch):
            return 0  # it is sent elsewhere, or has been since
        return await self._send_now(batch)

    async def _send_now(self, batch: Batch) -> int:
        count = await self._publish_all(batch)
        if any(is_end(each.message) for each in batch.messages[:count]):
            await self._house.delivered(batch.session_id)  # first: a house that dies says it again
        self._outbox.sent(batch, count)
        if count == len(batch.messages):
            self._absent.pop(batch.caller_id, None)
            if batch.more:
                self._house.changed.set()
        elif batch.messages:
            back_off = self._absent.get(batch.caller_id, (0.0, wire.BackOff()))[1]
            wait_s = back_off.longer()
            self._absent[batch.caller_id] = (steady_s() + wait_s, back_off)
            LOG.info("%s has no queue yet; tried again in %g s", batch.caller_id, wait_s)
        return count

    async def _publish_all(self, batch: Batch) -> int:
        """Publish messages in their order; return how many the broker confirmed without a gap."""
        for at in range(0, len(batch.messages), WINDOW):
            window = batch.messages[at : at + WINDOW]
            sending = (self.publish(batch, for_caller(each.message)) for each in window)
            confirmed = await asyncio.gather(*sending)
            self._counts.sent.update(each.message.type for each in compress(window, confirmed))
            if not all(confirmed):
                return at + confirmed.index(False)
        return len(batch.messages)


KINDS: Final[dict[type, str]] = {
    SubmissionAsked: "submission",
    inbox.AbortAsked: "abort",
    Refusal: "refused",
    Unanswerable: "unreadable",
}
"""What a message was, as it is counted."""


CONFIDENTIAL: Final = re.compile(rb'"data_classification"\s*:\s*"T[34]"')


def says_confidential(data: bytes) -> bool:
    """Return whether a message says that its data are confidential, readable or not."""
    return CONFIDENTIAL.search(data) is not None


def _turn(due: Iterable[Batch]) -> list[Batch]:
    """Return the batches that are sent in one turn, which need not be all."""
    turn, count = [], 0
    for batch in due:
        turn.append(batch)
        count += len(batch.messages)
        if count >= TURN_MESSAGES:
            break
    return turn
