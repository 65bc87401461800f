"""Our Modbus drivers on pymodbus's own server: a codec that is neither ours nor the client's.

Their frames go to it through the guard, over a real socket, in RTU framing as behind a serial
server.
"""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from interop.conftest import client
from labharness.core.clock import PacedLoop, run
from labharness.core.vocabulary import DeviceFault, Request, disobeyed
from labharness.instruments.driver import Driver, Identity
from labharness.instruments.link.tcp import TcpLink
from labharness.lab.config.kinds import load_driver
from labharness.safety.guard import GuardCore, Latch
from labharness.safety.guard.shell import LoopGuard

pytestmark = pytest.mark.filterwarnings("ignore")  # a client's own

PORT = "bus"
BOUND_S = 15.0
VERSION = 0x8000  # of the relay board's identity

Ask = Callable[[Request, bool], Awaitable[tuple[bytes | None, str]]]


def driver_of(kind: str) -> Driver:
    """A driver with the settings that it has by itself; its unit is 1."""
    return load_driver(kind)()


def served(
    driver: Driver,
    blocks: dict[str, dict[int, int]],
    work: Callable[[Ask], Awaitable[None]],
    folder: Path,
) -> None:
    """Serve such registers, open a link with its guard to them, and let ``work`` ask over it."""
    store, server = client("pymodbus.datastore"), client("pymodbus.server")
    framer = client("pymodbus").FramerType.RTU

    async def main() -> None:
        # its context counts from 1, and so do the keys of its blocks
        held = {
            name: store.ModbusSparseDataBlock(
                {at + 1: value for at, value in block.items()}, mutable=False
            )
            for name, block in blocks.items()
        }
        context = store.ModbusServerContext(devices=store.ModbusDeviceContext(**held), single=True)
        bus = server.ModbusTcpServer(context, framer=framer, address=("127.0.0.1", 0))
        await bus.serve_forever(background=True)
        number = bus.transport.sockets[0].getsockname()[1]
        reads = {scan.request.frame for scan in driver.scans()}
        reads.add(driver.identify().request.frame)
        link = TcpLink("127.0.0.1", number)
        guard = LoopGuard(GuardCore({PORT: reads}, {}), {PORT: link}, Latch(folder / "latch.json"))
        await link.open()
        await guard.arm()

        async def ask(request: Request, writes: bool) -> tuple[bytes | None, str]:
            ended: asyncio.Future[tuple[bytes | None, str]]
            ended = asyncio.get_running_loop().create_future()
            free = asyncio.Event()
            guard.when_free(PORT, free.set)
            await free.wait()
            permit = guard.permit(PORT, request) if writes else None
            guard.exchange(PORT, request, permit, lambda *end: ended.set_result(end))
            reply, error = await ended
            guard.release(PORT)
            return reply, error

        try:
            async with asyncio.timeout(BOUND_S):
                await work(ask)
        finally:
            guard.disarm()
            guard.close()
            await bus.shutdown()

    run(main(), PacedLoop(1.0))


async def obeyed(ask: Ask, driver: Driver, channel: str, value: float) -> None:
    """Set a channel; its driver takes each reply for obedience."""
    for request in driver.write(channel, value):
        reply, error = await ask(request, True)
        assert (error, reply is None) == ("", False)
        assert reply is not None
        driver.accept(channel, reply)
        assert not disobeyed(request, reply)


def test_a_relay_board_is_read_and_switched_and_its_refusal_is_told(tmp_path: Path) -> None:
    driver = driver_of("waveshare_relay")
    coils = dict.fromkeys(range(7), 0)  # the eighth is not there
    blocks = {"co": coils | {7: 0}, "di": dict.fromkeys(range(8), 1), "hr": {VERSION: 200}}

    async def work(ask: Ask) -> None:
        relays, inputs = driver.scans()
        reply, error = await ask(inputs.request, False)
        assert (error, inputs.decode(reply or b"")) == ("", (1.0,) * 8)
        identity = driver.identify()
        reply, error = await ask(identity.request, False)
        found = identity.decode(reply or b"")
        assert isinstance(found, Identity)
        assert driver.expects(found) == ""
        await obeyed(ask, driver, "relay_3", 1)
        reply, error = await ask(relays.request, False)
        assert relays.decode(reply or b"") == (0, 0, 1, 0, 0, 0, 0, 0)
        await obeyed(ask, driver, "relay_3", 0)
        reply, error = await ask(relays.request, False)
        assert relays.decode(reply or b"") == (0.0,) * 8

    served(driver, blocks, work, tmp_path)
    del blocks["co"][7]  # pymodbus's store answers a write beyond it with 4, device failure

    async def refused(ask: Ask) -> None:
        for request in driver.write("relay_8", 1):
            reply, error = await ask(request, True)
            assert error == ""
            assert disobeyed(request, reply or b"")
            with pytest.raises(DeviceFault, match="Modbus exception 4"):
                driver.accept("relay_8", reply or b"")

    served(driver, blocks, refused, tmp_path)


def test_a_temperature_controller_is_read_and_set_and_its_refusal_is_told(tmp_path: Path) -> None:
    driver = driver_of("eurotherm_2400")
    blocks = {"hr": dict.fromkeys(range(700), 0) | {1: 251, 2: 0}}

    async def work(ask: Ask) -> None:
        scans = {channel: scan for scan in driver.scans() for channel in scan.channels}

        async def read(channel: str) -> float:
            scan = scans[channel]
            reply, error = await ask(scan.request, False)
            assert error == ""
            return scan.decode(reply or b"")[scan.channels.index(channel)]

        assert await read("temperature") == 25.1
        await obeyed(ask, driver, "setpoint", 725.0)
        assert await read("setpoint") == 725.0

    served(driver, blocks, work, tmp_path)
    del blocks["hr"][2]

    async def refused(ask: Ask) -> None:
        (request,) = driver.write("setpoint", 725.0)
        reply, error = await ask(request, True)
        assert error == ""
        with pytest.raises(DeviceFault, match="Modbus exception 4"):
            driver.accept("setpoint", reply or b"")

    served(driver, blocks, refused, tmp_path)
