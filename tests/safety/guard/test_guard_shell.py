"""The guard on the virtual loop: timers, turns, and procedures that wait for nothing."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from guarded import READ, SAFE, SHUT
from labharness.core.clock import VirtualLoop, run
from labharness.core.vocabulary import Cause, Nothing, Quiet, Request, Trip
from labharness.instruments.link import LinkLost
from labharness.instruments.link.links import nobody
from labharness.safety.guard import GuardCore, Latch, NotPermitted, PortBusy
from labharness.safety.guard.contract import WAITING_MAX
from labharness.safety.guard.shell import LoopGuard

LEAK = Trip(Cause.GAS_LEAK, "stop", "h2.concentration", 1200.0, 1.0, "")


class FakeLink:
    """A link that keeps what is written and answers after ``delay_s``, or not at all."""

    kind = "fake"

    def __init__(self, latch_file: Path) -> None:
        self.receive: Callable[[bytes], None] = nobody
        self.written: list[tuple[float, bytes]] = []
        self.latched_before: list[bool] = []
        self.delay_s: float | None = 0.05
        self.lost = False
        self.closed = False
        self._latch_file = latch_file

    async def open(self) -> None:
        """Open."""

    def write(self, data: bytes) -> None:
        """Keep the bytes, and answer an echo later."""
        if self.lost:
            raise LinkLost("fake link is gone")
        loop = asyncio.get_running_loop()
        self.written.append((loop.time(), data))
        self.latched_before.append(self._latch_file.exists())
        if self.delay_s is not None:
            loop.call_later(self.delay_s, lambda: self.receive(data))

    def close(self) -> None:
        """Close."""
        self.closed = True


class Bench:
    """A guard with two fake links and everything that it reported."""

    def __init__(self, folder: Path, latch_file: Path | None = None) -> None:
        path = latch_file or folder / "latch.json"
        self.latch = Latch(path)
        self.links = {"heat": FakeLink(path), "gas": FakeLink(path)}
        self.core = GuardCore(
            {"heat": {READ.frame}, "gas": {READ.frame}},
            {"stop": SAFE, "vent": (SAFE[1],)},
        )
        self.guard = LoopGuard(self.core, self.links, self.latch)
        self.safe: list[tuple[str, str]] = []
        self.guard.on_safe_frame = lambda frame, error: self.safe.append((frame.channel, error))

    def frames(self, port: str) -> list[bytes]:
        return [data for _, data in self.links[port].written]

    async def read(self, port: str, request: Request = READ) -> tuple[bytes | None, str]:
        """Do what a user of the guard does: wait for the port, exchange, give it back."""
        given: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.guard.when_free(port, lambda: given.set_result(None))
        await given
        ended: asyncio.Future[tuple[bytes | None, str]]
        ended = asyncio.get_running_loop().create_future()
        try:
            self.guard.exchange(port, request, None, lambda *end: ended.set_result(end))
            return await ended
        finally:
            self.guard.release(port)


@pytest.fixture
@asynccontextmanager
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    """Links that answer, under a guard."""
    yield Bench(tmp_path)  # noqa: PT022 - it is made on the loop of its test


@given(start_us=st.integers(0, 10**9), timeout_us=st.integers(1, 10**6))
@settings(deadline=None, max_examples=60)
def test_silence_ends_at_the_timeout_wherever_it_falls_on_the_clocks_grid(
    start_us: int, timeout_us: int
) -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        bench = Bench(Path("nowhere"))
        bench.links["heat"].delay_s = None
        await asyncio.sleep(start_us / 1e6)
        began = loop.time()
        reply, error = await bench.read("heat", replace(READ, timeout_s=timeout_us / 1e6))
        assert reply is None
        assert "no reply within" in error
        assert loop.time() - began == pytest.approx(timeout_us / 1e6, abs=2e-6)
        await bench.read("heat")  # the port comes back after its drain
        assert len(bench.frames("heat")) == 2

    run(main(), VirtualLoop())


async def test_the_next_frame_waits_until_the_line_is_quiet(bench: Bench) -> None:
    bench.links["heat"].delay_s = 0.35  # later than the timeout
    assert (await bench.read("heat"))[0] is None
    bench.links["heat"].delay_s = 0.05
    assert await bench.read("heat") == (b"A\r", "")
    (first, _), (second, _) = bench.links["heat"].written
    assert second - first == pytest.approx(0.65), "a time-out from the late reply on"


async def test_users_get_a_port_one_by_one_in_the_order_of_asking(bench: Bench) -> None:
    turns: list[int] = []
    for number in range(5):
        bench.guard.when_free("heat", lambda n=number: turns.append(n))  # type: ignore[misc]  # mypy cannot type a default of a lambda
    assert turns == [0]
    bench.guard.when_free("gas", lambda: turns.append(99))
    assert turns == [0, 99]
    for _ in range(4):
        bench.guard.release("heat")
    assert turns == [0, 99, 1, 2, 3, 4]


async def test_many_readers_share_one_port_without_overlap(bench: Bench) -> None:
    ends = await asyncio.gather(*(bench.read("heat") for _ in range(50)))
    assert ends == [(b"A\r", "")] * 50
    times = [at for at, _ in bench.links["heat"].written]
    gaps = [later - sooner for sooner, later in pairwise(times)]
    assert min(gaps) >= 0.0499


async def test_waiting_is_bounded(bench: Bench) -> None:
    for _ in range(WAITING_MAX + 1):  # one of them has the port
        bench.guard.when_free("heat", lambda: None)
    with pytest.raises(PortBusy, match="heat"):
        bench.guard.when_free("heat", lambda: None)


async def test_what_the_core_refuses_leaves_no_byte_and_calls_nobody(bench: Bench) -> None:
    called: list[object] = []
    with pytest.raises(NotPermitted):
        bench.guard.exchange("heat", SHUT[0], None, lambda *end: called.append(end))
    await asyncio.sleep(10.0)
    assert bench.frames("heat") == []
    assert called == []


@pytest.mark.promise(14)
async def test_a_trip_writes_its_bytes_before_its_latch(bench: Bench, tmp_path: Path) -> None:
    bench.guard.trip(LEAK)
    assert bench.frames("heat") == [SHUT[0].frame], "no loop turn was needed"
    assert bench.frames("gas") == [SHUT[1].frame]
    assert bench.links["heat"].latched_before == [False]
    assert bench.links["gas"].latched_before == [False]
    assert (tmp_path / "latch.json").exists()
    await asyncio.sleep(1.0)
    assert bench.frames("heat") == [SHUT[0].frame, SHUT[2].frame]
    assert bench.frames("gas") == [SHUT[1].frame, SHUT[3].frame]
    assert sorted(bench.safe) == sorted((each.channel, "") for each in SAFE)


async def test_a_trip_acts_even_if_its_latch_cannot_be_written(tmp_path: Path) -> None:
    bench = Bench(tmp_path, tmp_path / "no such folder" / "latch.json")
    bench.guard.trip(LEAK)
    await asyncio.sleep(1.0)
    assert len(bench.frames("heat")) == len(bench.frames("gas")) == 2
    assert bench.latch.write_error
    assert bench.core.latched
    assert bench.latch.trip == LEAK


@pytest.mark.parametrize("answered", [True, False])
async def test_a_trip_waits_only_for_the_exchange_in_flight(bench: Bench, answered: bool) -> None:
    bench.links["heat"].delay_s = 0.2 if answered else None
    user = asyncio.ensure_future(bench.read("heat"))
    next_user = asyncio.ensure_future(bench.read("heat"))
    await asyncio.sleep(0.1)
    bench.links["heat"].delay_s = 0.01
    bench.guard.trip(LEAK)
    assert bench.frames("heat") == [READ.frame]
    assert bench.frames("gas") == [SHUT[1].frame], "the other port does not wait"
    reply, error = await user
    assert (reply == b"A\r") is answered
    assert bool(error) is not answered
    at_s, frame = bench.links["heat"].written[1]
    assert frame == SHUT[0].frame
    assert at_s == pytest.approx(0.2 if answered else 0.3, abs=1e-6), "no drain for it"
    await next_user
    assert bench.frames("heat") == [READ.frame, SHUT[0].frame, SHUT[2].frame, READ.frame]


async def test_a_lost_link_does_not_stop_a_procedure_on_another(bench: Bench) -> None:
    bench.links["heat"].lost = True
    bench.guard.trip(LEAK)
    await asyncio.sleep(5.0)
    assert bench.frames("gas") == [SHUT[1].frame, SHUT[3].frame]
    told = dict(bench.safe)
    assert told["furnace.setpoint"] == told["box.contactor"] == "fake link is gone"


async def test_a_lost_link_is_told_later_and_once(bench: Bench) -> None:
    bench.links["heat"].lost = True
    ends: list[object] = []
    bench.guard.exchange("heat", READ, None, lambda *end: ends.append(end))
    assert ends == [], "never from inside exchange"
    await asyncio.sleep(1.0)
    assert ends == [(None, "fake link is gone")]
    bench.links["heat"].lost = False
    assert await bench.read("heat") == (b"A\r", "")


async def test_a_second_trip_is_sent_too_and_the_latch_keeps_the_first(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.guard.trip(replace(LEAK, cause=Cause.STOP_REQUEST, procedure="vent"))
    await asyncio.sleep(1.0)
    bench.guard.trip(LEAK)
    await asyncio.sleep(1.0)
    assert bench.frames("gas") == [SHUT[1].frame, SHUT[1].frame, SHUT[3].frame]
    latched = Latch(tmp_path / "latch.json").trip
    assert latched == replace(LEAK, cause=Cause.STOP_REQUEST), "with what made safe at last"


async def test_a_port_is_ready_when_its_exchange_is_over_and_no_procedure_waits(
    bench: Bench,
) -> None:
    assert bench.guard.ready("heat")
    bench.guard.exchange("heat", READ, None, lambda *end: None)
    assert not bench.guard.ready("heat")
    await asyncio.sleep(0.1)
    assert bench.guard.ready("heat")


async def test_a_request_without_reply_ends_by_itself(bench: Bench) -> None:
    bench.links["heat"].delay_s = None
    request = Request(READ.frame, Nothing(), 0.0, settle_s=0.1)
    assert await bench.read("heat", request) == (b"", "")


async def test_silence_ends_a_reply_that_has_no_other_end(bench: Bench) -> None:
    request = Request(READ.frame, Quiet(0.02), 1.0)
    assert await bench.read("heat", request) == (b"A\r", "")
    assert asyncio.get_running_loop().time() == pytest.approx(0.07)


async def test_noise_before_a_reply_is_told_and_waited_out(bench: Bench) -> None:
    loop = asyncio.get_running_loop()
    loop.call_later(0.01, lambda: bench.links["heat"].receive(b"\x00noise"))
    reply, error = await bench.read("heat")
    assert reply is None
    assert error.startswith("bad reply")
    assert await bench.read("heat") == (b"A\r", "")
    assert bench.core.ports["heat"].discarded == 2, "the late reply was thrown away"


async def test_what_is_in_flight_is_not_given_up_but_ends_by_its_own_reply(bench: Bench) -> None:
    ends: list[tuple[bytes | None, str]] = []
    bench.guard.exchange("heat", READ, None, lambda *end: ends.append(end))
    bench.guard.give_up("somebody else had the port")
    assert ends == []
    await asyncio.sleep(0.1)
    assert ends == [(b"A\r", "")]


async def test_closing_closes_every_link_and_leaves_no_timer(bench: Bench, tmp_path: Path) -> None:
    bench.guard.exchange("heat", READ, None, lambda *end: None)
    bench.guard.close()
    assert [link.closed for link in bench.links.values()] == [True, True]
    Bench(tmp_path).guard.close()  # one that was never used closes as well


async def test_a_procedure_sent_while_a_port_drains_is_not_cut_short_by_the_end_of_that_quiet(
    bench: Bench,
) -> None:
    heat = bench.links["heat"]
    heat.delay_s = None
    ends: list[str] = []
    bench.guard.when_free(
        "heat",
        lambda: bench.guard.exchange("heat", READ, None, lambda _, why: ends.append(why)),
    )
    await asyncio.sleep(READ.timeout_s + 0.05)  # timed out: the port drains
    bench.guard.release("heat")
    bench.guard.when_free("heat", lambda: ends.append("mine"))
    bench.guard.trip(LEAK)
    await asyncio.sleep(0.05)
    assert bench.frames("heat") == [READ.frame, SHUT[0].frame]
    assert ends == [f"no reply within {READ.timeout_s} s"]
    heat.delay_s = 0.05
    await asyncio.sleep(2.0)
    assert [channel for channel, _ in bench.safe].count("furnace.setpoint") == 1
    assert ends[-1] == "mine"


async def test_stray_bytes_after_a_quiet_that_is_over_begin_one_of_a_time_out(bench: Bench) -> None:
    bench.links["heat"].delay_s = None
    ends: list[str] = []
    bench.guard.when_free(
        "heat",
        lambda: bench.guard.exchange("heat", READ, None, lambda _, why: ends.append(why)),
    )
    await asyncio.sleep(READ.timeout_s + 0.01)
    bench.guard.release("heat")
    await asyncio.sleep(1.0)  # nobody waits, so nobody has ended the quiet
    bench.links["heat"].receive(b"stray")
    assert not bench.guard.ready("heat")
    await asyncio.sleep(READ.timeout_s)
    assert bench.guard.ready("heat")
