"""Signs the standing approvals of a simulated lab again, after an edit of its files.

Run as ``python -m labharness.lab.wiring.approve_sim [LAB_FILE ...]``; ``make approve-sim`` does it
for the labs in the repository.
"""

import sys
from dataclasses import replace
from pathlib import Path

from labharness.lab.config.address import default_lab_path
from labharness.lab.config.lab_facts import repository_key
from labharness.lab.config.lab_file import BadLabFile, read_text
from labharness.lab.config.lab_plan import LabPlan, read_lab
from labharness.work.admission.approval import StandingApproval, read_approval, sign, write_approval


def approve(plan: LabPlan) -> tuple[Path, ...]:
    """Write the standing approvals of a lab anew, signed over its files as they are.

    The first one is made where it is missing.

    Raises:
        BadLabFile: The lab names no approval, or has a link that is not a loopback.
    """
    if plan.real_ports or not plan.file.lab.approvals:
        raise BadLabFile("approval.loopback_only", path=str(plan.path))
    first, *others = map(plan.beside, plan.file.lab.approvals)
    paths = (first, *(each for each in others if each.exists()))
    for path in paths:
        given = read_approval(read_text(path)) if path.exists() else _first(plan)
        bound = replace(given, envelope_digest=plan.envelope_digest, lab_digest=plan.lab_digest)
        path.write_text(write_approval(sign(bound, repository_key())), "utf-8")
    return paths


def main(arguments: list[str]) -> int:
    """Approve each lab file named, or the one that ships."""
    for path in [Path(each) for each in arguments] or [default_lab_path()]:
        for signed in approve(read_lab(path)):
            sys.stdout.write(f"signed {signed}\n")
    return 0


def _first(plan: LabPlan) -> StandingApproval:
    return StandingApproval(
        id=f"{plan.file.lab.id}-standing",
        capability=next(iter(plan.file.capability), ""),
        risk_max="R3",
        input_limits={"temperature_c_max": 799.0},
        gases_allowed=("argon", "nitrogen"),
        envelope_digest="",
        lab_digest="",
        given_by="labharness maintainers",
        reason="simulated instruments only: nothing can be harmed",
        until="2036-01-01T00:00:00Z",
        links="loopback",
    )


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
