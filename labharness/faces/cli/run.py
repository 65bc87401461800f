"""``labharness run``: one task from a file to its answer."""

import argparse
import io
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Thread
from typing import Any, Literal

from labharness.core.clock import Chance, steady_s, utc_text, wall_clock_utc
from labharness.core.vocabulary.durations import clock_text
from labharness.core.vocabulary.texts import Text, in_language
from labharness.faces.cli import EXIT_FAILED
from labharness.faces.cli.answer_said import EXITS, print_files, report_run, say_answer
from labharness.faces.cli.line_writer import TERMINAL, is_live
from labharness.faces.cli.records import journal_in
from labharness.faces.cli.show import (
    BadUse,
    OutputLost,
    chosen_lab,
    complain,
    drop_output,
    warn,
)
from labharness.faces.cli.stopping import stoppable
from labharness.faces.cli.submission import read_submit
from labharness.faces.cli.tasks import follow, submit_to_house
from labharness.faces.report.words import phase_text
from labharness.instruments.link.conversation import is_up
from labharness.journal.reading import run_header
from labharness.lab.wiring.operators import TerminalOperator
from labharness.lab.wiring.tasks import RunResult, TaskRun, lab_facts_without_line
from labharness.protocols.hcp import answers
from labharness.protocols.hcp.codec import BadPayload
from labharness.protocols.hcp.messages import ResumeFrom
from labharness.work.desk.checkpoint import checkpoints
from labharness.work.desk.facts import is_without_line

SHOWN_S_MIN = 0.1  # between two drawings: the eye sees no more
EARLY_S = 0.05  # for which a loop may stand still


def run(chosen: argparse.Namespace) -> int:
    """Run one task; return the exit code."""
    if chosen.speed is None and chosen.approval_timeout:
        raise BadUse("cli.approval_timeout")
    try:
        submit, payload = read_submit(Path(chosen.task))
        plan = chosen_lab(chosen.lab)
        if is_up(plan.state_dir):  # its house runs the task, and this command stays until its end
            own = (chosen.out, chosen.resume, chosen.approval_timeout)
            if any(own) or chosen.speed is not None:
                raise BadUse("house.attached")
            answer = submit_to_house(plan, Path(chosen.task), chosen.seed)
            return follow(plan, answer["task_id"], chosen.json)
        earlier = Path(chosen.resume) if chosen.resume else None
        if earlier is not None:
            payload = payload.model_copy(update={"resume_from": _newest_checkpoint(earlier)})
            submit = replace(submit, payload=payload)
        told = _Progress(
            quiet=chosen.json,
            fast=chosen.speed is None,
            lab_option=plan.option,
            live=is_live() and not chosen.json,
        )
        early = _EarlyAnswer(payload.capability, chosen.json)
        out = Path(chosen.out) if chosen.out else None
        facts = lab_facts_without_line(plan)
        task = TaskRun(
            plan,
            submit,
            payload,
            speed=chosen.speed,
            seed=chosen.seed,
            out=out,
            operator=TerminalOperator(_ask) if plan.file.operator.kind == "terminal" else None,
            approval_wait_s=chosen.approval_timeout,
            tell=told.tell,
            answered=early.take,
            log_level=chosen.log_level,
            earlier=earlier,
            waits=not plan.real_ports,
            without_line=facts if is_without_line(facts, payload) else None,
        )
        told.head = f"{plan.file.lab.title} · session {task.session_id} · {task.folder}"
        with stoppable(task.stop, lost=task.abort):
            result = task.execute()
    except BadPayload as why:
        if why.message.type != "task_submit":
            told_type = repr(why.message.type)
            raise BadUse("cli.other_type", path=chosen.task, type=told_type) from None
        message = answers.task_rejected(
            message_id=Chance(None).uuid4(),
            timestamp=utc_text(wall_clock_utc()),
            in_reply_to=why.message.message_id,
            rejected=why.rejected(),
        )
        return say_answer(message, "", chosen.json)
    early.wait()
    with _answer_stays(result):
        if not early.taken:
            say_answer(result.message, payload.capability, chosen.json)
        if not chosen.json:
            told.report()
            report_run(result.folder)
            print_files(result.folder)
    if result.watches and (result.cooled is None or not result.cooled.safe):
        return EXIT_FAILED
    return EXITS[result.message.type]


