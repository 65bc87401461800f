"""Whatever bytes and properties come, a message is understood, answered or a dead letter."""

import asyncio
import json
from collections.abc import AsyncIterator, MutableMapping
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest
from aio_pika import Message
from hypothesis import given, settings
from hypothesis import strategies as st
from pamqp.base import BasicProperties
from pamqp.commands import Basic
from starlette.websockets import WebSocket, WebSocketState

from canary import CANARY, traces
from fuzzed import fuzzed
from labharness.core.vocabulary.texts import Text
from labharness.faces.broker.lenient import read_what_can_be_read
from labharness.faces.service import amqp
from labharness.faces.service.amqp import _AmqpService
from labharness.faces.service.inbox import (
    AbortAsked,
    Refusal,
    SubmissionAsked,
    Unanswerable,
    asked,
)
from labharness.faces.service.sockets import _Sockets
from labharness.lab.house.intake import Submitted, session_created
from labharness.lab.house.orders import TaskRefused
from labharness.protocols.hcp import answers
from labharness.protocols.hcp.codec import decode, encode
from labharness.work.task.queue import QUEUED_MAX
from rig import EXAMPLE, task_submit

GROWTH = json.loads(EXAMPLE.read_text("utf-8"))["payload"]
SUBMIT = json.dumps(task_submit(GROWTH)).encode()
ACCOUNTS = st.sampled_from(("", "harness-alpha-001", "mallory"))


def holds(data: bytes, account: str) -> None:
    """The result can be acted on: it has a reason, or its answer can be written."""
    found = asked(data, account)
    if isinstance(found, Refusal):
        answer = answers.task_rejected(
            message_id="x",
            timestamp="2026-01-01T00:00:00.000Z",
            in_reply_to=found.in_reply_to,
            rejected=found.rejected,
        )
        assert decode(encode(answer)).payload == answer.payload
        assert account == found.caller_id
    elif isinstance(found, Unanswerable):
        assert found.reason.encode("utf-8")
    elif isinstance(found, SubmissionAsked):
        assert found.caller_id == account
    else:
        assert isinstance(found, AbortAsked)
        assert found.caller_id == account


@given(st.binary(), ACCOUNTS)
@pytest.mark.promise(66)
def test_arbitrary_bytes_are_given_up_with_a_reason(data: bytes, account: str) -> None:
    holds(data, account)
    assert isinstance(asked(data, account), Unanswerable)


@settings(deadline=None)  # a machine may be loaded
@given(st.integers(0, 2**32), ACCOUNTS)
@pytest.mark.promise(66)
def test_a_hostile_message_has_a_fate(seed: int, account: str) -> None:
    for each in fuzzed(seed, 20, GROWTH, "harness-alpha-001"):
        holds(each.body, account)


