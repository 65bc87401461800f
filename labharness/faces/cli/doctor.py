"""``labharness doctor``: list each hindrance to a run with its remedy."""

import argparse
import json
from pathlib import Path

from labharness.core.vocabulary.texts import Text, in_language
from labharness.faces.cli import EXIT_COMPLETED, EXIT_FAILED
from labharness.faces.cli.line_writer import TERMINAL
from labharness.faces.cli.show import chosen_lab, counted, say
from labharness.lab.doctor.findings import examine
from labharness.lab.doctor.machine import look

RUNS = Path("runs")  # where `run` makes its folder by default


def doctor(chosen: argparse.Namespace) -> int:
    """Examine, and print one line a check."""
    plan = chosen_lab(chosen.lab)
    checks = examine(plan, look(plan, RUNS))
    findings = sum(check.state == "finding" for check in checks)
    code = EXIT_FAILED if findings else EXIT_COMPLETED
    if chosen.json:
        names = ("state", "about", "said", "fix")
        fields = [{name: getattr(check, name) for name in names} for check in checks]
        say(json.dumps(fields, ensure_ascii=False, indent=2))
        return code
    for check in checks:
        fix = Text("doctor.do", fix=check.fix) if check.fix else ""
        cells = (check.state, check.about, check.said, fix)
        state, about, said, do = (in_language(each, TERMINAL.language) for each in cells)
        say(f"{state:8} {about:18} {said}{do}")
    say(counted(findings))
    return code
