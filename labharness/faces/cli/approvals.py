"""``labharness approvals``: the requests that wait for a person, and the decisions on them."""

import argparse
import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from getpass import getpass
from pathlib import Path

from labharness.core.files.signing_key import make_key, read_key
from labharness.core.vocabulary.durations import clock_text
from labharness.core.vocabulary.persons import bad_name
from labharness.core.vocabulary.texts import Text, in_language
from labharness.faces.cli.line_writer import TERMINAL
from labharness.faces.cli.show import BadUse, CommandFailed, chosen_address, looking, say, say_each
from labharness.journal.access_log import log_access
from labharness.journal.encryption import stated_class
from labharness.lab.config.account import account
from labharness.lab.config.approvers import approvers_of
from labharness.lab.wiring.approvals import ApprovalFolder, BadDecision, Pending

PASSPHRASE = "LABHARNESS_PASSPHRASE"
"""The variable that holds the passphrase of a key, for programs."""
VERBS = ("cli.rejects", "cli.approves")


def approvals(chosen: argparse.Namespace) -> None:
    """List, show, approve or reject."""
    place = chosen_address(chosen.lab)
    folder = ApprovalFolder(place.state_dir, approvers=approvers_of(place))
    with looking(place.state_dir, CommandFailed):
        if chosen.verb == "list":
            say_each(_listed(folder.pending()))
        elif chosen.verb == "show":
            say_each(_shown(_read(folder, chosen.id)))
        else:
            say_each(_decided(folder, chosen))


def _read(folder: ApprovalFolder, name: str) -> Pending:
    """Return a request; that of a confidential task is logged as a read of its run."""
    pending, run = folder.read(name), folder.run_of(name)
    if run is not None:
        log_access(
            run,
            data_class=stated_class(run),
            reader=account(),
            via=f"labharness {TERMINAL.command}",
            what="request",
            of_results=False,  # the requester's words, which an approver must know
        )
    return pending


def approvals_key(chosen: argparse.Namespace) -> None:
    """Make a person's key, and print the row of the approvers file that admits it."""
    name, path = chosen.name, Path(chosen.out)
    if why := bad_name(name):
        raise BadUse(why)
    passphrase = _passphrase(path)
    if PASSPHRASE not in os.environ and getpass(_prompt(Text("key.again"))) != passphrase:
        raise BadUse("key.differs")
    public = make_key(path, passphrase)
    say(Text("key.made", path=str(path), name=name))
    say(f'[approvers.{json.dumps(name, ensure_ascii=False)}]\nkey = "{public.hex()}"')


def signer(path: str) -> Callable[[bytes], bytes]:
    """Return what signs with a person's key; its passphrase is asked, or in the environment."""
    return read_key(Path(path), _passphrase(Path(path))).sign


def _passphrase(path: Path) -> str:
    """Return the passphrase of a key, from the environment or from the terminal.

    Raises:
        BadUse: There is no terminal.
    """
    if PASSPHRASE in os.environ:
        return os.environ[PASSPHRASE]
    if not sys.stdin.isatty():
        raise BadUse("key.nobody", path=str(path), name=PASSPHRASE)
    return getpass(_prompt(Text("key.ask", path=str(path))))


def _prompt(text: str) -> str:
    return f"{in_language(text, TERMINAL.language)}: "


def _decided(folder: ApprovalFolder, chosen: argparse.Namespace) -> Iterator[str]:
    agrees = chosen.verb == "approve"
    if agrees and chosen.key and folder.approvers is None:
        raise BadUse("approvers.on_trust")
    signs = signer(chosen.key) if agrees and chosen.key else None
    said = (chosen.id, chosen.name, chosen.reason)
    pending = folder.decide(*said, agrees=agrees, account=account(), sign=signs)
    request = pending.request
    if not agrees:
        yield Text("cli.rejected_by", id=chosen.id, name=chosen.name)
        return
    what = Text("cli.at_level", capability=request.capability, level=request.risk_level)
    yield Text("cli.approved_by", id=chosen.id, name=chosen.name, what=what)
    lacking: object = None
    with suppress(BadDecision):  # the run that waits for it has taken it already
        lacking = folder.verdict(chosen.id, request)
    if isinstance(lacking, str):
        yield lacking
    else:
        yield Text("cli.approval_counts", digest=request.digest())


def _listed(waiting: tuple[Pending, ...]) -> Iterator[str]:
    for each in waiting:
        asked = each.request
        line = Text(
            "cli.pending",
            id=each.id,
            level=asked.risk_level,
            capability=asked.capability,
            took=clock_text(asked.duration_s),
            requester=asked.requester,
            at=each.asked_at,
        )
        said = [Text(VERBS[one.agrees], name=one.name) for one in each.decisions]
        yield Text("cli.pending_said", pending=line, said=said) if said else line
    if not waiting:
        yield Text("cli.nothing_pending")


def _shown(pending: Pending) -> Iterator[str]:
    asked = pending.request
    what = Text("cli.at_level", capability=asked.capability, level=asked.risk_level)
    yield Text("cli.request", id=pending.id, what=what, at=pending.asked_at)
    yield Text("cli.requester", name=asked.requester)
    yield Text("cli.request_risk", reasons=list(asked.risk_reasons))
    yield Text("cli.request_hazards", hazards=list(asked.hazards) or Text("cli.none"))
    yield Text("cli.uncovered", why=asked.why, used_up=pending.used_up)
    yield Text("cli.bound_to", digest=asked.digest())
    yield Text("cli.request_inputs", inputs=json.dumps(asked.inputs, ensure_ascii=False))
    yield Text("cli.request_words", words=repr(asked.intent))
    if asked.proposed_inputs:
        inputs = json.dumps(asked.proposed_inputs, ensure_ascii=False)
        yield Text("cli.request_proposed", inputs=inputs)
    yield Text("cli.request_steps")
    for step in asked.instructions["instructions"]:
        about = step["metadata"]["description"]
        yield Text("cli.request_step", id=f"{step['instructionId']:24}", about=about)
    if asked.prediction is None:
        yield Text("cli.no_flight", took=clock_text(asked.duration_s))
    else:
        from labharness.faces.cli.plan import prediction_lines

        yield from prediction_lines(asked.prediction)
    for one in pending.decisions:
        by = Text(VERBS[one.agrees], name=one.name)
        yield Text("cli.decision", by=by, account=one.account, at=one.at, reason=one.reason)
