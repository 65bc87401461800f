"""Finds faults in JSON values and JSON Schemas that strangers send, and rules without effect.

JSON Schema lets a rule on a name that is not there pass, and passes over a rule that it does not
know. A misspelt `layer_cout`, or `cosnt`, would therefore ask for nothing, and the caller would
take the answer for what was asked.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from functools import lru_cache, wraps
from itertools import chain
from typing import Any, Final, NamedTuple, TypeVar

from labharness.core.vocabulary.spelling import did_you_mean
from labharness.core.vocabulary.texts import Text
from labharness.protocols.json_numbers import PLACE_CHARACTERS, value_fault

SCHEMA_DEPTH_MAX: Final = 24
"""Nesting of a schema that a caller sends; the meta-schema costs many frames a level."""

SCHEMA_NODES_MAX: Final = 10_000
"""Values in a caller's schema once its references are written out."""

PATTERN_CHARACTERS_MAX: Final = 200
"""Length of a regular expression in a caller's schema."""

OPEN_REPEATS_MAX: Final = 2
"""Repeats of open length in one such expression; each adds a power to its worst time, and so does a
search that is not anchored at the start."""

SCHEMAS_KEPT: Final = 32
"""Schemas of which is kept what each check found: to check one takes some 5 ms, twice a task."""

KEPT_CHARACTERS_MAX: Final = 65_536
"""Length of schemas of which a finding is kept; others are checked each time."""

CHOICES_MAX: Final = 10
"""Optional parts and alternatives in one such expression; each may double its worst time."""

_REFERENCES: Final = ("$ref", "$dynamicRef", "$recursiveRef")
_LOCAL: Final = re.compile(r"#/(?:\$defs|definitions)/[A-Za-z0-9_.-]{1,128}")
_CLASS: Final = re.compile(r"\[\^?\]?(?:[^\]\\]|\\.)*\]")
_COUNT_MAX: Final = 1_000
# A place is written for each value, so that long keys would cost their length many times over.
_DIALECTS: Final = (
    "http://json-schema.org/draft-07/schema#",
    "https://json-schema.org/draft/2019-09/schema",
    "https://json-schema.org/draft/2020-12/schema",
)
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

TYPES_IN_WORDS: Final[Mapping[str, str]] = {
    "array": "a list",
    "boolean": "true or false",
    "integer": "a whole number",
    "null": "null",
    "number": "a number",
    "object": "an object",
    "string": "a text",
}


class SchemaFault(NamedTuple):
    """The place of a wrong value, the reason, and a remedy."""

    where: str
    reason: str
    remedy: str


Found = TypeVar("Found")


def kept(check: Callable[..., Found]) -> Callable[..., Found]:
    """Return a check of schemas that looks at each once: a caller sends one with all its tasks."""

    @lru_cache(SCHEMAS_KEPT)
    def of_texts(*texts: str) -> Found:
        return check(*map(json.loads, texts))

    @wraps(check)
    def checked(*schemas: Mapping[str, Any]) -> Found:
        texts = [json.dumps(each, default=dict) for each in schemas]
        if sum(map(len, texts)) > KEPT_CHARACTERS_MAX:
            return check(*map(json.loads, texts))
        return of_texts(*texts)

    return checked


def input_fault(schema: Mapping[str, Any], inputs: Mapping[str, Any]) -> SchemaFault | None:
    """Return the first input that the capability's schema refuses, or None."""
    unfit = value_fault(inputs, "inputs")
    if unfit is not None:
        return SchemaFault(*unfit, Text("schema.finite", place=unfit[0]))
    return _validation_fault(schema, inputs, "inputs")


def output_fault(schema: Mapping[str, Any], outputs: Mapping[str, Any]) -> SchemaFault | None:
    """Return the first output that a caller's schema refuses, or None.

    The schema must have passed `caller_schema_fault`.
    """
    return _validation_fault(schema, outputs, "outputs")


def name_fault(
    unknown: Mapping[str, Sequence[str]], known: Mapping[str, Sequence[str]]
) -> tuple[str, Text] | None:
    """Return why unknown names are refused, and a remedy; a caller would count on them.

    Args:
        unknown: The unknown names, by the object they were found in.
        known: The names that are read there.
    """
    for where, names in unknown.items():
        if names:
            hint, listed = did_you_mean(names[0], known[where]), ", ".join(known[where])
            why = Text("name.unknown", where=where, name=names[0][:80], hint=hint, known=listed)
            dropped = ", ".join(name[:80] for name in names)
            return why, Text("name.leave_out", where=where, names=dropped)
    return None


