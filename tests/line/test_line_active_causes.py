"""What a line shows by its readings: whether it is cold, and which causes still stand."""

import asyncio
import math
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

from kernel_line import healthy, parts, running, see
from labharness.core.clock import VirtualLoop, run
from labharness.core.vocabulary import Cause, Trip
from labharness.line.hindrances import active_trips, causes_of, lost_states, stop_procedure
from labharness.line.line import Line
from labharness.safety.kernel import Envelope, Memory
from line_alone import Toy, shown, toy

NAN = float("nan")


# ---- watching a line until it is cold


class Bare(Line):
    """A line of these parts alone."""

    def __init__(self, **parts: Any) -> None:
        self.__dict__.update(parts)


def watched(
    readings: list[float], broken_off_after: float = math.inf, **more: float
) -> tuple[bool, int]:
    """Poll a furnace until it is cold; return whether, and after how many polls."""
    polls = [0]
    channels = {"furnace.temperature": readings, "box.temperature": [20.0]}

    def latest(channel: str) -> float:
        some = channels.get(channel)
        return (
            more.get(channel.replace(".", "_"), 0.0)
            if some is None
            else some[min(polls[0], len(some) - 1)]
        )

    async def polled() -> None:
        polls[0] += 1

    row = SimpleNamespace(
        cause=Cause.SENSOR_BREAK, channel="furnace.sensor_break", low=0.0, high=0.5
    )
    other = SimpleNamespace(cause=Cause.OVER_TEMPERATURE, channel="furnace.x", low=0.0, high=0.5)
    far = SimpleNamespace(cause=Cause.SENSOR_BREAK, channel="pump.sensor_break", low=0.0, high=0.5)
    line = Bare(
        envelope=SimpleNamespace(
            trips=[other, far, row],
        ),
        clock=SimpleNamespace(now_s=lambda: polls[0] * 3600.0),
        latest=latest,
        polled=polled,
        cold={"furnace.temperature": 60.0, "box.temperature": 60.0},
    )
    ends = Line.watch_until_cold(line, lambda: polls[0] >= broken_off_after)
    return asyncio.run(ends), polls[0]


def test_a_line_is_watched_until_all_of_it_is_cold_or_nothing_can_be_seen() -> None:
    assert watched([59.9]) == (True, 0)
    assert watched([60.0, 61.0, 59.9]) == (True, 2)
    assert watched([100.0, NAN]) == (False, 1)
    assert watched([100.0]) == (False, 12), "twelve hours at most"
    assert watched([100.0], broken_off_after=3) == (False, 3)
    assert watched([59.9], broken_off_after=0) == (True, 0), "a cold line is cold all the same"
    assert watched([100.0], furnace_sensor_break=1.0) == (False, 0)
    assert watched([100.0, 20.0], furnace_x=1.0, pump_sensor_break=1.0) == (True, 1)


def test_a_watch_whose_polls_have_ended_is_over() -> None:
    loop = VirtualLoop()
    line = Bare(
        envelope=SimpleNamespace(trips=[]),
        clock=SimpleNamespace(now_s=loop.time),
        latest=lambda channel: 100.0,
        cold={"furnace.temperature": 60.0},
        polled=lambda: loop.create_future(),
    )
    assert run(Line.watch_until_cold(line), loop) is False
    assert loop.time() <= 61.0


# ---- what still stands


def stands(**readings: float) -> tuple[Memory, tuple[str, ...]]:
    memory = running()
    healthy(memory, 0.0)
    see(memory, 0.0, **readings)
    return memory, active_trips(memory, 1.0)


def test_what_trips_stands_by_a_fresh_reading_outside_its_row() -> None:
    assert stands(furnace__temperature=1051.0)[1] == ("too hot: furnace.temperature is 1051 degC",)
    for sound in (1050.0, 1030.0, -50.0):
        assert stands(furnace__temperature=sound)[1] == ()
    memory, _ = stands(furnace__temperature=1051.0)
    assert active_trips(memory, 100.0) == (), "a reading that is stale says nothing"
    assert active_trips(running(), 0.0) == ()
    never_read = running()
    never_read.track("furnace.temperature").stale_s = math.inf
    assert active_trips(never_read, 0.0) == (), "nor one that never came"
    unread = "not known: furnace.temperature was not read"
    assert causes_of(TRIP, never_read, INSTRUMENTS, 0.0)[0] == unread


TRIP = Trip(Cause.OVER_TEMPERATURE, "shutdown", "furnace.temperature", 1060.0, 0.0, "hot")
INSTRUMENTS = {
    "box": toy("box", Toy({"contactor": shown("contactor")}, ("exhaust", "lid_shut"))),
    "hydrogen": toy("hydrogen", Toy({"setpoint": shown("flow")}, ("flow",))),
    "furnace": toy("furnace", Toy({"setpoint": shown("setpoint")}, ("temperature",))),
}


def test_before_a_reset_all_that_trips_was_read_and_every_contact_is_back() -> None:
    memory, _ = stands()
    assert causes_of(TRIP, memory, INSTRUMENTS, 1.0) == ()
    unread = "not known: furnace.temperature was not read"
    lost = (
        "power only with exhaust: box.exhaust at least 0.5 does not hold",
        "a hot furnace keeps its lid: box.lid_shut at least 1 does not hold",
    )
    assert causes_of(TRIP, memory, INSTRUMENTS, 6.0) == (unread, *lost)
    elsewhere = replace(TRIP, channel="hydrogen.flow")
    assert causes_of(elsewhere, memory, INSTRUMENTS, 6.0) == (
        unread,
        "not known: hydrogen.flow was not read",
        *lost,
    )
    assert causes_of(replace(TRIP, channel="guard"), memory, INSTRUMENTS, 1.0) == ()
    assert causes_of(TRIP, running(), INSTRUMENTS, 0.0)[0] == unread


def test_a_stop_request_is_answered_as_the_gravest_of_what_stands_or_is_latched() -> None:
    rows = parts()
    names = {cause: cause.value for cause in Cause}
    rows["procedures"] = {
        name: replace(rows["procedures"]["shutdown"], name=name)
        for name in ("shutdown", *names.values())
    }
    rows["procedure_of"] = names
    rows["trips"] = tuple(
        replace(each, procedure=names[each.cause] if each.procedure else "")
        for each in rows["trips"]
    )
    rows["interlocks"] = tuple(
        replace(each, on_loss="shutdown" if each.on_loss else "") for each in rows["interlocks"]
    )
    memory = Memory(Envelope(**rows))
    healthy(memory, 0.0)
    assert stop_procedure(memory, None, 1.0) == "stop_request"
    latched = replace(TRIP, procedure="gas_leak_detected")
    assert stop_procedure(memory, latched, 1.0) == "gas_leak_detected"
    see(memory, 1.0, furnace__temperature=1060.0)
    assert stop_procedure(memory, None, 1.0) == "over_temperature"
    assert stop_procedure(memory, latched, 1.0) == "gas_leak_detected"
    see(memory, 1.0, furnace__temperature=400.0, box__lid_shut=0.0)
    lost = replace(TRIP, procedure="interlock_lost")
    assert list(lost_states(memory, 1.0).values()) == ["shutdown"]
    assert stop_procedure(memory, lost, 1.0) == "shutdown", (
        "a state that it lost has its own answer"
    )
    see(memory, 1.0, box__lid_shut=1.0)
    assert stop_procedure(memory, lost, 1.0) == "interlock_lost"
    assert lost_states(memory, 1.0) == {}
