"""The base of every object of an MCP-CP message, the types of its fields, and what does not fit."""

from typing import Annotated, Final, Literal

import msgspec

from labharness.core.vocabulary.texts import CodedError
from labharness.protocols.timestamps import TIMESTAMPS, moment_of

ID_CHARACTERS_MAX: Final = 128
"""Most characters of an id, a name or a code."""

INSTRUCTIONS_MAX: Final = 10_000
"""Most instructions of one set."""

TIMEOUT_S_MAX: Final = 604_800.0
"""Longest timeout (s) that a message may ask for: a week."""

END: Final = r"$(?!\n)"
"""The end of a pattern; Python's `$` alone stands before a last line break too."""


class Unfit(CodedError, ValueError, code="unfit"):
    """An object of a message whose fields do not fit each other."""


class Part(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """Base of every object of a message: its fields are those of the text, in camelCase.

    A field that may be missing has a default, and is not written where it has that.
    """


Word = Annotated[str, msgspec.Meta(min_length=1, max_length=ID_CHARACTERS_MAX)]
"""An id, a name or a code."""

Timestamp = Annotated[str, msgspec.Meta(pattern=f"^{TIMESTAMPS}{END}")]
"""ISO 8601 in UTC; `check_moment` holds it to the calendar, which a pattern cannot."""

Seconds = Annotated[float, msgspec.Meta(gt=0, le=TIMEOUT_S_MAX)]
Milliseconds = Annotated[float, msgspec.Meta(ge=0)]
Count = Annotated[int, msgspec.Meta(ge=0)]
Share = Annotated[float, msgspec.Meta(ge=0, le=1)]

Runtime = Literal["FRONTEND", "BACKEND"]


def check_moment(name: str, timestamp: str) -> None:
    """Raise ``Unfit`` where no calendar has a timestamp."""
    if moment_of(timestamp) is None:
        raise Unfit("mcp_cp.calendar", name=name, found=timestamp[:ID_CHARACTERS_MAX])
