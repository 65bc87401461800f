"""Reasons why a line cannot be armed or reset: links, room pressure, causes.

A cause must be gone before a reset, and a stop request is answered as the gravest cause asks.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from labharness.core.errors import LabError
from labharness.core.vocabulary import Cause, Trip
from labharness.core.vocabulary.texts import Text
from labharness.instruments.link import Link
from labharness.line.instrument import Instrument, channel_of, prepare_commands
from labharness.safety.kernel import Bound, Memory, Mode, lost
from labharness.safety.kernel.rows import TripRow

HERE, GUARD_PROCESS = "this process", "the guard process"

NEVER = Text("energise.never")
TAKES_A_GUARD = Text("energise.guard")
TAKES_A_PERSON = Text("energise.person")

ENERGISES: dict[tuple[str, str], str] = {
    ("loopback", HERE): "",
    ("serial", GUARD_PROCESS): "",
    ("tcp", GUARD_PROCESS): "",
    ("serial", HERE): TAKES_A_GUARD,
    ("tcp", HERE): TAKES_A_GUARD,
    ("visa", HERE): TAKES_A_PERSON,
    ("websocket", HERE): TAKES_A_PERSON,
}


class NotArmed(LabError, RuntimeError, code="not_armed"):
    """The line cannot be armed as it stands; the message names what stands in the way."""


def may_not_energise(link: Link, *, attended: bool) -> str:
    """Return why nothing may be energised over this link; ``""`` when it may."""
    holder = GUARD_PROCESS if getattr(link, "guarded", False) else HERE
    why = ENERGISES.get((link.kind, holder), NEVER)
    return "" if why is TAKES_A_PERSON and attended else why


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """The pressure of the room.

    Attributes:
        ambient: Its pressure, in the gauge's unit; ``None`` if it is not known.
        channel: The gauge that shows it while the tube is open to it; ``""`` for none.
        during: While all of these hold, the tube is cold and open to the room.
        differ_max: Largest difference of the gauge from it then.
    """

    ambient: float | None
    channel: str = ""
    during: tuple[Bound, ...] = ()
    differ_max: float = 0.0

    def hindrance(self, memory: Memory, now: float) -> str:
        """Return why no line may be armed by this pressure; ``""`` for no reason."""
        if self.ambient is None:
            return Text("room.unknown")
        if not self.channel or not all(memory.holds(each, now) for each in self.during):
            return ""
        track, stated, most = memory.tracks[self.channel], self.ambient, self.differ_max
        found = track.value
        if not track.fresh(now) or abs(found - stated) <= most:
            return ""
        return Text("room.differs", stated=stated, channel=self.channel, found=found, most=most)


def begins(
    memory: Memory, instruments: Mapping[str, Instrument], safe_table: str
) -> dict[str, float]:
    """Return what arming sets: the values of the safe table, then those of ``prepare``."""
    envelope = memory.envelope
    steps = envelope.procedures[memory.procedure(safe_table)].steps
    found = {step.channel: step.value for step in steps if not step.optional}
    for each in instruments.values():
        found |= {command.channel: command.value for command in prepare_commands(each, envelope)}
    return found


def left_over(
    memory: Memory, instruments: Mapping[str, Instrument], safe_table: str, now: float
) -> tuple[str, ...]:
    """Return the rules that a value left in an instrument would trip as soon as it is armed.

    A setpoint that neither the safe table nor ``prepare`` sets stays as somebody left it.
    """
    armed = Memory(memory.envelope, mode=Mode.HELD)
    armed.proofs = memory.proofs
    for name, track in memory.tracks.items():
        copy = armed.track(name)
        copy.value, copy.at_s, copy.unconfirmed = track.value, track.at_s, track.unconfirmed
    for channel, value in begins(memory, instruments, safe_table).items():
        for name in (armed.readback(channel).channel, *armed.envelope.limits[channel].moves):
            copy = armed.track(name)
            copy.value, copy.at_s, copy.unconfirmed = value, now, ()
    found = []
    for row, trip in lost(armed, now):
        values = {name: armed.readback(name).value for name in row.guards}
        left = [name for name, value in values.items() if value > row.above]
        known = armed.track(trip.channel).value == armed.track(trip.channel).value
        if left and (known or trip.channel not in memory.envelope.watches):
            found.append(
                Text("arm.left", why=trip.detail, left=left, table=safe_table, above=row.above)
            )
    return tuple(found)


def causes_of(
    trip: Trip, memory: Memory, instruments: Mapping[str, Instrument], now: float
) -> tuple[str, ...]:
    """Return the hindrances to a reset after a trip; an unknown state is one.

    The trip is the first of perhaps several, and only the first is latched: so all conditions that
    trip are checked, whatever the cause.
    """
    found = active_trips(memory, now) + _unknown(memory, trip.channel, now)
    return found + _lost_contacts(memory, instruments, now)


def active_trips(memory: Memory, now: float) -> tuple[str, ...]:
    """Return which trip conditions hold; a reading that is stale or missing says nothing."""
    return tuple(
        Text(
            "cause.stands",
            row=row.name,
            channel=row.channel,
            value=memory.track(row.channel).value,
            unit=f" {row.unit}" if row.unit else "",
        )
        for row in _active_rows(memory, now)
    )


def stop_procedure(memory: Memory, latched: Trip | None, now: float) -> str:
    """Return the procedure for a stop request: that of the gravest cause that stands or is latched.

    A line that is not polled does not trip, so a gas that another procedure let in would stay
    unseen. A state that the line should keep, such as its exhaust, has its own procedure.
    """
    answers = memory.envelope.procedure_of
    named = {row.procedure for row in _active_rows(memory, now)}
    named |= {answers[Cause.STOP_REQUEST], "" if latched is None else latched.procedure}
    gravest = next(answers[cause] for cause in Cause if answers[cause] in named)
    states = lost_states(memory, now) if gravest == answers[Cause.INTERLOCK_LOST] else {}
    return next(iter(states.values()), gravest)


def lost_states(memory: Memory, now: float) -> dict[str, str]:
    """Return the states that a line must always keep and has lost, each with its procedure.

    An example is its exhaust over a hot tube.
    """
    return {trip.detail: row.on_loss for row, trip in lost(memory, now) if not row.guards}


def _active_rows(memory: Memory, now: float) -> Iterator[TripRow]:
    for row in memory.envelope.trips:
        track = memory.track(row.channel)
        value = track.value
        if not row.procedure or value != value or not track.fresh(now):
            continue
        if not row.low <= value <= row.high:
            yield row


def _unknown(memory: Memory, channel: str, now: float) -> tuple[str, ...]:
    """Return texts for the channels that trip, and the channel of the trip, that were not read.

    A silent detector has not shown that the gas is gone.
    """
    rows = [row.channel for row in memory.envelope.trips if row.procedure]
    if channel in memory.envelope.watches:
        rows.append(channel)
    tracks = (memory.track(each) for each in dict.fromkeys(rows))
    return tuple(
        Text("cause.unread", channel=track.channel)
        for track in tracks
        if track.value != track.value or not track.fresh(now)
    )


def _lost_contacts(
    memory: Memory, instruments: Mapping[str, Instrument], now: float
) -> tuple[str, ...]:
    """Return which conditions on a contact, whose loss under power trips, do not hold.

    A contact (lid, exhaust, enclosure) must be back before a reset. A flow or a temperature is as
    the procedure left it, and its row stands before the next command.
    """
    absent: dict[Bound, str] = {}
    for row in memory.envelope.interlocks:
        for condition in row.require if row.on_loss else ():
            if not isinstance(condition, Bound) or memory.holds(condition, now):
                continue
            spec = channel_of(instruments, condition.channel)[2]
            if not spec.unit and not spec.settable:
                absent.setdefault(condition, row.name)
    return tuple(
        Text("cause.contact", row=name, condition=str(condition))
        for condition, name in absent.items()
    )
