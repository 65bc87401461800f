"""The answer of a task on a terminal: results or reason, files, and the report of its run."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from labharness.core.errors import LabError
from labharness.core.vocabulary.durations import clock_text, parse_duration
from labharness.core.vocabulary.texts import Text
from labharness.faces.cli import EXIT_ABORTED, EXIT_COMPLETED, EXIT_FAILED, EXIT_REJECTED
from labharness.faces.cli.show import say, say_each, warn
from labharness.faces.report.answer_face import face_of
from labharness.journal.encryption import stated_class
from labharness.protocols.hcp.codec import HcpMessage, encode
from labharness.protocols.hcp.terms import Rejected
from labharness.work.desk.folder import ANSWER_NAME, JOURNAL_NAME, REPORT_NAME
from labharness.work.desk.redaction import referred_in

EXITS = {
    "task_completed": EXIT_COMPLETED,
    "task_failed": EXIT_FAILED,
    "task_rejected": EXIT_REJECTED,
    "event": EXIT_ABORTED,
}
"""The exit code of each message that ends a task; of events only the end of an abort does."""

KEPT = {
    "cli.the_answer": ANSWER_NAME,
    "cli.the_journal": JOURNAL_NAME,
    "cli.the_report": REPORT_NAME,
}


def report_run(folder: Path) -> None:
    """Write the report of a run that has none; a failure to is told, and the answer stands."""
    if (folder / REPORT_NAME).exists() or stated_class(folder):  # it would be in clear
        return
    from labharness.faces.cli.report import write_report

    try:
        write_report(folder)
    except (OSError, ValueError, LabError) as why:
        warn(Text("cli.no_report", folder=str(folder), why=str(why)))


def print_message(message: HcpMessage, capability: str) -> None:
    """Print the terminal message of a run for a person."""
    body = message.payload.stated()
    if message.type == "task_rejected":
        say_each(_reason("cli.rejected", body["reason_code"], body["reason_message"], body))
    elif message.type == "event":
        unverified = body["data"].get("warnings", [])
        state = Text("cli.not_safe" if unverified else "cli.safe")
        say(Text("cli.aborted", why=body["data"]["reason"], state=state))
        say_each(Text("cli.item", text=each) for each in unverified)
    elif message.type == "task_failed":
        say_each(_reason("cli.failed", body["error_code"], body["error_message"], body))
    elif uri := referred_in(body["outputs"]):
        say(Text("cli.completed_confidential", uri=uri))
    else:
        face = face_of({"capability": capability})
        say_each(face.lines(body["outputs"], body.get("execution_summary", {})))
    if "execution_summary" in body:
        done = body["execution_summary"]
        if {"duration", "steps_executed"} <= done.keys():  # another maker's lab need not tell
            took = clock_text(parse_duration(done["duration"]))
            say(Text("cli.steps", count=done["steps_executed"], took=took))
        for each in done.get("risk_events", ()):
            text = each["text"] if isinstance(each, Mapping) else each  # of another maker's lab
            say(Text("cli.risk_event", text=text))
        for each in body.get("artifacts", ()):
            size = f"{each['size_bytes']:>9}"
            say(Text("cli.artifact", name=f"{each['name']:20}", size=size, uri=each["uri"]))


def say_answer(message: HcpMessage, capability: str, as_json: bool) -> int:
    """Print the message that ends a task; return its exit code."""
    if as_json:
        say(encode(message).decode())
    else:
        print_message(message, capability)
    return EXITS[message.type]


def print_files(folder: Path) -> None:
    """Print which files of a run its folder holds; they may have been taken away meanwhile."""
    kept = [Text(code) for code, name in KEPT.items() if (folder / name).exists()]
    if kept:
        *first, last = kept
        what = Text("cli.and", first=first, last=last) if first else last
        say(Text("pair", what=what, why=str(folder)))
    else:
        say(Text("cli.kept_nothing", folder=str(folder)))
    if (folder / REPORT_NAME).exists():
        say(Text("cli.open", path=str(folder / REPORT_NAME)))


def rejection(why: Rejected) -> Iterator[str]:
    """Return why a task would be rejected, and a suggestion."""
    return _reason("cli.would_reject", why.reason_code, why.reason_message, asdict(why))


def _reason(told: str, code: str, why: str, body: Mapping[str, Any]) -> Iterator[str]:
    yield Text(told, code=code, why=why)
    if body.get("suggestion"):
        yield Text("cli.suggestion", text=body["suggestion"])
