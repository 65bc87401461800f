"""The gate on the path of every command: the kernel judges it, and the program that it starts.

A command that starts a program energises later, and no gate stands before what it does then. So
it passes only for a program that this line wrote and read back, segment by segment; each segment
is judged at that moment as the setpoint and the rate that it will be; and until the program is
reset the setpoint counts as every target of it, so that whatever a target takes must stay so.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from labharness.core.vocabulary import Allowed, Command, Program, Refused, Verdict
from labharness.core.vocabulary.channels import split_channel
from labharness.core.vocabulary.texts import Said, Text
from labharness.core.vocabulary.units import TEMPERATURES, temperature_in
from labharness.line.instrument import Instrument
from labharness.safety.kernel import Memory, begin, conclude, judge, judge_program

RULE, LOST_LINK = "program", "lost link"  # of refusals that are not the envelope's
READ_S_MAX = 10.0  # a program is started that was read so lately: somebody may stand at its keys


@dataclass(slots=True)
class _Going:
    """A program that was started; ``since_s`` is when."""

    program: Program
    since_s: float
    told: bool = False


@dataclass(eq=False)
class Gate:
    """The kernel's verdicts for single commands, and for the programs they start.

    Attributes:
        memory: The kernel's memory.
        instruments: The instruments of the line.
        now_s: Lab time.
        stored: For each instrument the program that it was shown to hold, and when.
        unprepared: Ports whose link was lost, each with the one command that may pass there.
    """

    memory: Memory
    instruments: Mapping[str, Instrument]
    now_s: Callable[[], float]

    def __post_init__(self) -> None:
        self.stored: dict[str, tuple[Program, float]] = {}
        self.unprepared: dict[str, Command | None] = {}
        self._going: dict[str, _Going] = {}
        self._programmers = {
            name: each.driver.programmer
            for name, each in self.instruments.items()
            if each.driver.programmer is not None
        }

    def judge(self, command: Command) -> Verdict:
        """Judge a command, and the whole program where it starts one."""
        verdict = self._barred(command) or self._judge(command)
        name = self._starts(command)
        if isinstance(verdict, Refused) or not name or self.held(name):
            return verdict  # one that is held goes on as it was judged; all it takes is watched
        stored = self.stored.get(name)
        if stored is None or self.now_s() - stored[1] > READ_S_MAX:
            why = Said("program.not_uploaded", instrument=name, within_s=READ_S_MAX)
            return Refused(command, RULE, why)
        if not self.chosen(name):
            number, slot = self._programmers[name].number, self._programmers[name].slot
            why = Said("program.not_chosen", instrument=name, channel=number, slot=slot)
            return Refused(command, RULE, why)
        return self.judge_program(name, stored[0])

    def judge_program(self, name: str, program: Program) -> Verdict:
        """Judge a program on an instrument: each segment, from where the last one ends."""
        programmer = self._programmers[name]
        highest = self._to(name, program.highest_c)
        barred = self._barred(highest)
        if barred is not None:
            return barred
        if self.memory.track(highest.channel).unconfirmed:
            why = Said("program.unconfirmed", channel=highest.channel)
            return Refused(highest, RULE, why)
        rate, rate_unit = f"{name}.{programmer.rate}", f"{highest.unit}/min"
        per_degree = TEMPERATURES[highest.unit][0]
        commands: list[tuple[int, Command]] = []
        for number, (segment, (target_c, rate_c_per_min)) in enumerate(
            zip(program.segments, program.course(), strict=True), 1
        ):
            if segment.target_c is not None:  # a step is a rate of 0: at once
                commands.append((number, Command(rate, rate_c_per_min * per_degree, rate_unit)))
            commands.append((number, self._to(name, target_c)))
        verdict = judge_program([each for _, each in commands], self.memory, self.now_s())
        if isinstance(verdict, Allowed):
            return verdict
        number = next(n for n, each in commands if each is verdict.command)
        said = Said(
            "program.segment_of",
            number=number,
            segment=str(program.segments[number - 1]),
            why=verdict.why.params["why"],
        )
        return Refused(verdict.command, verdict.rule, said)

    def held(self, name: str) -> bool:
        """Return whether a program that this line started stands still."""
        status = self.memory.track(f"{name}.{self._programmers[name].status}")
        return name in self._going and status.value == self._programmers[name].hold

    def chosen(self, name: str) -> bool:
        """Return whether the stored program that is ours is the one that would run."""
        programmer = self._programmers[name]
        track = self.memory.track(f"{name}.{programmer.number}")
        return track.fresh(self.now_s()) and track.possible() == (programmer.slot,)

    def begin(self, command: Command) -> None:
        """Remember that a command was sent, with the targets of a program that it starts."""
        begin(self.memory, self._encoded(command))
        name = self._starts(command)
        if name and not self.held(name):
            program = self.stored[name][0]
            self._going[name] = _Going(program, self.now_s())
            for target_c, _ in program.course():
                begin(self.memory, self._to(name, target_c))

    def conclude(self, command: Command) -> None:
        """Take a command as confirmed, because a fresh read-back agrees."""
        conclude(self.memory, self._encoded(command))

    def latest(self, channel: str) -> float:
        """Return the last reading of a channel; NaN where it is stale or unconfirmed."""
        track = self.memory.track(channel)
        known = track.fresh(self.now_s()) and not track.unconfirmed
        return track.value if known else math.nan

    def look(self) -> list[str]:
        """Return texts on programs that are over: their setpoint counts by its readings again."""
        said: list[str] = []
        for name, going in tuple(self._going.items()):
            programmer = self._programmers[name]
            status = self.memory.track(f"{name}.{programmer.status}")
            if status.at_s <= going.since_s or status.unconfirmed:
                continue
            if status.value == programmer.reset:
                del self._going[name]
                conclude(self.memory, self._to(name, math.nan))  # where it left it
                said.append(Text("program.over", instrument=name))
            elif status.value == programmer.complete and not going.told:
                going.told = True
                said.append(Text("program.stays", instrument=name))
        return said

    def _judge(self, command: Command) -> Verdict:
        """Judge the value that was asked, and the one that goes out on the wire."""
        verdict = judge(command, self.memory, self.now_s())
        encoded = self._encoded(command)
        if isinstance(verdict, Refused) or encoded.value == command.value:
            return verdict
        verdict = judge(encoded, self.memory, self.now_s())
        if isinstance(verdict, Allowed):
            return Allowed(command)
        unit = f" {command.unit}".rstrip()
        why = Said(
            "limit.encoded",
            channel=command.channel,
            asked=f"{command.value}{unit}",
            sent=f"{encoded.value}{unit}",
            why=verdict.why,
        )
        return Refused(command, verdict.rule, why)

    def _encoded(self, command: Command) -> Command:
        """Return a command with the value that its frames carry."""
        name, channel = split_channel(command.channel)
        instrument = self.instruments.get(name)
        if instrument is None or channel not in instrument.driver.channels:
            return command  # a person opens it, or nothing does: no frame leaves
        try:
            return replace(command, value=instrument.driver.sent(channel, command.value))
        except ValueError:  # the driver refuses to write it
            return command

    def _to(self, name: str, target_c: float) -> Command:
        """Return the setpoint of a program's target, in the unit of the instrument."""
        setpoint = self._programmers[name].setpoint
        unit = self.instruments[name].driver.channels[setpoint].unit
        return Command(f"{name}.{setpoint}", temperature_in(unit, target_c), unit)

    def _barred(self, command: Command) -> Refused | None:
        """Refuse a command on a port whose link was lost, unless it prepares an instrument."""
        instrument = self.instruments.get(split_channel(command.channel)[0])
        port = "" if instrument is None else instrument.port
        if port not in self.unprepared or self.unprepared[port] is command:
            return None
        why = Said("link.unprepared", port=port)
        return Refused(command, LOST_LINK, why)

    def _starts(self, command: Command) -> str:
        """Return the instrument whose program a command starts; ``""`` where it starts none."""
        name, channel = split_channel(command.channel)
        programmer = self._programmers.get(name)
        runs = programmer is not None and channel == programmer.status
        return name if runs and programmer is not None and command.value == programmer.run else ""
