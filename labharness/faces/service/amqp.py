"""A house's callers over RabbitMQ: takes what they ask, and sends what their sessions tell.

All decisions are made elsewhere. A delivery is acknowledged once what it asks for is on the disk,
and a message counts as sent once the broker has confirmed it; so either may happen twice, with the
same ids. A broker that is away stops nothing here but the exchange of messages.
"""

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, cast

from labharness.core.vocabulary.texts import Text
from labharness.faces.broker import connection as amqp
from labharness.faces.broker.away import why_away
from labharness.faces.broker.connection import Broker
from labharness.faces.service.counts import Counts
from labharness.faces.service.inbox import Unanswerable
from labharness.faces.service.message_service import RETRY_S, MessageService, says_confidential
from labharness.faces.service.outbox import VIA, Batch, Outbox, outbox_of
from labharness.lab.house.access import HouseAccess
from labharness.protocols.hcp import wire
from labharness.protocols.hcp.codec import MESSAGE_BYTES_MAX, HcpMessage

if TYPE_CHECKING:
    from aio_pika import abc
    from aiormq import Channel
    from aiormq.abc import FieldTable

RESTORE_S: Final = 5.0
"""World time (s) between two looks after the exchanges."""

PREFETCH: Final = 32
"""Most deliveries that wait here at once."""


@dataclass(slots=True)
class AmqpFace:
    """Serves the callers of one house over a broker, and comes back when the broker does.

    Attributes:
        tell: Called with a line about the connection, for people.
        counts: Where it counts what it does.
    """

    broker: Broker
    tell: Callable[[str], None]
    counts: Counts = field(default_factory=Counts)
    _back_off: wire.BackOff = field(default_factory=wire.BackOff, init=False)

    async def __call__(self, house: HouseAccess) -> None:
        """Serve until it is cancelled."""
        from aio_pika.exceptions import CONNECTION_EXCEPTIONS, AMQPError

        with outbox_of(house, secured=self.broker.secured) as outbox:
            while True:
                try:
                    await self._connected(house, outbox)
                    why = Text("hcp.closed")
                except (*CONNECTION_EXCEPTIONS, AMQPError, TimeoutError) as error:
                    why = why_away(error, secured=self.broker.secured)
                finally:
                    self.counts.connected = False
                due = (len(each.messages) for each in outbox.due(house.tasks()))
                self.counts.waiting = await asyncio.to_thread(sum, due)
                wait_s = self._back_off.longer()
                self.tell(Text("hcp.away", why=why, wait_s=wait_s))
                await asyncio.sleep(wait_s)

    async def _connected(self, house: HouseAccess, outbox: Outbox) -> None:
        """Serve until the connection ends."""
        async with AsyncExitStack() as stack:
            connection = await self.broker.connect()
            stack.push_async_callback(amqp.hang_up, connection)
            service = await _AmqpService.begun(connection, house, outbox, self.counts)
            service.way = "tls" if self.broker.secured else "plain"
            ended = amqp.when_closed(connection, service.events, service.commands)
            self._back_off = wire.BackOff()
            self.counts.connected = True
            self.tell(Text("hcp.connected", queue=wire.command_queue(house.lab_id)))
            asked = (service.take(), service.send(), service.restore())
            jobs = [*map(asyncio.ensure_future, asked), ended]
            stack.push_async_callback(amqp.cancelled, jobs)
            await amqp.one_ended(jobs)


