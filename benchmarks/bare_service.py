"""The least of a durable service: one synced write, one confirmed reply, one acknowledgement.

`service.py` runs it as a process beside `labharness serve`.
"""

import asyncio
import json
import os
import sys
from pathlib import Path

import aio_pika
from aio_pika import DeliveryMode, ExchangeType, Message

PREFETCH = 32


async def serve(url: str, callee: str, file: Path, reply: bytes, ready: Path) -> None:
    """Answer each message with the same bytes, once it is on the disk."""
    connection = await aio_pika.connect(url)
    channel = await connection.channel(publisher_confirms=True, on_return_raises=True)
    await channel.set_qos(prefetch_count=PREFETCH)
    events = await channel.declare_exchange("hcp.events", ExchangeType.TOPIC, durable=True)
    commands = await channel.declare_exchange("hcp.commands", ExchangeType.DIRECT, durable=True)
    queue = await channel.declare_queue(f"hcp.cmd.{callee}", durable=True)
    await queue.bind(commands, callee)
    descriptor = os.open(file, os.O_CREAT | os.O_WRONLY | os.O_APPEND)
    os.close(os.open(ready, os.O_CREAT))
    async with queue.iterator() as deliveries:
        async for delivery in deliveries:
            os.write(descriptor, delivery.body)
            os.fdatasync(descriptor)
            asked = json.loads(delivery.body)
            answer = Message(
                reply,
                delivery_mode=DeliveryMode.PERSISTENT,
                correlation_id=asked["message_id"],
                type="task_accepted",
            )
            topic = f"{asked['payload']['caller_id']}.{callee}.task_accepted"
            await events.publish(answer, topic, mandatory=True)
            await delivery.ack()


if __name__ == "__main__":
    url, callee, file, reply, ready = sys.argv[1:]
    asyncio.run(serve(url, callee, Path(file), Path(reply).read_bytes(), Path(ready)))
