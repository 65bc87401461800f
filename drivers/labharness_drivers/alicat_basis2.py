"""Alicat BASIS 2 mass flow controller on Modbus RTU.

Source: Alicat DOC-MANUAL-BASIS2 revision 4 (May 2025), pages 10 to 28.
Verified: simulator only; never on hardware. The map is the maker's; that register numbers go on
the wire unshifted, and that the setpoint in use is scaled as the flow, is a published third-party
driver's (N3b3x/hf-alicat-basis2-driver).
"""

from typing import ClassVar

from labharness.core.vocabulary import BadReply, Request
from labharness.instruments.driver import (
    Adds,
    Channel,
    Dark,
    Identity,
    Off,
    Query,
    Scan,
    While,
    fault,
)
from labharness.instruments.driver.modbus import ModbusDriver, Register

__all__ = ["AlicatBasis2"]

MODEL = "Alicat BASIS 2"
INT16_MAX = 32_767
OVER_RANGE = 1.025  # page 12: flow and setpoint reach 102.5 % of full scale
FLOW_SHARE = 0.02  # of full scale: what a meter may read at rest, ten times its zero error
FULL_SCALE_STEP = 0.001  # registers 35 and 36, as the setpoint (2053) has it: read off no page
WATCHDOG_MS_MAX = 5000  # page 19, register 514
GASES = ("Air", "Ar", "CO2", "N2", "O2", "N2O", "H2", "He", "CH4")  # register 2100


class AlicatBasis2(ModbusDriver):
    """Controls the mass flow of one gas.

    Its watchdog shuts the valve when Modbus falls silent, but only while ``watchdog_ms`` is not
    0, ``setpoint_source`` is 2 and the setpoint comes by Modbus. The lab file's ``prepare``
    writes both; only a ``watchdog_ms`` stated here as well declares the setpoint safe.

    Args:
        unit: Modbus address.
        gas: Number of the gas it must be set to (1 Ar, 3 N2, 6 H2; not the numbers of the MC).
        full_scale_sccm: Highest setpoint that is sent.
        decimals: Factory decimal places of the flow on the wire.
        watchdog_ms: Communications watchdog that ``prepare`` sets, in ms; 0 when it sets none.
    """

    baud: ClassVar[int] = 38_400
    unverified: ClassVar[str] = (
        "register numbers unshifted on the wire and the scale of register 2106 (third-party "
        "driver); the scale of registers 35 and 36; the default Modbus address is not in the "
        "manual pages read"
    )
    proves: ClassVar[tuple[str, ...]] = ("gas", "full_scale")
    settle_s = 0.002  # it acts only after 3.5 characters of silence; 0.9 ms at 38400 baud

    def __init__(
        self,
        *,
        unit: int = 1,
        gas: int = 1,
        full_scale_sccm: float = 100.0,
        decimals: int = 2,
        watchdog_ms: int = 0,
    ) -> None:
        super().__init__(unit=unit)
        if not 0 <= gas < len(GASES):
            raise ValueError(f"gas {gas} is not within 0 to {len(GASES) - 1}")
        if not 0 <= watchdog_ms <= WATCHDOG_MS_MAX:
            raise ValueError(f"watchdog_ms {watchdog_ms} is not within 0 to {WATCHDOG_MS_MAX} ms")
        if not 0 <= decimals <= 4:
            raise ValueError(f"decimals {decimals} is not within 0 to 4")
        step_sccm = 10.0**-decimals
        if not 0 < full_scale_sccm * OVER_RANGE <= INT16_MAX * step_sccm:
            raise ValueError(
                f"full_scale_sccm {full_scale_sccm} with {decimals} decimals does not fit 16 bits"
            )
        self.gas = gas
        self.full_scale_sccm = full_scale_sccm
        self.channels = _channels(step_sccm, watchdog_ms)
        self.off = (
            Off(
                adds=Adds.GAS,
                gas=GASES[gas],
                steps=(("setpoint", 0.0),),
                source="registers 2053-2054",
                drives=("setpoint",),
                dark=Dark(channel="flow", at_most=FLOW_SHARE * full_scale_sccm, within_s=5.0),
            ),
        )
        flow = {
            "mass_over_range": Register(2101, bit=0),
            "temperature_over_range": Register(2101, bit=1),
            "total_over_range": Register(2101, bit=2),
            "valve_held": Register(2101, bit=3),
            "gas_temperature": Register(2102, 0.01, signed=True),
            "flow": Register(2103, step_sccm, signed=True),
            "setpoint_active": Register(2106, step_sccm, signed=True),
            "valve_drive": Register(2107, 0.01),
        }
        self._active = flow["setpoint_active"]
        self._setup = {"watchdog_ms": Register(514), "setpoint_source": Register(516)}
        self._gas_words = self.words_of("gas", 1)
        self._scans = (
            self.block("flow", 2101, 7, flow),
            self.block("setup", 514, 3, self._setup),
            Scan("gas", self.read_registers(2100, 1), ("gas",), self._gas, period_s=30.0),
        )
        self._identity_words = self.words_of("identity", 7)
        self._scale_words = self.words_of("full_scale", 2)

    def scans(self) -> tuple[Scan, ...]:
        """Return the measurements and the set-up every second, the gas every 30 s."""
        return self._scans

    def queries(self) -> tuple[Query, ...]:
        """Return the frame that reads the full scale in sccm (35 and 36)."""
        return (Query("full_scale", self.read_registers(35, 2), self._full_scale),)

    def identify(self) -> Query:
        """Read firmware (25) and serial number (26 to 31) in one frame."""
        return Query("identity", self.read_registers(25, 7), self._identity)

    def expects(self, identity: Identity) -> str:
        """Want a serial number: a meter or controller that was never set up has none.

        Its firmware is not judged: no source says which is too old.
        """
        return "" if identity.serial else f"{MODEL} at unit {self.unit} tells no serial number"

    def write(self, channel: str, value: float) -> tuple[Request, ...]:
        """Return the one frame that sets a channel.

        The instrument would clip what is out of range and still echo it, so it is never asked to.
        """
        spec = self.settable(channel)
        if channel == "setpoint":
            if not 0 <= value <= self.full_scale_sccm:
                raise ValueError(
                    f"setpoint {value} sccm is not within 0 to {self.full_scale_sccm} sccm"
                )
            words = Register(2053, 0.001, signed=True, size=2).encode(value)
            return (self.write_registers(2053, words),)
        high = WATCHDOG_MS_MAX if channel == "watchdog_ms" else 2
        if not (0 <= value <= high and value == int(value)):
            raise ValueError(f"{channel} {value} {spec.unit} is no whole number from 0 to {high}")
        return (self.write_register(self._setup[channel].address, int(value)),)

    def shown(self, channel: str, value: float) -> Request | None:
        """Read the register that is in use: 2106 for the setpoint, in steps of its own."""
        register = self._setup.get(channel, self._active)
        return self.shows_word(register.address, round(value / register.scale) & 0xFFFF)

    def _gas(self, reply: bytes) -> tuple[float, ...]:
        (gas,) = self._gas_words(reply)
        if gas != self.gas:
            name = GASES[gas] if gas < len(GASES) else "unknown"
            raise fault("gas", f"{gas} ({name}); the lab file says {self.gas} ({GASES[self.gas]})")
        return (float(gas),)

    def _full_scale(self, reply: bytes) -> float:
        high, low = self._scale_words(reply)
        found = ((high << 16) + low) * FULL_SCALE_STEP
        if abs(found - self.full_scale_sccm) > FULL_SCALE_STEP:
            raise fault(
                "full_scale", f"{found:g} sccm; the lab file says {self.full_scale_sccm:g} sccm"
            )
        return found

    def _identity(self, reply: bytes) -> Identity:
        words = self._identity_words(reply)
        serial = b"".join(word.to_bytes(2, "big") for word in words[1:]).strip(b"\0 ")
        if not (serial.isascii() and serial.decode("latin-1").isprintable()):
            raise BadReply(f"identity: serial number {serial!r} is no text")
        firmware = f"{words[0] >> 8}.{words[0] >> 4 & 0xF}.{words[0] & 0xF}"
        return Identity(MODEL, firmware, serial.decode("ascii"))


