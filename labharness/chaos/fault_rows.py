"""The rows of a faults file: what may fail, what a fault hides, and the harms to look for.

The kinds in ``KINDS`` exist for any line; every other kind sets a field of the plant's ``faults``.
"""

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StrictFloat, StrictStr

from labharness.chaos.formula import Condition, Seconds

WRITES = ("write_lost", "write_refused", "writes_refused")
ON_A_PORT = (
    *("reply_lost", "reply_garbled", "reply_late", "reply_foreign", "reply_doubled"),
    *("reply_reordered", "bus_cut", *WRITES),
)
OF_A_SENSOR = ("off", "stuck", "garbage", "wrong", "slow", "delayed", "intermittent")
ON_THE_WHOLE = ("power_dip", "kill", "pause", "clock_jump", "disk_full", "stop_request")
KINDS: Mapping[str, str] = {
    **{f"sensor_{how}": "sensor" for how in OF_A_SENSOR},
    **dict.fromkeys(ON_A_PORT, "port"),
    "contact_stuck": "contact",
    "flow_drift": "flow",
    **dict.fromkeys(ON_THE_WHOLE, ""),
}
"""The kinds of faults that any line can have, and the list of the file that names their targets."""

Weight = Annotated[StrictFloat, Field(gt=0)]
Values = Annotated[tuple[StrictFloat, ...], Field(min_length=1)]


class TableRow(BaseModel):
    """A table of the file; it has no other keys than those named here."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, allow_inf_nan=False, arbitrary_types_allowed=True
    )


def _or_alone(key: str) -> BeforeValidator:
    """Let a row that has this key alone be written as its text."""
    return BeforeValidator(lambda row: {key: row} if isinstance(row, str) else row)


class Place(TableRow):
    """A stage or a port, and how often faults fall on it."""

    name: StrictStr
    weight: Weight = 1.0


PlaceRow = Annotated[Place, _or_alone("name")]


class Sensor(TableRow):
    """A sensor by the plant's name of its part, and the highest value that its garbage reads."""

    name: StrictStr
    garbage: StrictFloat


class Choice(TableRow):
    """One input of a growth.

    Attributes:
        name: Its name in the recipe.
        values: Values, of which one is drawn.
        share: Share of the runs that have it.
        beside: Another input, beside which it is ``at_least`` so large.
        at_least: See ``beside``.
        seldom: Value in a run with a seldom fault, where none was drawn.
    """

    name: StrictStr
    values: Values
    share: Annotated[StrictFloat, Field(gt=0, le=1)] = 1.0
    beside: StrictStr | None = None
    at_least: StrictFloat = 0.0
    seldom: StrictFloat | None = None


class FaultRow(TableRow):
    """A kind of fault that may be drawn; the rows' order belongs to a seed's scenarios.

    Attributes:
        kind: Its name.
        weight: How often it is drawn.
        bites: Stages in which it does harm; more than half of its draws fall there.
        sets: Field of the plant's ``faults``, for a kind that is not in ``KINDS``.
        amounts: Values of the field, of which one is drawn; without any the field becomes true.
        between: Lowest and highest value, instead of ``amounts``.
        lasts_s: Durations, of which one is drawn instead of the usual ones; 0 is for good.
        latches: A line that has energised something must trip while this fault lasts.
    """

    kind: StrictStr
    weight: Weight = 1.0
    bites: tuple[StrictStr, ...] = ()
    sets: StrictStr | None = None
    amounts: tuple[StrictFloat, ...] = ()
    between: tuple[StrictFloat, StrictFloat] | None = None
    lasts_s: tuple[Seconds, ...] = ()
    latches: bool = False


FaultKind = Annotated[FaultRow, _or_alone("kind")]


class Seldom(TableRow):
    """A fault that chance seldom puts where it does harm."""

    kind: StrictStr
    target: StrictStr = ""
    stage: StrictStr


class Apart(TableRow):
    """Two lists of faults that never come together: both ways to one safe state would fail."""

    one: tuple[StrictStr, ...]
    other: tuple[StrictStr, ...]


class MaskCause(TableRow):
    """Faults that put a mask on the line.

    Attributes:
        faults: Patterns of the faults.
        beside: Patterns of other faults, of which one must be there as well.
        mended_by: Patterns of the faults whose end also ends the mask of a pair; all by default.
        for_s: Time until the line must have found the fault.
        stage: The only stage in which a pair counts.
        since: Stage from whose beginning on it counts.
        before: Stage from whose beginning on it no longer counts.
    """

    faults: tuple[StrictStr, ...]
    beside: tuple[StrictStr, ...] = ()
    mended_by: tuple[StrictStr, ...] = ()
    for_s: Seconds = float("inf")
    stage: StrictStr | None = None
    since: StrictStr | None = None
    before: StrictStr | None = None


class Mask(TableRow):
    """A thing that the line cannot see, with its causes and its length.

    Attributes:
        name: Its name.
        after_s: Time by which it outlasts its cause.
        by: Its causes among the faults.
        healed: Condition that ends it earlier, once its cause is over.
        begins: Condition of the plant that puts it on, without a fault.
        ends: Condition that takes such a mask off, ``after_s`` after it has become true.
        leaves: Mask that follows it.
    """

    name: StrictStr
    after_s: Seconds
    by: tuple[MaskCause, ...] = ()
    healed: Condition | None = None
    begins: Condition | None = None
    ends: Condition | None = None
    leaves: StrictStr | None = None


class Harm(TableRow):
    """A rule of this line.

    Attributes:
        name: The harm.
        when: Condition under which it is there.
        allowed_s: How long it may last.
        masks: Masks that make it a demand on hardware instead of a violation.
        counts: Name of a total of the plant; what came under a mask is not counted.
    """

    name: StrictStr
    when: Condition
    allowed_s: Seconds
    masks: tuple[StrictStr, ...] = ()
    counts: StrictStr | None = None


class Way(TableRow):
    """One of the ways to a safe state, which is checked by itself: what stays on, by which port."""

    name: StrictStr
    port: StrictStr
    on: Condition


class Looks(TableRow):
    """The stage that most runs need not finish: a stop request ends it."""

    stage: StrictStr
    after_s: Seconds


class RunRequest(TableRow):
    """The task of a run, as a caller submits it; the drawn recipe is put into ``inputs``.

    Attributes:
        recipe_in: Name of the input that holds the recipe; without it, the inputs are the recipe.
        input_limits: Highest inputs of the search's own approval.
    """

    capability: StrictStr
    capability_version: StrictStr = "1.x"
    intent: StrictStr = "Run while things go wrong"
    gases_allowed: tuple[StrictStr, ...] = ()
    input_limits: dict[str, StrictFloat] = Field(default_factory=dict)
    recipe_in: StrictStr | None = None
    inputs: dict[str, Any] = Field(default_factory=dict)
    constraints: dict[str, Any] = Field(default_factory=dict)
    expected_output: dict[str, Any] | None = None
