"""Cobolt (HÜBNER Photonics) continuous-wave laser on its serial line.

Source: Cobolt AB's own adapter for Micro-Manager (``CoboltOfficial/LegacyLaser.cpp``): ``ilk?`` is
the interlock; ``i?`` is the drive current, and not asked, because its unit differs by the head.
python-microscope 0.7.0, ``microscope/lights/cobolt.py``, a third-party driver that is in use, for
the rest; no manual of the maker was at hand.
Verified: simulator only; never on hardware. The fault numbers, the decimals of ``p?`` and the words
of the error reply are background knowledge.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar

from labharness.core.vocabulary import BadReply, Request
from labharness.instruments.driver import (
    CONTACT,
    Adds,
    Channel,
    Dark,
    Driver,
    Identity,
    Off,
    Query,
    Scan,
    While,
    fault,
    kept,
    line_request,
    number,
)

__all__ = ["CoboltLaser"]

TIMEOUT_S = 0.5
POWER_DECIMALS = 6  # 1 uW: spectra are taken at 0.3 mW
SOURCE = "microscope 0.7.0 lights/cobolt.py"


class CoboltLaser(Driver):
    """Switches a laser and sets its power.

    It has no communications watchdog: when nobody talks to it, it goes on shining. Emission is
    stopped by its interlock and its key, whatever this driver does.

    Args:
        max_power_w: Highest power that may be asked, W.
    """

    baud: ClassVar[int] = 115200
    unverified: ClassVar[str] = (
        "every command but the interlock's rests on a third-party driver; fault numbers, decimals "
        "of the power and the error reply are background knowledge"
    )
    off = (
        Off(
            adds=Adds.LIGHT,
            steps=(("emission", 0.0),),
            source=SOURCE,
            drives=("emission", "power"),
            dark=Dark(channel="output_power", at_most=5e-4, within_s=5.0),  # warms a sample by 5 K
        ),
    )
    # Queries end in a question mark; l1, l0, @cobasp, @cob1, cf and the like do not.
    write_grammar = (rb"[^\r]*[^?\r]\r",)
    channels: Mapping[str, Channel] = {
        "emission": Channel(
            unit="",
            doc="Control whether the laser is switched on (1) or off (0).",
            source=SOURCE,
            settable=True,
            readback="emission",
            settle_s=3.0,
            shows=CONTACT,
        ),
        "output_power": Channel(unit="W", doc="Measure the optical power.", source=SOURCE),
        "power": Channel(
            unit="W",
            doc="Control the optical power that the laser holds while it is on.",
            source=SOURCE,
            settable=True,
            readback="power",
            resolution=10.0**-POWER_DECIMALS,
            acts_while=While("emission", (1.0,), "emission is off"),
        ),
        "fault": Channel(unit="", doc="Measure the fault number; 0 is none.", source=SOURCE),
        "interlock": Channel(
            unit="",
            doc="Measure whether the remote interlock is open (1) or closed (0).",
            source="CoboltOfficial/SkyraLaser.cpp, OnInterlock: 0 closed, 1 open",
            shows=CONTACT,
        ),
        "hours": Channel(unit="h", doc="Measure the operating hours.", source=SOURCE),
    }

    def __init__(self, *, max_power_w: float = 0.1) -> None:
        if not 0 < max_power_w <= 10:
            raise ValueError(f"max_power_w {max_power_w!r} is not within 0 to 10 W")
        self.max_power_w = float(max_power_w)
        self._scans = (
            _scan("emission", "l?", 1.0, most=1),
            _scan("output_power", "pa?", 1.0),
            _scan("power", "p?", 10.0),
            _scan("fault", "f?", 10.0, most=255),
            _scan("interlock", "ilk?", 10.0, most=1),
            _scan("hours", "hrs?", None),
        )
        self._identity = Query("identity", _line("sn?"), _serial_number)

    def scans(self) -> tuple[Scan, ...]:
        """One line for each channel: the laser has no frame of many."""
        return self._scans

    def identify(self) -> Query:
        """Ask for the serial number, all that it says about itself."""
        return self._identity

    def expects(self, identity: Identity) -> str:
        """A serial number ends in digits.

        Its firmware is not judged: it does not say it.
        """
        return (
            "" if identity.serial[-1:].isdecimal() else f"{identity.serial!r} is no serial number"
        )

    def write(self, channel: str, value: float) -> tuple[Request, ...]:
        """Switch the emission or set the power; a power goes to the nearest microwatt."""
        self.settable(channel)
        if channel == "emission":
            if value not in (0, 1):
                raise ValueError(f"emission: asked {value}, allowed 0 (off) or 1 (on)")
            return (_order("l1" if value else "l0"),)
        if not 0 <= value <= self.max_power_w:
            raise ValueError(f"power: asked {value} W, allowed 0 to {self.max_power_w} W")
        text = f"{abs(value):.{POWER_DECIMALS}f}"  # abs: -0.0 is zero too
        kept("power in W", value, float(text), 10.0**-POWER_DECIMALS)
        return (_order(f"@cobasp {text}"),)

    def shown(self, channel: str, value: float) -> Request | None:
        """Ask for the emission; what the laser says of its power has no stated decimals."""
        if channel != "emission":
            return None
        return replace(_line("l?"), obeyed=b"1\r\n" if value else b"0\r\n")

    def accept(self, channel: str, reply: bytes) -> None:
        """Anything but ``OK`` is a refusal."""
        text = _text(channel, reply)
        if text != "OK":
            raise BadReply(f"{channel}: {text[:40]!r} is not OK")


def _line(text: str) -> Request:
    return line_request(text, reply_end=b"\r\n", timeout_s=TIMEOUT_S)


def _order(text: str) -> Request:
    return replace(_line(text), obeyed=b"OK\r\n")


def _text(what: str, reply: bytes) -> str:
    text = reply.decode("ascii", "replace").removesuffix("\r\n")
    if text.lower().startswith(("syntax error", "error")):
        raise fault(what, repr(text[:80]))
    return text


def _scan(channel: str, query: str, period_s: float | None, *, most: int = 0) -> Scan:
    def decode(reply: bytes) -> tuple[float, ...]:
        value = number(_text(channel, reply), channel)
        if most and value not in range(most + 1):
            raise BadReply(f"{channel}: {value} is no whole number of 0 to {most}")
        return (value,)

    return Scan(channel, _line(query), (channel,), decode, period_s)


def _serial_number(reply: bytes) -> Identity:
    return Identity("Cobolt", serial=_text("identity", reply).strip())
