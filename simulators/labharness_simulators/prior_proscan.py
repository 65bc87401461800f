"""A simulated Prior ProScan III controller with a stage, as its serial line sees it.

Written from the ProScan III manual 1.12, section 4.1, and published drivers; the motion bits are
background knowledge.
"""

import math
import random
import re

from labharness.simulation import LineFace, LoopEnvironment
from labharness_simulators.plant.stage import Stage

__all__ = ["Simulator"]

LATENCY_S = 0.01
TICKS_PER_S = 1e6
NOT_IDLE, NOT_UNDERSTOOD, NOT_FOUND = "E,2", "E,4", "E,5"
INFORMATION = (
    "PROSCAN INFORMATION",
    "DSP_1 IS 4 AXIS STEPPER VERSION 1.3",
    "DRIVE CHIPS 1111",
    "JOYSTICK ACTIVE",
    "STAGE = H101A",
    "FOCUS = NONE",
    "END",
)


class Simulator(LineFace):
    """A controller whose ``R`` comes when the stage has arrived, and not before.

    A move that is asked while another runs is refused (``E,2``); the real queue of 100 moves is not
    modelled. The delay of ``R`` is this reply's ``latency_s``.
    """

    writes = re.compile("G.*")
    refused = f"{NOT_IDLE}\r"

    def __init__(
        self,
        env: LoopEnvironment,
        part: Stage,
        chance: random.Random,
        *,
        steps_per_um: float = 1.0,
    ) -> None:
        self._env = env
        self._part = part
        self._steps_per_um = steps_per_um

    def answer(self, line: str) -> str:
        """Answer one command; words are parted by comma, blank, tab, semicolon or colon."""
        self.latency_s = LATENCY_S
        name, *words = re.split(r"[, \t;:]+", line.strip())
        part = self._part
        if name == "P" and not words:
            return ",".join([str(round(um * self._steps_per_um)) for um in part.position_um]) + "\r"
        if name == "$":
            return "3\r" if part.moving else "0\r"
        if name == "?":
            return "\r".join(INFORMATION) + "\r"
        if name not in ("G", "GX", "GY"):
            return NOT_FOUND + "\r"
        return self._move(name, words) + "\r"

    def _move(self, name: str, words: list[str]) -> str:
        wanted = (2, 3) if name == "G" else (1,)
        if len(words) not in wanted or not all(re.fullmatch("-?[0-9]{1,10}", w) for w in words):
            return NOT_UNDERSTOOD
        if self._part.moving:
            return NOT_IDLE
        target = list(self._part.position_um)
        first = {"G": 0, "GX": 0, "GY": 1}[name]
        for at, word in enumerate(words, first):
            target[at] = int(word) / self._steps_per_um
        travel_s = math.dist(target, self._part.position_um) / self._part.SPEED_UM_PER_S
        arrival = self._env.seconds(travel_s)
        self._advance()
        self._part.move_to(*target)
        arrival.callbacks.append(lambda _: self._advance())
        self.latency_s = travel_s + LATENCY_S
        return "R"

    def _advance(self) -> None:
        self._part.advance_to(self._env.now / TICKS_PER_S)
