"""The keys of a Raman microscope in a lab file: its laser, its optics, and its calibrations."""

from datetime import date
from typing import Annotated, Any

from pydantic import Field, StrictFloat

from labharness.work.capability import Settings

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

    def told(self) -> dict[str, Any]:
        """Return it as plain values."""
        return {**self.model_dump(), "date": self.date.isoformat()}


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
        known = {"a1g_si": self.a1g_si, "pl_raman": self.pl_raman}
        return {name: row.told() for name, row in known.items() if row is not None}

    def recorded(self) -> dict[str, Any]:
        """Return objective and grating of the microscope, if stated."""
        stated = {"objective": self.objective, "grating": self.grating}
        found = {name: text for name, text in stated.items() if text is not None}
        return {"raman": found} if found else {}
