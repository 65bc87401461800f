"""The verbs every line understands, from setting a channel to asking the operator."""

import asyncio
import math
from collections.abc import Mapping
from statistics import linear_regression
from typing import Any

from labharness.core.vocabulary import OPERATOR, Command
from labharness.core.vocabulary.texts import Text
from labharness.work.plan.step import FailureKind, RunningStep, Verb

SAMPLES_MIN = 5
"""Readings below which a slope says nothing."""

S_PER_MIN = 60.0


async def set_value(step: RunningStep) -> Mapping[str, Any]:
    """Set ``channel`` to ``value`` in ``unit``."""
    asked = step.parameters
    await step.perform(asked["channel"], asked["value"], asked["unit"])
    return {"channel": asked["channel"], "value": asked["value"]}


async def ramp(step: RunningStep) -> Mapping[str, Any]:
    """Take a controller's ``setpoint`` to ``to`` at ``rate``, until ``process`` is there.

    It is there once it is within ``tolerance`` or has passed the target.
    """
    asked = step.parameters
    process, to, tolerance = asked["process"], asked["to"], asked["tolerance"]
    started_s = step.operations.now_s()
    start = await step.operations.read(process)
    await step.perform(asked["rate_channel"], asked["rate"], asked["rate_unit"])
    await step.perform(asked["setpoint"], to, asked["unit"])
    sign = 1.0 if to >= start else -1.0
    while True:
        value = step.operations.latest(process)
        if sign * (to - value) <= tolerance:  # false for NaN: a stale reading does not show arrival
            took_s = step.operations.now_s() - started_s
            return {"from": start, "to": to, "reached": value, "took_s": took_s}
        await step.tick("wait.ramp", channel=process, value=value, to=to, unit=asked["unit"])


async def wait(step: RunningStep) -> Mapping[str, Any]:
    """Wait until ``channel`` is ``at_least`` or ``at_most`` a value."""
    channel = step.parameters["channel"]
    low = step.parameters.get("at_least", -math.inf)
    high = step.parameters.get("at_most", math.inf)
    wanted = Text("at_least", value=low) if low > -math.inf else Text("at_most", value=high)
    started_s = step.operations.now_s()
    while True:
        value = step.operations.latest(channel)
        if low <= value <= high:
            return {"value": value, "took_s": step.operations.now_s() - started_s}
        await step.tick("wait.channel", channel=channel, value=value, wanted=wanted)


async def hold(step: RunningStep) -> Mapping[str, Any]:
    """Let ``duration_s`` pass, and give mean, least and greatest of ``channels``."""
    channels = step.parameters["channels"]
    totals = dict.fromkeys(channels, (0, 0.0, math.inf, -math.inf))
    until_s = step.operations.now_s() + step.parameters["duration_s"]
    while True:
        for channel in channels:
            value = step.operations.latest(channel)
            if value == value:
                count, total, low, high = totals[channel]
                totals[channel] = (count + 1, total + value, min(low, value), max(high, value))
        left_s = until_s - step.operations.now_s()
        if left_s <= 0:
            break
        await step.tick("wait.hold", left_s=left_s)
    return {
        "duration_s": step.parameters["duration_s"],
        "measured": {
            channel: {"mean": total / count, "min": low, "max": high, "readings": count}
            for channel, (count, total, low, high) in totals.items()
            if count
        },
    }


async def purge(step: RunningStep) -> Mapping[str, Any]:
    """Wait until ``volumes`` of measured inert flow have passed since ``contaminant`` was there.

    With ``from_now`` they count from the beginning of this step. Time proves nothing: a bottle may
    be empty.
    """
    contaminant, volumes = step.parameters["contaminant"], step.parameters["volumes"]
    start = step.operations.volumes_purged(contaminant) if step.parameters.get("from_now") else 0.0
    while True:
        passed = step.operations.volumes_purged(contaminant) - start
        if passed >= volumes:
            return {"contaminant": contaminant, "volumes": passed}
        await step.tick("wait.purge", passed=passed, volumes=volumes, contaminant=contaminant)


async def rate_of_rise(step: RunningStep) -> Mapping[str, Any]:
    """Measure how fast ``channel`` rises by itself, and fail above ``limit`` a minute.

    After ``settle_s`` a straight line is laid through the readings of ``duration_s``.
    """
    channel, limit = step.parameters["channel"], step.parameters["limit"]
    begin_s = step.operations.now_s() + step.parameters["settle_s"]
    end_s = begin_s + step.parameters["duration_s"]
    readings: list[tuple[float, float]] = []  # bounded by the timeout: one a tick
    while step.operations.now_s() < end_s:
        await step.tick("wait.rise", channel=channel)
        now_s, value = step.operations.now_s(), step.operations.latest(channel)
        if now_s >= begin_s and value == value:
            readings.append((now_s - begin_s, value))
    if len(readings) < SAMPLES_MIN:
        raise step.failed(
            Text("step.readings", channel=channel, count=len(readings), least=SAMPLES_MIN)
        )
    per_minute = linear_regression(*zip(*readings, strict=True)).slope * S_PER_MIN
    if per_minute > limit:
        unit = step.parameters["unit"]
        raise step.failed(
            Text("step.rises", channel=channel, per_minute=per_minute, unit=unit, limit=limit)
        )
    return {"per_minute": per_minute, "limit": limit, "readings": len(readings)}


async def ask_operator(step: RunningStep) -> Mapping[str, Any]:
    """Ask a person to do ``action`` by hand; a trip or the timeout ends the waiting."""
    asked = step.parameters
    answer = asyncio.ensure_future(
        step.operations.confirm(asked["action"], asked["text"], asked["details"])
    )
    started_s = step.operations.now_s()
    try:
        while not answer.done():
            await step.tick("wait.operator", action=asked["action"])
    finally:
        answer.cancel()
        await asyncio.gather(answer, return_exceptions=True)  # a trip may have ended it as well
    try:
        return {"confirmed_by": answer.result(), "took_s": step.operations.now_s() - started_s}
    except PermissionError as why:  # the line may not be opened now; no person was asked
        raise step.failed(
            Text("pair", what=asked["action"], why=str(why)), FailureKind.REFUSED
        ) from None


def stated_commands(action: str, asked: Mapping[str, Any]) -> tuple[Command, ...]:
    """Return the commands that an action with its parameters states: to be judged before a run.

    A verb of a capability states in ``sets`` its settings that add energy, each as channel, highest
    value and unit. A setting that is not stated is refused when it is sent.
    """
    more = tuple(Command(channel, value, unit) for channel, value, unit in asked.get("sets", ()))
    if action == "set":
        return (Command(asked["channel"], asked["value"], asked["unit"]), *more)
    if action == "ramp":
        return (
            Command(asked["rate_channel"], asked["rate"], asked["rate_unit"]),
            Command(asked["setpoint"], asked["to"], asked["unit"]),
            *more,
        )
    return more


def judged_commands(action: str, asked: Mapping[str, Any]) -> tuple[Command, ...]:
    """Return the commands that an action states, or the opening of the line that it asks for."""
    if action == "ask_operator":
        return (Command(f"{OPERATOR}.{asked['action']}", 0.0, ""),)
    return stated_commands(action, asked)


PHYSICAL_VERBS: Mapping[str, Verb] = {
    "set": set_value,
    "ramp": ramp,
    "wait": wait,
    "hold": hold,
    "purge": purge,
    "rate_of_rise": rate_of_rise,
    "ask_operator": ask_operator,
}
