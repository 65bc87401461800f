"""``labharness approvals``: what waits for a person, and what a person says of it."""

import argparse
import json
from collections.abc import Iterator

from labharness.core.errors import LabError
from labharness.core.vocabulary.durations import clock_text
from labharness.faces.cli import EXIT_COMPLETED, EXIT_FAILED
from labharness.faces.cli.plan import prediction_lines
from labharness.faces.cli.show import account, chosen_lab, complain, say
from labharness.lab.wiring.approvals import ApprovalFolder, Pending

__all__ = ["approvals"]


def approvals(chosen: argparse.Namespace) -> int:
    """List, show, approve or reject; return the exit code."""
    try:
        plan = chosen_lab(chosen.lab)
        folder = ApprovalFolder(plan.state_dir)
        if chosen.verb == "list":
            for line in _listed(folder.pending()):
                say(line)
        elif chosen.verb == "show":
            for line in _shown(folder.read(chosen.id)):
                say(line)
        else:
            _decide(folder, chosen)
    except (BrokenPipeError, LabError):
        raise  # the command line's own matter
    except OSError as why:
        complain(f"labharness approvals: {why.filename or plan.state_dir}: {why.strerror}")
        return EXIT_FAILED
    return EXIT_COMPLETED


def _decide(folder: ApprovalFolder, chosen: argparse.Namespace) -> None:
    agrees = chosen.verb == "approve"
    pending = folder.decide(chosen.id, chosen.name, chosen.reason, agrees=agrees, account=account())
    request = pending.request
    if not agrees:
        say(f"{chosen.id} rejected by {chosen.name}")
        return
    say(f"{chosen.id} approved by {chosen.name}: {request.capability} at {request.risk_level}")
    lacking = folder.verdict(chosen.id, request)
    if isinstance(lacking, str):
        say(lacking)
    else:
        say(f"it counts once, within a day, for exactly this plan ({request.digest()})")


def _listed(waiting: tuple[Pending, ...]) -> Iterator[str]:
    for each in waiting:
        asked = each.request
        said = ", ".join(
            f"{'approved' if one.agrees else 'rejected'} by {one.name}" for one in each.decisions
        )
        yield (
            f"{each.id}  {asked.risk_level}  {asked.capability}  {clock_text(asked.duration_s)}  "
            f"for {asked.requester}, asked {each.asked_at}" + (f"  ({said})" if said else "")
        )
    if not waiting:
        yield "nothing waits for approval"


def _shown(pending: Pending) -> Iterator[str]:
    asked = pending.request
    yield f"{pending.id}: {asked.capability} at {asked.risk_level}, asked {pending.asked_at}"
    yield f"requester   {asked.requester} (cannot approve it)"
    yield f"risk        {'; '.join(asked.risk_reasons)}"
    yield f"hazards     {', '.join(asked.hazards) or 'none'}"
    yield f"no standing approval covers it: {asked.why}{pending.used_up}"
    yield f"bound to    {asked.digest()}"
    yield f"inputs      {json.dumps(asked.inputs, ensure_ascii=False)}"
    yield f"the caller's words, which nothing obeys: {asked.intent!r}"
    yield "steps"
    for step in asked.instructions["instructions"]:
        yield f"  {step['instructionId']:24} {step['metadata']['description']}"
    if asked.prediction is None:
        yield f"takes {clock_text(asked.duration_s)}; no simulated plant here to fly it on first"
    else:
        yield from prediction_lines(asked.prediction)
    for one in pending.decisions:
        verb = "approved" if one.agrees else "rejected"
        yield f"{verb} by {one.name} ({one.account}) at {one.at}: {one.reason}"
