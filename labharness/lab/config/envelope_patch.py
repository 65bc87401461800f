"""Reads an envelope file that changes a few named rows of another one, each with a source."""

from collections.abc import Callable, Mapping
from typing import Any

from pydantic import Field, StrictBool, ValidationError, field_validator

from labharness.core.files.tables import all_errors, keys_of, read_table, read_toml
from labharness.core.vocabulary.spelling import did_you_mean
from labharness.core.vocabulary.texts import Text
from labharness.lab.config.envelopes import LineFile
from labharness.lab.config.lab_file import Strict
from labharness.safety.kernel import EnvelopeInvalid

BASED_ON = "based_on"
ROW_KEYS = ("name", "action", "channel")
"""The keys that name a row: the first of these that it has."""


class ChangeRow(Strict):
    """A ``[[change]]``: one row of the base set anew, removed or added.

    Attributes:
        table: The table as its brackets in the base write it.
        row: The row's name; its action or channel where it has none. For a table of rows only.
        set: New values of named keys.
        add: A row, or a table, that the base does not have.
        remove: Whether the row, or the table, is left out.
        source: Where the change comes from. It becomes the source of the row.
    """

    table: str
    row: str | None = None
    set: dict[str, Any] = Field(default_factory=dict)
    add: dict[str, Any] = Field(default_factory=dict)
    remove: StrictBool = False
    source: str

    @field_validator("source")
    @classmethod
    def _said(cls, given: str) -> str:
        if not given.strip():
            raise ValueError(Text("patch.no_source"))
        return given


class PatchFile(Strict):
    """The envelope file of a line that differs from another one in a few rows."""

    based_on: str
    line: str
    description: str | None = None
    change: tuple[ChangeRow, ...] = ()


def base_of(text: str, where: str) -> str | None:
    """Return what an envelope file is based on: a shipped line or a path; or ``None``.

    Raises:
        BadTable: The file is not TOML.
        EnvelopeInvalid: Its ``based_on`` is not a text.
    """
    table = read_toml(text, where)
    base = table.get(BASED_ON)
    if base is not None and not isinstance(base, str):
        raise EnvelopeInvalid("patch.base", where=where, based_on=BASED_ON, base=repr(base))
    return base


def patch_line(text: str, where: str, base_text: str, base_where: str) -> LineFile:
    """Read an envelope file that is based on another one.

    Args:
        text: The file with the changes.
        where: Its name in errors.
        base_text: The file it is based on.
        base_where: That file's name in errors.

    Raises:
        BadTable: A file is not as it must be.
        EnvelopeInvalid: The base has a base itself, or a change names no row, names several, has
            an unknown key, or changes nothing; names file and change.
    """
    patch = read_table(PatchFile, text, where)
    table = read_toml(base_text, base_where)
    if BASED_ON in table:
        raise EnvelopeInvalid(
            "patch.based_on_base",
            where=where,
            based_on=BASED_ON,
            base_where=base_where,
            table=table[BASED_ON],
        )
    line = read_table(LineFile, base_text, base_where)
    table["line"] = patch.line
    table["description"] = patch.description or line.description
    line = LineFile.model_validate(table)
    for number, change in enumerate(patch.change, 1):
        try:
            _make(change, table)
            line = LineFile.model_validate(table)
        except (ValidationError, EnvelopeInvalid) as why:
            said = (
                all_errors(why, table, LineFile) if isinstance(why, ValidationError) else str(why)
            )
            row = "" if change.row is None else f" {change.row!r}"
            named = Text("patch.change", number=number, table=change.table, row=row)
            raise EnvelopeInvalid("patch.wrong", where=where, change=named, why=said) from None
    return line


def _make(change: ChangeRow, line: dict[str, Any]) -> None:
    """Make one change in the tables of a line.

    Raises:
        EnvelopeInvalid: It cannot be made, or would change nothing.
    """
    asked = [bool(change.set), bool(change.add), change.remove]
    if asked.count(True) != 1:
        raise EnvelopeInvalid("patch.one_of")
    if "source" in {**change.set, **change.add}:
        raise EnvelopeInvalid("patch.source")
    has_source = "source" in keys_of((*change.table.split("."), 0), LineFile)
    source = {"source": change.source} if has_source else {}
    if change.add:
        _add(change, line, {**change.add, **source})
        return
    row, remove = _found(change, line)
    if change.remove:
        remove()
        return
    same = sorted(key for key, value in change.set.items() if key in row and row[key] == value)
    if same:
        raise EnvelopeInvalid("patch.same", same=same[0], row=repr(row[same[0]]))
    row |= change.set | source


def _found(change: ChangeRow, line: dict[str, Any]) -> tuple[dict[str, Any], Callable[[], object]]:
    """Return the one row or table that a change names, and a function that leaves it out."""
    place, key = _place(change.table, line)
    found = place.get(key)
    if found is None:
        there = [each for each, value in place.items() if isinstance(value, dict | list)]
        raise EnvelopeInvalid(
            "patch.no_table", hint=did_you_mean(key, there), known=", ".join(there)
        )
    if isinstance(found, dict):
        if change.row is not None:
            raise EnvelopeInvalid("patch.no_rows")
        return found, lambda: place.pop(key)
    if not isinstance(found, list):
        raise EnvelopeInvalid("patch.key")
    names = [_name(each) for each in found]
    if change.row is None:
        raise EnvelopeInvalid("patch.takes_row")
    count = names.count(change.row)
    if not count:
        raise EnvelopeInvalid("patch.no_row", hint=did_you_mean(change.row, names))
    if count > 1:
        raise EnvelopeInvalid("patch.several", count=count)
    at = names.index(change.row)
    return found[at], lambda: found.pop(at)


def _add(change: ChangeRow, line: dict[str, Any], row: dict[str, Any]) -> None:
    if change.row is not None:
        raise EnvelopeInvalid("patch.add_row")
    place, key = _place(change.table, line)
    there = place.get(key)
    if there is None and _holds_rows(change.table):
        there = place[key] = []
    if there is None:
        place[key] = row
    elif not isinstance(there, list):
        raise EnvelopeInvalid("patch.has_table")
    elif _name(row) in map(_name, there):
        raise EnvelopeInvalid("patch.has_row", name=_name(row))
    else:
        there.append(row)


def _place(path: str, line: dict[str, Any]) -> tuple[dict[str, Any], str]:
    """Return the table that holds the table at a path, and its key there."""
    *above, key = path.split(".")
    place: Any = line
    for each in above:
        place = place.get(each) if isinstance(place, dict) else None
    if isinstance(place, list):
        raise EnvelopeInvalid("patch.rows", known=".".join(above))
    if not isinstance(place, dict):
        raise EnvelopeInvalid("patch.no_such", known=".".join(above))
    return place, key


def _holds_rows(path: str) -> bool:
    """Whether a table of a line is written in two brackets, so that it may have several rows."""
    field = LineFile.model_fields.get(path)
    if field is not None:
        return str(field.annotation).startswith("tuple[")
    return path.startswith("purge.present.")


def _name(row: object) -> str:
    keys = row if isinstance(row, Mapping) else {}
    return next((str(keys[key]) for key in ROW_KEYS if key in keys), "")
