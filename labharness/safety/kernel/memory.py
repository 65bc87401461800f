"""The kernel's memory of one line: a track for each channel, its mode, rules and proofs.

The memory has one owner, the line, and changes only through this package. The rows that
a reading or a command needs are looked up once, when the memory is made.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

from labharness.core.vocabulary import Trip
from labharness.safety.kernel.conditions import Bound
from labharness.safety.kernel.envelope import Envelope
from labharness.safety.kernel.modes import Mode
from labharness.safety.kernel.proofs.proofs import Proofs
from labharness.safety.kernel.proofs.rows import Proof
from labharness.safety.kernel.rows import Condition, Interlock, Limit, Plausible, TripRow, Watch
from labharness.safety.kernel.tracks import Shown, Track, lacking, may_be


@dataclass(frozen=True, slots=True, eq=False)
class InterlockRule:
    """An interlock with the tracks of everything that it requires.

    Attributes:
        row: The interlock.
        guards: The tracks that show what it guards.
        proofs: The proofs about the tube that it requires.
        during: The state in which it counts; empty for always.
        required: The bounds that must be proven.
        forbidden: The states that must be excluded.
    """

    row: Interlock
    guards: tuple[Track, ...]
    proofs: tuple[Proof, ...]
    during: Shown
    required: Shown
    forbidden: Shown

    def counting(self) -> Iterator[Track]:
        """Return the tracks of the guarded channels that are, or may be, above its bound."""
        above = self.row.above
        for track in self.guards:
            if not track.value <= above or any(not each <= above for each in track.unconfirmed):
                yield track


Upheld = tuple[InterlockRule, Bound, bool]
"""A rule whose loss trips, with a state that it requires (true) or forbids (false)."""
TripsBy = tuple[list[Upheld], list[TripRow]]


@dataclass(slots=True, eq=False)
class Window:
    """A plausibility row with its tracks, and the readings that it has seen in its present window.

    Attributes:
        row: The row.
        track: The track of the channel that is checked.
        other: The track of the second sensor; the same where there is none.
        during: The states in which the row counts.
        expects: The bound that must hold; empty for none.
        since_s: Start of the window; ``inf`` while there is none.
        first: Its first reading.
        low: Its lowest.
        high: Its highest.
    """

    row: Plausible
    track: Track
    other: Track
    during: Shown
    expects: Shown
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
    """Everything that is known of a line.

    Attributes:
        envelope: Its rules.
        tracks: The track of each channel.
        mode: Its mode.
        changes: Counts changes of an interlock's truth; permits made before one are void.
        trip: The trip in force.
        rules: The interlocks.
        guarding: The interlocks before each channel.
        trips_by: For each channel whose setting can trip: the states that it sets and a rule may
            not lose, and the trips of the readings that follow it, where its limits let it there.
        losable: The interlocks whose loss has a procedure.
        watched: The watches whose silence has a procedure, each beside its track.
        windows: The plausibility rows, each with its window.
        proofs: The proofs about the tube.
    """

    envelope: Envelope
    tracks: dict[str, Track] = field(default_factory=dict)
    mode: Mode = Mode.DISARMED
    changes: int = 0
    trip: Trip | None = None
    rules: tuple[InterlockRule, ...] = field(init=False)
    guarding: dict[str, tuple[InterlockRule, ...]] = field(init=False)
    losable: tuple[InterlockRule, ...] = field(init=False)
    trips_by: dict[str, TripsBy] = field(init=False)
    watched: tuple[tuple[Watch, Track], ...] = field(init=False)
    windows: tuple[Window, ...] = field(init=False)
    proofs: Proofs = field(init=False)

    def __post_init__(self) -> None:
        envelope = self.envelope
        for channel, watch in envelope.watches.items():
            self.track(channel).stale_s = watch.stale_s
        for trip in envelope.trips:
            self.track(trip.channel).rows += (trip,)
        self.rules = tuple(map(self._rule, envelope.interlocks))
        self.guarding = {
            channel: tuple(rule for rule in self.rules if channel in rule.row.guards)
            for channel in envelope.limits
        }
        self.losable = tuple(rule for rule in self.rules if rule.row.on_loss)
        trips_by = {name: self._trips_by(each) for name, each in envelope.limits.items()}
        self.trips_by = {name: rows for name, rows in trips_by.items() if any(rows)}
        watches = envelope.watches.values()
        self.watched = tuple((each, self.track(each.channel)) for each in watches if each.procedure)
        self.windows = tuple(map(self._window, envelope.plausible))
        self.proofs = Proofs(envelope.purge, self.track, self.shown)
        for limit in envelope.limits.values():
            self._hold_to(limit)

    def _rule(self, row: Interlock) -> InterlockRule:
        bounds = tuple(each for each in row.require if isinstance(each, Bound))
        return InterlockRule(
            row=row,
            guards=tuple(map(self.readback, row.guards)),
            proofs=tuple(each for each in row.require if not isinstance(each, Bound)),
            during=self.shown((row.during,) if row.during else ()),
            required=self.shown(bounds),
            forbidden=self.shown(row.forbid),
        )

    def _trips_by(self, limit: Limit) -> TripsBy:
        upheld, shown_by = [], limit.shown_by
        for rule in self.losable:
            for needed, states in ((True, rule.required), (False, rule.forbidden)):
                upheld += [(rule, each, needed) for each, _ in states if each.channel in shown_by]
        rows = [row for shown in shown_by for row in self.track(shown).rows if row.procedure]
        return upheld, [row for row in rows if limit.low < row.low or row.high < limit.high]

    def _window(self, row: Plausible) -> Window:
        other = self.track(row.agrees_with or row.channel)
        during = tuple((each, self.track(each.channel)) for each in row.during)
        expects = ((row.expects, self.track(row.expects.channel)),) if row.expects else ()
        return Window(row, self.track(row.channel), other, during, expects)

    def _hold_to(self, limit: Limit) -> None:
        """Let a track notice a value that this line did not set, if its readings can show it."""
        track = self.readback(limit.channel)
        if limit.resolution < math.inf:
            track.limit, track.within = limit, limit.resolution
            track.stake = self.shown((limit.foreign_while,) if limit.foreign_while else ())

    def track(self, channel: str) -> Track:
        """Return the track of a channel, making it the first time."""
        return self.tracks.setdefault(channel, Track(channel))

    def readback(self, channel: str) -> Track:
        """Return the track that shows what a channel is set to."""
        return self.track(self.envelope.limits[channel].readback or channel)

    def shown(self, bounds: tuple[Bound, ...]) -> Shown:
        """Return bounds, each beside the track that shows it and from now on counts its changes."""
        for each in bounds:
            self.track(each.channel).conditions |= {each}
        return tuple((each, self.tracks[each.channel]) for each in bounds)

    def holds(self, condition: Condition, now: float) -> bool:
        """Return whether a condition is proven; a stale or doubtful reading proves nothing."""
        if isinstance(condition, Bound):
            return lacking(((condition, self.tracks[condition.channel]),), now) is None
        return self.proofs.hold(condition, now)

    def missing(self, rule: InterlockRule, now: float) -> Condition | None:
        """Return the first condition of a rule that is not met."""
        bound = lacking(rule.required, now) if rule.required else None
        if bound is not None:
            return bound
        for proof in rule.proofs:
            if not self.proofs.hold(proof, now):
                return proof
        return may_be(rule.forbidden, now) if rule.forbidden else None

    def silent(self, condition: Condition, now: float) -> bool:
        """Return whether silence, which trips by itself, is why a condition does not hold."""
        if not isinstance(condition, Bound):
            shown_by = self.envelope.purge.present[condition.contaminant]
            return any(self.silent(each, now) for each in shown_by)
        watch = self.envelope.watches[condition.channel]
        return bool(watch.procedure) and not self.tracks[condition.channel].fresh(now)

    def energised(self, rule: InterlockRule, now: float) -> bool:
        """Return whether what a rule is about is, or may be, so; what was never read may be."""
        during = rule.during
        if during and (may_be(during, now) is None or self.silent(during[0][0], now)):
            return False
        return not rule.guards or any(rule.counting())

    def procedure(self, name: str) -> str:
        """Return the procedure that makes safe in the state the line is, or may be, in.

        The last reading of a silent channel is believed too: a relay stays as it was set, a tube
        that was evacuated a moment ago still is, and a tube that stood open is not under vacuum.
        """
        row = self.envelope.procedures[name]
        belied = row.unless is not None and all(
            map(row.unless.holds, self.tracks[row.unless.channel].possible())
        )
        for state in () if belied else row.when:
            if any(map(state.holds, self.tracks[state.channel].possible())):
                return row.instead
        return name
