"""The command line: start of each command, and its exit code; a module is imported on demand."""

import argparse
import sys
from collections.abc import Callable, Sequence
from importlib import import_module

__all__ = ["EXIT_ABORTED", "EXIT_COMPLETED", "EXIT_FAILED", "EXIT_REJECTED", "EXIT_USAGE", "main"]

EXIT_COMPLETED = 0
EXIT_FAILED = 1  # also check commands with findings
EXIT_REJECTED = 2
EXIT_ABORTED = 3
EXIT_USAGE = 64  # not an HCP message, bad lab file, bad output folder, bad arguments

MODULES: dict[str, tuple[str, ...]] = {
    "alarms": ("alarms",),
    "analyse": ("analyse",),
    "approvals": ("approvals",),
    "arm": ("arm",),
    "broker": ("broker",),
    "calibrate": ("calibrate",),
    "calls": ("abort", "result"),
    "campaign": ("campaign",),
    "chaos": ("chaos",),
    "doctor": ("doctor",),
    "example": ("example",),
    "guard": ("guard",),
    "hand": ("read", "set"),
    "hazards": ("hazards",),
    "house": ("up", "down", "status", "house", "line-owner"),
    "jobs": ("jobs",),
    "labs": ("lab", "envelope", "reset"),
    "offers": ("drivers", "capabilities"),
    "owner": ("hold", "resume", "stop", "safe"),
    "plan": ("plan",),
    "policy": ("policy",),
    "program": ("program",),
    "records": ("journal", "artifact"),
    "retention": ("retention",),
    "report": ("report", "history", "compare"),
    "run": ("run",),
    "schema": ("schema",),
    "serve": ("serve",),
    "simulate": ("simulate", "simulated"),
    "tasks": ("tasks", "submit"),
    "watching": ("watch",),
}
"""The commands of each module; its function has the module's name."""


USAGE_CODES = frozenset(
    {
        "bad_arming",
        "bad_campaign",
        "bad_channel",
        "bad_collector",
        "bad_file",
        "bad_key",
        "bad_lab_file",
        "bad_output",
        "bad_path",
        "bad_program",
        "bad_served_folder",
        "bad_simulation_request",
        "bad_table",
        "bad_use",
        "cannot_guard",
        "cannot_serve",
        "cannot_write",
        "not_hcp",
    }
)
"""Codes of errors in a typed word or a named file; every other error ends with 1."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Carry out one command; return its exit code."""
    from labharness.core.operations import operations
    from labharness.faces.cli.parser import parse
    from labharness.faces.cli.streams import settle_streams

    settle_streams()
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
    return EXIT_USAGE if why.code in USAGE_CODES else EXIT_FAILED


def _carry_out(chosen: argparse.Namespace) -> int:
    from labharness.core.operations import BEYOND

    module = next(name for name, commands in MODULES.items() if chosen.command in commands)
    beyond = ("callee", *(each.name.removeprefix("--") for each in BEYOND))
    if "callee" in chosen and any(getattr(chosen, each) for each in beyond):
        module = "calls"  # of a lab behind a broker, whatever the command
    work: Callable[[argparse.Namespace], int]
    work = getattr(import_module(f"labharness.faces.cli.{module}"), module)
    return work(chosen)
