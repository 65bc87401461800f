"""Removes commands, paths and process ids from a message for a caller elsewhere (ruling 27).

A text that names these is for the lab's operator, who has it in the journal. Its caller is told a
text of its own, or that the lab knows more.
"""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from labharness.core.vocabulary.catalogue import TEXTS
from labharness.core.vocabulary.texts import Text
from labharness.protocols.hcp.codec import HcpMessage
from labharness.protocols.hcp.messages import PAYLOADS

__all__ = ["for_caller"]

OWN: Final = {
    "advice.duration": "hcp.advice.duration",
    "advice.resume": "hcp.lost.resume",
    "advice.step": "hcp.advice.step",
    "data.explain": "hcp.advice.data",
}
"""Texts for operators that have one for callers beside them."""

COMMAND: Final = re.compile(r"\blabharness [a-z]|(?<!\w)--[a-z]{2,}")
PATH: Final = re.compile(r"(?<![\w:/.])(?:/[\w.@+-]+){2,}")
PROCESS: Final = re.compile(r"\b(?:process|pid) [0-9]+")

SAID: Final = (
    *("error_message", "reason_message", "suggestion", "message", "reason"),
    *("warnings", "risk_events", "finding"),
)
"""Fields that people read; what a capability has found out is in others, and stays as it is."""


def for_caller(message: HcpMessage) -> HcpMessage:
    """Return a message without what is for the lab alone."""
    body = message.payload.model_dump(by_alias=True, exclude_unset=True)
    cleaned = _cleaned(body)
    if cleaned == body:
        return message
    return replace(message, payload=PAYLOADS[message.type].model_validate(cleaned))


def _cleaned(value: object, said: bool = False) -> Any:  # noqa: ANN401 - whatever a payload holds
    if isinstance(value, Mapping):
        inside = (*SAID, "text") if said else SAID
        return {name: _cleaned(each, name in inside) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_cleaned(each, said) for each in value]
    return _told(value) if said and isinstance(value, str) else value


def _told(text: str) -> str:
    if isinstance(text, Text):
        if text.code in OWN:
            return Text(OWN[text.code])
        template = TEXTS.get(text.code, ("", ""))[0]
        if not _for_operators(template):
            params = {name: _param(each) for name, each in text.params.items()}
            text = Text(text.code, **params)
    return Text("hcp.ask_the_lab") if _for_operators(text) else text


def _param(value: Any) -> Any:  # noqa: ANN401 - a parameter of a text
    if isinstance(value, list | tuple):
        return [_param(each) for each in value]
    return _told(value) if isinstance(value, Text) else value


def _for_operators(text: str) -> bool:
    return any(each.search(text) for each in (COMMAND, PATH, PROCESS))
