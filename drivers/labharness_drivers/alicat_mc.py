"""Alicat MC, MCS and M series mass flow controller, legacy ASCII protocol.

Source: Alicat MC-series operating manual, serial commands, pp. 36-37; frames captured from an
MC-500SCCM-D with firmware 10v20 (GraysonBellamy/alicatlib, tests/fixtures).
Verified: simulator and captured frames only; never on hardware. The poll frame, the identity lines
M04 and M09 and the status tokens are from captures; the float setpoint is the manual's.
"""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar

from labharness.core.vocabulary import BadReply, DeviceFault, Lines, Request
from labharness.instruments.driver import (
    Adds,
    Channel,
    Dark,
    Driver,
    Identity,
    Off,
    Query,
    Scan,
    decimal,
    fault,
    kept,
    line_request,
)

__all__ = ["AlicatMc"]

TIMEOUT_S = 0.3
NO_FAULT = frozenset({b"HLD", b"LCK"})  # valve held, display locked: wanted states, not errors
MANUAL = "MC-series manual p. 36"
FLOW_SHARE = 0.02  # of full scale: what a meter may read at rest, ten times its zero error
OLDEST_FIRMWARE = (5, 12)  # the oldest of which a data frame is known: a capture of 5v12
_FIRMWARE = re.compile(r"([0-9]{1,3})v([0-9]{1,3})")
_NUMBER = rb"[ \t]+([+-]?[0-9]{1,8}(?:\.[0-9]{1,8})?)"
_MODEL = re.compile(r"-([0-9.]+)(SCCM|SLPM)")


