"""A simulated Cobolt laser on its serial line.

Written from the command lists of Cobolt AB's own Micro-Manager adapter (``CoboltOfficial``:
``ilk?``, ``gom?``, ``@cobas?``, ``@cobasdr``, ``@cobasks?``, ``cp``, and ``i?`` as the drive
current) and of python-microscope 0.7.0 (``lights/cobolt.py``). The fault numbers, the drive current
while lit and the error text are background knowledge.

Not simulated, and refused as an illegal command: constant current (``ci``, ``slc``), modulation
(``em``, ``gam?``, ``sdmes``, ``sames``, ``salis``), limits of the power (``slmp``), temperatures,
and several lines in one head. The warm-up takes no time, a fault clears itself, and the key is on.
"""

import random
import re
from collections.abc import Callable, Mapping

from labharness.instruments.simulation import LineFace, LoopEnvironment
from labharness_simulators.plant.optics import Laser

ILLEGAL = "Syntax error: illegal command"
FAULT_INTERLOCK = 3
OFF, COMPLETED, FAULT = 0, 4, 5  # values of gom?
SERIAL, MODEL, FIRMWARE = "12345", "0532-04-01-0100-700", "9.001"
CURRENT_A = (1.2, 1.8)  # at no power and at full power, while lit


class Simulator(LineFace):
    """A laser with a remote interlock: it stays dark while the interlock is open.

    ``@cob1`` and ``@cob0`` run the autostart sequence; only its final state is simulated.
    """

    latency_s = 0.01
    writes = re.compile("l[01]|@cob[01]|c[fp]|@cobas(dr)? ?[01]|(@cobasp|p) ?[0-9.]+")
    refused = f"{ILLEGAL}\r\n"

    def __init__(
        self, env: LoopEnvironment, part: Laser, chance: random.Random, *, max_power_w: float = 0.1
    ) -> None:
        self._part = part
        self._max_power_w = max_power_w
        self._autostart = self._direct = 0
        self._asked = self._answers()

    def answer(self, line: str) -> str:
        """Answer one command; every reply ends with CR LF."""
        return f"{self._reply(line.strip())}\r\n"

    def _reply(self, command: str) -> str:
        part, asked = self._part, self._asked.get(command)
        if asked is not None:
            return asked()
        if command in ("l0", "l1", "@cob0", "@cob1"):
            part.on = command.endswith("1")
            return "OK"
        if power := re.fullmatch(r"(?:@cobasp|p) ?([0-9]*\.?[0-9]+)", command):
            if float(power[1]) > self._max_power_w:
                return ILLEGAL
            part.power_w = float(power[1])
            return "OK"
        if switch := re.fullmatch("@cobas(dr)? ?([01])", command):
            if switch[1]:
                self._direct = int(switch[2])
            else:
                self._autostart = int(switch[2])
            return "OK"
        if command in ("cf", "cp", "?"):
            return "OK"
        return ILLEGAL

    def _blocked(self) -> bool:
        return self._part.on and self._part.interlock_open

    def _mode(self) -> int:
        if self._blocked():
            return FAULT
        return COMPLETED if self._part.on else OFF

    def _current_a(self) -> float:
        lit_share = self._part.output_w / self._max_power_w
        least_a, most_a = CURRENT_A
        return least_a + lit_share * (most_a - least_a) if lit_share else 0.0

    def _answers(self) -> Mapping[str, Callable[[], str]]:
        part, most_mw = self._part, f"{1000 * self._max_power_w:.1f}"
        return {
            "l?": lambda: f"{int(part.on)}",
            "p?": lambda: f"{part.power_w:.6f}",
            "pa?": lambda: f"{part.output_w:.6f}",
            "i?": lambda: f"{self._current_a():.3f}",
            "ilk?": lambda: f"{int(part.interlock_open)}",
            "f?": lambda: f"{FAULT_INTERLOCK if self._blocked() else 0}",
            "gom?": lambda: f"{self._mode()}",
            "hrs?": lambda: f"{part.hours:.2f}",
            "sn?": lambda: SERIAL,
            "gsn?": lambda: SERIAL,
            "glm?": lambda: MODEL,
            "gfv?": lambda: FIRMWARE,
            "ver?": lambda: FIRMWARE,
            "gmlp?": lambda: most_mw,
            "glmp?": lambda: most_mw,
            "@cobas?": lambda: f"{self._autostart}",
            "@cobasdr?": lambda: f"{self._direct}",
            "@cobasks?": lambda: "1",
        }
