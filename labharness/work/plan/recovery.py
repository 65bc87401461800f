"""The recovery that an instruction declares for its failure (MCP-CP 7.3), as it is written."""

from enum import StrEnum
from typing import Annotated, Any, Final

from msgspec import Meta, Struct, field, to_builtins

from labharness.core.vocabulary.texts import CodedError

ATTEMPTS_MAX: Final = 10
"""Most times that one instruction is begun, its fall-back not counted."""

DELAY_S_MAX: Final = 3600.0
"""Longest time between two attempts, in seconds."""

FACTOR_MAX: Final = 10.0
"""Largest growth of that time from one attempt to the next."""


class BadInstruction(CodedError, ValueError, code="bad_instruction"):
    """An instruction, or a set of them, that cannot be carried out; the message says why."""


class Otherwise(StrEnum):
    """The end of an instruction that no further attempt and no fall-back has saved."""

    FAIL = "fail"
    PARTIAL = "partial"
    """It is completed with the part that its action had until then, where it had one."""

    SKIP = "skip"
    ABORT = "abort"
    """Nothing else of the set is begun, and what runs is ended."""


class Retry(Struct, frozen=True, forbid_unknown_fields=True):
    """Further attempts.

    Attributes:
        attempts: Most times that it is begun.
        delay: Pause before the second attempt, in seconds.
        factor: Growth of the pause from one attempt to the next.
    """

    attempts: Annotated[int, Meta(ge=1, le=ATTEMPTS_MAX)] = 1
    delay: Annotated[float, Meta(ge=0, le=DELAY_S_MAX)] = 1.0
    factor: Annotated[float, Meta(ge=1, le=FACTOR_MAX)] = 2.0

    def pause_s(self, attempts: int) -> float:
        """Return the time to wait after so many attempts."""
        return min(DELAY_S_MAX, self.delay * self.factor ** (attempts - 1))


class Fallback(Struct, frozen=True, forbid_unknown_fields=True):
    """An action that is carried out in the place of another one, once."""

    action: str
    parameters: dict[str, Any] = {}


class Recovery(Struct, frozen=True, forbid_unknown_fields=True):
    """Attempts with growing pauses, then another action, then an end.

    An instruction of kind OPERATION is recovered only where it was refused before a byte left, and
    a trip never is (ruling 47).
    """

    retry: Retry = field(default_factory=Retry)
    fallback: Fallback | None = None
    otherwise: Otherwise = Otherwise.FAIL

    def to_json(self) -> dict[str, Any]:
        """Return it as a JSON object."""
        return dict(to_builtins(self))
