"""``labharness drivers`` and ``labharness capabilities``: what is installed and offered."""

import argparse
import json

from labharness.core.vocabulary.spelling import did_you_mean
from labharness.core.vocabulary.texts import Text
from labharness.faces.cli import EXIT_COMPLETED
from labharness.faces.cli.show import BadUse, say
from labharness.lab.config.kinds import capabilities, driver_kinds


def offers(chosen: argparse.Namespace) -> int:
    """List or show."""
    try:
        kinds = driver_kinds() if chosen.command == "drivers" else {}
        found = capabilities() if chosen.command == "capabilities" else {}
    except LookupError as why:
        raise BadUse(why.args[0]) from None
    for kind, module in sorted(kinds.items()):
        say(f"{kind:20} {module}")
    if "name" in chosen:
        if chosen.name not in found:
            near = did_you_mean(chosen.name, list(found))
            name, known = repr(chosen.name), list(found)
            raise BadUse(Text("cli.no_capability", name=name, hint=near, known=known))
        say(json.dumps(found[chosen.name].declaration.to_json(), indent=2, ensure_ascii=False))
        return EXIT_COMPLETED
    for name, each in found.items():
        say(f"{name:28} {each.declaration.version:8} {each.declaration.description}")
    return EXIT_COMPLETED
