"""Hands at a running line: values asked for one by one, waits, and what is so at the plant."""

from collections.abc import Callable
from typing import Any

from labharness.core.vocabulary import Command, Ending
from labharness.faces.testing.faults import simulated_of
from labharness.lab import Lab

NOT_ODD_S = 3600.0


async def asked(lab: Lab, channel: str, value: float) -> str:
    """Ask for one value by hand; return why it was refused, or nothing."""
    unit = lab.line.envelope.limits[channel].unit
    outcome = await lab.line.perform(Command(channel, value, unit))
    assert outcome.ending in (Ending.CONFIRMED, Ending.REFUSED), outcome
    return outcome.detail if outcome.ending is Ending.REFUSED else ""


async def put(lab: Lab, *wanted: tuple[str, float]) -> None:
    for channel, value in wanted:
        assert not (refused := await asked(lab, channel, value)), f"{channel} {value}: {refused}"


async def until(lab: Lab, reached: Callable[[], bool], within_s: float = NOT_ODD_S) -> None:
    end_s = lab.clock.now_s() + within_s
    while not reached():
        await lab.line.next_tick()
        assert lab.clock.now_s() < end_s, "it never came"


async def wait(lab: Lab, for_s: float) -> None:
    end_s = lab.clock.now_s() + for_s
    await until(lab, lambda: lab.clock.now_s() >= end_s, for_s + 10)


def truth(lab: Lab) -> dict[str, Any]:
    found: dict[str, Any] = simulated_of(lab).plant.truth()
    return found
