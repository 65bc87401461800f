"""The part of a plan that measures a film: survey, Raman map, photoluminescence, verdict."""

from collections.abc import Mapping
from datetime import date
from typing import Annotated, Any

from pydantic import Field, StrictFloat

from labharness.core.vocabulary.texts import Text
from labharness.work.capability import Settings
from labharness.work.capability.steps import Steps
from labharness.work.plan import InstructionKind

LaserNm = Annotated[StrictFloat, Field(gt=300, lt=1100)]
Optics = Annotated[str, Field(min_length=1, max_length=80)]


class CalibrationRow(Settings):
    """A calibration of this microscope with a known monolayer.

    Attributes:
        value: Ratio of heights.
        uncertainty: One standard deviation of the value: other spots, other days, focus.
        date: When it was measured.
        on: The sample, with its oxide.
    """

    value: StrictFloat = Field(gt=0)
    uncertainty: StrictFloat = Field(gt=0)
    date: date
    on: str = Field(min_length=1, max_length=200)


class MicroscopeSettings(Settings):
    """The keys of a microscope in the table of a capability.

    Attributes:
        laser_nm: Wavelength of the Raman laser; a map takes it.
        a1g_si: Calibration of A1g over silicon. Without it the ratio counts as a broad prior.
        pl_raman: Calibration of photoluminescence over A1g; likewise.
        objective: As people write it, ``100x, NA 0.9``; it is told in the report.
        grating: Likewise.
    """

    laser_nm: LaserNm | None = None
    a1g_si: CalibrationRow | None = None
    pl_raman: CalibrationRow | None = None
    objective: Optics | None = None
    grating: Optics | None = None

    def reference(self) -> dict[str, dict[str, Any]]:
        """Return the known ratios of this microscope, for a planner."""
        known = {"a1g_si", "pl_raman"}
        return self.model_dump(mode="json", include=known, exclude_none=True)

    def recorded(self) -> dict[str, Any]:
        """Return objective and grating of the microscope, if stated."""
        found = self.model_dump(include={"objective", "grating"}, exclude_none=True)
        return {"raman": found} if found else {}


LASER_W = 0.0003
"""Below 0.5 mW a 100x objective heats MoS2 by less than 5 K."""

RAMAN_CENTRE_CM1 = 450.0
"""Middle of the Raman window: MoS2 at 380-410 and silicon at 520.7 are both on the chip."""

PL_NM = 665.0
"""A exciton of monolayer MoS2, 1.86 eV; it lies within 655-680 nm."""

SPOTS, SPOTS_MAX = 9, 15
"""Spots of the first map, and with those measured when they leave doubt."""

FILM_PLACES_SEEN_MIN = 16
"""Places surveyed at least, so that the covered fraction means something."""

LASER_ON = ["laser.emission", 1, ""]
"""The setting of these steps that adds energy."""

MAP_CHANNELS = (
    *("laser.power", "laser.emission", "spectrometer.wavelength", "spectrometer.exposure"),
    *("spectrometer.acquire", "stage.x", "stage.y"),
)
"""The channels that a map sets."""

GRATING_S_MAX = 120.0
"""Longest time of a turn of the grating."""

LOOK_S = 5.0
SPOT_S = 40.0
"""Usual time of one place of a survey and of one spot of a map: stage, exposure, read-out."""


def add_look(
    steps: Steps,
    laser_nm: float,
    reference: Mapping[str, Mapping[str, Any]],
    threshold: float,
    origin: str | None = None,
) -> None:
    """Add the steps from the survey to the verdict; the laser is on only inside of them.

    Args:
        steps: The plan so far: the sample is under the microscope.
        laser_nm: Wavelength of the Raman laser.
        reference: Ratios of a monolayer on this microscope, see `judge`.
        threshold: Confidence below which more spots are measured.
        origin: How the film was made, see `judge`.
    """
    raman_nm = round(1e7 / (1e7 / laser_nm - RAMAN_CENTRE_CM1), 2)
    steps.stage = "characterisation"
    steps.set("laser_power", "laser.power", LASER_W, "W", Text("step.power"))

    def turn(name: str, centre_nm: float, text: Text) -> None:
        steps.set(name, "spectrometer.wavelength", centre_nm, "nm", text, GRATING_S_MAX)

    turn("to_raman", raman_nm, Text("step.to_raman"))
    steps.holdable = False  # the laser is on in there, and would stand on one spot
    least = {"film_places": SPOTS_MAX, "places_min": FILM_PLACES_SEEN_MIN}
    asked: dict[str, Any] = {"sets": [LASER_ON], "laser_nm": laser_nm, **least}
    usual_s = LOOK_S * 2 * FILM_PLACES_SEEN_MIN
    what = Text("step.survey")
    steps.add("survey", "survey", what, asked, expected_s=usual_s, timeout_s=3600.0)
    asked = {"sets": [LASER_ON], "survey": "${dependencies.survey.result}", "spots": SPOTS}
    steps.add(
        "raman_map",
        "raman_map",
        Text("step.spectra", spots=SPOTS),
        asked,
        expected_s=SPOT_S * SPOTS,
        timeout_s=7200.0,
        uses=("survey",),
    )
    turn("to_pl", PL_NM, Text("step.to_glow"))
    spots = "${dependencies.raman_map.result.spots}"
    dark_counts = "${dependencies.survey.result.dark_counts}"
    steps.add(
        "photoluminescence",
        "photoluminescence",
        Text("step.glow"),
        {"sets": [LASER_ON], "spots": spots, "dark_counts": dark_counts},
        expected_s=SPOT_S * SPOTS / 4,
        timeout_s=7200.0,
        uses=("survey", "raman_map"),
    )
    turn("back_to_raman", raman_nm, Text("step.back_to_raman"))
    steps.stage = "analysis"
    asked = {
        "sets": [LASER_ON],
        "spots": spots,
        "pl_heights_per_s": "${dependencies.photoluminescence.result.heights_per_s}",
        "survey": "${dependencies.survey.result}",
        "spots_max": SPOTS_MAX,
        "threshold": threshold,
        "reference": {name: dict(row) for name, row in reference.items()},
        **({} if origin is None else {"origin": origin}),
    }
    steps.add(
        "analysis",
        "analyse",
        Text("step.judge"),
        asked,
        expected_s=10.0,
        timeout_s=7200.0,
        kind=InstructionKind.ANALYSIS,
        uses=("survey", "raman_map", "photoluminescence"),
    )
    steps.holdable = True
    steps.set("laser_off", "laser.emission", 0, "", Text("step.laser_off"))
