"""Checks, before a run, whether any answer can have the outputs that a caller asks for."""

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from labharness.core.vocabulary.spelling import did_you_mean
from labharness.core.vocabulary.texts import Text
from labharness.protocols.hcp.terms import Submission
from labharness.work.admission.declaration import Declaration
from labharness.work.admission.schemas import (
    TYPES_IN_WORDS,
    caller_schema_fault,
    closed_to,
    kept,
    unheard,
)

_TYPES: Final[Mapping[str, frozenset[str]]] = {
    name: frozenset({name}) for name in ("null", "boolean", "object", "array", "integer", "string")
} | {"number": frozenset({"number", "integer"})}
_ALL: Final = frozenset().union(*_TYPES.values())
_LENGTHS: Final = {
    "string": ("minLength", "maxLength"),
    "array": ("minItems", "maxItems"),
    "object": ("minProperties", "maxProperties"),
}
_BRANCHES: Final = ("anyOf", "oneOf")

STEPS_MAX: Final = 20_000
"""The most schemas that a search visits, repeats counted; a longer search finds no fault."""

VALUES_MAX: Final = 100
"""Values of one ``enum`` that are tried; a longer one may fit."""

Schema = Mapping[str, Any] | bool


def asked_fault(
    submission: Submission, declaration: Declaration, formats: Collection[str]
) -> tuple[str, Text] | None:
    """Return why the outputs that a submission asks for cannot be had, and a remedy."""
    wanted = submission.output_format
    if wanted is not None and wanted not in formats:
        listed = ", ".join(sorted(formats)) or "none"
        why = Text("format.unknown", format=wanted[:80], listed=listed)
        return why, Text("format.choose", listed=listed)
    schema = submission.output_schema
    if schema is not None:
        if (reason := caller_schema_fault(schema)) is not None:
            return Text("schema.unused", why=reason), Text("schema.plain")
        if dropped := unheard(schema, declaration.output_schema):
            return dropped, Text("name.as_called")
    required = {*submission.required_fields, *(schema or {}).get("required", ())}
    missing = sorted(required - declaration.produces())
    if missing:
        known = sorted(declaration.produces())
        name, lacks, produced = declaration.name, ", ".join(missing), ", ".join(known)
        hint = did_you_mean(missing[0], known)
        why = Text("output.missing", capability=name, missing=lacks, hint=hint, produced=produced)
        return why, Text("output.require", produced=produced)
    if schema is None:
        return None
    # a closed schema may leave no room for a field that is required beside it
    whole = {**schema, "required": sorted(required)}
    never = contradiction(whole, declaration.output_schema)
    if never is None:
        return None
    name, version = declaration.name, declaration.version
    why = Text("schema.never", capability=name, why=never)
    return why, Text("schema.ask", capability=name, version=version)


@kept
def contradiction(wanted: Mapping[str, Any], produced: Mapping[str, Any]) -> str | None:
    """Return why no output of a capability can fit a caller's schema, or None.

    A reason is certain; None proves nothing: ``if``, ``contains``, ``not`` and
    patterns are not followed, nor a schema of draft-07, in which rules beside a reference are void.

    Args:
        wanted: The caller's schema, which has passed `schemas.caller_schema_fault`.
        produced: The capability's output schema. An answer holds the outputs that it requires, all
            that it names where it requires none, and never another one. A closed schema leaves
            out what it does not name.
    """
    if "draft-07" in str(wanted.get("$schema")):
        return None
    closed = closed_to(wanted)
    if closed is not None:
        produced = _left_by(closed, produced)
    names = frozenset(produced.get("properties", {}))
    delivered = frozenset(produced.get("required", names))
    try:
        return _Search(wanted, names, delivered).clash("outputs", [produced, wanted], top=True)
    except _Enough:
        return None


def _left_by(closed: frozenset[str], produced: Mapping[str, Any]) -> Mapping[str, Any]:
    named = produced.get("properties", {})
    required = produced.get("required", named)
    return {
        **produced,
        "properties": {name: named[name] for name in named if name in closed},
        "required": [name for name in required if name in closed],
    }


class _Enough(Exception):
    """The search has used up its steps."""


