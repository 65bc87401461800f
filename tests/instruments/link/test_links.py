"""The links, each against a far end that is not ours: pseudo-terminal, sockets, servers."""

import asyncio
import gc
import os
import random
import socket
import sys
import tty
import warnings
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, closing, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest
import serial
import websockets.asyncio.server
from websockets.http11 import Request, Response

import labharness.instruments.link.websocket as websocket_module
from labharness.core.clock import PacedLoop, run
from labharness.instruments.link import Link, LinkLost
from labharness.instruments.link.serial_port import SerialLink
from labharness.instruments.link.tcp import TcpLink
from labharness.instruments.link.visa import VisaLink
from labharness.instruments.link.websocket import WebSocketLink
from labharness.lab.config.kinds import load_driver, load_simulator
from labharness.safety.guard import GuardCore, Latch
from labharness.safety.guard.shell import LoopGuard

EVERY_BYTE = bytes(range(256)) * 4

pytestmark = pytest.mark.timeout(20)  # ends what waits for a link that is never lost


@pytest.fixture
def loop() -> asyncio.AbstractEventLoop:
    return PacedLoop(1.0)


async def until(done: Callable[[], bool]) -> None:
    while not done():  # noqa: ASYNC110 - what is waited for happens in another thread or host
        await asyncio.sleep(0.005)


class Ear:
    """Keeps what a link hands over, and waits until enough has come."""

    def __init__(self, link: Link) -> None:
        self.pieces: list[bytes] = []
        link.receive = self.pieces.append

    async def hear(self, enough: Callable[[bytes], bool]) -> bytes:
        await until(lambda: enough(b"".join(self.pieces)))
        return b"".join(self.pieces)


async def until_lost(link: Link) -> None:
    """Write until the link says that it is gone; the test's bound ends a link that never does."""
    while True:
        try:
            link.write(b"\r")
        except LinkLost:
            return
        await asyncio.sleep(0.005)


# ---- serial


class Terminal:
    """The far end of a pseudo-terminal that sends back what it hears."""

    def __init__(self) -> None:
        self.master, self._slave = os.openpty()
        tty.setraw(self._slave)
        self.path = os.ttyname(self._slave)
        self.heard = b""
        asyncio.get_running_loop().add_reader(self.master, self._echo)

    def _echo(self) -> None:
        data = os.read(self.master, 4096)
        self.heard += data
        os.write(self.master, data)

    def hang_up(self) -> None:
        asyncio.get_running_loop().remove_reader(self.master)
        os.close(self._slave)
        os.close(self.master)


async def test_a_serial_port_passes_every_byte_both_ways() -> None:
    far = Terminal()
    link = SerialLink(far.path, 9600)
    ear = Ear(link)
    await link.open()
    link.write(EVERY_BYTE)
    assert await ear.hear(lambda data: len(data) >= len(EVERY_BYTE)) == EVERY_BYTE
    assert far.heard == EVERY_BYTE
    link.close()
    link.close()
    with pytest.raises(LinkLost, match="is closed"):
        link.write(b"A\r")
    far.hang_up()


async def test_a_serial_port_is_opened_for_one_process_alone() -> None:
    far = Terminal()
    link = SerialLink(far.path, 9600)
    await link.open()
    with pytest.raises(LinkLost, match=r"pts/\d+ does not open: another process has it open$"):
        await SerialLink(far.path, 9600).open()
    link.close()
    far.hang_up()


async def test_a_serial_port_that_hangs_up_is_lost_and_says_so() -> None:
    far = Terminal()
    link = SerialLink(far.path, 9600)
    await link.open()
    far.hang_up()
    await until(lambda: link._port is None)  # noticed by listening, before any write
    with pytest.raises(LinkLost, match=r"pts/\d+ is lost: unplugged$"):
        link.write(b"A\r")


async def test_another_program_on_a_serial_port_is_named() -> None:
    far = Terminal()
    holds = "import sys, time; port = open(sys.argv[1], 'rb'); print(flush=True); time.sleep(9)"
    started = [sys.executable, "-c", holds, far.path]
    other = await asyncio.create_subprocess_exec(*started, stdout=asyncio.subprocess.PIPE)
    try:
        assert other.stdout is not None
        await other.stdout.readline()
        link = SerialLink(far.path, 9600)
        await link.open()
        assert link._port is not None
        emptied = serial.SerialException("readiness to read but returned no data")
        link._port.read = Mock(side_effect=emptied)  # type: ignore[method-assign]  # as it says
        link.write(b"A")
        await until(lambda: link._port is None)
        named = rf"pts/\d+ is lost: process {other.pid} \(.*\) reads from it too"
        with pytest.raises(LinkLost, match=named):
            link.write(b"A\r")
    finally:
        other.kill()
        await other.communicate()
    far.hang_up()


