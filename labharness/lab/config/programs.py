"""Reads program files, and checks them against a lab's envelope before an instrument runs one."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from labharness.core.files.tables import BadTable, read_toml
from labharness.core.vocabulary import BadProgram, Program, read_program
from labharness.core.vocabulary.texts import Text, several
from labharness.core.vocabulary.units import TEMPERATURES, temperature_in
from labharness.instruments.driver import Programmer
from labharness.lab.config.lab_file import BadLabFile, read_text
from labharness.line import Instrument
from labharness.safety.kernel import Bound, Envelope, EnvelopeInvalid


def read_program_file(path: Path) -> Program:
    """Read a file of segments.

    Raises:
        BadProgram: It is missing, not TOML, or has an invalid value.
    """
    try:
        return read_program(read_toml(read_text(path), str(path)))
    except (BadLabFile, BadTable) as why:  # each names the file
        raise BadProgram(str(why)) from None
    except BadProgram as why:
        raise BadProgram("pair", what=str(path), why=str(why)) from None


def examine(envelope: Envelope, instrument: Instrument, program: Program) -> tuple[str, ...]:
    """Return the faults of a program: values outside the limits of envelope or instrument.

    Whether the line is ready for it (purged, vented, its lid shut) is judged when it is uploaded,
    and again when it is started.
    """
    programmer = instrument.driver.programmer
    if programmer is None:
        return (Text("program.none", name=instrument.name, kind=instrument.kind),)
    found: list[str] = []
    unit = envelope.limits[f"{instrument.name}.{programmer.setpoint}"].unit
    for number, (segment, (target_c, rate_c_per_min)) in enumerate(
        zip(program.segments, program.course(), strict=True), 1
    ):
        if segment.target_c is not None:
            target = temperature_in(unit, target_c)
            rate = rate_c_per_min * TEMPERATURES[unit][0]
            for channel, value in ((programmer.setpoint, target), (programmer.rate, rate)):
                limit = envelope.limits[f"{instrument.name}.{channel}"]
                if not limit.low <= value <= limit.high:
                    found.append(
                        Text(
                            "program.limit",
                            number=number,
                            segment=str(segment),
                            channel=limit.channel,
                            value=value,
                            unit=limit.unit,
                            low=limit.low,
                            high=limit.high,
                        )
                    )
    try:
        programmer.blocks(program)
    except ValueError as why:
        found.append(str(why))
    return tuple(found)


def check_covered(envelope: Envelope, instruments: Sequence[Instrument]) -> None:
    """Refuse an envelope under which a program could go on heating where heat is not allowed.

    Raises:
        EnvelopeInvalid: Names all missing rules.
    """
    wrong = [
        Text("program.uncovered", name=each.name, missing=missing)
        for each in instruments
        if each.driver.programmer is not None
        for missing in _missing(envelope, each.name, each.driver.programmer)
    ]
    if wrong:
        raise EnvelopeInvalid(several(*wrong))


def _missing(envelope: Envelope, name: str, programmer: Programmer) -> Iterator[str]:
    status, setpoint = f"{name}.{programmer.status}", f"{name}.{programmer.setpoint}"
    reset = programmer.reset
    for procedure in envelope.procedures.values():
        steps = procedure.steps
        sets = any(step.channel == setpoint for step in steps)
        ends = (
            each.channel == status and each.value == reset and not each.optional for each in steps
        )
        if sets and not any(ends):
            yield Text("program.no_reset", name=procedure.name, status=status, reset=reset)
    watch = envelope.watches.get(status)
    if watch is None or not watch.procedure:
        yield f"nothing watches {status}: add a [[watch]] whose silence trips"
    rows = [row for row in envelope.interlocks if status in row.guards]
    if not any(row.on_loss and reset <= row.above < programmer.run for row in rows):
        yield Text("program.no_interlock", status=status, reset=reset)
    low = envelope.limits[setpoint].low
    shut = (row for row in envelope.interlocks if setpoint in row.guards and row.above < low)
    bounds = (each for row in shut for each in row.require if isinstance(each, Bound))
    if not any(each.channel == status and each.high == reset for each in bounds):
        yield Text("program.no_setpoint", setpoint=setpoint, low=low, status=status, reset=reset)
