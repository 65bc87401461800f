"""``labharness mcp-cp``: dialogues about a lab, for programs that speak MCP-CP."""

import argparse
import asyncio
import os
import signal
from contextlib import ExitStack

from labharness.faces.cli import EXIT_ABORTED
from labharness.faces.cli.ask import is_near, model_of
from labharness.faces.cli.line_writer import TERMINAL
from labharness.faces.cli.serve import listening_at
from labharness.faces.cli.show import BadUse, chosen_lab, complain


def mcp_cp(chosen: argparse.Namespace) -> None:
    """Serve until the input ends, or until a stop request."""
    from labharness.faces.dialogue.rooms import Rooms
    from labharness.faces.dialogue.server import serve_pipes, serve_sockets
    from labharness.faces.dialogue.tools import Agent

    plan = chosen_lab(chosen.lab)
    if (chosen.caller is None) == (chosen.websocket is None):
        raise BadUse("mcp_cp.one_way")
    near = is_near(chosen, plan)
    rooms = Rooms(plan.path, plan.state_dir, model_of(chosen, plan), on_loopback=near)
    with ExitStack() as stack:
        listening = listening_at("--websocket", chosen.websocket, stack)
        if listening is not None:
            signal.signal(signal.SIGINT, signal.default_int_handler)  # which a shell may ignore
            signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))
            try:
                asyncio.run(serve_sockets(rooms, listening, complain))
            except KeyboardInterrupt:
                TERMINAL.flush()
                os._exit(EXIT_ABORTED)  # a turn waits for a model or a person; a kill loses nothing
        else:
            Agent(plan.path, chosen.caller).describe_lab()  # an unknown caller is refused now
            asyncio.run(serve_pipes(rooms, chosen.caller))
