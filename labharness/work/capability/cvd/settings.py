"""The lab's table of growths: its microscope, and its own values of a recipe."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from pydantic import Field, StrictFloat, model_validator

from labharness.core.vocabulary.units import ATMOSPHERE_TORR
from labharness.work.capability import LineFacts
from labharness.work.capability.raman_settings import LaserNm, MicroscopeSettings


class CvdSettings(MicroscopeSettings):
    """The table ``[capability.cvd-material-synthesis]``.

    Attributes:
        laser_nm: Wavelength of the Raman laser.
        a1g_si_monolayer: A value without uncertainty, date and sample, with its ``source``: no
            calibration, but the middle of that prior.
        growth: This line's own values for a growth; what it does not name has a default.
    """

    laser_nm: LaserNm
    a1g_si_monolayer: StrictFloat | None = Field(default=None, gt=0)
    source: str | None = None
    growth: dict[str, StrictFloat] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _one_value(self) -> Self:
        if self.a1g_si is not None and self.a1g_si_monolayer is not None:
            raise ValueError("a1g_si is the calibration; take a1g_si_monolayer out")
        if (self.a1g_si_monolayer is None) != (self.source is None):
            raise ValueError("a1g_si_monolayer and source come together")
        return self

    def reference(self) -> dict[str, dict[str, Any]]:
        """Return the known ratios of this microscope, for a planner."""
        found = super().reference()
        if self.a1g_si_monolayer is not None:
            found["a1g_si"] = {"value": self.a1g_si_monolayer, "on": self.source}
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class GrowthFacts:
    """Facts on a line for the planner of growths.

    Attributes:
        limits: Lowest and highest value and the unit of each channel that may be set.
        tube_volume_cm3: Volume that the purge proof counts.
        ambient_torr: Pressure of the room, which an open tube takes.
        laser_nm: Wavelength of the Raman laser.
        raman_reference: Ratios of a monolayer on this microscope: ``a1g_si`` and ``pl_raman``,
            each with ``value``, and with ``uncertainty``, ``date`` and ``on`` if it was calibrated.
        growth: The lab's own values for a growth; what it does not name has a default.
    """

    limits: Mapping[str, tuple[float, float, str]]
    tube_volume_cm3: float
    laser_nm: float
    raman_reference: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    growth: Mapping[str, float] = field(default_factory=dict)
    ambient_torr: float = ATMOSPHERE_TORR


def growth_line(facts: LineFacts) -> GrowthFacts:
    """Return the facts on a line for the planner of growths.

    Raises:
        ValueError: The lab file lacks entries that every growth needs.
    """
    if not isinstance(facts.settings, CvdSettings):
        raise ValueError("the lab states nothing of its growths")
    if facts.tube_volume_cm3 is None:
        raise ValueError("a growth purges the tube: give [tube] volume_cm3 in the lab file")
    return GrowthFacts(
        limits=facts.limits,
        tube_volume_cm3=facts.tube_volume_cm3,
        laser_nm=facts.settings.laser_nm,
        raman_reference=facts.settings.reference(),
        growth=facts.settings.growth,
        ambient_torr=facts.ambient_torr,
    )
