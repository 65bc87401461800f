"""``labharness example``: an example task, as an HCP message."""

import argparse
from importlib.resources import files
from pathlib import Path

import labharness
from labharness.faces.cli import EXIT_COMPLETED
from labharness.faces.cli.show import output

NAME = "examples/mos2-monolayer.json"


def example(chosen: argparse.Namespace) -> int:
    """Print the task, byte for byte as it is shipped."""
    data = example_path().read_bytes()
    with output() as stream:
        stream.write(data)
    return EXIT_COMPLETED


def example_path() -> Path:
    """Find the task: in the package of a wheel, or beside the package in a checkout."""
    package = Path(str(files(labharness)))
    shipped = package / NAME
    return shipped if shipped.is_file() else package.parent / NAME
