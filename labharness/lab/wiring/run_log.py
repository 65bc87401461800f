"""Writes `run.log`, the output of `logging` for one run.

Facts stand in the journal; the log has the rest: each exchange on a port, and tracebacks.
"""

import asyncio
import logging
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

from labharness.core.clock import utc_text

LOG_NAME = "run.log"
NOTHING = logging.CRITICAL + 1
LINE = "{utc} {lab_s:12.6f} {levelname:7} {name}: {message}"


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
    handler.setFormatter(logging.Formatter(LINE, style="{"))
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
        each.setLevel(NOTHING)
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
