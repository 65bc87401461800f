"""``labharness arm``: write what the guard process of a lab may send."""

import argparse
from pathlib import Path

from labharness.core.files.named import is_there
from labharness.faces.cli import EXIT_COMPLETED, EXIT_FAILED, EXIT_USAGE
from labharness.faces.cli.show import complain, say
from labharness.lab import read_lab
from labharness.lab.wiring.arming import GUARDED, armed_of, write_armed
from labharness.safety.guard.latch import MARKER_FILE

__all__ = ["arm"]


def arm(chosen: argparse.Namespace) -> int:
    """Write armed.json, unless a check of the lab finds something, or somebody owns the line."""
    try:
        plan = read_lab(Path(chosen.lab))
        findings = plan.check()
        for finding in findings:
            complain(f"labharness arm: {finding}")
            for line in finding.paste.splitlines():
                complain(f"    {line}")
        if findings:
            return EXIT_FAILED
        armed = armed_of(plan, plan.procedures(), plan.safe_procedure)
        if armed is None:
            complain(f"labharness arm: {chosen.lab} has no port that is {' or '.join(GUARDED)}")
            return EXIT_USAGE
        plan.make_state_dir()
        with plan.lock(plan.looker("arms the line")):
            if is_there(plan.state_dir / MARKER_FILE):
                complain(
                    "labharness arm: the line was left armed: reset it first, or what makes it "
                    "safe would change under it"
                )
                return EXIT_FAILED
            path = write_armed(plan.state_dir, armed)
    except OSError as why:
        complain(f"labharness arm: {why.filename or plan.state_dir}: {why.strerror}")
        return EXIT_USAGE
    say(str(path))
    for port in armed.ports:
        frames = sum(
            frame.port == port.name for each in armed.procedures.values() for frame in each
        )
        say(
            f"{port.name:14} {len(port.reads)} reads, {frames} frames in "
            f"{len(armed.procedures)} procedures, exchanges up to {port.exchange_s_max:g} s"
        )
    return EXIT_COMPLETED
