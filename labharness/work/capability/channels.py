"""The common part of capabilities that set a few channels, which the lab file names."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import Any, Generic, TypeVar

from labharness.core.vocabulary.texts import Text, several
from labharness.work.admission.declaration import Declaration
from labharness.work.capability import CannotDo, LineFacts, Planned, Settings
from labharness.work.plan import PHYSICAL_VERBS, Verb

Limits = Mapping[str, tuple[float, float, str]]
"""Lowest and highest value and the unit of each channel that may be set."""


class PlainCapability:
    """A capability without formats of its own, and whose tasks have none near to them.

    No value of a lab file prevents all of them, unless a subclass knows some. A subclass adds
    ``declaration``, ``plan``, ``answer``, and what else it has.
    """

    formats: tuple[str, ...] = ()
    verbs: Mapping[str, Verb] = {}

    def misfits(self, facts: LineFacts) -> Iterator[str]:
        """Return nothing: no value of a lab file prevents every task."""
        yield from ()

    def ways_out(self, inputs: Mapping[str, Any], facts: LineFacts) -> Iterator[Mapping[str, Any]]:
        """Return nothing: other inputs are another task."""
        yield from ()


class ChannelSettings(Settings, ABC):
    """The table of a capability in a lab file, from which the names of its channels follow."""

    @property
    @abstractmethod
    def channels(self) -> tuple[str, ...]:
        """The channels that its plans set."""


Table = TypeVar("Table", bound=ChannelSettings)


class ChannelCapability(PlainCapability, ABC, Generic[Table]):
    """A capability that plans only for a line with every channel that it sets.

    A subclass adds ``declaration``, ``settings``, ``planned``, ``ways_out`` and ``answer``.
    """

    declaration: Declaration
    settings: type[Table]
    verbs: Mapping[str, Verb] = PHYSICAL_VERBS

    def misfits(self, facts: LineFacts) -> Iterator[str]:
        """Return the channels that its plans set and this line does not have."""
        if isinstance(facts.settings, self.settings):
            for channel in facts.settings.channels:
                if channel not in facts.limits:
                    yield Text("capability.no_channel", channel=channel)

    def plan(
        self, inputs: Mapping[str, Any], constraints: Mapping[str, Any], facts: LineFacts
    ) -> Planned | CannotDo:
        """Turn a request into instructions.

        Raises:
            ValueError: The lab file has no table of this capability, or the line lacks a channel.
        """
        if not isinstance(facts.settings, self.settings):
            raise ValueError(Text("capability.unstated", name=self.declaration.name))
        if wrong := several(*self.misfits(facts)):
            raise ValueError(wrong)
        return self.planned(inputs, facts.settings, facts.limits)

    @abstractmethod
    def planned(
        self, inputs: Mapping[str, Any], settings: Table, limits: Limits
    ) -> Planned | CannotDo:
        """Turn a request into instructions for a line with all channels."""
