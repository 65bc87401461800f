"""The loops whose time is given, each trap held open; and the streams of chance."""

import asyncio
import heapq
import math
import random
import sys
import threading
import time
from collections.abc import Callable, Coroutine
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labharness.core.clock import (
    VIRTUAL_EPOCH,
    Chance,
    Clock,
    Deadlock,
    PacedLoop,
    VirtualLoop,
    run,
    utc_text,
)
from labharness.core.clock.loops import SWITCH_S

DAY_S = 86_400.0


def virtually(main: Coroutine[Any, Any, Any]) -> Any:
    return run(main, VirtualLoop())


@given(delays=st.lists(st.sampled_from([0.0, 0.1, 0.1 + 1e-17, 0.3, 1.0]), max_size=40))
@settings(deadline=None, max_examples=30)
def test_timers_that_fall_due_together_fire_in_the_order_they_were_made(
    delays: list[float],
) -> None:
    async def main() -> list[tuple[float, int]]:
        loop = asyncio.get_running_loop()
        fired: list[tuple[float, int]] = []
        for number, delay in enumerate(delays):
            loop.call_at(delay, fired.append, (round(delay, 6), number))
        await asyncio.sleep(2.0)
        return fired

    due = [(round(delay, 6), number) for number, delay in enumerate(delays)]  # on the grid
    assert virtually(main()) == sorted(due)


def test_the_standard_loop_would_not_fire_ties_in_order() -> None:
    """The negative control: were asyncio's heap FIFO, the test above would prove nothing."""
    loop = asyncio.new_event_loop()
    heap: list[asyncio.TimerHandle] = []
    for number in range(12):
        heapq.heappush(heap, asyncio.TimerHandle(1.0, print, (number,), loop))
    order = [heapq.heappop(heap)._args[0] for _ in range(12)]
    loop.close()
    assert order != sorted(order)


@pytest.mark.parametrize("start_s", [0.0, 52 * DAY_S, 1.7e9])
def test_a_short_sleep_ends_at_any_epoch(start_s: float) -> None:
    loop = VirtualLoop()
    loop.ticks = round(start_s * 1e6)

    async def main() -> list[float]:
        seen = []
        for delay in (1e-9, 1e-6, 0.1, 0.2, 1 / 3):
            before = loop.ticks
            await asyncio.sleep(delay)
            seen.append((loop.ticks - before) / 1e6)
        return seen

    found = run(main(), loop)
    for slept, asked in zip(found, (1e-9, 1e-6, 0.1, 0.2, 1 / 3), strict=True):
        assert slept == pytest.approx(asked, abs=1.5e-6)


async def test_a_million_seconds_leave_no_drift() -> None:
    loop = asyncio.get_running_loop()
    due = 0.0
    for _ in range(1000):
        due += 1000.1
        await asyncio.sleep(due - loop.time())
    assert loop.time() == pytest.approx(1_000_100.0, abs=2e-6)


def test_waiting_for_what_nobody_will_do_is_a_deadlock() -> None:
    async def main() -> None:
        await asyncio.Event().wait()

    with pytest.raises(Deadlock, match=r"at 0\.000000 s everything waits"):
        virtually(main())


def freeze() -> None:
    raise ZeroDivisionError("the plant froze")


async def unaware() -> None:
    asyncio.get_running_loop().call_later(0.01, freeze)
    await asyncio.sleep(0.05)


async def ended() -> None:
    asyncio.get_running_loop().call_soon(freeze)


async def swallows() -> None:
    asyncio.get_running_loop().call_later(0.01, freeze)
    with suppress(asyncio.CancelledError):
        await asyncio.sleep(1.0)


@pytest.mark.parametrize("loop_of", [VirtualLoop, PacedLoop])
@pytest.mark.parametrize("main", [unaware, ended, swallows])
def test_an_exception_in_a_callback_fails_the_run(
    main: Callable[[], Coroutine[Any, Any, None]], loop_of: type[VirtualLoop | PacedLoop]
) -> None:
    with pytest.raises(ZeroDivisionError, match="the plant froze"):
        run(main(), loop_of())


async def test_executor_work_is_done_inline_and_costs_no_lab_time() -> None:
    loop = asyncio.get_running_loop()
    here = threading.get_ident()
    async with asyncio.timeout(1.0):
        there = await asyncio.to_thread(threading.get_ident)
    assert (here == there, loop.time()) == (True, 0.0)


def test_an_error_in_executor_work_reaches_the_one_who_waits() -> None:
    async def main() -> None:
        await asyncio.to_thread(int, "no number")

    with pytest.raises(ValueError, match="no number"):
        virtually(main())


