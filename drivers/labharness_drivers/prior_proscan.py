"""Prior ProScan III stage controller on its serial line.

Source: Prior ProScan III manual, version 1.12, section 4.1 (terminator, delimiters, ``R`` at the
end of a move); nanophotonics/nplab, ``nplab/instrument/stage/prior.py`` (``GX``, ``GY``, ``P``,
``?``); DIDSR/eeDAP drivers (error numbers).
Verified: simulator only; never on hardware. Background knowledge (K) or third-party drivers (D):
every command but the form of ``G`` and ``R``.
"""

from labharness.core.vocabulary import Until
from labharness.instruments.driver import Ascii, AsciiDriver, Several, Wants, Who, of, whole, within

MOVE_S_MAX = 30.0  # the reply to a move comes when the stage has arrived
STEPS_MAX = 2**31 - 1
_COUNT = "-?[0-9]{1,10}"


def _any(said: str, what: str) -> float:
    return float(whole(999)(said, what) != 0)


def _axis(place: Several, name: str) -> Ascii:
    return Ascii(
        place,
        sends=f"G{name.upper()},{{}}",
        sets=(of("least_um"), of("most_um")),
        per=of("steps_per_um"),
        resolution=1.0,
        settle_s=MOVE_S_MAX,
        answered_s=MOVE_S_MAX,
        unit="um",
        doc=f"Control the {name} position of the stage; a command ends when it has arrived.",
    )


class PriorProscan(AsciiDriver):
    """Moves a sample under the microscope, one axis at a time.

    Args:
        steps_per_um: User steps of the controller in one micrometre (its ``RES`` and ``SS``).
    """

    unverified = (
        "the whole command set: single-axis moves, position, motion bits and error numbers rest on "
        "third-party drivers and background knowledge"
    )
    timeout_s = 0.5
    refused = "E,(.*)"
    refusals = {
        "1": "no stage",
        "2": "not idle",
        "3": "no drive",
        "4": "string not understood",
        "5": "command not found",
        "8": "value out of range",
        "18": "queue full",
    }
    done = "R"
    document = "nplab stage/prior.py: P, GX, GY"
    # P, PX, PY, PZ and PS without a number, $ and ? are known to read; whatever else is said, and a
    # P with numbers, may move the stage or change where it thinks it is (G, GR, M, Z, RES).
    write_grammar = (rb"(?!(?:[Pp][XYZSxyzs]?|\$|\?)\r)[^\r]+\r",)
    in_step = {"P": f"{_COUNT},{_COUNT},{_COUNT}", "$": "[0-9]{1,3}"}
    off = ()
    who = Who(
        "?",
        name="ProScan",
        details={"STAGE": "STAGE = ([^\r]*)"},
        reply=Until(b"END\r", b"PROSCAN INFORMATION\r", 2048),
        timeout_s=2.0,
    )
    wants = Wants("STAGE", "^(?!NONE$|$)", "the controller has no stage fitted")

    position = Several("P", f"({_COUNT}),({_COUNT}),{_COUNT}", every_s=None)
    x = _axis(position, "x")
    y = _axis(position, "y")
    moving = Ascii(
        "$",
        reads=_any,
        every_s=None,
        doc="Measure whether any axis moves (1) or all stand (0).",
        source="background knowledge: $ gives one bit for each axis in motion",
    )

    def __init__(self, *, steps_per_um: float = 1.0) -> None:
        within("steps_per_um", steps_per_um, 0.001, 1000.0)
        self.steps_per_um = float(steps_per_um)
        self.most_um = STEPS_MAX / self.steps_per_um
        self.least_um = -self.most_um
        super().__init__()
