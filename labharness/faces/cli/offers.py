"""``labharness drivers`` and ``labharness capabilities``: what is installed and offered."""

import argparse
import json

from labharness.core.vocabulary.spelling import meant
from labharness.faces.cli import EXIT_COMPLETED, EXIT_USAGE
from labharness.faces.cli.show import complain, say
from labharness.lab.config.kinds import capabilities, driver_kinds

__all__ = ["offers"]


def offers(chosen: argparse.Namespace) -> int:
    """List or show."""
    try:
        if chosen.command == "drivers":
            for kind, module in sorted(driver_kinds().items()):
                say(f"{kind:20} {module}")
            return EXIT_COMPLETED
        found = capabilities()
    except LookupError as why:
        complain(f"labharness {chosen.command}: {why}")
        return EXIT_USAGE
    if chosen.verb == "list":
        for name, each in found.items():
            say(f"{name:28} {each.declaration.version:8} {each.declaration.description}")
        return EXIT_COMPLETED
    if chosen.name not in found:
        near = meant(chosen.name, list(found))
        complain(f"labharness: no capability {chosen.name!r}{near}; there are {', '.join(found)}")
        return EXIT_USAGE
    say(json.dumps(found[chosen.name].declaration.to_json(), indent=2, ensure_ascii=False))
    return EXIT_COMPLETED
