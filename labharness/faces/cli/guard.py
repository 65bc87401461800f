"""``labharness guard``: the guard process of one lab. Heavy modules may not be imported here."""

import argparse
from pathlib import Path

from labharness.core.vocabulary.texts import Text
from labharness.faces.cli import EXIT_COMPLETED
from labharness.safety.guard.armed import BadArming, lab_home
from labharness.safety.guard.process import serve


def guard(chosen: argparse.Namespace) -> int:
    """Serve until a signal ends it.

    Raises:
        BadArming: The argument is not a lab file, or its state directory is unknown.
    """
    try:
        home = lab_home(Path(chosen.lab))
    except RuntimeError as why:  # this account has no home
        raise BadArming(Text("cli.state_dir", lab=chosen.lab, why=str(why))) from None
    if "\0" in str(home):
        raise BadArming(Text("cli.state_dir", lab=chosen.lab, why=Text("cli.null_byte")))
    serve(home, once=chosen.once, lab=str(Path(chosen.lab).resolve()))
    return EXIT_COMPLETED
