"""SimPy slaved to the loop, and the simulated bus: no lag, no drift, nothing swallowed."""

import asyncio
import random
import socket
import threading
from collections.abc import Callable, Coroutine, Generator
from itertools import pairwise
from typing import Any

import pytest
import simpy
from hypothesis import given, settings
from hypothesis import strategies as st

from labharness.core.clock import PacedLoop, VirtualLoop, run
from labharness.instruments.link import LinkLost, LoopbackLink
from labharness.instruments.simulation import Face, LoopEnvironment, SimulatedBus, WireRecord
from labharness.instruments.simulation.control import NoSimulatedLab, ask


class Echo(Face):
    """Answers a line with the world's time; a line that starts with ``-`` is met with silence."""

    latency_s = 0.005

    def __init__(self, env: LoopEnvironment) -> None:
        self.env = env
        self.at_us: list[float] = []

    def frame_length(self, buffer: bytes) -> int:
        return buffer.find(b"\r") + 1

    def receive(self, frame: bytes) -> bytes | None:
        self.at_us.append(self.env.now)
        return None if frame.startswith(b"-") else frame


def virtually(main: Coroutine[Any, Any, Any]) -> Any:
    return run(main, VirtualLoop())


def steps_of(
    env: LoopEnvironment, delay_s: float, seen: list[float]
) -> Generator[simpy.Event, Any, None]:
    while True:
        yield env.seconds(delay_s)
        seen.append(env.now / 1e6)


@given(delays=st.lists(st.floats(0.001, 3.0), min_size=1, max_size=5))
@settings(deadline=None, max_examples=20)
def test_the_world_is_never_behind_the_clock_and_never_ahead(delays: list[float]) -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        env = LoopEnvironment(loop)
        seen: list[float] = []
        for delay in delays:
            env.process(steps_of(env, delay, seen))
        for _ in range(20):
            await asyncio.sleep(0.77)
            env.sync()
            assert env.now <= round(loop.time() * 1e6)
            assert env.peek() > round(loop.time() * 1e6)
        assert seen == sorted(seen)

    virtually(main())


async def test_a_hundred_thousand_steps_leave_no_drift() -> None:
    env = LoopEnvironment(asyncio.get_running_loop())
    seen: list[float] = []
    env.process(steps_of(env, 0.1, seen))
    await asyncio.sleep(10_000.0)
    env.sync()
    assert len(seen) == 100_000
    assert seen[-1] == 10_000.0


async def test_a_world_made_late_counts_from_its_making() -> None:
    await asyncio.sleep(100.0)
    env = LoopEnvironment(asyncio.get_running_loop())
    seen: list[float] = []
    env.process(steps_of(env, 1.0, seen))
    await asyncio.sleep(2.5)
    assert seen == [1.0, 2.0]


async def test_the_world_tells_the_loops_time_even_when_nothing_happens_in_it() -> None:
    env = LoopEnvironment(asyncio.get_running_loop())
    env.process(steps_of(env, 10.0, []))
    seen: list[float] = []
    for _ in range(3):
        await asyncio.sleep(3.3)
        env.sync()
        seen.append(env.now)
    assert seen == [3_300_000, 6_600_000, 9_900_000]


async def test_an_event_made_between_steps_counts_from_the_moment_of_its_making() -> None:
    loop = asyncio.get_running_loop()
    env = LoopEnvironment(loop)
    env.process(steps_of(env, 10.0, []))
    await asyncio.sleep(3.25)
    fired: list[float] = []
    event = env.seconds(0.5)
    event.callbacks.append(lambda _: fired.append(loop.time()))
    await asyncio.sleep(1.0)
    assert fired[0] == 3.75


@pytest.mark.parametrize("loop_of", [VirtualLoop, lambda: PacedLoop(10.0)])
def test_an_exception_in_the_plant_fails_the_run(loop_of: Callable[[], Any]) -> None:
    def broken(env: LoopEnvironment) -> Generator[simpy.Event, Any, None]:
        yield env.seconds(0.1)
        raise ArithmeticError("the plant froze")

    async def main() -> str:
        env = LoopEnvironment(asyncio.get_running_loop())
        env.process(broken(env))
        await asyncio.sleep(1.0)
        return "nobody noticed"

    with pytest.raises(ArithmeticError, match="the plant froze"):
        run(main(), loop_of())


