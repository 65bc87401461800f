"""``labharness guard``: the guard process of one lab. Nothing heavy may be imported here."""

import argparse
import sys
from pathlib import Path

from labharness.cli import EXIT_COMPLETED, EXIT_USAGE
from labharness.guard.armed import BadArming, lab_home
from labharness.guard.start import CannotGuard, serve

__all__ = ["guard"]


def guard(chosen: argparse.Namespace) -> int:
    """Serve until told to stop."""
    try:
        serve(lab_home(Path(chosen.lab)), once=chosen.once)
    except (BadArming, CannotGuard) as why:
        sys.stderr.write(f"labharness guard: {why}\n")
        return EXIT_USAGE
    return EXIT_COMPLETED
