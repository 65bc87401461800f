"""``labharness run``: one task from a file to its answer."""

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from labharness.core.clock import Chance, utc_text, wall_clock_utc
from labharness.core.files.named import open_named
from labharness.core.vocabulary.durations import clock_text, parse_duration
from labharness.core.vocabulary.texts import Text, in_language
from labharness.faces.cli import (
    EXIT_ABORTED,
    EXIT_COMPLETED,
    EXIT_FAILED,
    EXIT_REJECTED,
    EXIT_USAGE,
)
from labharness.faces.cli.line_writer import TERMINAL, is_live
from labharness.faces.cli.live import LiveLine
from labharness.faces.cli.show import (
    OutputLost,
    chosen_lab,
    complain,
    drop_output,
    say,
)
from labharness.faces.cli.stopping import stoppable
from labharness.faces.report.answer_face import face_of
from labharness.faces.report.words import phase_text, plain
from labharness.journal import JournalFailed
from labharness.lab.wiring.operators import TerminalOperator
from labharness.lab.wiring.tasks import RunResult, TaskRun
from labharness.protocols.hcp import answers
from labharness.protocols.hcp.codec import (
    MESSAGE_BYTES_MAX,
    BadPayload,
    HcpMessage,
    NotHcp,
    decode,
    encode,
)
from labharness.protocols.hcp.messages import TaskSubmit
from labharness.work.desk.folder import ANSWER_NAME, JOURNAL_NAME, REPORT_NAME
from labharness.work.plan import Operator

__all__ = ["read_submit", "run"]

A_TASK = "examples/mos2-monolayer.json"  # of the checkout, and of the README
FAST_TICKS = 10  # minutes of lab time between two lines within a step, when time is virtual
EXITS = {
    "task_completed": EXIT_COMPLETED,
    "task_failed": EXIT_FAILED,
    "task_rejected": EXIT_REJECTED,
    "event": EXIT_ABORTED,
}


def run(chosen: argparse.Namespace) -> int:
    """Run one task; return the exit code."""
    if chosen.speed is None and chosen.approval_timeout:
        complain("labharness run: --approval-timeout takes --speed real or N: nobody can keep up")
        return EXIT_USAGE
    try:
        submit, payload = read_submit(Path(chosen.task))
        plan = chosen_lab(chosen.lab)
        told = _Progress(
            quiet=chosen.json,
            fast=chosen.speed is None,
            lab_option=plan.option,
            live=LiveLine() if is_live() and not chosen.json else None,
        )
        operator: Operator | None = None
        if plan.file.operator.kind == "terminal":
            operator = TerminalOperator(_ask)
        task = TaskRun(
            plan,
            submit,
            payload,
            speed=chosen.speed,
            seed=chosen.seed,
            out=Path(chosen.out) if chosen.out else None,
            operator=operator,
            approval_wait_s=chosen.approval_timeout,
            tell=told.tell,
            log_level=chosen.log_level,
        )
        told.head = f"{plan.file.lab.title} · session {task.session_id} · {task.folder}"
        with stoppable(task.abort):
            result = task.execute()
    except BadPayload as why:
        if why.message.type != "task_submit":
            complain(f"labharness run: {chosen.task} holds a message of type {why.message.type!r}")
            return EXIT_USAGE
        return _reject(why, chosen.json)
    try:
        if chosen.json:
            say(encode(result.message).decode())
        else:
            told.report()
            _report(result)
            _print(result, payload.capability)
    except BrokenPipeError:  # nobody reads; the answer is in its folder, the exit code stands
        drop_output()
    except OutputLost as why:
        complain(f"labharness run: {why}; the answer is in {result.folder}")
    return EXITS[result.message.type]


def _report(result: RunResult) -> None:
    from labharness.faces.cli.report import write_report

    try:
        write_report(result.folder)
    except (OSError, ValueError, JournalFailed) as why:  # the answer stands without it
        complain(f"labharness run: the report of {result.folder} cannot be made: {why}")


def read_submit(path: Path) -> tuple[HcpMessage, TaskSubmit]:
    """Read a ``task_submit`` from a file.

    Raises:
        NotHcp: It is no HCP message, or another one.
        BadPayload: Its payload cannot be read.
    """
    message = _read(path)
    if not isinstance(message.payload, TaskSubmit):
        raise NotHcp(f"{path} holds a message of type {message.type!r}, no task_submit")
    return message, message.payload


def _read(path: Path) -> HcpMessage:
    try:
        with open_named(path) as file:
            data = file.read(MESSAGE_BYTES_MAX + 1)
    except OSError as why:
        raise NotHcp(f"{path}: {why.strerror}") from None
    if len(data) > MESSAGE_BYTES_MAX:
        raise NotHcp(f"{path} is no HCP message: it has more than {MESSAGE_BYTES_MAX} bytes")
    try:
        return decode(data)
    except NotHcp as why:
        hint = "" if data.lstrip().startswith(b"{") else f"; {A_TASK} is a task"
        raise NotHcp(f"{path} is no HCP message: {why}{hint}") from None


def _reject(why: BadPayload, as_json: bool) -> int:
    message = answers.task_rejected(
        message_id=Chance(None).uuid4(),
        timestamp=utc_text(wall_clock_utc()),
        in_reply_to=why.message.message_id,
        rejected=why.rejected(),
    )
    if as_json:
        say(encode(message).decode())
    else:
        _print_rejected(message.payload.model_dump(exclude_unset=True))
    return EXIT_REJECTED


