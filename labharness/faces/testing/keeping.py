"""Keep the evidence of a failed test: journal, seed and wire log of each of its labs."""

import json
import re
import shutil
import sqlite3
from contextlib import closing
from hashlib import sha256
from pathlib import Path

from labharness.faces.testing.wires import WatchedLabs, WireLog

JOURNAL = "journal.sqlite"
RUN = "run.json"
WIRES = "wire.log"

NAME_CHARACTERS_MAX = 80  # of a folder; a test's id includes its parameters and may be longer
DIGEST_CHARACTERS = 8


def folder_of(root: Path, test: str) -> Path:
    """Return the folder of one test: readable and unique."""
    name = re.sub(r"[^\w.-]+", "_", test).strip("_")[-NAME_CHARACTERS_MAX:]
    return root / f"{name}-{sha256(test.encode()).hexdigest()[:DIGEST_CHARACTERS]}"


def keep(watched: WatchedLabs, folder: Path) -> int:
    """Copy the evidence of a test's labs, in place of an earlier failure's.

    Returns:
        The number of labs. Without labs no folder is made.
    """
    shutil.rmtree(folder, ignore_errors=True)
    log = WireLog(watched.labs)
    for number, lab in enumerate(watched.labs):
        here = folder / str(number)
        here.mkdir(parents=True)
        about = {
            "seed": watched.seeds[lab],
            "lab_file": str(lab.plan.path),
            "lab_digest": lab.plan.lab_digest,
            "envelope_digest": lab.plan.envelope_digest,
            "lab_time_s": lab.clock.now_s(),
        }
        (here / RUN).write_text(json.dumps(about, indent=2) + "\n", "utf-8")
        (here / WIRES).write_text("".join(f"{each}\n" for each in log.of(number)), "utf-8")
        journal = getattr(lab.line.journal, "path", None)
        if isinstance(journal, Path) and journal.exists():
            _copy(journal, here / JOURNAL)
    return len(watched.labs)


def _copy(journal: Path, to: Path) -> None:
    """Copy the committed records; an interrupted run may have left half of them in the WAL file."""
    with closing(sqlite3.connect(journal)) as left, closing(sqlite3.connect(to)) as kept:
        left.backup(kept)
