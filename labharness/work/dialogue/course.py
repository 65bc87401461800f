"""The course of a dialogue: the next step, by its messages alone; others carry it out.

The messages alone decide, so that a dialogue goes on after a kill from what was written of it.
"""

import json
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from labharness.core.vocabulary.texts import Text
from labharness.protocols.mcp_cp.messages import McpMessage, ModelResponse, Usage
from labharness.protocols.mcp_cp.tools import CALLS_MAX, ToolCall, ToolResult
from labharness.protocols.strict_json import Json
from labharness.protocols.timestamps import moment_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """The most that one input of a user may take.

    Attributes:
        answers: Of the model.
        calls: Of tools.
        tokens: Of the model, as it counts them.
        size_bytes: Of all messages, whatever a model counts.
        wall_s: World time.
    """

    answers: int = 24
    calls: int = 64
    tokens: int = 500_000
    size_bytes: int = 4_194_304
    wall_s: float = 3_600.0


@dataclass(frozen=True, slots=True)
class AskModel:
    """The model is asked, with all messages so far."""


@dataclass(frozen=True, slots=True)
class RunCalls:
    """These calls are carried out, in their order."""

    calls: tuple[ToolCall, ...]


@dataclass(frozen=True, slots=True)
class Ended:
    """The dialogue waits for its user.

    Attributes:
        bound: Why it went no further; ``""`` where the model has ended it.
        left: Calls that the bound has kept back; each is answered with it.
    """

    bound: str = ""
    left: tuple[ToolCall, ...] = ()


def next_step(
    messages: Sequence[McpMessage], bounds: Bounds, now: datetime
) -> AskModel | RunCalls | Ended:
    """Return what follows: the model is asked, calls are carried out, or the user is waited for."""
    turn = turn_of(messages)
    if not turn:
        return Ended()
    answers = [each.content for each in turn if isinstance(each.content, ModelResponse)]
    heard = {each.call_id for each in results_of(turn)}
    if answers and answers[-1].finish_reason != "TOOL_CALLS":
        return Ended()
    calls = answers[-1].tool_calls if answers else ()
    left = tuple(each for each in calls if each.call_id not in heard)
    if bound := _passed(turn, answers, bounds, now):
        return Ended(bound, left)
    return RunCalls(left) if left else AskModel()


def turn_of(messages: Sequence[McpMessage]) -> Sequence[McpMessage]:
    """Return the messages from the last input of the user on; empty where there is none."""
    begins = [at for at, each in enumerate(messages) if each.type == "USER_INPUT"]
    return messages[begins[-1] :] if begins else ()


def results_of(messages: Iterable[McpMessage]) -> Iterator[ToolResult]:
    """Return the results of calls in some messages."""
    for each in messages:
        if each.type == "TOOL_CALL_RESPONSE":
            yield from each.content.results


def _passed(
    turn: Sequence[McpMessage], answers: Sequence[ModelResponse], bounds: Bounds, now: datetime
) -> str:
    """Return the bound that stands in the way of a next step."""
    since = moment_of(turn[0].timestamp) or now
    tokens = sum(each.usage.total_tokens for each in answers if each.usage)
    taken = {
        "dialogue.answers": (len(answers), bounds.answers),
        "dialogue.calls": (sum(len(each.tool_calls) for each in answers), bounds.calls),
        "dialogue.tokens": (tokens, bounds.tokens),
        "dialogue.bytes": (sum(len(str(each.content)) for each in turn), bounds.size_bytes),
        "dialogue.seconds": ((now - since).total_seconds(), bounds.wall_s),
    }
    for code, (found, most) in taken.items():
        if found >= most:
            return Text(code, found=found, most=most)
    return ""


RawCall = tuple[str, str]
"""The name of a tool and its arguments as a model has written them."""


def response_of(
    text: str, calls: Sequence[RawCall], finish: str, usage: Usage | None, number: int
) -> ModelResponse:
    """Return the answer of a model as a message; ids of calls are ours, so that none is doubled.

    Args:
        text: Its text.
        calls: Its calls; those beyond `CALLS_MAX` are not taken.
        finish: ``stop``, ``length``, ``tool_call`` or another word, which is an error.
        usage: Its tokens.
        number: Of this answer in its turn.
    """
    made = tuple(
        ToolCall(f"call-{number}-{at}", name[:128] or "-", _arguments(arguments))
        for at, (name, arguments) in enumerate(calls[:CALLS_MAX])
    )
    ends = {"stop": "STOP", "length": "LENGTH"}.get(finish, "ERROR")
    reason: Any = "TOOL_CALLS" if made and finish in ("stop", "tool_call") else ends
    taken = made if reason == "TOOL_CALLS" else ()
    return ModelResponse(text=text, tool_calls=taken, finish_reason=reason, usage=usage)


MALFORMED: Final = "malformed"
"""The argument of a call whose arguments cannot be read; every tool refuses it."""


def _arguments(written: str) -> dict[str, Any]:
    try:
        found = json.loads(written or "{}", parse_constant=_no_number)
    except (ValueError, RecursionError):
        found = None
    return found if isinstance(found, dict) else {MALFORMED: written[:200]}


def _no_number(word: str) -> float:
    raise ValueError(word)


NUMBER: Final = re.compile(r"(?<![A-Za-z0-9_.])[-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d{1,4})?")
"""A number in a text; in Chinese it stands behind a word without a blank."""

COUNTED: Final = 10
"""Whole numbers below this are counts in a sentence, and no claim about a measurement."""


def claims_in(text: str, messages: Iterable[McpMessage]) -> tuple[str, ...]:
    """Return the numbers of a text that no tool has returned, and the user has not said.

    A number counts as returned where one that was returned rounds to it.
    """
    known = [number for each in messages for number in _numbers(each)]
    return tuple(
        word
        for word in NUMBER.findall(text)
        if not (word.isdigit() and float(word) < COUNTED)
        and not any(round(each, _decimals(word)) == float(word) for each in known)
    )


def _decimals(word: str) -> int:
    mantissa, _, exponent = word.lower().partition("e")
    return len(mantissa.partition(".")[2]) - int(exponent or 0)


def _numbers(message: McpMessage) -> Iterator[float]:
    if message.type == "USER_INPUT":
        yield from map(float, NUMBER.findall(message.content.text))
    for result in results_of((message,)):
        yield from _numbers_in(result.result)


def _numbers_in(value: Json) -> Iterator[float]:
    if isinstance(value, dict):
        value = [*value.values()]
    if isinstance(value, list):
        for each in value:
            yield from _numbers_in(each)
    elif isinstance(value, str):
        yield from map(float, NUMBER.findall(value))
    elif isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
        yield float(value)
