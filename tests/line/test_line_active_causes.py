"""What a line shows by its readings, and costs on its wires: cold or not, what stands, how long."""

import asyncio
import math
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from kernel_line import healthy, parts, running, see
from labharness.core.vocabulary import Cause, Exactly, LengthAt, Request, Rtu, Trip
from labharness.line.active_causes import active_trips, causes_of, lost_states, stop_procedure
from labharness.line.cooling import watch_until_cold
from labharness.line.line import Line
from labharness.line.parts import PortTiming
from labharness.line.wire import Finding, PortCost, check_wires, exchange_s, port_costs
from labharness.safety.guard import SafeFrame
from labharness.safety.kernel import Envelope, Memory, Watch
from line_alone import RULE, Toy, asks, shown, toy

NAN = float("nan")


# ---- watching a line until it is cold


def watched(readings: list[float], **more: float) -> tuple[bool, int]:
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
    line: Any = SimpleNamespace(
        envelope=SimpleNamespace(
            watches=["furnace.temperature", "box.temperature", "furnace.setpoint"],
            trips=[other, far, row],
        ),
        clock=SimpleNamespace(now_s=lambda: polls[0] * 3600.0),
        latest=latest,
        polled=polled,
    )
    return asyncio.run(watch_until_cold(cast("Line", line))), polls[0]


def test_a_line_is_watched_until_all_of_it_is_below_60_degc_or_nothing_can_be_seen() -> None:
    assert watched([59.9]) == (True, 0)
    assert watched([60.0, 61.0, 59.9]) == (True, 2)
    assert watched([100.0, NAN]) == (False, 1)
    assert watched([100.0]) == (False, 12), "twelve hours at most"
    assert watched([100.0], furnace_sensor_break=1.0) == (False, 0)
    assert watched([100.0, 20.0], furnace_x=1.0, pump_sensor_break=1.0) == (True, 1)


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


# ---- what the wires cost


@pytest.mark.parametrize(
    ("rule", "reply"),
    [
        (Rtu(1, 3, byte_count=6), 11),
        (Rtu(1, 6, echo=b"\x00\x01"), 6),
        (Exactly(7), 7),
        (RULE, 64),
    ],
)
def test_an_exchange_takes_its_bytes_its_instrument_and_its_silence(rule: Any, reply: int) -> None:
    request = Request(b"12345678", rule, 1.0, settle_s=0.2)
    assert exchange_s(request, 1000) == pytest.approx((8 + reply) * 0.01 + 0.01 + 0.2)
    assert exchange_s(request, 0) == pytest.approx(0.21)


def test_a_reply_that_says_its_length_is_taken_at_its_longest() -> None:
    rule = LengthAt(0, 1, 0, 0, b"", 0, (5, 9, 7))
    assert exchange_s(Request(b"1", rule, 1.0), 1000) == pytest.approx(0.11)


OVEN = toy(
    "oven",
    Toy({"setpoint": shown("setpoint"), "off": shown("off")}, ("temperature",), on_demand=("off",)),
    port="heat",
)
BOX = toy("box", Toy({"on": shown("on")}), port="relays")
FRAMES = {
    "shutdown": (
        SafeFrame(0, "heat", asks("12345678"), "oven.off", 1.0),
        SafeFrame(1, "relays", asks("12345678"), "box.on", 0.0),
        SafeFrame(2, "heat", asks("12345678"), "oven.setpoint", 0.0),
    ),
    "short": (SafeFrame(0, "heat", asks("12345678"), "oven.off", 1.0),),
}
TIMINGS = {
    name: PortTiming(link="serial", baud=baud)
    for name, baud in (("heat", 1000), ("relays", 0), ("spare", 1000))
}


def test_a_port_takes_its_polls_its_longest_exchange_and_its_longest_procedure() -> None:
    heat, relays, spare = port_costs((OVEN, BOX), TIMINGS, FRAMES)
    polls = [exchange_s(asks(f"oven.{name}?"), 1000) for name in ("setpoint", "temperature")]
    assert heat == PortCost("heat", sum(polls), 1.0, heat.safe_s)
    assert heat.safe_s == pytest.approx(2 * (0.72 + 0.01))
    assert relays == PortCost("relays", 0.01, 1.0, 0.01)
    assert spare == PortCost("spare", 0, 0.0, 0)
    polls_off = replace(OVEN, polls={"setpoint": None, "off": 3.0})
    (cost,) = port_costs((polls_off,), {"heat": TIMINGS["heat"]}, {})
    asked = [exchange_s(asks(f"oven.{name}?"), 1000) for name in ("off", "temperature")]
    assert cost == PortCost("heat", sum(asked), 1.0, 0)


def envelope(wire_s_max: float = 9.0, **watched: float) -> Envelope:
    """Rules with one procedure, and channels of the oven that are watched."""
    rows = parts()
    rows["procedures"] = {
        "shutdown": replace(rows["procedures"]["shutdown"], wire_s_max=wire_s_max)
    }
    for name, stale_s in watched.items():
        channel = f"oven.{name}"
        rows["watches"][channel] = Watch(channel=channel, stale_s=stale_s, procedure="")
    return Envelope(**rows)


def test_wires_that_are_fast_enough_have_nothing_said_of_them() -> None:
    fast = {"heat": PortTiming(link="serial", baud=19200)}
    assert check_wires(envelope(temperature=4.0), (OVEN,), fast, FRAMES) == ()
    cost_s = 1.0 + port_costs((OVEN,), fast, FRAMES)[0].safe_s
    assert check_wires(envelope(cost_s), (OVEN,), fast, FRAMES) == ()


def test_what_the_wires_are_too_slow_for_is_said_with_its_numbers() -> None:
    slow = {"heat": PortTiming(link="serial", baud=1000)}
    assert check_wires(envelope(2.0, temperature=3.9, off=9.0), (OVEN,), slow, FRAMES) == (
        Finding("port heat", "one poll takes 1.61 s, longer than the 1 s between polls"),
        Finding("port heat", "shutdown may take 2.46 s on the wire, the envelope allows 2 s"),
        Finding("oven.off", "is watched but never polled"),
        Finding(
            "oven.temperature",
            "stale after 3.9 s, but one lost reply takes 4.00 s "
            "(period + time-out x (retries + 1))",
        ),
    )
    often = replace(OVEN, polls={"temperature": 0.1})
    assert len(check_wires(envelope(temperature=3.9), (often,), {}, FRAMES)) == 1
    assert len(check_wires(envelope(temperature=4.0), (often,), {}, FRAMES)) == 0
    seldom = replace(OVEN, polls={"temperature": 10.0})
    assert len(check_wires(envelope(temperature=12.9), (seldom,), {}, FRAMES)) == 1
    assert len(check_wires(envelope(temperature=13.0), (seldom,), {}, FRAMES)) == 0


def test_a_finding_is_said_by_its_place() -> None:
    assert str(Finding("port heat", "it is slow")) == "port heat: it is slow"
