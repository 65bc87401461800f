"""Makes the parts of a run, of a task or by hand: folder, loop, seed, journal, log, heads and key.

Facts stand in the journal; `run.log`, the output of `logging`, has the rest: each exchange on a
port, and tracebacks. Of a confidential task there is no log, and the files beside its journal are
encrypted.
"""

import asyncio
import logging
import os
import platform
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from labharness.core.clock import Clock, PacedLoop, VirtualLoop, utc_text, wall_clock_utc
from labharness.core.vocabulary.texts import CodedError
from labharness.journal import SqliteJournal, block_lab_s
from labharness.journal.encryption import KEY_NAME, RunKey, make_run_key
from labharness.journal.heads import (
    HEAD_EVERY_S,
    HEADS_NAME,
    VIRTUAL_EVERY_S,
    HeadKeeper,
    head_key,
)
from labharness.lab.config.lab_file import BadLabFile
from labharness.lab.config.lab_plan import LabPlan
from labharness.protocols.hcp.codec import HcpMessage, encode
from labharness.protocols.hcp.messages import TaskSubmit
from labharness.protocols.hcp.terms import CONFIDENTIAL
from labharness.work.admission.confidential import declared_class, is_confidential, withheld
from labharness.work.desk.folder import (
    ANSWER_NAME,
    ARTIFACTS_NAME,
    JOURNAL_NAME,
    REPORT_NAME,
    SUBMIT_NAME,
)

LOG = logging.getLogger(__name__)
LOG_NAME = "run.log"
LOG_NOTHING = logging.CRITICAL + 1
LOG_LINE = "{utc} {lab_s:12.6f} {levelname:7} {name}: {message}"
SIMULATED_SEED = 1  # default of a simulated run, so that an example is repeatable


class BadOutput(CodedError, ValueError, code="bad_output", usage=True):
    """The output folder cannot take a run."""


def about_process(plan: LabPlan) -> dict[str, Any]:
    """Return which process writes a journal, where, when and for which lab; no digest covers it."""
    return {
        "at": utc_text(wall_clock_utc()),
        "lab": f"{plan.file.lab.title} ({plan.file.lab.id})",
        "pid": os.getpid(),
        "lab_file": str(plan.path),
        "heads": str(_heads_place(plan)),
        "labharness": version("labharness"),
        "python": platform.python_version(),
        "system": platform.platform(),
    }


WRITTEN = (SUBMIT_NAME, ANSWER_NAME, REPORT_NAME, ARTIFACTS_NAME, KEY_NAME)
"""The files that a run leaves beside its journal."""


def fresh_folder(session_id: str) -> Path:
    """Name a folder for a run after the hour and its session."""
    moment = wall_clock_utc().strftime("%Y%m%dT%H%M%S%f")[:-3]
    return Path("runs") / f"{moment}-{session_id[:8]}"