def caller_schema_fault(schema: Mapping[str, Any]) -> str | None:
    """Return why a caller's schema is not used, or None.

    It may hold no reference out of itself (that would make us fetch what a stranger names), no
    reference in a circle, no expression whose worst time explodes, and no more than its bounds.
    """
    depth = max(depth for depth, _ in _nodes(schema))
    if depth > SCHEMA_DEPTH_MAX:
        return Text("schema.depth", depth=depth, most=SCHEMA_DEPTH_MAX)
    return _fault_of(schema)


@kept
def _fault_of(schema: dict[str, Any]) -> str | None:
    from jsonschema import SchemaError

    nodes = (each for _, each in _nodes(_without_id(schema)) if isinstance(each, Mapping))
    for key, value in chain.from_iterable(each.items() for each in nodes):
        if key in _REFERENCES and not (isinstance(value, str) and _LOCAL.fullmatch(value)):
            return Text("schema.fetched", key=key, value=str(value)[:80])
        if key == "$schema" and not _dialect(value):
            return Text("schema.dialect", value=str(value)[:80], dialects=", ".join(_DIALECTS))
        if key in ("$id", "id") and isinstance(value, str):
            return Text("schema.id", key=key, value=value[:80])
        patterns = [value] if key == "pattern" and isinstance(value, str) else []
        if key == "patternProperties" and isinstance(value, Mapping):
            patterns = list(value)
        for pattern in patterns:
            reason = _pattern_fault(pattern)
            if reason is not None:
                return Text("schema.pattern", pattern=str(pattern)[:80], why=reason)
    try:
        if _written_out(schema, schema, ()) > SCHEMA_NODES_MAX:
            return _TOO_LARGE
        _validator(schema).check_schema(schema)  # takes seconds where the size has no bound
    except SchemaError as error:
        return Text("schema.invalid", why=error.message[:200])
    except _Unusable as error:
        return str(error)
    return None


def _dialect(stated: object) -> str:
    """Return the dialect that is stated, as it is listed; ``""`` where it is not read."""
    without = str(stated).removesuffix("#")
    return next((each for each in _DIALECTS if each.removesuffix("#") == without), "")


