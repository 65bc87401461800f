"""The pace of a served wire in real time, idle and with every core busy; these run alone.

Never early is exact. How late a byte comes is the operating system's doing; measured with idle
cores: 0.5 ms in the middle, 3 ms at worst.
"""

import asyncio
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from labharness.core.clock import PacedLoop, run
from platforms import serves_ports
from served import Served

EXCHANGES = 40
BEST_S_MAX = 0.005  # of the one that came soonest: what is added without a cause; measured 0.0005
MEDIAN_S_MAX = 0.060  # with twice as many busy processes as cores; measured 0.001 to 0.027
ASK_RELAYS = b"\x01\x01\x00\x00\x00\x08\x3d\xcc"
ASK_FURNACE = b"\x01\x03\x00\x01\x00\x05\xd4\x09"
LATENCY_S = 0.005

pytestmark = [
    pytest.mark.serial,
    serves_ports,
]


@contextmanager
def busy_cores() -> Iterator[None]:
    command = [sys.executable, "-c", "while True: pass"]
    busy = [subprocess.Popen(command) for _ in range(2 * (os.cpu_count() or 1))]
    try:
        yield
    finally:
        for each in busy:
            each.kill()
            each.wait()


def late_s(served: Served, name: str, baud: int, frame: bytes, count: int) -> list[float]:
    """Ask, and give by how much each exchange took longer than the line computes."""
    computed_s = (len(frame) + count) * 10 / baud + LATENCY_S
    found = []
    with served.serial(name, timeout_s=2.0) as port:
        for _ in range(EXCHANGES):
            start_s = time.perf_counter()
            port.write(frame)
            assert len(port.read(count)) == count
            found.append(time.perf_counter() - start_s - computed_s)
    return found


def test_a_fine_loop_keeps_a_timer_to_less_than_a_millisecond() -> None:
    async def main() -> float:
        loop = asyncio.get_running_loop()
        late = []
        for _ in range(50):
            due_s = loop.time() + 0.0003
            await asyncio.sleep(0.0003)
            late.append(loop.time() - due_s)
        return min(late)

    assert run(main(), PacedLoop(fine=True)) < 0.0004, "epoll would round up to a millisecond"


def test_an_exchange_takes_what_the_baud_rate_computes_idle_or_busy(tmp_path: Path) -> None:
    ports = (("relays", 9600, ASK_RELAYS, 6), ("heat", 19200, ASK_FURNACE, 15))
    with Served(tmp_path / "served") as served:
        for name, baud, frame, count in ports:
            idle = late_s(served, name, baud, frame, count)
            with busy_cores():
                busy = late_s(served, name, baud, frame, count)
            assert min(*idle, *busy) > 0, "no byte comes before the line could have carried it"
            assert min(idle) < BEST_S_MAX
            assert statistics.median(busy) < MEDIAN_S_MAX
    assert served.process.returncode == 0
