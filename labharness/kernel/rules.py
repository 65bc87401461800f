"""Judging a command, observing a reading, and noticing silence: all that can say yes or trip.

Rule 1: everything that can allow a command lives in this package.
Rule 2: this package knows no driver, no protocol, no clock and no network; ``now`` is told.
Rule 3: refuse by default (no limit, wrong unit, NaN, stale reading, unknown state), never clip.
"""

import math
from collections.abc import Sequence

from labharness.kernel.envelope import Condition, PurgedOf
from labharness.kernel.memory import Memory, Track
from labharness.kernel.modes import ADMITS, Mode
from labharness.vocabulary import Allowed, Cause, Command, Refused, Trip, Verdict

__all__ = ["begin", "conclude", "judge", "observe", "tick"]

_NOTHING: tuple[Trip, ...] = ()
_NO_ROLES: frozenset[object] = frozenset()


def judge(command: Command, memory: Memory, now: float) -> Verdict:
    """Say whether a command may reach its instrument, given all that is known at ``now``."""
    channel, value = command.channel, command.value
    limit = memory.envelope.limits.get(channel)
    if limit is None:
        return Refused(command, "unknown channel", f"{channel} has no limit, so it is not set")
    if not math.isfinite(value):
        return Refused(command, "finite value", f"{channel}: {value} is no finite number")
    if command.unit != limit.unit:
        why = f"{channel}: asked in {command.unit!r}, this channel is in {limit.unit!r}"
        return Refused(command, "unit", why)
    if not limit.low <= value <= limit.high:
        why = (
            f"{channel}: asked {value:g} {limit.unit}, "
            f"allowed {limit.low:g} to {limit.high:g} {limit.unit}"
        )
        return Refused(command, "limit", why)
    if limit.role not in ADMITS.get(memory.mode, _NO_ROLES):
        return Refused(command, "mode", f"{channel} is not set while the line is {memory.mode}")
    if limit.step_max < math.inf:
        refusal = _judge_step(command, memory, limit.readback or channel, limit.step_max, now)
        if refusal is not None:
            return refusal
    for row in memory.guarding[channel]:
        if value > row.above or value < row.below:
            for condition in row.require:
                if not memory.holds(condition, now):
                    why = f"{channel} to {value:g} {limit.unit} takes {condition}; "
                    return Refused(command, row.name, why + _found(condition, memory, now))
    return Allowed(command)


def begin(memory: Memory, command: Command) -> None:
    """Remember that a command was sent: until it is confirmed both values count (law 7)."""
    limit = memory.envelope.limits[command.channel]
    track = memory.track(limit.readback or command.channel)
    if command.value not in track.doubt:
        track.doubt += (command.value,)
    for contaminant, present in track.shows:
        if present.holds(command.value):
            memory.purged_cm3[contaminant] = 0.0


def conclude(memory: Memory, command: Command) -> None:
    """Forget the doubt about a command, because a fresh read-back agrees."""
    limit = memory.envelope.limits[command.channel]
    memory.track(limit.readback or command.channel).doubt = ()


def observe(
    memory: Memory, tracks: Sequence[Track], values: Sequence[float], now: float
) -> tuple[Trip, ...]:
    """Take the readings of one frame into memory; give the trips and warnings they cause.

    A NaN is not a measurement: it leaves the old reading to grow stale.
    """
    trips = _NOTHING
    for track, value in zip(tracks, values, strict=True):
        if value != value:
            continue
        if track.conditions and value != track.value:
            old = track.value
            for condition in track.conditions:
                if condition.holds(value) != condition.holds(old):
                    memory.changes += 1
        if track.inert:
            _count_inert(memory, track, value, now)
        for contaminant, present in track.shows:
            if present.holds(value) or now - track.at_s > track.stale_s:
                memory.purged_cm3[contaminant] = 0.0
        track.value = value
        track.at_s = now
        if not track.low <= value <= track.high:
            trips += _trips(memory, track, now)
    return trips


def tick(memory: Memory, now: float) -> tuple[Trip, ...]:
    """Notice what no reading tells: silence, lost interlocks, and contaminants in the tube."""
    for contaminant in memory.purged_cm3:
        if not memory.absent(contaminant, now):  # present, or not known to be absent
            memory.purged_cm3[contaminant] = 0.0
    if memory.mode not in (Mode.RUNNING, Mode.HELD, Mode.TRIPPED):
        return _NOTHING
    trips = _NOTHING
    for track in memory.watched:
        procedure = memory.envelope.watches[track.channel].procedure
        if now - track.at_s > track.stale_s and procedure:
            why = f"{track.channel} was last heard {now - track.at_s:.1f} s ago"
            why += f", allowed {track.stale_s:g} s"
            trips += (Trip(Cause.COMMUNICATION, procedure, track.channel, None, now, why),)
    for row in memory.envelope.interlocks:
        if row.on_loss and memory.energised(row):
            for condition in row.require:
                if not memory.holds(condition, now) and not memory.silent(condition, now):
                    why = f"{row.name}: {condition} was lost; " + _found(condition, memory, now)
                    at = "purge" if isinstance(condition, PurgedOf) else condition.channel
                    trips += (Trip(Cause.INTERLOCK_LOST, row.on_loss, at, None, now, why),)
                    break
    return trips


def _judge_step(
    command: Command, memory: Memory, shown_by: str, step_max: float, now: float
) -> Refused | None:
    track = memory.track(shown_by)
    if not memory.fresh(track, now) or math.isnan(track.value):
        why = f"{command.channel}: its present value is not known, so its step is not either"
        return Refused(command, "step", why)
    step = max(abs(command.value - value) for value in track.possible())
    if step > step_max:
        why = f"{command.channel}: a step of {step:g} {command.unit}, allowed {step_max:g}"
        return Refused(command, "step", why)
    return None


def _found(condition: Condition, memory: Memory, now: float) -> str:
    if isinstance(condition, PurgedOf):
        return f"proven by measured flow: {memory.volumes(condition.contaminant):.2f}"
    track = memory.tracks[condition.channel]
    if math.isnan(track.value):
        return "it was never read"
    if not memory.fresh(track, now):
        return f"its last reading is {now - track.at_s:.1f} s old, allowed {track.stale_s:g} s"
    if track.doubt:
        sent = ", ".join(f"{value:g}" for value in track.doubt)
        return f"it reads {track.value:g}, and {sent} was sent and is not confirmed"
    return f"it reads {track.value:g}"


def _count_inert(memory: Memory, track: Track, value: float, now: float) -> None:
    gap_s = now - track.at_s
    if gap_s > track.stale_s or not track.value > 0 or not value > 0:
        return
    passed_cm3 = min(track.value, value) / 60 * gap_s  # sccm; the smaller end of the interval
    for contaminant in memory.purged_cm3:
        memory.purged_cm3[contaminant] += passed_cm3


def _trips(memory: Memory, track: Track, now: float) -> tuple[Trip, ...]:
    value = track.value
    return tuple(
        Trip(
            row.cause,
            row.procedure,
            track.channel,
            value,
            now,
            f"{row.name}: {track.channel} is {value:g}{' ' if row.unit else ''}{row.unit}, "
            + (f"at most {row.high:g}" if value > row.high else f"at least {row.low:g}"),
        )
        for row in track.rows
        if not row.low <= value <= row.high
    )
