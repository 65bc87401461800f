"""``labharness guard``: the guard process of one lab. Heavy modules may not be imported here."""

import argparse
from pathlib import Path

from labharness.lab.config.address import read_address
from labharness.safety.guard.process import serve


def guard(chosen: argparse.Namespace) -> None:
    """Serve until a signal ends it.

    Raises:
        BadLabFile: The argument is not a lab file, or its state directory is unknown.
    """
    home = read_address(Path(chosen.lab)).state_dir
    serve(home, once=chosen.once, lab=str(Path(chosen.lab).resolve()))
