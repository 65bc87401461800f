"""The command line: start of each command, and its exit code; a module is imported on demand."""

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from io import TextIOWrapper
from typing import Literal, TextIO

__all__ = ["EXIT_ABORTED", "EXIT_COMPLETED", "EXIT_FAILED", "EXIT_REJECTED", "EXIT_USAGE", "main"]

EXIT_COMPLETED = 0
EXIT_FAILED = 1  # also check commands with findings
EXIT_REJECTED = 2
EXIT_ABORTED = 3
EXIT_USAGE = 64  # not an HCP message, bad lab file, bad output folder, bad arguments

MODULES = {
    "calls": ("abort", "result"),
    "hand": ("program", "set"),
    "house": ("down", "line_owner", "status", "up"),
    "labs": ("arm", "doctor", "envelope", "hazards", "lab", "reset"),
    "offers": ("capabilities", "drivers", "example"),
    "plan": ("policy",),
    "owner": ("hold", "resume", "safe", "stop"),
    "reading": ("read",),
    "records": ("artifact", "journal", "retention"),
    "report": ("compare", "history"),
    "simulate": ("simulated",),
    "tasks": ("jobs", "submit"),
    "watching": ("watch",),
}
"""The commands whose module does not have their own name."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Carry out one command; return its exit code."""
    from labharness.core.operations import operations
    from labharness.faces.cli.parser import parse

    _settle_streams()
    chosen = parse(operations(), sys.argv[1:] if arguments is None else arguments)
    from labharness.faces.cli.line_writer import TERMINAL, is_live  # help needs no thread

    TERMINAL.command, TERMINAL.language = chosen.command, chosen.lang
    try:
        if chosen.command == "run" and is_live():  # its imports take most of a second
            from labharness.faces.cli.show import pin_reading

            pin_reading(chosen.task)
        return _carry_out(chosen)
    except (KeyboardInterrupt, Exception) as why:  # noqa: BLE001 - a fault of the code goes on
        return _ended_by(why)
    finally:
        TERMINAL.unpin()
        TERMINAL.flush()


def _settle_streams() -> None:
    """Connect a closed stream to the null device, and make every character printable.

    The number of a closed stream (`>&-`, a service) would go to the next file that is opened, and
    printed lines into a journal or to a port. A character outside the encoding of a terminal is
    printed by its number.
    """
    sys.stdin = sys.stdin or _nowhere(0, "r")
    sys.stdout = sys.stdout or _nowhere(1, "w")
    sys.stderr = sys.stderr or _nowhere(2, "w")
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _nowhere(number: int, mode: Literal["r", "w"]) -> TextIO:
    """Open the null device at a number, also for the processes that this one starts."""
    null = os.open(os.devnull, os.O_RDWR)
    if null != number:
        os.dup2(null, number)
        os.close(null)
    os.set_inheritable(number, True)
    return os.fdopen(number, mode, encoding="utf-8", closefd=False)


def _ended_by(why: BaseException) -> int:
    """Print in one line why a command was not carried out; a fault of the code is raised again."""
    from labharness.core.errors import LabError
    from labharness.core.vocabulary.extras import to_install
    from labharness.core.vocabulary.texts import Text
    from labharness.faces.cli.show import drop_output, warn

    if isinstance(why, KeyboardInterrupt):  # `run` answers it as soon as a line must be made safe
        warn(Text("cli.interrupted"))
        return EXIT_ABORTED
    if isinstance(why, BrokenPipeError):  # the reader of the output has enough, like `head`
        drop_output()
        return EXIT_COMPLETED
    if isinstance(why, ModuleNotFoundError) and (advice := to_install(why)):
        warn(advice)
        return EXIT_USAGE
    if not isinstance(why, LabError):
        raise why
    warn(str(why), why.code)
    return EXIT_USAGE if why.usage else EXIT_FAILED


def _carry_out(chosen: argparse.Namespace) -> int:
    """Call the function that has the words of a row as its name, or the first word of them alone.

    A function that returns nothing has completed.
    """
    from labharness.core.operations import BEYOND

    command = chosen.command.replace("-", "_")
    name = module_of(command)
    beyond = ("callee", *(each.name.removeprefix("--") for each in BEYOND))
    if "callee" in chosen and any(getattr(chosen, each) for each in beyond):
        name = "calls"  # of a lab behind a broker, whatever the command
    module = import_module(f"labharness.faces.cli.{name}")
    words = f"{command}_{chosen.verb}" if "verb" in chosen else command
    work: Callable[[argparse.Namespace], int | None]
    work = getattr(module, words, None) or getattr(module, command)
    return work(chosen) or EXIT_COMPLETED


def module_of(command: str) -> str:
    """Return the name of the module that carries out a command."""
    return next((name for name, own in MODULES.items() if command in own), command)
