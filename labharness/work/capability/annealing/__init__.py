"""Annealing under inert gas: heat, dwell, cool, and the curve of what was measured."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from labharness.core.vocabulary.texts import Text
from labharness.work.capability import Answer, CannotDo, LineFacts, NoAnswer, Planned
from labharness.work.capability.annealing.answer import compose
from labharness.work.capability.annealing.declaration import DECLARATION
from labharness.work.capability.annealing.planner import AnnealingSettings, plan_annealing
from labharness.work.capability.recorded import recorded
from labharness.work.plan import PHYSICAL_VERBS, StepRecord, Verb

__all__ = ["CAPABILITY", "Annealing"]


class Annealing:
    """The capability ``annealing``."""

    declaration = DECLARATION
    settings = AnnealingSettings
    formats: tuple[str, ...] = ()
    verbs: Mapping[str, Verb] = {name: recorded(verb) for name, verb in PHYSICAL_VERBS.items()}

    def misfits(self, facts: LineFacts) -> Iterator[str]:
        """Return which channels that an annealing sets this line does not have."""
        settings = facts.settings
        if isinstance(settings, AnnealingSettings):
            yield from (
                Text("anneal.no_channel", channel=channel)
                for channel in settings.channels
                if channel not in facts.limits
            )

    def plan(
        self, inputs: Mapping[str, Any], constraints: Mapping[str, Any], facts: LineFacts
    ) -> Planned | CannotDo:
        """Write the instructions of one annealing.

        Raises:
            ValueError: The line lacks a channel that an annealing sets.
        """
        if wrong := "; ".join(self.misfits(facts)):
            raise ValueError(wrong)
        return plan_annealing(inputs, facts)

    def ways_out(self, inputs: Mapping[str, Any], facts: LineFacts) -> Iterator[Mapping[str, Any]]:
        """Return a slower one and a cooler one."""
        yield {**inputs, "ramp_c_per_min": min(inputs.get("ramp_c_per_min", 10.0), 5.0)}
        yield {**inputs, "temperature_c": inputs["temperature_c"] - 50.0}

    def answer(
        self, records: Sequence[StepRecord], constraints: Mapping[str, Any]
    ) -> Answer | NoAnswer:
        """Compose the outputs of a run."""
        return compose(records)


CAPABILITY = Annealing()