@dataclass
class _Search:
    _root: Mapping[str, Any]
    _names: frozenset[str]
    _delivered: frozenset[str]
    _steps: int = 0

    def clash(self, place: str, schemas: Sequence[Schema], *, top: bool = False) -> str | None:
        """Return the first reason why nothing fits all of these schemas."""
        rules: list[Mapping[str, Any]] = []
        for each in self._flat(schemas):
            if isinstance(each, bool):
                if not each:
                    return Text("schema.nothing", place=place)
            elif each.get("not") in ({}, True):
                return Text("schema.nothing", place=place)
            else:
                rules.append(each)
        types = _ALL
        for rule in rules:
            allowed = _types(rule)
            if not types & allowed:
                return Text(
                    "schema.types", place=place, types=_listed(types), allowed=_listed(allowed)
                )
            types &= allowed
        return (
            self._values(place, rules)
            or _bounds(place, rules, types)
            or (self._members(place, rules, top) if types == {"object"} else None)
            or self._branches(place, rules, top)
        )

    def _flat(self, schemas: Sequence[Schema]) -> Iterator[Schema]:
        """Return schemas with their references and ``allOf`` written out beside them."""
        for each in schemas:
            self._steps += 1
            if self._steps > STEPS_MAX:
                raise _Enough
            yield each
            if isinstance(each, bool):
                continue
            inner = list(each.get("allOf", ()))
            if "$ref" in each:
                _, drawer, name = each["$ref"].split("/")
                inner.append(self._root.get(drawer, {}).get(name, True))
            yield from self._flat(inner)

    def _values(self, place: str, rules: Sequence[Mapping[str, Any]]) -> str | None:
        from jsonschema import Draft202012Validator

        listed = [[rule["const"]] if "const" in rule else rule.get("enum") for rule in rules]
        finite = [values for values in listed if values is not None]
        if not finite or max(len(values) for values in finite) > VALUES_MAX:
            return None
        drawers = {
            name: self._root[name] for name in ("$defs", "definitions") if name in self._root
        }
        validators = [Draft202012Validator({**rule, **drawers}) for rule in rules]
        if any(all(one.is_valid(value) for one in validators) for value in finite[0]):
            return None
        return Text("schema.values", place=place, values=str(finite[-1])[:80])

    def _members(self, place: str, rules: Sequence[Mapping[str, Any]], top: bool) -> str | None:
        required = {name for rule in rules for name in rule.get("required", ())}
        if top:
            never = sorted(required - self._names)
            if never:
                return Text("schema.never_hold", place=place, names=", ".join(never))
            required |= self._delivered
            most = min((rule.get("maxProperties", math.inf) for rule in rules), default=math.inf)
            if most < len(required):
                return Text("schema.too_many", place=place, count=len(required), most=most)
            if max((rule.get("minProperties", 0) for rule in rules), default=0) > len(self._names):
                return Text("schema.too_few", place=place, count=len(self._names))
        for name in sorted(required):
            found = [
                rule["properties"][name] for rule in rules if name in rule.get("properties", {})
            ]
            for rule in rules:
                if name not in rule.get("properties", {}) and not rule.get("patternProperties"):
                    found.append(rule.get("additionalProperties", True))
            reason = self.clash(f"{place}.{name}"[:200], found)
            if reason is not None:
                return reason
        return None

    def _branches(self, place: str, rules: Sequence[Mapping[str, Any]], top: bool) -> str | None:
        plain = [{k: v for k, v in rule.items() if k not in _BRANCHES} for rule in rules]
        for rule in rules:
            for key in _BRANCHES:
                reasons = [self.clash(place, [*plain, each], top=top) for each in rule.get(key, ())]
                if reasons and None not in reasons:
                    return Text("schema.no_other", why=reasons[0], key=key)
        return None


def _types(rule: Mapping[str, Any]) -> frozenset[str]:
    said = rule.get("type", tuple(_TYPES))
    names = [said] if isinstance(said, str) else said
    return frozenset().union(*(_TYPES[name] for name in names))


def _listed(types: frozenset[str]) -> Text:
    shown = types - {"integer"} if "number" in types else types
    return Text("either", parts=[TYPES_IN_WORDS[each] for each in sorted(shown)])


def _bounds(place: str, rules: Sequence[Mapping[str, Any]], types: frozenset[str]) -> str | None:
    if types <= {"number", "integer"}:
        low = max((rule.get("minimum", -math.inf) for rule in rules), default=-math.inf)
        high = min((rule.get("maximum", math.inf) for rule in rules), default=math.inf)
        above = max((rule.get("exclusiveMinimum", -math.inf) for rule in rules), default=-math.inf)
        below = min((rule.get("exclusiveMaximum", math.inf) for rule in rules), default=math.inf)
        if low > high or low >= below or above >= high or above >= below:
            return Text("schema.bounds", place=place, low=max(low, above), high=min(high, below))
    for kind, (least, most) in _LENGTHS.items():
        if types == {kind}:
            few = max((rule.get(least, 0) for rule in rules), default=0)
            many = min((rule.get(most, math.inf) for rule in rules), default=math.inf)
            if few > many:
                return Text("schema.parts", place=place, few=few, many=many)
    return None
