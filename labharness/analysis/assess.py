"""Assess the spectra of a file: material, bare substrate, calibration, and layers or why not."""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import NamedTuple

import numpy as np

from labharness.analysis.arrays import Array, Mask
from labharness.analysis.evidence import CVD_ROWS, EXFOLIATED_ROW, Reference, SeparationRow
from labharness.analysis.formats import Recording
from labharness.analysis.formats.recording import SHIFT_CM1_MAX, SHIFT_CM1_MIN
from labharness.analysis.layers import (
    INSTRUMENT_FWHM_MAX_CM1,
    PIXEL_MAX_CM1,
    SILICON_OFFSET_MAX_CM1,
    LayerVerdict,
    SpotEvidence,
    judge_layers,
    la_over_e_rows,
)
from labharness.analysis.lines import LineWindow
from labharness.analysis.material import Named, OpenLine, identify_rows
from labharness.analysis.material_table import (
    MATERIALS,
    MOS2,
    SILICON,
    SUBSTRATES,
    UNKNOWN,
    Material,
)
from labharness.analysis.noise import (
    SATURATED,
    QuietStretch,
    faults,
    quiet_half,
    rows_in_electrons,
    told,
)
from labharness.analysis.peaks import (
    CLEAR_SNR_MIN,
    PEAK_WINDOW_CM1,
    PeakFit,
    SiliconFit,
    bounded,
    fit_peak_rows,
    fit_silicon_rows,
    silicon_stress_mpa,
)
from labharness.analysis.spectrum import PIXELS_MIN, Spectrum, Stack, covers, cut_window
from labharness.core.vocabulary.texts import Text

ROOM_CM1 = 18.0
"""Background beside such a line; its height is measured on it."""

SEEN_SIGMA = 6.0
"""A film would be seen if the weakest one has this many errors, as for its name."""

STANDS_SIGMA, STANDS_MISFIT, STANDS_SHARE = 5.0, 2.0, 0.15
"""An unknown line must have this many errors, exceed the misfit of the background by this factor,
and have this share of the weakest film. Then the place is not called bare."""

TRIED_STEP_CM1 = 1.0
WIDTH_MIN_PIXELS = 1.5


def bareness(stack: Stack, substrate: Material, ruler_counts: Sequence[float]) -> Text:
    """Return one sentence: which films the spectra of a substrate rule out.

    A film is ruled out where most spectra would have shown it and do not.

    Args:
        stack: Spectra with the substrate and without a named film, cosmic rays included.
        substrate: The substrate.
        ruler_counts: Height of the substrate's own line in each, in electrons.
    """
    lowest = substrate.weakest_film * np.asarray(ruler_counts)
    ruled_out, not_seen = [], []
    odd: dict[float, int] = {}
    odd_rows = np.zeros(len(stack.counts), dtype=bool)
    for film, place in ((each.name, each.witness) for each in MATERIALS):
        if place is None:
            continue
        looked = _witness_line(stack, place)
        if looked is None or np.median(SEEN_SIGMA * looked.noise_counts < lowest) < 1:
            not_seen.append(film)
        else:
            ruled_out.append(film)
        if looked is None or _is_beside(place, substrate.own_lines_cm1):
            continue
        stands = looked.stands & (looked.height_counts > STANDS_SHARE * lowest)
        odd_rows |= stands
        if stands.any():
            odd[float(np.median(looked.position_cm1[stands]))] = int(stands.sum())
    name, count, rows = substrate.name, int(odd_rows.sum()), len(stack.counts)
    weak: str = ""
    if odd:
        place_cm1 = max(odd, key=lambda at: odd[at])
        if 2 * count >= rows:
            return Text("bare.odd", substrate=name, place=place_cm1)
        weak = Text("bare.weak", rows=count, spectra=rows, place=place_cm1)
    if not ruled_out:
        return Text("bare.blind", substrate=name)
    films, hidden = _any_of(tuple(ruled_out)), _any_of((*not_seen, "thin hBN"))
    return Text("bare.no_film", substrate=name, films=films, hidden=hidden, odd=weak)


