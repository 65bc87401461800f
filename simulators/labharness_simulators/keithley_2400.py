"""A simulated Keithley 2400 source meter, as its SCPI interface sees it.

Written from the Series 2400 SourceMeter User's Manual (2400S-900-01), sections 14, 17 and 18 and
appendix B. That numbers have six decimals and an exponent is a log of a real instrument.

Not simulated, and refused as an undefined header (-113): a current source, sweeps and lists, ranges
(they are always automatic), triggers, the buffer, limits and calculations, and headers that go on
from the one before without a colon. An error stays in a queue of ten until it is read.
"""

import random
import re
from collections import deque
from collections.abc import Callable

from labharness.instruments.simulation import LineFace, LoopEnvironment
from labharness_simulators.plant.diode import Diode

__all__ = ["Simulator"]

IDENTITY = "KEITHLEY INSTRUMENTS INC.,MODEL 2400,1234567,C30   Mar 17 2006 09:29:29/A02  /K/J"
UNDEFINED = '-113,"Undefined header"'
OUT_OF_RANGE = '-222,"Parameter data out of range"'
NEEDS_OUTPUT = '+803,"Not permitted with OUTPUT off"'
NO_ERROR = '0,"No error"'
ERRORS_MAX = 10
RESET_LIMIT_A = 1.05e-4  # what *RST leaves as the compliance
LEAST_LIMIT_A = 1e-9
NOT_A_NUMBER = 9.91e37  # of an element that is not measured
STATES = {"0": False, "OFF": False, "1": True, "ON": True}
ELEMENTS = ("VOLT", "CURR", "RES", "TIME", "STAT")

Header = Callable[[str], str | None]


class QueuedError(Exception):
    """Entries of the error queue."""


def _pattern(header: str) -> re.Pattern[str]:
    """Return what fits a header in its long and its short form: ``:SOURce[1]:VOLTage[:LEVel]``."""
    text = re.sub("([A-Z]+)([a-z]+)", r"\1(?:\2)?", re.sub(r"([*?])", r"\\\1", header))
    return re.compile(text.replace("[", "(?:").replace("]", ")?"), re.IGNORECASE)


def _real(value: float, sign: str = "") -> str:
    return f"{value:{sign}.6E}"


