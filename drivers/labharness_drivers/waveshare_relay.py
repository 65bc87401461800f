"""Waveshare Modbus RTU relay board with eight relays and eight digital inputs.

Source: Waveshare wiki, "Modbus RTU Relay", as quoted in a published register map
(nobrega8/mbmap-library, maps/waveshare/modbus-rtu-relay.mbmap.json).
Verified: simulator only; never on hardware. All of it is second-hand; that function 02 reads the
inputs and that register 8000h holds the version is background knowledge.
"""

from collections.abc import Sequence
from typing import ClassVar

from labharness.core.vocabulary import Request
from labharness.instruments.driver import CONTACT, Channel, Identity, Query, Scan
from labharness.instruments.driver.modbus import ModbusDriver

__all__ = ["WaveshareRelay"]

WAYS = 8  # relays, and inputs, on the board
RELAYS = tuple([f"relay_{number}" for number in range(1, WAYS + 1)])
INPUTS = tuple([f"input_{number}" for number in range(1, WAYS + 1)])
VERSION = 0x8000  # holds the version times 100
MODEL = "Waveshare Modbus RTU Relay 8"


class WaveshareRelay(ModbusDriver):
    """Switches valves and contactors, and reads contacts.

    The board has no watchdog: a relay stays as it was last switched.

    Args:
        unit: Modbus address.
        relays: Names of relays 1, 2, ... in order, at most eight.
        inputs: Names of inputs 1, 2, ... in order, at most eight.
    """

    baud: ClassVar[int] = 9600
    unverified: ClassVar[str] = (
        "the whole register map (third-party map); inputs by function 02 and the version at 8000h "
        "(background knowledge)"
    )
    off = ()  # what a relay feeds is the line's wiring
    settle_s = 0.004  # 3.5 characters of silence at 9600 baud

    def __init__(
        self,
        *,
        unit: int = 1,
        relays: Sequence[str] = RELAYS,
        inputs: Sequence[str] = INPUTS,
    ) -> None:
        super().__init__(unit=unit)
        names = (*relays, *inputs)
        if isinstance(relays, str) or isinstance(inputs, str):
            raise ValueError(f"relays and inputs are lists of names, not {relays!r}, {inputs!r}")
        if max(len(relays), len(inputs)) > WAYS:
            raise ValueError(f"{len(relays)} relays and {len(inputs)} inputs; at most {WAYS} each")
        if len(set(names)) < len(names) or not all(name.isidentifier() for name in names):
            raise ValueError(f"names of relays and inputs must differ and be words: {names}")
        self._coils = {name: coil for coil, name in enumerate(relays)}
        self.renamed = dict(zip(relays, RELAYS, strict=False))
        self.channels = {
            **{name: _relay(number, name) for number, name in enumerate(relays, 1)},
            **{name: _input(number) for number, name in enumerate(inputs, 1)},
        }
        self._scans = (
            self._bits("relays", self.read_coils(0, WAYS), tuple(relays)),
            self._bits("inputs", self.read_inputs(0, WAYS), tuple(inputs)),
        )
        self._version_words = self.words_of("identity", 1)

    def scans(self) -> tuple[Scan, ...]:
        """Return all relays in one frame and all inputs in another."""
        return self._scans

    def identify(self) -> Query:
        """Read the version; the board has no other identity."""
        return Query("identity", self.read_registers(VERSION, 1), self._identity)

    def expects(self, identity: Identity) -> str:
        """Want a board that tells a version.

        Its firmware is not judged: no source says which is too old.
        """
        return "" if identity.firmware != "0.00" else f"{MODEL} at unit {self.unit}: no version"

    def write(self, channel: str, value: float) -> tuple[Request, ...]:
        """Return the one frame (function 05) that opens (0) or closes (1) a relay's contact."""
        self.settable(channel)
        if value not in (0, 1):
            raise ValueError(f"{channel} {value} is neither 0 (released) nor 1 (energised)")
        return (self.write_coil(self._coils[channel], value == 1),)

    def shown(self, channel: str, value: float) -> Request | None:
        """Read the one coil."""
        return self.shows_coil(self._coils[channel], value == 1)

    def _bits(self, name: str, request: Request, channels: tuple[str, ...]) -> Scan:
        bits = self.bits_of(name, WAYS)
        count = len(channels)

        def decode(reply: bytes) -> tuple[float, ...]:
            return tuple([float(bit) for bit in bits(reply)[:count]])

        return Scan(name, request, channels, decode)

    def _identity(self, reply: bytes) -> Identity:
        (version,) = self._version_words(reply)
        return Identity(MODEL, f"{version / 100:.2f}")


def _relay(number: int, name: str) -> Channel:
    return Channel(
        unit="",
        doc=f"Control relay {number}: 0 released, 1 energised.",
        source=f"Waveshare wiki, coil {number - 1}",
        settable=True,
        readback=name,
        wired=True,
        shows=CONTACT,
    )


def _input(number: int) -> Channel:
    return Channel(
        unit="",
        doc=f"Measure digital input {number}: 0 or 1.",
        source=f"Waveshare wiki, discrete input {number - 1}",
        shows=CONTACT,
    )
