"""``labharness arm``: write the file that says what the guard process of a lab may send."""

import argparse
from pathlib import Path

from labharness.core.files.named import is_there
from labharness.core.vocabulary.texts import Text
from labharness.faces.cli import EXIT_COMPLETED, EXIT_FAILED
from labharness.faces.cli.show import BadUse, CommandFailed, complain, looking, say, warn
from labharness.lab import read_lab
from labharness.lab.wiring.arming import GUARDED, armed_of, write_armed
from labharness.safety.guard.latch import MARKER_FILE


def arm(chosen: argparse.Namespace) -> int:
    """Write armed.json, unless a check of the lab finds something, or the line has an owner."""
    plan = read_lab(Path(chosen.lab))
    findings = plan.check()
    for finding in findings:
        warn(Text("pair", what=finding.where, why=finding.what))
        for line in finding.paste.splitlines():
            complain(f"    {line}")
    if findings:
        return EXIT_FAILED
    armed = armed_of(plan, plan.procedures(), plan.safe_procedure)
    if armed is None:
        raise BadUse("cli.arm_no_port", lab=chosen.lab, kinds=GUARDED)
    with looking(plan.state_dir):
        plan.make_state_dir()
        with plan.lock(plan.looker("arms the line")):
            if is_there(plan.state_dir / MARKER_FILE):
                raise CommandFailed("cli.arm_armed")
            path = write_armed(plan.state_dir, armed)
    say(str(path))
    frames = [frame.port for each in armed.procedures.values() for frame in each]
    for port in armed.ports:
        reads, procedures, most_s = len(port.reads), len(armed.procedures), port.exchange_s_max
        name, count = f"{port.name:14}", frames.count(port.name)
        fields = {"reads": reads, "frames": count, "procedures": procedures, "most_s": most_s}
        say(Text("cli.arm_port", port=name, **fields))
    return EXIT_COMPLETED
