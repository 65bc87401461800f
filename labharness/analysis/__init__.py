"""Analyse spectra: lines with their errors, and the number of layers of a film."""

from labharness.analysis.despike import despike
from labharness.analysis.disorder import LaOverE, la_over_e
from labharness.analysis.evidence import LAYER_CLASSES, EvidenceTerm, Reference
from labharness.analysis.film import FilmSignal, film_signal, peak_height
from labharness.analysis.layers import LayerVerdict, SpotEvidence, judge_layers
from labharness.analysis.peaks import PeakFit, SiliconFit, fit_peaks, fit_silicon
from labharness.analysis.spectrum import Spectrum, shift_from_wavelength

__all__ = [
    "LAYER_CLASSES",
    "EvidenceTerm",
    "FilmSignal",
    "LaOverE",
    "LayerVerdict",
    "PeakFit",
    "Reference",
    "SiliconFit",
    "Spectrum",
    "SpotEvidence",
    "despike",
    "film_signal",
    "fit_peaks",
    "fit_silicon",
    "judge_layers",
    "la_over_e",
    "peak_height",
    "shift_from_wavelength",
]
