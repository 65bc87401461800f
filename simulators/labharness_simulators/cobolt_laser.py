"""A simulated Cobolt laser, as its serial line sees it.

Written from the command list of python-microscope 0.7.0 (``lights/cobolt.py``); the interlock
query, the fault numbers and the words of the error are background knowledge.
"""

import random
import re

from labharness.simulation import LineFace, LoopEnvironment
from labharness_simulators.plant.optics import Laser

__all__ = ["Simulator"]

ILLEGAL = "Syntax error: illegal command"
FAULT_INTERLOCK = 3


class Simulator(LineFace):
    """A laser with a remote interlock: commanded on with the interlock open, it stays dark.

    The open interlock can be told only from the beam, so an idle laser reports it closed.
    """

    latency_s = 0.01
    writes = re.compile("l[01]|(@cobasp|p) [0-9.]+")
    refused = f"{ILLEGAL}\r\n"

    def __init__(
        self, env: LoopEnvironment, part: Laser, chance: random.Random, *, max_power_w: float = 0.1
    ) -> None:
        self._part = part
        self._max_power_w = max_power_w

    def answer(self, line: str) -> str:
        """Answer one command; every reply ends with CR LF."""
        return f"{self._reply(line.strip())}\r\n"

    def _reply(self, command: str) -> str:
        part = self._part
        if command in ("l0", "l1"):
            part.on = command == "l1"
            return "OK"
        if power := re.fullmatch(r"(?:@cobasp|p) ([0-9]*\.?[0-9]+)", command):
            if float(power[1]) > self._max_power_w:
                return ILLEGAL
            part.power_w = float(power[1])
            return "OK"
        if command in ("cf", "@cob0", "@cob1", "@cobas 0", "@cobas 1"):
            return "OK"
        blocked = part.on and part.power_w > 0.0 and part.output_w == 0.0
        said = {
            "l?": f"{int(part.on)}",
            "p?": f"{part.power_w:.6f}",
            "pa?": f"{part.output_w:.6f}",
            "i?": f"{int(blocked)}",
            "f?": f"{FAULT_INTERLOCK if blocked else 0}",
            "hrs?": f"{part.hours:.2f}",
            "sn?": "12345",
            "gmlp?": f"{1000 * self._max_power_w:.1f}",
        }
        return said.get(command, ILLEGAL)