async def test_sets_of_tasks_are_walked_in_the_order_of_their_making() -> None:
    async def nap() -> None:
        await asyncio.sleep(1.0)

    tasks = [asyncio.ensure_future(nap()) for _ in range(200)]
    done, _ = await asyncio.wait(tasks)
    assert (list(done) == tasks) is True


def test_a_task_group_cancels_in_the_order_of_making() -> None:
    cancelled: list[int] = []

    async def member(number: int) -> None:
        try:
            await asyncio.sleep(DAY_S)
        finally:
            cancelled.append(number)

    async def main() -> None:
        async with asyncio.TaskGroup() as group:
            for number in range(100):
                group.create_task(member(number))
            await asyncio.sleep(1.0)
            raise KeyError("enough")

    with pytest.raises(ExceptionGroup):
        virtually(main())
    assert cancelled == list(range(100))


def test_a_paced_loop_lets_no_busy_thread_keep_the_interpreter_for_long() -> None:
    before_s = sys.getswitchinterval()
    try:
        sys.setswitchinterval(0.005)
        PacedLoop(1.0).close()
        assert sys.getswitchinterval() == pytest.approx(SWITCH_S, abs=2e-6)
        sys.setswitchinterval(1e-4)
        PacedLoop(1.0).close()
        assert sys.getswitchinterval() == pytest.approx(1e-4, abs=2e-6), (
            "who wants it finer keeps it"
        )
    finally:
        sys.setswitchinterval(before_s)


def test_what_is_left_running_is_cancelled_and_the_loop_is_closed() -> None:
    ended = []

    async def forgotten() -> None:
        try:
            await asyncio.sleep(DAY_S)
        finally:
            ended.append("forgotten")

    loop = VirtualLoop()

    async def main() -> asyncio.Task[None]:
        task = asyncio.ensure_future(forgotten())
        await asyncio.sleep(1.0)
        return task

    run(main(), loop)
    assert ended == ["forgotten"]
    assert loop.is_closed()


class _PlainTurns(VirtualLoop):
    """A virtual loop with asyncio's own turn and queue, whose selector moves the clock."""

    call_at = PacedLoop.call_at

    def __init__(self) -> None:
        super().__init__()
        self._clock_resolution = 0.5e-6
        self._selector.select = self._move  # type: ignore[method-assign]  # asyncio asks it

    def _move(self, timeout: float | None = None) -> list[Any]:
        assert timeout is not None
        self.ticks += math.ceil(timeout * 1e6 - 0.25)
        return []

    def _run_once(self) -> None:
        asyncio.SelectorEventLoop._run_once(self)  # type: ignore[attr-defined]  # private to asyncio


@settings(max_examples=60, deadline=None)
@given(
    steps=st.lists(
        st.tuples(
            st.sampled_from(["at", "soon", "cancel"]),
            st.sampled_from([0.0, 1e-7, 1e-6, 0.1, 0.1000001, 1.0, 3.0]),
            st.integers(0, 9),
        ),
        min_size=1,
        max_size=30,
    )
)
def test_a_turn_does_what_asyncios_own_turn_does(steps: list[tuple[str, float, int]]) -> None:
    def trace_of(loop: VirtualLoop) -> list[tuple[int, int]]:
        trace: list[tuple[int, int]] = []
        timers: list[asyncio.TimerHandle] = []

        def act(number: int) -> None:
            trace.append((loop.ticks, number))
            for kind, after_s, of in steps[number + 1 : number + 3]:
                if kind == "at":
                    timers.append(loop.call_later(after_s, note, of))
                elif kind == "soon":
                    loop.call_soon(note, of)
                elif timers:
                    timers[of % len(timers)].cancel()

        def note(number: int) -> None:
            trace.append((loop.ticks, -1 - number))

        for number, (_, after_s, _) in enumerate(steps):
            timers.append(loop.call_at(after_s, act, number))
        loop.call_at(60.0, loop.stop)
        try:
            loop.run_forever()
        finally:
            loop.close()
        return trace

    assert trace_of(VirtualLoop()) == trace_of(_PlainTurns())


async def test_timers_that_are_cancelled_before_they_are_due_do_not_fill_the_queue() -> None:
    loop = asyncio.get_running_loop()
    for _ in range(5_000):
        loop.call_later(DAY_S, print).cancel()
        await asyncio.sleep(0.001)
    assert isinstance(loop, VirtualLoop)
    assert len(loop._queue) < 200


