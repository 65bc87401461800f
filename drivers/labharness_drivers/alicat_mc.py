"""Alicat MC, MCS and M series mass flow controller, legacy ASCII protocol.

Source: Alicat MC-series operating manual, serial commands, pp. 36-37; frames captured from an
MC-500SCCM-D with firmware 10v20 (GraysonBellamy/alicatlib, tests/fixtures).
Verified: simulator and captured frames only; never on hardware. The poll frame, the identity lines
M04 and M09 and the status tokens are from captures; the float setpoint is the manual's.
"""

import re

from labharness.core.vocabulary import DeviceFault
from labharness.instruments.driver import (
    Ascii,
    AsciiDriver,
    Identity,
    Several,
    Who,
    decimal,
    fault,
    flowing,
    of,
    within,
)

NO_FAULT = frozenset({"HLD", "LCK"})  # valve held, display locked: wanted states, not errors
MANUAL = "MC-series manual p. 36"
OLDEST_FIRMWARE = (5, 12)  # the oldest of which a data frame is known: a capture of 5v12
_FIRMWARE = re.compile(r"([0-9]{1,3})v([0-9]{1,3})")
_NUMBER = r"[ \t]+([+-]?[0-9]{1,8}(?:\.[0-9]{1,8})?)"
_UNIT = r"[ \t]+[0-9]+[ \t]+([^ \t]+)[ \t]*|[ \t]*[?][ \t]*"  # the latter by one that cannot tell
_MODEL = re.compile(r"-([0-9.]+)(SCCM|SLPM)")


def _unit_of(statistic: int, label: str) -> Ascii:
    """Return the row of the unit that a column is in: it can be changed at the display."""

    def reads(said: str, what: str) -> float:
        if said in ("", label):
            return 0.0
        raise fault(what, f"{said!r}; this driver reads {label!r}, set it at the display")

    return Ascii(
        Several(f"DCU {statistic}", _UNIT, every_s=60.0, name=f"unit_{statistic}"),
        reads=reads,
        hidden=True,
        doc=f"Measure whether statistic {statistic} is in {label}; another is a device fault.",
        source="MC-500SCCM-D capture, DCU",
    )


def _fault(tokens: str, what: str) -> float:
    return 0.0 if NO_FAULT.issuperset(tokens.split()) else 1.0


class AlicatMc(AsciiDriver):
    """Measures and controls the mass flow of one gas.

    It has no communications watchdog: when no frame comes, the gas goes on flowing. A unit
    whose setpoint source is analog ignores serial setpoints and answers as if nothing were wrong;
    only the read-back shows it.

    Args:
        unit: Letter of the unit on its bus, A to Z.
        gas: Short name of the gas that must be selected in the unit (``Ar``, ``N2``, ``H2``).
        full_scale_sccm: Full scale of the unit, sccm.
        decimals: Decimal places of the flow columns; a setpoint is sent with as many.
    """

    baud = 19200
    unverified = (
        "which status tokens besides HLD and LCK are harmless: all others count as a fault; units "
        "are asked by DCU, which older firmware refuses: its units are not checked"
    )
    head = reply_head = "{unit}"
    refusal_has_head = False
    refused = r"[ \t]*\?[ \t]*"
    proves = ("frame", "unit_2", "unit_3", "unit_4", "unit_5", "unit_37")
    document = "MC-500SCCM-D capture, ??D* columns"
    who = Who(
        "??M*",
        model=r"Model Number([^\r]*)",
        serial=r"Serial Number([^\r]*)",
        firmware=r"Software Revision([^\r]*)",
        lines=10,
        timeout_s=1.0,
    )

    frame = Several(
        "", 5 * _NUMBER + r"[ \t]+([A-Za-z0-9-]{1,6})((?:[ \t]+[A-Z0-9]{3}){0,16})[ \t]*"
    )
    pressure = Ascii(frame, unit="psia", doc="Measure the absolute gas pressure.")
    gas_temperature = Ascii(frame, unit="degC", doc="Measure the gas temperature.")
    volumetric_flow = Ascii(
        frame, unit="ccm", doc="Measure the flow at the gas's own pressure and heat."
    )
    flow = Ascii(frame, unit="sccm", doc="Measure the mass flow.")
    setpoint = Ascii(
        frame,
        sends="S {}",
        sets=(0.0, of("full_scale_sccm")),
        decimals=of("decimals"),
        says=of("column"),
        unit="sccm",
        doc="Control the mass flow.",
        source=MANUAL,
    )
    gas_set = Ascii(frame, reads=of("its_gas"), hidden=True, doc="Measure which gas is selected.")
    status = Ascii(
        frame,
        reads=_fault,
        doc="Measure whether any error token stands in the frame.",
        source=MANUAL,
    )

    pressure_unit = _unit_of(2, "PSIA")
    temperature_unit = _unit_of(3, "`C")
    volume_unit = _unit_of(4, "CCM")
    flow_unit = _unit_of(5, "SCCM")
    setpoint_unit = _unit_of(37, "SCCM")

    def __init__(self, *, unit: str, gas: str, full_scale_sccm: float, decimals: int = 2) -> None:
        if not re.fullmatch("[A-Z]", str(unit)):
            raise ValueError(f"unit {unit!r} is not a letter A to Z")
        if not re.fullmatch("[A-Za-z0-9-]{1,6}", str(gas)):
            raise ValueError(f"gas {gas!r} is not a short name of 1 to 6 letters (Ar, N2, H2)")
        within("full_scale_sccm", full_scale_sccm, 1e-4, 1e6)
        within("decimals", decimals, 0, 4, whole=True)
        self.unit, self.gas = unit, gas
        self.full_scale_sccm, self.decimals = float(full_scale_sccm), decimals
        self.off = flowing(gas, self.full_scale_sccm, MANUAL)
        # The bare letter polls, ?? asks, and DCU with one number asks for a unit. Whatever else is
        # said to a unit, or to all of them (*),
        # may set, tare (AV), hold the valve (AHC) or select a gas (AGS); letters of either case.
        letter = f"[{unit}{unit.lower()}*@]".encode()
        self.write_grammar = (letter + rb"(?!\?\?|DCU [0-9]+\r)[^\r]+\r",)
        super().__init__()

    def expects(self, identity: Identity) -> str:
        """Refuse another instrument, older firmware, and another full scale than the lab file's.

        Firmware that does not say its number is not judged.
        """
        if not identity.model.startswith("MC"):
            return f"model {identity.model!r} is not an MC or MCS mass flow controller"
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

    def said(self, what: str, reply: bytes, asked: str = "") -> str:
        """Return the text of a reply; firmware without DCU refuses it, and tells no units."""
        if asked.startswith("DCU") and reply.strip() == b"?":
            return "?"
        return super().said(what, reply, asked)

    def its_gas(self, gas: str, what: str) -> float:
        """Read the gas that is selected.

        Raises:
            DeviceFault: It is another than the lab file says.
        """
        if gas != self.gas:
            raise DeviceFault(f"unit {self.unit} is set to gas {gas}, the lab file says {self.gas}")
        return 0.0

    def column(self, value: float) -> bytes:
        """Return the regular expression of the setpoint's column."""
        return rb"[ \t]+" + decimal(value, self.decimals)

    def showing(self, row: Ascii, value: float) -> bytes:
        """Return the regular expression of a data frame with this setpoint, of whatever gas."""
        four = (4 * _NUMBER).encode()
        return self.unit.encode() + four + self.column(value) + rb"[ \t]+[A-Za-z0-9-].*\r"
