"""``labharness program``: check a file of segments, store it in an instrument, and run it there."""

import argparse
from pathlib import Path

from labharness.core.vocabulary import Program
from labharness.core.vocabulary.durations import clock_text
from labharness.core.vocabulary.texts import Text
from labharness.faces.cli import EXIT_COMPLETED, EXIT_FAILED, EXIT_REJECTED
from labharness.faces.cli.owner import answer_of, signature
from labharness.faces.cli.show import BadUse, CommandFailed, chosen_lab, looking, say, warn
from labharness.instruments.link.conversation import LineControl, NoOwner
from labharness.lab import LabPlan
from labharness.lab.config.programs import examine, read_program_file
from labharness.line import Instrument, programmer_of

ROOM_C = 20.0  # temperature at which a program is assumed to begin


def program(chosen: argparse.Namespace) -> int:
    """Carry out one command; return its exit code."""
    plan = chosen_lab(chosen.lab)
    with looking(plan.state_dir):
        try:
            programmer_of(plan.by_name, chosen.instrument)
        except LookupError as why:
            raise BadUse(why.args[0]) from None
        segments = read_program_file(Path(chosen.file)) if "file" in chosen else None
        if segments is not None:
            found = _checked(plan, plan.by_name[chosen.instrument], segments)
            if found or chosen.verb == "check":
                return found
        return _asked(plan, chosen, segments)


def _checked(plan: LabPlan, instrument: Instrument, segments: Program) -> int:
    """Show a program and the envelope's objections; return 0, or the exit code of a refusal."""
    for number, each in enumerate(segments.segments, 1):
        say(f"{number:3}  {each}")
    took = clock_text(segments.duration_s(ROOM_C))
    say(Text("cli.program_takes", took=took, from_c=ROOM_C))
    findings = examine(plan.envelope, instrument, segments)
    for finding in findings:
        warn(finding)
    return EXIT_REJECTED if findings else EXIT_COMPLETED


def _asked(plan: LabPlan, chosen: argparse.Namespace, segments: Program | None) -> int:
    """Ask the process that owns the line."""
    try:
        owner = LineControl(plan.state_dir)
    except NoOwner:
        idle = Text("hand.idle" if plan.option else "hand.idle_default", lab=plan.file.lab.id)
        drive = f"labharness set CHANNEL VALUE UNIT --attend{plan.option}"
        raise CommandFailed(Text("cli.program_idle", idle=idle, command=drive)) from None
    written = {} if segments is None else {"program": segments.written()}
    asked = {"do": "program", "act": chosen.verb, "instrument": chosen.instrument, **written}
    answer = answer_of(owner, **asked, **signature(chosen))
    ending = answer["ending"]
    said = Text("cli.program", instrument=chosen.instrument, act=chosen.verb, ending=ending)
    if "written" in answer:
        said = Text("cli.program_blocks", ended=said, count=answer["written"])
    say(Text("pair", what=said, why=answer["detail"]) if answer["detail"] else said)
    if ending == "confirmed":
        return EXIT_COMPLETED
    return EXIT_REJECTED if ending == "refused" else EXIT_FAILED
