"""The conditions of MCP-CP (chapter 6.2): read once, refused before anything runs, never guessed.

NOT binds before AND, AND before OR. A condition is true, false, or an error that names its cause:
an unknown path and two values that cannot be compared are never false (ruling 36). A grammar reads
it and the few lines below evaluate it; it never becomes Python.
"""

import itertools
import json
import math
import operator
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from labharness.core.vocabulary.spelling import did_you_mean
from labharness.core.vocabulary.texts import CodedError, Text
from labharness.protocols.strict_json import Json

if TYPE_CHECKING:
    from lark import Lark, Tree

CHARACTERS_MAX: Final = 2_000
"""Longest condition, in characters."""

DEPTH_MAX: Final = 32
"""Most levels of NOT, AND, OR and functions within each other."""

EFFORT_MAX: Final = 100_000
"""Most characters, array elements and names that one evaluation looks at: tens of milliseconds."""

SHOWN_MAX: Final = 60
"""Longest part of a condition that a message repeats, in characters."""

ROOTS: Final = ("dependencies", "results")
"""The two names under which MCP-CP reaches other instructions and calls (6.1.2 and 4.6.1)."""

FUNCTIONS: Final = "labharness.conditions"
"""The group of entry points that add functions; the name of a point is that of its function."""

_ORDERED: Final = ("text", "number")
_EQUAL: Final = (*_ORDERED, "boolean")
_TYPES: Final[tuple[tuple[Any, str], ...]] = (
    (bool, "boolean"),
    (int | float, "number"),
    (str, "text"),
    (list | tuple, "array"),
    (Mapping, "object"),
    (type(None), "null"),
)
_TAKES: Final = {"contains": 2, "isEmpty": 1}
_GRAMMAR: Final = r"""
?start: either
?either: both ("OR" both)*
?both: denied ("AND" denied)*
?denied: "NOT" denied -> negation
    | compared
?compared: value
    | value SIGN value -> comparison
?value: "(" either ")"
    | PATH "(" (either ("," either)*)? ")" -> call
    | PATH -> path
    | TEXT -> text
    | NUMBER -> number
    | "true" -> yes
    | "false" -> no
SIGN: "==" | "!=" | ">=" | "<=" | ">" | "<"
PATH: /[^\W\d][\w-]*(\.[\w-]+)*/
TEXT: /'([^']|'')*'/
NUMBER: /[+-]?\d+(\.\d+)?([eE][+-]?\d+)?/
%ignore /\s+/
"""
_JOINTS: Final = {"negation": "NOT ", "both": " AND ", "either": " OR "}
_DENIED: Final = {"!=": "==", ">=": "<", ">": "<="}
"""Signs that say the opposite of others: the same comparison decides both."""

_FAILED: Final = ("FAILED", "TIMEOUT")
_EQUALITY: Final = {"==": operator.eq, "!=": operator.ne}
_SIGNS: Final = _EQUALITY | {
    ">": operator.gt,
    "<": operator.lt,
    ">=": operator.ge,
    "<=": operator.le,
}


class BadCondition(CodedError, ValueError, code="bad_condition"):
    """A condition that cannot be read; the message says where."""


class ConditionFailed(CodedError, code="condition_failed"):
    """A condition that is neither true nor false here; the message says why."""


