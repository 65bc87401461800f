"""The modes of a line and what each lets through: a missing row is a refusal."""

from enum import StrEnum

from labharness.core.errors import LabError


class Role(StrEnum):
    """When a channel may be set."""

    PREPARE = "prepare"
    OPERATE = "operate"


class Mode(StrEnum):
    """The state of a line, as far as safety depends on it."""

    DISARMED = "disarmed"
    ARMING = "arming"
    HELD = "held"
    RUNNING = "running"
    TRIPPED = "tripped"


class IllegalMode(LabError, RuntimeError, code="illegal_mode"):
    """A change of mode that the table does not have."""


ADMITS: dict[Mode, frozenset[Role]] = {
    Mode.ARMING: frozenset({Role.PREPARE}),
    Mode.RUNNING: frozenset({Role.PREPARE, Role.OPERATE}),
}

# Where a value marked always_safe passes: a disarmed line is read-only, a tripped one is served by
# its procedure alone.
ALWAYS = frozenset({Mode.ARMING, Mode.HELD, Mode.RUNNING})

# Where silence and what is lost or not plausible trips; a reading outside its bounds always does.
LIVE = frozenset({Mode.HELD, Mode.RUNNING, Mode.TRIPPED})

# Reset leads to DISARMED: it is not a start (law 9).
CHANGES: dict[Mode, frozenset[Mode]] = {
    Mode.DISARMED: frozenset({Mode.ARMING, Mode.TRIPPED}),
    Mode.ARMING: frozenset({Mode.HELD, Mode.DISARMED, Mode.TRIPPED}),
    Mode.HELD: frozenset({Mode.RUNNING, Mode.DISARMED, Mode.TRIPPED}),
    Mode.RUNNING: frozenset({Mode.HELD, Mode.DISARMED, Mode.TRIPPED}),
    Mode.TRIPPED: frozenset({Mode.DISARMED}),
}


def change(now: Mode, to: Mode) -> Mode:
    """Return the mode to change to, or raise ``IllegalMode``."""
    if to not in CHANGES.get(now, frozenset()):
        raise IllegalMode(f"a line that is {now} cannot become {to}")
    return to
