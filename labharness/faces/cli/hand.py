"""``labharness read|set``: look at channels of a line, or set one, by hand.

If a process owns the line, each command goes through its control socket. Without an owner only
reading works. ``set --attend`` makes this process the owner, which leaves the line safe at its end.
"""

import argparse
import json
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from labharness.core.clock import Chance
from labharness.core.vocabulary.texts import Text, several
from labharness.faces.cli import EXIT_COMPLETED, EXIT_FAILED, EXIT_REJECTED
from labharness.faces.cli.owner import driven_elsewhere, idle_text, owner_of, signature
from labharness.faces.cli.show import (
    BadUse,
    CommandFailed,
    chosen_lab,
    complain,
    latched,
    looking,
    say,
    say_queued,
    warn,
)
from labharness.faces.cli.stopping import stoppable
from labharness.faces.cli.watching import value_text
from labharness.lab import LabPlan
from labharness.lab.config.channels import BadChannel, check_readable, check_settable, needed_first
from labharness.lab.config.lock import read_owner
from labharness.lab.operate.attend import Attendance
from labharness.lab.operate.idle_line import read_now
from labharness.lab.wiring.runs import fresh_folder
from labharness.work.desk.folder import JOURNAL_NAME


def hand(chosen: argparse.Namespace) -> int:
    """Carry out one command; return its exit code."""
    plan = chosen_lab(chosen.lab)
    with looking(plan.state_dir):
        return (_read if chosen.command == "read" else _set)(plan, chosen)


def _read(plan: LabPlan, chosen: argparse.Namespace) -> int:
    answers: dict[str, Mapping[str, Any]] = {}
    for channel in chosen.channels:
        try:
            check_readable(plan, channel)
        except BadChannel as why:
            answers[channel] = {"ok": False, "error": str(why)}
    there = [channel for channel in chosen.channels if channel not in answers]
    owner = owner_of(plan) if there else None
    if owner is not None:
        with owner:
            answers |= {each: owner.ask(do="read", channel=each) for each in there}
    elif there:
        answers |= zip(there, read_now(plan, there), strict=True)
    found = [answers[channel] for channel in chosen.channels]
    for channel, each in zip(chosen.channels, found, strict=True):
        if not each["ok"]:
            warn(Text("pair", what=channel, why=each["error"]))
        elif not chosen.json:
            say(f"{channel} {value_text(each['value'])} {each['unit']}".rstrip())
    if chosen.json:
        say(json.dumps(found, ensure_ascii=False))
    return EXIT_COMPLETED if all(each["ok"] for each in found) else EXIT_FAILED


def _set(plan: LabPlan, chosen: argparse.Namespace) -> int:
    check_settable(plan, chosen.channel, chosen.value, chosen.unit)
    asked = {
        "do": "set",
        "channel": chosen.channel,
        "value": chosen.value,
        "unit": chosen.unit,
        **signature(chosen),
    }
    owner = owner_of(plan)
    found = read_owner(plan.state_dir)
    if owner is not None and found is not None and found.does:  # it drives nothing
        owner.close()
        why = f"{found}{found.advice}"
        raise CommandFailed(Text("hand.not_set", channel=chosen.channel, why=why))
    if owner is not None:
        if chosen.attend:
            warn(Text("hand.set_there"))
        with owner:
            return _outcome(plan, chosen, say, owner.ask(**asked))
    if elsewhere := driven_elsewhere(plan):
        raise CommandFailed(Text("hand.not_set", channel=chosen.channel, why=elsewhere))
    if not chosen.attend:
        raise BadUse(Text("hand.attend", idle=idle_text(plan)))
    return _attend(plan, chosen, asked)


def _attend(plan: LabPlan, chosen: argparse.Namespace, asked: Mapping[str, Any]) -> int:
    if chosen.speed is None and chosen.for_s is None:
        raise BadUse(Text("hand.endless"))
    folder = Path(chosen.out) if chosen.out else fresh_folder(Chance(None).uuid4())
    attendance = Attendance(
        plan, folder, by=str(asked["by"]), speed=chosen.speed, for_s=chosen.for_s, tell=complain
    )
    with stoppable(attendance.stop):
        answer, left = attendance.run(asked, told=partial(_outcome, plan, chosen, say_queued))
    state = Text("cli.not_safe" if left.unverified else "cli.safe")
    say(Text("hand.left", ended=left.ended, state=state))
    for each in left.unverified:
        say(Text("cli.item", text=each))
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
    if ending in ("confirmed", "unconfirmed"):
        return EXIT_COMPLETED
    return EXIT_REJECTED if ending == "refused" else EXIT_FAILED
