"""``labharness read``: some channels, from the line's owner or from the instruments.

Nothing is imported that only drives a line: a person waits for one number.
"""

import argparse
from collections.abc import Mapping
from typing import Any

from labharness.core.vocabulary.texts import Text
from labharness.faces.cli import EXIT_COMPLETED, EXIT_FAILED
from labharness.faces.cli.owner import owner_of
from labharness.faces.cli.show import say, say_json, warn, with_lab
from labharness.faces.cli.watching import value_text
from labharness.lab.config.channels import BadChannel, check_readable
from labharness.lab.operate.idle_line import read_now


def read(chosen: argparse.Namespace) -> int:
    """Print readings; return 1 if one is missing."""
    with with_lab(chosen) as plan:
        answers: dict[str, Mapping[str, Any]] = {}
        for channel in chosen.channels:
            try:
                check_readable(plan, channel)
            except BadChannel as why:
                answers[channel] = {"ok": False, "error": str(why)}
        there = [channel for channel in chosen.channels if channel not in answers]
        owner = owner_of(plan) if there else None
        if owner is not None:
            with owner:
                answers |= {each: owner.ask(do="read", channel=each) for each in there}
        elif there:
            answers |= zip(there, read_now(plan, there), strict=True)
        found = [answers[channel] for channel in chosen.channels]
        for channel, each in zip(chosen.channels, found, strict=True):
            if not each["ok"]:
                warn(Text("pair", what=channel, why=each["error"]))
            elif not chosen.json:
                say(f"{channel} {value_text(each['value'])} {each['unit']}".rstrip())
        if chosen.json:
            say_json(found)
        return EXIT_COMPLETED if all(each["ok"] for each in found) else EXIT_FAILED
