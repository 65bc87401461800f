"""The spectra and films of two growths beside each other."""

import math
from collections.abc import Callable, Iterator, Sequence

from labharness.faces.report.compared_run import ComparedRun, legend
from labharness.faces.report.cvd.beside import (
    Clearest,
    Spectrum,
    clearest,
    spectrum_figure,
    within,
)
from labharness.faces.report.cvd.film import FIT_WINDOW_CM1, film_in_brief, of_raman
from labharness.faces.report.document import section
from labharness.faces.report.figures import Drawn
from labharness.faces.report.html import Html, el
from labharness.faces.report.words import say

__all__ = ["growths_compared"]


def growths_compared(runs: Sequence[ComparedRun]) -> Iterator[Html]:
    """Return the sections of spectra and of films; neither where no run has any."""
    spectra = list(_spectra(runs))
    if spectra:
        drawn = el("div", *spectra, class_="pair")
        yield section("spectra", legend(runs), drawn, el("p", say("spectra_key"), class_="note"))
    films = [of_raman(film_in_brief, each.facts) for each in runs]
    if any(films):
        yield section("film", el("div", *map(_film, runs, films), class_="pair"))


def _spectra(runs: Sequence[ComparedRun]) -> Iterator[Html]:
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
        curves = [each for each in curves if each.points]
        if curves:
            yield spectrum_figure(key, across, curves, up="counts_a_second")


def _lines(spot: Clearest) -> tuple[Spectrum, float]:
    return within(spot.raman, *FIT_WINDOW_CM1), spot.raman_s


def _a_second(run: ComparedRun, spectrum: Spectrum, exposure_s: float) -> Drawn:
    if not exposure_s > 0 or not math.isfinite(exposure_s):
        return Drawn(())
    points = [(x, counts / exposure_s) for x, counts in spectrum]
    return Drawn(points, run.colour, run.trace)


def _film(run: ComparedRun, drawn: Html | None) -> Html:
    return el("div", el("h3", run.label), drawn or el("p", say("no_film_drawn")))
