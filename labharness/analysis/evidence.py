"""Tables and errors behind the layer count: separations, intensity ratios, their uncertainties."""

import math
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, NamedTuple

from labharness.core.vocabulary.texts import Text

LAYER_CLASSES = (1, 2, 3, 4, 5, 6)
"""Layer counts that are told apart; the last means six or more."""

CALIBRATION_CM1 = 0.3
"""Error of a separation from the axis and the choice of line shape and weights: on bright real
spectra with shoulders that choice alone moves it by 0.14 to 0.38."""

OUTLIER_SHARE = 0.03
"""Share of samples outside every row of the table."""

STUDENT_NODES = (2.765, 1.433, 0.935, 0.580)
"""Equally likely variances that represent a Student-t of 5 degrees of freedom."""

THICK_NODES = (6.4, 8.0, 11.0)
"""Layers of a film of six or more, equally likely; the ratio still grows there."""

TWISTED_CENTRE_CM1, TWISTED_TAU_CM1, TWISTED_SHARE = 20.6, 0.45, 0.25
"""Separation of bilayers whose layers are twisted by more than some degrees, and their share of the
bilayers. As grown, A1g is lower at all angles but 0 and 60 degrees (arXiv:1406.6487), and the
separation falls with the angle (arXiv:1912.00139); 20.6 is a middle. The share is judgement: most
bilayers grown by CVD are stacked at 0 or 60 degrees."""

A1G_SI_LN_SD = 1.0
"""Uncertainty of A1g/Si of one layer on a microscope without calibration: interference in the oxide
alone makes it half to three times as high (10.1021/nn3025173 has the law), and optics, focus and
polarisation do the rest. Judgement."""

PL_RAMAN_LN_SD = 1.5
"""The same for PL/Raman: another grating or camera sees 665 nm four times better or worse relative
to 545 nm. Judgement."""

STATED_UNCERTAINTY = 0.2
"""Relative uncertainty of a value that is given without one. Judgement."""


class SeparationRow(NamedTuple):
    """A1g − E2g separation of each layer class, in cm⁻¹, for one way of making the film.

    Attributes:
        centre_cm1: Mean over samples.
        tau_cm1: Standard deviation from sample to sample and paper to paper. More spots of one
            sample do not make it smaller.
        twisted_tau_cm1: The same of twisted bilayers; their mean is ``TWISTED_CENTRE_CM1``.
    """

    name: str
    centre_cm1: tuple[float, ...]
    tau_cm1: tuple[float, ...]
    source: str
    twisted_tau_cm1: float = TWISTED_TAU_CM1


_TABLE: Mapping[str, Any] = tomllib.loads(
    Path(__file__).with_name("separations.toml").read_text("utf-8")
)


def _row(code: str) -> SeparationRow:
    """Return a row of the table; of moved films by the exfoliated one."""
    row, plain = _TABLE[code.removeprefix("rows.")], _TABLE["exfoliated"]
    by_cm1, spread_cm1 = row.get("moved_cm1", (0.0, 0.0))
    centre, tau = (row.get(key, plain[key]) for key in ("centre_cm1", "tau_cm1"))
    return SeparationRow(
        code if row is plain else Text(code),
        tuple(each + by_cm1 for each in centre),
        tuple(math.hypot(each, spread_cm1) for each in tau),
        row["source"].format(**_TABLE),
        math.hypot(TWISTED_TAU_CM1, spread_cm1),
    )


EXFOLIATED_ROW, CVD_ROW, NANOCRYSTALLINE_ROW = map(
    _row, ("exfoliated", "rows.as_grown", "rows.disordered")
)

CVD_ROWS = (CVD_ROW, _row("rows.strained"), _row("rows.relaxed"))
"""A film grown here by CVD, in a furnace whose films are known; the three are equally likely."""

STRAINS = ("rows.compressed", "rows.stretched")
ROWS_BY_ORIGIN = {
    origin: tuple(map(_row, (*STRAINS, *more)))
    for origin, more in {
        "unknown": (),
        "cvd": ("rows.cooled",),
        "exfoliated": ("rows.slack",),
        "transferred": ("rows.slack",),
    }.items()
}
"""Tables of the separation, by what a caller says of the film's making. A word for it narrows the
strain little: films are found from -0.5 to +0.6 % on one substrate or another. The rows are as wide
as a uniform strain over that range asks (`test_origin_of_a_film.py`)."""


