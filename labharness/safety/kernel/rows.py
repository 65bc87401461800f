"""The rows of an envelope: limits, interlocks, watches, trips and safe procedures."""

import math
from dataclasses import dataclass

from labharness.core.vocabulary import Cause
from labharness.safety.kernel.conditions import Bound, EnvelopeInvalid, positive
from labharness.safety.kernel.modes import Role
from labharness.safety.kernel.proofs.rows import Proof

Condition = Bound | Proof
"""A condition that an interlock requires."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """The closed interval one channel may be set to.

    Attributes:
        channel: ``instrument.channel``.
        unit: A command in any other unit is refused.
        low: Smallest value allowed.
        high: Largest value allowed.
        source: Where the numbers come from.
        role: ``prepare`` channels (watchdogs, modes) may also be set while the line is arming.
        step_max: Largest change by one command; ``inf`` for no such limit.
        readback: Channel that shows what was set; the channel itself where nothing else does.
        moves: Readings in the same unit that follow what is set: a controller's measured flow.
        always_safe: Values that interlocks, steps and roles never hold up on a line that is armed
            and has not tripped (law 2). A mark takes the proof of the exhaustive search.
        resolution: Largest difference between what was set and what its read-back shows of it;
            ``inf`` where the read-back moves by itself, so that no difference says anything.
        own: Values that the instrument also takes by itself (a watchdog shuts, a program ends).
        on_foreign: Procedure that runs when the read-back shows a value that this line did not
            set; ``""`` warns only.
        foreign_while: While this is excluded, that warns only too; ``None`` for always.
    """

    channel: str
    unit: str
    low: float
    high: float
    source: str
    role: Role = Role.OPERATE
    step_max: float = math.inf
    readback: str = ""
    moves: tuple[str, ...] = ()
    always_safe: tuple[float, ...] = ()
    resolution: float = math.inf
    own: tuple[float, ...] = ()
    on_foreign: str = ""
    foreign_while: Bound | None = None

    def __post_init__(self) -> None:
        if not -math.inf < self.low <= self.high < math.inf:  # also refuses NaN
            raise EnvelopeInvalid(f"{self.channel}: {self.low} to {self.high} is empty or endless")
        if not self.step_max > 0:
            raise EnvelopeInvalid(f"{self.channel}: step_max {self.step_max} is not positive")
        if not all(self.low <= value <= self.high for value in self.always_safe):
            raise EnvelopeInvalid(f"{self.channel}: always_safe {self.always_safe} is not allowed")

    @property
    def shown_by(self) -> tuple[str, ...]:
        """The channels whose readings follow what is set."""
        return (self.readback or self.channel, *self.moves)


@dataclass(frozen=True, slots=True, kw_only=True)
class Interlock:
    """Setting one of ``guards`` above ``above`` takes all conditions, proven by fresh readings.

    Attributes:
        name: Its name in refusals.
        guards: Channels it stands before; none for a row about a state alone.
        above: A command to at most this value de-energises and is not held up by this row.
        upto: Upper end of the band above ``above``; a setpoint that ramps through the band from
            below passes the forbidden state, whatever its target.
        below: A command to less than this takes the conditions too (inert flow over a hot source).
        require: All of these are proven.
        forbid: Each of these is excluded by a fresh reading.
        during: The row counts only while this may be so: a gas, a material's or a tube's
            temperature band, a digital input. ``None`` for always.
        on_loss: Procedure that runs when a condition is lost while a guarded channel is above
            ``above`` and ``during`` may be so; ``""`` when the row only stands before commands.
        prohibits: Name of the prohibited action (HCP L3) that this row enforces.
        source: Where the rule comes from.
    """

    name: str
    guards: tuple[str, ...]
    source: str
    require: tuple[Condition, ...] = ()
    forbid: tuple[Bound, ...] = ()
    during: Bound | None = None
    above: float = 0.0
    upto: float = math.inf
    below: float = -math.inf
    on_loss: str = ""
    prohibits: str = ""

    def __post_init__(self) -> None:
        # a row with no finite ``above`` stands before commands downwards only
        bound, name = (self.below, "below") if self.above == math.inf else (self.above, "above")
        if not math.isfinite(bound) or not self.upto > bound:
            raise EnvelopeInvalid(f"interlock {self.name!r}: {name} {bound}, upto {self.upto}")
        if not self.guards and self.during is None:
            raise EnvelopeInvalid(f"interlock {self.name!r} guards nothing, during no state")


@dataclass(frozen=True, slots=True, kw_only=True)
class Watch:
    """A channel that the line reads all the time.

    Attributes:
        channel: The channel.
        stale_s: A reading older than this counts for nothing, and the silence trips.
        procedure: Procedure that its silence runs while the line is armed.
    """

    channel: str
    stale_s: float
    procedure: str

    def __post_init__(self) -> None:
        positive(self.stale_s, f"watch {self.channel}: stale_s")


@dataclass(frozen=True, slots=True, kw_only=True)
class TripRow:
    """A reading outside ``low``..``high`` trips; without a procedure it only warns."""

    name: str
    channel: str
    cause: Cause
    procedure: str
    unit: str
    source: str
    low: float = -math.inf
    high: float = math.inf

    def __post_init__(self) -> None:
        if not self.low < self.high:  # also refuses NaN
            raise EnvelopeInvalid(f"trip {self.name!r}: {self.low} to {self.high} is empty")


@dataclass(frozen=True, slots=True, kw_only=True)
class Plausible:
    """The behaviour of a sound sensor or actuator within a declared time; any other trips or warns.

    It is looked at while a reading is fresh and ``during`` is proven. Changes are measured in
    windows of half of ``found_s``, so that a fault that begins within one is seen in the next.

    Attributes:
        name: Its name in the trip.
        channel: The channel that is checked.
        found_s: Time within which the fault is found, to which one poll comes.
        cause: Cause of the trip.
        procedure: Its procedure; ``""`` to warn only.
        rise_min: Least rise in a window (heat without rise, a slow sensor).
        span_min: Least difference of highest and lowest reading in a window (a stuck sensor).
        span_max: Largest such difference (garbage, a ramp that is too fast); seen at once.
        expects: A bound that must hold, but for less than ``found_s`` (a valve that answers flow).
        agrees_with: A second sensor of the same thing; with either's own trip row this is 1oo2.
        differ_max: How far the two may differ, but for less than ``found_s``.
    """

    name: str
    channel: str
    found_s: float
    cause: Cause
    procedure: str
    source: str
    during: tuple[Bound, ...] = ()
    rise_min: float = -math.inf
    span_min: float = 0.0
    span_max: float = math.inf
    expects: Bound | None = None
    agrees_with: str = ""
    differ_max: float = math.inf

    def __post_init__(self) -> None:
        positive(self.found_s, f"plausible {self.name!r}: found_s")


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One channel's value in a safe state of the line.

    Attributes:
        channel: The channel to set.
        value: Its value.
        unit: The unit of the value.
        optional: The safe state holds without it (it is worth a try, not worth an alarm).
    """

    channel: str
    value: float
    unit: str
    optional: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Procedure:
    """A joint, ordered, safe state of the line (law 2).

    Attributes:
        name: Its name.
        steps: In order of hazard, the most hazardous first.
        wire_s_max: Longest time its first wave may take on the slowest port.
        verify_s_max: Longest time until each step is verified, or is reported as not.
        when: While one of these may be so by what was heard last, a command on its way included,
            ``instead`` is the safe state (do not vent a vacuum).
        instead: Name of that procedure; ``""`` for none.
        unless: While this was heard last, ``when`` is not believed (no vented tube is evacuated).
    """

    name: str
    steps: tuple[Step, ...]
    wire_s_max: float
    verify_s_max: float
    when: tuple[Bound, ...] = ()
    instead: str = ""
    unless: Bound | None = None
