"""One analysed file: its material, its lines, and its photoluminescence."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from labharness.analysis.arrays import Array
from labharness.analysis.assess import Assessment, assess
from labharness.analysis.evidence import Reference, SeparationRow
from labharness.analysis.formats import Recording
from labharness.analysis.line_table import SILICON_LINE_NAME, open_ranges, ranges_of
from labharness.analysis.material_table import UNKNOWN
from labharness.analysis.measured import FittedRange, MeasuredLine, PeakTable, measure
from labharness.analysis.photoluminescence import PlBand
from labharness.core.vocabulary.texts import Text


@dataclass(frozen=True, slots=True)
class Wanted:
    """A person's settings for the lines of a file.

    Attributes:
        material: Material whose lines are measured; None for the material that the file shows.
        windows_cm1: Ranges to fit instead of the material's, each from low to high.
        baseline: One of ``BASELINES``.
    """

    material: str | None = None
    windows_cm1: tuple[tuple[float, float], ...] = ()
    baseline: str = "straight"


@dataclass(frozen=True, slots=True, eq=False)
class Analysed:
    """One analysed file.

    Attributes:
        name: Name of the file.
        recording: Its content.
        found: Its material, calibration and layers.
        material: Material whose lines were measured.
        fitted: The lines, on the axis calibrated to silicon.
        bands: Photoluminescence that a person added: none, one, or one per spectrum.
        notes: Notes on the lines for the reader.
    """

    name: str
    recording: Recording
    found: Assessment
    material: str
    fitted: tuple[FittedRange, ...]
    bands: tuple[PlBand, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def best(self) -> int:
        """Index of the spectrum with the clearest line, the material's before silicon's; else 0."""
        for name in (
            *(each.name for each in self.lines() if each.name != SILICON_LINE_NAME),
            SILICON_LINE_NAME,
        ):
            line = self.line(name)
            if line is not None and line.stands_out.any():
                clear = np.where(
                    line.stands_out, line.height_counts / line.height_sigma_counts, -np.inf
                )
                return int(clear.argmax())
        return 0

    def lines(self) -> Iterator[MeasuredLine]:
        """Return each measured line."""
        for each in self.fitted:
            yield from each.lines

    def line(self, name: str) -> MeasuredLine | None:
        """Return the measured line of this name, or None."""
        return next((each for each in self.lines() if each.name == name), None)

    def band_of(self, index: int) -> PlBand | None:
        """Return the photoluminescence that belongs to a spectrum."""
        if not self.bands:
            return None
        return self.bands[index if len(self.bands) == len(self.found.spectra) else 0]

    def layer_classes(self) -> tuple[int | None, ...]:
        """Return each spectrum's most likely number of layers; None if it was not judged."""
        verdict = self.found.verdict
        of_spots = iter(() if verdict is None else verdict.spot_classes)
        return tuple(None if fit is None else next(of_spots, None) for fit in self.found.fits)

    def add_to(self, table: PeakTable) -> None:
        """Add the rows of this file to a table."""
        found = self.found
        table.add(self.name, found.materials, self.recording.places, self.fitted, found.offset_cm1)


def analysed(
    name: str,
    recording: Recording,
    wanted: Wanted,
    *,
    rows: Sequence[SeparationRow],
    reference: Reference | None = None,
    bands: tuple[PlBand, ...] = (),
) -> Analysed:
    """Analyse a file, and measure its lines.

    Args:
        name: Name of the file.
        recording: Its content.
        wanted: A person's settings for its lines.
        rows: Ways in which the film may have been made.
        reference: A1g/Si of one layer on this instrument and oxide.
        bands: Photoluminescence that belongs to it.

    Raises:
        ValueError: As `assess` does; or the number of bands is neither one nor that of the spectra.
    """
    found = assess(recording, rows=rows, reference=reference)
    if len(bands) not in (0, 1, len(found.spectra)):
        raise ValueError(Text("glow.count", bands=len(bands), spectra=len(found.spectra)))
    material = wanted.material or found.material
    seen = [
        each.lines for each in found.named if each is not None and each.material.name == material
    ]
    judged = np.array([not why for why in found.left_out])
    axis = found.spectra[0].shift_cm1
    ranges = ranges_of(material, axis, wanted.windows_cm1, seen)
    if wanted == Wanted(baseline=wanted.baseline):
        if material == UNKNOWN.name and found.open_lines:
            ranges = ()  # no silicon that is none
        ranges += open_ranges(found.open_lines, axis)
    units = _units_per_count(recording, found)
    fitted = measure(found.spectra, units, ranges, wanted.baseline, judged)
    notes = tuple(_notes(wanted, found))
    return Analysed(name, recording, found, material, fitted, bands, notes)


def _notes(wanted: Wanted, found: Assessment) -> Iterator[str]:
    axis = found.spectra[0].shift_cm1
    first, last = axis[0], axis[-1]
    if wanted.material not in (None, found.material):
        yield Text("note.wanted", wanted=wanted.material, shown=found.material)
    for low, high in wanted.windows_cm1:
        if not ranges_of(found.material, axis, [(low, high)]):
            pixels = int(((axis >= low) & (axis <= high)).sum())
            yield Text("note.no_line", low=low, high=high, pixels=pixels, first=first, last=last)


def _units_per_count(recording: Recording, found: Assessment) -> Array:
    """Return the factors from electrons back to the file's unit, one per spectrum."""
    brightest = np.abs(recording.intensity).argmax(axis=1)
    rows = np.arange(len(brightest))
    counts = np.array(
        [spectrum.counts[pixel] for spectrum, pixel in zip(found.spectra, brightest, strict=True)]
    )
    units = np.ones(len(brightest))  # a row of zeros has no scale
    np.divide(recording.intensity[rows, brightest], counts, out=units, where=counts != 0)
    return units
