"""The name of a spectrum, with its lines and with those that nothing explains."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from labharness.analysis.material_table import Material


@dataclass(frozen=True, slots=True)
class SeenLine:
    """One fitted line: position, width, height, and their errors, misfit included."""

    position_cm1: float
    position_sigma_cm1: float
    fwhm_cm1: float
    fwhm_sigma_cm1: float
    height_counts: float
    height_sigma_counts: float


class OpenLine(NamedTuple):
    """A line that nothing explains; the numbers are rough, and heights in electrons."""

    position_cm1: float
    fwhm_cm1: float
    height_counts: float


@dataclass(frozen=True, slots=True)
class Named:
    """The material of one spectrum, and its lines by their names in the table.

    Attributes:
        probability: Probability that the name is right; 0 of `unknown`.
        beside: Further films in the same spectrum.
        open_lines: Lines that nothing explains, the highest first.
        on_silicon: The line near 520.7 cm⁻¹ is silicon's.
        refused: A material whose lines stand there, and the place of the line that speaks against
            it.
    """

    material: Material
    lines: Mapping[str, SeenLine] = field(default_factory=dict)
    probability: float = 1.0
    beside: tuple[str, ...] = ()
    open_lines: tuple[OpenLine, ...] = ()
    on_silicon: bool = False
    refused: tuple[str, float] | None = None

    def ratio(self, line: str, over: str) -> tuple[float, float] | None:
        """Return the ratio of two heights and its error; None without the second line."""
        below = self.lines.get(over)
        if below is None:
            return None
        above = self.lines.get(line)
        if above is None:
            return 0.0, below.height_sigma_counts / below.height_counts
        value = above.height_counts / below.height_counts
        return value, value * math.hypot(
            above.height_sigma_counts / above.height_counts,
            below.height_sigma_counts / below.height_counts,
        )
