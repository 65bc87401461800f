"""Prior ProScan III stage controller on its serial line.

Source: Prior ProScan III manual, version 1.12, section 4.1 (terminator, delimiters, ``R`` at the
end of a move); nanophotonics/nplab, ``nplab/instrument/stage/prior.py`` (``GX``, ``GY``, ``P``,
``?``); DIDSR/eeDAP drivers (error numbers).
Verified: simulator only; never on hardware. Background knowledge (K) or third-party drivers (D):
every command but the form of ``G`` and ``R``.
"""

import re
from collections.abc import Mapping
from typing import ClassVar

from labharness.core.vocabulary import BadReply, Request, Until
from labharness.instruments.driver import (
    Channel,
    Driver,
    Identity,
    Query,
    Scan,
    fault,
    kept,
    line_request,
)

__all__ = ["PriorProscan"]

TIMEOUT_S = 0.5
MOVE_S_MAX = 30.0  # the reply to a move comes when the stage has arrived
STEPS_MAX = 2**31 - 1
ERRORS = {
    "1": "no stage",
    "2": "not idle",
    "3": "no drive",
    "4": "string not understood",
    "5": "command not found",
    "8": "value out of range",
    "18": "queue full",
}
_COUNT = r"(-?[0-9]{1,10})"
_POSITION = re.compile(rf"{_COUNT},{_COUNT},{_COUNT}")
_BITS = re.compile(r"[0-9]{1,3}")
AXIS = "nplab stage/prior.py: P, GX, GY"


def _axis(name: str) -> Channel:
    return Channel(
        unit="um",
        doc=f"Control the {name} position of the stage; a command ends when it has arrived.",
        source=AXIS,
        settable=True,
        readback=name,
        resolution=1.0,
        settle_s=MOVE_S_MAX,
    )


class PriorProscan(Driver):
    """Moves a sample under the microscope, one axis at a time.

    Args:
        steps_per_um: User steps of the controller in one micrometre (its ``RES`` and ``SS``).
    """

    baud: ClassVar[int] = 9600
    unverified: ClassVar[str] = (
        "the whole command set: single-axis moves, position, motion bits and error numbers rest on "
        "third-party drivers and background knowledge"
    )
    off = ()
    # P, PX, PY, PZ and PS without a number, $ and ? are known to read; whatever else is said, and a
    # P with numbers, may move the stage or change where it thinks it is (G, GR, M, Z, RES).
    write_grammar = (rb"(?!(?:[Pp][XYZSxyzs]?|\$|\?)\r)[^\r]+\r",)
    channels: Mapping[str, Channel] = {
        "x": _axis("x"),
        "y": _axis("y"),
        "moving": Channel(
            unit="",
            doc="Measure whether any axis moves (1) or all stand (0).",
            source="background knowledge: $ gives one bit for each axis in motion",
        ),
    }

    def __init__(self, *, steps_per_um: float = 1.0) -> None:
        if not 0.001 <= steps_per_um <= 1000:
            raise ValueError(f"steps_per_um {steps_per_um!r} is not within 0.001 to 1000")
        self.steps_per_um = float(steps_per_um)
        self._scans = (
            Scan("position", _line("P"), ("x", "y"), self._position, period_s=None),
            Scan("moving", _line("$"), ("moving",), _moving, period_s=None),
        )
        whole = Until(b"END\r", b"PROSCAN INFORMATION\r", 2048)
        self._identity = Query("identity", Request(b"?\r", whole, 2.0), _identity)

    def scans(self) -> tuple[Scan, ...]:
        """Position and motion, both on demand."""
        return self._scans

    def identify(self) -> Query:
        """Ask what is fitted."""
        return self._identity

    def expects(self, identity: Identity) -> str:
        """Refuse a controller without a stage.

        Its firmware is not judged: no source says which is too old.
        """
        stage = identity.details.get("STAGE", "NONE")
        return "the controller has no stage fitted" if stage == "NONE" else ""

    def write(self, channel: str, value: float) -> tuple[Request, ...]:
        """Move one axis; a position between two steps goes to the nearer one."""
        self.settable(channel)
        if not abs(value) * self.steps_per_um <= STEPS_MAX:
            most_um = STEPS_MAX / self.steps_per_um
            raise ValueError(f"{channel}: asked {value} um, allowed -{most_um:g} to {most_um:g} um")
        steps = round(value * self.steps_per_um)
        kept(f"{channel} in um", value, steps, 1 / self.steps_per_um)
        move = f"G{channel.upper()},{steps}"
        return (line_request(move, timeout_s=MOVE_S_MAX, obeyed=b"R\r"),)

    def accept(self, channel: str, reply: bytes) -> None:
        """``R`` says that the stage has arrived."""
        text = _text(channel, reply)
        if text != "R":
            raise BadReply(f"{channel}: {text[:40]!r} is not R (end of move)")

    def _position(self, reply: bytes) -> tuple[float, ...]:
        found = _POSITION.fullmatch(_text("position", reply))
        if found is None:
            raise BadReply(f"position: {reply[:60]!r} is not three whole numbers")
        return int(found[1]) / self.steps_per_um, int(found[2]) / self.steps_per_um


def _line(text: str) -> Request:
    return line_request(text, timeout_s=TIMEOUT_S)


def _text(what: str, reply: bytes) -> str:
    text = reply.decode("ascii", "replace").removesuffix("\r")
    if text.startswith("E,"):
        raise fault(what, f"{text[:10]} ({ERRORS.get(text[2:], 'unknown')})")
    return text


def _moving(reply: bytes) -> tuple[float, ...]:
    text = _text("moving", reply)
    if not _BITS.fullmatch(text):
        raise BadReply(f"moving: {text[:40]!r} is no set of motion bits")
    return (float(int(text) != 0),)


def _identity(reply: bytes) -> Identity:
    lines = reply.decode("ascii", "replace").split("\r")
    details = dict(line.split(" = ", 1) for line in lines if " = " in line)
    return Identity("ProScan", details=details)
