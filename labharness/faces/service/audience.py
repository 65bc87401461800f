"""Removes commands, paths and process ids from a message for a caller elsewhere (ruling 27).

A text that names these is for the lab's operator, who has it in the journal. Beside it
stands a text for callers with the same fact (`told.` and its code). In any other words
the name alone is left out.
"""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from labharness.core.texts import known
from labharness.core.vocabulary.texts import Text
from labharness.protocols.hcp.codec import HcpMessage
from labharness.protocols.hcp.messages import PAYLOADS

OWN: Final = "told."
"""Beginning of the code of a text for callers; the code of the text for operators follows."""

NAMES: Final = (
    (re.compile(r"\blabharness [a-z]\w*(?: --[a-z][\w-]*(?: [A-Z]+\b)?)*"), "hcp.command"),
    (re.compile(r"(?<!\w)--[a-z]{2,}[\w-]*"), "hcp.command"),
    (re.compile(r"(?<![A-Za-z0-9_:/.])(?:/[A-Za-z0-9_.@+-]+){2,}"), "hcp.file"),
    (re.compile(r"(?<![A-Za-z0-9_])[A-Z]:\\[A-Za-z0-9_.@+\\-]*"), "hcp.file"),
    (re.compile(r"\b(?:process|pid) [0-9]+"), "hcp.process"),
)
"""Names of what is this machine's own, and the code of what is said instead."""

SAID: Final = (
    *("error_message", "reason_message", "suggestion", "message", "reason"),
    *("warnings", "risk_events", "finding"),
)
"""Fields that people read; what a capability has found out is in others, and stays as it is."""


PERSONS: Final = ("confirmed_by",)
"""Fields that name a person of the lab."""


def for_caller(message: HcpMessage) -> HcpMessage:
    """Return a message without what is for the lab alone."""
    body = message.payload.stated()
    cleaned = _cleaned(body)
    if cleaned == body:
        return message
    return replace(message, payload=PAYLOADS[message.type].model_validate(cleaned))


def _cleaned(value: object, said: bool = False) -> Any:  # noqa: ANN401 - whatever a payload holds
    if isinstance(value, Mapping):
        inside = (*SAID, "text") if said else SAID
        cleaned = {name: _cleaned(each, name in inside) for name, each in value.items()}
        return cleaned | {name: Text("hcp.person") for name in PERSONS if name in cleaned}
    if isinstance(value, list | tuple):
        return [_cleaned(each, said) for each in value]
    return _told(value) if said and isinstance(value, str) else value


def _told(text: str) -> str:
    """Return words for callers, without the names; a text that has none stays one."""
    if isinstance(text, Text):
        own = OWN + text.code
        params = {name: _cleaned(each, said=True) for name, each in text.params.items()}
        text = Text(own if known(own) else text.code, **params)
    left = text
    for pattern, instead in NAMES:
        left = pattern.sub(Text(instead), left)
    return text if left == text else left