class _WitnessLine(NamedTuple):
    """The best line in one place of each spectrum, and the noise there."""

    position_cm1: Array
    height_counts: Array
    stands: Mask
    noise_counts: Array


def _witness_line(stack: Stack, place: LineWindow) -> _WitnessLine | None:
    """Fit Lorentz lines at all places of a window to each spectrum, on a parabola."""
    low, high = place.low_cm1 - ROOM_CM1, place.high_cm1 + ROOM_CM1
    if not covers(stack.shift_cm1, place.low_cm1 - ROOM_CM1 / 2, place.high_cm1 + ROOM_CM1 / 2, 8):
        return None
    window = cut_window(stack, (low, high))
    x = window.shift_cm1
    pixel = float(np.median(np.diff(x)))
    tried = np.arange(place.low_cm1, place.high_cm1 + TRIED_STEP_CM1, TRIED_STEP_CM1)
    half = max(place.fwhm_cm1, WIDTH_MIN_PIXELS * pixel) / 2
    u = (x - x.mean()) / np.ptp(x)
    background, _ = np.linalg.qr(np.stack([u**0, u, u**2], axis=1))
    lines = 1 / (1 + ((x - tried[:, None]) / half) ** 2)
    lines -= (lines @ background) @ background.T
    square = (lines**2).sum(axis=1)
    rest = window.counts - (window.counts @ background) @ background.T
    heights = rest @ lines.T / square
    best = np.argmax(heights * np.sqrt(square), axis=1)
    rows = np.arange(len(rest))
    height, norm = heights[rows, best], square[best]
    quiet = np.where(window.root_noise > 0, window.root_noise, np.nan)
    noise = 1 / np.nanmedian(quiet, axis=1)
    # A removed cosmic ray may have hidden a line.
    struck = window.cosmic[:, (x >= place.low_cm1) & (x <= place.high_cm1)].any(axis=1)
    left = np.maximum((rest**2).sum(axis=1) - height**2 * norm, 0.0) / max(x.size - 5, 1)
    return _WitnessLine(
        tried[best],
        height,
        height * np.sqrt(norm) > np.maximum(STANDS_SIGMA * noise, STANDS_MISFIT * np.sqrt(left)),
        np.where(struck, np.inf, noise / np.sqrt(float(np.median(square)))),
    )


def _is_beside(place: LineWindow, lines_cm1: Sequence[float]) -> bool:
    low, high = place.low_cm1 - ROOM_CM1, place.high_cm1 + ROOM_CM1
    return any(low <= line <= high for line in lines_cm1)


def _any_of(names: Sequence[str]) -> str:
    return Text("bare.any_of", first=names[:-1], last=names[-1]) if names[1:] else names[0]


FILM_ROWS = {
    "unknown": (EXFOLIATED_ROW, *CVD_ROWS),
    "cvd": CVD_ROWS,
    "exfoliated": (EXFOLIATED_ROW,),
}
"""Tables of the separation alone, by the way in which the film was made. Beside a stated A1g/Si
those of `ROWS_BY_ORIGIN` count: with these three layers under strain were called two."""

SILICON_FWHM_MAX_CM1, SILICON_REACH_CM1 = 12.5, 10.5
"""A wider line, or one farther from its place, may belong to another mineral: feldspars have one at
513 cm⁻¹. A coarse or badly calibrated instrument still shows silicon within these limits."""

SILICON_SHARE_MIN, LIT_SIGMA_MIN = 0.5, 8.0
"""Silicon calibrates if more than this share of the spectra with any line shows it: in one of
thousands it is chance, and in a few it may be a crumb."""

NOT_JUDGED = "not judged"
"""Name in place of a material for a row that is left out."""

STRESS_SIGMA_MIN, STRESS_SPREAD_MIN_CM1 = 3.0, 0.1
"""Silicon moves over a map if it scatters by three of its errors and by 0.1 cm⁻¹; stages and rooms
move it by less."""

TRUST = 0.85
"""Factor of the confidence for each of smoothed noise, a bad fit and a film beside. Judgement."""

MISFIT_MIN = 50.0
"""Fits of good bright spectra have a reduced chi-squared of 5 to 41."""