def _channels(step_sccm: float, watchdog_ms: int) -> dict[str, Channel]:
    return {
        "flow": Channel(unit="sccm", doc="Measure the mass flow.", source="register 2103"),
        "gas_temperature": Channel(
            unit="degC", doc="Measure the temperature of the gas.", source="register 2102"
        ),
        "valve_drive": Channel(
            unit="%", doc="Measure how far the valve is driven.", source="register 2107"
        ),
        "setpoint_active": Channel(
            unit="sccm", doc="Measure the setpoint in use.", source="register 2106"
        ),
        "mass_over_range": Channel(
            unit="", doc="Measure whether the flow is over range (MOV).", source="register 2101 b0"
        ),
        "temperature_over_range": Channel(
            unit="", doc="Measure whether the gas is too hot (TOV).", source="register 2101 b1"
        ),
        "total_over_range": Channel(
            unit="", doc="Measure whether the total has run over (OVR).", source="register 2101 b2"
        ),
        "valve_held": Channel(
            unit="", doc="Measure whether the valve is held still.", source="register 2101 b3"
        ),
        "gas": Channel(
            unit="", doc="Measure which gas it is set to, by number.", source="register 2100"
        ),
        "setpoint": Channel(
            unit="sccm",
            doc="Control the mass flow.",
            source="registers 2053-2054",
            settable=True,
            readback="setpoint_active",
            resolution=step_sccm,
            own=(0.0,) if watchdog_ms else (),  # page 19: the watchdog sets it to 0
            on_comm_loss=f"safe({watchdog_ms / 1000:g})" if watchdog_ms else "hold",
            acts_while=While("setpoint_source", (1.0, 2.0), "its setpoint comes from its plug"),
        ),
        "watchdog_ms": Channel(
            unit="ms",
            doc="Control after how much silence the valve shuts; 0 is never.",
            source="register 514, page 19",
            settable=True,
            readback="watchdog_ms",
        ),
        "setpoint_source": Channel(
            unit="",
            doc="Control where the setpoint comes from: 0 analog, 1 digital saved, 2 unsaved.",
            source="register 516",
            settable=True,
            readback="setpoint_source",
        ),
    }
