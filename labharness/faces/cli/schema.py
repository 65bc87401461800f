"""``labharness schema``: the JSON Schemas of HCP's messages, and the AsyncAPI document of a lab."""

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from labharness.faces.cli.show import BadUse, looking, say, say_each, write_whole
from labharness.protocols.hcp.asyncapi import asyncapi
from labharness.protocols.hcp.schemas import KINDS, message_schema

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
    **{kind: lambda kind=kind: message_schema(kind) for kind in KINDS},  # type: ignore[misc]  # each its own
    ASYNCAPI: asyncapi,
}


def _text(name: str) -> str:
    return json.dumps(DOCUMENTS[name](), ensure_ascii=False, indent=2)
