"""`labharness run` as many times real time as the instruments that are served for it.

Run as a process of its own: ``hurried_run.py SPEED`` and the arguments of ``run``. What it breaks
is the rule that real instruments run at real speed; these are simulated ones on real links.
"""

import asyncio
import sys
from unittest.mock import patch

from labharness.core.clock import PacedLoop
from labharness.faces.cli import main
from labharness.lab import LabPlan
from labharness.lab.wiring import tasks

TIMES = float(sys.argv[1])


def hurried(speed: float | None, plan: LabPlan) -> asyncio.AbstractEventLoop:
    """Make a loop that is as fast as the instruments, whatever was asked for."""
    return PacedLoop(TIMES)


if __name__ == "__main__":
    with patch.object(tasks, "make_loop", hurried):
        sys.exit(main(["run", *sys.argv[2:]]))
