"""The owner of a line: ask it, or name one that came by another lab file."""

import argparse
from pathlib import Path
from typing import Any

from labharness.core.vocabulary.texts import Text
from labharness.faces.cli.show import CommandFailed, warn
from labharness.lab import BadLabFile, LabPlan, read_lab
from labharness.lab.config.account import account
from labharness.lab.config.lock import LockOwner, guarded_elsewhere, owner_elsewhere
from labharness.lab.wiring.control import Late, LineControl, NoOwner


def signature(chosen: argparse.Namespace) -> dict[str, str]:
    """Return the person who asks, and the reason, as the owner of a line takes them."""
    return {"by": chosen.name or account(), "reason": chosen.reason}


def answer_of(owner: LineControl, **asked: object) -> dict[str, Any]:
    """Ask the owner of a line, and hang up.

    Raises:
        CommandFailed: It refuses.
    """
    with owner:
        answer = owner.ask(**asked)
    if not answer["ok"]:
        raise CommandFailed(answer["error"])
    return answer


def driven_elsewhere(plan: LabPlan, command: str = "") -> str:
    """Return which process drives this line by another lab file, and the remedy; ``""`` if none.

    Args:
        plan: The lab's files.
        command: A command that its owner takes by its own lab file.
    """
    owner = _owner(plan)
    if owner is None:
        return ""
    if command and owner.lab_option:
        there = f"labharness {command}{owner.lab_option}"
        return Text("hand.ask_there", owner=owner.abroad, command=there)
    return Text("owner.busy", owner=owner.abroad, advice=owner.advice)


def _owner(plan: LabPlan) -> LockOwner | None:
    return owner_elsewhere(plan.identities(), plan.state_dir)


def owner_abroad(plan: LabPlan, late: Late) -> LineControl | None:
    """Reach the process that drives this line by another lab file: it has to make the line safe.

    Raises:
        PermissionError: This account may not use its socket; the message names one that may.
    """
    owner = _owner(plan)
    if owner is None or not owner.state_dir:
        return None
    try:
        return LineControl(Path(owner.state_dir), late)
    except NoOwner:
        return None


def guarded_by(plan: LabPlan) -> LabPlan:
    """Return the lab whose guard process has these ports: only through it are they reached."""
    other = guarded_elsewhere(plan.identities(), plan.state_dir)
    if other is None:
        return plan
    try:
        found = read_lab(other)
    except BadLabFile:
        return plan
    warn(Text("hand.guard_has", lab=str(other)))
    return found
