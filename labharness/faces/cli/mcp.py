"""``labharness mcp``: a lab for one agent, whose own program has started this one."""

import argparse
from importlib import import_module

from labharness.faces.cli.show import chosen_lab


def mcp(chosen: argparse.Namespace) -> None:
    """Serve until the agent's program closes the input."""
    plan = chosen_lab(chosen.lab)
    import_module("mcp")  # first, so that a lack of the extra names it
    from labharness.faces.mcp.server import serve

    serve(plan.path, chosen.caller)