class AlicatMc(Driver):
    """Measures and controls the mass flow of one gas.

    It knows no communications watchdog: when nobody talks to it, the gas goes on flowing. A unit
    whose setpoint source is analog ignores serial setpoints and answers as if nothing were wrong;
    only the read-back shows it.

    Args:
        unit: Letter of the unit on its bus, A to Z.
        gas: Short name of the gas that must be selected in the unit (``Ar``, ``N2``, ``H2``).
        full_scale_sccm: Full scale of the unit, sccm.
        decimals: Decimal places of the flow columns; a setpoint is sent with as many.
    """

    baud: ClassVar[int] = 19200
    proves: ClassVar[tuple[str, ...]] = ("frame",)
    unverified: ClassVar[str] = (
        "which status tokens besides HLD and LCK are harmless: all others count as a fault"
    )

    def __init__(self, *, unit: str, gas: str, full_scale_sccm: float, decimals: int = 2) -> None:
        if not re.fullmatch("[A-Z]", str(unit)):
            raise ValueError(f"unit {unit!r} is not a letter A to Z")
        if not re.fullmatch("[A-Za-z0-9-]{1,6}", str(gas)):
            raise ValueError(f"gas {gas!r} is not a short name of 1 to 6 letters (Ar, N2, H2)")
        if not 0 < full_scale_sccm <= 1e6:
            raise ValueError(f"full_scale_sccm {full_scale_sccm!r} is not within 0 to 1e6 sccm")
        if decimals not in (0, 1, 2, 3, 4):
            raise ValueError(f"decimals {decimals!r} is not 0 to 4")
        self.unit, self.gas = unit, gas
        self.full_scale_sccm, self.decimals = float(full_scale_sccm), decimals
        self.channels = _channels(10.0**-decimals)
        self.off = (
            Off(
                adds=Adds.GAS,
                gas=gas,
                steps=(("setpoint", 0.0),),
                source=MANUAL,
                drives=("setpoint",),
                dark=Dark(channel="flow", at_most=FLOW_SHARE * self.full_scale_sccm, within_s=5.0),
            ),
        )
        # The bare letter polls and ?? asks. Whatever else is said to a unit, or to all of them (*),
        # may set, tare (AV), hold the valve (AHC) or select a gas (AGS); letters of either case.
        letter = f"[{unit}{unit.lower()}*@]".encode()
        self.write_grammar = (letter + rb"(?!\?\?)[^\r]+\r",)
        self._frame = re.compile(
            rb"%b%b[ \t]+([A-Za-z0-9-]{1,6})((?:[ \t]+[A-Z0-9]{3}){0,16})[ \t]*\r"
            % (unit.encode(), 5 * _NUMBER)
        )
        self._gas = gas.encode()
        poll = line_request(unit, timeout_s=TIMEOUT_S)
        names = tuple(self.channels)
        self._scans = (Scan("frame", poll, names, self._decode),)
        lines = Lines(10, b"\r", prefix=unit.encode())
        self._identity = Query(
            "identity", Request(f"{unit}??M*\r".encode(), lines, 1.0), self._identify
        )

    def scans(self) -> tuple[Scan, ...]:
        """One poll line reads everything."""
        return self._scans

    def identify(self) -> Query:
        """Ask for the manufacturer's ten lines."""
        return self._identity

    def expects(self, identity: Identity) -> str:
        """Refuse another instrument, older firmware, and another full scale than the lab file's.

        Firmware that does not say its number is not judged.
        """
        if not identity.model.startswith("MC"):
            return f"model {identity.model!r} is no MC or MCS mass flow controller"
        numbers = _FIRMWARE.match(identity.firmware)
        known = numbers is not None and (int(numbers[1]), int(numbers[2])) >= OLDEST_FIRMWARE
        if identity.firmware and not known:
            return (
                f"firmware {identity.firmware!r} is not 5v12 or newer, and of older ones no frame "
                "is known"
            )
        found = _MODEL.search(identity.model)
        if found is None:
            return ""
        stated_sccm = float(found[1]) * (1000.0 if found[2] == "SLPM" else 1.0)
        if stated_sccm == self.full_scale_sccm:
            return ""
        return (
            f"model {identity.model!r} has full scale {stated_sccm:g} sccm, "
            f"the lab file says {self.full_scale_sccm:g} sccm"
        )

    def write(self, channel: str, value: float) -> tuple[Request, ...]:
        """Set the flow; between two display steps it goes to the nearer one, but never to none."""
        self.settable(channel)
        if not 0 <= value <= self.full_scale_sccm:
            raise ValueError(
                f"{channel}: asked {value} sccm, allowed 0 to {self.full_scale_sccm:g} sccm "
                f"(full scale of unit {self.unit})"
            )
        text = f"{abs(value):.{self.decimals}f}"  # abs: -0.0 is zero too
        kept(f"{channel} in sccm", value, float(text), 10.0**-self.decimals)
        frame = f"{self.unit}S {text}"
        return (line_request(frame, timeout_s=TIMEOUT_S, obeyed=self._shows(value)),)

    def shown(self, channel: str, value: float) -> Request | None:
        """Poll: the frame's setpoint column shows it."""
        return replace(self._scans[0].request, obeyed=self._shows(value))

    def _shows(self, setpoint_sccm: float) -> bytes:
        """Return the regular expression of a data frame with this setpoint, of whatever gas."""
        setpoint = rb"[ \t]+" + decimal(setpoint_sccm, self.decimals)
        return self.unit.encode() + 4 * _NUMBER + setpoint + rb"[ \t]+[A-Za-z0-9-].*\r"

    def accept(self, channel: str, reply: bytes) -> None:
        """A setpoint is answered with a data frame."""
        self._decode(reply)

    def _decode(self, reply: bytes) -> tuple[float, ...]:
        found = self._frame.fullmatch(reply)
        if found is None:
            if reply.removeprefix(self.unit.encode()).strip() == b"?":
                raise fault(f"unit {self.unit}", "? (it does not take this command or value)")
            raise BadReply(f"{reply[:80]!r} is no data frame of unit {self.unit}")
        pressure, temperature, volumetric, mass, setpoint, gas, tokens = found.groups()
        if gas != self._gas:
            raise DeviceFault(
                f"unit {self.unit} is set to gas {gas.decode()}, the lab file says {self.gas}"
            )
        status = 1.0 if tokens and not NO_FAULT.issuperset(tokens.split()) else 0.0
        return (
            float(pressure),
            float(temperature),
            float(volumetric),
            float(mass),
            float(setpoint),
            status,
        )

    def _identify(self, reply: bytes) -> Identity:
        rows: dict[str, str] = {}
        for line in reply.decode("ascii", "replace").split("\r"):
            row = re.fullmatch(rf"{self.unit}\s+M\d\d\s+(.*)", line)
            for label in ("Model Number", "Serial Number", "Software Revision"):
                if row and row[1].startswith(label):
                    rows[label] = row[1].removeprefix(label).strip()
        if "Model Number" not in rows:
            raise BadReply(f"unit {self.unit}: no model number in {reply[:80]!r}")
        return Identity(
            rows["Model Number"], rows.get("Software Revision", ""), rows.get("Serial Number", "")
        )


def _channels(step_sccm: float) -> Mapping[str, Channel]:
    frame = "MC-500SCCM-D capture, ??D* columns"
    return {
        "pressure": Channel(unit="psia", doc="Measure the absolute gas pressure.", source=frame),
        "gas_temperature": Channel(unit="degC", doc="Measure the gas temperature.", source=frame),
        "volumetric_flow": Channel(
            unit="ccm", doc="Measure the flow at the gas's own pressure and heat.", source=frame
        ),
        "flow": Channel(unit="sccm", doc="Measure the mass flow.", source=frame),
        "setpoint": Channel(
            unit="sccm",
            doc="Control the mass flow.",
            source=MANUAL,
            settable=True,
            readback="setpoint",
            resolution=step_sccm,
        ),
        "status": Channel(
            unit="", doc="Measure whether any error token stands in the frame.", source=MANUAL
        ),
    }
