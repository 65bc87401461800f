"""The command line: which module carries out which command, imported when it is asked for."""

import argparse
import sys
from collections.abc import Callable, Sequence
from importlib import import_module

__all__ = [
    "EXIT_ABORTED",
    "EXIT_COMPLETED",
    "EXIT_FAILED",
    "EXIT_REJECTED",
    "EXIT_USAGE",
    "main",
]

EXIT_COMPLETED = 0
EXIT_FAILED = 1  # also check commands with findings
EXIT_REJECTED = 2
EXIT_ABORTED = 3
EXIT_USAGE = 64  # no HCP message, bad lab file, bad output folder, bad arguments

MODULES: dict[str, tuple[str, ...]] = {
    "alarms": ("alarms",),
    "analyse": ("analyse",),
    "approvals": ("approvals",),
    "arm": ("arm",),
    "calibrate": ("calibrate",),
    "chaos": ("chaos",),
    "doctor": ("doctor",),
    "example": ("example",),
    "guard": ("guard",),
    "hand": ("read", "set", "watch", "hold", "resume", "stop", "safe"),
    "hazards": ("hazards",),
    "labs": ("lab", "envelope", "reset"),
    "offers": ("drivers", "capabilities"),
    "plan": ("plan",),
    "program": ("program",),
    "records": ("journal", "artifact"),
    "report": ("report", "history", "compare"),
    "run": ("run",),
    "simulate": ("simulate", "simulated"),
}
"""The commands of each module; its function has the module's name."""


USAGE_CODES = frozenset(
    {
        "bad_arming",
        "bad_channel",
        "bad_file",
        "bad_lab_file",
        "bad_output",
        "bad_path",
        "bad_program",
        "bad_served_folder",
        "bad_simulation_request",
        "bad_table",
        "cannot_guard",
        "cannot_serve",
        "not_hcp",
    }
)
"""Errors in what was typed, or in a file that was named; all others say that it failed."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Carry out one command; return its exit code."""
    from labharness.core.languages import ENGLISH
    from labharness.faces.cli.commands import COMMANDS
    from labharness.faces.cli.line_writer import TERMINAL, is_live
    from labharness.faces.cli.parser import parse
    from labharness.faces.cli.streams import settle_streams

    settle_streams()
    chosen = parse(COMMANDS, sys.argv[1:] if arguments is None else arguments)
    TERMINAL.language = getattr(chosen, "lang", None) or ENGLISH
    if chosen.command == "run" and is_live():  # to import what begins takes most of a second
        TERMINAL.pin(sys.stderr, f"reading {chosen.task}")
    try:
        return _answered(chosen)
    finally:
        TERMINAL.unpin()
        TERMINAL.flush()


def _answered(chosen: argparse.Namespace) -> int:
    """Carry out a command, and return what kept it from its end in one line."""
    from labharness.faces.cli.line_writer import TERMINAL

    try:
        return _carry_out(chosen)
    except KeyboardInterrupt:  # `run` answers it itself as soon as there is a line to make safe
        TERMINAL.put(sys.stderr, f"labharness {chosen.command}: interrupted")
        return EXIT_ABORTED
    except BrokenPipeError:  # whoever reads has enough, as `head` has
        from labharness.faces.cli.show import drop_output

        drop_output()
        return EXIT_COMPLETED
    except ModuleNotFoundError as why:
        from labharness.core.vocabulary.extras import to_install
        from labharness.faces.cli.show import complain

        advice = to_install(why)
        if not advice:  # a module of ours, or one that every installation has: a fault of the code
            raise
        complain(f"labharness {chosen.command}: {advice}")
        return EXIT_USAGE
    except Exception as why:
        from labharness.core.errors import LabError
        from labharness.core.vocabulary.texts import in_language

        if not isinstance(why, LabError):
            raise
        first, end, rest = in_language(str(why), TERMINAL.language).partition("\n")
        said = f"labharness {chosen.command}: {first} [{why.code}]{end}{rest}"
        TERMINAL.put(sys.stderr, said)
        return EXIT_USAGE if why.code in USAGE_CODES else EXIT_FAILED


def _carry_out(chosen: argparse.Namespace) -> int:
    module = next(name for name, commands in MODULES.items() if chosen.command in commands)
    work: Callable[[argparse.Namespace], int]
    work = getattr(import_module(f"labharness.faces.cli.{module}"), module)
    return work(chosen)
