"""The rows of an envelope about proofs: the proofs that a rule requires, and how each is made."""

from collections.abc import Mapping
from dataclasses import dataclass

from labharness.core.vocabulary.texts import Text
from labharness.safety.kernel.conditions import Bound, EnvelopeInvalid, positive


@dataclass(frozen=True, slots=True)
class PurgedOf:
    """The tube was purged since ``contaminant`` was in it: by volumes, or by backfills.

    Oxygen is not measured: that air is out of the tube is *inferred* from this proof.

    Attributes:
        contaminant: The contaminant that is out of the tube.
        volumes: Tube volumes that must have passed as measured inert flow; the cycles of the
            line's ``Backfill`` are proof too.
    """

    contaminant: str
    volumes: float

    def __post_init__(self) -> None:
        positive(self.volumes, f"purged of {self.contaminant!r}: volumes")

    def __str__(self) -> str:
        inferred = Text("purge.oxygen") if self.contaminant == "air" else ""
        return Text(
            "purge.needed",
            contaminant=self.contaminant,
            volumes=self.volumes,
            inferred=inferred,
        )


@dataclass(frozen=True, slots=True)
class LeakTight:
    """The tube passed the line's ``LeakCheck`` since ``contaminant`` was in it (it was open)."""

    contaminant: str

    def __str__(self) -> str:
        return Text("leak.needed", contaminant=self.contaminant)


Proof = PurgedOf | LeakTight


@dataclass(frozen=True, slots=True, kw_only=True)
class Backfill:
    """Pumping and backfilling as a proof: ``cycles`` times from ``low`` to ``high`` by inert gas.

    Gas that fills the tube, from any pressure, and that no meter of inert gas measures may have
    come from outside: it takes back the proof about the outside.

    Attributes:
        channel: The pressure gauge.
        cycles: Number of cycles that are a proof; a purge by volumes is then not needed.
        low: Pressure to reach, in the gauge's unit.
        high: Pressure to fill to.
        atmosphere: One atmosphere in that unit.
        unmeasured_max: Share of the tube's volume that may come in unmeasured while it fills.
        dilution_min: Least dilution by all cycles; each counts as ``high / low``.
    """

    channel: str
    cycles: int
    low: float
    high: float
    atmosphere: float
    unmeasured_max: float
    dilution_min: float

    def __post_init__(self) -> None:
        positive(self.cycles, "a backfill: cycles")
        positive(self.low, "a backfill: low")
        positive(self.unmeasured_max, "a backfill: unmeasured_max")
        if not (self.high / self.low) ** self.cycles >= max(self.dilution_min, 1.0):
            raise EnvelopeInvalid(f"{self.cycles} backfills do not dilute by {self.dilution_min}")


@dataclass(frozen=True, slots=True, kw_only=True)
class LeakCheck:
    """The measured rate of rise of an isolated, evacuated tube.

    Attributes:
        channel: The pressure gauge.
        isolated: All of these, during the whole check: every outlet and every inlet of the tube is
            shut, so that a pressure that rises is a leak.
        inlets: Channels among them that may let something in: a command to one ends the check
            before its bytes leave.
        below: Highest pressure during the check, in the gauge's unit; to pass it is to fail.
        over_s: Length of the check.
        leak_max: Largest leak, in the gauge's unit times cm3/s.
    """

    channel: str
    isolated: tuple[Bound, ...]
    inlets: tuple[str, ...]
    below: float
    over_s: float
    leak_max: float

    def __post_init__(self) -> None:
        positive(self.over_s, "the leak check: over_s")


@dataclass(frozen=True, slots=True, kw_only=True)
class Purge:
    """The making of the purge proof: by integrated measured flow or pressure, never by a timer.

    Attributes:
        volume_cm3: Volume of the tube and its lines.
        inert: Flow channels (sccm) that count, each with the channel that reads back its
            controller's setpoint: a meter is believed up to what its controller was told.
        present: For each contaminant the conditions under which it *may be* in the tube; while one
            holds, or is not known to be false, that contaminant's proof is nothing.
        outside: Contaminant that is all around the tube (air): it comes in by a lid or a leak, and
            its presence makes the leak check void. ``""`` where no purge is proven.
        backfill: The cycles that count; ``None`` if the line has no pump.
        leak_check: The check that proves the tube tight; ``None`` if there is none.
    """

    volume_cm3: float
    inert: Mapping[str, str]
    present: Mapping[str, tuple[Bound, ...]]
    outside: str
    backfill: Backfill | None = None
    leak_check: LeakCheck | None = None

    def __post_init__(self) -> None:
        positive(self.volume_cm3, "the purge proof: volume_cm3")
