"""Checks the channels that a person reads or sets by hand, before anything is opened."""

import math
from collections.abc import Sequence

from labharness.core.vocabulary.channels import split_channel
from labharness.core.vocabulary.spelling import did_you_mean
from labharness.core.vocabulary.texts import CodedError, Text, texts_in
from labharness.lab.config.lab_plan import LabPlan
from labharness.line import Instrument
from labharness.safety.kernel import Bound

TAKES = Text("lacks.takes")
PROCESS = ("temperature", "flow", "pressure")
"""The quantity that a channel called ``setpoint`` sets."""


class BadChannel(CodedError, ValueError, code="bad_channel", usage=True):
    """A name or a unit is not valid here; the message lists the valid ones."""


def check_readable(plan: LabPlan, channel: str) -> None:
    """Refuse a name that is not a channel of this line.

    Raises:
        BadChannel: Lists the channels.
    """
    name, dot, _ = channel.partition(".")
    instrument = _instrument(plan, name)
    if not dot:
        there = _full(name, list(instrument.driver.channels))
        raise BadChannel("channel.of", name=name, channels=there)
    _known(instrument, channel)


def check_settable(plan: LabPlan, channel: str, value: float, unit: str) -> None:
    """Refuse a channel that may not be set, or a unit other than its own.

    Raises:
        BadChannel: Lists the channels, or names the unit.
    """
    name, dot, own = channel.partition(".")
    instrument = _instrument(plan, name)
    settable = [each for each, spec in instrument.driver.channels.items() if spec.settable]
    if not settable:
        raise BadChannel("channel.none_settable", name=name)
    if not dot:
        raise BadChannel("channel.name_it", name=name, channels=_full(name, settable))
    _known(instrument, channel)
    spec = instrument.driver.channels[own]
    if not spec.settable:
        what = Text("channel.settable", channels=_full(name, settable))
        if own in PROCESS and "setpoint" in settable:
            what = Text("channel.set_by", own=own, name=name)
        raise BadChannel("channel.read_only", channel=channel, what=what)
    if unit == spec.unit:
        return
    if not unit:
        raise BadChannel("channel.no_unit", value=value, unit=spec.unit)
    code = "channel.in_unit" if spec.unit else "channel.unitless"
    raise BadChannel(code, channel=channel, unit=spec.unit, asked=unit)


def needed_first(plan: LabPlan, channel: str, refusal: str) -> str:
    """Return the command that meets an interlock first, where another setting is missing.

    Args:
        plan: The lab's files, read.
        channel: The channel to set.
        refusal: The text of its refusal, which names the condition that does not hold.

    Returns:
        The advice with the command, or ``""`` where the missing condition is not a setting.
    """
    missing = {
        each.params["condition"]
        for each in texts_in(refusal)
        if each.code == "lacks.found" and TAKES in texts_in(each.params["says"])
    }
    for row in plan.envelope.interlocks:
        bounds = [each for each in row.require if isinstance(each, Bound)]
        for lacking in bounds if channel in row.guards else ():
            limit = plan.envelope.limits.get(lacking.channel)
            if limit is None or str(lacking) not in missing:
                continue
            same = [each for each in bounds if each.channel == lacking.channel]
            low = max(limit.low, *(each.low for each in same), lacking.low)
            high = min(limit.high, *(each.high for each in same), lacking.high)
            value = high if lacking.low == -math.inf else low
            within = "" if low == high else f" ({low:g} to {high:g} {limit.unit})"
            setting = f"{lacking.channel} {value:g} {limit.unit}".rstrip()
            return f"first{within}: labharness set {setting}{plan.option}"
    return ""


def _instrument(plan: LabPlan, name: str) -> Instrument:
    by_name = plan.by_name
    if name not in by_name:
        there = ", ".join(by_name)
        near = did_you_mean(name, by_name.keys())
        raise BadChannel("channel.nowhere", name=name, hint=near, there=there)
    return by_name[name]


def _known(instrument: Instrument, channel: str) -> None:
    own = split_channel(channel)[1]
    there = instrument.driver.channels
    if own not in there:
        raise BadChannel(
            "channel.unknown",
            name=instrument.name,
            kind=instrument.kind,
            own=own,
            hint=did_you_mean(own, there.keys()),
            there=", ".join(there),
        )


def _full(name: str, channels: Sequence[str]) -> str:
    return ", ".join(f"{name}.{each}" for each in channels)
