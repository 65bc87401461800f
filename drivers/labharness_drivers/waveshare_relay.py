"""Waveshare Modbus RTU relay board with eight relays and eight digital inputs.

Source: Waveshare wiki, "Modbus RTU Relay", as quoted in a published register map
(nobrega8/mbmap-library, maps/waveshare/modbus-rtu-relay.mbmap.json).
Verified: simulator only; never on hardware. All of it is second-hand; that function 02 reads the
inputs and that register 8000h holds the version is background knowledge.
"""

from collections.abc import Sequence

from labharness.instruments.driver import Identity, Wants
from labharness.instruments.driver.modbus import Coil, Input, ModbusDriver, ModbusRow, ReadBlock

WAYS = 8  # relays, and inputs, on the board
RELAYS = tuple([f"relay_{number}" for number in range(1, WAYS + 1)])
INPUTS = tuple([f"input_{number}" for number in range(1, WAYS + 1)])


class WaveshareRelay(ModbusDriver):
    """Switches valves and contactors, and reads contacts.

    The board has no watchdog: a relay stays as it was last switched.

    Args:
        unit: Modbus address.
        relays: Names of relays 1, 2, ... in order, at most eight.
        inputs: Names of inputs 1, 2, ... in order, at most eight.
    """

    unverified = (
        "the whole register map (third-party map); inputs by function 02 and the version at 8000h "
        "(background knowledge)"
    )
    off = ()  # what a relay feeds is the line's wiring
    settle_s = 0.004  # 3.5 characters of silence at 9600 baud
    blocks = (ReadBlock("relays", 0, WAYS, function=1), ReadBlock("inputs", 0, WAYS, function=2))
    who = ReadBlock("identity", 0x8000, 1)  # the version times 100; it has no other identity
    wants = Wants("firmware", r"^(?!0\.00$)", "it tells the version {!r}, which is none")

    def __init__(
        self, *, unit: int = 1, relays: Sequence[str] = RELAYS, inputs: Sequence[str] = INPUTS
    ) -> None:
        names = (*relays, *inputs)
        if isinstance(relays, str) or isinstance(inputs, str):
            raise ValueError(f"relays and inputs are lists of names, not {relays!r}, {inputs!r}")
        if max(len(relays), len(inputs)) > WAYS:
            raise ValueError(f"{len(relays)} relays and {len(inputs)} inputs; at most {WAYS} each")
        if len(set(names)) < len(names) or not all(name.isidentifier() for name in names):
            raise ValueError(f"names of relays and inputs must differ and be words: {names}")
        self.renamed = dict(zip(relays, RELAYS, strict=False))
        self.rows = {name: _relay(coil) for coil, name in enumerate(relays)}
        self.rows |= {name: _input(at) for at, name in enumerate(inputs)}
        super().__init__(unit=unit)

    def known(self, words: Sequence[int]) -> Identity:
        """Read the version."""
        return Identity("Waveshare Modbus RTU Relay 8", f"{words[0] / 100:.2f}")


def _relay(coil: int) -> ModbusRow:
    return Coil(
        coil,
        sets={0: "released", 1: "energised"},
        wired=True,
        doc=f"Control relay {coil + 1}: 0 released, 1 energised.",
        source=f"Waveshare wiki, coil {coil}",
    )


def _input(at: int) -> ModbusRow:
    return Input(
        at,
        doc=f"Measure digital input {at + 1}: 0 or 1.",
        source=f"Waveshare wiki, discrete input {at}",
    )
