"""The poller: its beats prove that the tick lives, and nothing else does."""

import asyncio
from types import SimpleNamespace
from typing import cast

import pytest

from labharness.clock import VirtualLoop, finish
from labharness.guard import Guard
from labharness.line.poll import Poller

BEAT_S = 0.1
TICK_S = 1.0


class Beaten:
    """A poller without a scan, whose ticks break after a number of them.

    Args:
        ticks: How many go well; the next one raises.
        beat_s: How often its guard asks for a beat.
    """

    def __init__(self, ticks: int, beat_s: float = BEAT_S) -> None:
        self.loop = VirtualLoop()
        self.loop.set_exception_handler(lambda loop, context: None)
        self.beats_s: list[float] = []
        self._left = ticks
        guard = cast("Guard", SimpleNamespace(beat_s=beat_s))
        self.poller = Poller(
            self.loop, guard, [], TICK_S, lambda scan, values: None, self._tick, self._beat
        )

    def play(self, for_s: float, after_s: float = 0.0) -> None:
        """Let it run from its start, stop it, and wait a while."""
        self.loop.call_soon(self.poller.start)
        self.loop.run_until_complete(asyncio.sleep(for_s))
        self.poller.stop()
        self.loop.run_until_complete(asyncio.sleep(after_s))
        finish(self.loop)

    def _tick(self) -> None:
        self._left -= 1
        if self._left < 0:
            raise RuntimeError("the tick broke")

    def _beat(self) -> None:
        self.beats_s.append(self.loop.time())


def test_beats_come_as_often_as_the_guard_asks_from_tick_to_tick() -> None:
    beaten = Beaten(ticks=100)
    beaten.play(5.0)
    assert beaten.beats_s == pytest.approx([BEAT_S * n for n in range(len(beaten.beats_s))])
    assert 4.9 <= beaten.beats_s[-1] <= 5.0


@pytest.mark.parametrize("ticks", [1, 3])
def test_a_tick_that_breaks_ends_the_beats_before_the_next(ticks: int) -> None:
    beaten = Beaten(ticks)
    beaten.play(10.0)
    assert (ticks - 1) * TICK_S < beaten.beats_s[-1] < ticks * TICK_S


def test_a_poller_that_is_stopped_beats_no_more() -> None:
    beaten = Beaten(ticks=100)
    beaten.play(2.5, after_s=5.0)
    assert 2.4 <= beaten.beats_s[-1] <= 2.5


def test_a_guard_that_asks_for_no_beat_gets_none() -> None:
    beaten = Beaten(ticks=100, beat_s=float("inf"))
    beaten.play(3.0)
    assert beaten.beats_s == []
