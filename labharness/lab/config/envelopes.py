"""The tables of envelope files, key by key; any other key is an error."""

from typing import Any, Literal, Self

from pydantic import (
    Field,
    StrictBool,
    StrictFloat,
    StrictInt,
    field_validator,
    model_validator,
)

from labharness.core.vocabulary import Cause
from labharness.core.vocabulary.texts import Text
from labharness.instruments.driver import Adds
from labharness.lab.config.lab_file import Strict
from labharness.safety.kernel import Role

Quantity = Literal["temperature", "pressure", "gas_flow_rate"]
ProhibitedAction = Literal["simultaneous_gas_mixing_without_purge"]


class Parameter(Strict):
    """One row of HCP L3's ``parameters``."""

    max: StrictFloat
    unit: str
    hard_limit: StrictBool
    source: str = "HCP safety envelope"


class SafetyEnvelope(Strict):
    """HCP L3's ``safety_envelope``, with its names checked."""

    parameters: dict[Quantity, Parameter] = Field(default_factory=dict)
    prohibited_actions: tuple[ProhibitedAction, ...] = ()
    emergency_procedures: dict[Cause, str] = Field(default_factory=dict)

    def to_json(self, ambient_torr: float | None) -> dict[str, Any]:
        """Return it as HCP L3 writes it.

        Args:
            ambient_torr: Pressure of the room; stands beside a pressure that is stated against it.
        """
        unsaid = {"parameters": {"__all__": {"source"}}}
        said: dict[str, Any] = self.model_dump(mode="json", exclude=unsaid)
        for parameter in said["parameters"].values():
            if parameter["unit"].endswith(" gauge") and ambient_torr is not None:
                parameter["ambient_torr"] = ambient_torr
        return said


class LimitRow(Strict):
    """A ``[[limit]]``."""

    channel: str
    unit: str
    low: StrictFloat
    high: StrictFloat
    source: str
    role: Role = Role.OPERATE
    step_max: StrictFloat | None = None
    always_safe: tuple[StrictFloat, ...] = ()
    on_foreign: str = ""
    foreign_while: "BoundRow | None" = None


class OpeningRow(Strict):
    """An ``[[opening]]``: a part that a person is asked to open, and the contact that shows it."""

    action: str
    opens: str
    source: str


class BoundRow(Strict):
    """A bound on a reading; one end or both. Of a pressure the unit says which pressure it is."""

    channel: str
    at_least: StrictFloat | None = None
    at_most: StrictFloat | None = None
    unit: str | None = None


class PurgedRow(Strict):
    """A purge proof that is asked for."""

    purged_of: str
    volumes: StrictFloat


class TightRow(Strict):
    """A leak check that is asked for."""

    tight_since: str


class InterlockRow(Strict):
    """An ``[[interlock]]``."""

    name: str
    guards: tuple[str, ...] = ()
    require: tuple[dict[str, Any], ...] = ()
    forbid: tuple[BoundRow, ...] = ()
    during: BoundRow | None = None
    source: str
    above: StrictFloat | None = None
    upto: StrictFloat | None = None
    below: StrictFloat | None = None
    on_loss: str = ""
    prohibits: str = ""


class WatchRow(Strict):
    """The age that a reading of a channel may have before its silence trips."""

    channel: str
    stale_s: StrictFloat
    trips: StrictBool = True


class TripTable(Strict):
    """A ``[[trip]]``."""

    name: str
    channel: str
    cause: Cause
    unit: str
    source: str
    low: StrictFloat | None = None
    high: StrictFloat | None = None


class PlausibleRow(Strict):
    """A ``[[plausible]]``."""

    name: str
    channel: str
    cause: Cause
    found_s: StrictFloat
    source: str
    warns: StrictBool = False
    during: tuple[BoundRow, ...] = ()
    rise_min: StrictFloat | None = None
    span_min: StrictFloat = 0.0
    span_max: StrictFloat | None = None
    expects: BoundRow | None = None
    agrees_with: str = ""
    differ_max: StrictFloat | None = None


class ProcedureRow(Strict):
    """The steps that make the line safe, with the times that they may take."""

    wire_s_max: StrictFloat
    verify_s_max: StrictFloat
    steps: tuple[tuple[str, StrictFloat] | tuple[str, StrictFloat, Literal["optional"]], ...]
    when: tuple[BoundRow, ...] = ()
    unless: BoundRow | None = None
    instead: str = ""


