"""What the kernel remembers: the last reading of each channel, what is unconfirmed, and the proofs.

One ``Track`` a channel holds what ``observe`` must touch, so that a reading costs a few attribute
accesses and no search. The memory has one owner, the line, and changes only through this package.
"""

import math
from dataclasses import dataclass, field

from labharness.core.vocabulary import Trip
from labharness.safety.kernel.conditions import Bound, Condition, LeakTight, PurgedOf
from labharness.safety.kernel.envelope import Envelope
from labharness.safety.kernel.modes import Mode
from labharness.safety.kernel.purge import Backfill, LeakCheck
from labharness.safety.kernel.rows import Interlock, Limit, Plausible, TripRow

__all__ = ["Memory", "Track", "Window"]


@dataclass(slots=True, eq=False)
class Track:
    """The last reading of one channel.

    Attributes:
        value: What was read; NaN until something was.
        at_s: When; ``-inf`` until something was.
        unconfirmed: Values that were sent and are not confirmed; the channel counts as all of them.
        rows: What readings trip.
        conditions: Conditions whose truth this reading may change.
        inert: Its flow counts for the purge proof, up to this setpoint.
        inert_sccm: What of the last reading counts.
        backfill: What its pressure proves by backfills.
        leak_check: What its pressure proves by its rise.
        shows: Contaminants whose presence this channel shows, each with its condition.
        told: What it was last shown to be set to, by a confirmed command, a verified step, or as
            the line was armed; NaN while that is not known.
        within: How far a reading may be from that.
        limit: The limit of what it shows.
        stake: What a value that nobody here has set puts at stake.
    """

    channel: str
    value: float = math.nan
    at_s: float = -math.inf
    unconfirmed: tuple[float, ...] = ()
    stale_s: float = math.inf
    rows: tuple[TripRow, ...] = ()
    conditions: frozenset[Bound] = frozenset()
    inert: "Track | None" = None
    inert_sccm: float = 0.0
    backfill: Backfill | None = None
    leak_check: LeakCheck | None = None
    shows: tuple[tuple[str, Bound], ...] = ()
    told: float = math.nan
    within: float = math.inf
    limit: Limit | None = None
    stake: "Shown" = ()

    def possible(self) -> tuple[float, ...]:
        """Every value the channel may have."""
        return (self.value, *self.unconfirmed)

    def foreign(self) -> bool:
        """Return whether it reads what nobody here has set; not while a value is unconfirmed."""
        own = () if self.limit is None else self.limit.own
        differs = abs(self.value - self.told) > self.within
        return differs and not self.unconfirmed and self.value not in own


Shown = tuple[tuple[Bound, Track], ...]  # bounds, each beside the track that shows it
Rule = tuple[Interlock, tuple[PurgedOf | LeakTight, ...], Shown, Shown, Shown]
# a row with all it asks at hand: proofs; then the state it is for, and what it requires and forbids


@dataclass(slots=True, eq=False)
class Window:
    """What a plausibility row, or the leak check, has seen since it began; ``inf``: it has not."""

    since_s: float = math.inf
    first: float = math.nan
    low: float = math.nan
    high: float = math.nan

    def restart(self, value: float, now: float) -> None:
        """Begin again with one reading."""
        self.since_s = now
        self.first = self.low = self.high = value


