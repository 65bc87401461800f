"""The poller: its heartbeats prove that the tick lives, and nothing else does."""

import asyncio
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from labharness.core.clock import VirtualLoop, finish
from labharness.instruments.driver import Scan, While
from labharness.line.exchanges import NoReply
from labharness.line.instrument import bind
from labharness.line.poll import Poller
from labharness.safety.guard import Guard
from labharness.safety.guard.shell import LoopGuard
from line_alone import Scene, Toy, asks, shown, toy

BEAT_S = 0.1
TICK_S = 1.0


class Beaten:
    """A poller without a scan, whose ticks break after a number of them.

    Args:
        ticks: How many go well; the next one raises.
        heartbeat_s: How often its guard asks for a heartbeat.
    """

    def __init__(self, ticks: int, heartbeat_s: float = BEAT_S) -> None:
        self.loop = VirtualLoop()
        self.loop.set_exception_handler(lambda loop, context: None)
        self.heartbeats_s: list[float] = []
        self._left = ticks
        guard = cast("Guard", SimpleNamespace(heartbeat_s=heartbeat_s))
        self.poller = Poller(
            self.loop, guard, [], TICK_S, lambda scan, values: None, self._tick, self._heartbeat
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

    def _heartbeat(self) -> None:
        self.heartbeats_s.append(self.loop.time())


def test_heartbeats_come_as_often_as_the_guard_asks_from_tick_to_tick() -> None:
    beaten = Beaten(ticks=100)
    beaten.play(5.0)
    assert beaten.heartbeats_s == pytest.approx(
        [BEAT_S * n for n in range(len(beaten.heartbeats_s))]
    )
    assert 4.9 <= beaten.heartbeats_s[-1] <= 5.0


@pytest.mark.promise(2)
@pytest.mark.parametrize("ticks", [1, 3])
def test_a_tick_that_breaks_ends_the_heartbeats_before_the_next(ticks: int) -> None:
    beaten = Beaten(ticks)
    beaten.play(10.0)
    assert (ticks - 1) * TICK_S < beaten.heartbeats_s[-1] < ticks * TICK_S


def test_a_poller_that_is_stopped_heartbeats_no_more() -> None:
    beaten = Beaten(ticks=100)
    beaten.play(2.5, after_s=5.0)
    assert 2.4 <= beaten.heartbeats_s[-1] <= 2.5


def test_a_guard_that_asks_for_no_heartbeat_gets_none() -> None:
    beaten = Beaten(ticks=100, heartbeat_s=LoopGuard.heartbeat_s)
    beaten.play(3.0)
    assert beaten.heartbeats_s == []


class Polled(Scene):
    """An oven with three channels on one port, polled for a while."""

    def __init__(
        self,
        polls: dict[str, float | None] | None = None,
        toy_of: type[Toy] = Toy,
        **more: Any,
    ) -> None:
        channels = {"setpoint": shown("setpoint"), "off": shown("off")}
        driver = toy_of(channels, ("temperature",), **more)
        super().__init__(toy("oven", driver, polls=polls))
        self.poller = Poller(
            self.loop,
            self.guard,
            bind(self.instruments["oven"], self.memory, self.journal, TICK_S),
            TICK_S,
            self.take,
            lambda: None,
            lambda: None,
        )

    def after(self, for_s: float) -> list[str]:
        """Poll for so long; return what was sent."""

        async def work() -> None:
            self.poller.start()
            await asyncio.sleep(for_s)
            self.poller.stop()

        self.play(work())
        return [words.removeprefix("oven.") for words, _ in self.port.sent]


def test_each_scan_is_sent_in_turn_at_every_tick_that_is_due() -> None:
    scans = ["setpoint?", "off?", "temperature?"]
    assert Polled().after(1.5) == scans * 2
    polled = Polled({"setpoint": None, "off": 2.0})
    assert polled.after(3.5) == ["off?", "temperature?", "temperature?"] * 2
    assert [channel for channel, _ in polled.taken] == [
        f"oven.{words[:-1]}" for words in ["off?", "temperature?", "temperature?"] * 2
    ]


class Acknowledging(Toy):
    """A toy that is asked for its temperature in two steps."""

    def scans(self) -> tuple[Scan, ...]:
        """Ask, and then enquire."""
        first = replace(asks("oven.question?"), obeyed=rb"6\r?")
        return tuple(
            replace(scan, before=(first,)) if scan.name == "temperature" else scan
            for scan in super().scans()
        )


@pytest.mark.promise(4)
@pytest.mark.parametrize(("acknowledged", "enquired"), [("6", True), ("21", False), (None, False)])
def test_the_second_step_of_a_read_is_sent_after_the_first_was_acknowledged_alone(
    acknowledged: str | None, enquired: bool
) -> None:
    polled = Polled({"setpoint": None, "off": 2.0}, toy_of=Acknowledging)
    polled.port.says["oven.question?"] = acknowledged
    sent = ["off?", *["question?", *["temperature?"] * enquired] * 2]
    assert polled.after(1.5) == sent
    assert ("oven.temperature" in [channel for channel, _ in polled.taken]) is enquired


def test_a_port_that_is_slow_is_not_asked_again_before_it_has_answered() -> None:
    polled = Polled({"setpoint": None, "off": None})
    polled.port.exchange_s = 2.5
    assert polled.after(6.2) == ["temperature?"] * 3
    polled = Polled()
    polled.port.exchange_s = 0.6
    assert polled.after(3.7) == ["setpoint?", "off?", "temperature?"] * 2


@pytest.mark.promise(76)
def test_what_is_no_reply_is_silence_is_told_to_the_guard_and_the_next_scan_is_asked() -> None:
    for said in (None, "x"):
        polled = Polled()
        polled.port.says["oven.setpoint?"] = said
        assert polled.after(0.5) == ["setpoint?", "off?", "temperature?"]
        assert [channel for channel, _ in polled.taken] == ["oven.off", "oven.temperature"]
        assert polled.port.doubted == ([] if said is None else ["oven"])


@pytest.mark.promise(11)
def test_a_reply_that_is_the_same_as_the_last_counts_again_and_any_other_is_decoded() -> None:
    polled = Polled({"setpoint": None, "off": None})
    polled.port.says["oven.temperature?"] = ["1", "1", "x", "1", "2", "1"]
    polled.after(5.5)
    assert polled.taken == [("oven.temperature", (value,)) for value in (1.0, 1.0, 1.0, 2.0, 1.0)]


def test_a_port_that_settles_is_stood_in_line_for_again() -> None:
    polled = Polled()

    def settle(words: str) -> None:
        if words == "oven.setpoint?":
            polled.port.busy.add("oven")

    polled.port.on_frame = settle
    assert polled.after(0.5) == ["setpoint?", "off?", "temperature?"]


async def test_between_two_polls_a_port_is_anybodys() -> None:
    polled = Polled()
    polled.poller.start()
    await asyncio.sleep(0.5)
    assert await polled.reader.read("oven.off") == 0.0
    polled.poller.stop()
    assert polled.loop.time() < 0.6


def test_what_breaks_at_a_reading_keeps_no_port() -> None:
    polled = Polled()

    def broken(scan: object, values: object) -> None:
        raise RuntimeError("broken")

    for chain in polled.poller._chains:
        chain.take = broken
    with pytest.raises(RuntimeError, match="broken"):
        polled.after(0.5)
    assert [words for words, _ in polled.port.sent] == ["oven.setpoint?", "oven.off?"]


async def test_whoever_waits_for_a_tick_looks_when_it_comes_or_when_it_is_woken() -> None:
    polled = Polled()
    polled.poller.start()
    await polled.poller.next_tick()
    assert polled.loop.time() == TICK_S
    polled.loop.call_later(0.3, polled.poller.wake)
    await polled.poller.next_tick()
    assert polled.loop.time() == TICK_S + 0.3
    gone = asyncio.create_task(polled.poller.next_tick())
    polled.loop.call_later(0.3, polled.poller.stop)
    await asyncio.sleep(0)
    gone.cancel()
    await polled.poller.next_tick()
    assert polled.loop.time() == TICK_S + 0.6


def test_a_scan_that_is_answered_in_one_state_alone_is_sent_in_no_other() -> None:
    polled = Polled(only_while={"temperature": While("off", (0.0,), "the oven is off")})
    asked = polled.after(1.5)
    assert asked == ["setpoint?", "off?", "setpoint?", "off?", "temperature?"]
    polled = Polled(only_while={"temperature": While("off", (0.0,), "the oven is off")})
    polled.port.says["oven.off?"] = ["0", "1", "1", "0", "0"]
    asked = polled.after(4.5)
    assert (asked.count("off?"), asked.count("temperature?")) == (5, 2)


def test_a_read_on_demand_looks_first_whether_it_would_be_answered() -> None:
    polled = Polled(only_while={"temperature": While("off", (0.0,), "the oven is off")})
    assert polled.play(polled.reader.read("oven.temperature")) == 0.0
    assert [words for words, _ in polled.port.sent] == ["oven.off?", "oven.temperature?"]
    polled = Polled(only_while={"temperature": While("off", (0.0,), "the oven is off")})
    polled.port.holds["oven.off"] = 1.0
    with pytest.raises(NoReply, match=r"oven\.temperature: the oven is off"):
        polled.play(polled.reader.read("oven.temperature"))
    assert polled.port.asked("oven.temperature?") == 0
