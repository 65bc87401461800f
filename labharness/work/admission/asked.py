"""Finds rules of a caller's schema without effect: names that no output has, misspelt rules.

JSON Schema lets a rule on a name that is not there pass, and passes over a rule that it does not
know. A misspelt `layer_cout`, or `cosnt`, would therefore ask for nothing, and the caller
would take the answer for what was asked.
"""

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Any, Final

from labharness.core.vocabulary.spelling import did_you_mean
from labharness.core.vocabulary.texts import Text
from labharness.work.admission.schemas import kept

_NAMING: Final = ("properties", "dependentSchemas", "dependentRequired")
_LISTS: Final = ("allOf", "anyOf", "oneOf")
_BESIDE: Final = ("if", "then", "else", "not")
_WITHIN: Final = ("items", "contains", "additionalProperties", "propertyNames")
_RULES: Final = (
    *("const", "enum", "type", "required", "patternProperties", "prefixItems", "description"),
    *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
    *("minLength", "maxLength", "pattern", "format", "minItems", "maxItems", "uniqueItems"),
    *("minContains", "maxContains", "minProperties", "maxProperties", "unevaluatedProperties"),
    *("unevaluatedItems", "definitions", "$defs", "$ref", "$schema", "$id", "$comment", "title"),
    *("default", "examples", "deprecated", "readOnly", "writeOnly", "contentEncoding"),
    *("contentMediaType", "contentSchema", "$anchor", "$vocabulary", "$dynamicAnchor"),
)
_KNOWN: Final = frozenset((*_NAMING, *_LISTS, *_BESIDE, *_WITHIN, *_RULES))
_MISTAKEN: Final = tuple(sorted(_KNOWN - {"not"}))  # a "note" is not misspelt
_NEAR: Final = 0.8  # as difflib counts; "units" and "remark" are not misspelt rules
_CHARACTERS_MAX: Final = 80
_TOLD_MAX: Final = 5


@kept
def unheard(wanted: Mapping[str, Any], produced: Mapping[str, Any]) -> str:
    """Return the rules of a caller's schema that have no effect on an answer; ``""`` for none.

    Args:
        wanted: The caller's schema, which has passed `schemas.caller_schema_fault`: no reference of
            it leads in a circle, and written out it has few values.
        produced: The capability's output schema. An answer never has another output than it names,
            nor another member of one that it closes (``additionalProperties`` false).
    """
    outputs = {**produced, "additionalProperties": False}
    found = tuple(dict.fromkeys(_unheard(wanted, outputs, "expected_output.schema", wanted)))
    over = len(found) - _TOLD_MAX
    more = [Text("schema.more", count=over)] if over > 0 else []
    return Text("parts", parts=(*found[:_TOLD_MAX], *more)) if found else ""


def _unheard(
    rule: object, produced: Mapping[str, Any], place: str, root: Mapping[str, Any]
) -> Iterator[str]:
    """Find the parts of one rule without effect, on a value that the capability describes."""
    if not isinstance(rule, Mapping):
        return
    for key in sorted(rule.keys() - _KNOWN):
        if len(key) <= _CHARACTERS_MAX:
            for near in get_close_matches(key, _MISTAKEN, n=1, cutoff=_NEAR):
                yield Text("schema.no_rule", place=place, key=key, near=near)
    known = produced.get("properties", {})
    closed = produced.get("additionalProperties") is False
    for key in _NAMING:
        for name, inner in rule.get(key, {}).items():
            here = f"{place}.{key}"
            if closed and name not in known:
                yield Text(
                    "schema.no_answer",
                    place=here,
                    name=name[:_CHARACTERS_MAX],
                    hint=did_you_mean(name, tuple(known)),
                    known=tuple(known),
                )
            described = known.get(name, {}) if key == "properties" else produced
            yield from _unheard(inner, described, f"{here}.{name}"[:200], root)
    for key in _LISTS:
        for inner in rule.get(key, ()):
            yield from _unheard(inner, produced, f"{place}.{key}", root)
    for key in _BESIDE:
        yield from _unheard(rule.get(key), produced, f"{place}.{key}", root)
    for key in _WITHIN:
        yield from _unheard(rule.get(key), {}, f"{place}.{key}", root)
    if "$ref" in rule:
        _, drawer, name = rule["$ref"].split("/")
        yield from _unheard(root.get(drawer, {}).get(name), produced, f"{place}.$ref", root)