def make_folder(folder: Path) -> None:
    """Make the folder of a run, and the one of its artifacts.

    Raises:
        BadOutput: It holds a run already, or other files with the names that a run writes, or it
            cannot be made.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if (folder / JOURNAL_NAME).exists():
            raise BadOutput("output.run", folder=str(folder))
        artifacts = folder / ARTIFACTS_NAME
        if kept := [name for name in WRITTEN if _is_kept(folder / name)]:
            raise BadOutput("output.kept", folder=str(folder), kept=", ".join(kept))
        artifacts.mkdir(exist_ok=True)
    except OSError as why:
        raise BadOutput("output.shut", folder=str(folder), why=str(why.strerror)) from None


def _is_kept(path: Path) -> bool:
    """Return whether a file or a folder with content is there."""
    if path.is_dir() and not path.is_symlink():
        return any(path.iterdir())
    return os.path.lexists(path)


def make_loop(speed: float | None, plan: LabPlan) -> asyncio.AbstractEventLoop:
    """Make the loop of a run: ``None`` is as fast as it goes, a number is that many times real.

    Raises:
        BadLabFile: Real instruments cannot run faster than real time.
    """
    if speed == 1.0:
        return PacedLoop(1.0)
    if plan.real_ports:
        raise BadLabFile("run.real_speed", name=plan.real_ports[0])
    return VirtualLoop() if speed is None else PacedLoop(speed)


def seed_of(plan: LabPlan, asked: int | None = None) -> int | None:
    """Return the seed of a run: the one asked for, or the usual; none where anything is real."""
    if plan.real_ports:
        return None
    return SIMULATED_SEED if asked is None else asked


def storable(plan: LabPlan, payload: TaskSubmit) -> TaskSubmit:
    """Return what a lab may keep of a submission, encrypted where its class asks for that.

    Of a confidential task that it will refuse (it has no key, or does not know the class) nothing
    is kept.
    """
    if is_confidential(payload) and _master(plan, payload) is None:
        return withheld(payload)
    return payload


def _master(plan: LabPlan, payload: TaskSubmit) -> Path | None:
    return plan.data_key if declared_class(payload) in CONFIDENTIAL else None


def run_key(folder: Path, plan: LabPlan, payload: TaskSubmit) -> RunKey | None:
    """Make the key of a confidential run in its folder; ``None`` where all is written in clear.

    Raises:
        BadKey: The lab's key cannot be used.
        OSError: The folder cannot be written.
    """
    master = _master(plan, payload)
    if master is None:
        return None
    return make_run_key(folder / KEY_NAME, master, declared_class(payload))


def stored(key: RunKey | None, name: str, message: HcpMessage) -> bytes:
    """Return the bytes of a file of the run with one message, as they are written."""
    data = encode(message) + b"\n"
    return data if key is None else key.file(name, data)


@contextmanager
def run_log(folder: Path, level: str, loop: asyncio.AbstractEventLoop) -> Iterator[None]:
    """Write the log of `labharness` into a file, which is made with its first line.

    Args:
        folder: The folder of the run.
        level: Name of a level of `logging`; ``debug`` has every exchange with an instrument,
            some 20 MB a lab hour of the shipped line.
        loop: The loop whose lab time stands in each line, in s, behind the time of day.
    """

    def with_lab_time(record: logging.LogRecord) -> bool:
        record.lab_s = loop.time()
        record.utc = utc_text(datetime.fromtimestamp(record.created, UTC))
        return True

    handler = _LogFile(folder / LOG_NAME, encoding="utf-8", delay=True)
    handler.setFormatter(logging.Formatter(LOG_LINE, style="{"))
    handler.addFilter(with_lab_time)
    logger = logging.getLogger("labharness")
    before = logger.level
    logger.setLevel(level.upper())
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(before)
        handler.close()


@contextmanager
def no_log() -> Iterator[None]:
    """Let `labharness` log nothing: a frame holds a setpoint, and a traceback may quote an input.

    A run whose task is confidential tells by its journal alone, which is encrypted.
    """
    loggers = [logging.getLogger(each) for each in ("labharness", "asyncio")]
    before = [each.level for each in loggers]
    for each in loggers:
        each.setLevel(LOG_NOTHING)
    try:
        yield
    finally:
        for each, level in zip(loggers, before, strict=True):
            each.setLevel(level)


class _LogFile(logging.FileHandler):
    """A file whose loss, such as by a full disk, costs its lines and nothing else."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write one line if the disk takes it."""
        with suppress(OSError):
            super().emit(record)

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - logging's name
        """Leave the line out; logging would print a traceback for the user."""


def open_journal(
    plan: LabPlan,
    folder: Path,
    clock: Clock,
    run: Mapping[str, object],
    *,
    speed: float | None,
    key: RunKey | None = None,
) -> SqliteJournal:
    """Open the journal of a run.

    Args:
        plan: The lab's files.
        folder: The folder of the run.
        clock: Of the run.
        run: The header, but for the digests of the lab's files.
        speed: Lab seconds a real second, where samples are taken.
        key: Encrypts it.

    Raises:
        JournalFailed: It cannot be opened.
    """
    digests = {"lab_digest": plan.lab_digest, "envelope_digest": plan.envelope_digest}
    return SqliteJournal(
        folder / JOURNAL_NAME,
        run={**run, **digests},
        about=about_process(plan),
        block_s=block_lab_s(clock.speed),
        speed=speed,
        heads=_head_keeper(plan, clock),
        key=key,
    )


def _heads_place(plan: LabPlan) -> Path:
    """Return the folder of heads: what the lab file names, else one in the state directory."""
    stated = plan.file.lab.heads
    return plan.state_dir / HEADS_NAME if stated is None else Path(stated).expanduser()


def _head_keeper(plan: LabPlan, clock: Clock) -> HeadKeeper | None:
    """Return what keeps the heads of a run; ``None`` where the lab's key cannot be had.

    A run goes on without it; a check of its journal then cannot tell whether the end is cut.
    """
    try:
        key = head_key(plan.state_dir)
    except (OSError, ValueError) as why:
        LOG.warning("no head of the journal is signed: %s", why)
        return None
    return HeadKeeper(
        _heads_place(plan),
        key,
        lambda: utc_text(clock.utc()),
        every_s=VIRTUAL_EVERY_S if clock.virtual else HEAD_EVERY_S * (clock.speed or 1.0),
        synced=not clock.virtual,
    )
