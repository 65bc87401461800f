"""A furnace that runs programs, by itself: its gate, and what stores and starts them."""

from dataclasses import replace
from typing import Any

from kernel_line import healthy, limit, see
from labharness.core.vocabulary import Command, Ending, Outcome, Program, Refused, read_program
from labharness.instruments.driver import Programmer
from labharness.line.command import Programs, Uploaded
from labharness.line.gate import Gate
from line_alone import Scene, Toy, block, blocks_of, shown, toy

RUN, HOLD, RESET = (Command("furnace.status", value, "") for value in (2.0, 4.0, 1.0))
EMPTY = block("segment1", "end", (-1,))


def blocks(program: Program) -> Any:
    """One block a segment; more than four segments do not fit."""
    if len(program.segments) > 4:
        raise ValueError("it takes 4 segments at most")
    return tuple(blocks_of(program))


PROGRAMMER = Programmer(
    setpoint="setpoint",
    rate="rate",
    status="status",
    number="number",
    slot=7,
    reset=1.0,
    run=2.0,
    hold=4.0,
    complete=8.0,
    empty=EMPTY,
    blocks=blocks,
)


def program(*targets_c: float) -> Program:
    """Ramps to these at 10 degC/min, and a dwell after the first."""
    rows: list[dict[str, float]] = [
        {"ramp_to_c": target_c, "at_c_per_min": 10} for target_c in targets_c
    ]
    return read_program({"segment": [rows[0], {"dwell_min": 1}, *rows[1:]]})


ANNEAL = program(400.0, 50.0)


class Furnace(Scene):
    """A furnace with a programmer, its gate, and what stores programs in it."""

    def __init__(self) -> None:
        number = shown("number")
        self.driver = Toy(
            {
                "setpoint": shown("setpoint", unit="degC"),
                "rate": shown("rate", unit="degC/min"),
                "status": shown("status"),
                "number": number,
            },
            ("temperature",),
            programmer=PROGRAMMER,
        )
        super().__init__(
            toy("furnace", self.driver), toy("box", Toy({"contactor": shown("contactor")}))
        )
        self.gate = Gate(self.memory, self.instruments, self.loop.time)
        self.over: list[str] = []
        self.lost: list[str] = []
        self.performed: list[Command] = []
        self.ends: dict[str, Ending] = {}
        self.writer = self.writer_by(self.gate, self.lost.append)
        self.programs = Programs(writer=self.writer, perform=self.perform)
        self.port.on_frame = self.frame
        self.port.unkept.add("segment1=end")
        has(self, "0", "0", "0")
        self.well()

    def well(self) -> None:
        """Read all as it should be, the furnace cold and by a rate."""
        now_s = self.loop.time()
        healthy(self.memory, now_s)
        see(self.memory, now_s, furnace__status=1.0, furnace__number=7.0, furnace__rate=5.0)

    def frame(self, words: str) -> None:
        """Keep blocks as they are written, and show them."""
        name, _, value = words.partition("=")
        if value and isinstance(self.port.says.get(f"{name}?"), str):
            self.port.says[f"{name}?"] = "-1" if value == "end" else value

    async def perform(self, command: Command) -> Outcome:
        """Be the line: all that is asked is confirmed, or ends as a test says."""
        self.performed.append(command)
        return Outcome(command, self.ends.get(command.channel, Ending.CONFIRMED), None, "said")

    def look(self) -> None:
        """Look at what is going, and keep what is over."""
        self.over += self.gate.look()

    def upload(self, program: Program = ANNEAL) -> Uploaded:
        """Store a program."""
        return self.play(self.programs.upload("furnace", program))


def reason(verdict: object) -> str:
    """Return why a verdict refuses; ``""`` where it does not."""
    return verdict.reason if isinstance(verdict, Refused) else ""


def has(furnace: Furnace, *held: str) -> None:
    """Have blocks stored."""
    for number, words in enumerate(held, 1):
        furnace.port.says[f"segment{number}?"] = words


def status_is_set(furnace: Furnace) -> None:
    """Give the status and the number limits of their own, as an envelope does."""
    limits = dict(furnace.memory.envelope.limits)
    for channel in ("furnace.status", "furnace.number"):
        limits[channel] = limit(channel, "", 0.0, 10.0)
        furnace.memory.guarding[channel] = ()
    furnace.memory.envelope = replace(furnace.memory.envelope, limits=limits)


def started(furnace: Furnace, program: Program = ANNEAL) -> None:
    """Have a program that is stored, and its start sent."""
    status_is_set(furnace)
    furnace.gate.stored["furnace"] = (program, furnace.loop.time())
    furnace.gate.begin(RUN)