class _Part(NamedTuple):
    """A node: its rule in the grammar; its name, sign or literal; and the nodes below it."""

    kind: str
    of: Any
    parts: tuple["_Part", ...]


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition that was read.

    Attributes:
        text: As it was written.
        warnings: Remarks on words that were read for others.
        paths: The names of each path in it.
    """

    text: str
    warnings: tuple[Text, ...]
    paths: tuple[tuple[str, ...], ...]
    _root: _Part = field(repr=False)

    def asked_status(self) -> frozenset[str]:
        """Return the ids of those whose status it speaks of."""
        return frozenset(path[1] for path in self.paths if _is_status(path))

    def decisions(self) -> frozenset[str]:
        """Return each part that a result decides, as it is written."""
        leaves = (each for each in _leaves(self._root) if not all(map(_is_status, _paths(each))))
        return frozenset(_decision(each)[0] for each in leaves)

    def decided(self, truths: Mapping[str, bool]) -> str:
        """Return it with the truth of such parts in their place; it asks for the same status."""
        return _written(self._root, truths)

    def may_follow_a_failure(self) -> bool:
        """Return whether it may be true after the failure of one whose status it speaks of."""
        return any(_may_be(self._root, each)[0] for each in self.asked_status())

    def holds(self, context: Mapping[str, Any]) -> bool:
        """Return whether it is true of a context, a JSON object in which its paths begin.

        Raises:
            ConditionFailed: A path leads nowhere, or a value is not of a type that fits.
        """
        return _Evaluation(context).truth(self._root)


@lru_cache(maxsize=1024)  # those of a set are asked for again whenever one of it has ended
def condition_of(text: str) -> Condition:
    """Read a condition.

    Raises:
        BadCondition: It cannot be read, is too long or too deep, or has an unknown function.
    """
    from lark.exceptions import UnexpectedInput, UnexpectedToken

    if len(text) > CHARACTERS_MAX:
        raise BadCondition("condition.long", count=len(text), most=CHARACTERS_MAX)
    try:
        tree = _parser().parse(text)
    except UnexpectedInput as why:
        at = why.pos_in_stream or 0
        if isinstance(why, UnexpectedToken) and why.token.type == "$END":
            raise BadCondition("condition.ends") from None
        raise BadCondition("condition.syntax", at=at + 1, near=text[at:][:SHOWN_MAX]) from None
    warnings: list[Text] = []
    root = _part(tree, warnings)
    return Condition(text, tuple(warnings), tuple(_paths(root)), root)


@cache
def _parser() -> "Lark":
    from lark import Lark

    return Lark(_GRAMMAR, parser="lalr", lexer="basic")  # no keyword is ever a path


def _part(tree: "Tree[Any]", warnings: list[Text], depth: int = 1) -> _Part:
    if depth > DEPTH_MAX:
        raise BadCondition("condition.deep", most=DEPTH_MAX)
    below: list[Any] = tree.children
    kind, of = str(tree.data), None
    if kind == "path":
        return _Part(kind, tuple(below[0].split(".")), ())
    if kind in ("text", "number", "yes", "no"):
        return _Part("literal", _literal(kind, *map(str, below)), ())
    if kind == "call":
        of, below = str(below[0]), below[1:]
        _check_call(of, len(below))
    elif kind == "comparison":
        of, below = str(below[1]), below[::2]
    parts = tuple(_part(each, warnings, depth + 1) for each in below)
    if kind == "comparison":
        parts = _without_alias(parts, warnings)
    return _Part(kind, of, parts)


def _literal(kind: str, text: str = "") -> str | float | bool:
    if kind == "text":
        return text[1:-1].replace("''", "'")
    if kind == "number":
        number = float(text) if set(text) & set(".eE") else int(text)
        if math.isinf(number):
            raise BadCondition("condition.infinite", near=text[:SHOWN_MAX])
        return number
    return kind == "yes"


def _without_alias(parts: tuple[_Part, ...], warnings: list[Text]) -> tuple[_Part, ...]:
    """Read 'SUCCESS' for COMPLETED where a status is compared (ruling 19)."""
    alias = _Part("literal", "SUCCESS", ())
    if alias not in parts or not any(_is_status(each.of) for each in parts if each.kind == "path"):
        return parts
    warnings.append(Text("condition.success"))
    return tuple(each._replace(of="COMPLETED") if each == alias else each for each in parts)


def _is_status(path: tuple[str, ...]) -> bool:
    return len(path) == 3 and path[0] in ROOTS and path[2] == "status"


def _paths(part: _Part) -> Iterator[tuple[str, ...]]:
    if part.kind == "path":
        yield part.of
    for each in part.parts:
        yield from _paths(each)


@cache
def _added() -> Mapping[str, Any]:
    """Return the entry points of functions beside the two of MCP-CP.

    Raises:
        BadCondition: Two have one name.
    """
    from importlib.metadata import entry_points  # slow, and only asked for an unknown name

    found: dict[str, Any] = {}
    for point in sorted(entry_points(group=FUNCTIONS), key=lambda each: each.value):
        if point.name in found or point.name in _TAKES:
            raise BadCondition("condition.doubled", name=point.name, where=point.value)
        found[point.name] = point
    return found


def _check_call(name: str, count: int) -> None:
    if name in _TAKES:
        if count != _TAKES[name]:
            raise BadCondition("condition.takes", name=name, count=count, takes=_TAKES[name])
    elif name not in _added():
        known = [*_TAKES, *_added()]
        shown, meant = name[:SHOWN_MAX], did_you_mean(name[:SHOWN_MAX], known)
        raise BadCondition("condition.no_function", name=shown, known=known, meant=meant)


def _leaves(part: _Part) -> Iterator[_Part]:
    """Return the parts that NOT, AND and OR join."""
    if part.kind not in _JOINTS:
        yield part
        return
    for each in part.parts:
        yield from _leaves(each)


def _decision(leaf: _Part) -> tuple[str, bool]:
    """Return what decides a part, and whether the part says so or the opposite."""
    denied = _DENIED.get(leaf.of) if leaf.kind == "comparison" else None
    return _written(leaf if denied is None else leaf._replace(of=denied), {}), denied is None


def _written(part: _Part, truths: Mapping[str, bool]) -> str:
    if truths and part.kind not in _JOINTS:
        name, says = _decision(part)
        if name in truths:
            return "true" if truths[name] is says else "false"
    below = [_written(each, truths) for each in part.parts]
    if part.kind == "negation":
        return f"NOT {below[0]}"
    if below and part.kind != "call":
        return f"({_JOINTS.get(part.kind, f' {part.of} ').join(below)})"
    if part.kind == "call":
        return f"{part.of}({', '.join(below)})"
    if part.kind == "path":
        return ".".join((ROOTS[0], *part.of[1:]) if part.of[0] in ROOTS else part.of)
    text = part.of.replace("'", "''") if isinstance(part.of, str) else None
    return json.dumps(part.of) if text is None else f"'{text}'"


def _may_be(part: _Part, failed: str) -> tuple[bool, bool]:
    """Return whether a part may be true, and false, after the failure of one; all else is open."""
    if part.kind in _JOINTS:
        true, false = zip(*(_may_be(each, failed) for each in part.parts), strict=True)
        if part.kind == "negation":
            return false[0], true[0]
        return (all(true), any(false)) if part.kind == "both" else (any(true), all(false))
    for path, said in itertools.permutations(part.parts, 2) if part.of in _EQUALITY else ():
        if said.kind == "literal" and path.kind == "path" and _is_status(path.of):
            found = {_EQUALITY[part.of](status, said.of) for status in _FAILED}
            return (True in found, False in found) if path.of[1] == failed else (True, True)
    return True, True


class _Evaluation:
    """One evaluation, with the effort that is left to it."""

    def __init__(self, context: Mapping[str, Any]) -> None:
        self._context = context
        self._left = EFFORT_MAX

    def truth(self, part: _Part) -> bool:
        """Return whether a part is true; AND and OR look no further than they must."""
        if part.kind == "negation":
            return not self.truth(part.parts[0])
        if part.kind == "both":
            return all(map(self.truth, part.parts))
        if part.kind == "either":
            return any(map(self.truth, part.parts))
        found = self._value(part)
        if not isinstance(found, bool):
            raise ConditionFailed("condition.no_truth", what=_shown(part), type=_type(found))
        return found

    def _value(self, part: _Part) -> Json:
        if part.kind == "literal":
            return part.of
        if part.kind == "path":
            return self._at(part.of)
        if part.kind == "comparison":
            left, right = map(self._value, part.parts)
            return self._compared(left, part, right)
        if part.kind == "call":
            return self._called(part, [self._value(each) for each in part.parts])
        return self.truth(part)

    def _at(self, path: tuple[str, ...]) -> Json:
        found: Any = self._context
        for name in path:
            self._spend(1)
            if isinstance(found, Mapping) and name in found:
                found = found[name]
            elif isinstance(found, list | tuple) and name.isdecimal() and int(name) < len(found):
                found = found[int(name)]
            else:
                whole = ".".join(path)[:SHOWN_MAX]
                raise ConditionFailed("condition.no_path", path=whole, name=name[:SHOWN_MAX])
        return found

    def _compared(self, left: Json, part: _Part, right: Json) -> bool:
        types = _type(left), _type(right)
        if types[0] != types[1] or types[0] not in (_EQUAL if part.of in _EQUALITY else _ORDERED):
            raise _wrong_types(part, *types)
        self._spend(min(len(left), len(right)) if types[0] == "text" else 1)
        return bool(_SIGNS[part.of](left, right))

    def _called(self, part: _Part, given: list[Json]) -> Json:
        if part.of == "contains":
            array, wanted = given
            kind = _type(wanted)
            if _type(array) != "array" or kind not in _EQUAL:
                raise _wrong_types(part, _type(array), kind)
            for each in array:  # one of another type is not the value
                self._spend(1 + (len(wanted) if kind == "text" else 0))
                if _type(each) == kind and each == wanted:
                    return True
            return False
        if part.of == "isEmpty":
            (value,) = given
            self._spend(len(value) if isinstance(value, str) else 1)
            blank = isinstance(value, str) and not value.strip()
            sized = isinstance(value, list | tuple | Mapping) and not value
            return value is None or blank or sized
        self._spend(1)
        try:
            return _added()[part.of].load()(*given)
        except Exception as why:
            error = type(why).__name__
            raise ConditionFailed("condition.function", name=part.of, error=error) from why

    def _spend(self, effort: int) -> None:
        self._left -= effort
        if self._left < 0:
            raise ConditionFailed("condition.effort", most=EFFORT_MAX)


def _type(value: object) -> str:
    """Return the name of a value's type, as JSON has it; one that JSON cannot carry has its own."""
    if isinstance(value, float) and not math.isfinite(value):
        return "not a number"
    names = (name for kind, name in _TYPES if isinstance(value, kind))
    return next(names, type(value).__name__)


def _wrong_types(part: _Part, left: str, right: str) -> ConditionFailed:
    return ConditionFailed("condition.types", what=_shown(part), left=left, right=right)


def _shown(part: _Part) -> str:
    """Return a short form of a part, for a message."""
    if part.kind == "path":
        return ".".join(part.of)[:SHOWN_MAX]
    if part.kind == "literal":
        return repr(part.of)[:SHOWN_MAX]
    return str(part.of or part.kind)