def _without_id(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a schema without its own name: its references are all within it."""
    return {key: value for key, value in schema.items() if key != "$id"}


def _validator(schema: Mapping[str, Any]) -> Any:  # noqa: ANN401 - jsonschema is imported when needed
    from jsonschema import Draft7Validator, Draft201909Validator, Draft202012Validator

    of = dict(zip(_DIALECTS, (Draft7Validator, Draft201909Validator), strict=False))
    return of.get(_dialect(schema.get("$schema", "")), Draft202012Validator)


def closed_to(schema: Mapping[str, Any]) -> frozenset[str] | None:
    """Return the only outputs that a caller's schema admits; ``None`` where it is open."""
    if schema.get("additionalProperties") is not False or schema.get("patternProperties"):
        return None
    return frozenset(schema.get("properties", {}))


_TOO_LARGE: Final = Text("schema.too_large", most=SCHEMA_NODES_MAX)


class _Unusable(Exception):
    """A schema whose references lead nowhere, in a circle, or to too much."""


def _validation_fault(
    schema: Mapping[str, Any], value: Mapping[str, Any], where: str
) -> SchemaFault | None:
    from jsonschema.exceptions import best_match

    # dict(): jsonschema takes no other mapping for an object.
    errors = list(_validator(schema)(_without_id(schema)).iter_errors(dict(value)))
    if not errors:
        return None
    # A misspelt name explains what seems to be missing, so it comes first.
    extra = [each for each in errors if each.validator == "additionalProperties"]
    error = best_match(extra or errors)
    place = where + error.json_path.removeprefix("$")[:PLACE_CHARACTERS]
    reason = error.message[:300]
    if error.validator == "additionalProperties" and where == "inputs":
        reason = _not_known(error)
    return SchemaFault(place, reason, _remedy(error, place))


def _not_known(error: Any) -> str:  # noqa: ANN401 - jsonschema is imported when needed
    """Name the first key that the schema does not have, and the likely meant one."""
    known = error.schema.get("properties", {})
    extra = next(str(name) for name in error.instance if name not in known)
    inner = {
        str(name): f"{key}.{name}"
        for key, one in known.items()
        for name in (one.get("properties", ()) if isinstance(one, Mapping) else ())
        if name not in known
    }
    hint = did_you_mean(extra, [*inner, *known], inner)
    return Text("input.unknown", name=extra[:80], hint=hint, known=", ".join(known))


def _remedy(error: Any, place: str) -> str:  # noqa: ANN401 - jsonschema is imported when needed
    rule, allowed = error.validator, error.validator_value
    if rule == "enum":
        return Text("input.one_of", place=place, allowed=", ".join(str(each) for each in allowed))
    if rule == "type":
        kinds = [allowed] if isinstance(allowed, str) else allowed
        return Text("input.type", place=place, types=tuple(TYPES_IN_WORDS[kind] for kind in kinds))
    if rule in ("minimum", "maximum"):
        return Text(f"input.{rule}", place=place, bound=allowed)
    if rule == "required":
        missing = [name for name in allowed if name not in error.instance]
        return Text("input.add", place=place, names=", ".join(missing))
    if rule == "additionalProperties":
        known = error.schema.get("properties", {})
        extra = ", ".join(str(name)[:80] for name in error.instance if name not in known)
        return Text("input.leave_out", place=place, names=extra, known=", ".join(known))
    return Text("input.fit", place=place, rule=rule, allowed=str(allowed)[:80])


def _within(node: object) -> Iterable[Any]:
    """Return the values in an object or a list; nothing for another value."""
    return node.values() if isinstance(node, Mapping) else node if isinstance(node, list) else ()


def _nodes(schema: object) -> Iterator[tuple[int, Any]]:
    """Return each value within a schema, itself too, and how deep it stands."""
    pending = [(1, schema)]
    while pending:
        depth, one = pending.pop()
        yield depth, one
        pending.extend((depth + 1, item) for item in _within(one))


def _written_out(node: object, root: Mapping[str, Any], within: tuple[str, ...]) -> int:
    size = 1
    for item in _within(node):
        size += _written_out(item, root, within)
        if size > SCHEMA_NODES_MAX:
            raise _Unusable(_TOO_LARGE)
    if isinstance(node, Mapping):
        targets = (node.get(key) for key in _REFERENCES)
        size += sum(_referred(one, root, within) for one in targets if isinstance(one, str))
    return size


def _referred(target: str, root: Mapping[str, Any], within: tuple[str, ...]) -> int:
    if target in within:
        raise _Unusable(Text("schema.circle", target=target))
    if len(within) >= SCHEMA_DEPTH_MAX:
        raise _Unusable(Text("schema.chain", most=SCHEMA_DEPTH_MAX))
    _, drawer, name = target.split("/")
    definitions = root.get(drawer)
    if not isinstance(definitions, Mapping) or name not in definitions:
        raise _Unusable(Text("schema.nowhere", target=target))
    return _written_out(definitions[name], root, (*within, target))


def _pattern_fault(pattern: str) -> str | None:
    if len(pattern) > PATTERN_CHARACTERS_MAX:
        return Text("pattern.length", most=PATTERN_CHARACTERS_MAX)
    try:
        re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        return Text("pattern.bad", why=str(error))
    # The expression with one character in place of each escape and class.
    bare = _CLASS.sub("x", re.sub(r"\\[^0-9]", "x", pattern))
    flat = bare.replace("(?:", "(")
    counts = (int(count) for count in re.findall(r"[{,]([0-9]{1,9})", flat))
    anchored = flat.startswith("^") and "|" not in flat
    repeats = len(re.findall(r"[*+]|\{[0-9]*,[0-9]*\}", flat)) + (not anchored)
    choices = len(re.findall(r"[?|]", flat))
    faults = (
        (re.search(r"\\[0-9]", bare), Text("pattern.groups")),
        (re.search(r"\(\?(?!:)", bare), Text("pattern.extensions")),
        (re.search(r"\)[*+{]", flat), Text("pattern.unbounded")),
        (any(count > _COUNT_MAX for count in counts), Text("pattern.count", most=_COUNT_MAX)),
        (repeats > OPEN_REPEATS_MAX, Text("pattern.repeats", most=OPEN_REPEATS_MAX)),
        (choices > CHOICES_MAX, Text("pattern.choices", most=CHOICES_MAX)),
    )
    return next((why for found, why in faults if found), None)


@kept
def unheard(wanted: Mapping[str, Any], produced: Mapping[str, Any]) -> str:
    """Return the rules of a caller's schema that have no effect on an answer; ``""`` for none.

    Args:
        wanted: The caller's schema, which has passed `caller_schema_fault`: no reference of
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
