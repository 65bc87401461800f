"""``labharness program``: a file of segments checked, stored in an instrument, and run by it."""

import argparse
from pathlib import Path

from labharness.core.vocabulary import Program
from labharness.core.vocabulary.durations import clock_text
from labharness.faces.cli import EXIT_COMPLETED, EXIT_FAILED, EXIT_REJECTED, EXIT_USAGE
from labharness.faces.cli.show import account, chosen_lab, complain, say
from labharness.lab import LabPlan
from labharness.lab.config.programs import examine, read_program_file
from labharness.lab.wiring.control import LineControl, NoOwner
from labharness.line import Instrument, programmer_of

__all__ = ["program"]

ROOM_C = 20.0  # where a program is taken to begin, to say how long it is


def program(chosen: argparse.Namespace) -> int:
    """Carry out one act; return its exit code."""
    try:
        plan = chosen_lab(chosen.lab)
        programmer_of(plan.by_name, chosen.instrument)
        segments = read_program_file(Path(chosen.file)) if "file" in chosen else None
        if segments is not None:
            found = _checked(plan, plan.by_name[chosen.instrument], segments)
            if found or chosen.verb == "check":
                return found
        return _asked(plan, chosen, segments)
    except LookupError as why:
        complain(f"labharness program: {why.args[0]}")
        return EXIT_USAGE
    except PermissionError as why:
        complain(f"labharness program: {why.filename}: {why.strerror}")
        return EXIT_USAGE


def _checked(plan: LabPlan, instrument: Instrument, segments: Program) -> int:
    """Show a program and what in it can never be; return 0, or the exit code of a refusal."""
    for number, each in enumerate(segments.segments, 1):
        say(f"{number:3}  {each}")
    took = clock_text(segments.duration_s(ROOM_C))
    say(f"{took} from {ROOM_C:g} degC, if it never waits")
    findings = examine(plan.envelope, instrument, segments)
    for finding in findings:
        complain(f"labharness program: {finding}")
    return EXIT_REJECTED if findings else EXIT_COMPLETED


def _asked(plan: LabPlan, chosen: argparse.Namespace, segments: Program | None) -> int:
    """Ask the process that owns the line."""
    asked = {
        "do": "program",
        "act": chosen.verb,
        "instrument": chosen.instrument,
        "by": chosen.name or account(),
        "reason": chosen.reason,
        **({} if segments is None else {"program": segments.written()}),
    }
    try:
        owner = LineControl(plan.state_dir)
    except NoOwner:
        which = plan.file.lab.id + ("" if plan.option else " (the default)")
        complain(
            f"labharness program: nothing runs on lab {which}; one terminal drives the line "
            f"(labharness set CHANNEL VALUE UNIT --attend{plan.option}), another one uploads"
        )
        return EXIT_FAILED
    with owner:
        answer = owner.ask(**asked)
    if not answer["ok"]:
        complain(f"labharness program: {answer['error']}")
        return EXIT_FAILED
    detail = f": {answer['detail']}" if answer["detail"] else ""
    blocks = f", {answer['written']} blocks written" if "written" in answer else ""
    say(f"{chosen.instrument}: {chosen.verb} {answer['ending']}{blocks}{detail}")
    if answer["ending"] == "confirmed":
        return EXIT_COMPLETED
    return EXIT_REJECTED if answer["ending"] == "refused" else EXIT_FAILED