class Simulator(LineFace):
    """A source meter that sources a voltage; measuring with its output off is an error.

    Args:
        max_voltage_v: Not used: what the driver may ask is less than what the instrument takes.
        max_current_a: Likewise.
    """

    end = b"\n"
    latency_s = 0.03

    def __init__(
        self,
        env: LoopEnvironment,
        part: Diode,
        chance: random.Random,
        *,
        max_voltage_v: float = 210.0,
        max_current_a: float = 1.05,
    ) -> None:
        self._env = env
        self._part = part
        self._errors: deque[str] = deque()
        self._auto_off = False
        self._elements: tuple[str, ...] = ELEMENTS
        self._headers: list[tuple[re.Pattern[str], Header]] = [
            (_pattern(header), do)
            for header, do in {
                "*IDN?": lambda _: IDENTITY,
                "*OPC?": lambda _: "1",
                "*RST": self._reset,
                "*CLS": self._clear,
                ":SYSTem:ERRor[:NEXT]?": lambda _: self._error(),
                ":OUTPut[1][:STATe]?": lambda _: f"{int(part.on)}",
                ":OUTPut[1][:STATe]": self._switch,
                ":SOURce[1]:FUNCtion[:MODE]?": lambda _: "VOLT",
                ":SOURce[1]:VOLTage[:LEVel][:IMMediate][:AMPLitude]?": lambda _: _real(
                    part.source_v
                ),
                ":SOURce[1]:VOLTage[:LEVel][:IMMediate][:AMPLitude]": self._set_voltage,
                ":SOURce[1]:CLEar:AUTO?": lambda _: f"{int(self._auto_off)}",
                ":SOURce[1]:CLEar:AUTO": self._set_auto_off,
                "[:SENSe[1]]:CURRent[:DC]:PROTection[:LEVel]?": lambda _: _real(part.limit_a),
                "[:SENSe[1]]:CURRent[:DC]:PROTection[:LEVel]": self._set_limit,
                "[:SENSe[1]]:CURRent[:DC]:PROTection:TRIPped?": lambda _: f"{int(part.limited)}",
                ":FORMat:ELEMents[:SENSe[1]]?": lambda _: ",".join(self._elements),
                ":FORMat:ELEMents[:SENSe[1]]": self._set_elements,
                ":READ?": lambda _: self._read(),
                ":MEASure?": lambda _: self._measure(),
            }.items()
        ]

    def answer(self, line: str) -> str | None:
        """Carry out what one line asks; its answers come in one line, or none comes."""
        said: list[str] = []
        for message in filter(None, (each.strip() for each in line.split(";"))):
            try:
                reply = self._obey(message)
            except QueuedError as why:
                if len(self._errors) < ERRORS_MAX:
                    self._errors.append(str(why))
                continue
            if reply is not None:
                said.append(reply)
        return ";".join(said) + "\n" if said else None

    def refusal(self, frame: bytes) -> bytes | None:
        """Answer the queries of a line alone: what it sets has no effect."""
        messages = frame.decode("ascii", "replace").strip().split(";")
        queries = [each for each in messages if each.endswith("?")]
        if len(queries) == len(messages):
            return None
        reply = self.answer(";".join(queries))
        return b"" if reply is None else reply.encode("ascii")

    def _obey(self, message: str) -> str | None:
        header, _, parameter = message.partition(" ")
        for pattern, do in self._headers:
            if pattern.fullmatch(header):
                return do(parameter.strip().upper())
        raise QueuedError(UNDEFINED)

    def _reset(self, _: str) -> None:
        self._part.on, self._part.source_v, self._part.limit_a = False, 0.0, RESET_LIMIT_A
        self._auto_off, self._elements = False, ELEMENTS

    def _clear(self, _: str) -> None:
        self._errors.clear()

    def _error(self) -> str:
        return self._errors.popleft() if self._errors else NO_ERROR

    def _switch(self, parameter: str) -> None:
        self._part.on = _state(parameter)

    def _set_auto_off(self, parameter: str) -> None:
        self._auto_off = _state(parameter)

    def _set_voltage(self, parameter: str) -> None:
        self._part.source_v = _within(parameter, -210.0, 210.0)

    def _set_limit(self, parameter: str) -> None:
        self._part.limit_a = abs(_within(parameter, LEAST_LIMIT_A, 1.05))

    def _set_elements(self, parameter: str) -> None:
        asked = {each.strip()[:4] for each in parameter.split(",")}
        if not asked or not asked.issubset(ELEMENTS):
            raise QueuedError(OUT_OF_RANGE)
        self._elements = tuple(each for each in ELEMENTS if each in asked)

    def _read(self) -> str:
        if not (self._part.on or self._auto_off):
            raise QueuedError(NEEDS_OUTPUT)
        was_on = self._part.on
        self._part.on = True
        reading = self._elements_now()
        self._part.on = was_on and not self._auto_off
        return reading

    def _measure(self) -> str:
        self._part.on = True
        return self._read()

    def _elements_now(self) -> str:
        part = self._part
        values = {
            "VOLT": part.voltage_v,
            "CURR": part.measured_a,
            "RES": NOT_A_NUMBER,
            "TIME": self._env.now / 1e6,
            "STAT": 8.0 if part.limited else 0.0,  # bit 3: in compliance
        }
        return ",".join(_real(values[each], "+") for each in self._elements)


def _state(parameter: str) -> bool:
    if parameter not in STATES:
        raise QueuedError(OUT_OF_RANGE)
    return STATES[parameter]


def _within(parameter: str, low: float, high: float) -> float:
    try:
        value = float(parameter)
    except ValueError:
        raise QueuedError(OUT_OF_RANGE) from None
    if not low <= value <= high:
        raise QueuedError(OUT_OF_RANGE)
    return value
