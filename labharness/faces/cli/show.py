"""Printing, for all commands: results on standard output, everything else on standard error."""

import errno
import getpass
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from labharness.core.errors import LabError
from labharness.core.vocabulary.texts import in_language
from labharness.faces.cli.line_writer import TERMINAL
from labharness.lab import LabPlan, default_lab_path, read_lab

__all__ = [
    "BadPath",
    "OutputLost",
    "chosen_lab",
    "complain",
    "drop_output",
    "latched",
    "looking",
    "one_line",
    "output",
    "say",
    "say_queued",
    "write_whole",
]


class OutputLost(LabError, OSError, code="output_lost"):
    """Standard output cannot be written: its disk is full, or worse."""


class BadPath(LabError, ValueError, code="bad_path"):
    """A path was named at which the operating system does not let this account look."""


@contextmanager
def looking(path: Path) -> Iterator[None]:
    """Look at what lies at a path that was named, or below it.

    Raises:
        BadPath: It may not be looked at, or is too long: whatever lies there is not known.
    """
    try:
        yield
    except (BrokenPipeError, OutputLost):
        raise  # the command line's own matter
    except OSError as why:
        raise BadPath(f"{why.filename or path}: {why.strerror}") from None


def say(text: str) -> None:
    """Print a result.

    Raises:
        BrokenPipeError: Whoever read has gone.
        OutputLost: It cannot be written for another reason.
    """
    TERMINAL.unpin()
    TERMINAL.flush()  # what was said before stands before
    with _lost():
        sys.stdout.write(in_language(text, TERMINAL.language) + "\n")
        sys.stdout.flush()


def latched(plan: LabPlan, why: str) -> str:
    """Say that a line is latched, and what a person does about it."""
    return f"LATCHED: {why}; when the cause is gone: {plan.reset_command}"


def one_line(text: str) -> str:
    """Keep a text on its line, without what would steer a terminal: names and headers of files."""
    return "".join(each if each.isprintable() else "\ufffd" for each in text)


@contextmanager
def output() -> Iterator[BinaryIO]:
    """Return standard output for bytes, as the content of a file is printed.

    Raises:
        BrokenPipeError: Whoever read has gone.
        OutputLost: It cannot be written for another reason.
    """
    TERMINAL.flush()
    with _lost():
        yield sys.stdout.buffer
        sys.stdout.flush()


@contextmanager
def _lost() -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as why:
        drop_output()
        raise OutputLost(f"standard output cannot be written: {why.strerror}") from None


def complain(text: str) -> None:
    """Print what is not the result: progress, warnings, the one plain error.

    A run outlives the terminal that watches it, so nobody to read is no error, and nobody waits
    until it is read.
    """
    TERMINAL.put(sys.stderr, in_language(text, TERMINAL.language))


def say_queued(text: str) -> None:
    """Print a result while a line is driven, which waits for no reader and asks for none."""
    TERMINAL.put(sys.stdout, in_language(text, TERMINAL.language))


def write_whole(path: Path, data: bytes) -> None:
    """Put a file in its place whole: a full disk leaves what was there before.

    Raises:
        OSError: It cannot be written, or what is there is no file, such as a device.
    """
    there = path.resolve()  # a link stays one
    if there.exists() and not there.is_file():
        kind = errno.EISDIR if there.is_dir() else errno.EEXIST
        raise OSError(kind, os.strerror(kind), str(path))
    part = there.with_name(f".{there.name}.part")
    try:
        part.write_bytes(data)
        part.replace(there)
    except OSError:
        with suppress(OSError):
            part.unlink(missing_ok=True)
        raise


def account() -> str:
    """Name the account of the operating system that this command runs under."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a number without a name, as in a container
        return f"account {os.getuid()}" if hasattr(os, "getuid") else "unknown account"


def drop_output() -> None:
    """Write nothing more to standard output, whose reader has gone; not at the exit either."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def chosen_lab(path: str | None) -> LabPlan:
    """Read the lab file that was named, or the one that ships."""
    return read_lab(default_lab_path() if path is None else Path(path))
