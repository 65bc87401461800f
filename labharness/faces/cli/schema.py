"""``labharness schema``: the JSON Schemas of HCP's messages, and the AsyncAPI document of a lab."""

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from labharness.core.vocabulary.texts import Text
from labharness.faces.cli import EXIT_COMPLETED
from labharness.faces.cli.show import BadUse, looking, say, write_whole
from labharness.protocols.hcp.asyncapi import asyncapi
from labharness.protocols.hcp.schemas import KINDS, message_schema

ASYNCAPI: Final = "asyncapi"


def schema(chosen: argparse.Namespace) -> int:
    """Print one document, write all, or list them; return the exit code."""
    if chosen.out:
        return _write(Path(chosen.out))
    if chosen.name is None:
        for name in DOCUMENTS:
            say(name)
        return EXIT_COMPLETED
    if chosen.name not in DOCUMENTS:
        raise BadUse(Text("schema.unknown", name=chosen.name, known=list(DOCUMENTS)))
    say(_text(chosen.name))
    return EXIT_COMPLETED


DOCUMENTS: Final[dict[str, Callable[[], dict[str, Any]]]] = {
    **{kind: lambda kind=kind: message_schema(kind) for kind in KINDS},  # type: ignore[misc]  # each its own
    ASYNCAPI: asyncapi,
}


def _text(name: str) -> str:
    return json.dumps(DOCUMENTS[name](), ensure_ascii=False, indent=2)


def _write(folder: Path) -> int:
    with looking(folder, BadUse):
        folder.mkdir(parents=True, exist_ok=True)
        for name in DOCUMENTS:
            path = folder / (f"{name}.json" if name == ASYNCAPI else f"{name}.schema.json")
            write_whole(path, f"{_text(name)}\n".encode())
            say(str(path))
    return EXIT_COMPLETED