@dataclass
class _EarlyAnswer:
    """Prints the answer before a line has cooled, in a thread: a reader may stall it for hours.

    Attributes:
        taken: Whether there was one: without a watch nothing is early.
    """

    capability: str
    as_json: bool
    taken: bool = False
    _thread: Thread | None = None

    def take(self, result: RunResult) -> None:
        """Begin to print an answer that comes before its watch."""
        if not result.watches:
            return
        self.taken = True
        self._thread = Thread(target=self._print, args=(result,), name="answer", daemon=True)
        self._thread.start()
        self._thread.join(EARLY_S)  # so that it stands above what is told of the watch

    def wait(self) -> None:
        """Wait until it is read."""
        if self._thread is not None:
            self._thread.join()

    def _print(self, result: RunResult) -> None:
        with _answer_stays(result):
            say_answer(result.message, self.capability, self.as_json)


@contextmanager
def _answer_stays(result: RunResult) -> Iterator[None]:
    """Go on where standard output is lost: the answer is in its folder, the exit code stands."""
    try:
        yield
    except BrokenPipeError:
        drop_output()
    except OutputLost as why:
        warn(Text("cli.answer_in", why=str(why), folder=str(result.folder)))


def _newest_checkpoint(folder: Path) -> ResumeFrom:
    """Return the newest checkpoint of a run; admission decides whether a run may go on from it.

    Raises:
        BadUse: The folder has no checkpoint, or no journal.
    """
    journal = journal_in(folder)
    found = [each.checkpoint_id for each in checkpoints(journal)]
    if not found:
        raise BadUse("resume.none", folder=str(folder))
    session = str(run_header(journal).get("session_id", ""))
    return ResumeFrom(session_id=session, checkpoint_id=found[-1])


def _ask(prompt: str) -> str:
    """Ask on standard error, because standard output has the answer alone; raises ``EOFError``."""
    TERMINAL.unpin()
    TERMINAL.flush()
    sys.stderr.write(in_language(prompt, TERMINAL.language))
    sys.stderr.flush()
    try:
        return input()
    except EOFError:
        if sys.stdin.isatty():  # Ctrl-D, which is neither a name nor an end
            return ""
        raise


