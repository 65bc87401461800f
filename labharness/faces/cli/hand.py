"""``labharness set`` and ``program``: set a channel, run a program.

If a process owns the line, each command goes through its control socket. ``set --attend`` makes
this process the owner, which leaves the line safe at its end.
"""

import argparse
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from labharness.core.clock import Chance
from labharness.core.vocabulary import Program
from labharness.core.vocabulary.durations import clock_text
from labharness.core.vocabulary.texts import Text, several
from labharness.faces.cli import EXIT_COMPLETED, EXIT_FAILED, EXIT_REJECTED
from labharness.faces.cli.owner import (
    answer_of,
    driven_elsewhere,
    idle_text,
    owner_of,
    signature,
)
from labharness.faces.cli.show import (
    BadUse,
    CommandFailed,
    complain,
    latched,
    say,
    say_each,
    say_queued,
    warn,
    with_lab,
)
from labharness.faces.cli.stopping import stoppable
from labharness.instruments.link.conversation import LineControl, NoOwner
from labharness.lab import LabPlan
from labharness.lab.config.channels import check_settable, needed_first
from labharness.lab.config.lock import read_owner
from labharness.lab.config.programs import examine, read_program_file
from labharness.lab.operate.attend import Attendance
from labharness.lab.wiring.runs import fresh_folder
from labharness.line import Instrument
from labharness.line.command import programmer_of
from labharness.work.desk.folder import JOURNAL_NAME

ROOM_C = 20.0  # temperature at which a program is assumed to begin
ENDINGS = {"confirmed": EXIT_COMPLETED, "refused": EXIT_REJECTED}


def set(chosen: argparse.Namespace) -> int:  # named like its row
    """Set a channel; return the exit code of how that ended."""
    with with_lab(chosen) as plan:
        check_settable(plan, chosen.channel, chosen.value, chosen.unit)
        named = {each: getattr(chosen, each) for each in ("channel", "value", "unit")}
        asked = {"do": "set", **named, **signature(chosen)}
        owner = owner_of(plan)
        found = read_owner(plan.state_dir)
        if owner is not None and found is not None and found.does:  # it drives nothing
            owner.close()
            why = f"{found}{found.advice}"
            raise CommandFailed("hand.not_set", channel=chosen.channel, why=why)
        if owner is not None:
            if chosen.attend:
                warn(Text("hand.set_there"))
            with owner:
                return _outcome(plan, chosen, say, owner.ask(**asked))
        if elsewhere := driven_elsewhere(plan):
            raise CommandFailed("hand.not_set", channel=chosen.channel, why=elsewhere)
        if not chosen.attend:
            raise BadUse("hand.attend", idle=idle_text(plan))
        return _attend(plan, chosen, asked)


def _attend(plan: LabPlan, chosen: argparse.Namespace, asked: Mapping[str, Any]) -> int:
    if chosen.speed is None and chosen.for_s is None:
        raise BadUse("hand.endless")
    folder = Path(chosen.out) if chosen.out else fresh_folder(Chance(None).uuid4())
    attendance = Attendance(
        plan, folder, by=str(asked["by"]), speed=chosen.speed, for_s=chosen.for_s, tell=complain
    )
    with stoppable(attendance.stop):
        answer, left = attendance.run(asked, told=partial(_outcome, plan, chosen, say_queued))
    state = Text("cli.not_safe" if left.unverified else "cli.safe")
    say(Text("hand.left", ended=left.ended, state=state))
    say_each(Text("cli.item", text=each) for each in left.unverified)
    if left.tripped:
        say(latched(plan, left.tripped))
    kept = (folder / JOURNAL_NAME).exists()
    say(Text("hand.journal" if kept else "hand.no_journal", folder=str(folder)))
    if left.unverified or left.tripped or not kept:
        return EXIT_FAILED
    return answer


def _outcome(
    plan: LabPlan, chosen: argparse.Namespace, say: Callable[[str], None], answer: Mapping[str, Any]
) -> int:
    """Print how a command ended; return its exit code."""
    if not answer["ok"]:
        warn(answer["error"])
        return EXIT_FAILED
    channel, ending, value = answer["channel"], answer["ending"], answer["read_back"]
    said = Text("hand.ended", channel=channel, ending=ending)
    if value is not None:
        said = Text("hand.reads", ended=said, value=value)
    if answer["detail"]:
        said = Text("pair", what=said, why=answer["detail"])
    say(several(said, answer.get("warning", "")))  # an owner of an older version sends no warning
    first = needed_first(plan, chosen.channel, answer["detail"])
    if first:
        say(first)
    return EXIT_COMPLETED if ending == "unconfirmed" else ENDINGS.get(ending, EXIT_FAILED)


# ---- programs


def program(chosen: argparse.Namespace) -> int:
    """Check a file of segments, store it in an instrument, or steer it there."""
    with with_lab(chosen) as plan:
        try:
            programmer_of(plan.by_name, chosen.instrument)
        except LookupError as why:
            raise BadUse(why.args[0]) from None
        segments = read_program_file(Path(chosen.file)) if "file" in chosen else None
        if segments is not None:
            found = _checked(plan, plan.by_name[chosen.instrument], segments)
            if found or chosen.verb == "check":
                return found
        return _programmed(plan, chosen, segments)


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


def _programmed(plan: LabPlan, chosen: argparse.Namespace, segments: Program | None) -> int:
    """Ask the process that owns the line."""
    try:
        owner = LineControl(plan.state_dir)
    except NoOwner:
        idle = Text("hand.idle" if plan.option else "hand.idle_default", lab=plan.file.lab.id)
        drive = f"labharness set CHANNEL VALUE UNIT --attend{plan.option}"
        raise CommandFailed("cli.program_idle", idle=idle, command=drive) from None
    written = {} if segments is None else {"program": segments.written()}
    asked = {"do": "program", "act": chosen.verb, "instrument": chosen.instrument, **written}
    answer = answer_of(owner, **asked, **signature(chosen))
    ending = answer["ending"]
    said = Text("cli.program", instrument=chosen.instrument, act=chosen.verb, ending=ending)
    if "written" in answer:
        said = Text("cli.program_blocks", ended=said, count=answer["written"])
    say(Text("pair", what=said, why=answer["detail"]) if answer["detail"] else said)
    return ENDINGS.get(ending, EXIT_FAILED)