CLIPPED_PIXELS = 2
OPEN_TOLD = 12

SPAN_CM1_MIN = 10.0
"""A line needs a foot on both sides; an axis in eV spans less than one."""

LASER_NM_MIN, LASER_NM_MAX = 500.0, 550.0
"""The table of separations is for 514–532 nm; near 633 nm resonances add lines beside A1g."""


@dataclass(frozen=True, slots=True, eq=False)
class Assessment:
    """The assessment of one file's spectra.

    Attributes:
        material: Material of most spectra with a film.
        materials: Material of each spectrum; `not judged` for a dead or saturated one.
        verdict: Layers of MoS2; None without MoS2 that can be judged.
        reasons: Why the layers are not counted; empty if they are.
        notes: Notes for the reader.
        silicon: The silicon line of each spectrum on the file's own axis.
        offset_cm1: Shift that was added to the axis; 0 without silicon.
        spectra: Each on the calibrated axis, in electrons.
        fits: The MoS2 lines of each spectrum that shows them.
        named: The material of each spectrum with its lines; None for one that was left out.
        left_out: Why a spectrum was left out; empty for those that were judged.
        probability: Probability that the name of the material is right; 0 of `unknown`.
        beside: Further films in the same spectra.
        open_lines: Lines that nothing explains, of the spectrum that shows them best.
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
    named: tuple[Named | None, ...] = ()
    left_out: tuple[str, ...] = ()
    probability: float = 0.0
    beside: tuple[str, ...] = ()
    open_lines: tuple[OpenLine, ...] = ()


def assess(
    recording: Recording,
    *,
    rows: Sequence[SeparationRow] = FILM_ROWS["unknown"],
    reference: Reference | None = None,
) -> Assessment:
    """Calibrate to silicon, name the material, and count layers if the data allow it.

    Layers are counted for MoS2 alone, at 500–550 nm, on an instrument that resolves its lines.

    Args:
        recording: The file.
        rows: Ways in which the film may have been made.
        reference: A1g/Si of one layer on this instrument and oxide; without it intensities are not
            used.

    Raises:
        ValueError: When the numbers are not a spectrum (too few points, no noise), or the axis is a
            wavelength without a known laser.
    """
    shift_cm1 = recording.shift_cm1()
    if shift_cm1.size < PIXELS_MIN:
        raise ValueError(Text("doubt.points", points=shift_cm1.size, least=PIXELS_MIN))
    _must_be_shift(shift_cm1)
    quiet = quiet_half(recording.intensity)
    kept, left_out, cut_off = _usable(recording, shift_cm1, quiet)
    count = len(left_out)
    stack, lines, offset_cm1, scale_notes = _calibrated(
        shift_cm1, recording.intensity[kept], quiet.of(kept)
    )
    names = identify_rows(stack, lines, recording.laser_nm)
    of_silicon = [name.on_silicon for name, line in zip(names, lines, strict=True) if line]
    if of_silicon and 2 * sum(of_silicon) < len(of_silicon):  # a line of something else
        stack, lines, offset_cm1 = stack.moved(-offset_cm1), [None] * len(lines), 0.0
        names = identify_rows(stack, lines, recording.laser_nm)
    found = [name.material for name in names]
    material = _predominant(found)
    film = [at for at, each in enumerate(found) if each is MOS2]
    film_stack = stack.of(np.array(film, dtype=np.intp))
    film_fits = _widened(fit_peak_rows(film_stack)) if film else ()
    seen = (line for name in names for line in name.lines.values())
    clear = (
        line.fwhm_cm1
        for line in seen
        if line.height_counts > CLEAR_SNR_MIN * line.height_sigma_counts
    )
    lines = bounded(lines, film_fits, clear)
    fits: list[PeakFit | None] = [None] * count
    silicon: list[SiliconFit | None] = [None] * count
    named: list[Named | None] = [None] * count
    for at, row in enumerate(kept):
        silicon[row], named[row] = lines[at], names[at]
    for at, fit in zip(film, film_fits, strict=True):
        fits[kept[at]] = fit
    spectra = _spectra(recording, stack, kept)
    reasons = list(_objections(recording, shift_cm1, silicon))
    if recording.looks_like_wavelengths:
        low, high = recording.axis[0], recording.axis[-1]
        reasons.insert(0, Text("doubt.wavelengths", low=low, high=high))
    shown = [name for name in names if name.material is material]
    beside = Counter(each for name in shown for each in name.beside)
    clearest = _clearest(shown)
    if material is not MOS2:
        reasons.append(
            _substrate_sentence(material, stack, lines, names)
            or _unknown_sentence(clearest)
            or material.why_no_count + _measured(material, names)
        )
    elif _is_clipped(recording, shift_cm1, kept):
        reasons.append(Text("doubt.clipped"))
    doubts = tuple(_lowering(quiet.smoothed[kept], film_fits, beside, len(shown)))
    verdict = None
    if not reasons:
        disorder = la_over_e_rows(film_stack, film_fits)
        spots = [
            SpotEvidence(fit, lines[at], None, la)
            for at, fit, la in zip(film, film_fits, disorder, strict=True)
        ]
        verdict = judge_layers(spots, reference, rows, trust=TRUST ** len(doubts))
        reasons.extend(verdict.reasons)
    return Assessment(
        material=material.name,
        materials=tuple(NOT_JUDGED if each is None else each.material.name for each in named),
        verdict=verdict,
        reasons=tuple(reasons),
        notes=(
            *told(left_out),
            *((Text("note.flat_top"),) if cut_off else ()),
            *doubts,
            *_open_notes(material, clearest),
            *_notes(recording, scale_notes, lines, offset_cm1, verdict, reference),
        ),
        silicon=tuple(silicon),
        offset_cm1=offset_cm1,
        spectra=spectra,
        fits=tuple(fits),
        named=tuple(named),
        left_out=left_out,
        probability=median(name.probability for name in shown),
        beside=tuple(beside),
        open_lines=clearest.open_lines,
    )


def _clearest(shown: Sequence[Named]) -> Named:
    """Return the spectrum with the highest line that nothing explains, else any."""
    return max(shown, key=lambda name: max((o.height_counts for o in name.open_lines), default=0.0))


def _widened(fits: Sequence[PeakFit]) -> tuple[PeakFit, ...]:
    """Enlarge the error of the separation where the lines have quite another shape."""
    return tuple(
        replace(fit, separation_sigma_cm1=fit.separation_sigma_cm1 * math.sqrt(fit.reduced_chi2))
        if fit.reduced_chi2 > MISFIT_MIN
        else fit
        for fit in fits
    )


def _is_clipped(recording: Recording, shift_cm1: Array, kept: Sequence[int]) -> bool:
    """Return whether the camera was full at the film's own lines in most judged spectra."""
    inside = (shift_cm1 >= PEAK_WINDOW_CM1[0]) & (shift_cm1 <= PEAK_WINDOW_CM1[1])
    rows = recording.intensity[kept]
    full = (rows[:, inside] == rows.max(axis=1, keepdims=True)).sum(axis=1) >= CLIPPED_PIXELS
    return 2 * int(full.sum()) > len(rows)


