"""JSON Schemas made of our types, said without the names of our code."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from labharness.protocols.json_numbers import INTEGER_MAX

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"

NOT_TOLD: Final = ("title", "default", "description")
"""Keys that speak of our types, and not of the message."""


def plain(
    schema: Mapping[str, Any],
    named: Callable[[str, dict[str, Any]], dict[str, Any]] = lambda _, each: each,
) -> dict[str, Any]:
    """Return a schema without the names of our types, and with the bound of every integer.

    Args:
        schema: As a library made it.
        named: Completes the schema of each property, by its name.
    """
    found = {name: each for name, each in schema.items() if name not in NOT_TOLD}
    if found.get("type") == "integer":
        found = {"minimum": -INTEGER_MAX, "maximum": INTEGER_MAX, **found}
    for name in ("additionalProperties", "items"):
        if isinstance(found.get(name), Mapping):
            found[name] = plain(found[name], named)
    if "anyOf" in found:
        found["anyOf"] = [plain(each, named) for each in found["anyOf"]]
    if "properties" in found:
        found["properties"] = {
            name: named(name, plain(each, named)) for name, each in found["properties"].items()
        }
    return found