async def on_a_bus(baud: int) -> tuple[SimulatedBus, Echo, LoopbackLink, list[tuple[float, bytes]]]:
    loop = asyncio.get_running_loop()
    env = LoopEnvironment(loop)
    face = Echo(env)
    bus = SimulatedBus(env, [face], baud=baud, chance=random.Random(1))
    bus.record = WireRecord()
    link = LoopbackLink(bus)
    heard: list[tuple[float, bytes]] = []
    link.receive = lambda data: heard.append((loop.time(), data))
    await link.open()
    return bus, face, link, heard


async def test_a_reply_takes_the_time_of_the_wire_and_of_the_instrument() -> None:
    _, face, link, heard = await on_a_bus(9600)
    await asyncio.sleep(1.0)
    link.write(b"0123456\r")
    await asyncio.sleep(1.0)
    assert face.at_us == [1_000_000]
    ((at_s, data),) = heard
    assert data == b"0123456\r"
    assert at_s == pytest.approx(1.0 + 16 * 10 / 9600 + 0.005, abs=1e-6)


@given(cuts=st.lists(st.integers(0, 15), max_size=6))
@settings(deadline=None, max_examples=20)
def test_frames_arrive_whole_however_they_are_cut(cuts: list[int]) -> None:
    text = b"first\r-second\r3\r"
    places = [0, *sorted(cuts), len(text)]

    async def main() -> None:
        bus, _, link, heard = await on_a_bus(0)
        for start, end in pairwise(places):
            link.write(text[start:end])
        await asyncio.sleep(1.0)
        assert bus.record is not None
        assert bus.record.frames == [b"first\r", b"-second\r", b"3\r"]
        assert [data for _, data in heard] == [b"first\r", b"3\r"]

    virtually(main())


@pytest.mark.parametrize(("pause_s", "answered"), [(0.1, 1), (0.0, 0)])
async def test_silence_ends_half_a_frame_where_the_protocol_says_so(
    pause_s: float, answered: int
) -> None:
    class Framed(Echo):
        gap_characters = 3.5

        def frame_length(self, buffer: bytes) -> int:
            return 8 if len(buffer) >= 8 else 0

        def receive(self, frame: bytes) -> bytes | None:
            return frame if frame == b"01234567" else None

    env = LoopEnvironment(asyncio.get_running_loop())
    bus = SimulatedBus(env, [Framed(env)], baud=9600, chance=random.Random(1))
    heard: list[bytes] = []
    bus.transmit(b"01234", heard.append)
    await asyncio.sleep(pause_s)
    bus.transmit(b"01234567", heard.append)
    await asyncio.sleep(1.0)
    assert len(heard) == answered


async def test_faults_are_done_to_replies_and_are_owned_up_to() -> None:
    bus, face, link, heard = await on_a_bus(0)
    assert not bus.faults.injected
    bus.faults.reply_lost = 1
    link.write(b"lost\r")
    bus.faults.reply_garbled = 1
    link.write(b"garbled\r")
    await asyncio.sleep(1.0)
    assert len(heard) == 1
    assert heard[0][1] != b"garbled\r"
    assert len(heard[0][1]) == len(b"garbled\r")
    bus.faults.reply_late_s = 2.0
    link.write(b"late\r")
    await asyncio.sleep(1.0)
    assert len(heard) == 1
    await asyncio.sleep(1.5)
    assert heard[1][1] == b"late\r"
    assert heard[1][0] == pytest.approx(3.005)
    bus.faults.reply_late_s = 0.0
    bus.faults.cut = True
    link.write(b"cut\r")
    await asyncio.sleep(1.0)
    assert len(heard) == 2
    assert len(face.at_us) == 3, "a cut wire carries nothing to the instrument"
    bus.faults.cut = False
    assert bus.faults.injected


async def test_a_closed_loopback_is_a_fence_for_what_is_under_way() -> None:
    _, face, link, heard = await on_a_bus(9600)
    link.write(b"half\r")
    link.close()
    link.close()
    await asyncio.sleep(1.0)
    assert heard == []
    with pytest.raises(LinkLost, match="closed"):
        link.write(b"after\r")
    assert len(face.at_us) == 1


@pytest.mark.parametrize("said", [b"hello\n", b"[1]\n", b"220 mail\n"])
def test_whoever_answers_in_the_place_of_a_served_room_is_none(said: bytes) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def answer() -> None:
            made, _ = listener.accept()
            with made:
                made.recv(100)
                made.sendall(said)

        other = threading.Thread(target=answer)
        other.start()
        with pytest.raises(NoSimulatedLab, match="is not a served lab"):
            ask(f"127.0.0.1:{listener.getsockname()[1]}", {"ask": "status"}, 5.0)
        other.join()
