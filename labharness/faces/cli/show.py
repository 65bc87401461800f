"""Printing, for all commands: results on standard output, everything else on standard error."""

import argparse
import errno
import json
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from labharness.core.errors import LabError
from labharness.core.vocabulary.texts import CodedError, Text, in_language
from labharness.faces.cli.line_writer import TERMINAL

if TYPE_CHECKING:
    from labharness.lab import LabAddress, LabPlan


class OutputLost(CodedError, OSError, code="output_lost"):
    """Standard output cannot be written: its disk is full, or worse."""


class BadPath(CodedError, ValueError, code="bad_path", usage=True):
    """A path was named at which the operating system does not let this account look."""


class BadUse(CodedError, code="bad_use", usage=True):
    """An argument, or a file that it names, cannot be used in this command."""


class CommandFailed(CodedError, RuntimeError, code="command_failed"):
    """The command was understood and could not be carried out; the message says why."""


@contextmanager
def looking(path: Path, error: type[LabError] = BadPath, code: str = "pair") -> Iterator[None]:
    """Name the path where the operating system refuses something at a path, or below it.

    Args:
        path: The path, in case that the system names none: a write to a full disk does not.
        error: Raised then.
        code: Of its text about path and reason.
    """
    try:
        yield
    except (BrokenPipeError, LabError):
        raise
    except OSError as why:
        where = why.filename if isinstance(why.filename, str) else path  # it may be a number
        raise error(Text(code, what=str(where), why=why.strerror or str(why))) from None


def say(text: str) -> None:
    """Print a result.

    Raises:
        BrokenPipeError: The reader has gone.
        OutputLost: It cannot be written for another reason.
    """
    TERMINAL.unpin()
    TERMINAL.flush()  # earlier lines stand above
    with _lost():
        sys.stdout.write(in_language(text, TERMINAL.language) + "\n")
        sys.stdout.flush()


def say_each(lines: Iterable[str]) -> None:
    """Print the lines of a result, each as soon as it is known."""
    for line in lines:
        say(line)


def say_json(value: object) -> None:
    """Print a result for a program, in one line."""
    say(json.dumps(value, ensure_ascii=False))


def say_either(as_json: bool, value: object, lines: Iterable[str]) -> None:
    """Print a result for a program, or else for a person."""
    if as_json:
        say_json(value)
    else:
        say_each(lines)


def warn(why: str, code: str = "") -> None:
    """Print one line that names the command: a warning, or an error with its code."""
    head = f"labharness {TERMINAL.command}".rstrip()
    first, *rest = map(one_line, in_language(why, TERMINAL.language).split("\n"))
    first += f" [{code}]" if code else ""
    TERMINAL.put(sys.stderr, "\n".join([f"{head}: {first}", *rest]))


def pin_reading(path: str) -> None:
    """Show on a live terminal which file is read."""
    TERMINAL.pin(sys.stderr, in_language(Text("cli.reading", path=path), TERMINAL.language))


def latched(place: "LabAddress", why: str) -> str:
    """Return that a line is latched, and the command that resets it."""
    return Text("cli.latched", why=why, command=place.reset_command)


def counted(findings: int) -> str:
    """Return how many findings there are."""
    code = {0: "cli.no_findings", 1: "cli.one_finding"}.get(findings, "cli.findings")
    return Text(code, count=findings)


def aligned(rows: Sequence[Sequence[str]], before: str = "") -> Iterator[str]:
    """Return the lines of a table whose columns are as wide as their widest cell."""
    shown = [[in_language(each, TERMINAL.language) for each in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*shown, strict=True)]
    for row in shown:
        cells = (each.ljust(width) for each, width in zip(row, widths, strict=True))
        yield f"{before}{'  '.join(cells).rstrip()}"


def one_line(text: str) -> str:
    """Return a text in the chosen language, without the characters that steer a terminal."""
    shown = in_language(text, TERMINAL.language)
    return "".join(each if each.isprintable() else "\ufffd" for each in shown)


@contextmanager
def output() -> Iterator[BinaryIO]:
    """Return standard output for bytes, as the content of a file is printed.

    Raises:
        BrokenPipeError: The reader has gone.
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
        raise OutputLost("cli.output_lost", why=why.strerror) from None


def complain(text: str) -> None:
    """Print progress or a warning on standard error.

    A run outlives the terminal that watches it, so a lost reader is not an error, and this call
    does not wait until the line is read.
    """
    TERMINAL.put(sys.stderr, in_language(text, TERMINAL.language))


def say_queued(text: str) -> None:
    """Print a result while a line is driven, without waiting for a reader."""
    TERMINAL.put(sys.stdout, in_language(text, TERMINAL.language))


def write_whole(path: Path, data: bytes) -> None:
    """Replace a file at once: a full disk leaves the file that was there before.

    Raises:
        OSError: It cannot be written, or the path is not a file, such as a device.
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


def drop_output() -> None:
    """Write nothing more to standard output, whose reader has gone; not at the exit either."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@contextmanager
def at_home(chosen: argparse.Namespace) -> Iterator["LabAddress"]:
    """Return where a lab is; the path is named where the operating system refuses something there.

    Raises:
        BadPath: It does.
    """
    place = chosen_address(chosen.lab)
    with looking(place.state_dir):
        yield place


@contextmanager
def with_lab(chosen: argparse.Namespace, code: str = "pair") -> Iterator["LabPlan"]:
    """Return a lab, as `at_home`, with all of its files read."""
    plan = chosen_lab(chosen.lab)
    with looking(plan.state_dir, code=code):
        yield plan


def chosen_lab(path: str | None) -> "LabPlan":
    """Read the lab file that was named, or the one that ships."""
    from labharness.lab import default_lab_path, read_lab

    return read_lab(default_lab_path() if path is None else Path(path))


def chosen_address(path: str | None) -> "LabAddress":
    """Read where the lab is whose file was named, or the one that ships, and no more of it."""
    from labharness.lab.config.address import default_lab_path, read_address

    return read_address(default_lab_path() if path is None else Path(path))