class _AmqpService(MessageService):
    """One connection: a channel for what is asked, and one for what is told."""

    via = VIA

    def __init__(
        self,
        house: HouseAccess,
        outbox: Outbox,
        events: "abc.AbstractChannel",
        commands: "abc.AbstractChannel",
        queue: "abc.AbstractQueue",
        dead: "abc.AbstractExchange",
        counts: Counts | None = None,
    ) -> None:
        from aio_pika.exceptions import AMQPError, ChannelInvalidStateError

        super().__init__(house, outbox, counts)
        self.ended_by = (AMQPError, ChannelInvalidStateError, ConnectionError, TimeoutError)
        self.events = events
        self.commands = commands
        self._queue = queue
        self._dead = dead

    @classmethod
    async def begun(
        cls,
        connection: "abc.AbstractConnection",
        house: HouseAccess,
        outbox: Outbox,
        counts: Counts,
    ) -> "_AmqpService":
        """Declare what HCP names, as whoever starts does, and open both channels."""
        from aio_pika import ExchangeType

        events = await connection.channel(publisher_confirms=True, on_return_raises=True)
        commands = await connection.channel()
        await commands.set_qos(prefetch_count=PREFETCH)
        dead = await events.declare_exchange(wire.DEAD, ExchangeType.DIRECT, durable=True)
        bound: FieldTable = {"x-max-length": wire.DEAD_MAX}
        letters = await _had(connection, events, wire.dead_queue(house.lab_id), bound)
        await letters.bind(dead, house.lab_id)
        queue = await _had(connection, commands, wire.command_queue(house.lab_id))
        service = cls(house, outbox, events, commands, queue, dead, counts)
        await service._declare()
        return service

    async def _declare(self) -> None:
        from aio_pika import ExchangeType

        await self.commands.declare_exchange(wire.EVENTS, ExchangeType.TOPIC, durable=True)
        await self.commands.declare_exchange(wire.COMMANDS, ExchangeType.DIRECT, durable=True)
        await self._queue.bind(wire.COMMANDS, self._house.lab_id)

    async def restore(self) -> None:
        """Declare and bind again what a caller may have deleted: its right to declare is one to."""
        while True:
            await asyncio.sleep(RESTORE_S)
            await self._declare()

    # ---- what is asked

    async def take(self) -> None:
        """Take deliveries in their order; a second callee of the same lab is refused (403).

        A quorum queue refuses none. There the second one waits, where the queue has the argument
        for it (`queue_kinds`), and takes over when the first one has gone.

        The house keeps them one after the other. What is read, written to the disk and acknowledged
        is of several at once, up to `PREFETCH`.
        """
        try:
            given = self._queue.iterator(exclusive=True)
            async with given as deliveries, asyncio.TaskGroup() as taking:
                async for delivery in deliveries:
                    taking.create_task(self._take(delivery))
        except BaseExceptionGroup as faults:  # each is the end of the connection
            raise faults.exceptions[0] from None

    async def _take(self, delivery: "abc.AbstractIncomingMessage") -> None:
        if await self._handle(delivery):
            await delivery.ack()
        else:
            await asyncio.sleep(RETRY_S)
            await delivery.nack(requeue=True)

    async def _handle(self, delivery: "abc.AbstractIncomingMessage") -> bool:
        stated = (delivery.headers or {}).get("traceparent")
        account = delivery.user_id or ""
        return await self.handle_or_dead_letter(delivery.body, account, delivery.message_id, stated)

    async def dead_letter(self, data: bytes, message_id: str | None, found: Unanswerable) -> None:
        """Put a message among the dead letters, with the reason; one that is too large is cut.

        Of one that says it is confidential the body is left out: the broker would keep it.
        """
        from aio_pika import DeliveryMode, Message

        reason = str(found.reason)[:REASON_CHARACTERS]
        body = b"" if says_confidential(data) else data[:MESSAGE_BYTES_MAX]
        letter = Message(
            body,
            headers={"reason": reason, "size_bytes": len(data)},
            message_id=message_id,
            delivery_mode=DeliveryMode.PERSISTENT,
        )
        await self._dead.publish(letter, self._house.lab_id, timeout=amqp.CONFIRM_S_MAX)
        self._counts.dead += 1

    # ---- what is told

    async def publish(self, batch: Batch, message: HcpMessage) -> bool:
        """Publish one message; return whether it was confirmed and has reached a queue."""
        from aio_pika.exceptions import DeliveryError

        sent = amqp.amqp_message(message)
        topic = wire.topic(batch.caller_id, batch.session_id, message)
        try:
            # `Exchange.publish` waits for the socket before the next message may go; here the
            # confirmations alone are waited for, and messages that go together share a write.
            channel = cast("Channel", await self.events.get_underlay_channel())
            await channel.basic_publish(
                sent.body,
                exchange=wire.EVENTS,
                routing_key=topic,
                properties=sent.properties,
                mandatory=True,
                timeout=amqp.CONFIRM_S_MAX,
                wait=False,
            )
        except DeliveryError:
            return False
        return True


REASON_CHARACTERS: Final = 500


async def _had(
    connection: "abc.AbstractConnection",
    channel: "abc.AbstractChannel",
    name: str,
    arguments: "FieldTable | None" = None,
) -> "abc.AbstractQueue":
    """Return a queue as it is; one that is missing is declared as HCP names it.

    One that is there may be of another kind, or have an argument that HCP does not name, and a
    declaration without them would be refused: `labharness broker setup` has made it.

    Args:
        connection: The connection; a question about a queue that is missing ends its channel.
        channel: The channel on which the queue is used.
        name: Of the queue.
        arguments: Of one that is missing.
    """
    from aio_pika.exceptions import ChannelNotFoundEntity

    asking = await connection.channel()
    try:
        await asking.get_queue(name)
    except ChannelNotFoundEntity:
        return await channel.declare_queue(name, durable=True, arguments=arguments)
    await asking.close()
    return await channel.get_queue(name, ensure=False)