def _ask(prompt: str) -> str:
    """Ask beside the answer, which is alone on standard output; raises ``EOFError``."""
    TERMINAL.unpin()
    TERMINAL.flush()
    sys.stderr.write(prompt)
    sys.stderr.flush()
    try:
        return input()
    except EOFError:
        if sys.stdin.isatty():  # Ctrl-D, which is no name and no end
            return ""
        raise


class _Progress:
    """Prints events as they happen, on standard error; nothing when a program listens.

    On a terminal what happens goes on in one line, and what is to be read stands above it.

    Attributes:
        head: What runs where; printed before the first event, so that an error stands alone.
    """

    def __init__(self, *, quiet: bool, fast: bool, lab_option: str, live: LiveLine | None) -> None:
        self.head = ""
        self._live = live
        self._percent = 0.0
        self._quiet = quiet
        self._lab_option = lab_option
        self._every = FAST_TICKS if fast else 1
        self._ticks = 0
        self._stage = ""

    def tell(self, kind: str, data: Mapping[str, Any]) -> None:
        """Print one event."""
        if self._quiet:
            return
        if self.head:
            complain(self.head)
            self.head = ""
        if kind == "begun":
            self._show(phase=plain("phase.preflight"))
        elif kind == "progress" and self._live is not None:
            self._percent = data["percent"]
            words = {
                "phase": phase_text(str(data["stage"])),
                "step": in_language(data["message"], TERMINAL.language),
            }
            self._show(data["percent"], **words, values="", left="")
        elif kind == "progress":
            stage = phase_text(str(data["stage"]))
            shown = stage if stage != self._stage else ""
            self._stage = stage
            self._ticks = 0
            said = Text(
                "cli.progress",
                percent=data["percent"],
                stage=f"{shown:18}",
                message=data["message"],
            )
            complain(said)
        elif kind == "tick":
            self._ticks += 1
            values = ", ".join(
                f"{name} {value:.4g}/{setpoint:.4g}"
                for name, (setpoint, value) in data["values"].items()
            )
            if self._live is not None:
                self._show(self._percent, values=values, left=f"{clock_text(data['left_s'])} left")
            elif self._ticks % self._every == 0:
                complain(f"{'':28}{values} · {clock_text(data['left_s'])} left")
        elif kind == "approval_asked":
            name, lab = data["id"], self._lab_option
            complain(f"{'':8}look at it: labharness approvals show {name}{lab}")
            complain(
                f"{'':8}then: labharness approvals approve {name} --name WHO --reason WHY{lab}"
            )
        elif kind == "task_accepted":
            level, reasons = data["risk_level"], data["risk_reasons"]
            complain(Text("cli.accepted", level=level, reasons=reasons))
        elif kind in ("warning", "error", "log"):
            complain(Text("cli.event", kind=kind, message=data["message"]))

    def report(self) -> None:
        """Say that the report is made; the line goes away with the answer."""
        self._show(phase=plain("phase.report"), step="", values="", left="")

    def _show(self, percent: float | None = None, **words: str) -> None:
        if self._live is not None:
            self._live.show(percent, now=percent is None, **words)


def _print(result: RunResult, capability: str) -> None:
    body = result.message.payload.model_dump(by_alias=True, exclude_unset=True)
    if result.message.type == "task_rejected":
        _print_rejected(body)
    elif result.message.type == "event":
        unverified = body["data"].get("warnings", [])
        state = Text("cli.not_safe" if unverified else "cli.safe")
        say(Text("cli.aborted", why=body["data"]["reason"], state=state))
        for each in unverified:
            say(Text("cli.item", text=each))
    elif result.message.type == "task_failed":
        say(Text("cli.failed", code=body["error_code"], why=body["error_message"]))
        if body.get("suggestion"):
            say(Text("cli.suggestion", text=body["suggestion"]))
    else:
        for line in face_of({"capability": capability}).lines(
            body["outputs"], body["execution_summary"]
        ):
            say(line)
    if "execution_summary" in body:
        done = body["execution_summary"]
        took = clock_text(parse_duration(done["duration"]))
        say(Text("cli.steps", count=done["steps_executed"], took=took))
        for each in done["risk_events"]:
            say(Text("cli.risk_event", text=each))
        for each in body["artifacts"]:
            say(f"  {each['name']:20} {each['size_bytes']:>9} bytes  {each['uri']}")
    say(_kept(result.folder))
    if (result.folder / REPORT_NAME).exists():
        say(Text("cli.open", path=str(result.folder / REPORT_NAME)))


def _kept(folder: Path) -> str:
    """Return what of a run its folder holds; somebody may have taken it away meanwhile."""
    names = {"answer": ANSWER_NAME, "journal": JOURNAL_NAME, "report": REPORT_NAME}
    there = [what for what, name in names.items() if (folder / name).exists()]
    *first, last = there or ["no answer, journal or report"]
    return f"{', '.join(first)} and {last}: {folder}" if first else f"{last}: {folder}"


def _print_rejected(body: Mapping[str, Any]) -> None:
    say(Text("cli.rejected", code=body["reason_code"], why=body["reason_message"]))
    if body.get("suggestion"):
        say(Text("cli.suggestion", text=body["suggestion"]))
