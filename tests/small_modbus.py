"""A Modbus instrument of somebody else, with setpoints of every form that two words can have."""

from collections.abc import Sequence
from typing import Any

from labharness.instruments.driver import Identity, Wants
from labharness.instruments.driver.modbus import Holding, ModbusDriver, ReadBlock

BOUNDS: dict[str, Any] = {"sets": (0.0, 1200.0), "unit": "degC", "source": "page 9"}


class Oven(ModbusDriver):
    """An oven with registers of real numbers and of long integers, in both orders of words."""

    off = ()
    document = "the oven's manual, register {address}"
    who = ReadBlock("identity", 1, 1)
    wants = Wants("model", "^oven", "{!r} is no oven")

    high = Holding(2160, size=2, real=True, low_first=False, doc="Control it.", **BOUNDS)
    low = Holding(2162, size=2, real=True, low_first=True, doc="Control it.", **BOUNDS)
    long = Holding(2164, size=2, step=0.001, doc="Control it.", **BOUNDS)
    long_low = Holding(2166, size=2, step=0.001, low_first=True, doc="Control it.", **BOUNDS)

    def known(self, words: Sequence[int]) -> Identity:
        """Take what answers for the oven."""
        return Identity("oven")
