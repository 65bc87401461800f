"""MKS 910 DualTrans pressure transducer (MicroPirani and piezo), 900-series ASCII protocol.

Source: MKS 910 DualTrans manual, pp. 24 and 46 (queries); MKS 902B manual, pp. 12 and 46 (frame).
Verified: simulator only; never on hardware. NAK160 and NAK180 are the maker's; the meaning of the
other NAK codes is background knowledge.
"""

import re

from labharness.instruments.driver import (
    CONTACT,
    Ascii,
    AsciiDriver,
    Wants,
    While,
    Who,
    among,
    fault,
    within,
)


def _torr(said: str, what: str) -> float:
    # without its point a model number (MD? of a 910) would pass for a pressure
    if not re.fullmatch(r"[+-]?[0-9]{1,4}\.[0-9]{1,6}(E[+-]?[0-9]{1,2})?", said):
        raise fault(what, f"{said[:40]!r}, which is not a number")
    return float(said)


class Mks910(AsciiDriver):
    """Measures absolute pressure from 1e-5 to 1500 Torr.

    Nothing is set over the wire: its unit of pressure is checked, not changed.

    Args:
        address: Address on the bus, 1 to 253; 253 is the maker's.
    """

    unverified = "meaning of NAK codes other than 160 and 180"
    head = reply_head = "@{address:03}"
    end = reply_end = ";FF"
    bytes_max = 64
    form = "ACK(.*)"
    refused = "NAK(.*)"
    refusals = {
        "160": "unrecognised message",
        "169": "invalid argument",
        "172": "value out of range",
        "175": "? or ! is missing",
        "180": "protected or locked",
    }
    # 902B manual p. 12: what sets has a ! where a query has its ?; 254 and 255 are for all.
    write_grammar = (rb"@[0-9]{3}[^;]*![^;]*;FF",)
    proves = ("unit",)
    who = Who("MD?", model="(.*)")
    wants = Wants("model", "910", "model {!r} is not an MKS 910")

    pressure = Ascii(
        "PR4?",
        reads=_torr,
        sound_while=While("fault", (0.0,), "one of its sensors has failed"),
        unit="Torr",
        doc="Measure the absolute pressure, both sensors combined, four digits.",
        source="910 manual p. 24, PR4",
    )
    fault = Ascii(
        "T?",
        reads=among({"O": 0.0, "M": 1.0, "Z": 1.0}),  # ok, MicroPirani failure, piezo failure
        shows=CONTACT,
        doc="Measure whether a sensor has failed (1) or not (0).",
        source="910 manual p. 46, T",
        scan="status",
        every_s=10.0,
    )
    unit_is_torr = Ascii(
        "U?",
        reads=among({"TORR": 1.0}, "; this driver reads Torr, set it by U!TORR"),
        shows=CONTACT,
        doc="Measure whether the transducer speaks Torr (1); another unit is a device fault.",
        source="910 manual p. 46, U",
        scan="unit",
        every_s=60.0,
    )

    def __init__(self, *, address: int = 253) -> None:
        within("address", address, 1, 253, whole=True)
        self.address = address
        super().__init__()
