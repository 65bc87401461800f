"""Makes the folder, the loop and the seed of a run, of a task or by hand."""

import asyncio
import os
import platform
from importlib.metadata import version
from pathlib import Path
from typing import Any

from labharness.core.clock import PacedLoop, VirtualLoop, utc_text, wall_clock_utc
from labharness.core.errors import LabError
from labharness.core.vocabulary.texts import Text
from labharness.journal.encryption import KEY_NAME
from labharness.lab.config.lab_file import BadLabFile
from labharness.lab.config.lab_plan import LabPlan
from labharness.lab.wiring.heads import heads_place
from labharness.work.desk.folder import (
    ANSWER_NAME,
    ARTIFACTS_NAME,
    JOURNAL_NAME,
    REPORT_NAME,
    SUBMIT_NAME,
)

SIMULATED_SEED = 1  # default of a simulated run, so that an example is repeatable


class BadOutput(LabError, ValueError, code="bad_output"):
    """The output folder cannot take a run."""


def about_process(plan: LabPlan) -> dict[str, Any]:
    """Return which process writes a journal, where, when and for which lab; no digest covers it."""
    return {
        "at": utc_text(wall_clock_utc()),
        "lab": f"{plan.file.lab.title} ({plan.file.lab.id})",
        "pid": os.getpid(),
        "lab_file": str(plan.path),
        "heads": str(heads_place(plan)),
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
            raise BadOutput(Text("output.run", folder=str(folder)))
        artifacts = folder / ARTIFACTS_NAME
        if kept := [name for name in WRITTEN if _is_kept(folder / name)]:
            raise BadOutput(Text("output.kept", folder=str(folder), kept=", ".join(kept)))
        artifacts.mkdir(exist_ok=True)
    except OSError as why:
        raise BadOutput(Text("output.shut", folder=str(folder), why=str(why.strerror))) from None


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
        raise BadLabFile(Text("run.real_speed", name=plan.real_ports[0]))
    return VirtualLoop() if speed is None else PacedLoop(speed)


def seed_of(plan: LabPlan, asked: int | None = None) -> int | None:
    """Return the seed of a run: the one asked for, or the usual; none where anything is real."""
    if plan.real_ports:
        return None
    return SIMULATED_SEED if asked is None else asked