def _lowering(
    smoothed: Array, fits: Sequence[PeakFit], beside: Mapping[str, int], rows: int
) -> Iterator[Text]:
    """Return what lowers the confidence of a count and stands in no error of a fit."""
    if float(np.median(smoothed)) > 1:
        yield Text("note.smoothed", factor=float(np.median(smoothed)))
    misfit = median(fit.reduced_chi2 for fit in fits) if fits else 0.0
    if misfit > MISFIT_MIN:
        yield Text("note.misfit", chi2=misfit)
    for film, count in beside.items():
        yield Text("note.beside", film=film, count=count, spectra=rows)


def _unknown_sentence(name: Named) -> str:
    """Return why lines have no name; empty for a known material or without a line."""
    if name.material is not UNKNOWN or not name.open_lines:
        return ""
    if name.refused is not None:
        return Text("doubt.refused", material=name.refused[0], place=name.refused[1])
    return Text("doubt.unknown", count=len(name.open_lines))


def _open_notes(material: Material, name: Named) -> Iterator[Text]:
    places = [f"{each.position_cm1:.0f}" for each in name.open_lines[:OPEN_TOLD]]
    if places:
        over = len(name.open_lines) - OPEN_TOLD
        more = Text("and_more", count=over) if over > 0 else ""
        code = "note.open" if material is UNKNOWN else "note.open_beside"
        yield Text(code, places=tuple(places), more=more, material=material.name)