@dataclass(slots=True, eq=False)
class Memory:
    """All tracks of a line, its mode, and its proofs.

    Attributes:
        purged_cm3: For each contaminant, inert gas measured since it was last in the tube.
        backfills: For each contaminant, pump and backfill cycles since then.
        pumped: The tube was pumped for a backfill, and nothing was let in since but inert gas.
        filled_from: Lowest pressure since the tube was filled last, that two readings one after the
            other agree on; ``inf`` while it is full.
        filled_cm3: Inert gas measured since that pressure, and at most what has come in; what more
            was measured went to the pump.
        tight: The last leak check was passed, and the tube was not open since.
        void: What voided the proofs since the last leak check; ``""`` for nothing that is known.
        leak: What the leak check sees; before it begins, ``first`` is the last pressure, or ``inf``
            when the line has let something in since.
        changes: Counts changes of an interlock's truth; permits made before one are void.
        trip: The trip in force.
        rules: The interlocks.
        guarding: Those that stand before each channel.
        present: What shows each contaminant.
    """

    envelope: Envelope
    tracks: dict[str, Track] = field(default_factory=dict)
    mode: Mode = Mode.DISARMED
    purged_cm3: dict[str, float] = field(default_factory=dict)
    backfills: dict[str, int] = field(default_factory=dict)
    pumped: bool = field(init=False)
    filled_from: float = math.inf
    filled_cm3: float = 0.0
    tight: bool = False
    void: str = ""
    leak: Window = field(default_factory=Window)
    windows: tuple[tuple[Plausible, Window], ...] = ()
    changes: int = 0
    trip: Trip | None = None
    rules: tuple[Rule, ...] = ()
    guarding: dict[str, tuple[Rule, ...]] = field(default_factory=dict)
    present: dict[str, Shown] = field(default_factory=dict)

    def __post_init__(self) -> None:
        envelope, purge = self.envelope, self.envelope.purge
        for channel, watch in envelope.watches.items():
            self.track(channel).stale_s = watch.stale_s
        for trip in envelope.trips:
            self.track(trip.channel).rows += (trip,)
        for row in envelope.interlocks:
            during = self.shown((row.during,) if row.during else ())
            bounds = tuple(each for each in row.require if isinstance(each, Bound))
            proofs = tuple(each for each in row.require if not isinstance(each, Bound))
            self.rules += ((row, proofs, during, self.shown(bounds), self.shown(row.forbid)),)
        for channel, setpoint in purge.inert.items():
            self.track(channel).inert = self.track(setpoint)
        if purge.backfill is not None:
            self.track(purge.backfill.channel).backfill = purge.backfill
        if purge.leak_check is not None:
            self.track(purge.leak_check.channel).leak_check = purge.leak_check
        for contaminant, present in purge.present.items():
            self.present[contaminant] = self.shown(present)
            for each, track in self.present[contaminant]:
                track.shows += ((contaminant, each),)
            self.taint(contaminant)
        self.windows = tuple((each, Window()) for each in envelope.plausible)
        for channel, limit in envelope.limits.items():
            track = self.track(limit.readback or channel)
            if limit.resolution < math.inf:
                track.limit, track.within = limit, limit.resolution
                track.stake = self.shown((limit.foreign_while,) if limit.foreign_while else ())
            self.guarding[channel] = tuple(each for each in self.rules if channel in each[0].guards)

    def track(self, channel: str) -> Track:
        """Return the track of a channel, making it the first time."""
        return self.tracks.setdefault(channel, Track(channel))

    def shown(self, bounds: tuple[Bound, ...]) -> Shown:
        """Return bounds, each beside the track that shows it and from now on counts its changes."""
        for each in bounds:
            self.track(each.channel).conditions |= {each}
        return tuple((each, self.tracks[each.channel]) for each in bounds)

    def fresh(self, track: Track, now: float) -> bool:
        """Return whether the last reading still counts."""
        return now - track.at_s <= track.stale_s

    def holds(self, condition: Condition, now: float) -> bool:
        """Return whether a condition is proven; a stale or doubtful reading proves nothing."""
        if isinstance(condition, Bound):
            track = self.tracks[condition.channel]
            return self.fresh(track, now) and all(map(condition.holds, track.possible()))
        gas, proven = condition.contaminant, self.tight
        if isinstance(condition, PurgedOf):
            fill, proven = self.envelope.purge.backfill, self.volumes(gas) >= condition.volumes
            proven = proven or (fill is not None and self.backfills[gas] >= fill.cycles)
        return proven and self.may_be(self.present[gas], now) is None

    def may_be(self, states: Shown, now: float) -> Bound | None:
        """Return the first state that no fresh reading and no unconfirmed value excludes."""
        for state, track in states:
            if now - track.at_s > track.stale_s or state.low <= track.value <= state.high:
                return state
            if track.unconfirmed and any(map(state.holds, track.unconfirmed)):
                return state
        return None

    def missing(self, rule: Rule, now: float) -> Condition | None:
        """Return the first condition of a row that is not met."""
        _, proofs, _, required, forbidden = rule
        for bound, track in required:
            if now - track.at_s > track.stale_s or not bound.low <= track.value <= bound.high:
                return bound
            if track.unconfirmed and not all(map(bound.holds, track.unconfirmed)):
                return bound
        for proof in proofs:
            if not self.holds(proof, now):
                return proof
        return self.may_be(forbidden, now) if forbidden else None

    def taint(self, contaminant: str) -> None:
        """Take back every proof about a contaminant, because it may be in the tube."""
        self.purged_cm3[contaminant] = 0.0
        self.backfills[contaminant] = 0
        self.pumped = False
        self.tight &= contaminant != self.envelope.purge.outside

    def procedure(self, name: str) -> str:
        """Return the procedure that makes safe in the state the line is, or may be, in.

        What was heard last is believed of who is silent too: a relay stays as it was set, a tube
        that was evacuated a moment ago still is, and one that stood open is under no vacuum.
        """
        row = self.envelope.procedures[name]
        belied = row.unless is not None and all(
            map(row.unless.holds, self.tracks[row.unless.channel].possible())
        )
        for state in () if belied else row.when:
            if any(map(state.holds, self.tracks[state.channel].possible())):
                return row.instead
        return name

    def silent(self, condition: Condition, now: float) -> bool:
        """Return whether silence, which trips by itself, is why a condition does not hold."""
        if not isinstance(condition, Bound):
            shown_by = self.envelope.purge.present[condition.contaminant]
            return any(self.silent(each, now) for each in shown_by)
        watch = self.envelope.watches[condition.channel]
        return bool(watch.procedure) and not self.fresh(self.tracks[condition.channel], now)

    def volumes(self, contaminant: str) -> float:
        """Tube volumes of measured inert flow since the contaminant was last present."""
        return self.purged_cm3[contaminant] / self.envelope.purge.volume_cm3

    def energised(self, rule: Rule, now: float) -> bool:
        """Return whether what a row is about is, or may be, so; what was never read may be."""
        row, _, during, _, _ = rule
        if during and (self.may_be(during, now) is None or self.silent(during[0][0], now)):
            return False
        tracks = [self.tracks[self.envelope.limits[each].readback or each] for each in row.guards]
        return not tracks or any(not v <= row.above for each in tracks for v in each.possible())
