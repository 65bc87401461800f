"""``labharness guard``: the guard process of one lab. Nothing heavy may be imported here."""

import argparse
from pathlib import Path

from labharness.faces.cli import EXIT_COMPLETED
from labharness.safety.guard.armed import BadArming, lab_home
from labharness.safety.guard.start import serve

__all__ = ["guard"]


def guard(chosen: argparse.Namespace) -> int:
    """Serve until told to stop."""
    serve(_home(chosen.lab), once=chosen.once, lab=str(Path(chosen.lab).resolve()))
    return EXIT_COMPLETED


def _home(lab: str) -> Path:
    """Find the state directory of a lab.

    Raises:
        BadArming: It is no lab file, or its state can be nowhere.
    """
    try:
        found = lab_home(Path(lab))
    except RuntimeError as why:  # nobody's home
        raise BadArming(f"{lab}: state directory: {why}") from None
    if "\0" in str(found):
        raise BadArming(f"{lab}: state directory: its name holds a null byte")
    return found
