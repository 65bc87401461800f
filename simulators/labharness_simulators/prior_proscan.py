"""A simulated Prior ProScan III controller with a stage, on its serial line.

Written from the ProScan III manual 1.12 (section 4.1; page 43: ``R`` comes at the end of a move)
and published drivers (Micro-Manager, python-microscope); the motion bits, the lines of ``STAGE``
and the error numbers of each case are background knowledge.

Not simulated: compatibility mode (``COMP 1``), focus and filter wheels (``NONE`` is fitted), limit
switches (``SIS`` goes to 0, 0), joystick, patterns, ``M``, ``Z`` and the queue of 100 moves: a move
during another one is refused. ``SMS``, ``SAS`` and ``SCS`` are stored without effect. Unknown
commands get ``E,5``.
"""

import math
import random
import re

from labharness.instruments.simulation import LineFace, LoopEnvironment
from labharness_simulators.plant.stage import MicroscopeStage

LATENCY_S = 0.01
TICKS_PER_S = 1e6
NOT_IDLE, NOT_UNDERSTOOD, NOT_FOUND, OUT_OF_RANGE = "E,2", "E,4", "E,5", "E,8"
DONE = "0"
SHAPES = ("SMS", "SAS", "SCS")  # percent of the highest speed, acceleration and S-curve
INFORMATION = (
    "PROSCAN INFORMATION",
    "DSP_1 IS 4 AXIS STEPPER VERSION 1.3",
    "DRIVE CHIPS 1111",
    "JOYSTICK ACTIVE",
    "STAGE = H101A",
    "FOCUS = NONE",
    "END",
)
STAGE = (
    "STAGE = H101A",
    "TYPE = 1",
    "SIZE_X = 108 MM",
    "SIZE_Y = 71 MM",
    "MICROSTEPS/MICRON = 25",
    "LIMITS = NORMALLY CLOSED",
    "END",
)


class Simulator(LineFace):
    """A controller that answers ``R`` when the stage has arrived, and not before.

    The delay of ``R`` is set as this reply's ``latency_s``.
    """

    writes = re.compile("(G|SIS|[IK]$|COMP.|RES,.*,|S[MAC]S.).*", re.IGNORECASE)
    refused = f"{NOT_IDLE}\r"

    def __init__(
        self,
        env: LoopEnvironment,
        part: MicroscopeStage,
        chance: random.Random,
        *,
        steps_per_um: float = 1.0,
    ) -> None:
        self._env = env
        self._part = part
        self._steps_per_um = steps_per_um
        self._shapes = dict.fromkeys(SHAPES, 100)

    def answer(self, line: str) -> str:
        """Answer one command; comma, blank, tab, semicolon and colon separate its words."""
        self.latency_s = LATENCY_S
        name, *words = re.split(r"[, \t;:]+", line.strip().upper())
        if name in ("G", "GX", "GY", "GR", "SIS"):
            return self._move(name, words) + "\r"
        if name in ("I", "K") and not words:
            self._advance()
            self._part.stop()
            return "R\r"
        if name in SHAPES:
            return self._shape(name, words) + "\r"
        return self._report(name, words) + "\r"

    def _report(self, name: str, words: list[str]) -> str:
        x, y, z = (str(round(um * self._steps_per_um)) for um in self._part.position_um)
        asked = ",".join([name, *words])
        if asked == "COMP,1" or (name == "RES" and len(words) == 2):
            return OUT_OF_RANGE
        if name == "FILTER" and words in (["1"], ["2"], ["3"]):
            return f"FILTER_{words[0]} = NONE\rEND"
        said = {
            "P": f"{x},{y},{z}",
            "PS": f"{x},{y}",
            "PX": x,
            "PY": y,
            "PZ": z,
            "$": "3" if self._part.moving else "0",
            "?": "\r".join(INFORMATION),
            "STAGE": "\r".join(STAGE),
            "COMP": "0",
            "COMP,0": DONE,
            "RES,S": f"{1 / self._steps_per_um:g}",
            "RES,X": f"{1 / self._steps_per_um:g}",
            "RES,Y": f"{1 / self._steps_per_um:g}",
        }
        return said.get(asked, NOT_FOUND)

    def _shape(self, name: str, words: list[str]) -> str:
        if not words:
            return str(self._shapes[name])
        if len(words) != 1 or not words[0].isdecimal():
            return NOT_UNDERSTOOD
        if not 1 <= int(words[0]) <= 100:
            return OUT_OF_RANGE
        self._shapes[name] = int(words[0])
        return DONE

    def _move(self, name: str, words: list[str]) -> str:
        wanted = {"G": (2, 3), "GR": (2, 3), "SIS": (0,)}.get(name, (1,))
        if len(words) not in wanted or not all(re.fullmatch("-?[0-9]{1,10}", w) for w in words):
            return NOT_UNDERSTOOD
        self._advance()
        if self._part.moving:
            return NOT_IDLE
        target = list(self._part.position_um)
        for at, word in enumerate(words, 1 if name == "GY" else 0):
            here_um = target[at] if name == "GR" else 0.0
            target[at] = here_um + int(word) / self._steps_per_um
        if name == "SIS":
            target = [0.0, 0.0, target[2]]
        travel_s = math.dist(target, self._part.position_um) / self._part.SPEED_UM_PER_S
        # One tick more than the move takes, so that rounding cannot leave it short of the target.
        ticks = math.ceil(travel_s * TICKS_PER_S) + 1
        arrival = self._env.seconds(ticks / TICKS_PER_S)
        self._part.move_to(*target)
        arrival.callbacks.append(lambda _: self._advance())
        self.latency_s = travel_s + LATENCY_S
        return "R"

    def _advance(self) -> None:
        self._part.advance_to(self._env.now / TICKS_PER_S)
