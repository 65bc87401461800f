"""The course of a dialogue: the next step, by its messages alone; others carry it out.

The messages alone decide, so that a dialogue goes on after a kill from what was written of it.
"""

import json
import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final

from labharness.core.vocabulary.texts import Text
from labharness.protocols.mcp_cp.messages import (
    InstructionMessage,
    McpMessage,
    ModelResponse,
    ToolCallRequest,
    Usage,
)
from labharness.protocols.mcp_cp.tools import (
    CALLS_MAX,
    SupportedTool,
    ToolCall,
    ToolResult,
    is_accepted,
)
from labharness.protocols.strict_json import Json
from labharness.protocols.timestamps import moment_of
from labharness.work.dialogue.calls import Calls, calls_of
from labharness.work.dialogue.intents import Intent, intent_of, set_in


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
    """The model is asked, with all messages so far.

    Attributes:
        intent: The row of `PROMPTS` by which it is asked.
    """

    intent: Intent = "ANSWER"


@dataclass(frozen=True, slots=True)
class Briefing:
    """All that a model is given for one answer.

    Attributes:
        prompt: Its part in the dialogue, and the type of its return.
        messages: Of the dialogue, the oldest first.
        number: Of its answer.
        tools: Those of the user's programs, by name; ours it knows.
    """

    prompt: str
    messages: Sequence[McpMessage]
    number: int
    tools: Mapping[str, SupportedTool]


@dataclass(frozen=True, slots=True)
class RunCalls:
    """Calls are carried out.

    Attributes:
        asked: The calls of one message.
        found: The results in this turn so far; a call that has one is not carried out again.
        accepted: The ids of ASYNC calls that have their first answer alone.
    """

    asked: Calls
    found: Mapping[str, ToolResult]
    accepted: Collection[str] = ()


@dataclass(frozen=True, slots=True)
class TakeSet:
    """A set that the model has returned becomes a message, as JSON has it."""

    content: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class RunSet:
    """A set is carried out."""

    content: InstructionMessage


@dataclass(frozen=True, slots=True)
class Ended:
    """The dialogue waits for its user.

    Attributes:
        bound: Why it went no further; ``""`` where the model has ended it.
        left: Calls that the bound has kept back; each is answered with it.
    """

    bound: str = ""
    left: tuple[ToolCall, ...] = ()


Step = AskModel | RunCalls | TakeSet | RunSet | Ended

ASKS: Final = "ask_person"
"""The tool whose answer is the next input of the user."""

RESULTS: Final = "results"
"""The place in `metadata` of the records of a set that has ended."""


def next_step(
    messages: Sequence[McpMessage], bounds: Bounds, now: datetime, actions: Collection[str] = ()
) -> Step:
    """Return the step that follows.

    Args:
        messages: Of the dialogue, the oldest first.
        bounds: Of one input.
        now: World time.
        actions: The names of the actions that a set may have in this dialogue.
    """
    turn = turn_of(messages)
    if not turn:
        return Ended()
    contents = [e.content for e in turn if isinstance(e.content, ModelResponse | ToolCallRequest)]
    asks = [calls_of(each) for each in contents]
    asked = asks[-1] if asks else Calls(())
    accepted = _accepted(asks, turn)
    found = {each.call_id: each for each in results_of(turn) if each.call_id not in accepted}
    left = tuple(e for e in asked.calls if e.call_id not in found and e.call_id not in accepted)
    later = _of(asks, accepted)
    step: Step = RunCalls(asked, found, accepted) if left else _next(turn, later, found, actions)
    asked_user = [found.get(each.call_id) for each in asked.calls if each.name == ASKS]
    if not left and any(each and each.error is None for each in asked_user):
        return Ended()
    answers = [each for each in contents if isinstance(each, ModelResponse)]
    bound = "" if isinstance(step, Ended) else _passed(turn, answers, bounds, now)
    return Ended(bound, (*left, *later.calls)) if bound else step