async def test_a_serial_port_that_is_polled_passes_bytes_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    far = Terminal()
    link = SerialLink(far.path, 9600)
    ear = Ear(link)
    with monkeypatch.context() as patch:
        cannot = Mock(side_effect=NotImplementedError)
        patch.setattr(asyncio.get_running_loop(), "add_reader", cannot)
        await link.open()
    link.write(b"@253PR4?;FF")
    assert await ear.hear(lambda data: len(data) >= 11) == b"@253PR4?;FF"
    link.close()
    await asyncio.sleep(2 * SerialLink.POLL_S)
    far.hang_up()


@pytest.mark.parametrize("settings", [("/dev/no-such-port", 9600), ("/dev/null", 9600)])
async def test_a_serial_port_that_is_none_is_named(settings: tuple[str, int]) -> None:
    with pytest.raises(LinkLost, match=f"serial {settings[0]} does not open"):
        await SerialLink(*settings).open()


# ---- TCP


Answer = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def serving(answer: Answer) -> AsyncIterator[int]:
    """Serve on a free port; at the end no connection is left open."""
    handlers: list[asyncio.Task[None]] = []

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async def answered() -> None:
            try:
                await answer(reader, writer)
            finally:
                writer.close()
                with suppress(OSError):
                    await writer.wait_closed()

        handlers.append(asyncio.create_task(answered()))

    async with await asyncio.start_server(handle, "127.0.0.1", 0) as server:
        yield server.sockets[0].getsockname()[1]
    for each in handlers:
        each.cancel()
    await asyncio.gather(*handlers, return_exceptions=True)


async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(4096):
        writer.write(data)


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


async def test_tcp_passes_every_byte_both_ways() -> None:
    async with serving(echo) as port:
        link = TcpLink("127.0.0.1", port)
        ear = Ear(link)
        with pytest.raises(LinkLost, match="is closed"):
            link.write(b"too early")
        await link.open()
        link.write(EVERY_BYTE)
        assert await ear.hear(lambda data: len(data) >= len(EVERY_BYTE)) == EVERY_BYTE
        link.close()
        link.close()
        with pytest.raises(LinkLost, match="is closed"):
            link.write(b"A\r")


async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read(1)


async def test_a_tcp_host_that_closes_is_lost_and_says_so() -> None:
    async with serving(hang_up) as port:
        link = TcpLink("127.0.0.1", port)
        await link.open()
        await until_lost(link)


@pytest.mark.parametrize(
    ("link_of", "where"),
    [
        (lambda port: TcpLink("127.0.0.1", port), "tcp 127.0.0.1"),
        (lambda port: WebSocketLink(f"ws://127.0.0.1:{port}/"), "tcp 127.0.0.1"),
        (lambda port: VisaLink(f"no resource at {port}"), "visa no resource"),
    ],
    ids=["tcp", "websocket", "visa"],
)
async def test_where_nobody_listens_opening_says_so(
    link_of: Callable[[int], Link], where: str
) -> None:
    with closing(link_of(free_port())) as link, pytest.raises(LinkLost, match=where):
        await link.open()


# ---- WebSocket

Connection = websockets.asyncio.server.ServerConnection


async def websocket_echo(connection: Connection) -> None:
    async for message in connection:
        await connection.send(message)


@asynccontextmanager
async def on_websocket(
    handler: Callable[[Connection], Awaitable[None]], **options: Any
) -> AsyncIterator[WebSocketLink]:
    async with websockets.asyncio.server.serve(handler, "127.0.0.1", 0, **options) as server:
        port = next(iter(server.sockets)).getsockname()[1]
        with closing(WebSocketLink(f"ws://127.0.0.1:{port}/icl")) as link:
            yield link


async def test_a_websocket_passes_whole_messages_both_ways() -> None:
    messages = ['{"id":1}', "", "µ → 532 nm", "x" * 200_000]

    async with on_websocket(websocket_echo) as link:
        ear = Ear(link)
        await link.open()
        for number, message in enumerate(messages, 1):
            link.write(message.encode())
            await until(lambda number=number: len(ear.pieces) >= number)  # type: ignore[misc]  # mypy cannot type a default of a lambda
        assert [piece.decode() for piece in ear.pieces] == messages


async def test_a_message_in_fragments_and_bytes_arrives_whole_and_a_ping_is_answered() -> None:
    ponged = []

    async def handler(connection: Connection) -> None:
        await connection.send(["one ", "two ", "three"])
        await (await connection.ping())
        ponged.append(True)
        await connection.send(b"\x00\xff")
        await connection.wait_closed()

    async with on_websocket(handler) as link:
        ear = Ear(link)
        await link.open()
        await until(lambda: len(ear.pieces) == 2)
        assert ear.pieces == [b"one two three", b"\x00\xff"]
        assert ponged == [True]


async def test_a_websocket_that_is_closed_by_its_server_is_lost() -> None:
    async def handler(connection: Connection) -> None:
        await connection.close()

    async with on_websocket(handler) as link:
        Ear(link)
        await link.open()
        await until_lost(link)


