"""``labharness doctor``: what stands in the way of a run, each with its remedy."""

import argparse
import json
from pathlib import Path

from labharness.core.vocabulary.texts import Text, in_language
from labharness.faces.cli import EXIT_COMPLETED, EXIT_FAILED
from labharness.faces.cli.labs import told_count
from labharness.faces.cli.line_writer import TERMINAL
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
            fix = Text("doctor.do", fix=check.fix) if check.fix else ""
            state, about, said, do = (
                in_language(each, TERMINAL.language)
                for each in (check.state, check.about, check.said, fix)
            )
            say(f"{state:8} {about:18} {said}{do}")
        say(told_count(findings))
    return EXIT_FAILED if findings else EXIT_COMPLETED


def _fields(check: Check) -> dict[str, str]:
    return {"state": check.state, "about": check.about, "said": check.said, "fix": check.fix}
