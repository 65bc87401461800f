"""``labharness doctor``: what stands in the way of a run, each with its remedy."""

import argparse
import json
from pathlib import Path

from labharness.faces.cli import EXIT_COMPLETED, EXIT_FAILED
from labharness.faces.cli.show import chosen_lab, say
from labharness.lab.doctor.findings import Check, examine
from labharness.lab.doctor.machine import look

__all__ = ["doctor"]

RUNS = Path("runs")  # where `run` puts a folder that nobody names


def doctor(chosen: argparse.Namespace) -> int:
    """Look, and print one line a check."""
    plan = chosen_lab(chosen.lab)
    checks = examine(plan, look(plan, RUNS))
    findings = sum(check.state == "finding" for check in checks)
    if chosen.json:
        say(json.dumps([_fields(check) for check in checks], ensure_ascii=False, indent=2))
    else:
        for check in checks:
            fix = f". Do: {check.fix}" if check.fix else ""
            say(f"{check.state:8} {check.about:18} {check.said}{fix}")
        say(f"{findings or 'no'} findings")
    return EXIT_FAILED if findings else EXIT_COMPLETED


def _fields(check: Check) -> dict[str, str]:
    return {"state": check.state, "about": check.about, "said": check.said, "fix": check.fix}
