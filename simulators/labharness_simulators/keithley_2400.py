"""A simulated Keithley 2400 source meter, as its SCPI interface sees it.

Written from the Series 2400 SourceMeter User's Manual (2400S-900-01), sections 10, 14, 15, 17, 18
and appendix B, and from SCPI-1999 volume 1, sections 5 to 7 (headers, and how they go on after a
semicolon; numbers with units, MIN, MAX and DEF). That numbers have six decimals and an exponent is
a log of a real instrument.

Not simulated, and refused as an undefined header (-113): sweeps and lists, the buffer, limits and
calculations, service requests. A measuring range is kept and changes no reading: the meter reads as
on its automatic range. An error stays in a queue of ten until it is read.
"""

import math
import random
import re
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from labharness.instruments.simulation import LineFace, LoopEnvironment
from labharness_simulators.plant.diode import Diode

IDENTITY = "KEITHLEY INSTRUMENTS INC.,MODEL 2400,1234567,C30   Mar 17 2006 09:29:29/A02  /K/J"
UNDEFINED = '-113,"Undefined header"'
BAD_DATA = '-104,"Data type error"'
OUT_OF_RANGE = '-222,"Parameter data out of range"'
NEEDS_OUTPUT = '+803,"Not permitted with OUTPUT off"'
NO_ERROR = '0,"No error"'
ERRORS_MAX = 10
RESET_LIMIT_A, RESET_LIMIT_V = 1.05e-4, 21.0  # what *RST leaves as the compliances
NOT_A_NUMBER = 9.91e37  # of an element that is not measured
STATES = {"0": False, "OFF": False, "1": True, "ON": True}
ELEMENTS = ("VOLT", "CURR", "RES", "TIME", "STAT")
COMPLIANCE_BIT = 8  # of the status element, page 18-51
EVENTS = {"-1": 32, "-2": 16, "+": 8}  # of *ESR?: command, execution and device errors, page 14-9
ERROR_AVAILABLE = 4  # of *STB?
PREFIXES = {"": 0, "P": -12, "N": -9, "U": -6, "M": -3, "K": 3}
NUMBER = re.compile(r"([-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:E[-+]?[0-9]+)?)\s*([PNUMK]?)(?:V|A|S)?")

Header = Callable[[str], str | None]


class QueuedError(Exception):
    """Entries of the error queue."""


@dataclass
class Kept:
    """A number that is set and asked for.

    Attributes:
        value: The number.
        low: Its MINimum.
        high: Its MAXimum.
        usual: Its DEFault.
        whole: Whether it is answered as a whole number.
    """

    value: float
    low: float
    high: float
    usual: float
    whole: bool = False

    def read(self, parameter: str) -> float:
        """Return the number that a parameter says."""
        named = {"MIN": self.low, "MAX": self.high, "DEF": self.usual}
        if parameter[:3] in named:
            return named[parameter[:3]]
        found = NUMBER.fullmatch(parameter)
        if found is None:
            raise QueuedError(BAD_DATA if parameter else '-109,"Missing parameter"')
        value = float(found[1]) * 10.0 ** PREFIXES[found[2]]
        if not self.low <= value <= self.high:
            raise QueuedError(OUT_OF_RANGE)
        return value

    def say(self, parameter: str) -> str:
        """Answer the query, which may ask for MIN, MAX or DEF."""
        value = self.read(parameter) if parameter else self.value
        return f"{value:.0f}" if self.whole else _real(value)


def _pattern(header: str) -> re.Pattern[str]:
    """Return what fits a header in its long and its short form: ``:SOURce[1]:VOLTage[:LEVel]``."""
    text = re.sub("([A-Z]+)([a-z]+)", r"\1(?:\2)?", re.sub(r"([*?])", r"\\\1", header))
    return re.compile(text.replace("[", "(?:").replace("]", ")?"), re.IGNORECASE)


def _real(value: float, sign: str = "") -> str:
    return f"{value:{sign}.6E}"