def _accepted(asks: Iterable[Calls], turn: Iterable[McpMessage]) -> Collection[str]:
    """Return the ASYNC calls that have their first answer alone; a tool may answer alike."""
    results = [*results_of(turn)]
    given = Counter(each.call_id for each in results)
    first = {each.call_id for each in results if is_accepted(each) and given[each.call_id] == 1}
    return first & {one.call_id for each in asks if each.mode == "ASYNC" for one in each.calls}


def _of(asks: Iterable[Calls], accepted: Collection[str]) -> Calls:
    """Return the calls of the first message that has some of these; they wait for no answer."""
    for each in asks:
        if later := tuple(one for one in each.calls if one.call_id in accepted):
            return replace(each, calls=later, mode="PARALLEL")
    return Calls(())


def waits(
    messages: Sequence[McpMessage], bounds: Bounds, now: datetime, actions: Collection[str]
) -> bool:
    """Return whether the user is waited for; a bound that was met has been told by then."""
    turn = turn_of(messages)
    if len(turn) > 2 and getattr(turn[-1].content, "action", "") == "WARNING":
        return True  # one that stands second is told of the input itself
    step = next_step(turn, bounds, now, actions)
    return isinstance(step, Ended) and not step.bound


def _next(
    turn: Sequence[McpMessage],
    later: Calls,
    found: Mapping[str, ToolResult],
    actions: Collection[str],
) -> Step:
    """Return the step that follows where each call of the last message has a result."""
    begin, last = turn[0], turn[-1]
    if last.type == "INSTRUCTION":
        return RunSet(last.content)
    if begin.type == "USER_INPUT":
        has_set = any(each.type == "INSTRUCTION" for each in turn)
        intent = "ANSWER" if has_set else intent_of(begin.content.text, actions)
        if not isinstance(last.content, ModelResponse):
            return AskModel(intent)
        if intent == "INSTRUCTIONS" and (content := set_in(last.content.text)):
            return TakeSet(content)
    return RunCalls(later, found) if later.calls else Ended()


BEGINS: Final = ("USER_INPUT", "TOOL_CALL_REQUEST", "INSTRUCTION")
"""The messages of a user that something follows from."""


def turn_of(messages: Sequence[McpMessage]) -> Sequence[McpMessage]:
    """Return the messages from the last request of the user on; empty where there is none."""
    begins = [
        at for at, each in enumerate(messages) if each.type in BEGINS and each.sender.type == "USER"
    ]
    return messages[begins[-1] :] if begins else ()


def results_of(messages: Iterable[McpMessage]) -> Iterator[ToolResult]:
    """Return the results of calls in some messages."""
    for each in messages:
        if each.type == "TOOL_CALL_RESPONSE":
            yield from each.content.results


def value_of(result: ToolResult) -> Json:
    """Return the main value of a result of the usual form (4.4); of another form, the whole."""
    whole = result.result
    usual = isinstance(whole, dict) and {"value", "parsed", "source", "timestamp"} <= whole.keys()
    return whole["value"] if usual else whole


def _passed(
    turn: Sequence[McpMessage], answers: Sequence[ModelResponse], bounds: Bounds, now: datetime
) -> str:
    """Return the bound that stands in the way of a next step."""
    ours = (each.timestamp for each in turn if each.sender.type != "USER")  # by no client's clock
    since = moment_of(next(ours, "")) or now
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


CALLS_S_MAX: Final = 900.0
"""Longest time (s) of the calls of one answer of ours: a plan may be flown, a task waited for."""

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
    return ModelResponse(
        text=text,
        tool_calls=taken,
        finish_reason=reason,
        usage=usage,
        timeout=CALLS_S_MAX if taken else None,
    )


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
        yield from _numbers_in(value_of(result))
    yield from _numbers_in(message.metadata.get(RESULTS))


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
