"""The tables of a lab file that belong to capabilities: ``[capability.<name>]``."""

import tomllib
from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import ValidationError

from labharness.core.files.tables import all_errors
from labharness.core.vocabulary.spelling import did_you_mean
from labharness.core.vocabulary.texts import Text
from labharness.lab.config.kinds import capabilities
from labharness.work.capability import Capability, Settings


def offered(
    tables: Mapping[str, Mapping[str, Any]], known: Mapping[str, Capability]
) -> tuple[dict[str, Settings], list[str]]:
    """Read the settings of each capability that a lab offers; return them, and the faults.

    Args:
        tables: Of the lab file, by the name of the capability.
        known: Every capability that is installed.
    """
    found: dict[str, Settings] = {}
    wrong: list[str] = []
    for name, table in tables.items():
        if name not in known:
            there = ", ".join(sorted(known)) or "none"
            near = did_you_mean(name, known)
            wrong.append(Text("lab.no_capability", name=name, near=near, there=there))
            continue
        model: type[Settings] = getattr(known[name], "settings", Settings)
        try:
            found[name] = model.model_validate(table)
        except ValidationError as why:
            wrong.append(Text("lab.capability", name=name, why=all_errors(why, table, model)))
    return found, wrong


def moved_tables(text: str) -> Iterator[str]:
    """Return, for each table that once stood alone, the name that its capability has now."""
    try:
        table = tomllib.loads(text)
        known = capabilities()
    except (tomllib.TOMLDecodeError, LookupError, RecursionError):
        return
    for name, capability in known.items():
        for old, new in getattr(capability, "moved", {}).items():
            if isinstance(table.get(old), dict):
                home = ".".join(filter(None, ("capability", name, new)))
                heads = [old, *(f"{old}.{each}" for each in _tables(table[old]))]
                now = ", ".join(f"[{head}] is now [{home}{head[len(old) :]}]" for head in heads)
                yield Text("lab.moved", now=str(now))


def _tables(table: Mapping[str, Any]) -> Iterator[str]:
    return (name for name, value in table.items() if isinstance(value, dict))
