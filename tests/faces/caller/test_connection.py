"""What a caller's connection does with each delivery, without a broker."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Self

import pytest

from canary import CANARY, found_in
from confidential import confidential_task
from labharness.faces.broker.connection import Broker
from labharness.faces.caller import AsyncCaller, NotSecured
from labharness.faces.caller.caller_file import CallerFile, CallerFileFailed
from labharness.faces.caller.connection import CallerConnection

HEAD = {"hcp_version": "1.0", "timestamp": "2026-01-01T00:00:00Z", "session_id": "s"}


def event(number: int) -> bytes:
    data = {"level": "info", "message": str(number)}
    payload: dict[str, Any] = {"event_type": "log", "sequence": number, "data": data}
    return told("event", payload, f"e-{number}")


def accepted(risk_level: str) -> bytes:
    payload = {
        "session_token": "t",
        "risk_level": risk_level,
        "data_classification": "T1",
        "safety_envelope": {},
        "constraints": {"max_duration": "PT1H", "abort_timeout": "PT5M"},
        "in_reply_to": "m",
    }
    return told("task_accepted", payload, "a-1")


def told(kind: str, payload: dict[str, Any], message_id: str) -> bytes:
    return json.dumps({**HEAD, "type": kind, "message_id": message_id, "payload": payload}).encode()


class Delivery:
    def __init__(self, body: bytes, queue: "Queue") -> None:
        self.body = body
        self._queue = queue

    async def ack(self) -> None:
        self._queue.acknowledged.append((self.body, self._queue.kept()))


class Queue:
    """Delivers bodies; remembers what the caller's file held when each was acknowledged."""

    def __init__(self, bodies: list[bytes], file: CallerFile) -> None:
        self.bodies = bodies
        self.acknowledged: list[tuple[bytes, int]] = []
        self.file = file
        self.prefetch: list[int] = []

    def kept(self) -> int:
        return len(self.file.after("m", 0))

    async def set_qos(self, prefetch_count: int) -> None:
        self.prefetch.append(prefetch_count)

    def iterator(self, *, exclusive: bool) -> "Queue":
        assert exclusive
        return self

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *ended: object) -> None:
        pass

    async def __aiter__(self) -> AsyncIterator[Delivery]:
        while self.bodies:
            yield Delivery(self.bodies.pop(0), self)


@pytest.fixture
def file(tmp_path: Path) -> CallerFile:
    return CallerFile(tmp_path / "caller.sqlite")


def hear(file: CallerFile, bodies: list[bytes]) -> tuple[Queue, list[str]]:
    warned: list[str] = []
    queue = Queue(bodies, file)

    async def heard() -> None:
        connection = CallerConnection(Broker("amqp://a@b/c"), file, warned.append)
        while queue.bodies:
            assert await connection._heard_some(queue, queue)  # type: ignore[arg-type]  # stands for both

    asyncio.run(heard())
    return queue, warned


@pytest.mark.promise(65)
def test_a_message_is_acknowledged_when_the_file_has_it(file: CallerFile) -> None:
    queue, warned = hear(file, [accepted("R3"), event(1), event(2), event(2), event(5)])
    assert [kept for _, kept in queue.acknowledged] == [1, 2, 3, 3, 5]  # the gap is one more
    assert warned == ["events 3 to 4 of session s were not heard"]


def test_what_cannot_be_read_or_belongs_to_nobody_is_dropped_with_a_warning(
    file: CallerFile,
) -> None:
    queue, warned = hear(file, [b"no JSON", event(1), event(2), accepted("R1"), event(3)])
    assert len(queue.acknowledged) == 5
    assert [each.partition(":")[0] for each in warned] == [
        "a message was dropped that cannot be read",
        "a message was dropped",
        "events 1 to 2 of session s were not heard",
    ]


@pytest.mark.parametrize(("risk_level", "then"), [("R3", [10]), ("R4", [10, 1]), ("R5", [10, 1])])
def test_a_caller_of_a_risky_session_takes_one_message_at_once(
    file: CallerFile, risk_level: str, then: list[int]
) -> None:
    queue, _ = hear(file, [accepted(risk_level), event(1), event(2)])
    assert queue.prefetch == then


def test_a_fault_of_the_connection_ends_a_wait_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def failing(_: CallerConnection) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(CallerConnection, "run", failing)

    async def wait() -> None:
        async with AsyncCaller(Broker("amqp://a@b/c"), tmp_path / "caller.sqlite") as caller:
            await caller.connected(30.0)

    with pytest.raises(ZeroDivisionError):
        asyncio.run(wait())


def test_a_file_that_fails_is_what_a_wait_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def failing(_: CallerConnection) -> None:
        raise CallerFileFailed("full")

    monkeypatch.setattr(CallerConnection, "_connected", failing)

    async def wait() -> None:
        async with AsyncCaller(Broker("amqp://a@b/c"), tmp_path / "caller.sqlite") as caller:
            await caller.connected(0.3)

    with pytest.raises(CallerFileFailed, match="full"):
        asyncio.run(wait())


@pytest.mark.promise(71)
def test_confidential_data_are_not_sent_without_tls(tmp_path: Path) -> None:
    path = tmp_path / "caller.sqlite"

    async def sent() -> None:
        async with AsyncCaller(Broker("amqp://alpha:x@127.0.0.1:1/%2Fhcp"), path) as caller:
            await caller.submit("lab", confidential_task({"document": CANARY}))

    with pytest.raises(NotSecured, match="amqps"):
        asyncio.run(sent())
    assert found_in(tmp_path) == []
