"""Time acceptances over RabbitMQ beside a bare durable aio-pika service, on the same disk.

The bare one (`bare_service.py`) does the least: one synced write, one confirmed reply of the same
size, one acknowledgement. It decides nothing, and keeps nothing that could be asked for again.
"""

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
import uuid
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median, quantiles
from typing import TYPE_CHECKING

import aio_pika
from aio_pika import DeliveryMode, Message

if TYPE_CHECKING:
    from aio_pika.abc import AbstractIncomingMessage

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tests"))  # the broker and the service are the tests' own

from broker import Broker  # noqa: E402 - found there
from serving import Service  # noqa: E402 - found there

LAB = ROOT / "envelopes" / "labharness_envelopes" / "labs" / "cvd_mos2" / "lab.toml"
TASK = json.loads((ROOT / "examples" / "document-analysis.json").read_text("utf-8"))
OURS, BARE, CALLER = "cvd-mos2-simulated", "bare", "harness-local-01"
SINGLES = 40  # submissions to each side, in turn, nothing else at work
WINDOW = 16  # submissions that wait for their acceptance at once
WINDOWED = {OURS: 16, BARE: 200}  # submissions; of ours each is a task that is carried out
ROUNDS = 2  # of windows, in turn
REST_S = 0.05  # between two submissions
P50_MAX, P99_MAX, SHARE_MIN = 2.2, 5.0, 0.4  # times bare


class Client:
    """A caller of both services, on one connection."""

    def __init__(self, connection: "aio_pika.abc.AbstractConnection") -> None:
        self._connection = connection
        self._accepted: defaultdict[str, asyncio.Future[tuple[float, bytes]]] = defaultdict(
            asyncio.Future
        )
        self._ended: defaultdict[str, asyncio.Future[None]] = defaultdict(asyncio.Future)

    async def listen(self) -> None:
        """Hear the answers of both."""
        channel = await self._connection.channel()
        self._commands = await channel.get_exchange("hcp.commands")
        queue = await channel.declare_queue(f"hcp.evt.{CALLER}", durable=True)
        await queue.bind("hcp.events", f"{CALLER}.#")
        await queue.consume(self._heard, no_ack=True)

    async def _heard(self, message: "AbstractIncomingMessage") -> None:
        at_s = time.perf_counter()
        if message.type == "task_accepted":
            is_bare = message.routing_key == f"{CALLER}.{BARE}.task_accepted"
            told = json.loads(message.body)["payload"]["in_reply_to"]
            reply = message.correlation_id if is_bare else told
            self._accepted[str(reply)].set_result((at_s, message.body))
        elif message.type in ("task_completed", "task_failed"):
            self._ended[str(message.correlation_id)].set_result(None)

    async def submit(self, callee: str) -> tuple[float, bytes]:
        """Return the time (s) to the acceptance, and its bytes."""
        message_id = str(uuid.uuid4())
        body = json.dumps({**TASK, "message_id": message_id}, ensure_ascii=False).encode()
        sent = Message(
            body, user_id=CALLER, message_id=message_id, delivery_mode=DeliveryMode.PERSISTENT
        )
        begun_s = time.perf_counter()
        await self._commands.publish(sent, callee)
        at_s, accepted = await self._accepted[message_id]
        return at_s - begun_s, accepted

    async def ended(self, accepted: bytes) -> None:
        """Wait until the task of an acceptance has ended."""
        await self._ended[json.loads(accepted)["session_id"]]

    async def rate(self, callee: str) -> float:
        """Return acceptances a second, with `WINDOW` submissions under way."""
        window, count = asyncio.Semaphore(WINDOW), WINDOWED[callee]

        async def one() -> bytes:
            async with window:
                return (await self.submit(callee))[1]

        begun_s = time.perf_counter()
        accepted = await asyncio.gather(*(one() for _ in range(count)))
        took_s = time.perf_counter() - begun_s
        if callee == OURS:
            for each in accepted:
                await self.ended(each)
        return count / took_s


@contextmanager
def bare_service(url: str, folder: Path, reply: bytes) -> Iterator[None]:
    (folder / "reply").write_bytes(reply)
    script = ROOT / "benchmarks" / "bare_service.py"
    words = (url, BARE, str(folder / "bare"), str(folder / "reply"))
    ready = folder / "ready"
    with subprocess.Popen([sys.executable, str(script), *words, str(ready)]) as process:
        while not ready.exists():
            time.sleep(0.05)
        yield
        process.terminate()


async def measure(broker: Broker, folder: Path) -> None:
    async with await aio_pika.connect(broker.url(CALLER)) as connection:
        client = Client(connection)
        await client.listen()
        _, accepted = await client.submit(OURS)
        await client.ended(accepted)
        with bare_service(broker.url(BARE), folder, accepted):
            took_s: dict[str, list[float]] = {OURS: [], BARE: []}
            for _ in range(SINGLES):
                one_s, accepted = await client.submit(OURS)
                took_s[OURS].append(one_s)
                await client.ended(accepted)
                await asyncio.sleep(REST_S)
                took_s[BARE].append((await client.submit(BARE))[0])
                await asyncio.sleep(REST_S)
            windows: dict[str, list[float]] = {OURS: [], BARE: []}
            for _ in range(ROUNDS):
                for callee in (BARE, OURS):
                    windows[callee].append(await client.rate(callee))
            told(took_s, windows)


def told(took_s: dict[str, list[float]], windows: dict[str, list[float]]) -> None:
    rates = {name: median(each) for name, each in windows.items()}
    p50 = {name: median(each) * 1e3 for name, each in took_s.items()}
    p99 = {name: quantiles(each, n=100)[98] * 1e3 for name, each in took_s.items()}
    print(f"| submission to acceptance, R1, {SINGLES} each in turn | p50 ms | p99 ms | a second |")
    print("|---|---|---|---|")
    for name, text in ((BARE, "bare aio-pika"), (OURS, "`labharness serve`")):
        print(f"| {text} | {p50[name]:.2f} | {p99[name]:.1f} | {rates[name]:,.0f} |")
    ratios = [each[OURS] / each[BARE] for each in (p50, p99, rates)]
    print(f"| × bare | {ratios[0]:.2f} | {ratios[1]:.1f} | {ratios[2]:.3f} |")
    shares = sorted(ours / bare for ours, bare in zip(*windows.values(), strict=True))
    print(f"share of the rate in {ROUNDS} windows: {', '.join(f'{each:.2f}' for each in shares)}")
    print(f"targets: <= {P50_MAX}, <= {P99_MAX}, >= {SHARE_MIN} with {WINDOW} under way")


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.environ["LABHARNESS_STATE"] = str(folder / "state")
        broker = Broker(folder / "broker", (OURS, BARE, CALLER))
        broker.start()
        service = None
        try:
            service = Service(LAB, broker.url(OURS), folder / "runs", "1")
            asyncio.run(measure(broker, folder))
        finally:
            if service is not None:
                service.down()
            broker.stop()


if __name__ == "__main__":
    main()
