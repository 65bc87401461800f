"""Runs one task that needs no line: no lock, no instrument, no guard; else like `tasks`."""

import asyncio
import logging
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from labharness.core.clock import Chance, Clock, PacedLoop, utc_text, wall_clock_utc
from labharness.core.clock import run as run_on
from labharness.core.files.durable import write_durably
from labharness.core.vocabulary.texts import Text
from labharness.journal import JournalFailed, SqliteJournal
from labharness.journal.artifacts import Artifacts
from labharness.journal.encryption import in_use
from labharness.lab.config.lab_facts import lab_facts_of
from labharness.lab.config.lab_file import BadLabFile
from labharness.lab.config.lab_plan import LabPlan
from labharness.lab.wiring.heads import head_keeper
from labharness.lab.wiring.run_encryption import RunEncryption, storable
from labharness.lab.wiring.runs import BadOutput, about_process, fresh_folder, make_folder
from labharness.lab.wiring.tasks import RunResult
from labharness.protocols.hcp import answers
from labharness.protocols.hcp.codec import HcpMessage
from labharness.protocols.hcp.messages import TaskSubmit
from labharness.work.admission.confidential import is_confidential
from labharness.work.desk import LabFacts
from labharness.work.desk.admission_without_line import facts_without_line
from labharness.work.desk.desk_without_line import DeskWithoutLine
from labharness.work.desk.folder import ANSWER_NAME, ARTIFACTS_NAME, JOURNAL_NAME, SUBMIT_NAME

LOG = logging.getLogger(__name__)


def lab_facts_without_line(plan: LabPlan) -> LabFacts:
    """Return the facts of a lab for tasks that need no line; its ``capabilities`` are those.

    Raises:
        BadLabFile: The lab's callers or approvals cannot be honoured.
    """
    return facts_without_line(lab_facts_of(plan))


class RunWithoutLine:
    """One task of a lab that needs no line. It runs in real time.

    Args:
        plan: The lab's files, read.
        facts: As `lab_facts_without_line` returns them.
        submit: The submission message.
        payload: Its payload.
        out: The folder of the run; ``None`` makes ``runs/<time>-<session>``.
        session_id: Of the run, where it was minted on receipt; ``None`` mints one here.
        tell: Called with every event.
        accepted: Keeps the message that carries the session's token, for its caller alone.
        on_receipt: The acceptance that the caller got on receipt, where it got one.

    Attributes:
        session_id: Of the run.
        folder: Of the run.
    """

    def __init__(
        self,
        plan: LabPlan,
        facts: LabFacts,
        submit: HcpMessage,
        payload: TaskSubmit,
        *,
        out: Path | None = None,
        session_id: str | None = None,
        tell: Callable[[str, Mapping[str, Any]], None] = lambda kind, data: None,
        accepted: Callable[[HcpMessage], None] = lambda message: None,
        on_receipt: HcpMessage | None = None,
    ) -> None:
        self._plan = plan
        self._facts = facts
        self._submit = submit
        self._payload = payload
        self._ids = Chance(None)
        self.session_id = session_id or self._ids.uuid4()
        self.folder = out if out is not None else fresh_folder(self.session_id)
        self._tell = tell
        self._accepted = accepted
        self._on_receipt = on_receipt
        self._desk: DeskWithoutLine | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._abort_reason = ""
        self._encryption = RunEncryption()

    def execute(self) -> RunResult:
        """Run to the terminal message, and write it beside the journal.

        Raises:
            BadLabFile: The lab's state directory cannot be written.
            BadOutput: The output folder cannot take the run.
            BadKey: It is confidential, and the lab's key cannot be used.
        """
        try:
            self._plan.make_state_dir()  # the signed heads of the journal go there
        except OSError as why:
            text = Text("state_dir.shut", folder=str(self._plan.state_dir), why=why.strerror)
            raise BadLabFile(text) from None
        make_folder(self.folder)
        try:
            self._encryption = RunEncryption.made(self.folder, self._plan, self._payload)
            kept = replace(self._submit, payload=storable(self._plan, self._payload))
            (self.folder / SUBMIT_NAME).write_bytes(self._encryption.message(SUBMIT_NAME, kept))
        except OSError as why:
            folder, reason = str(self.folder), why.strerror
            raise BadOutput(
                Text("output.submit", folder=folder, name=SUBMIT_NAME, why=reason)
            ) from None
        self._loop = PacedLoop(1.0)
        try:
            with in_use(self._encryption.key):
                return run_on(self._main(self._loop), self._loop)
        except BadOutput:
            raise
        except Exception as why:  # a traceback is for the log alone, and may quote an input
            shown = None if is_confidential(self._payload) else why
            LOG.error("the task ended by an error of the harness", exc_info=shown)
            message = answers.task_failed(
                message_id=self._ids.uuid4(),
                timestamp=utc_text(wall_clock_utc()),
                session_id=self.session_id,
                error_code="internal_error",
                error_message=type(why).__name__,
            )
            return RunResult(message, self.folder, "")

    def abort(self, reason: str) -> None:
        """Ask for an abort, from a signal handler or another thread; too early counts too."""
        self._abort_reason = self._abort_reason or reason
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._pass_on_abort)

    def stop(self, reason: str) -> str:
        """Abort the run; return a text that says so."""
        self.abort(reason)
        return Text("cli.stopping")

    def _pass_on_abort(self) -> None:
        if self._desk is not None and self._abort_reason:
            self._desk.abort(self._abort_reason)

    async def _main(self, loop: asyncio.AbstractEventLoop) -> RunResult:
        clock = Clock(loop)
        run = {
            "session_id": self.session_id,
            "seed": None,
            "lab_digest": self._plan.lab_digest,
            "envelope_digest": self._plan.envelope_digest,
            "epoch": utc_text(clock.utc()),
            **self._encryption.header(),
        }
        try:
            journal = SqliteJournal(
                self.folder / JOURNAL_NAME,
                run=run,
                about=about_process(self._plan),
                heads=head_keeper(self._plan, clock),
                key=self._encryption.key,
            )
        except JournalFailed as why:
            raise BadOutput(Text("output.no_journal", why=str(why))) from None
        self._tell("begun", {})
        try:
            desk = self._desk = DeskWithoutLine(
                facts=self._facts,
                lab_folder=self._plan.path.resolve().parent,
                runs=self.folder.resolve().parent,
                clock=clock,
                chance=self._ids,
                journal=journal,
                artifacts=Artifacts(
                    self.folder / ARTIFACTS_NAME, self.session_id, self._encryption.key
                ),
                session_id=self.session_id,
                tell=self._tell,
                accepted=self._accepted,
                told=self._on_receipt,
            )
            loop.call_soon(self._pass_on_abort)
            message = await desk.run(self._submit, self._payload)
            self._keep(message)
        except JournalFailed as why:  # before it was accepted
            raise BadOutput(Text("output.journal", why=str(why))) from None
        finally:
            with suppress(JournalFailed):
                journal.close()
        return RunResult(message, self.folder, journal.head.hash)

    def _keep(self, message: HcpMessage) -> None:
        try:
            write_durably(self.folder / ANSWER_NAME, self._encryption.message(ANSWER_NAME, message))
        except OSError as why:  # the asking side is answered all the same
            where, reason = str(self.folder / ANSWER_NAME), why.strerror or str(why)
            text = Text("file.unwritable", path=where, why=reason)
            self._tell("warning", {"message": text})
