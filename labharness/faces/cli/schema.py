"""``labharness schema``: JSON Schemas of HCP's and MCP-CP's messages, and the AsyncAPI document."""

import argparse
import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Final

from labharness.faces.cli.show import BadUse, looking, say, say_each, write_whole
from labharness.protocols.hcp import schemas as hcp
from labharness.protocols.hcp.asyncapi import asyncapi
from labharness.protocols.mcp_cp import schemas as mcp_cp

ASYNCAPI: Final = "asyncapi"


def schema(chosen: argparse.Namespace) -> None:
    """Print one document, write all, or list them."""
    if chosen.out:
        folder = Path(chosen.out)
        with looking(folder, BadUse):
            folder.mkdir(parents=True, exist_ok=True)
            for name in DOCUMENTS:
                path = folder / (f"{name}.json" if name == ASYNCAPI else f"{name}.schema.json")
                write_whole(path, f"{_text(name)}\n".encode())
                say(str(path))
    elif chosen.name is None:
        say_each(DOCUMENTS)
    elif chosen.name in DOCUMENTS:
        say(_text(chosen.name))
    else:
        raise BadUse("schema.unknown", name=chosen.name, known=list(DOCUMENTS))


DOCUMENTS: Final[dict[str, Callable[[], dict[str, Any]]]] = {
    **{kind: partial(hcp.message_schema, kind) for kind in hcp.KINDS},
    ASYNCAPI: asyncapi,
    **{kind: partial(mcp_cp.message_schema, kind) for kind in mcp_cp.KINDS},
}


def _text(name: str) -> str:
    return json.dumps(DOCUMENTS[name](), ensure_ascii=False, indent=2)
