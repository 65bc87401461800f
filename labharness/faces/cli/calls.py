"""``submit``, ``watch``, ``result`` and ``abort`` with ``--callee``: a lab behind a broker."""

import argparse
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

from labharness.core.clock import Chance, steady_s
from labharness.core.vocabulary.texts import Text
from labharness.faces.caller import AnswerLate, Gap, KnownTask, SyncCaller, UnknownTask
from labharness.faces.cli import EXIT_COMPLETED
from labharness.faces.cli.answer_said import EXITS, say_answer
from labharness.faces.cli.brokers import broker_of
from labharness.faces.cli.show import BadUse, complain, say
from labharness.faces.cli.submission import read_submit
from labharness.lab.config.address import account_home
from labharness.protocols.hcp.codec import HcpMessage, encode

LOCAL: Final = ("after", "seed", "lab")
"""Options for the house of a lab on this machine."""

WITHIN_S: Final = 60.0
"""Longest wait (s) for an answer, unless another is given."""

CONNECT_S_MAX: Final = 15.0
"""Longest time (s) for the broker to let this account in."""

FILES: Final = "callers"
"""The folder of the files of tasks, in the account's state directory."""


@contextmanager
def _caller(chosen: argparse.Namespace) -> Iterator[SyncCaller]:
    """Connect, so that a wrong address is told before anything is kept to be sent."""
    if not chosen.callee:
        raise BadUse("call.no_lab")
    chosen.within = chosen.within or WITHIN_S
    for each in LOCAL:
        if getattr(chosen, each, None):
            raise BadUse("call.local_only", option=f"--{each}")
    broker = broker_of(chosen)
    name = re.sub(r"[^\w.@-]", "_", f"{broker.account}@{broker.place}")
    path = Path(chosen.file) if chosen.file else account_home() / FILES / f"{name}.sqlite"
    with SyncCaller(broker, path, warn=complain) as caller:
        caller.connected(min(chosen.within, CONNECT_S_MAX))
        yield caller


def submit(chosen: argparse.Namespace) -> int:
    """Send a task to a lab; with ``--wait`` stay until its end."""
    with _caller(chosen) as caller:
        _, payload = read_submit(Path(chosen.task))
        message_id = chosen.key or Chance(None).uuid4()
        fresh = True
        with suppress(UnknownTask):
            fresh = caller.task(message_id).message_id != message_id
        body = payload.stated()
        caller.submit(chosen.callee, body, message_id=message_id, within_s=chosen.within)
        task = caller.received(message_id, chosen.within)
        told = {
            "message_id": message_id,
            "session_id": task.session.session_id if task.session else None,
        }
        if not chosen.json:
            shown = told | {"session_id": told["session_id"] or "-"}
            code = "call.submitted" if fresh else "call.known"
            say(Text(code, callee=chosen.callee, **shown))
        elif not (chosen.wait or task.end):
            say(json.dumps({**told, "fresh": fresh}))
        return _followed(caller, task, chosen) if chosen.wait or task.rejected else EXIT_COMPLETED


def watch(chosen: argparse.Namespace) -> int:
    """Show what is told of a task up to its end."""
    with _caller(chosen) as caller:
        if len(chosen.names) != 1:
            raise BadUse("call.one_task")
        return _followed(caller, caller.task(chosen.names[0]), chosen, also_events=chosen.json)


def result(chosen: argparse.Namespace) -> int:
    """Print the answer of a task, as soon as there is one."""
    with _caller(chosen) as caller:
        end = caller.result(caller.task(chosen.id).message_id, chosen.within)
        return say_answer(end, "", chosen.json)


def abort(chosen: argparse.Namespace) -> int:
    """Have a task aborted; with ``--wait`` stay until its end."""
    with _caller(chosen) as caller:
        task = caller.task(chosen.id)
        told = "call.ended_already" if task.end else "call.abort_asked"
        caller.abort(task.message_id, chosen.reason, chosen.within)
        if not chosen.json:
            say(Text(told, message_id=task.message_id))
        return _followed(caller, task, chosen) if chosen.wait else EXIT_COMPLETED


def _followed(
    caller: SyncCaller, task: KnownTask, chosen: argparse.Namespace, *, also_events: bool = False
) -> int:
    """Show what is told of a task up to its end, then its answer; return the exit code of that."""
    for_s = getattr(chosen, "for_s", None)
    end_s = None if for_s is None else steady_s() + for_s
    try:
        for each in caller.events(task.message_id, *(() if for_s is None else (for_s,))):
            if also_events:
                say(_json_of(each))
            elif not chosen.json and (line := _line(each)):
                complain(line)
            if end_s is not None and steady_s() > end_s:
                return EXIT_COMPLETED
    except AnswerLate:
        if for_s is not None:
            return EXIT_COMPLETED
        raise
    end = caller.result(task.message_id)
    return EXITS[end.type] if also_events else say_answer(end, "", chosen.json)


def _json_of(each: HcpMessage | Gap) -> str:
    if isinstance(each, HcpMessage):
        return encode(each).decode()
    gap = {"session_id": each.session_id, "first": each.first, "last": each.last}
    return json.dumps({"gap": gap})


def _line(each: HcpMessage | Gap) -> str:
    """Return one line about an event; ``""`` for an answer, which is told at the end."""
    if isinstance(each, Gap):
        return Text("call.gap", session_id=each.session_id, first=each.first, last=each.last)
    if each.type != "event":
        return ""
    body: dict[str, Any] = each.payload.model_dump()
    data = body["data"]
    told = [data[name] for name in TOLD if isinstance(data.get(name), str | int | float)]
    words = [f"{one:g} %" if isinstance(one, int | float) else str(one) for one in told]
    return "  ".join([each.timestamp, f"{body['event_type']:<18}", *words])


TOLD: Final = (
    *("state", "from_state", "to_state", "final_state", "stage", "percent", "result_type"),
    *("level", "code", "checkpoint_id", "message", "description", "reason"),
)
"""The fields of an event that people are shown, in this order."""
