"""The spectra of the clearest spot: Raman, the silicon line and photoluminescence."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from labharness.faces.report.facts import RunFacts
from labharness.faces.report.figures import Drawn, axes_of, curves_figure
from labharness.faces.report.html import Html, el
from labharness.faces.report.svg import exact
from labharness.faces.report.words import say

__all__ = ["Clearest", "clearest", "spectra_beside", "spectrum_figure", "within"]

SILICON_REACH_CM1: Final = 18.0
"""To either side of silicon: its line and enough ground."""

Spectrum = tuple[tuple[float, float], ...]
"""Raman shift in cm⁻¹ or wavelength in nm, and counts, the dark ones taken off."""


@dataclass(frozen=True, slots=True)
class Clearest:
    """What was measured at the clearest spot; the Raman axis is set by silicon.

    Attributes:
        raman: All of the spectrum.
        raman_s: Its exposure.
        glow: Photoluminescence of the same place; empty where it was not taken.
        glow_s: Its exposure.
    """

    raman: Spectrum
    raman_s: float
    glow: Spectrum
    glow_s: float

    @property
    def silicon(self) -> Spectrum:
        """The silicon line and enough ground to both sides."""
        from labharness.analysis.peaks import SILICON_POSITION_CM1

        return within(
            self.raman,
            SILICON_POSITION_CM1 - SILICON_REACH_CM1,
            SILICON_POSITION_CM1 + SILICON_REACH_CM1,
        )


def clearest(facts: RunFacts) -> Clearest | None:
    """Return the spectra of the clearest spot; None where no spot was judged.

    Raises:
        KeyError: The outputs are those of another capability.
    """
    found = facts.results["raman_analysis"]
    index = found["best_spot"]
    raman = facts.spectra.get("raman") or []
    if index is None or not 0 <= index < len(raman):
        return None
    spot, spectrum = found["spots"][index], raman[index]
    dark = float(facts.spectra["dark_counts"])
    offset_cm1 = spot["silicon_offset_cm1"] or 0.0
    shifted = [x + offset_cm1 for x in spectrum["raman_shift"]]
    glow = _same_place(facts.spectra.get("photoluminescence") or [], spot)
    return Clearest(
        raman=_points(shifted, spectrum, dark),
        raman_s=float(spectrum["exposure_s"]),
        glow=() if glow is None else _points(glow["wavelength_nm"], glow, dark),
        glow_s=1.0 if glow is None else float(glow["exposure_s"]),
    )


def spectra_beside(facts: RunFacts) -> Html:
    """Draw the silicon line and the photoluminescence of the clearest spot."""
    from labharness.analysis.peaks import SILICON_POSITION_CM1

    spot = clearest(facts)
    if spot is None:
        return Html("")
    silicon, glow = [Drawn(spot.silicon)], [Drawn(spot.glow)]
    drawn = [
        spectrum_figure("spectrum_silicon", "shift_axis", silicon, middle=SILICON_POSITION_CM1),
        spectrum_figure("spectrum_pl", "wavelength_axis", glow),
    ]
    return el("div", *drawn, class_="pair")


def spectrum_figure(
    key: str,
    across: str,
    curves: Sequence[Drawn],
    *,
    up: str = "counts",
    middle: float | None = None,
) -> Html:
    """Draw spectra over each other; nothing where there are none.

    Args:
        key: Of the caption.
        across: Key of the name of the axis across.
        curves: The spectra.
        up: Key of the name of the axis upwards.
        middle: Where a line is expected.
    """
    frame = axes_of(curves)
    if frame is None:
        return Html("")
    marks = []
    if middle is not None:
        x = frame.x(middle)
        top, bottom = frame.y.end_px, frame.y.start_px
        marks.append(el("line", x1=x, x2=x, y1=top, y2=bottom, class_="ground"))
        marks.append(el("text", exact(middle), x=x + 4, y=20.0))
    return curves_figure(el("b", say(key)), frame, curves, marks, across=across, up=up)


def within(spectrum: Spectrum, low: float, high: float) -> Spectrum:
    """Return the part of a spectrum between two places of its axis."""
    return tuple(each for each in spectrum if low <= each[0] <= high)


def _points(axis: Sequence[float], spectrum: Mapping[str, Any], dark: float) -> Spectrum:
    return tuple((x, counts - dark) for x, counts in zip(axis, spectrum["counts"], strict=True))


def _same_place(
    spectra: Sequence[Mapping[str, Any]], spot: Mapping[str, Any]
) -> Mapping[str, Any] | None:
    here = spot["x_um"], spot["y_um"]
    return next((each for each in spectra if (each["x_um"], each["y_um"]) == here), None)
