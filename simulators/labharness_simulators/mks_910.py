"""A simulated MKS 910 DualTrans transducer on its RS-485 line.

Written from the 910 DualTrans manual, pp. 24 and 46, and the 902B manual, pp. 12, 21 and 46. The
first questions of common clients (``DT?``, ``FV?``, ``HV?``, ``PN?``, ``TIM?``, ``TEM?``, ``GT?``,
``UT?``, ``SW?``: PyMeasure's ``mksinst``) get made-up answers.

Not simulated, and NAK160: relays (``SP``, ``SH``, ``SD``, ``EN``, ``SS``), calibration (``VAC``,
``ATM``), every ``!`` except ``U!``, analog output, ``PR5``, and the differential reading of the
piezo: ``PR1``, ``PR2`` and ``PR3`` all show the one absolute pressure.
"""

import random
import re
from typing import ClassVar

from labharness.instruments.simulation import LineFace, LoopEnvironment
from labharness_simulators.plant.gauges import Gauge

PER_TORR = {"TORR": 1.0, "MBAR": 1.333224, "PASCAL": 133.3224}
RANGE_TORR = (1e-5, 1500.0)
ANYONE = "254"  # every transducer obeys this address


class Simulator(LineFace):
    """One transducer: silent to other addresses, NAK160 to unknown messages.

    Attributes:
        status: ``O`` ok, ``M`` MicroPirani failure, ``Z`` piezo failure.
        unit: Unit of its pressure readings.
    """

    latency_s = 0.006
    end = b";FF"
    panel: ClassVar = {"unit": tuple(PER_TORR)}

    def __init__(
        self, env: LoopEnvironment, part: Gauge, chance: random.Random, *, address: int = 253
    ) -> None:
        self._part = part
        self._address = f"{address:03d}"
        self.writes = re.compile(f".*@({self._address}|{ANYONE}).*!.*")
        self.refused = f"@{self._address}NAK180;FF"
        self.status = "O"
        self.unit = "TORR"

    def answer(self, line: str) -> str | None:
        """Answer one message between ``@`` and ``;FF``."""
        _, at, message = line.rpartition("@")
        if not at or message[:3] not in (self._address, ANYONE):
            return None
        return f"@{self._address}{self._reply(message[3:])};FF"

    def _reply(self, message: str) -> str:
        if message in ("PR1?", "PR2?", "PR3?"):
            return "ACK" + self._number(2)
        if message == "PR4?":
            return "ACK" + self._number(3)
        if message.startswith("U!"):
            if message[2:] not in PER_TORR:
                return "NAK169"
            self.unit = message[2:]
            return "ACK" + self.unit
        said = {
            "T?": self.status,
            "U?": self.unit,
            "MD?": "910",
            "MF?": "MKS",
            "SN?": "0000001234",
            "DT?": "DUALTRANS",
            "PN?": "910-11",
            "FV?": "1.16",
            "HV?": "A",
            "GT?": "NITROGEN",
            "UT?": "SIM",
            "SW?": "ON",
            "TIM?": "8760",
            "TEM?": "2.50E+1",
            "BR?": "9600",
            "AD?": self._address,
        }
        return "ACK" + said[message] if message in said else "NAK160"

    def _number(self, digits: int) -> str:
        low, high = RANGE_TORR
        pressure_torr = min(max(self._part.pressure_torr, low), high)
        mantissa, exponent = f"{pressure_torr * PER_TORR[self.unit]:.{digits}E}".split("E")
        return f"{mantissa}E{int(exponent):+d}"