async def test_a_server_that_refuses_the_handshake_is_named() -> None:
    def refuse(connection: Connection, request: Request) -> Response:
        return connection.respond(404, "no such instrument\n")

    async with on_websocket(websocket_echo, process_request=refuse) as link:
        with pytest.raises(LinkLost, match="websocket ws://127"):
            await link.open()


async def test_a_host_that_speaks_no_websocket_is_named() -> None:
    async def other(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"220 this is no websocket\r\n\r\n")

    async with serving(other) as port:
        with pytest.raises(LinkLost, match="websocket ws://127"):
            await WebSocketLink(f"ws://127.0.0.1:{port}/").open()


async def test_a_host_that_never_shakes_hands_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(websocket_module, "OPEN_S_MAX", 0.1)

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()

    async with serving(silent) as port:
        with pytest.raises(LinkLost, match="timeout"):
            await WebSocketLink(f"ws://127.0.0.1:{port}/").open()


async def test_a_message_beyond_all_measure_closes_the_link(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(websocket_module, "MESSAGE_BYTES_MAX", 1000)

    async def handler(connection: Connection) -> None:
        await connection.send("x" * 1001)
        await connection.wait_closed()

    async with on_websocket(handler) as link:
        ear = Ear(link)
        await link.open()
        await until_lost(link)
        assert ear.pieces == []


@pytest.mark.parametrize("url", ["http://host:1/", "ws://", "host:25010", ""])
def test_an_address_that_is_no_websocket_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match="is not ws://host:port/path"):
        WebSocketLink(url)


# ---- VISA


def gauge() -> tuple[Any, list[bytes]]:
    """Return a simulated MKS 910 at 4.321 Torr as a handler of connections, and what it heard."""
    part = SimpleNamespace(pressure_torr=4.321)
    face = load_simulator("mks_910")(SimpleNamespace(now=0), part, random.Random(1), address=253)
    heard: list[bytes] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        buffer = b""
        while data := await reader.read(4096):
            buffer += data
            while length := face.frame_length(buffer):
                frame, buffer = buffer[:length], buffer[length:]
                heard.append(frame)
                if (reply := face.receive(frame)) is not None:
                    writer.write(reply)

    return answer, heard


async def test_visa_passes_exact_bytes_both_ways() -> None:
    answer, heard = gauge()
    async with serving(answer) as port:
        link = VisaLink(f"TCPIP::127.0.0.1::{port}::SOCKET")
        ear = Ear(link)
        with pytest.raises(LinkLost, match="is closed"):
            link.write(b"too early")
        await link.open()
        link.write(b"@253PR4?;FF")
        assert await ear.hear(lambda data: data.endswith(b";FF")) == b"@253ACK4.321E+0;FF"
        assert heard == [b"@253PR4?;FF"]
        link.write(b"@253T?;FF")
        link.close()
        await until(lambda: len(heard) == 2)
        assert heard[1] == b"@253T?;FF", "what was handed over before the end still leaves"
        with pytest.raises(LinkLost, match="is closed"):
            link.write(b"@253PR4?;FF")


def test_a_visa_host_that_does_not_exist_is_named() -> None:
    async def main() -> None:
        with closing(VisaLink("TCPIP::no-such-host.invalid::1::SOCKET")) as link:
            await link.open()

    with pytest.raises(LinkLost, match="visa TCPIP::no-such-host"):
        run(main(), PacedLoop(1.0))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)  # pyvisa-py forgets its socket
        gc.collect()


async def visa_until_lost(port: int) -> None:
    with closing(VisaLink(f"TCPIP::127.0.0.1::{port}::SOCKET")) as link:
        await link.open()
        await until_lost(link)


async def test_a_visa_host_where_nobody_listens_is_lost_and_says_so() -> None:
    await visa_until_lost(free_port())


async def test_a_visa_host_that_closes_is_lost_and_says_so() -> None:
    async with serving(hang_up) as port:
        await visa_until_lost(port)


@pytest.mark.parametrize(
    "link_of",
    [
        lambda port: TcpLink("127.0.0.1", port),
        lambda port: VisaLink(f"TCPIP::127.0.0.1::{port}::SOCKET"),
    ],
    ids=["tcp", "visa"],
)
async def test_a_driver_reads_through_the_guard_over_a_real_link(
    link_of: Callable[[int], Link], tmp_path: Path
) -> None:
    answer, heard = gauge()
    driver = load_driver("mks_910")()
    scan = driver.scans()[0]
    core = GuardCore({"gauge": {scan.request.frame}}, {})
    async with serving(answer) as port:
        link = link_of(port)
        guard = LoopGuard(core, {"gauge": link}, Latch(tmp_path / "latch.json"))
        await link.open()
        ended: asyncio.Future[tuple[bytes | None, str]]
        ended = asyncio.get_running_loop().create_future()
        guard.exchange("gauge", scan.request, None, lambda *end: ended.set_result(end))
        reply, error = await ended
        guard.close()
    assert error == ""
    assert reply is not None
    assert scan.decode(reply) == (4.321,)
    assert heard == [scan.request.frame]
