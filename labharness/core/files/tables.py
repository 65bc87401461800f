"""Read TOML as a strict table; one plain sentence names everything that is wrong in it."""

import json
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

from labharness.core.errors import LabError
from labharness.core.vocabulary.spelling import meant

__all__ = ["BadTable", "all_errors", "keys_of", "read_table", "read_toml"]

T = TypeVar("T")

ERRORS_MAX = 20  # of one file at once; a file with more is of another kind


class BadTable(LabError, ValueError, code="bad_table"):
    """No TOML, or a table that is not as its model says."""


def read_table(model: type[T], text: str, where: str) -> T:
    """Read a table.

    Args:
        model: The model of the table, or a dataclass with a strict ``__pydantic_config__``.
        text: The content of the file.
        where: The name of the file in errors.

    Raises:
        BadTable: The text does not fit the model; the message says all that is wrong, and what may
            stand there instead.
    """
    table = read_toml(text, where)
    if any("\0" in each for each in _texts(table)):
        raise BadTable(f"{where}: a text holds the character 0, which no name and no path has")
    try:
        if is_dataclass(model):  # a strict one takes a list for a tuple in JSON only
            return TypeAdapter(model).validate_json(json.dumps(table, default=str))
        return TypeAdapter(model).validate_python(table)
    except ValidationError as why:
        raise BadTable(f"{where}: {all_errors(why, table, model)}") from None


def read_toml(text: str, where: str) -> dict[str, Any]:
    """Read TOML, whatever it holds; ``where`` is named in errors.

    Raises:
        BadTable: It is none.
    """
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as why:
        raise BadTable(f"{where} is no TOML: {why}") from None
    except RecursionError:
        raise BadTable(f"{where} is no TOML that can be read: it is nested too deep") from None


def _texts(value: object) -> Iterator[str]:
    """Return every text in a table; how deep it goes, its reader has bounded."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _texts(each)


def all_errors(why: ValidationError, table: object, model: type) -> str:
    """Return all errors of a table in one line, in the words of the file.

    Where one value may be of several forms and is of none, its first error stands for it.
    """
    said: dict[tuple[int | str, ...], list[str]] = {}
    for error in sorted(why.errors(), key=_is_missing):  # it may be there, in another spelling
        loc = error["loc"]
        forms = [at for at, part in enumerate(loc) if str(part).startswith("tuple[")]
        place = loc[: forms[0]] if forms else loc
        if not forms or place not in said:
            said.setdefault(place, []).append(_said(error, table, model))
    found = list(dict.fromkeys(text for texts in said.values() for text in texts))
    more = f"; and {len(found) - ERRORS_MAX} more" if len(found) > ERRORS_MAX else ""
    return "; ".join(found[:ERRORS_MAX]) + more


def _is_missing(error: ErrorDetails) -> bool:
    return error["type"] == "missing"


def _said(error: ErrorDetails, table: object, model: type) -> str:
    path = [part for part in error["loc"] if part != "[key]" and not str(part).startswith("tuple[")]
    where = _named(path, table)
    kind, found = error["type"], error["input"]
    if kind in ("extra_forbidden", "unexpected_keyword_argument"):
        known = list(keys_of(path[:-1], model))
        there = ", ".join(known)
        return f"{where}: there is no such key{meant(str(path[-1]), known)}; there are {there}"
    if kind == "missing":
        return f"{where}: it is missing"
    if kind in ("literal_error", "enum"):
        allowed = error["ctx"]["expected"].replace("'", "")
        return f"{where}: {repr(found)[:80]} is none of {allowed.replace(' or ', ', ')}"
    if kind == "tuple_type":
        if isinstance(found, Mapping):
            write = "[{ ... }], or two brackets around its name"
            return f"{where}: a table is no list: write {write}"
        return f"{where}: {repr(found)[:80]} is no list: write [ ] around it"
    if kind in ("dict_type", "model_type"):
        return f"{where}: {repr(found)[:80]} is no table: write {{ ... = ... }}"
    says = error["msg"].removeprefix("Value error, ").removeprefix("Input ")
    if kind == "value_error":
        return f"{where}: {says}" if where else says
    return f"{where}: {repr(found)[:80]} {says}"


def _named(path: Sequence[int | str], table: object) -> str:
    """Write a path with the names of rows in the place of their numbers."""
    parts: list[str] = []
    for part in path:
        try:
            table = table[part]  # type: ignore[index]  # a value that is not a table raises TypeError
        except (LookupError, TypeError):
            table = None
        name = None
        if isinstance(part, int) and isinstance(table, Mapping):
            name = table.get("name", table.get("channel"))
        parts.append(f"{parts.pop()} {name!r}" if parts and name else str(part))
    return ".".join(parts)


def keys_of(path: Sequence[int | str], model: type) -> Iterator[str]:
    """Return the keys that the table at a path may have."""
    for part in path:
        annotation = _fields(model).get(str(part))
        inner = (annotation, *_inside(annotation))
        model = next((each for each in inner if isinstance(each, type) and _fields(each)), model)
    yield from _fields(model)


def _fields(model: type) -> Mapping[str, object]:
    """Return the annotations of a table's keys; none for a type that is not a table."""
    if is_dataclass(model):
        return {each.name: each.type for each in fields(model)}
    if issubclass(model, BaseModel):
        return {name: field.annotation for name, field in model.model_fields.items()}
    return {}


def _inside(annotation: object) -> Iterator[object]:
    for each in get_args(annotation):
        yield each
        yield from _inside(each)
