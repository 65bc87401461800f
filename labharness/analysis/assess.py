"""What can honestly be said of anyone's spectra: material, calibration, layers or why not."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from labharness.analysis.evidence import CVD_ROWS, EXFOLIATED_ROW, Reference, SeparationRow
from labharness.analysis.formats import Recording
from labharness.analysis.layers import (
    INSTRUMENT_FWHM_MAX_CM1,
    PIXEL_MAX_CM1,
    SILICON_OFFSET_MAX_CM1,
    LayerVerdict,
    SpotEvidence,
    judge_layers,
)
from labharness.analysis.material import MOS2, SILICON, UNKNOWN, Material, identify, la_over_e
from labharness.analysis.noise import Scaled, in_electrons
from labharness.analysis.peaks import PeakFit, SiliconFit, fit_peaks, fit_silicon
from labharness.analysis.spectrum import Spectrum

__all__ = ["FILM_ROWS", "Assessment", "assess"]

FILM_ROWS = {
    "unknown": (EXFOLIATED_ROW, *CVD_ROWS),
    "cvd": CVD_ROWS,
    "exfoliated": (EXFOLIATED_ROW,),
}
"""Tables of the separation by how the film was made."""

SILICON_FWHM_MAX_CM1, SILICON_REACH_CM1 = 14.0, 8.0
"""A wider line, or one farther from its place, may be another mineral's: feldspars have one at
513 cm⁻¹. Within them a coarse or badly calibrated instrument still shows that it is one."""

FLAT_TOP_PIXELS, FLAT_TOP_SHARE = 8, 0.005
"""So many pixels so near the highest are no line: the camera was full."""

LASER_NM_MIN, LASER_NM_MAX = 500.0, 550.0
"""The table of separations is for 514–532 nm; near 633 nm resonances add lines beside A1g."""


@dataclass(frozen=True, slots=True, eq=False)
class Assessment:
    """What one file's spectra say.

    Attributes:
        material: What most of the spectra with a film show.
        materials: The same for each spectrum.
        verdict: Layers of MoS2; None when there is no MoS2 that could be judged.
        reasons: Why there is no layer count; empty when there is one.
        notes: What a reader must know of what is said.
        silicon: The silicon line of each spectrum on the file's own axis.
        offset_cm1: What was added to the axis; 0 without silicon.
        spectra: Each on the calibrated axis, in electrons.
        fits: The MoS2 lines of each spectrum that shows them.
    """

    material: str
    materials: tuple[str, ...]
    verdict: LayerVerdict | None
    reasons: tuple[str, ...]
    notes: tuple[str, ...]
    silicon: tuple[SiliconFit | None, ...]
    offset_cm1: float
    spectra: tuple[Spectrum, ...]
    fits: tuple[PeakFit | None, ...]


def assess(
    recording: Recording,
    *,
    rows: Sequence[SeparationRow] = FILM_ROWS["unknown"],
    reference: Reference | None = None,
) -> Assessment:
    """Calibrate to silicon, name the material, and count layers where the facts allow it.

    Layers are counted for MoS2 alone, at 500–550 nm, on an instrument that resolves its lines.

    Args:
        recording: The file.
        rows: How the film may have been made.
        reference: A1g/Si of one layer on this instrument and oxide; None leaves intensities out.

    Raises:
        ValueError: When the numbers are no spectrum (too few points, no noise) or the axis is a
            wavelength and nobody names the laser.
    """
    shift_cm1 = recording.shift_cm1()
    scaled = [in_electrons(shift_cm1, row) for row in recording.intensity]
    silicon = tuple(map(_silicon, (each.spectrum for each in scaled)))
    seen = [line.offset_cm1 for line in silicon if line is not None]
    offset_cm1 = float(np.median(seen)) if seen else 0.0
    spectra = tuple(replace(each.spectrum, shift_cm1=shift_cm1 + offset_cm1) for each in scaled)
    materials = tuple(map(identify, spectra, silicon))
    material = _of_most(materials)
    fits: list[PeakFit | None] = [None] * len(spectra)
    film = [index for index, each in enumerate(materials) if each is MOS2]
    for index, fit in zip(film, fit_peaks([spectra[index] for index in film]), strict=True):
        fits[index] = fit
    reasons = list(_objections(recording, shift_cm1, silicon))
    if recording.looks_like_wavelengths:
        reasons.insert(
            0,
            f"the axis looks like wavelengths in nm: {recording.axis[0]:g} to "
            f"{recording.axis[-1]:g}; name the laser, as --laser-nm 532",
        )
    if material is not MOS2:
        reasons.append(material.why_no_count)
    verdict = None
    if not reasons:
        spots = [
            SpotEvidence(fit, line, None, la_over_e(spectrum, fit))
            for fit, line, spectrum in zip(fits, silicon, spectra, strict=True)
            if fit is not None
        ]
        verdict = judge_layers(spots, reference, rows)
        reasons.extend(verdict.reasons)
    return Assessment(
        material=material.name,
        materials=tuple(each.name for each in materials),
        verdict=verdict,
        reasons=tuple(reasons),
        notes=_notes(recording, scaled, seen, offset_cm1, verdict, reference),
        silicon=silicon,
        offset_cm1=offset_cm1,
        spectra=spectra,
        fits=tuple(fits),
    )


def _silicon(spectrum: Spectrum) -> SiliconFit | None:
    line = fit_silicon(spectrum)
    if line is None or line.fwhm_cm1 > SILICON_FWHM_MAX_CM1:
        return None
    return line if abs(line.offset_cm1) <= SILICON_REACH_CM1 else None


def _of_most(materials: Sequence[Material]) -> Material:
    """Give the film that most spectra show; a map sees bare substrate beside it."""
    films = Counter(each for each in materials if each not in (SILICON, UNKNOWN))
    return films.most_common(1)[0][0] if films else Counter(materials).most_common(1)[0][0]


def _objections(
    recording: Recording, shift_cm1: NDArray[np.float64], silicon: Sequence[SiliconFit | None]
) -> tuple[str, ...]:
    """Say why this instrument or laser allows no layer count, whatever the sample."""
    lines = [line for line in silicon if line is not None]
    pixel = float(np.median(np.diff(shift_cm1)))
    laser = recording.laser_nm
    reasons = []
    if pixel > PIXEL_MAX_CM1:
        reasons.append(f"pixels of {pixel:.1f} cm⁻¹ are too coarse; at most {PIXEL_MAX_CM1:g}")
    if lines:
        wide = float(np.median([line.instrument_fwhm_cm1 for line in lines]))
        off = float(np.median([line.offset_cm1 for line in lines]))
        if wide > INSTRUMENT_FWHM_MAX_CM1:
            reasons.append(
                f"the instrument resolves {wide:.1f} cm⁻¹, seen on silicon; "
                f"at most {INSTRUMENT_FWHM_MAX_CM1:g} tells layers apart"
            )
        if abs(off) > SILICON_OFFSET_MAX_CM1:
            reasons.append(
                f"silicon lies {-off:+.1f} cm⁻¹ from its place; beyond "
                f"{SILICON_OFFSET_MAX_CM1:g} the axis is not trusted, only shifted"
            )
    if laser is not None and not LASER_NM_MIN <= laser <= LASER_NM_MAX:
        reasons.append(
            f"the laser has {laser:.1f} nm; the table of layers holds for "
            f"{LASER_NM_MIN:g}–{LASER_NM_MAX:g} nm"
        )
    return tuple(reasons)


def _is_saturated(spectrum: Spectrum) -> bool:
    counts = spectrum.counts
    span = float(counts.max() - np.median(counts))
    full = counts >= counts.max() - FLAT_TOP_SHARE * span
    first, last = np.nonzero(full)[0][[0, -1]]
    return bool(full.sum() >= FLAT_TOP_PIXELS and full.sum() >= 0.8 * (last - first + 1))


def _notes(
    recording: Recording,
    scaled: Sequence[Scaled],
    offsets_cm1: Sequence[float],
    offset_cm1: float,
    verdict: LayerVerdict | None,
    reference: Reference | None,
) -> tuple[str, ...]:
    notes = []
    if offsets_cm1:
        notes.append(f"axis moved by {offset_cm1:+.2f} cm⁻¹ to put silicon at 520.7")
    else:
        notes.append("no silicon line: the axis is as the file has it")
    if recording.axis_unit == "nm" and not recording.unit_stated:
        notes.append("the axis looks like wavelengths in nm, and was converted with that laser")
    if recording.laser_nm is None:
        notes.append("the file names no laser; 514–532 nm is assumed")
    if any(_is_saturated(each.spectrum) for each in scaled):
        notes.append("the brightest line has a flat top: the camera was saturated there")
    odd = [each.note for each in scaled if each.note]
    if odd:
        notes.append(odd[0] if len(scaled) == 1 else f"{odd[0]} ({len(odd)} of {len(scaled)})")
    if verdict is not None:
        if reference is None:
            notes.append("A1g/Si is not used: it needs this instrument's value for one layer")
        notes.extend(each for each in verdict.notes if not each.startswith("no silicon line"))
    return tuple(notes)
