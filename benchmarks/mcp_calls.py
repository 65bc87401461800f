"""Time a read call of an agent at a lab, beside a call of the MCP SDK's own that does nothing.

Both go through the SDK's client and server in this process. ``make bench`` runs it.
"""

import os
import tempfile
import time
from statistics import median
from typing import Any

import anyio
import mcp_types as types
from mcp.client.client import Client
from mcp.server.lowlevel import Server

from labharness.faces.dialogue.tools import Agent
from labharness.faces.mcp.server import server_of
from labharness.lab import default_lab_path

ROUNDS, CALLS = 5, 200
RATIO_MAX = 3.0


async def _list(context: object, params: object) -> types.ListToolsResult:
    tool = types.Tool(name="nothing", input_schema={"type": "object"})
    return types.ListToolsResult(tools=[tool])


async def _nothing(context: object, params: object) -> types.CallToolResult:
    body = {"nothing": True}
    text = types.TextContent(type="text", text='{"nothing": true}')
    return types.CallToolResult(content=[text], structured_content=body)


async def call_ms(client: Client, name: str) -> float:
    took = []
    for _ in range(CALLS):
        began_s = time.perf_counter()
        await client.call_tool(name, {})
        took.append(time.perf_counter() - began_s)
    return median(took) * 1e3


async def main() -> None:
    bare: Server[Any] = Server("bare", on_list_tools=_list, on_call_tool=_nothing)
    found: dict[str, list[float]] = {"nothing": [], "list_runs": [], "describe_lab": []}
    async with (
        Client(bare) as empty,
        Client(server_of(Agent(default_lab_path(), "operator"))) as agent,
    ):
        for _ in range(ROUNDS):
            found["nothing"].append(await call_ms(empty, "nothing"))
            for name in ("list_runs", "describe_lab"):
                found[name].append(await call_ms(agent, name))
    empty_ms = median(found["nothing"])
    for name, each in found.items():
        ratio = median(each) / empty_ms
        print(f"{name:14} {median(each):6.2f} ms  {ratio:5.1f} x (at most {RATIO_MAX:g})")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        os.environ["LABHARNESS_STATE"] = folder
        anyio.run(main)
