"""``labharness serve --websocket`` as a process: the same service without a broker."""

import asyncio
import json
import signal
import stat
import subprocess
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from starlette.routing import WebSocketRoute
from websockets.exceptions import InvalidStatus
from websockets.sync.client import ClientConnection, connect
from websockets.typing import Origin

from commands import COMMAND, ROOT, say
from labharness.faces.service import sockets
from labharness.faces.service.application import application, local_socket, serving
from labharness.faces.service.outbox import Batch
from labharness.faces.service.sockets import ADDRESS_FILE, CONNECTIONS_MAX
from labharness.lab import read_lab
from labharness.protocols.hcp.codec import HcpMessage
from plain_caller import Told, answer_in, history_faults, is_end
from rig import SHIPPED
from up_lab import until

CALLERS = ("harness-local-01", "harness-alpha-001")
WAIT_S_MAX = 90.0
pytestmark = [pytest.mark.thorough, pytest.mark.timeout(300)]


Call = AbstractContextManager[ClientConnection]


def is_down(lab: Path) -> bool:
    return json.loads(say("status", "--lab", lab, "--json").out)["line_owner"] is None


class Served:
    """A lab that is served, and the address that it has written down."""

    def __init__(self, folder: Path) -> None:
        self.place = read_lab(SHIPPED).state_dir / ADDRESS_FILE
        words = ("serve", "--websocket", "0", "--lab", SHIPPED, "--runs", folder / "runs")
        with (folder / "err").open("a") as said:
            self.process = subprocess.Popen(
                [*COMMAND, *map(str, words), "--speed", "fast"],
                stdin=subprocess.DEVNULL,
                stderr=said,
            )
        until(lambda: self.place.exists() and bool(self.place.read_text()))
        self.address: str = json.loads(self.place.read_text())["address"]
        self.said = folder / "err"

    def calls(self, caller_id: str, origin: str | None = None) -> Call:
        stated = None if origin is None else Origin(origin)
        made: Call = connect(f"{self.address}?caller={caller_id}", origin=stated)
        return made

    def end(self) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            assert self.process.wait(60) == 0, self.said.read_text()


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    made = Served(tmp_path)
    yield made
    made.end()
    say("down", "--lab", SHIPPED, "--stop")
    until(partial(is_down, SHIPPED))


def closing(told: Told) -> bool:
    return told.is_("session_closed")


def document(caller_id: str, message_id: str) -> str:
    body = json.loads((ROOT / "examples" / "document-analysis.json").read_text())
    body["message_id"] = message_id
    body["payload"]["caller_id"] = caller_id
    return json.dumps(body)


def heard_until(
    calls: ClientConnection, true: Callable[[Told], bool], wait_s: float = WAIT_S_MAX
) -> list[Told]:
    heard: list[Told] = []
    while not heard or not true(heard[-1]):
        heard.append(Told(json.loads(calls.recv(wait_s))))
    return heard


@pytest.mark.promise(74)
def test_two_callers_at_once_hear_of_their_own_tasks_and_of_them_again_later(
    served: Served, tmp_path: Path
) -> None:
    with served.calls(CALLERS[0]) as first, served.calls(CALLERS[1]) as second:
        for each, caller_id in ((first, CALLERS[0]), (second, CALLERS[1])):
            each.send(document(caller_id, f"of {caller_id}"))
        told = [heard_until(each, closing) for each in (first, second)]
    for heard, caller_id in zip(told, CALLERS, strict=True):
        assert history_faults(heard) == []
        assert answer_in(heard, "task_accepted").payload["in_reply_to"] == f"of {caller_id}"
        assert heard[-2]["type"] == "task_completed"
    with served.calls(CALLERS[0]) as again:
        again.send(document(CALLERS[0], f"of {CALLERS[0]}"))
        repeated = heard_until(again, is_end)
    assert [each["type"] for each in repeated] == ["task_accepted", "task_completed"]
    assert all(each in told[0] for each in repeated)
    assert len(list((tmp_path / "runs").iterdir())) == 2


def test_a_caller_that_goes_away_gets_the_answer_when_it_comes_again(served: Served) -> None:
    with served.calls(CALLERS[0]) as calls:
        calls.send(document(CALLERS[0], "m-1"))
        told = heard_until(calls, lambda each: each["type"] == "task_accepted")
    with served.calls(CALLERS[0]) as calls:
        calls.send(document(CALLERS[0], "m-1"))  # what it had not read may be gone
        again = heard_until(calls, is_end)
    assert again[-1]["type"] == "task_completed"
    assert answer_in(again, "task_accepted") == answer_in(told, "task_accepted")
    known = {each["message_id"]: each for each in told}
    assert all(known.get(each["message_id"], each) == each for each in again)


