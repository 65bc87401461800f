"""The common part of capabilities whose tasks need no line."""

from collections.abc import Iterator, Mapping
from typing import Any

from labharness.work.capability import LineFacts
from labharness.work.plan import Verb


class WithoutLine:
    """A capability without a line: no value of a line prevents its tasks, or would mend one.

    A subclass adds ``declaration``, ``settings``, ``plan``, ``bound`` and ``answer``.
    """

    formats: tuple[str, ...] = ()
    verbs: Mapping[str, Verb] = {}

    def misfits(self, facts: LineFacts) -> Iterator[str]:
        """Return nothing: no value of a lab file prevents every task."""
        yield from ()

    def ways_out(self, inputs: Mapping[str, Any], facts: LineFacts) -> Iterator[Mapping[str, Any]]:
        """Return nothing: other inputs are another task."""
        yield from ()