@dataclass(kw_only=True)
class _Progress:
    """Prints events on standard error; with ``--json`` it prints nothing.

    On a terminal progress is shown in one line, and events for a reader stand above it.

    Attributes:
        head: Lab, session and folder; printed before the first event, so that an error stands
            alone.
    """

    quiet: bool
    fast: bool
    lab_option: str
    live: bool
    head: str = ""
    _percent: float = 0.0
    _words: dict[str, str] = field(default_factory=dict)
    _shown_s: float = -SHOWN_S_MIN
    _stage: str = ""
    _held: str = ""

    def tell(self, kind: str, data: Mapping[str, Any]) -> None:
        """Print one event."""
        if self.quiet:
            return
        if self.head:
            complain(self.head)
            self.head = ""
        if kind == "begun":
            self._show(phase=_phase("preflight"))
        elif kind == "progress":
            self._progress(data["percent"], _phase(str(data["stage"])), data["message"])
        elif kind == "tick":
            self._tick(data)
        elif kind == "approval_asked":
            request = f"{data['id']}{self.lab_option}"
            complain(Text("cli.look_at_it", command=f"labharness approvals show {request}"))
            approve = f"labharness approvals approve {data['id']} --name WHO --reason WHY"
            complain(Text("cli.then_approve", command=f"{approve}{self.lab_option}"))
        elif kind == "task_accepted":
            level, reasons = data["risk_level"], data["risk_reasons"]
            complain(Text("cli.accepted", level=level, reasons=reasons))
        elif kind in ("cooling", "cooled"):
            complain(Text("cli.cooling", message=data["message"]))
        elif kind in ("warning", "error", "log"):
            complain(Text("cli.event", kind=kind, message=data["message"]))

    def _progress(self, percent: float, stage: str, message: str) -> None:
        if self.live:
            self._percent = percent
            step = in_language(message, TERMINAL.language)
            self._show(now=False, phase=stage, step=step, values="", left="")
            return
        shown = stage if stage != self._stage else ""
        took_time = round(percent) != round(self._percent)
        self._stage, self._percent = stage, percent
        line = Text("cli.progress", percent=percent, stage=f"{shown:18}", message=message)
        if self.fast and self._held and took_time:
            complain(self._held)
        self._held = ""
        if self.fast and not shown:  # a log keeps the stages, and the steps that took time
            self._held = line
        else:
            complain(line)

    def _tick(self, data: Mapping[str, Any]) -> None:
        rows = data["values"].items()
        values = ", ".join(f"{name} {value:.4g}/{to:.4g}" for name, (to, value) in rows)
        left = Text("cli.left", time=clock_text(data["left_s"]))
        if self.live:
            self._show(now=False, values=values, left=in_language(left, TERMINAL.language))
        elif not self.fast:
            complain(Text("cli.tick", values=values, left=left))

    def report(self) -> None:
        """Show that the report is made; the line goes away with the answer."""
        self._show(phase=_phase("report"), step="", values="", left="")

    def _show(self, *, now: bool = True, **words: str) -> None:
        """Draw the line again; each word stays until it is replaced."""
        self._words |= words
        at_s = steady_s()
        if self.live and (now or at_s - self._shown_s >= SHOWN_S_MIN):
            self._shown_s = at_s
            TERMINAL.pin(sys.stderr, drawn(self._percent, self._words))


def _phase(name: str) -> str:
    return phase_text(name, TERMINAL.language)


BAR_CELLS, SHARE_CELLS = 20, 5


def drawn(
    percent: float,
    words: Mapping[str, str],
    width: int | None = None,
    color_system: Literal["auto", "truecolor"] = "auto",
) -> str:
    """Return the line drawn in the width of the terminal.

    Args:
        percent: 0 to 100.
        words: ``phase``, ``left``, ``step`` and ``values``, where they are known.
        width: Cells of a terminal other than that of standard error.
        color_system: Colours of that terminal.
    """
    from rich.console import Console
    from rich.progress_bar import ProgressBar
    from rich.table import Table
    from rich.text import Text

    # one cell is left free: in the last one some terminals begin a new line
    cells = Console(stderr=True).width - 1 if width is None else width
    buffer = io.StringIO()
    line = Table.grid(padding=(0, 1), expand=True)
    line.add_column(min_width=BAR_CELLS)
    line.add_column(min_width=SHARE_CELLS, justify="right", no_wrap=True)
    line.add_column(no_wrap=True, overflow="ellipsis", ratio=1)
    said = Text(no_wrap=True, overflow="ellipsis")
    parts = [(words.get("phase", ""), "bold"), (words.get("left", ""), "")]
    parts += [(words.get("step", ""), ""), (words.get("values", ""), "dim")]
    for text, style in parts:
        text = "".join(each if each.isprintable() else "\ufffd" for each in text)
        if text:
            said.append(" · " if said else "").append(text, style)
    line.add_row(ProgressBar(100.0, percent, width=BAR_CELLS), f"{percent:.0f} %", said)
    out = Console(
        file=buffer, highlight=False, width=cells, force_terminal=True, color_system=color_system
    )
    out.print(line, end="", no_wrap=True, crop=True)
    return buffer.getvalue().split("\n")[0].rstrip()