class Simulator(LineFace):
    """A source meter of one channel; measuring with its output off is an error.

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
        self._events = 0
        self._measured = ""
        self._reset("")
        source, sense = ":SOURce[1]", "[:SENSe[1]]"
        level = "[:LEVel][:IMMediate][:AMPLitude]"
        self._headers: list[tuple[re.Pattern[str], Header]] = [
            (_pattern(header), do)
            for header, do in {
                "*IDN?": lambda _: IDENTITY,
                "*OPC?": lambda _: "1",
                "*TST?": lambda _: "0",
                "*ESR?": lambda _: self._event_register(),
                "*STB?": lambda _: f"{ERROR_AVAILABLE * bool(self._errors)}",
                "*OPC": self._nothing,
                "*WAI": self._nothing,
                "*RST": self._reset,
                "*CLS": self._clear,
                ":SYSTem:PRESet": self._reset,
                ":SYSTem:BEEPer[:IMMediate]": self._nothing,
                ":SYSTem:CLEar": self._clear,
                ":SYSTem:ERRor[:NEXT]?": lambda _: self._error(),
                ":STATus:QUEue[:NEXT]?": lambda _: self._error(),
                ":STATus:QUEue:CLEar": self._clear,
                f"{source}:FUNCtion[:MODE]?": lambda _: self._function,
                f"{source}:FUNCtion[:MODE]": self._set_function,
                f"{sense}:FUNCtion[:ON]?": lambda _: ",".join(f'"{each}"' for each in self._senses),
                f"{sense}:FUNCtion[:ON]": self._sense,
                f"{sense}:FUNCtion[:ON]:ALL": self._nothing,
                f"{sense}:FUNCtion:OFF": self._nothing,
                f"{sense}:FUNCtion:OFF:ALL": self._nothing,
                f"{sense}:CURRent[:DC]:PROTection:TRIPped?": lambda _: f"{int(self._limited)}",
                f"{sense}:VOLTage[:DC]:PROTection:TRIPped?": lambda _: f"{int(self._limited)}",
                ":FORMat:ELEMents[:SENSe[1]]?": lambda _: ",".join(self._elements),
                ":FORMat:ELEMents[:SENSe[1]]": self._set_elements,
                ":READ?": lambda _: self._read(),
                ":FETCh?": lambda _: self._fetch(),
                ":INITiate[:IMMediate]": lambda _: self._initiate(),
                ":ABORt": self._nothing,
                ":TRIGger:CLEar": self._nothing,
                ":MEASure?": lambda _: self._measure(),
                ":MEASure:CURRent[:DC]?": lambda _: self._measure(),
                ":MEASure:VOLTage[:DC]?": lambda _: self._measure(),
                ":CONFigure:CURRent[:DC]": self._configure,
                ":CONFigure:VOLTage[:DC]": self._configure,
                **self._numbers(source, sense, level),
                **self._switches(source, sense),
                **self._choices(source),
            }.items()
        ]

    def answer(self, line: str) -> str | None:
        """Carry out what one line asks; its answers come in one line, or none comes."""
        said: list[str] = []
        path = ""
        for message in filter(
            None, map(str.strip, re.findall(r'(?:"[^"]*"|\'[^\']*\'|[^;])+', line))
        ):
            header, _, parameter = message.partition(" ")
            if not header.startswith("*"):  # a header without a colon goes on from the one before
                header = header if header.startswith(":") else f"{path}:{header}"
                path = header.rpartition(":")[0]
            try:
                reply = self._obey(header, parameter.strip().upper())
            except QueuedError as why:
                self._queue(str(why))
                continue
            if reply is not None:
                said.append(reply)
        return ";".join(said) + "\n" if said else None

    def refusal(self, frame: bytes) -> bytes | None:
        """Answer the queries of a line alone: what it sets has no effect."""
        messages = frame.decode("ascii", "replace").strip().split(";")
        queries = [each for each in messages if each.partition(" ")[0].endswith("?")]
        if len(queries) == len(messages):
            return None
        reply = self.answer(";".join(queries))
        return b"" if reply is None else reply.encode("ascii")

    def _obey(self, header: str, parameter: str) -> str | None:
        for pattern, do in self._headers:
            if pattern.fullmatch(header):
                return do(parameter)
        raise QueuedError(UNDEFINED)

    def _numbers(self, source: str, sense: str, level: str) -> dict[str, Header]:
        """Return the headers of every number, to set and to ask."""
        found: dict[str, Header] = {}
        for header, name in {
            f"{source}:VOLTage{level}": "level_v",
            f"{source}:CURRent{level}": "level_a",
            f"{sense}:CURRent[:DC]:PROTection[:LEVel]": "limit_a",
            f"{sense}:VOLTage[:DC]:PROTection[:LEVel]": "limit_v",
            f"{source}:VOLTage:RANGe": "source_range_v",
            f"{source}:CURRent:RANGe": "source_range_a",
            f"{sense}:CURRent[:DC]:RANGe[:UPPer]": "range_a",
            f"{sense}:VOLTage[:DC]:RANGe[:UPPer]": "range_v",
            f"{sense}:CURRent[:DC]:NPLCycles": "cycles",
            f"{sense}:VOLTage[:DC]:NPLCycles": "cycles",
            f"{source}:DELay": "delay_s",
            ":TRIGger:COUNt": "triggers",
            ":ARM:COUNt": "arms",
            ":TRIGger:DELay": "trigger_delay_s",
            f"{sense}:AVERage:COUNt": "average",
            ":DISPlay:DIGits": "digits",
            "*ESE": "event_enable",
            "*SRE": "request_enable",
        }.items():
            found[header] = partial(self._keep, name)
            found[f"{header}?"] = partial(self._say, name)
        return found

    def _switches(self, source: str, sense: str) -> dict[str, Header]:
        """Return the headers of everything that is on or off."""
        found: dict[str, Header] = {}
        for header, name in {
            ":OUTPut[1][:STATe]": "output",
            f"{source}:CLEar:AUTO": "auto_off",
            f"{source}:VOLTage:RANGe:AUTO": "source_range_auto",
            f"{source}:CURRent:RANGe:AUTO": "source_range_auto",
            f"{source}:DELay:AUTO": "delay_auto",
            f"{sense}:CURRent[:DC]:RANGe:AUTO": "range_auto",
            f"{sense}:VOLTage[:DC]:RANGe:AUTO": "range_auto",
            f"{sense}:FUNCtion:CONCurrent": "concurrent",
            f"{sense}:AVERage[:STATe]": "averages",
            ":SYSTem:RSENse": "four_wires",
            ":SYSTem:AZERo[:STATe]": "auto_zero",
            ":SYSTem:BEEPer:STATe": "beeps",
            ":DISPlay:ENABle": "display",
        }.items():
            found[header] = partial(self._turn, name)
            found[f"{header}?"] = partial(self._is_on, name)
        return found

    def _choices(self, source: str) -> dict[str, Header]:
        """Return the headers of everything that is one of some words."""
        found: dict[str, Header] = {}
        for header, words in {
            f"{source}:VOLTage:MODE": ("FIX",),
            f"{source}:CURRent:MODE": ("FIX",),
            ":ROUTe:TERMinals": ("FRON", "REAR"),
            ":OUTPut:SMODe": ("NORM", "HIMP", "ZERO", "GUAR"),
            ":TRIGger:SOURce": ("IMM",),
            ":ARM:SOURce": ("IMM",),
            ":FORMat[:DATA]": ("ASC",),
            "[:SENSe[1]]:AVERage:TCONtrol": ("REP", "MOV"),
        }.items():
            found[header] = partial(self._choose, header, words)
            found[f"{header}?"] = partial(self._chosen, header, words[0])
        return found

    def _nothing(self, _: str) -> None:
        """Take a command that shows nowhere."""

    def _reset(self, _: str) -> None:
        self._function = "VOLT"
        self._senses: tuple[str, ...] = ("CURR:DC",)
        self._elements: tuple[str, ...] = ELEMENTS
        self._words: dict[str, str] = {}
        self._on = dict.fromkeys(
            ("output", "auto_off", "four_wires", "averages", "concurrent", "display", "beeps"),
            False,
        )
        self._on |= dict.fromkeys(
            ("source_range_auto", "delay_auto", "range_auto", "auto_zero"), True
        )
        self._kept = {
            "level_v": Kept(0.0, -210.0, 210.0, 0.0),
            "level_a": Kept(0.0, -1.05, 1.05, 0.0),
            "limit_a": Kept(RESET_LIMIT_A, -1.05, 1.05, RESET_LIMIT_A),
            "limit_v": Kept(RESET_LIMIT_V, -210.0, 210.0, RESET_LIMIT_V),
            "source_range_v": Kept(21.0, -210.0, 210.0, 21.0),
            "source_range_a": Kept(1.05e-4, -1.05, 1.05, 1.05e-4),
            "range_a": Kept(1.05e-4, -1.05, 1.05, 1.05e-4),
            "range_v": Kept(21.0, -210.0, 210.0, 21.0),
            "cycles": Kept(1.0, 0.01, 10.0, 1.0),
            "delay_s": Kept(0.0, 0.0, 999.9999, 0.0),
            "triggers": Kept(1.0, 1.0, 2500.0, 1.0, whole=True),
            "arms": Kept(1.0, 1.0, 2500.0, 1.0, whole=True),
            "trigger_delay_s": Kept(0.0, 0.0, 999.9999, 0.0),
            "average": Kept(10.0, 1.0, 100.0, 10.0, whole=True),
            "digits": Kept(6.0, 4.0, 7.0, 6.0, whole=True),
            "event_enable": Kept(0.0, 0.0, 255.0, 0.0, whole=True),
            "request_enable": Kept(0.0, 0.0, 255.0, 0.0, whole=True),
        }
        self._drive()

    def _drive(self) -> None:
        """Bring the source to what is set; a source of current holds it within its voltage."""
        part, kept = self._part, self._kept
        part.on = self._on["output"]
        if self._function == "VOLT":
            part.source_v, part.limit_a = kept["level_v"].value, abs(kept["limit_a"].value)
        else:
            level_a = kept["level_a"].value
            part.source_v = math.copysign(kept["limit_v"].value, level_a)
            part.limit_a = abs(level_a)

    @property
    def _limited(self) -> bool:
        """Whether the compliance, and not the source, says what flows."""
        if not self._part.on:
            return False
        return self._part.limited if self._function == "VOLT" else not self._part.limited

    def _keep(self, name: str, parameter: str) -> None:
        self._kept[name].value = self._kept[name].read(parameter)
        if name in ("range_a", "range_v"):
            self._on["range_auto"] = False
        self._drive()

    def _say(self, name: str, parameter: str) -> str:
        return self._kept[name].say(parameter)

    def _is_on(self, name: str, _: str) -> str:
        return f"{int(self._on[name])}"

    def _chosen(self, header: str, usual: str, _: str) -> str:
        return self._words.get(header, usual)

    def _turn(self, name: str, parameter: str) -> None:
        if parameter not in STATES:
            raise QueuedError(OUT_OF_RANGE)
        self._on[name] = STATES[parameter]
        self._drive()

    def _choose(self, header: str, words: tuple[str, ...], parameter: str) -> None:
        found = [each for each in words if parameter[:4].startswith(each)]
        if not found:
            raise QueuedError(OUT_OF_RANGE)
        self._words[header] = found[0]

    def _set_function(self, parameter: str) -> None:
        if parameter[:4] not in ("VOLT", "CURR"):
            raise QueuedError(OUT_OF_RANGE)
        if self._function != parameter[:4]:
            self._function = parameter[:4]
            self._on["output"] = False  # background knowledge: a change turns the output off
            self._drive()

    def _sense(self, parameter: str) -> None:
        named = [each.strip().strip("\"'") for each in parameter.split(",")]
        if not named or not all(each[:4] in ("VOLT", "CURR") for each in named):
            raise QueuedError(OUT_OF_RANGE)  # resistance is not simulated
        self._senses = tuple(dict.fromkeys(f"{each[:4]}:DC" for each in named))

    def _configure(self, _: str) -> None:
        """Prepare a measurement, which turns nothing on here: both are always measured."""

    def _clear(self, _: str) -> None:
        self._errors.clear()
        self._events = 0

    def _queue(self, error: str) -> None:
        self._events |= next(bit for sign, bit in EVENTS.items() if error.startswith(sign))
        if len(self._errors) < ERRORS_MAX:
            self._errors.append(error)

    def _error(self) -> str:
        return self._errors.popleft() if self._errors else NO_ERROR

    def _event_register(self) -> str:
        events, self._events = self._events, 0
        return f"{events}"

    def _set_elements(self, parameter: str) -> None:
        asked = {each.strip()[:4] for each in parameter.split(",")}
        if not asked or not asked.issubset(ELEMENTS):
            raise QueuedError(OUT_OF_RANGE)
        self._elements = tuple(each for each in ELEMENTS if each in asked)

    def _initiate(self) -> None:
        if not (self._on["output"] or self._on["auto_off"]):
            raise QueuedError(NEEDS_OUTPUT)
        was_on = self._on["output"]
        self._on["output"] = True
        self._drive()
        times = round(self._kept["triggers"].value * self._kept["arms"].value)
        self._measured = ",".join([self._elements_now()] * times)
        self._on["output"] = was_on and not self._on["auto_off"]
        self._drive()

    def _fetch(self) -> str:
        if not self._measured:
            raise QueuedError('-230,"Data corrupt or stale"')
        return self._measured

    def _read(self) -> str:
        self._initiate()
        return self._fetch()

    def _measure(self) -> str:
        self._on["output"] = True
        return self._read()

    def _elements_now(self) -> str:
        part = self._part
        values = {
            "VOLT": part.voltage_v,
            "CURR": part.measured_a,
            "RES": NOT_A_NUMBER,
            "TIME": self._env.now / 1e6,
            "STAT": float(COMPLIANCE_BIT * self._limited),
        }
        return ",".join(_real(values[each], "+") for each in self._elements)
