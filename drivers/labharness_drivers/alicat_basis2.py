"""Alicat BASIS 2 mass flow controller on Modbus RTU.

Source: Alicat DOC-MANUAL-BASIS2 revision 4 (May 2025), pages 10 to 28.
Verified: simulator only; never on hardware. The map is the maker's; that register numbers go on
the wire unshifted, and that the setpoint in use is scaled as the flow, is a published third-party
driver's (N3b3x/hf-alicat-basis2-driver).
"""

from collections.abc import Sequence
from functools import partial

from labharness.core.vocabulary import BadReply
from labharness.instruments.driver import Identity, Wants, While, flowing, of, within
from labharness.instruments.driver.modbus import Holding, ModbusDriver, ReadBlock

MODEL = "Alicat BASIS 2"
INT16_MAX = 32_767
OVER_RANGE = 1.025  # page 12: flow and setpoint reach 102.5 % of full scale
FULL_SCALE_STEP = 0.001  # registers 35 and 36, as the setpoint (2053) has it: read off no page
WATCHDOG_MS_MAX = 5000  # page 19, register 514
GASES = ("Air", "Ar", "CO2", "N2", "O2", "N2O", "H2", "He", "CH4")  # register 2100
UNITS = ("SCCM", "NCCM", "SLPM", "NLPM")  # register 49; it has more
_flow = partial(Holding, step=of("step_sccm"), signed=True, unit="sccm")
_flag = partial(Holding, 2101)


class AlicatBasis2(ModbusDriver):
    """Controls the mass flow of one gas.

    Its watchdog shuts the valve when Modbus falls silent, but only while ``watchdog_ms`` is not
    0, ``setpoint_source`` is 2 and the setpoint comes by Modbus. The lab file's ``prepare``
    writes both; only a ``watchdog_ms`` stated here as well declares the setpoint safe. It
    would clip a value out of range and still echo it, so such a value is never sent.

    Args:
        unit: Modbus address.
        gas: Number of the gas it must be set to (1 Ar, 3 N2, 6 H2; not the numbers of the MC).
        full_scale_sccm: Highest setpoint that is sent.
        decimals: Factory decimal places of the flow on the wire.
        watchdog_ms: Communications watchdog that ``prepare`` sets, in ms; 0 when it sets none.
    """

    baud = 38_400
    unverified = (
        "register numbers unshifted on the wire and the scale of register 2106 (third-party "
        "driver); the scale of registers 35 and 36; the default Modbus address is not in the "
        "manual pages read"
    )
    proves = ("gas", "full_scale", "flow_unit")
    document = "register {address}"
    settle_s = 0.002  # it acts only after 3.5 characters of silence; 0.9 ms at 38400 baud
    blocks = (ReadBlock("flow", 2101, 7), ReadBlock("setup", 514, 3))
    who = ReadBlock("identity", 25, 7)  # firmware (25) and serial number (26 to 31)
    wants = Wants("serial", ".", f"{MODEL} tells no serial number")

    mass_over_range = _flag(bit=0, doc="Measure whether the flow is over range (MOV).")
    temperature_over_range = _flag(bit=1, doc="Measure whether the gas is too hot (TOV).")
    total_over_range = _flag(bit=2, doc="Measure whether the total has run over (OVR).")
    valve_held = _flag(bit=3, doc="Measure whether the valve is held still.")
    gas_temperature = Holding(
        2102, step=0.01, signed=True, unit="degC", doc="Measure the temperature of the gas."
    )
    flow = _flow(2103, doc="Measure the mass flow.")
    setpoint_active = _flow(2106, doc="Measure the setpoint in use.")
    valve_drive = Holding(2107, step=0.01, unit="%", doc="Measure how far the valve is driven.")
    gas = Holding(
        2100,
        names=GASES,
        must=of("gas_number"),
        every_s=30.0,
        doc="Measure which gas it is set to, by number.",
    )
    flow_unit = Holding(
        49,
        names=UNITS,
        must=0.0,
        otherwise="; this driver reads SCCM, set it at the instrument",
        hidden=True,
        every_s=60.0,
        doc="Measure which unit the flow is in, by number; another than SCCM is a device fault.",
    )
    full_scale = Holding(
        35,
        size=2,
        step=FULL_SCALE_STEP,
        must=of("full_scale_sccm"),
        resolution=FULL_SCALE_STEP,
        is_query=True,
        unit="sccm",
        doc="Measure its full scale.",
        source="registers 35 and 36",
    )
    setpoint = Holding(
        2053,
        size=2,
        step=0.001,
        signed=True,
        sets=(0.0, of("full_scale_sccm")),
        readback="setpoint_active",
        resolution=of("step_sccm"),
        own=of("watchdog_sets"),
        on_comm_loss=of("on_silence"),
        acts_while=While("setpoint_source", (1.0, 2.0), "its setpoint comes from its plug"),
        unit="sccm",
        doc="Control the mass flow.",
        source="registers 2053-2054",
    )
    watchdog_ms = Holding(
        514,
        sets=(0.0, WATCHDOG_MS_MAX),
        whole=True,
        unit="ms",
        doc="Control after how much silence the valve shuts; 0 is never.",
        source="register 514, page 19",
    )
    setpoint_source = Holding(
        516,
        sets=(0.0, 2.0),
        whole=True,
        doc="Control where the setpoint comes from: 0 analog, 1 digital saved, 2 unsaved.",
    )

    def __init__(
        self,
        *,
        unit: int = 1,
        gas: int = 1,
        full_scale_sccm: float = 100.0,
        decimals: int = 2,
        watchdog_ms: int = 0,
    ) -> None:
        within("gas", gas, 0, len(GASES) - 1)
        within("watchdog_ms", watchdog_ms, 0, WATCHDOG_MS_MAX)
        within("decimals", decimals, 0, 4)
        self.step_sccm = 10.0**-decimals
        if not 0 < full_scale_sccm * OVER_RANGE <= INT16_MAX * self.step_sccm:
            raise ValueError(
                f"full_scale_sccm {full_scale_sccm} with {decimals} decimals does not fit 16 bits"
            )
        self.gas_number, self.full_scale_sccm = gas, full_scale_sccm
        self.watchdog_sets = (0.0,) if watchdog_ms else ()  # page 19: the watchdog sets it to 0
        self.on_silence = f"safe({watchdog_ms / 1000:g})" if watchdog_ms else "hold"
        self.off = flowing(GASES[gas], full_scale_sccm, "registers 2053-2054")
        super().__init__(unit=unit)

    def known(self, words: Sequence[int]) -> Identity:
        """Read the firmware, and the serial number, which is text."""
        serial = b"".join(word.to_bytes(2, "big") for word in words[1:]).strip(b"\0 ")
        if not (serial.isascii() and serial.decode("latin-1").isprintable()):
            raise BadReply(f"identity: serial number {serial!r} is not a text")
        firmware = f"{words[0] >> 8}.{words[0] >> 4 & 0xF}.{words[0] & 0xF}"
        return Identity(MODEL, firmware, serial.decode("ascii"))
