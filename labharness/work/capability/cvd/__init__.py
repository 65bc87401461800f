"""Growth of MoS2 by chemical vapour deposition, with Raman spectroscopy of the film."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from labharness.work.capability import (
    Answer,
    CannotDo,
    LineFacts,
    NoAnswer,
    PartialResults,
    Planned,
    QueryResult,
    declared,
    threshold_of,
)
from labharness.work.capability.cvd.answer import compose, growth_log
from labharness.work.capability.cvd.planner import plan_growth
from labharness.work.capability.cvd.recipe import (
    CvdSettings,
    growth_line,
    growth_misfits,
    make_recipe,
)
from labharness.work.capability.cvd.ways_out import ways_out
from labharness.work.capability.raman_answer import spectra_so_far
from labharness.work.capability.raman_verbs import RAMAN_VERBS
from labharness.work.plan import PHYSICAL_VERBS, StepRecord, Verb


class CvdSynthesis:
    """The capability ``cvd-material-synthesis``."""

    declaration = declared(__file__)
    settings = CvdSettings
    log = "growth_log"
    moved: Mapping[str, str] = {"raman": "", "growth": "growth"}
    formats: tuple[str, ...] = ("raman_spectrum_analysis",)
    verbs: Mapping[str, Verb] = {**PHYSICAL_VERBS, **RAMAN_VERBS}

    def misfits(self, facts: LineFacts) -> Iterator[str]:
        """Return missing entries of the lab file, and values of ``growth`` that are unknown."""
        try:
            yield from growth_misfits(growth_line(facts))
        except ValueError as why:
            yield str(why)

    def plan(
        self, inputs: Mapping[str, Any], constraints: Mapping[str, Any], facts: LineFacts
    ) -> Planned | CannotDo:
        """Choose a recipe and write its instructions; ``confidence_threshold`` is heeded.

        Raises:
            ValueError: The lab file's table of growths is wrong.
        """
        line = growth_line(facts)
        recipe = make_recipe(inputs, line)
        if isinstance(recipe, CannotDo):
            return recipe
        return plan_growth(recipe, line, threshold_of(constraints))

    def ways_out(self, inputs: Mapping[str, Any], facts: LineFacts) -> Iterator[Mapping[str, Any]]:
        """Return cooler, slower and plainer growths near to the one asked for."""
        return ways_out(inputs)

    def answer(
        self, records: Sequence[StepRecord], constraints: Mapping[str, Any]
    ) -> Answer | NoAnswer:
        """Compose the outputs of a run."""
        return compose(records, threshold_of(constraints), str(constraints.get("intent") or ""))

    def so_far(
        self, records: Sequence[StepRecord], measured: Sequence[QueryResult]
    ) -> PartialResults:
        """Return growth log and spectra of a run that came to no end."""
        found = spectra_so_far(records, measured)
        return replace(found, outputs={"growth_log": growth_log(records), **found.outputs})


CAPABILITY = CvdSynthesis()
