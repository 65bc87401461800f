"""Time the events of many sessions, from their journals to the broker's confirms, beside bare ones.

The bare side publishes the same bytes, which it has ready, in the same windows on one channel.
"""

import asyncio
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from statistics import median
from types import SimpleNamespace
from typing import Any

import aio_pika
from aio_pika import DeliveryMode, Message

from labharness.core.clock import utc_text, wall_clock_utc
from labharness.faces.service.amqp import _AmqpService
from labharness.faces.service.counts import Counts
from labharness.faces.service.message_service import WINDOW
from labharness.faces.service.outbox import VIA, Batch, Outbox, Positions
from labharness.faces.service.session_messages import messages_of
from labharness.journal import SqliteJournal
from labharness.lab.house.message_store import MessageStore
from labharness.lab.house.orders import RunFolders
from labharness.protocols.hcp.codec import encode
from labharness.work.desk.folder import JOURNAL_NAME
from labharness.work.task.commands import CreateTask, ReportStatus, StartTask, TaskActor
from labharness.work.task.house import Draft
from labharness.work.task.record import Tasks

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tests"))  # the broker is the tests' own

from broker import Broker  # noqa: E402 - found there

SESSIONS, EVENTS, ROUNDS = 20, 500, 5
CALLER, LAB = "caller", "lab"
SHARE_MIN = 0.5


def write_runs(root: Path) -> list[str]:
    """Write the journals of sessions with the events of a growth; return the sessions."""
    sessions = [str(uuid.uuid4()) for _ in range(SESSIONS)]
    for session in sessions:
        (root / session).mkdir(parents=True)
        with SqliteJournal(root / session / JOURNAL_NAME, run={"session_id": session}) as journal:
            for number in range(1, EVENTS + 1):
                journal.append("event", event(number), float(number))
    return sessions


def event(number: int) -> dict[str, Any]:
    return {
        "message_id": str(uuid.uuid4()),
        "timestamp": utc_text(wall_clock_utc()),
        "event_type": "progress",
        "sequence": number,
        "data": {"stage": "growth", "percent": 12.5, "message": "Grow for 600 s at 750 degC"},
    }


def at_work(sessions: list[str]) -> Tasks:
    """Return the state of a lab in which each session has its task at work."""
    draft = Draft(Tasks(), 0.0)
    caller, house = TaskActor(CALLER, "caller"), TaskActor("house", "runtime")
    profile = {"via": VIA, "message_id": "m"}
    for each in sessions:
        made = CreateTask(task_id=each, objective="grow", session_id=each, profile=profile)
        draft.give(made, caller)
        draft.give(ReportStatus(task_id=each, to="accepted"), house)
        draft.give(StartTask(task_id=each, run_id=each, worker="line"), house)
        draft.give(ReportStatus(task_id=each, to="running"), house)
    return draft.tasks


async def ours(url: str, folder: Path, sessions: list[str]) -> float:
    """Return events a second of the service's outbox."""
    tasks = at_work(sessions)
    found = closing(Positions(folder / f"{uuid.uuid4()}.sqlite"))
    with found as positions, MessageStore(folder) as kept:
        outbox = Outbox(kept, RunFolders(folder / "runs"), positions, lambda: "", lambda: "")
        house: Any = SimpleNamespace(lab_id=LAB, changed=asyncio.Event(), tasks=lambda: tasks)
        async with await aio_pika.connect(url) as connection:
            service = await _AmqpService.begun(connection, house, outbox, Counts())
            house.changed.set()
            all_sent = asyncio.Event()
            outbox.sent = counted(outbox.sent, all_sent)  # type: ignore[assignment]  # to see the end
            begun = time.perf_counter()
            sending = asyncio.ensure_future(service.send())
            ended = asyncio.ensure_future(all_sent.wait())
            await asyncio.wait((ended, sending), return_when=asyncio.FIRST_COMPLETED)
            if sending.done():  # it ends by an error alone
                sending.result()
            took_s = time.perf_counter() - begun
            sending.cancel()
    return SESSIONS * EVENTS / took_s


def counted(
    sent: Callable[[Batch, int], None], all_sent: asyncio.Event
) -> Callable[[Batch, int], None]:
    """Set an event once all events were sent."""
    left = SESSIONS * EVENTS

    def and_count(batch: Batch, count: int) -> None:
        nonlocal left
        sent(batch, count)
        left -= count
        if left == 0:
            all_sent.set()

    return and_count


async def bare(url: str, bodies: dict[str, list[bytes]]) -> float:
    """Return events a second of windows of confirms."""
    async with await aio_pika.connect(url) as connection:
        channel = await connection.channel(publisher_confirms=True, on_return_raises=True)
        exchange = await channel.get_exchange("hcp.events")

        async def publish(session: str, window: list[bytes]) -> None:
            topic = f"{CALLER}.{session}.event"
            sent = (
                exchange.publish(
                    Message(body, delivery_mode=DeliveryMode.PERSISTENT), topic, mandatory=True
                )
                for body in window
            )
            await asyncio.gather(*sent)

        async def session_of(session: str) -> None:
            for window in windows(bodies[session]):
                await publish(session, window)

        begun = time.perf_counter()
        await asyncio.gather(*(session_of(each) for each in bodies))
        return SESSIONS * EVENTS / (time.perf_counter() - begun)


def windows(bodies: list[bytes]) -> Iterator[list[bytes]]:
    return (bodies[at : at + WINDOW] for at in range(0, len(bodies), WINDOW))


def bodies_of(folder: Path, sessions: list[str]) -> dict[str, list[bytes]]:
    runs = RunFolders(folder / "runs")
    return {
        each: [
            encode(one.message)
            for one in messages_of(
                each, runs.records(each, 0), opened=False, accepted=None, in_reply_to="m"
            )
        ]
        for each in sessions
    }


async def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        sessions = write_runs(folder / "runs")
        bodies = bodies_of(folder, sessions)
        broker = Broker(folder / "broker", (LAB, CALLER))
        broker.start()
        try:
            async with await aio_pika.connect(broker.url(CALLER)) as connection:
                channel = await connection.channel()
                events = await channel.declare_exchange("hcp.events", "topic", durable=True)
                queue = await channel.declare_queue(f"hcp.evt.{CALLER}", durable=True)
                await queue.bind(events, f"{CALLER}.#")
                rates: dict[str, list[float]] = {"ours": [], "bare": []}
                for _ in range(ROUNDS):
                    rates["ours"].append(await ours(broker.url(LAB), folder, sessions))
                    await queue.purge()
                    rates["bare"].append(await bare(broker.url(LAB), bodies))
                    await queue.purge()
        finally:
            broker.stop()
    share = median(a / b for a, b in zip(rates["ours"], rates["bare"], strict=True))
    print(f"| events across {SESSIONS} sessions | events a second | × bare |")
    print("|---|---|---|")
    rate = median(rates["bare"])
    print(f"| bare, the same bytes in windows of {WINDOW} confirms | {rate:,.0f} | 1.0 |")
    print(f"| the outbox, from the runs' journals | {median(rates['ours']):,.0f} | {share:.2f} |")
    print(f"target: >= {SHARE_MIN} x bare")


if __name__ == "__main__":
    asyncio.run(main())
