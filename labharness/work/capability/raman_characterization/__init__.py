"""Raman characterisation of a film: layers, with shares and confidence.

A task that brings its spectra needs no line. One that names a sample has it put under the line's
microscope, which maps it by the same steps as a growth does.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from labharness.core.vocabulary.texts import Text, several
from labharness.work.capability import (
    Answer,
    CannotDo,
    LineFacts,
    NoAnswer,
    PartialResults,
    Planned,
    QueryResult,
    threshold_of,
)
from labharness.work.capability.channels import PlainCapability
from labharness.work.capability.raman_answer import film_answer, spectra_so_far
from labharness.work.capability.raman_characterization.stored import (
    DECLARATION,
    MEASURE,
    ORIGIN,
    RamanSettings,
    StoredSpectra,
    origin_of,
)
from labharness.work.capability.raman_map import MAP_CHANNELS, add_look
from labharness.work.capability.raman_verbs import RAMAN_VERBS
from labharness.work.capability.steps import Steps
from labharness.work.plan import PHYSICAL_VERBS, StepRecord, Verb

OPENING: Final = "put_under_microscope"
"""The manual step; the line's envelope has to allow it (``[[opening]]``)."""

PERSON_S: Final = 600.0
"""Usual time (s) until somebody has put a sample there, as a growth takes for its transfer."""

PERSON_S_MAX: Final = 43_200.0
"""Longest wait (s) for a person: half of the longest task, the map takes less than the rest."""

SWITCH_S = 30.0
SLACK, SPARE_S = 1.5, 600.0


class MappedSample(PlainCapability):
    """The capability ``raman-characterization`` on its line.

    Attributes:
        without_line: Its form for stored spectra.
    """

    declaration = DECLARATION
    settings = RamanSettings
    verbs: Mapping[str, Verb] = {**PHYSICAL_VERBS, **RAMAN_VERBS}
    without_line = StoredSpectra()

    def misfits(self, facts: LineFacts) -> Iterator[str]:
        """Return what the line of a lab that states a laser lacks for a map."""
        if isinstance(facts.settings, RamanSettings) and facts.settings.laser_nm is not None:
            for channel in (*MAP_CHANNELS, f"operator.{OPENING}"):
                if channel not in facts.limits:
                    yield Text("capability.no_channel", channel=channel)

    def plan(
        self, inputs: Mapping[str, Any], constraints: Mapping[str, Any], facts: LineFacts
    ) -> Planned | CannotDo:
        """Return the steps: put the sample there, and map it; ``confidence_threshold`` is heeded.

        Raises:
            ValueError: The line lacks a channel.
        """
        if set(inputs) - {ORIGIN} != {MEASURE}:
            return CannotDo("invalid_input", Text("spectra.one_of"), Text("spectra.give_one"))
        settings = facts.settings
        if not isinstance(settings, RamanSettings) or settings.laser_nm is None:
            why, way_out = Text("spectra.no_microscope"), Text("spectra.give_stored")
            return CannotDo("resource_unavailable", why, way_out)
        if wrong := several(*self.misfits(facts)):
            raise ValueError(wrong)
        sample_id = inputs[MEASURE]["sample_id"]
        steps = Steps(slack=SLACK, spare_s=SPARE_S, switch_s=SWITCH_S)
        _put(steps, sample_id)
        threshold = threshold_of(constraints)
        add_look(steps, settings.laser_nm, settings.reference(), threshold, origin_of(inputs))
        return steps.planned({"sample_id": sample_id})

    def answer(
        self, records: Sequence[StepRecord], constraints: Mapping[str, Any]
    ) -> Answer | NoAnswer:
        """Return the layers of the film, or why they are not known."""
        return film_answer(records, threshold_of(constraints))

    def so_far(
        self, records: Sequence[StepRecord], measured: Sequence[QueryResult]
    ) -> PartialResults:
        """Return the spectra of a run that came to no end."""
        return spectra_so_far(records, measured)


def _put(steps: Steps, sample_id: str) -> None:
    """Have a person put the sample under the microscope, with the laser off."""
    steps.stage = "transfer"
    steps.set("laser_dark", "laser.emission", 0, "", Text("step.laser_off"))
    asked = {
        "action": OPENING,
        "text": Text("operator.put", sample=sample_id),
        "details": {"sample_id": sample_id},
    }
    what = Text("step.put", sample=sample_id)
    steps.add("put", "ask_operator", what, asked, expected_s=PERSON_S, timeout_s=PERSON_S_MAX)
    shut = Text("step.enclosure_shut")
    steps.wait("enclosure_shut", shut, 5.0, "box.enclosure_shut", at_least=1)
    steps.may_resume(Text("checkpoint.transferred"), {"box.enclosure_shut": (1, 1)})


CAPABILITY = MappedSample()
