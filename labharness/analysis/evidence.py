"""What one measured number says about each layer count, with its own systematic error."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "CVD_ROW",
    "CVD_ROWS",
    "EXFOLIATED_ROW",
    "LAYER_CLASSES",
    "NANOCRYSTALLINE_ROW",
    "STRAINED_ROW",
    "EvidenceTerm",
    "Reference",
    "SeparationRow",
    "a1g_si_term",
    "pl_raman_term",
    "separation_term",
]

Array = NDArray[np.float64]

LAYER_CLASSES = (1, 2, 3, 4, 5, 6)
"""Layer counts told apart; the last means six or more."""

CALIBRATION_CM1 = 0.15
"""Error of a separation that the axis and the choice of line shape leave."""

OUTLIER_SHARE = 0.03
"""Share of samples that follow no row of the table."""

OUTLIER_RANGE_CM1 = 10.0
OUTLIER_RANGE_LN = math.log(1000.0)
"""What an outlier may be: any separation within 10 cm⁻¹, any ratio within three decades."""

STUDENT_NU = 5
STUDENT_NORM = math.gamma((STUDENT_NU + 1) / 2) / (
    math.sqrt(STUDENT_NU * math.pi) * math.gamma(STUDENT_NU / 2)
)

THICK_LAYERS = (6, 7, 8, 10, 12)
"""Layer counts that stand for the class of six or more where a ratio goes on growing."""


class SeparationRow(NamedTuple):
    """A1g − E2g separation of each layer class, in cm⁻¹, for one way of making the film.

    Attributes:
        centre_cm1: Mean over samples.
        tau_cm1: Standard deviation from sample to sample and paper to paper. More spots of one
            sample do not make it smaller.
    """

    name: str
    centre_cm1: tuple[float, ...]
    tau_cm1: tuple[float, ...]
    source: str


EXFOLIATED_ROW = SeparationRow(
    name="exfoliated",
    centre_cm1=(19.0, 21.6, 22.9, 23.7, 24.2, 25.3),
    tau_cm1=(0.55, 0.50, 0.45, 0.45, 0.45, 0.55),
    source="Lee 2010, 10.1021/nn1003937; Li 2012, 10.1002/adfm.201102111; spread between papers",
)

CVD_ROW = SeparationRow(
    name="CVD as grown",
    centre_cm1=(19.9, 22.0, 23.1, 23.9, 24.3, 25.3),
    tau_cm1=(0.75, 0.65, 0.55, 0.50, 0.50, 0.60),
    source="the exfoliated row, widened by strain (10.1021/acs.nanolett.6b02615) and doping "
    "(arXiv:1206.1758)",
)

STRAINED_ROW = SeparationRow(
    name="CVD, strained in every layer",
    centre_cm1=(19.9, 22.5, 23.8, 24.6, 25.1, 26.2),
    tau_cm1=(0.75, 0.85, 0.82, 0.82, 0.82, 0.88),
    source="the exfoliated row moved by 0.35 ± 0.15 % biaxial strain (+3.5 cm⁻¹ per %) and "
    "0.15 ± 0.2 electrons per 1e13 cm⁻² (-2.2 cm⁻¹ each) in films of every thickness",
)
"""Nobody states whether a thick film keeps the strain that a monolayer has; `CVD_ROW` says that it
relaxes. With that row alone five strained layers are called six or more too surely."""

CVD_ROWS = (CVD_ROW, STRAINED_ROW)
"""A film grown by CVD: both possibilities count alike."""

NANOCRYSTALLINE_ROW = SeparationRow(
    name="nanocrystalline or ALD",
    centre_cm1=(21.5, 22.8, 23.6, 24.1, 24.4, 25.2),
    tau_cm1=(0.70, 0.65, 0.60, 0.60, 0.60, 0.60),
    source="ALD films, compare 10.1038/s41598-025-09826-x; judgement",
)


@dataclass(frozen=True, slots=True)
class Reference:
    """Intensity ratios this instrument sees on known films. Another oxide needs another one.

    A1g/Si (ratio of heights) is ``a1g_si_monolayer`` · N^``a1g_si_exponent``; the default is a
    fit to films of one and three layers on one instrument and one oxide, and its spread is
    judgement. PL/Raman is the height of the A exciton over the height of A1g at equal exposure;
    one layer against two is 10–100 times brighter (its middle, 32, and half of that range
    as a spread are taken from there); the ratio of one layer and its spread are judgement.

    Attributes:
        a1g_si_log_sd: Spread of ln(A1g/Si) between samples.
        pl_raman_monolayer: Median PL/Raman of one layer.
        pl_raman_log_sd: Spread of ln(PL/Raman) between samples of one layer.
        pl_raman_quenching: Median factor by which two or more layers are darker.
        pl_raman_quenching_log_sd: Spread of the logarithm of that factor.
        source: Where the numbers come from; shown with the verdict.

    Raises:
        ValueError: When a number is not positive and finite.
    """

    a1g_si_monolayer: float = 0.12
    a1g_si_exponent: float = 1.3
    a1g_si_log_sd: float = 0.35
    pl_raman_monolayer: float = 20.0
    pl_raman_log_sd: float = 0.8
    pl_raman_quenching: float = 32.0
    pl_raman_quenching_log_sd: float = 1.15
    source: str = "default reference: two films of known thickness; PL by judgement"

    def __post_init__(self) -> None:
        for name in (
            "a1g_si_monolayer",
            "a1g_si_exponent",
            "a1g_si_log_sd",
            "pl_raman_monolayer",
            "pl_raman_log_sd",
            "pl_raman_quenching",
            "pl_raman_quenching_log_sd",
        ):
            if not 0 < getattr(self, name) < math.inf:
                raise ValueError(
                    f"Reference.{name} must be positive and finite, got {getattr(self, name)}"
                )


@dataclass(frozen=True, slots=True)
class EvidenceTerm:
    """One measured number and what it says about each class.

    Attributes:
        log_likelihood: Per class of ``LAYER_CLASSES``.
        systematic: The error that more spots of the same sample do not reduce.
    """

    name: str
    measured: float
    unit: str
    log_likelihood: Mapping[int, float]
    systematic: str


def separation_term(
    separation_cm1: float, sigma_cm1: float, rows: Sequence[SeparationRow]
) -> EvidenceTerm:
    """Weigh a separation against the mean of ``rows``: Student-t (nu 5) with an outlier floor."""
    likelihood = np.zeros(len(LAYER_CLASSES))
    for row in rows:
        scale = np.sqrt(np.square(row.tau_cm1) + sigma_cm1**2 + CALIBRATION_CM1**2)
        z = (separation_cm1 - np.array(row.centre_cm1)) / scale
        bell = STUDENT_NORM / scale * (1 + z * z / STUDENT_NU) ** (-(STUDENT_NU + 1) / 2)
        likelihood += bell / len(rows)
    likelihood = (1 - OUTLIER_SHARE) * likelihood + OUTLIER_SHARE / OUTLIER_RANGE_CM1
    low, high = (edge(tau for row in rows for tau in row.tau_cm1) for edge in (min, max))
    names = ", ".join(row.name for row in rows)
    return EvidenceTerm(
        "A1g - E2g separation",
        separation_cm1,
        "cm⁻¹",
        dict(zip(LAYER_CLASSES, np.log(likelihood).tolist(), strict=True)),
        f"strain, doping and paper to paper: tau {low:g}–{high:g} cm⁻¹ ({names}); "
        f"axis {CALIBRATION_CM1:g} cm⁻¹; {OUTLIER_SHARE:.0%} outliers",
    )


def a1g_si_term(ratio: float, relative_sigma: float, reference: Reference) -> EvidenceTerm:
    """Weigh the ratio of heights A1g/Si against the instrument's reference.

    Raises:
        ValueError: When ``ratio`` is not positive.
    """
    spread = math.hypot(reference.a1g_si_log_sd, relative_sigma)

    def bell(layers: int) -> float:
        median = math.log(reference.a1g_si_monolayer) + reference.a1g_si_exponent * math.log(layers)
        return _log_normal("A1g/Si", ratio, median, spread)

    thick = sum(bell(layers) for layers in THICK_LAYERS) / len(THICK_LAYERS)
    return EvidenceTerm(
        "A1g/Si height ratio",
        ratio,
        "1",
        _with_floor([*(bell(layers) for layers in LAYER_CLASSES[:-1]), thick]),
        f"oxide thickness, focus and texture: ln spread {reference.a1g_si_log_sd:g}; "
        f"{OUTLIER_SHARE:.0%} outliers; {reference.source}",
    )


def pl_raman_term(ratio: float, reference: Reference) -> EvidenceTerm:
    """Weigh PL/Raman: it tells one layer from more, and nothing among the thicker ones.

    Raises:
        ValueError: When ``ratio`` is not positive.
    """
    median = math.log(reference.pl_raman_monolayer)
    single = _log_normal("PL/Raman", ratio, median, reference.pl_raman_log_sd)
    several = _log_normal(
        "PL/Raman",
        ratio,
        median - math.log(reference.pl_raman_quenching),
        math.hypot(reference.pl_raman_log_sd, reference.pl_raman_quenching_log_sd),
    )
    return EvidenceTerm(
        "PL/Raman height ratio",
        ratio,
        "1",
        _with_floor([single] + [several] * (len(LAYER_CLASSES) - 1)),
        f"defects and doping quench: ln spread {reference.pl_raman_log_sd:g}; two or more layers "
        f"{reference.pl_raman_quenching:g} times darker, ln spread "
        f"{reference.pl_raman_quenching_log_sd:g}; {OUTLIER_SHARE:.0%} outliers; "
        f"{reference.source}",
    )


def _log_normal(name: str, ratio: float, median_ln: float, spread_ln: float) -> float:
    if not 0 < ratio < math.inf:
        raise ValueError(f"{name} must be positive and finite, got {ratio}")
    z = (math.log(ratio) - median_ln) / spread_ln
    return math.exp(-z * z / 2) / (spread_ln * math.sqrt(2 * math.pi))


def _with_floor(likelihood: Sequence[float]) -> dict[int, float]:
    """Let a wrong reference cost a class no more than an outlier does."""
    floor = OUTLIER_SHARE / OUTLIER_RANGE_LN
    return {
        layers: math.log((1 - OUTLIER_SHARE) * value + floor)
        for layers, value in zip(LAYER_CLASSES, likelihood, strict=True)
    }