class BackfillRow(Strict):
    """Pumping and filling, as a purge counts them."""

    channel: str
    cycles: StrictInt
    low: StrictFloat
    low_unit: str | None = None
    high: StrictFloat
    high_unit: str | None = None
    atmosphere: StrictFloat
    unmeasured_max: StrictFloat
    dilution_min: StrictFloat
    source: str

    @field_validator("unmeasured_max")
    @classmethod
    def _share(cls, given: float) -> float:
        """With 1 or more, no inflow would ever count as coming from outside."""
        if given >= 1.0:
            raise ValueError(Text("envelope.share", given=given))
        return given


class LeakCheckRow(Strict):
    """A rise of pressure in the shut tube, as proof that it is tight."""

    channel: str
    isolated: tuple[BoundRow, ...]
    inlets: tuple[BoundRow, ...]
    below: StrictFloat
    below_unit: str | None = None
    over_s: StrictFloat
    leak_max: StrictFloat
    source: str


class PurgeRow(Strict):
    """The ``[purge]``."""

    inert: dict[str, str]
    present: dict[str, tuple[BoundRow, ...]]
    outside: str
    source: str
    backfill: BackfillRow | None = None
    leak_check: LeakCheckRow | None = None


class AmbientRow(Strict):
    """The ``[ambient]``: the state in which the line's own gauge shows the pressure of the room."""

    channel: str
    during: tuple[BoundRow, ...] = Field(min_length=1)
    differ_max: StrictFloat = Field(gt=0)
    source: str


class ContactRow(Strict):
    """A ``[[contact]]``: a relay, and the channel that gets power or gas through it."""

    channel: str
    source: str
    off: StrictFloat | None = None
    feeds: tuple[str, ...] = ()
    adds: Adds | None = None

    @model_validator(mode="after")
    def _complete(self) -> Self:
        energises = bool(self.feeds) or self.adds is not None
        if energises != (self.off is not None):
            raise ValueError(Text("envelope.contact", channel=self.channel))
        return self


class CoolingRow(Strict):
    """A ``[[cooling]]``: how fast a temperature of this line falls without heat."""

    channel: str
    lag_s: StrictFloat = Field(gt=0, le=3600)
    over_s: StrictFloat = Field(gt=0, le=3600)
    rise_max: StrictFloat = Field(gt=0)
    above: StrictFloat
    source: str


class ColdRow(Strict):
    """The ``[cold]``: below it a tube may be touched, and a line that was hot may be left."""

    below: StrictFloat = 60.0
    unit: Literal["degC", "K", "degF"] = "degC"
    source: str = "may be touched (background knowledge)"


class LineFile(Strict):
    """The envelope file of a whole line.

    Attributes:
        safe_procedure: The procedure that every run begins and ends with, and that answers each
            cause without one of its own (ruling 8). A line with one procedure need not name it.
        purge: The way of the purge proof; ``None`` where no rule asks for one.
    """

    line: str
    description: str
    safe_procedure: str = ""
    safety_envelope: SafetyEnvelope = Field(default_factory=SafetyEnvelope)
    quantities: dict[Quantity, tuple[str, ...]] = Field(default_factory=dict)
    ambient: AmbientRow | None = None
    limit: tuple[LimitRow, ...]
    opening: tuple[OpeningRow, ...] = ()
    watch: tuple[WatchRow, ...]
    interlock: tuple[InterlockRow, ...] = ()
    trip: tuple[TripTable, ...] = ()
    plausible: tuple[PlausibleRow, ...] = ()
    contact: tuple[ContactRow, ...] = ()
    cooling: tuple[CoolingRow, ...] = ()
    cold: ColdRow = ColdRow()
    procedures: dict[str, ProcedureRow] = Field(min_length=1)
    purge: PurgeRow | None = None

    @property
    def safe(self) -> str:
        """The procedure that every run begins and ends with; ``""`` where none is named."""
        first, *others = self.procedures
        return self.safe_procedure or ("" if others else first)

    @property
    def contract(self) -> SafetyEnvelope:
        """HCP's safety envelope, in which the safe procedure answers what no other answers."""
        if not self.safe:
            return self.safety_envelope
        given = self.safety_envelope.emergency_procedures
        others = {cause: self.safe for cause in Cause if cause not in given}
        answers = {**given, **others}
        return self.safety_envelope.model_copy(update={"emergency_procedures": answers})


class KindLimit(Strict):
    """A limit of an instrument kind itself."""

    unit: str
    low: StrictFloat
    high: StrictFloat
    source: str


class KindLimits(Strict):
    """The limits an instrument of one kind has by itself."""

    kind: str
    limits: dict[str, KindLimit] = Field(default_factory=dict)
