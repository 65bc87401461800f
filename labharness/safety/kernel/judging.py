"""Judging a command: whether it may reach its instrument, given all that is known of the line.

Rule 1: everything that can allow a command lives in this package.
Rule 2: this package knows no driver, no protocol, no clock and no network; ``now`` is told.
Rule 3: refuse by default (no limit, wrong unit, NaN, stale reading, unknown state), never clip.
"""

import math
from collections.abc import Sequence

from labharness.core.vocabulary import Allowed, Command, Refused, Verdict
from labharness.core.vocabulary.texts import Said
from labharness.safety.kernel.conditions import Bound
from labharness.safety.kernel.memory import InterlockRule, Memory
from labharness.safety.kernel.modes import ADMITS, ALWAYS
from labharness.safety.kernel.rows import Condition, Interlock, Limit
from labharness.safety.kernel.tracks import Track, may_be


def judge(command: Command, memory: Memory, now: float, before: tuple[float, ...] = ()) -> Verdict:
    """Return whether a command may reach its instrument, given all that is known at ``now``.

    The channel has a limit, and the command is in its unit and within its bounds. A value that is
    always safe passes then. Any other takes a mode that admits it, a step that is small enough,
    each interlock before the channel, that no rule in force would lose its state by it, and that
    its own reading would not trip.

    Args:
        command: The command.
        memory: The knowledge of the line.
        now: Lab time, in seconds.
        before: Values that the channel may have before; none for those of its last reading.
    """
    channel, value = command.channel, command.value
    limit = memory.envelope.limits.get(channel)
    if limit is None:
        return Refused(command, "unknown channel", Said("limit.none", channel=channel))
    unit = limit.unit
    if command.unit != unit:
        why = Said("limit.unit", channel=channel, asked=command.unit, unit=unit)
        return Refused(command, "unit", why)
    if not limit.low <= value <= limit.high:  # also refuses NaN
        return _outside(command, limit, "limit", limit.low, limit.high)
    if value in limit.always_safe and memory.mode in ALWAYS:
        return Allowed(command)
    if limit.role not in ADMITS.get(memory.mode, ()):
        return Refused(command, "mode", Said("limit.mode", channel=channel, mode=memory.mode))
    if limit.step_max < math.inf and (
        refused := _step(command, limit, before or _present(memory, channel, now))
    ):
        return refused
    rules = memory.guarding[channel]
    refused = _held_up(command, rules, memory, now, before) if rules else None
    if channel in memory.trips_by and not refused:
        refused = _trips(command, limit, memory, now)
    return refused or Allowed(command)


def judge_program(segments: Sequence[Command], memory: Memory, now: float) -> Verdict:
    """Return whether a whole program may be uploaded: each segment, from where the last one ends.

    An instrument runs a program without asking; so everything that a segment's target takes must
    be so already, and a ramp passes every state between its ends.

    Args:
        segments: Targets and rates in order, each a command on the channel it would be set by.
        memory: The knowledge of the line.
        now: Lab time, in seconds.
    """
    before: dict[str, tuple[float, ...]] = {}
    for number, segment in enumerate(segments, 1):
        verdict = judge(segment, memory, now, before.get(segment.channel, ()))
        if isinstance(verdict, Refused):
            why = Said("program.segment", number=number, why=verdict.why)
            return Refused(segment, verdict.rule, why)
        before[segment.channel] = (segment.value,)
    return Allowed(segments[-1])


def counts(rule: InterlockRule, now: float) -> list[Said]:
    """Return each channel by which a rule counts, with what was read there and how lately."""
    tracks = (*rule.counting(), *(track for _, track in rule.during))
    return [Said("reading.by", channel=each.channel, found=_told(each, now)) for each in tracks]


def lacks(row: Interlock, condition: Condition, memory: Memory, now: float) -> Said:
    """Return what a row asks for and does not find, as the end of a sentence."""
    says = Said("lacks.forbidden" if condition in row.forbid else "lacks.takes")
    return Said("lacks.found", says=says, condition=condition, found=_found(condition, memory, now))


def _step(command: Command, limit: Limit, before: tuple[float, ...]) -> Refused | None:
    """Refuse a step from where the channel is, or may be, that is too large."""
    step = max(abs(command.value - each) for each in before)
    if step <= limit.step_max:
        return None
    why = Said("limit.step", channel=limit.channel, step=step, unit=limit.unit, most=limit.step_max)
    if not math.isfinite(step):
        why = Said("limit.step_unknown", channel=limit.channel)
    return Refused(command, "step", why)


def _held_up(
    command: Command,
    rules: tuple[InterlockRule, ...],
    memory: Memory,
    now: float,
    before: tuple[float, ...],
) -> Refused | None:
    """Refuse a command whose interlock is in its state, or may be, and lacks a condition."""
    channel, value = command.channel, command.value
    for rule in rules:
        row = rule.row
        if not (value > row.above or value < row.below):
            continue  # it takes nothing to go there
        if rule.during and may_be(rule.during, now) is None:
            continue
        # a setpoint that ramps beyond the band goes through it, unless it is beyond it already
        if value > row.upto and min(before or _present(memory, channel, now)) > row.upto:
            continue
        condition = memory.missing(rule, now)
        if condition is not None:
            passes = value > row.upto
            goes = Said("interlock.passes", low=row.above, high=row.upto) if passes else ""
            why = Said(
                "interlock.missing",
                channel=channel,
                value=value,
                unit=command.unit,
                passes=goes,
                lacks=lacks(row, condition, memory, now),
            )
            return Refused(command, row.name, why)
    return None


def _trips(command: Command, limit: Limit, memory: Memory, now: float) -> Refused | None:
    """Refuse a command that, once confirmed, trips: by a rule in force, or by its own reading."""
    value = command.value
    upheld, rows = memory.trips_by[command.channel]
    for rule, bound, needed in upheld:
        if (bound.low <= value <= bound.high) == needed or not memory.energised(rule, now):
            continue
        if command.channel in rule.row.guards and value <= rule.row.above:
            continue  # it ends what the rule is about
        says = Said("lacks.takes" if needed else "lacks.forbidden")
        counted = counts(rule, now)
        why = Said("interlock.loses", asked=command.said, says=says, state=bound, counted=counted)
        return Refused(command, rule.row.name, why)
    for row in rows:
        if not row.low <= value <= row.high:
            return _outside(command, limit, row.name, row.low, row.high)
    return None


def _outside(command: Command, limit: Limit, rule: str, low: float, high: float) -> Refused:
    why = Said(
        "limit.outside",
        channel=command.channel,
        asked=command.value,
        unit=limit.unit,
        low=max(limit.low, low),
        high=min(limit.high, high),
    )
    return Refused(command, rule, why)


def _present(memory: Memory, channel: str, now: float) -> tuple[float, ...]:
    """Return every value that a channel may have now; -inf is among them where none is known."""
    track = memory.readback(channel)
    return track.possible() if track.fresh(now) else (-math.inf,)


def _found(condition: Condition, memory: Memory, now: float) -> Said | str:
    if not isinstance(condition, Bound):
        return memory.proofs.found(condition)
    return _told(memory.tracks[condition.channel], now)


def _told(track: Track, now: float) -> Said:
    if math.isnan(track.value):
        return Said("reading.never")
    if not track.fresh(now):
        return Said("reading.stale", age_s=now - track.at_s, allowed_s=track.stale_s)
    if track.unconfirmed:
        sent = ", ".join(f"{value:g}" for value in track.unconfirmed)
        return Said("reading.unconfirmed", value=track.value, sent=sent)
    return Said("reading.value", value=track.value)
