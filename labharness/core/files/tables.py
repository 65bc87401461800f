"""Read TOML as a strict table; one plain sentence names everything that is wrong in it."""

import json
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

from labharness.core.errors import LabError
from labharness.core.vocabulary.spelling import did_you_mean
from labharness.core.vocabulary.texts import Text, several

T = TypeVar("T")

ERRORS_MAX = 20  # of one file at once; a file with more is of another kind


BOUNDS = {
    "greater_than": ("table.above", "gt"),
    "greater_than_equal": ("table.least", "ge"),
    "less_than": ("table.below", "lt"),
    "less_than_equal": ("table.most", "le"),
    "too_short": ("table.few", "min_length"),
    "too_long": ("table.many", "max_length"),
    "string_too_long": ("table.long", "max_length"),
    "string_pattern_mismatch": ("table.pattern", "pattern"),
}
"""The code of each error of pydantic that names a bound, and where pydantic keeps that."""


class BadTable(LabError, ValueError, code="bad_table", usage=True):
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
    if any("\0" in each for each in every_text(table)):
        raise BadTable(Text("table.nul", where=where))
    try:
        if is_dataclass(model):  # a strict one takes a list for a tuple in JSON only
            return TypeAdapter(model).validate_json(json.dumps(table, default=str))
        return TypeAdapter(model).validate_python(table)
    except ValidationError as why:
        raise BadTable(Text("pair", what=where, why=all_errors(why, table, model))) from None


def read_toml(text: str, where: str) -> dict[str, Any]:
    """Read TOML, whatever it holds; ``where`` is named in errors.

    Raises:
        BadTable: It is none.
    """
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as why:
        raise BadTable(Text("table.not_toml", where=where, why=str(why))) from None
    except RecursionError:
        raise BadTable(Text("table.too_deep", where=where)) from None


def every_text(value: object) -> Iterator[str]:
    """Return every text and key in a table; how deep it goes, its reader has bounded."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        yield from every_text([*value, *value.values()])
    elif isinstance(value, list | tuple):
        for each in value:
            yield from every_text(each)


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
    over = len(found) - ERRORS_MAX
    return several(*found[:ERRORS_MAX], Text("table.more", count=over) if over > 0 else "")


def _is_missing(error: ErrorDetails) -> bool:
    return error["type"] == "missing"


def _said(error: ErrorDetails, table: object, model: type) -> str:
    path = [part for part in error["loc"] if part != "[key]" and not str(part).startswith("tuple[")]
    where = _named(path, table)
    kind, found = error["type"], error["input"]
    shown = repr(found)[:80]
    if kind in ("extra_forbidden", "unexpected_keyword_argument"):
        known = list(keys_of(path[:-1], model))
        near, there = did_you_mean(str(path[-1]), known), ", ".join(known)
        return Text("table.extra", where=where, hint=near, there=there)
    if kind == "missing":
        return Text("table.missing", where=where)
    if kind in ("literal_error", "enum"):
        allowed = error["ctx"]["expected"].replace("'", "").replace(" or ", ", ")
        return Text("table.choice", where=where, found=shown, allowed=allowed)
    if kind == "tuple_type":
        if isinstance(found, Mapping):
            write = "[{ ... }], or two brackets around its name"
            return Text("table.table_for_list", where=where, write=write)
        return Text("table.no_list", where=where, found=shown)
    if kind in ("dict_type", "model_type"):
        return Text("table.no_table", where=where, found=shown)
    if kind == "value_error":
        says = str(error["ctx"]["error"])
        return Text("pair", what=where, why=says) if where else says
    says = error["msg"].removeprefix("Input ")
    if kind in BOUNDS:
        code, key = BOUNDS[kind]
        says = Text(code, bound=error["ctx"][key])
    return Text("table.value", where=where, found=shown, says=says)


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