@pytest.fixture
def lenient(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in the process of the service; afterwards pamqp is as it was."""
    monkeypatch.setattr(BasicProperties, "unmarshal", BasicProperties.unmarshal)
    read_what_can_be_read()


def read(data: bytes, flags: int) -> Basic.Properties:
    found = Basic.Properties()
    found.unmarshal(flags, data)
    return found


@pytest.mark.usefixtures("lenient")
@given(st.binary(max_size=200), st.integers(0, 0xFFFF))
@pytest.mark.promise(66)
def test_no_bytes_of_properties_raise(data: bytes, flags: int) -> None:
    assert isinstance(read(data, flags & 0xFFFE), Basic.Properties)


@pytest.mark.promise(67)
@pytest.mark.parametrize("payload", [GROWTH, {"caller_id": GROWTH["caller_id"]}])
def test_a_submission_without_an_account_is_answered_to_nobody(payload: dict[str, Any]) -> None:
    data = json.dumps({**json.loads(SUBMIT), "payload": payload}).encode()
    found = asked(data, "")
    assert isinstance(found, Unanswerable)
    assert "user_id" in found.reason
    assert GROWTH["caller_id"] in found.reason


@pytest.mark.usefixtures("lenient")
@pytest.mark.promise(66)
def test_what_stands_beside_an_unreadable_property_is_read() -> None:
    sent = Basic.Properties(
        content_type="application/json",
        headers={"a": 1},
        delivery_mode=2,
        timestamp=datetime(2026, 1, 1, tzinfo=UTC),
        message_id="m-1",
        user_id="alpha",
        app_id="x",
    )
    data = sent.marshal()
    flags = int.from_bytes(data[:2], "big")
    assert read(data[2:], flags) == sent
    time = int(datetime(2026, 1, 1, tzinfo=UTC).timestamp()).to_bytes(8, "big")
    broken = data[2:].replace(time, b"\xff" * 8).replace(b"m-1", b"\xff\xff\xff")
    found = read(broken, flags)
    assert (found.timestamp, found.message_id) == (None, None)
    assert (found.user_id, found.app_id, found.headers) == ("alpha", "x", {"a": 1})


class Letters:
    """Stands for the exchange of dead letters."""

    def __init__(self) -> None:
        self.reasons: list[str] = []
        self.bodies: list[bytes] = []

    async def publish(self, letter: Message, *_: object, **__: object) -> None:
        self.reasons.append(str(letter.headers["reason"]))
        self.bodies.append(letter.body)


def handled(
    house: Any, body: bytes, *, outbox: Any = None, events: Any = None, dead: Any = None
) -> bool:
    """Have a message of the broker handled by what the service needs of its neighbours."""
    service = _AmqpService(house, outbox, events, None, None, dead)  # type: ignore[arg-type]  # unused
    sent: Any = SimpleNamespace(body=body, user_id=GROWTH["caller_id"], message_id="m", headers={})
    return asyncio.run(service._handle(sent))


@pytest.mark.promise(66)
@pytest.mark.parametrize("fault", [KeyError("x"), RuntimeError("x"), ZeroDivisionError()])
def test_a_message_that_makes_the_lab_fail_is_a_dead_letter(fault: Exception) -> None:
    async def failing(*_: object) -> None:
        raise fault

    house = SimpleNamespace(submit=failing, lab_id="lab")
    letters = Letters()
    assert handled(house, SUBMIT, dead=letters)
    assert letters.reasons == [str(Text("hcp.fault"))]


@pytest.mark.promise(71)
def test_what_is_confidential_is_no_dead_letter_and_in_no_traceback(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def failing(*_: object) -> None:
        raise KeyError(CANARY)

    payload = {**GROWTH, "intent": CANARY, "constraints": {"data_classification": "T3"}}
    whole = json.dumps({**json.loads(SUBMIT), "payload": payload}).encode()
    letters = Letters()
    house = SimpleNamespace(submit=failing, lab_id="lab")
    for body in (whole, whole[:-1], whole.replace(b'"1.0"', b'"2.0"')):
        assert handled(house, body, dead=letters)
    assert letters.bodies == [b"", b"", b""]
    assert not any(traces(each.encode()) for each in letters.reasons)
    assert "a message was not understood" in caplog.text
    assert not traces(caplog.text.encode())


NOW = "2026-01-01T00:00:00.000Z"


class Events:
    """Stands for the channel of events."""

    def __init__(self) -> None:
        self.told: list[dict[str, Any]] = []

    async def get_underlay_channel(self) -> "Events":
        return self

    async def basic_publish(self, body: bytes, **_: object) -> None:
        self.told.append(json.loads(body))


def test_a_task_that_a_full_queue_does_not_take_is_rejected_as_resource_unavailable() -> None:
    async def full(*_: object) -> None:
        raise TaskRefused(Text("house.full", most=QUEUED_MAX))

    house = SimpleNamespace(submit=full, lab_id="lab", tasks=lambda: SimpleNamespace(keys={}))
    events = Events()
    assert handled(house, SUBMIT, events=events)
    (told,) = events.told
    assert (told["type"], told["session_id"]) == ("task_rejected", None)
    assert told["payload"]["reason_code"] == "resource_unavailable"
    assert told["payload"]["in_reply_to"] == "m"
    assert str(QUEUED_MAX) in told["payload"]["reason_message"]
    assert told["payload"]["suggestion"]


def test_a_caller_is_told_of_its_acceptance_before_its_submission_is_acknowledged() -> None:
    accepted = session_created("m-2", NOW, "s-1", "m"), session_created("m-3", NOW, "s-1", "m")

    async def submit(*_: object) -> Submitted:
        return Submitted(task_id="t", fresh=True, caller_id="a", session_id="s-1", opening=accepted)

    events = Events()
    outbox = SimpleNamespace(is_due=lambda batch: True, sent=lambda batch, count: None)
    house = SimpleNamespace(submit=submit, lab_id="lab")
    assert handled(house, SUBMIT, outbox=outbox, events=events)
    assert [each["message_id"] for each in events.told] == ["m-2", "m-3"]


class Deliveries:
    """Stands for the queue of a lab, which delivers one submission twice."""

    def __init__(self, did: list[str]) -> None:
        self._did = did

    def iterator(self, *, exclusive: bool) -> "Deliveries":
        assert exclusive
        return self

    async def __aenter__(self) -> AsyncIterator[SimpleNamespace]:
        return self._each()

    async def __aexit__(self, *_: object) -> None:
        return None

    async def _each(self) -> AsyncIterator[SimpleNamespace]:
        async def ack() -> None:
            self._did.append("ack")

        async def nack(*, requeue: bool) -> None:
            self._did.append(f"back {requeue}")

        for _ in range(2):
            yield SimpleNamespace(
                body=SUBMIT,
                user_id=GROWTH["caller_id"],
                message_id="m",
                headers={},
                ack=ack,
                nack=nack,
            )


def test_a_delivery_is_acknowledged_once_it_is_kept_and_given_back_where_it_is_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    did: list[str] = []
    disks = iter([OSError("no space left"), None])

    async def submit(*_: object) -> SimpleNamespace:
        full = next(disks)
        did.append("full" if full else "kept")
        if full:
            raise full
        return SimpleNamespace(fresh=True, opening=())

    monkeypatch.setattr(amqp, "RETRY_S", 0.0)
    house = SimpleNamespace(submit=submit, lab_id="lab", changed=asyncio.Event())
    queue: Any = Deliveries(did)
    service = _AmqpService(house, None, None, None, queue, None)  # type: ignore[arg-type]  # unused
    asyncio.run(service.take())
    assert sorted(did) == ["ack", "back True", "full", "kept"]
    assert did.index("kept") < did.index("ack")


class Frames:
    """A WebSocket connection: what its caller says, and what it hears."""

    def __init__(self, caller: str, *said: str | bytes) -> None:
        self._said, self.heard = iter(said), list[str]()
        scope = {
            "type": "websocket",
            "path_params": {"secret": "secret"},
            "query_string": f"caller={caller}".encode(),
            "headers": [],
        }
        self.socket = WebSocket(scope, self._receive, self._send)

    async def _receive(self) -> dict[str, Any]:
        await asyncio.sleep(0)
        if self.socket.client_state is WebSocketState.CONNECTING:
            return {"type": "websocket.connect"}
        for each in self._said:
            return {"type": "websocket.receive", "text" if isinstance(each, str) else "bytes": each}
        return {"type": "websocket.disconnect"}

    async def _send(self, message: MutableMapping[str, Any]) -> None:
        if message["type"] == "websocket.send":
            self.heard.append(message["text"])


@pytest.mark.promise(74)
def test_a_frame_that_cannot_be_read_is_answered_on_its_own_connection() -> None:
    told: list[str] = []
    house = SimpleNamespace(changed=asyncio.Event())
    service = _Sockets(house, SimpleNamespace(), "secret", told.append)  # type: ignore[arg-type]  # all that is used of them
    ana, ben = Frames("ana", "no JSON", b"\xff\xfe"), Frames("ben", "{}", "[]", '"x"')

    async def both() -> None:
        each = (service.with_caller(one.socket) for one in (ana, ben))
        await asyncio.gather(*each)

    asyncio.run(both())
    assert [len(each.heard) for each in (ana, ben)] == [2, 3]
    for text in (*ana.heard, *ben.heard):
        error = json.loads(text)["error"]
        assert error["code"] == "unreadable"
        assert error["message"]
    assert len(told) == 5, "the lab's people are told as before"
