"""``labharness drivers``, ``capabilities`` and ``example``: what is installed and offered."""

import argparse
import json
from importlib.resources import files
from pathlib import Path

import labharness
from labharness.core.vocabulary.spelling import did_you_mean
from labharness.faces.cli.show import BadUse, output, say
from labharness.lab.config import kinds

EXAMPLE = "examples/mos2-monolayer.json"


def drivers(chosen: argparse.Namespace) -> None:
    """List the drivers."""
    try:
        found = kinds.driver_kinds()
    except LookupError as why:
        raise BadUse(why.args[0]) from None
    for kind, module in sorted(found.items()):
        say(f"{kind:20} {module}")


def capabilities(chosen: argparse.Namespace) -> None:
    """List the capabilities, or show one."""
    try:
        found = kinds.capabilities()
    except LookupError as why:
        raise BadUse(why.args[0]) from None
    if "name" not in chosen:
        for name, each in found.items():
            say(f"{name:28} {each.declaration.version:8} {each.declaration.description}")
        return
    if chosen.name not in found:
        near, known = did_you_mean(chosen.name, list(found)), list(found)
        raise BadUse("cli.no_capability", name=repr(chosen.name), hint=near, known=known)
    say(json.dumps(found[chosen.name].declaration.to_json(), indent=2, ensure_ascii=False))


def example(chosen: argparse.Namespace) -> None:
    """Print the example task, byte for byte as it is shipped."""
    package = Path(str(files(labharness)))
    shipped = package / EXAMPLE  # in a wheel; in a checkout it is beside the package
    path = shipped if shipped.is_file() else package.parent / EXAMPLE
    with output() as stream:
        stream.write(path.read_bytes())