@pytest.mark.promise(74)
def test_the_address_is_a_secret_of_the_account_and_no_browser_uses_it(served: Served) -> None:
    assert stat.S_IMODE(served.place.stat().st_mode) == 0o600
    place, _, secret = served.address.rpartition("/")
    assert secret not in served.said.read_text()
    refused = {
        f"{place}/{'0' * len(secret)}?caller=a": 403,
        f"{place}/?caller=a": 403,
        f"{place}/%C3%A4?caller=a": 403,
        served.address: 400,
        f"{served.address}?caller=a%23": 400,
        f"{served.address}?caller=a&caller=b": 400,
    }
    for address, status in refused.items():
        with pytest.raises(InvalidStatus) as why, connect(address):
            pass
        assert why.value.response.status_code == status, address
    with (
        pytest.raises(InvalidStatus) as why,
        served.calls(CALLERS[0], origin="http://127.0.0.1"),
    ):
        pass
    assert why.value.response.status_code == 403
    served.end()
    assert not served.place.exists()


@pytest.mark.promise(74)
def test_bad_messages_stop_nobody_and_no_more_callers_come_than_are_announced(
    served: Served,
) -> None:
    with ExitStack() as stack:
        calls = stack.enter_context(served.calls(CALLERS[0]))
        calls.send("no JSON")
        assert json.loads(calls.recv(WAIT_S_MAX))["error"]["code"] == "unreadable"
        calls.send(document("mallory", "m-1"))
        (rejected,) = heard_until(calls, is_end)
        assert rejected.payload["reason_code"] == "unauthorized"
        calls.send(document(CALLERS[0], "m-2"))
        assert heard_until(calls, is_end)[-1]["type"] == "task_completed"
        for number in range(CONNECTIONS_MAX - 1):
            stack.enter_context(served.calls(f"other-{number}"))
        with pytest.raises(InvalidStatus) as why, served.calls("one-more"):
            pass
        assert why.value.response.status_code == 503
        with served.calls(CALLERS[0]) as newest:  # of a caller that is connected
            newest.send(document(CALLERS[0], "m-2"))
            assert heard_until(newest, is_end)[-1]["type"] == "task_completed"
    assert "a message was not taken" in served.said.read_text()
    assert "Traceback" not in served.said.read_text()


@pytest.mark.promise(74)
def test_the_newest_connection_of_a_caller_outlives_the_older_ones(served: Served) -> None:
    with ExitStack() as older:
        older.enter_context(served.calls(CALLERS[0]))
        with served.calls(CALLERS[0]) as newest:
            older.close()
            newest.send(document(CALLERS[0], "m-1"))
            told = heard_until(newest, lambda each: each["type"] == "task_accepted", 15.0)
    assert answer_in(told, "task_accepted").payload["in_reply_to"] == "m-1"


def test_ways_without_a_broker_are_not_mixed() -> None:
    said = say("serve", "--websocket", "0", "--stdio")
    assert said.code == 64
    assert "another way" in said.err
    said = say("serve", "--websocket", "0", "--http", "0")
    assert said.code == 64
    assert "--http" in said.err


def test_a_caller_that_reads_nothing_is_hung_up_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sockets, "SEND_S_MAX", 0.2)
    monkeypatch.setattr(sockets, "encode", lambda message: b"x" * 4_000_000)
    house: Any = SimpleNamespace(changed=asyncio.Event())
    outbox: Any = SimpleNamespace()
    service = sockets._Sockets(house, outbox, "secret", print)
    batch, message = Batch("ana", "s", (), 0), cast("HcpMessage", SimpleNamespace(type="event"))

    async def serve() -> list[bool]:
        with local_socket(0) as listening:
            route = WebSocketRoute("/{secret}", service.with_caller)
            async with serving(application([route]), listening):
                port = listening.getsockname()[1]
                _, writer = await asyncio.open_connection("127.0.0.1", port, limit=1)
                writer.write(GREETING.format(port=port).encode())
                while "ana" not in service._connected:  # noqa: ASYNC110 - it tells nothing
                    await asyncio.sleep(0.01)
                told = (service.publish(batch, message) for _ in range(8))
                left = await asyncio.gather(*told)
                left.append(await service.publish(batch, message))
                writer.transport.abort()
                return left

    left = asyncio.run(asyncio.wait_for(serve(), 60.0))
    assert left[-2:] == [False, False]
    assert service._connected == {}


GREETING = (
    "GET /secret?caller=ana HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: Upgrade\r\n"
    "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
    "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
)
