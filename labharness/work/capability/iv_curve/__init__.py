"""A curve of current against voltage, by a source meter."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from labharness.work.capability import Answer, CannotDo, LineFacts, NoAnswer, Planned
from labharness.work.capability.iv_curve.answer import compose
from labharness.work.capability.iv_curve.declaration import DECLARATION
from labharness.work.capability.iv_curve.sweep import SweepSettings, plan_sweep, sweep
from labharness.work.plan import PHYSICAL_VERBS, StepRecord, Verb

__all__ = ["CAPABILITY", "IvCurve"]


class IvCurve:
    """The capability ``iv-curve``."""

    declaration = DECLARATION
    settings = SweepSettings
    formats: tuple[str, ...] = ()
    verbs: Mapping[str, Verb] = {**PHYSICAL_VERBS, "sweep": sweep}

    def misfits(self, facts: LineFacts) -> Iterator[str]:
        """Return which channels that a sweep sets this line does not have."""
        if isinstance(facts.settings, SweepSettings):
            yield from (
                f"{channel} is not a channel that this line can set"
                for channel in facts.settings.channels
                if channel not in facts.limits
            )

    def plan(
        self, inputs: Mapping[str, Any], constraints: Mapping[str, Any], facts: LineFacts
    ) -> Planned | CannotDo:
        """Write the instructions of one sweep.

        Raises:
            ValueError: The line lacks a channel that a sweep sets.
        """
        if wrong := "; ".join(self.misfits(facts)):
            raise ValueError(wrong)
        return plan_sweep(inputs, facts)

    def ways_out(self, inputs: Mapping[str, Any], facts: LineFacts) -> Iterator[Mapping[str, Any]]:
        """Return the same sweep within what the line allows."""
        if isinstance(facts.settings, SweepSettings):
            low, high, _ = facts.limits[facts.settings.channels[0]]
            within = {name: min(max(inputs[name], low), high) for name in ("start_v", "stop_v")}
            yield {**inputs, **within}

    def answer(
        self, records: Sequence[StepRecord], constraints: Mapping[str, Any]
    ) -> Answer | NoAnswer:
        """Compose the outputs of a run."""
        return compose(records)


CAPABILITY = IvCurve()
