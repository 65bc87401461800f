"""A TOML text as a strict value: every key known and of its type, or one plain error."""

import json
import tomllib
from typing import TypeVar

from labharness.core.errors import LabError

__all__ = ["NotStrict", "read_strict"]

T = TypeVar("T")


class NotStrict(LabError, ValueError, code="not_strict"):
    """No TOML, or not as its type says; the message names the file and the key."""


def read_strict(kind: type[T], text: str, what: str) -> T:
    """Read a text into a dataclass that forbids what it does not name.

    Args:
        kind: What it must be.
        text: The file.
        what: What the file is called in errors.

    Raises:
        NotStrict: The text is no TOML, or a key is missing, unknown or of another type.
    """
    from pydantic import TypeAdapter, ValidationError

    try:
        # By way of JSON, because pydantic's strict mode takes a list for a tuple there only.
        return TypeAdapter(kind).validate_json(json.dumps(tomllib.loads(text)))
    except (tomllib.TOMLDecodeError, TypeError) as error:
        raise NotStrict(f"{what}: {error}") from error
    except RecursionError:
        raise NotStrict(f"{what}: it is nested too deep") from None
    except ValidationError as error:
        fault = error.errors()[0]
        where = ".".join(str(part) for part in fault["loc"])
        raise NotStrict(f"{what}, {where}: {fault['msg']}") from error
