"""MKS 910 DualTrans pressure transducer (MicroPirani and piezo), 900-series ASCII protocol.

Source: MKS 910 DualTrans manual, pp. 24 and 46 (queries); MKS 902B manual, pp. 12 and 46 (frame).
Verified: simulator only; never on hardware. NAK160 and NAK180 are the maker's; the meaning of the
other NAK codes is background knowledge.
"""

import re
from collections.abc import Callable, Mapping
from typing import ClassVar, TypeVar

from labharness.core.vocabulary import BadReply, Request, Until
from labharness.instruments.driver import CONTACT, Channel, Driver, Identity, Query, Scan, fault

__all__ = ["Mks910"]

T = TypeVar("T")

TIMEOUT_S = 0.3
END = b";FF"
_NUMBER = re.compile(r"[+-]?[0-9]{1,4}(\.[0-9]{1,6})?(E[+-]?[0-9]{1,2})?")
NAKS = {
    "160": "unrecognised message",
    "169": "invalid argument",
    "172": "value out of range",
    "175": "? or ! is missing",
    "180": "protected or locked",
}
STATUS = {"O": 0.0, "M": 1.0, "Z": 1.0}  # manual p. 46: ok, MicroPirani failure, piezo failure


class Mks910(Driver):
    """Measures absolute pressure from 1e-5 to 1500 Torr.

    Nothing is set over the wire: its unit of pressure is checked, not changed.

    Args:
        address: Address on the bus, 1 to 253; 253 is the maker's.
    """

    baud: ClassVar[int] = 9600
    proves: ClassVar[tuple[str, ...]] = ("unit",)
    unverified: ClassVar[str] = "meaning of NAK codes other than 160 and 180"
    # 902B manual p. 12: what sets has a ! where a query has its ?; 254 and 255 are for all.
    write_grammar = (rb"@[0-9]{3}[^;]*![^;]*;FF",)
    channels: Mapping[str, Channel] = {
        "pressure": Channel(
            unit="Torr",
            doc="Measure the absolute pressure, both sensors combined, four digits.",
            source="910 manual p. 24, PR4",
        ),
        "fault": Channel(
            unit="",
            doc="Measure whether a sensor has failed (1) or not (0).",
            source="910 manual p. 46, T",
            shows=CONTACT,
        ),
        "unit_is_torr": Channel(
            unit="",
            doc="Measure whether the transducer speaks Torr (1); another unit is a device fault.",
            source="910 manual p. 46, U",
            shows=CONTACT,
        ),
    }

    def __init__(self, *, address: int = 253) -> None:
        if not (isinstance(address, int) and 1 <= address <= 253):
            raise ValueError(f"address {address!r} is not within 1 to 253")
        self._head = f"@{address:03}".encode()
        pressure = self._said("pressure", "PR4?", _pressure_torr)
        status = self._said("fault", "T?", _status)
        unit = self._said("unit_is_torr", "U?", _unit)
        self._scans = (
            Scan("pressure", self._ask("PR4?"), ("pressure",), pressure),
            Scan("status", self._ask("T?"), ("fault",), status, period_s=10.0),
            Scan("unit", self._ask("U?"), ("unit_is_torr",), unit, period_s=60.0),
        )
        model = self._said("identity", "MD?", Identity)
        self._identity = Query("identity", self._ask("MD?"), model)

    def scans(self) -> tuple[Scan, ...]:
        """Pressure every second, status and unit seldom."""
        return self._scans

    def identify(self) -> Query:
        """Ask for the model."""
        return self._identity

    def expects(self, identity: Identity) -> str:
        """Refuse every model but the 910.

        Its firmware is not judged: it is not asked, because no source says which is too old.
        """
        return "" if "910" in identity.model else f"model {identity.model!r} is no MKS 910"

    def write(self, channel: str, value: float) -> tuple[Request, ...]:
        """Refuse: nothing here can be set."""
        raise ValueError(f"{channel!r} cannot be set; an mks_910 only measures")

    def _ask(self, query: str) -> Request:
        return Request(self._head + query.encode() + END, Until(END, self._head, 64), TIMEOUT_S)

    def _said(self, what: str, query: str, read: Callable[[str], T]) -> Callable[[bytes], T]:
        start = len(self._head)

        def decode(reply: bytes) -> T:
            if not (reply.startswith(self._head) and reply.endswith(END)):
                raise BadReply(f"{what}: {reply[:40]!r} is no reply of {self._head.decode()}")
            body = reply[start : -len(END)].decode("ascii", "replace")
            if body.startswith("NAK"):
                raise fault(what, f"{body} to {query} ({NAKS.get(body[3:], 'unknown')})")
            if not body.startswith("ACK"):
                raise BadReply(f"{what}: {body[:40]!r} is neither ACK nor NAK")
            return read(body[3:])

        return decode


def _pressure_torr(text: str) -> tuple[float, ...]:
    if not _NUMBER.fullmatch(text):
        raise fault("pressure", f"{text[:40]!r}, which is no number")
    return (float(text),)


def _status(text: str) -> tuple[float, ...]:
    if text not in STATUS:
        raise BadReply(f"fault: {text[:40]!r} is none of {', '.join(STATUS)}")
    return (STATUS[text],)


def _unit(text: str) -> tuple[float, ...]:
    if text != "TORR":
        raise fault("unit_is_torr", f"{text[:40]!r}; this driver reads Torr, set it by U!TORR")
    return (1.0,)
