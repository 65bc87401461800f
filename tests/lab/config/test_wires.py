"""What the wires of a line cost, and whether the envelope allows that much."""

from dataclasses import replace
from typing import Any

import pytest

from kernel_line import parts
from labharness.core.vocabulary import Exactly, LengthAt, Request, Rtu
from labharness.lab.config.wires import Finding, PortCost, check_wires, exchange_s, port_costs
from labharness.line.instrument import PortTiming
from labharness.safety.guard import SafeFrame
from labharness.safety.kernel import Envelope, Watch
from line_alone import RULE, Toy, asks, shown, toy


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
    step_s = exchange_s(asks("oven who?"), 1000)  # each reply is followed by one
    polls = [
        exchange_s(asks(f"oven.{each}?"), 1000) + step_s for each in ("setpoint", "temperature")
    ]
    assert heat == PortCost("heat", sum(polls), 1.0, heat.safe_s)
    assert heat.safe_s == pytest.approx(2 * (0.72 + 0.01))
    assert relays == PortCost("relays", 0.02, 1.0, 0.01)
    assert spare == PortCost("spare", 0, 0.0, 0)
    polls_off = replace(OVEN, polls={"setpoint": None, "off": 3.0})
    (cost,) = port_costs((polls_off,), {"heat": TIMINGS["heat"]}, {})
    asked = [exchange_s(asks(f"oven.{name}?"), 1000) + step_s for name in ("off", "temperature")]
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
    assert [*check_wires(envelope(temperature=4.0), (OVEN,), fast, FRAMES)] == []
    cost_s = 1.0 + next(port_costs((OVEN,), fast, FRAMES)).safe_s
    assert [*check_wires(envelope(cost_s), (OVEN,), fast, FRAMES)] == []


def test_what_the_wires_are_too_slow_for_is_said_with_its_numbers() -> None:
    slow = {"heat": PortTiming(link="serial", baud=1000)}
    assert [*check_wires(envelope(2.0, temperature=3.9, off=9.0), (OVEN,), slow, FRAMES)] == [
        Finding("port heat", "one poll takes 3.09 s, longer than the 1 s between polls"),
        Finding("port heat", "shutdown may take 2.46 s on the wire, the envelope allows 2 s"),
        Finding("oven.off", "is watched but never polled"),
        Finding(
            "oven.temperature",
            "stale after 3.9 s, but one lost reply takes 4.00 s "
            "(period + time-out x (retries + 1))",
        ),
    ]
    often = replace(OVEN, polls={"temperature": 0.1})
    assert len([*check_wires(envelope(temperature=3.9), (often,), {}, FRAMES)]) == 1
    assert len([*check_wires(envelope(temperature=4.0), (often,), {}, FRAMES)]) == 0
    seldom = replace(OVEN, polls={"temperature": 10.0})
    assert len([*check_wires(envelope(temperature=12.9), (seldom,), {}, FRAMES)]) == 1
    assert len([*check_wires(envelope(temperature=13.0), (seldom,), {}, FRAMES)]) == 0
