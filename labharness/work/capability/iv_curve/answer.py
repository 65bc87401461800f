"""What a curve of current against voltage says of a junction."""

import math
from collections.abc import Sequence
from itertools import pairwise

from labharness.work.capability import Answer, ArtifactContent, NoAnswer
from labharness.work.plan import StepRecord

__all__ = ["compose", "junction_of"]

BOLTZMANN_PER_CHARGE = 1.380649e-23 / 1.602176634e-19  # V/K; SI, exact
ZERO_CELSIUS_K = 273.15
FORWARD_A = 1e-6
"""Less is saturation current, leakage and offset of the meter."""

NEAR_COMPLIANCE = 0.99
PAIRS_MIN = 4


def compose(records: Sequence[StepRecord]) -> Answer | NoAnswer:
    """Return what was measured as a table, with ideality and series resistance if it shows them."""
    swept = next(each for each in records if each.instruction.action == "sweep")
    if swept.result is None:
        return NoAnswer("the run ended before its sweep", {})
    volts, amps = swept.result["voltages_v"], swept.result["currents_a"]
    rows = "".join(f"{v:.6g},{a:.6g}\n" for v, a in zip(volts, amps, strict=True))
    table = ArtifactContent("iv_curve", "text/csv", f"voltage [V],current [A]\n{rows}".encode())
    asked = swept.instruction.parameters
    most_a = NEAR_COMPLIANCE * asked["compliance_a"]
    forward = [(v, a) for v, a in zip(volts, amps, strict=True) if FORWARD_A <= a < most_a]
    found = junction_of(forward, asked["junction_c"])
    outputs = {
        "points": len(volts),
        "max_current_a": max(map(abs, amps)),
        "ideality": None if found is None else round(found[0], 3),
        "series_ohm": None if found is None else round(found[1], 3),
    }
    if found is None:
        said = "too few points conduct forward to characterise a junction"
        return Answer(outputs, (table,), (said,), said)
    return Answer(outputs, (table,), (), f"ideality {found[0]:.3f}, {found[1]:.3g} ohm in series")


def junction_of(
    points: Sequence[tuple[float, float]], junction_c: float
) -> tuple[float, float] | None:
    """Return ideality and series resistance (ohm) of a forward curve; None where it has too few.

    Of V = n kT/q ln(I / Is) + I Rs the slope dV / d(ln I) = n kT/q + I Rs is a straight line in I
    (S. K. Cheung and N. W. Cheung, Appl. Phys. Lett. 49 (1986) 85, doi:10.1063/1.97359).
    """
    slopes = [
        ((a + b) / 2, (v - u) / math.log(b / a))
        for (u, a), (v, b) in pairwise(sorted(points))
        if b > a
    ]
    if len(slopes) < PAIRS_MIN:
        return None
    mean_a = sum(a for a, _ in slopes) / len(slopes)
    mean_v = sum(v for _, v in slopes) / len(slopes)
    spread = sum((a - mean_a) ** 2 for a, _ in slopes)
    series_ohm = sum((a - mean_a) * (v - mean_v) for a, v in slopes) / spread
    thermal_v = BOLTZMANN_PER_CHARGE * (junction_c + ZERO_CELSIUS_K)
    return (mean_v - series_ohm * mean_a) / thermal_v, series_ohm
