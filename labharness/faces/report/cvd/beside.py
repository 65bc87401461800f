"""The spectra of the clearest spot: Raman, the silicon line and photoluminescence."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from labharness.faces.report.facts import RunFacts
from labharness.faces.report.figures import Drawn, axes_of, curves_drawn
from labharness.faces.report.html import Html
from labharness.faces.report.svg import exact, upright, words_at

T = TypeVar("T")

SILICON_REACH_CM1: Final = 18.0
"""To either side of silicon: its line and enough ground."""

Spectrum = tuple[tuple[float, float], ...]
"""Raman shift in cm⁻¹ or wavelength in nm, and counts, the dark ones taken off."""


@dataclass(frozen=True, slots=True)
class Clearest:
    """The spectra of the clearest spot; the Raman axis is set by silicon.

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


def of_raman(draw: Callable[[RunFacts], T], facts: RunFacts) -> T | None:
    """Draw something of the Raman part; None where a capability's outputs have another shape."""
    if "raman_analysis" not in facts.results:
        return None
    try:
        return draw(facts)
    except (KeyError, IndexError, TypeError, ValueError):
        return None


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


def spectra_beside(facts: RunFacts) -> list[tuple[str, Html]]:
    """Draw the silicon line and the photoluminescence of the clearest spot: key and drawing."""
    from labharness.analysis.peaks import SILICON_POSITION_CM1

    spot = clearest(facts)
    if spot is None:
        return []
    silicon, glow = [Drawn(spot.silicon)], [Drawn(spot.glow)]
    found = {
        "spectrum_silicon": spectra_drawn("shift_axis", silicon, middle=SILICON_POSITION_CM1),
        "spectrum_pl": spectra_drawn("wavelength_axis", glow),
    }
    return [(key, drawing) for key, drawing in found.items() if drawing]


def spectra_drawn(
    across: str, curves: Sequence[Drawn], *, up: str = "counts", middle: float | None = None
) -> Html:
    """Draw spectra over each other; nothing where there are none.

    Args:
        across: Key of the name of the axis across.
        curves: The spectra.
        up: Key of the name of the axis upwards.
        middle: The place where a line is expected.
    """
    frame = axes_of(curves)
    if frame is None:
        return Html("")
    marks = []
    if middle is not None:
        x = frame.x(middle)
        marks.append(upright(x, frame.y.end_px, frame.y.start_px, "ground"))
        marks.append(words_at(x + 4, 20.0, exact(middle)))
    return curves_drawn(frame, curves, marks, across=across, up=up)


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
