"""Judging a command: whether it may reach its instrument, given all that is known of the line.

Rule 1: everything that can allow a command lives in this package.
Rule 2: this package knows no driver, no protocol, no clock and no network; ``now`` is told.
Rule 3: refuse by default (no limit, wrong unit, NaN, stale reading, unknown state), never clip.
"""

import math
from collections.abc import Sequence

from labharness.core.vocabulary import Allowed, Command, Refused, Verdict
from labharness.safety.kernel.conditions import Bound
from labharness.safety.kernel.memory import InterlockRule, Memory
from labharness.safety.kernel.modes import ADMITS, ALWAYS
from labharness.safety.kernel.rows import Condition, Interlock, Limit
from labharness.safety.kernel.tracks import may_be

__all__ = ["judge", "judge_program", "lacks"]


def judge(command: Command, memory: Memory, now: float, before: tuple[float, ...] = ()) -> Verdict:
    """Return whether a command may reach its instrument, given all that is known at ``now``.

    The channel has a limit, and the command is in its unit and within its bounds. A value that is
    always safe passes then. Any other takes a mode that admits it, a step that is small enough, and
    each interlock before the channel.

    Args:
        command: What is asked.
        memory: What is known.
        now: Lab time, in seconds.
        before: Values that the channel may have before; none for those of its last reading.
    """
    channel, value = command.channel, command.value
    limit = memory.envelope.limits.get(channel)
    if limit is None:
        return Refused(command, "unknown channel", f"{channel} has no limit, so it is not set")
    unit = limit.unit
    if command.unit != unit:
        return Refused(command, "unit", f"{channel}: asked in {command.unit!r}, it is in {unit!r}")
    if not limit.low <= value <= limit.high:  # also refuses NaN
        why = f"{channel}: asked {value:g} {unit}, allowed {limit.low:g} to {limit.high:g} {unit}"
        return Refused(command, "limit", why)
    if value in limit.always_safe and memory.mode in ALWAYS:
        return Allowed(command)
    if limit.role not in ADMITS.get(memory.mode, ()):
        return Refused(command, "mode", f"{channel} is not set while the line is {memory.mode}")
    if limit.step_max < math.inf and (
        refused := _step(command, limit, before or _present(memory, channel, now))
    ):
        return refused
    rules = memory.guarding[channel]
    return (_held_up(command, rules, memory, now, before) if rules else None) or Allowed(command)


def judge_program(segments: Sequence[Command], memory: Memory, now: float) -> Verdict:
    """Return whether a whole program may be uploaded: each segment, from where the last one ends.

    An instrument runs a program without asking; so everything that a segment's target takes must
    be so already, and a ramp passes every state between its ends.

    Args:
        segments: Targets and rates in order, each a command on the channel it would be set by.
        memory: What is known.
        now: Lab time, in seconds.
    """
    before: dict[str, tuple[float, ...]] = {}
    for number, segment in enumerate(segments, 1):
        verdict = judge(segment, memory, now, before.get(segment.channel, ()))
        if isinstance(verdict, Refused):
            return Refused(segment, verdict.rule, f"segment {number}: {verdict.reason}")
        before[segment.channel] = (segment.value,)
    return Allowed(segments[-1])


def lacks(row: Interlock, condition: Condition, memory: Memory, now: float) -> str:
    """Return what a row asks for and does not find, as the end of a sentence."""
    says = "is forbidden at" if condition in row.forbid else "takes"
    return f"{says} {condition}; {_found(condition, memory, now)}"


def _step(command: Command, limit: Limit, before: tuple[float, ...]) -> Refused | None:
    """Refuse a step from where the channel is, or may be, that is too large."""
    step = max(abs(command.value - each) for each in before)
    if step <= limit.step_max:
        return None
    why = f"{command.channel}: a step of {step:g} {limit.unit}, allowed {limit.step_max:g}"
    if not math.isfinite(step):
        why = f"{command.channel}: its present value is not known, so its step is not either"
    return Refused(command, "step", why)


def _held_up(
    command: Command,
    rules: tuple[InterlockRule, ...],
    memory: Memory,
    now: float,
    before: tuple[float, ...],
) -> Refused | None:
    """Refuse what an interlock holds up: its state may be so, and a condition is not met."""
    channel, value = command.channel, command.value
    for rule in rules:
        row = rule.row
        if not (value > row.above or value < row.below):
            continue  # it takes nothing to go there
        if rule.during and may_be(rule.during, now) is None:
            continue
        passes = value > row.upto  # a setpoint that ramps there goes through the band
        if passes and min(before or _present(memory, channel, now)) > row.upto:
            continue  # it is above the band, and stays there
        condition = memory.missing(rule, now)
        if condition is not None:
            goes = f" passes {row.above:g} to {row.upto:g}, which" if passes else ""
            why = f"{channel} to {value:g} {command.unit}{goes} "
            return Refused(command, row.name, why + lacks(row, condition, memory, now))
    return None


def _present(memory: Memory, channel: str, now: float) -> tuple[float, ...]:
    """Return every value that a channel may have now; -inf is among them where none is known."""
    track = memory.readback(channel)
    return track.possible() if track.fresh(now) else (-math.inf,)


def _found(condition: Condition, memory: Memory, now: float) -> str:
    if not isinstance(condition, Bound):
        return memory.proofs.found(condition)
    track = memory.tracks[condition.channel]
    if math.isnan(track.value):
        return "it was never read"
    if not track.fresh(now):
        return f"its last reading is {now - track.at_s:.1f} s old, allowed {track.stale_s:g} s"
    if track.unconfirmed:
        sent = ", ".join(f"{value:g}" for value in track.unconfirmed)
        return f"it reads {track.value:g}, and {sent} was sent and is not confirmed"
    return f"it reads {track.value:g}"
