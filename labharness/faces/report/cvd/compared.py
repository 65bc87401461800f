"""The spectra and films of two growths beside each other."""

import math
from collections.abc import Callable, Iterator, Sequence

from labharness.faces.report.compared_run import ComparedRun
from labharness.faces.report.cvd.beside import (
    Clearest,
    Spectrum,
    clearest,
    of_raman,
    spectra_drawn,
    within,
)
from labharness.faces.report.cvd.film import FIT_WINDOW_CM1, film_in_brief
from labharness.faces.report.document import render
from labharness.faces.report.figures import Drawn
from labharness.faces.report.html import Html


def growths_compared(runs: Sequence[ComparedRun]) -> Iterator[Html]:
    """Return the sections of spectra and of films; neither where no run has any."""
    spectra = list(_spectra(runs))
    films = [(run, of_raman(film_in_brief, run.facts)) for run in runs]
    if spectra or any(film for _, film in films):
        yield render("cvd/compared.html.j2", runs=runs, spectra=spectra, films=films)


def _spectra(runs: Sequence[ComparedRun]) -> Iterator[tuple[str, Html]]:
    """Draw the spectra of both clearest spots over each other, in counts a second."""
    spots = [(run, of_raman(clearest, run.facts)) for run in runs]
    shown = [(run, spot) for run, spot in spots if spot is not None]
    drawn: tuple[tuple[str, str, Callable[[Clearest], tuple[Spectrum, float]]], ...] = (
        ("spectrum_raman", "shift_axis", _lines),
        ("spectrum_silicon_two", "shift_axis", lambda spot: (spot.silicon, spot.raman_s)),
        ("spectrum_pl_two", "wavelength_axis", lambda spot: (spot.glow, spot.glow_s)),
    )
    for key, across, of in drawn:
        curves = [_a_second(run, *of(spot)) for run, spot in shown]
        drawing = spectra_drawn(
            across, [each for each in curves if each.points], up="counts_a_second"
        )
        if drawing:
            yield key, drawing


def _lines(spot: Clearest) -> tuple[Spectrum, float]:
    return within(spot.raman, *FIT_WINDOW_CM1), spot.raman_s


def _a_second(run: ComparedRun, spectrum: Spectrum, exposure_s: float) -> Drawn:
    if not exposure_s > 0 or not math.isfinite(exposure_s):
        return Drawn(())
    points = [(x, counts / exposure_s) for x, counts in spectrum]
    return Drawn(points, run.colour, run.trace)
