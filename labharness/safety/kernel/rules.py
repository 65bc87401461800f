"""Judging a command, observing a reading, and noticing what is lost: all that can say yes or trip.

Rule 1: everything that can allow a command lives in this package.
Rule 2: this package knows no driver, no protocol, no clock and no network; ``now`` is told.
Rule 3: refuse by default (no limit, wrong unit, NaN, stale reading, unknown state), never clip.
"""

import math
from collections.abc import Iterable, Iterator, Sequence

from labharness.core.vocabulary import Allowed, Cause, Command, Refused, Trip, Verdict
from labharness.safety.kernel.conditions import Bound, Condition, LeakTight, PurgedOf
from labharness.safety.kernel.memory import Memory, Track, Window
from labharness.safety.kernel.modes import ADMITS, ALWAYS, LIVE
from labharness.safety.kernel.purge import Backfill, LeakCheck
from labharness.safety.kernel.rows import Interlock, Plausible

# fmt: off
__all__ = [  # names are read as a paragraph
    "adopt", "begin", "conclude", "expect", "judge", "judge_program", "lost", "observe", "tick",
]
# fmt: on

_NOTHING: tuple[Trip, ...] = ()


def judge(command: Command, memory: Memory, now: float, before: tuple[float, ...] = ()) -> Verdict:
    """Return whether a command may reach its instrument, given all that is known at ``now``.

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
    if limit.step_max < math.inf:
        step = max(abs(value - each) for each in before or _present(memory, command, now))
        if not step <= limit.step_max:
            why = f"{channel}: a step of {step:g} {unit}, allowed {limit.step_max:g}"
            if not math.isfinite(step):
                why = f"{channel}: its present value is not known, so its step is not either"
            return Refused(command, "step", why)
    for rule in memory.guarding[channel]:
        row, _, during, _, _ = rule
        if value > row.above or value < row.below:
            if during and memory.may_be(during, now) is None:
                continue
            if value > row.upto and min(before or _present(memory, command, now)) > row.upto:
                continue  # it is above the band, and stays there
            condition = memory.missing(rule, now)
            if condition is not None:
                goes = f" passes {row.above:g} to {row.upto:g}, which" if value > row.upto else ""
                why = f"{channel} to {value:g} {unit}{goes} "
                return Refused(command, row.name, why + _lacks(row, condition, memory, now))
    return Allowed(command)


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


def begin(memory: Memory, command: Command) -> None:
    """Remember that a command was sent: until it is confirmed both values count (law 7)."""
    track = memory.track(memory.envelope.limits[command.channel].readback or command.channel)
    track.unconfirmed = tuple(dict.fromkeys((*track.unconfirmed, command.value)))
    for contaminant, present in track.shows:
        if present.holds(command.value):
            memory.taint(contaminant)
    check = memory.envelope.purge.leak_check
    if check is not None and track.channel in check.inlets:
        memory.leak.restart(math.inf, math.inf)  # what is let in is no leak


def conclude(memory: Memory, command: Command) -> None:
    """Take a command as confirmed, because a fresh read-back agrees."""
    memory.track(
        memory.envelope.limits[command.channel].readback or command.channel
    ).unconfirmed = ()
    expect(memory, command.channel, command.value)


def expect(memory: Memory, channel: str, value: float) -> None:
    """Remember what a channel was shown to be set to; NaN for what is not known (any more)."""
    memory.track(memory.envelope.limits[channel].readback or channel).told = value


def adopt(memory: Memory, channels: Iterable[str]) -> None:
    """Take what was just read for what is set, where nothing else is known of that."""
    for track in map(memory.track, channels):
        if math.isnan(track.told) and not track.unconfirmed:
            track.told = track.value


def observe(
    memory: Memory, tracks: Sequence[Track], values: Sequence[float], now: float
) -> tuple[Trip, ...]:
    """Take the readings of one frame into memory; return the trips and warnings they cause.

    A NaN is not a measurement: it leaves the old reading to grow stale.
    """
    trips: tuple[Trip, ...] = ()
    for track, value in zip(tracks, values, strict=True):
        if value != value:
            continue
        if track.conditions and value != track.value:
            memory.changes += sum(b.holds(value) != b.holds(track.value) for b in track.conditions)
        if track.inert is not None:
            _count_inert(memory, track, track.inert, value, now)
        if track.backfill is not None:
            _count_fill(memory, track.backfill, track, value, now)
        if track.leak_check is not None:
            _check_rise(memory, track.leak_check, track, value, now)
        for contaminant, present in track.shows:
            if present.holds(value) or now - track.at_s > track.stale_s:
                memory.taint(contaminant)
        before, track.value, track.at_s = track.value, value, now
        if abs(value - track.told) > track.within:
            trips += _foreign(memory, track, before, now)
        for row in track.rows:
            if not row.low <= value <= row.high:
                bound = f"most {row.high:g}" if value > row.high else f"least {row.low:g}"
                found = f"{value:g} {row.unit}".strip()
                why = f"{row.name}: {track.channel} is {found}, at {bound}"
                trips += (Trip(row.cause, row.procedure, track.channel, value, now, why),)
    return trips


def tick(memory: Memory, now: float) -> tuple[Trip, ...]:
    """Notice what no single reading tells: silence, lost interlocks, and what is not plausible.

    A line that nobody drives is sent nothing: what it keeps safe of itself is warned of when lost.
    """
    for contaminant, states in memory.present.items():
        if memory.may_be(states, now) is not None:
            memory.taint(contaminant)
    trips = sum([_implausible(memory, *each, now) for each in memory.windows], ())
    if memory.mode not in LIVE:
        return tuple(trip for _, trip in lost(memory, now))
    for channel, watch in memory.envelope.watches.items():
        age_s = now - memory.tracks[channel].at_s
        if age_s > watch.stale_s and watch.procedure:
            why = f"{channel} was last heard {age_s:.1f} s ago, allowed {watch.stale_s:g} s"
            trips += (Trip(Cause.COMMUNICATION, watch.procedure, channel, None, now, why),)
    return trips + tuple(trip for _, trip in lost(memory, now))


def lost(memory: Memory, now: float) -> Iterator[tuple[Interlock, Trip]]:
    """Return each interlock whose condition is lost while what it is about is, or may be, so.

    On a line that nobody drives those about a state alone, which it should keep then too, to warn.
    """
    for rule in memory.rules:
        row, does = rule[0], rule[0].on_loss if memory.mode in LIVE else ""
        if not row.on_loss or (row.guards and not does) or not memory.energised(rule, now):
            continue
        if (condition := memory.missing(rule, now)) and not memory.silent(condition, now):
            why = f"{row.name}: lost what {_lacks(row, condition, memory, now)}"
            at = condition.channel if isinstance(condition, Bound) else "purge"
            yield row, Trip(Cause.INTERLOCK_LOST, does, at, None, now, why)


def _foreign(memory: Memory, track: Track, before: float, now: float) -> tuple[Trip, ...]:
    """Call a value that nobody here has set: once as a warning, and with what it runs each time."""
    limit, value = track.limit, track.value
    if limit is None or not track.foreign():
        return _NOTHING
    at_stake = not track.stake or memory.may_be(track.stake, now) is not None
    procedure = limit.on_foreign if at_stake else ""
    if value == before and not procedure:
        return _NOTHING
    found = f"{track.channel} reads {value:g} {limit.unit}".strip()
    why = f"{found}, and {track.told:g} was confirmed: somebody else has set it, or it restarted"
    return (Trip(Cause.INTERLOCK_LOST, procedure, track.channel, value, now, why),)


def _present(memory: Memory, command: Command, now: float) -> tuple[float, ...]:
    """Return every value that a channel may have now; -inf is among them where none is known."""
    track = memory.track(memory.envelope.limits[command.channel].readback or command.channel)
    return track.possible() if memory.fresh(track, now) else (-math.inf,)


def _lacks(row: Interlock, condition: Condition, memory: Memory, now: float) -> str:
    says = "is forbidden at" if condition in row.forbid else "takes"
    return f"{says} {condition}; {_found(condition, memory, now)}"


def _found(condition: Condition, memory: Memory, now: float) -> str:
    if isinstance(condition, LeakTight):
        return memory.void or "no such check was passed"
    if isinstance(condition, PurgedOf):
        fills = memory.backfills[condition.contaminant]
        backfills = f", and {fills} backfills" if memory.envelope.purge.backfill else ""
        return f"proven by measured flow: {memory.volumes(condition.contaminant):.2f}{backfills}"
    track = memory.tracks[condition.channel]
    if math.isnan(track.value):
        return "it was never read"
    if not memory.fresh(track, now):
        return f"its last reading is {now - track.at_s:.1f} s old, allowed {track.stale_s:g} s"
    if track.unconfirmed:
        sent = ", ".join(f"{value:g}" for value in track.unconfirmed)
        return f"it reads {track.value:g}, and {sent} was sent and is not confirmed"
    return f"it reads {track.value:g}"


def _count_inert(memory: Memory, track: Track, told: Track, value: float, now: float) -> None:
    before_sccm, known = track.inert_sccm, memory.fresh(told, now) and not told.unconfirmed
    track.inert_sccm = min(value, told.value) if known else 0.0
    passed_cm3 = min(before_sccm, track.inert_sccm) / 60 * (now - track.at_s)  # the smaller end
    if now - track.at_s <= track.stale_s and passed_cm3 > 0:
        memory.filled_cm3 += passed_cm3
        for contaminant in memory.purged_cm3:
            memory.purged_cm3[contaminant] += passed_cm3


def _count_fill(memory: Memory, fill: Backfill, track: Track, value: float, now: float) -> None:
    purge, seen = memory.envelope.purge, max(value, track.value)  # one odd low reading is none
    risen_cm3 = (value - memory.filled_from) / fill.atmosphere * purge.volume_cm3
    inert_cm3 = min(memory.filled_cm3 * memory.fresh(track, now), max(risen_cm3, 0.0))
    if risen_cm3 - inert_cm3 > fill.unmeasured_max * purge.volume_cm3:
        memory.taint(purge.outside)
        memory.void = f"over {fill.unmeasured_max:g} of {purge.volume_cm3:g} cm3 came in unmeasured"
    memory.filled_cm3, memory.pumped = inert_cm3, memory.pumped or seen <= fill.low
    if seen < min(memory.filled_from, fill.high):
        memory.filled_from, memory.filled_cm3 = seen, 0.0
    if value >= fill.high:
        for contaminant in memory.backfills if memory.pumped else ():
            memory.backfills[contaminant] += 1
        memory.pumped, memory.filled_from = False, math.inf


def _check_rise(memory: Memory, check: LeakCheck, track: Track, value: float, now: float) -> None:
    window, isolated = memory.leak, all(memory.holds(each, now) for each in check.isolated)
    leak, time_s = (value - window.first) * memory.envelope.purge.volume_cm3, now - window.since_s
    if not isolated or value > check.below or now - track.at_s > track.stale_s:
        memory.tight &= not (isolated and window.first <= check.below < value)  # it leaked
        window.restart(value, math.inf)
    elif window.since_s == math.inf:
        window.restart(value, now)
    elif time_s >= check.over_s or leak > check.leak_max * check.over_s:
        memory.tight, memory.void = leak <= check.leak_max * time_s, ""
        window.since_s = math.inf


def _implausible(memory: Memory, row: Plausible, window: Window, now: float) -> tuple[Trip, ...]:
    """Hold one plausibility row against what its window has seen."""
    track = memory.tracks[row.channel]
    value, age_s = track.value, now - window.since_s
    window.low, window.high = min(window.low, value), max(window.high, value)
    rise, span = value - window.first, window.high - window.low
    if row.expects is not None or row.agrees_with:
        differs = abs(value - memory.tracks[row.agrees_with or row.channel].value)
        over = differs <= row.differ_max and (row.expects is None or memory.holds(row.expects, now))
        wrong = not over and age_s >= row.found_s
    else:
        over = age_s >= row.found_s / 2
        wrong = span > row.span_max or (over and (rise < row.rise_min or span < row.span_min))
    counts = memory.fresh(track, now) and all(memory.holds(each, now) for each in row.during)
    if counts and not over and not wrong and age_s >= 0:
        return ()
    window.restart(value, now if counts else math.inf)
    if not (counts and wrong and age_s >= 0):
        return ()
    why = f"{row.name}: {track.channel} is {value:g} and moved by {span:g} within {age_s:g} s"
    return (Trip(row.cause, row.procedure, track.channel, value, now, why),)