@dataclass(frozen=True, slots=True)
class Reference:
    """Ratios of heights of a monolayer on this microscope, and their uncertainties.

    A1g/Si is ``a1g_si_monolayer`` · N^``a1g_si_exponent``: two films of one and three layers on one
    instrument, 0.12 and 4.2 times that, give 1.3; layers dim their silicon, which gives 1.1.
    PL/Raman is the height of the A exciton over the height of A1g at equal exposure. A calibration
    settles the microscope and its oxide. The deviation of each sample remains: focus and texture,
    and in the photoluminescence defects and doping, which may quench one film by 30 and the next
    one not at all.

    Attributes:
        a1g_si_uncertainty: One standard deviation of the value; None without a calibration of this
            microscope: then the value is the middle of a broad prior.
        a1g_si_source: Sample and date of the calibration, or the origin of the number.
        a1g_si_sample_ln_sd: Spread of ln(A1g/Si) from sample to sample on one microscope.
            pl_raman_uncertainty, pl_raman_source: The same for PL/Raman. pl_dimmed_ln,
            pl_dimmed_ln_sd: How much darker a film of one layer is than a good one.
        pl_quenching: Median factor by which two or more layers are darker than one: 10 to 100 times
            (its middle, and half of that range as a spread).

    Raises:
        ValueError: When a number is not positive and finite.
    """

    a1g_si_monolayer: float = 0.12
    a1g_si_uncertainty: float | None = None
    a1g_si_source: str = ""
    a1g_si_exponent: float = 1.2
    a1g_si_sample_ln_sd: float = 0.35
    pl_raman_monolayer: float = 20.0
    pl_raman_uncertainty: float | None = None
    pl_raman_source: str = ""
    pl_dimmed_ln: float = 0.7
    pl_dimmed_ln_sd: float = 1.3
    pl_quenching: float = 32.0
    pl_quenching_ln_sd: float = 1.15

    def __post_init__(self) -> None:
        for name in (each.name for each in fields(self)):
            value = getattr(self, name)
            if isinstance(value, float | int) and not 0 < value < math.inf:
                raise ValueError(f"Reference.{name} must be positive and finite, got {value}")

    @classmethod
    def stated(cls, a1g_si_monolayer: float, source: str) -> "Reference":
        """Return a reference from a stated A1g/Si of one layer, taken as good to a fifth."""
        return cls(
            a1g_si_monolayer=a1g_si_monolayer,
            a1g_si_uncertainty=STATED_UNCERTAINTY * a1g_si_monolayer,
            a1g_si_source=source,
        )

    def a1g_si_ln_sd(self) -> float:
        """Return the spread of ln(A1g/Si) of one layer, from sample to sample."""
        known = _ln_sd(self.a1g_si_monolayer, self.a1g_si_uncertainty, A1G_SI_LN_SD)
        return math.hypot(known, self.a1g_si_sample_ln_sd)

    def pl_medians_ln(self) -> tuple[float, float]:
        """Return the median of ln(PL/Raman) of one layer, and of more."""
        good = math.log(self.pl_raman_monolayer)
        return good - self.pl_dimmed_ln, good - math.log(self.pl_quenching)

    def pl_variances(self) -> tuple[float, float, float]:
        """Return the variance of ln(PL/Raman) of one layer, of more, and their common part."""
        shared = _ln_sd(self.pl_raman_monolayer, self.pl_raman_uncertainty, PL_RAMAN_LN_SD) ** 2
        return shared + self.pl_dimmed_ln_sd**2, shared + self.pl_quenching_ln_sd**2, shared


def _ln_sd(value: float, uncertainty: float | None, unknown: float) -> float:
    return unknown if uncertainty is None else uncertainty / value


@dataclass(frozen=True, slots=True)
class EvidenceTerm:
    """One measured number and its likelihood for each class.

    Attributes:
        log_likelihood: Per class of ``LAYER_CLASSES``.
        systematic: The error that more spots of the same sample do not reduce.
    """

    name: str
    measured: float
    unit: str
    log_likelihood: Mapping[int, float]
    systematic: str
