"""``labharness mcp``: a lab for one agent, whose own program has started this one."""

import argparse

from labharness.faces.cli.show import chosen_lab


def mcp(chosen: argparse.Namespace) -> None:
    """Serve until the agent's program closes the input."""
    plan = chosen_lab(chosen.lab)
    from labharness.faces.mcp.server import serve

    serve(plan.path, chosen.caller)
