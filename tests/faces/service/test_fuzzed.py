"""Hostile messages on a real broker: none stops the service, and each has a fate."""

import json
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pika
import pika.data
import pytest

from broker import NEEDS_BROKER, Broker, running
from fuzzed import Account, Fuzzed, RawTable, fuzzed
from labharness.core.clock import steady_s
from plain_caller import PlainCaller
from requested import GROWTH, PAPER
from rig import SHIPPED
from serving import Service

CALLEE, KNOWN, STRANGER = "cvd-mos2-simulated", "harness-alpha-001", "mallory"
AHEAD_MAX = 500  # messages that are sent and have no fate yet, about
LOOK = 50
SETTLE_S_MAX = 120.0
PACED = "2"  # times real time: faster, a loaded machine's line trips, as its polls come late
MEMORY_KIB_MAX = 64 * 1024

pytestmark = NEEDS_BROKER


@pytest.fixture(autouse=True)
def raw_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let pika send tables of headers that it cannot write itself."""
    write = pika.data.encode_table

    def written(pieces: list[bytes], table: Any) -> int:
        if isinstance(table, RawTable):
            pieces.append(table.data)
            return len(table.data)
        return int(write(pieces, table))

    monkeypatch.setattr(pika.data, "encode_table", written)


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    with running(tmp_path / "b", (KNOWN, STRANGER, CALLEE)) as made:
        yield made


class Hostile:
    """Sends messages and hears what becomes of each."""

    def __init__(self, broker: Broker) -> None:
        self.account = Account()
        self.ends = defaultdict[str, list[str]](list)
        self._answers: dict[tuple[str, str], dict[str, Any]] = {}
        self._of = {
            name: pika.BlockingConnection(pika.URLParameters(broker.url(name)))
            for name in (KNOWN, STRANGER)
        }
        self._channels = {name: each.channel() for name, each in self._of.items()}
        for name, each in self._channels.items():
            each.queue_declare(f"hcp.evt.{name}", durable=True)
            each.queue_bind(f"hcp.evt.{name}", "hcp.events", f"{name}.#")
            each.basic_consume(f"hcp.evt.{name}", self._told, auto_ack=True)
        self._channels[KNOWN].basic_consume(f"hcp.dead.{CALLEE}", self._letter, auto_ack=True)

    def _told(self, _: object, __: object, ___: object, body: bytes) -> None:
        told = json.loads(body)
        payload = told["payload"]
        if reply := payload.get("in_reply_to"):
            self.account.answer(reply, told["type"])
            self._answers[reply, told["type"]] = told
        if told["type"] in ("task_completed", "task_failed"):
            self.ends[told["session_id"]].append(told["type"])
        if payload.get("event_type") == "session_closed":
            self.ends[told["session_id"]].append(payload["data"]["final_state"])

    def _letter(self, _: object, __: object, properties: Any, body: bytes) -> None:
        self.account.letter(body, properties.headers["reason"])

    def send(self, message: Fuzzed) -> None:
        name = STRANGER if message.stranger else KNOWN
        given = {"user_id": name, "delivery_mode": 2, **message.properties}
        self.account.send(message)
        self._channels[name].basic_publish(
            "hcp.commands", CALLEE, message.body, pika.BasicProperties(**given)
        )

    def hear(self, most_s: float = 0.0) -> None:
        for each in self._of.values():
            each.process_data_events(most_s)

    def settle(self, left: int) -> None:
        """Hear until all messages but these have a fate."""
        self.until(lambda: self.account.missing() <= left)

    def told(self, message_id: str, kind: str) -> dict[str, Any]:
        """Return the answer of a kind to one submission."""
        self.until(lambda: (message_id, kind) in self._answers)
        return self._answers[message_id, kind]

    def accepted(self, submit: Callable[[], str]) -> None:
        """Submit a good task until it is accepted: a full queue tells that it is to come later."""
        end_s, reply = steady_s() + SETTLE_S_MAX, ""
        while (reply, "task_accepted") not in self._answers:
            assert steady_s() < end_s, f"still full after {SETTLE_S_MAX} s"
            self.hear(1.0)
            reply = submit()
            self.until(partial(self._is_answered, reply))
            if rejected := self._answers.get((reply, "task_rejected")):
                assert rejected["payload"]["reason_code"] == "resource_unavailable", rejected

    def _is_answered(self, message_id: str) -> bool:
        return any(each == message_id for each, _ in self._answers)

    def until(self, true: Callable[[], bool]) -> None:
        end_s = steady_s() + SETTLE_S_MAX
        while not true():
            assert steady_s() < end_s, f"{self.account.missing()} messages without a fate"
            self.hear(0.05)

    def close(self) -> None:
        for each in self._of.values():
            each.close()


def memory_kib(pid: int) -> int:
    text = Path(f"/proc/{pid}/status").read_text("ascii")
    return int(text.partition("VmRSS:")[2].split()[0])


def storm(broker: Broker, tmp_path: Path, seed: int, count: int) -> str:
    """Send messages while a growth runs; then it is still on, and a good task is accepted.

    Returns the figures.
    """
    service = Service(SHIPPED, broker.url(CALLEE), tmp_path / "runs", PACED)
    process = service.process.pid
    asks = PlainCaller(f"{broker.url(KNOWN)}?heartbeat=0", KNOWN, CALLEE, listens=False)
    hostile = Hostile(broker)
    try:
        growth = asks.submit(GROWTH)
        accepted = hostile.told(growth, "task_accepted")
        owner, memory, begun_s = service.owner(), memory_kib(process), steady_s()
        for number, message in enumerate(fuzzed(seed, count, PAPER, KNOWN)):
            hostile.send(message)
            if number % LOOK == 0:
                hostile.hear()
                hostile.settle(AHEAD_MAX)
        hostile.settle(0)
        took_s, after = steady_s() - begun_s, memory_kib(process)
        assert after - memory < MEMORY_KIB_MAX
        assert service.owner() == owner
        assert service.connections() == 1, service.said()
        hostile.accepted(lambda: asks.submit({**PAPER, "caller_id": KNOWN}))
        session = accepted["session_id"]
        assert not hostile.ends[session], "the growth went on until here"
        asks.abort(session, accepted["payload"]["session_token"])
        hostile.until(lambda: hostile.ends[session] == ["ABORTED"])
        return (
            f"{count} messages in {took_s:.0f} s; {memory} to {after} KiB; {hostile.account.fates}"
        )
    finally:
        hostile.close()
        asks.close()
        service.down()


@pytest.mark.thorough
@pytest.mark.timeout(180)
@pytest.mark.promise(66)
def test_hostile_messages_stop_neither_the_consumer_nor_the_line(
    broker: Broker, tmp_path: Path
) -> None:
    storm(broker, tmp_path, 1, 400)


@pytest.mark.soak
@pytest.mark.timeout(7200)
@pytest.mark.promise(66)
def test_a_hundred_thousand_hostile_messages_stop_nothing(broker: Broker, tmp_path: Path) -> None:
    print(storm(broker, tmp_path, 2, 100_000))  # noqa: T201 - the figures are the result