@pytest.mark.parametrize("loop_of", [VirtualLoop, PacedLoop])
def test_the_private_parts_of_asyncio_that_the_loops_rely_on_are_there(
    loop_of: Callable[[], Any],
) -> None:
    loop = loop_of()
    timer = loop.call_at(7.25, print)
    try:
        queue = loop._scheduled if loop_of is PacedLoop else [each for *_, each in loop._queue]
        assert queue == [timer]
        assert (timer._when, timer._scheduled) == (7.25, True)
        assert isinstance(loop._clock_resolution, float)
        assert (list(loop._ready), loop._stopping) == ([], False)
        assert callable(asyncio.SelectorEventLoop._run_once)  # type: ignore[attr-defined]  # private to asyncio
        assert callable(timer._run)
        timer.cancel()
        assert timer._cancelled
        assert loop._timer_cancelled_count == 1
    finally:
        loop.close()


@pytest.mark.promise(8)
def test_the_same_coroutine_does_the_same_in_real_and_in_virtual_time() -> None:
    async def main() -> list[tuple[str, int]]:
        loop = asyncio.get_running_loop()
        began = loop.time()
        seen: list[tuple[str, int]] = []

        async def actor(name: str, period_s: float) -> None:
            for step in range(1, 4):
                await asyncio.sleep(began + step * period_s - loop.time())
                seen.append((name, step))

        async with asyncio.TaskGroup() as group:
            group.create_task(actor("fast", 0.04))
            group.create_task(actor("slow", 0.17))
        return seen

    assert virtually(main()) == run(main(), PacedLoop(1.0))


def test_a_paced_loop_runs_as_fast_as_it_is_told() -> None:
    async def main() -> float:
        began = time.monotonic()
        await asyncio.sleep(20.0)
        return time.monotonic() - began

    assert 0.19 < run(main(), PacedLoop(100.0)) < 2.0


@pytest.mark.parametrize("speed", [0.0, -1.0, float("nan"), float("inf")])
def test_a_speed_that_is_no_speed_is_refused(speed: float) -> None:
    with pytest.raises(ValueError, match="is not a positive number"):
        PacedLoop(speed)


@pytest.mark.parametrize(("speed", "behind"), [(1.0, False), (50.0, True)])
def test_a_paced_run_knows_that_its_computer_fell_behind(speed: float, behind: bool) -> None:
    """Not in real time, where what is late is a fault of this program."""
    loop = PacedLoop(speed)
    clock = Clock(loop)

    async def main() -> None:
        later = asyncio.create_task(asyncio.sleep(0.001 * speed))
        loop.call_soon(time.sleep, 0.05)
        await later

    run(main(), loop)
    assert (clock.behind_s > 1.0) is behind


async def test_world_time_of_a_virtual_run_is_lab_time_from_a_stated_epoch() -> None:
    clock = Clock(asyncio.get_running_loop())
    await asyncio.sleep(3600.5)
    utc, now_s = (clock.utc(), clock.now_s())
    assert (utc, now_s) == (VIRTUAL_EPOCH + timedelta(seconds=3600.5), 3600.5)
    assert utc_text(utc) == "2026-01-01T09:00:00.500Z"


def test_world_time_of_a_paced_run_is_the_calendars() -> None:
    async def main() -> datetime:
        return Clock(asyncio.get_running_loop()).utc()

    assert abs(run(main(), PacedLoop(50.0)) - datetime.now(UTC)) < timedelta(seconds=10)


@given(seed=st.integers(0, 2**64), others=st.lists(st.text(max_size=8), max_size=4))
@settings(deadline=None, max_examples=30)
def test_a_stream_does_not_shift_when_others_are_drawn(seed: int, others: list[str]) -> None:
    alone, among = Chance(seed), Chance(seed)
    for other in others:
        among.stream(other).random()
        among.uuid4()
    assert alone.stream("io/3").random() == among.stream("io/3").random()
    assert alone.stream("io/3").random() != alone.stream("io/4").random()


def test_seeded_ids_and_entropy_repeat_and_unseeded_ones_do_not() -> None:
    def draw(chance: Chance) -> tuple[str, str, bytes]:
        return chance.uuid4(), chance.uuid4(), chance.entropy(16)

    assert draw(Chance(7)) == draw(Chance(7))
    assert draw(Chance(7)) != draw(Chance(8))
    assert draw(Chance(None)) != draw(Chance(None))
    assert isinstance(Chance(None).stream("x"), random.Random)
    first, second, _ = draw(Chance(7))
    assert first != second
    assert first[14] == "4"