def _must_be_shift(shift_cm1: Array) -> None:
    """Refuse an axis that cannot be in cm⁻¹.

    Raises:
        ValueError: It lies beyond every Raman shift, or is shorter than a line.
    """
    low, high = float(shift_cm1[0]), float(shift_cm1[-1])
    if low > SHIFT_CM1_MAX or high < SHIFT_CM1_MIN or high - low < SPAN_CM1_MIN:
        raise ValueError(Text("doubt.axis", low=low, high=high))


def _usable(
    recording: Recording, shift_cm1: Array, quiet: QuietStretch
) -> tuple[list[int], tuple[str, ...], bool]:
    """Return the judged rows, the faults of the others, and whether the former are saturated."""
    left_out = faults(shift_cm1, recording.intensity, quiet)
    kept = [row for row, fault in enumerate(left_out) if not fault]
    cut_off = not kept and SATURATED in left_out
    if not kept:  # every row has a fault: judge the best ones, and report the fault
        best = SATURATED if cut_off else left_out[0]
        left_out = tuple("" if fault == best else fault for fault in left_out)
        kept = [row for row, fault in enumerate(left_out) if not fault]
    return kept, left_out, cut_off


def _calibrated(
    shift_cm1: Array, intensity: Array, quiet: QuietStretch
) -> tuple[Stack, list[SiliconFit | None], float, tuple[str, ...]]:
    """Convert rows to electrons, and shift their axis if enough of them show silicon.

    Returns:
        The rows, the silicon line of each, the shift, and notes on the conversion.
    """
    stack, scale_notes = rows_in_electrons(shift_cm1, intensity, quiet)
    lines = [_plausible(line) for line in fit_silicon_rows(stack)]
    seen = [line.offset_cm1 for line in lines if line is not None]
    lit = quiet.top - quiet.level > LIT_SIGMA_MIN * quiet.scatter
    if len(seen) <= SILICON_SHARE_MIN * int(lit.sum()):
        lines, seen = [None] * len(lines), []
    offset_cm1 = float(np.median(seen)) if seen else 0.0
    return stack.moved(offset_cm1), lines, offset_cm1, scale_notes


def _plausible(line: SiliconFit | None) -> SiliconFit | None:
    if line is None or line.fwhm_cm1 > SILICON_FWHM_MAX_CM1:
        return None
    return line if abs(line.offset_cm1) <= SILICON_REACH_CM1 else None


def _spectra(recording: Recording, stack: Stack, kept: Sequence[int]) -> tuple[Spectrum, ...]:
    place = {row: at for at, row in enumerate(kept)}
    return tuple(
        Spectrum(stack.shift_cm1, stack.counts[place[row]], stack.read_noise_counts[place[row]])
        if row in place
        else Spectrum(stack.shift_cm1, raw)
        for row, raw in enumerate(recording.intensity)
    )


def _predominant(materials: Sequence[Material]) -> Material:
    """Return the film of most spectra; a map may show bare substrate beside it."""
    bare = (SILICON, UNKNOWN, *SUBSTRATES)
    films = Counter(each.name for each in materials if each not in bare)
    most = (films or Counter(each.name for each in materials)).most_common(1)[0][0]
    return next(each for each in materials if each.name == most)


def _substrate_sentence(
    material: Material,
    stack: Stack,
    silicon: Sequence[SiliconFit | None],
    names: Sequence[Named],
) -> str:
    """Return a sentence about films on a substrate; empty for other materials."""
    if material is not SILICON and material not in SUBSTRATES:
        return ""
    rows, heights = [], []
    for row, (line, name) in enumerate(zip(silicon, names, strict=True)):
        if name.material is not material:
            continue
        own = line if material is SILICON else next(iter(name.lines.values()), None)
        if own is not None:
            rows.append(row)
            heights.append(own.height_counts)
    if not rows:
        return ""
    return bareness(stack.of(np.array(rows, dtype=np.intp)), material, heights)


