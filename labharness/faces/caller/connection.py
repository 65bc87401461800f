"""The connection of a caller to its broker: sends what is asked, and hears what is told.

All that is heard is kept in the caller's file before it is acknowledged. The connection comes back
by itself; on each return all submissions that have not ended are sent again, with their old ids.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Final, TypeVar

from labharness.core.clock import steady_s
from labharness.core.errors import LabError
from labharness.core.vocabulary.texts import CodedError, Text
from labharness.faces.broker import connection as amqp
from labharness.faces.broker.away import why_away
from labharness.faces.broker.connection import Broker, cancelled
from labharness.faces.caller.caller_file import CallerFile
from labharness.protocols.hcp import wire
from labharness.protocols.hcp.codec import BadPayload, HcpMessage, NotHcp, decode

if TYPE_CHECKING:
    from aio_pika import abc
    from aiormq.abc import FieldTable

LOG = logging.getLogger(__name__)

T = TypeVar("T")

TAKE_OVER_S: Final = 1.0
"""Time (s) between two looks whether the program that hears the queue for all has ended."""

LOOK_S: Final = 0.25
"""Time (s) between two looks whether another program has written the file."""

RESEND_S: Final = 0.2
"""Wait (s) before a message is sent again that the broker has not confirmed."""


class BrokerAway(CodedError, ConnectionError, code="broker_away"):
    """The broker did not answer within the time that was given; the message says where and why."""


class BrokerRefused(CodedError, PermissionError, code="broker_refused"):
    """The broker refuses the account, its password, or a right that a caller needs."""


class NoCallee(CodedError, LookupError, code="no_callee"):
    """The broker has no queue for this lab, so the message has reached no lab."""


class QueueTaken(CodedError, RuntimeError, code="queue_taken"):
    """Another program, with another file, hears the queue of this account."""


class News(asyncio.Event):
    """Wakes all who wait for a change."""

    def tell(self) -> None:
        """Wake them; who comes later waits for the next change."""
        self.set()
        self.clear()


class CallerConnection:
    """Keeps the connection of one caller.

    Args:
        broker: The broker, with the caller's account.
        file: Of the caller.
        warn: Called with a line for people.

    Attributes:
        news: Of the file and of the connection.
        away: Why there is no connection now; ``None`` where there is one.
        refused: Why there will be none.
        taken: Why the queue is not heard.
    """

    def __init__(self, broker: Broker, file: CallerFile, warn: Callable[[str], None]) -> None:
        self.news = News()
        self.away: LabError | None = None
        self.refused: BrokerRefused | None = None
        self.taken: QueueTaken | None = None
        self._broker, self._file, self._warn = broker, file, warn
        self._commands: abc.AbstractExchange | None = None
        self._known = False  # whether the broker has let this account in
        self._strangers: set[str] = set()

    @property
    def up(self) -> bool:
        """Whether there is a connection."""
        return self._commands is not None

    async def run(self) -> None:
        """Connect, and connect again, until it is cancelled or refused."""
        from aio_pika.exceptions import CONNECTION_EXCEPTIONS, AMQPError

        back_off = wire.BackOff()
        while self.refused is None:
            began_s = steady_s()
            try:
                await self._connected()
                self.away = self._away(Text("hcp.closed"))
            except LabError as error:  # of the file
                self.away = error
            except (*CONNECTION_EXCEPTIONS, AMQPError, TimeoutError) as error:
                why = why_away(error, secured=self._broker.secured)
                self.refused, self.away = self._refusal(error, why), self._away(why)
            finally:
                self._commands = None
            self.news.tell()
            if self.refused is None:
                if steady_s() - began_s > wire.BACK_OFF_S[1]:  # it had held
                    back_off = wire.BackOff()
                LOG.info("%s", self.away)
                await asyncio.sleep(back_off.longer())

    def _away(self, why: str) -> BrokerAway:
        return BrokerAway("call.away", place=self._broker.place, why=why)

    def _refusal(self, error: BaseException, why: str) -> "BrokerRefused | None":
        """Return the error of an account that the broker has never let in."""
        from aiormq import exceptions

        kinds = (
            exceptions.AuthenticationError,
            exceptions.ProbableAuthenticationError,
            exceptions.ConnectionNotAllowed,
            exceptions.ChannelAccessRefused,
            exceptions.InvalidFrameError,  # it closes where it should open the virtual host
        )
        if self._known or not isinstance(error, kinds):
            return None
        account = self._broker.account
        return BrokerRefused("call.refused", account=account, place=self._broker.place, why=why)

    async def follow(self) -> None:
        """Tell the news that another program writes into the file."""
        seen = self._file.version()
        while True:
            await asyncio.sleep(LOOK_S)
            if (now := self._file.version()) != seen:
                seen = now
                self.news.tell()

    async def publish(self, callee_id: str, message: HcpMessage) -> None:
        """Send a message until the broker confirms that it is in the queue of a lab.

        Raises:
            NoCallee: The broker has no such queue.
            BrokerRefused: It does not let this account in.
        """
        from aio_pika.exceptions import CONNECTION_EXCEPTIONS, AMQPError, PublishError

        body = amqp.amqp_message(message, self._broker.account)
        while True:
            while (commands := self._commands) is None:
                if self.refused is not None:
                    raise self.refused
                await self.news.wait()
            try:
                await commands.publish(body, callee_id, mandatory=True, timeout=amqp.CONFIRM_S_MAX)
            except PublishError:
                place = self._broker.place
                raise NoCallee("call.no_callee", callee=callee_id, place=place) from None
            except (*CONNECTION_EXCEPTIONS, AMQPError, TimeoutError) as why:
                LOG.info("%s is sent again: %s", message.message_id, why)
                await asyncio.sleep(RESEND_S)
            else:
                return

    # ---- one connection

    async def _connected(self) -> None:
        """Send and hear until the connection ends."""
        async with AsyncExitStack() as stack:
            connection = await self._broker.connect()
            stack.push_async_callback(amqp.hang_up, connection)
            channel, commands = await _exchange(connection, wire.COMMANDS)
            ended = amqp.when_closed(connection, channel)
            self._commands, self._known, self.away = commands, True, None
            self.news.tell()
            jobs = [asyncio.ensure_future(self._hear(connection)), ended]
            stack.push_async_callback(cancelled, jobs)
            await amqp.one_ended(jobs)

    async def _queue(
        self, connection: "abc.AbstractConnection"
    ) -> "tuple[abc.AbstractChannel, abc.AbstractQueue]":
        """Return the queue of this account, bound to its topics, and its channel.

        A queue that another program has declared with other bounds is taken as it is.
        """
        name = wire.event_queue(self._broker.account)
        bounds: FieldTable = {
            "x-message-ttl": wire.EVENTS_S_MAX * 1_000,
            "x-max-length": wire.EVENTS_MAX,
            "x-overflow": "drop-head",
        }
        await _exchange(connection, wire.EVENTS)
        channel, queue = await _either(
            connection,
            lambda channel: channel.declare_queue(name, durable=True, arguments=bounds),
            lambda channel: channel.get_queue(name),
        )
        await queue.bind(wire.EVENTS, wire.pattern(self._broker.account))
        return channel, queue

    async def _hear(self, connection: "abc.AbstractConnection") -> None:
        """Hear the queue as soon as no other program of this file does."""
        while not self._file.hear():  # noqa: ASYNC110 - another process has it, and tells nothing
            await asyncio.sleep(TAKE_OVER_S)
        resending = asyncio.ensure_future(self._resend())
        try:
            back_off = wire.BackOff()
            while True:
                if await self._heard_some(*await self._queue(connection)):
                    back_off = wire.BackOff()
                else:
                    await asyncio.sleep(back_off.longer())
        finally:
            await cancelled([resending])

    async def _resend(self) -> None:
        """Send the submissions again that have not ended: an answer may have been missed."""
        for task, submission in await asyncio.to_thread(list, self._file.unended()):
            try:
                await self.publish(task.callee_id, submission)
            except NoCallee as why:
                self._warn(str(why))

    async def _heard_some(self, channel: "abc.AbstractChannel", queue: "abc.AbstractQueue") -> bool:
        """Hear deliveries while as many may be taken at once; return whether the queue was free."""
        from aiormq.exceptions import ChannelAccessRefused

        count = await asyncio.to_thread(self._prefetch)
        await channel.set_qos(prefetch_count=count)
        try:
            async with queue.iterator(exclusive=True) as deliveries:
                self.taken = None
                async for delivery in deliveries:
                    news = await self._take(delivery)
                    await delivery.ack()
                    if news and await asyncio.to_thread(self._prefetch) != count:
                        break
        except ChannelAccessRefused as why:
            name = wire.event_queue(self._broker.account)
            self.taken = QueueTaken("call.queue_taken", queue=name, why=str(why))
            return False
        return True

    def _prefetch(self) -> int:
        sessions = (task.session for task in self._file.tasks() if not task.end)
        risks = [each.risk_level for each in sessions if each is not None]
        return wire.prefetch(max((each for each in risks if each is not None), default=None))

    async def _take(self, delivery: "abc.AbstractIncomingMessage") -> bool:
        """Keep a delivery; return whether an answer came, which may change how many are taken."""
        try:
            message = decode(delivery.body)
        except (NotHcp, BadPayload) as why:
            self._warn(Text("call.unreadable", why=str(why)))
            return False
        kept = await asyncio.to_thread(self._file.heard, message)
        if kept is None:
            self._warn_of_stranger(message.session_id or "")
            return False
        if (gap := kept[1].gap) is not None:
            text = Text("call.gap", session_id=gap.session_id, first=gap.first, last=gap.last)
            self._warn(text)
        if kept[1].fresh:
            self.news.tell()
        return message.type != "event"

    def _warn_of_stranger(self, session_id: str) -> None:
        if session_id not in self._strangers and len(self._strangers) < STRANGERS_MAX:
            self._strangers.add(session_id)
            self._warn(Text("call.stranger", session_id=session_id))


STRANGERS_MAX: Final = 1_000
"""Most unknown sessions that are warned of, each once."""


async def _exchange(
    connection: "abc.AbstractConnection", name: str
) -> "tuple[abc.AbstractChannel, abc.AbstractExchange]":
    """Return an exchange of HCP, and the channel on which it was asked for."""
    return await _either(
        connection,
        lambda channel: channel.declare_exchange(name, wire.EXCHANGES[name], durable=True),
        lambda channel: channel.get_exchange(name),
    )


async def _either(
    connection: "abc.AbstractConnection",
    make: "Callable[[abc.AbstractChannel], Awaitable[T]]",
    find: "Callable[[abc.AbstractChannel], Awaitable[T]]",
) -> "tuple[abc.AbstractChannel, T]":
    """Return a channel and what is made on it; where that is refused, what is there already.

    A refusal closes its channel. An account may lack the right to declare, and a queue may stand
    there with other bounds.
    """
    from aiormq.exceptions import ChannelAccessRefused, ChannelPreconditionFailed

    channel = await connection.channel(on_return_raises=True)
    try:
        return channel, await make(channel)
    except (ChannelAccessRefused, ChannelPreconditionFailed):
        channel = await connection.channel(on_return_raises=True)
        return channel, await find(channel)
