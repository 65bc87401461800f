"""The actions that sets may name: their kinds, and the form of their parameters."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from labharness.work.plan.instructions import InstructionKind, at_end, is_reference

if TYPE_CHECKING:
    from jsonschema import Draft202012Validator, ValidationError

_SURE: Final = frozenset({"type", "required", "additionalProperties"})
"""Rules of a schema that an object breaks whatever is filled in below it."""


@dataclass(frozen=True, slots=True)
class ActionSchema:
    """An action: its kind, the JSON Schema of its parameters, and its results.

    Attributes:
        results: The path of each value in its result; ``None`` where that is not known.
    """

    kind: InstructionKind
    parameters: Mapping[str, Any]
    results: tuple[str, ...] | None = None


def misfit(action: ActionSchema, parameters: Mapping[str, Any], *, filled: bool) -> str:
    """Return why parameters do not fit an action, as far as references are filled in; or ``""``."""
    validator = _validator(json.dumps(action.parameters, sort_keys=True))
    for end in () if filled else ("min", "max"):
        for error in validator.iter_errors(at_end(parameters, end)):
            open_ = any(map(is_reference, parts_of(error.instance)))
            if not open_ or (error.validator in _SURE and not is_reference(error.instance)):
                return _said(error)
    error = next(validator.iter_errors(parameters), None) if filled else None
    return "" if error is None else _said(error)


def _said(error: "ValidationError") -> str:
    where = ".".join(map(str, error.absolute_path))
    return f"{where or 'parameters'}: {error.message[:200]}"


@cache
def _validator(schema: str) -> "Draft202012Validator":
    from jsonschema import Draft202012Validator

    return Draft202012Validator(json.loads(schema))


def parts_of(value: object) -> Iterator[object]:
    """Return a JSON value and all that is in it."""
    yield value
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, list | tuple):
        for each in value:
            yield from parts_of(each)