def _measured(material: Material, names: Sequence[Named]) -> str:
    """Return a material's informative intensity ratios, as medians over its spectra."""
    told_ratios = []
    for line, over in material.ratios:
        ratios = [
            ratio[0]
            for name in names
            if name.material is material and (ratio := name.ratio(line, over)) is not None
        ]
        if ratios:
            told_ratios.append(Text("ratio", line=line, over=over, ratio=median(ratios)))
    return Text("ratios", ratios=tuple(told_ratios)) if told_ratios else ""


def _objections(
    recording: Recording, shift_cm1: Array, silicon: Sequence[SiliconFit | None]
) -> tuple[str, ...]:
    """Return why this instrument or laser allows no layer count, for any sample."""
    lines = [line for line in silicon if line is not None]
    pixel = float(np.median(np.diff(shift_cm1)))
    laser = recording.laser_nm
    reasons = []
    if pixel > PIXEL_MAX_CM1:
        reasons.append(Text("doubt.pixels", pixel=pixel, most=PIXEL_MAX_CM1))
    if lines:
        wide = float(np.median([line.instrument_fwhm_cm1 for line in lines]))
        off = float(np.median([line.offset_cm1 for line in lines]))
        if wide > INSTRUMENT_FWHM_MAX_CM1:
            reasons.append(Text("doubt.resolution", wide=wide, most=INSTRUMENT_FWHM_MAX_CM1))
        if abs(off) > SILICON_OFFSET_MAX_CM1:
            reasons.append(Text("doubt.silicon", off=-off, most=SILICON_OFFSET_MAX_CM1))
    if laser is not None and not LASER_NM_MIN <= laser <= LASER_NM_MAX:
        reasons.append(Text("doubt.laser", laser=laser, low=LASER_NM_MIN, high=LASER_NM_MAX))
    return tuple(reasons)


def _notes(
    recording: Recording,
    scale_notes: Sequence[str],
    silicon: Sequence[SiliconFit | None],
    offset_cm1: float,
    verdict: LayerVerdict | None,
    reference: Reference | None,
) -> tuple[str, ...]:
    notes = list(recording.notes)
    lines = [line for line in silicon if line is not None]
    if lines:
        notes.append(Text("note.moved", offset=round(offset_cm1, 2) + 0.0))
        notes.extend(_silicon_notes(lines))
    else:
        notes.append(Text("note.axis_as_is"))
    if recording.axis_unit == "nm" and not recording.unit_stated:
        notes.append(Text("note.converted"))
    if recording.laser_nm is None:
        notes.append(Text("note.no_laser"))
    odd = [each for each in scale_notes if each]
    if odd:
        several = Text("note.of_spectra", note=odd[0], count=len(odd), spectra=len(scale_notes))
        notes.append(odd[0] if len(scale_notes) == 1 else several)
    if verdict is not None:
        if reference is None:
            notes.append(Text("note.no_reference"))
        notes.extend(each for each in verdict.notes if each.code != "note.no_silicon")
    return tuple(notes)


def _silicon_notes(lines: Sequence[SiliconFit]) -> list[Text]:
    """Return notes on silicon: it is wider than the instrument, or it moves over the map."""
    notes = []
    if median(line.is_wider_than_instrument for line in lines):
        wide, narrow = median(line.fwhm_cm1 for line in lines), lines[0].narrowest_fwhm_cm1
        notes.append(Text("note.wide_silicon", wide=wide, narrow=narrow))
    places = np.array([line.position_cm1 for line in lines])
    spread = float(1.4826 * np.median(np.abs(places - np.median(places))))
    error = median(line.position_sigma_cm1 for line in lines)
    if len(lines) > 2 and spread > max(STRESS_SPREAD_MIN_CM1, STRESS_SIGMA_MIN * error):
        notes.append(Text("note.stress", spread=spread, stress=abs(silicon_stress_mpa(spread))))
    return notes
