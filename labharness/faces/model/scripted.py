"""A model that is a file: each of its answers stands there, with blanks for what tools return."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from labharness.core.vocabulary.texts import CodedError, Text
from labharness.protocols.mcp_cp.messages import ModelResponse
from labharness.protocols.strict_json import Json
from labharness.work.dialogue.course import Briefing, response_of, results_of, turn_of, value_of

GROWTH: Final = Path(__file__).with_name("growth.json")
"""The answers of a model that grows a monolayer and tells how sure it is."""

BLANK: Final = re.compile(r"\$\{(\w+)((?:\.\w+)*)\}")
"""The last result of a tool, and the path to a value in it."""


class BadScript(CodedError, ValueError, code="bad_script", usage=True):
    """A file of answers that cannot be used; the message says where."""


class Scripted:
    """A model that says what stands in a file.

    Args:
        path: A JSON list of answers, each with ``text`` and ``calls`` (``name``, ``parameters``).

    Raises:
        BadScript: The file is not such a list.
    """

    def __init__(self, path: Path) -> None:
        try:
            self._answers: list[Mapping[str, Any]] = [*json.loads(path.read_text("utf-8"))]
            for each in self._answers:
                (each["text"], *((one["name"], one["parameters"]) for one in each["calls"]))
        except (OSError, ValueError, LookupError, TypeError) as why:
            raise BadScript("model.script", path=str(path), why=repr(why)) from None

    def answer(self, briefing: Briefing) -> ModelResponse:
        """Return its next answer; one with a blank that no result fills is a failure in words."""
        turn, number = turn_of(briefing.messages), briefing.number
        names = {
            call.call_id: call.name
            for each in turn
            if isinstance(each.content, ModelResponse)
            for call in each.content.tool_calls
        }
        results = {names[each.call_id]: value_of(each) for each in results_of(turn)}
        at = sum(isinstance(each.content, ModelResponse) for each in turn)
        if at >= len(self._answers):
            return response_of("", (), "stop", None, number)
        found = self._answers[at]
        try:
            text = str(_filled(found["text"], results))
            calls = [
                (one["name"], json.dumps(_filled(one["parameters"], results)))
                for one in found["calls"]
            ]
        except LookupError as blank:
            said = Text("model.blank", blank=str(blank))
            return response_of(str(said), (), "error", None, number)
        return response_of(text, calls, "tool_call" if calls else "stop", None, number)


def _filled(value: Json, results: Mapping[str, Json]) -> Json:
    """Return JSON whose blanks are filled; a text that is one blank alone becomes its value."""
    if isinstance(value, dict):
        return {name: _filled(each, results) for name, each in value.items()}
    if isinstance(value, list):
        return [_filled(each, results) for each in value]
    if not isinstance(value, str):
        return value
    if whole := BLANK.fullmatch(value):
        return _found(whole, results)
    return BLANK.sub(lambda blank: str(_found(blank, results)), value)


def _found(blank: re.Match[str], results: Mapping[str, Json]) -> Json:
    value = results.get(blank[1])
    for name in filter(None, blank[2].split(".")):
        value = value.get(name) if isinstance(value, dict) else None
    if value is None:
        raise LookupError(blank[0])
    return value
