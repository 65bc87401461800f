"""Printing, for all commands: results on standard output, everything else on standard error."""

import sys
from pathlib import Path

from labharness.lab import LabPlan, default_lab_path, read_lab

__all__ = ["chosen_lab", "clock_text", "complain", "say"]


def say(text: str) -> None:
    """Print a result."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def complain(text: str) -> None:
    """Print what is not the result: progress, warnings, the one plain error."""
    sys.stderr.write(text + "\n")
    sys.stderr.flush()


def chosen_lab(path: str | None) -> LabPlan:
    """Read the lab file that was named, or the one that ships."""
    return read_lab(default_lab_path() if path is None else Path(path))


def clock_text(seconds: float) -> str:
    """Write a duration as hours, minutes and seconds."""
    whole = round(seconds)
    return f"{whole // 3600}:{whole // 60 % 60:02}:{whole % 60:02}"
