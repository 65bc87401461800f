"""A line driven through another lab file: name its owner, or ask it to make the line safe."""

from pathlib import Path

from labharness.faces.cli.show import complain
from labharness.lab import BadLabFile, LabPlan, read_lab
from labharness.lab.config.lock import LockOwner, guarded_elsewhere, owner_elsewhere
from labharness.lab.wiring.control import Late, LineControl, NoOwner

__all__ = ["driven_elsewhere", "guarded_by", "owner_abroad"]


def driven_elsewhere(plan: LabPlan, command: str = "") -> str:
    """Return who drives this line by another lab file, and what to do; ``""`` where nobody does.

    Args:
        plan: The lab's files.
        command: What can be asked of the owner, by its own lab file.
    """
    owner = _owner(plan)
    if owner is None:
        return ""
    if command and owner.lab_option:
        return f"{owner.abroad}; ask it there: labharness {command}{owner.lab_option}"
    return f"{owner.abroad}{owner.advice}"


def _owner(plan: LabPlan) -> LockOwner | None:
    return owner_elsewhere(plan.identities(), plan.state_dir)


def owner_abroad(plan: LabPlan, late: Late) -> LineControl | None:
    """Reach who drives this line by another lab file: what makes it safe is for its owner to do.

    Raises:
        PermissionError: This account may not knock at its door; the message says who may.
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
    complain(f"labharness safe: the guard of {other} has the ports: made safe through it")
    return found
