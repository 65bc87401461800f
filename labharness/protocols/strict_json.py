"""Read one JSON object from bytes, bounded and without doubt: no key twice, nothing but UTF-8."""

import json
import re
from typing import Any, Final, TypeAlias

from labharness.core.vocabulary.texts import CodedError

Json: TypeAlias = Any
"""A JSON value. Python has no type of one that each reader could narrow: it looks what it is."""

# Each string, closed or not, is skipped in one match and each byte is read once; brackets remain.
_BRACKETS: Final = re.compile(rb'"(?:[^"\\]++|\\.)*+(?:"|\\?\Z)|[\[{]|[\]}]', re.DOTALL)


class NotJson(CodedError, ValueError, code="not_json"):
    """Bytes that are not one JSON object within the bounds of a protocol."""


def check_bounds(data: bytes, bytes_max: int, depth_max: int) -> None:
    """Hold bytes to the bounds of a protocol, before they are parsed.

    Raises:
        NotJson: They are more than `bytes_max`, or nested more than `depth_max` deep.
    """
    if len(data) > bytes_max:
        raise NotJson("message.bytes", bytes=len(data), most=bytes_max)
    if data.count(b"[") + data.count(b"{") <= depth_max:
        return
    depth = 0
    for token in _BRACKETS.finditer(data):
        first = token[0][:1]
        if first in b"[{":
            depth += 1
            if depth > depth_max:
                raise NotJson("message.deep", most=depth_max)
        elif first in b"]}":
            depth -= 1


def json_object(data: bytes, bytes_max: int, depth_max: int) -> dict[str, Any]:
    """Return the object that bytes hold. NaN and infinities pass: `value_fault` names their place.

    Raises:
        NotJson: They are not one, or not within the bounds.
    """
    check_bounds(data, bytes_max, depth_max)
    try:
        text = data.decode("utf-8")
        body = json.loads(text, object_pairs_hook=_distinct_keys)
        if "\\u" in text:
            # Half of a surrogate pair, escaped, is valid JSON but cannot be written as UTF-8.
            json.dumps(body, ensure_ascii=False).encode("utf-8")
    except NotJson:
        raise
    except ValueError as error:
        raise NotJson("message.json", error=str(error)) from error
    if not isinstance(body, dict):
        raise NotJson("message.object", found=type(body).__name__)
    return body


def _distinct_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        seen: set[str] = set()
        for name, _ in pairs:
            if name in seen:
                raise NotJson("message.twice", name=name[:80])
            seen.add(name)
    return found
