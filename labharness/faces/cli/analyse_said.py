"""What ``labharness analyse`` says of one file on a terminal."""

from collections import Counter
from collections.abc import Iterator, Sequence
from statistics import median
from typing import TYPE_CHECKING

from labharness.core.vocabulary import share_text
from labharness.core.vocabulary.measured import measured_text

if TYPE_CHECKING:
    from labharness.analysis.analysed import Analysed
    from labharness.analysis.assess import Assessment

__all__ = ["headline", "lines_said"]

SIX_OR_MORE = 6
UNKNOWN = "unknown"  # a material of which there are no lines
HEADS = ("line", "position / cm⁻¹", "width / cm⁻¹", "height / counts", "area / counts·cm⁻¹")


def headline(found: "Assessment") -> str:
    """Say in one sentence what a file shows."""
    verdict = found.verdict
    if verdict is None:
        return f"{found.material}; no layer count"
    if verdict.layer_count is None:
        if verdict.claim is not None and verdict.claim.kind == "mixed":
            return f"MoS2; {verdict.claim.headline}"
        chosen = ", ".join(map(_class_name, verdict.credible_set))
        return f"MoS2; layers undetermined, with 90 % one of {chosen}"
    if verdict.claim is not None and verdict.claim.kind != "place":
        return f"MoS2; {verdict.claim.headline}, confidence {share_text(verdict.confidence, 2)}"
    name = _class_name(verdict.layer_count)
    layers = "layer" if verdict.layer_count == 1 else "layers"
    return f"MoS2; {name} {layers}, confidence {share_text(verdict.confidence, 2)}"


def lines_said(shown: "Analysed", baseline: str, *, every: bool) -> Iterator[str]:
    """Say all there is to know of a file, line by line.

    Args:
        shown: The file.
        baseline: What is under the measured lines.
        every: Whether the lines of each spectrum are told, and not of all together.
    """
    found = shown.found
    count = len(found.spectra)
    axis = found.spectra[0].shift_cm1
    yield f"{shown.name}: {headline(found)}"
    yield (
        f"  read as {shown.recording.format}: {count} {'spectrum' if count == 1 else 'spectra'} "
        f"of {axis.size} points, {axis[0]:.0f}–{axis[-1]:.0f} cm⁻¹"
    )
    if count > 1:
        materials = Counter(found.materials).most_common()
        yield "  shows " + ", ".join(f"{name} in {number}" for name, number in materials)
    lines = [line for line in found.silicon if line is not None]
    if lines:
        position = median(line.position_cm1 for line in lines)
        fwhm = median(line.fwhm_cm1 for line in lines)
        yield f"  silicon at {position:.2f} cm⁻¹, {fwhm:.1f} cm⁻¹ wide"
    verdict = found.verdict
    if verdict is not None:
        if verdict.peak_distance_cm1 is not None:
            sigma = verdict.peak_distance_sigma_cm1
            yield f"  A1g - E2g: {verdict.peak_distance_cm1:.2f} ± {sigma:.2f} cm⁻¹"
        posterior = (f"{_class_name(name)}: {p:.2f}" for name, p in verdict.posterior.items())
        yield "  probability of layers: " + ", ".join(posterior)
        for term in verdict.evidence:
            yield f"  evidence: {term.name} {term.measured:.3g} {term.unit} ({term.systematic})"
    for reason in found.reasons:
        yield f"  no layer count: {reason}"
    yield from _peaks(shown, baseline, every=every)
    yield from _glow(shown)
    for note in (*found.notes, *shown.notes):
        yield f"  note: {note}"


def _peaks(shown: "Analysed", baseline: str, *, every: bool) -> Iterator[str]:
    lines = list(shown.lines())
    if not lines:
        yield "  lines: none known to be measured here; --window LOW-HIGH fits one"
        return
    under = "" if baseline == "straight" else f", background by {baseline}"
    many = len(shown.found.spectra) > 1
    whose = "lines" if shown.material == UNKNOWN else f"lines of {shown.material}"
    if many and every:
        yield f"  {whose} in each spectrum, ± one sigma{under}:"
        yield from _each(shown)
        return
    from labharness.faces.report.line_texts import line_texts

    said = "median ± scatter between spectra" if many else "± one sigma"
    yield f"  {whose}, {said}{under}:"
    rows: list[Sequence[str]] = [(*HEADS, "stands out in") if many else HEADS]
    for line in lines:
        seen = f"{int(line.stands_out.sum())} of {line.stands_out.size}"
        rows.append((line.name, *line_texts(line).values(), *([seen] if many else [])))
    yield from _aligned(rows)


def _each(shown: "Analysed") -> Iterator[str]:
    from labharness.analysis.table import PeakTable

    table = PeakTable()
    shown.add_to(table)
    places = [name for name in ("x_um", "y_um") if any(v is not None for v in table.columns[name])]
    rows = [("spectrum", *(name.replace("_um", " / µm") for name in places), *HEADS)]
    for row in table.rows():
        where = (f"{row[name]:.6g}" for name in places)
        measured: tuple[str, ...] = ("–",) * 4
        if row["stands_out"]:
            names = ("position_cm1", "fwhm_cm1", "height_counts", "area_counts_cm1")
            measured = tuple(measured_text(row[name], row[f"sigma_{name}"]) for name in names)
        rows.append((str(row["spectrum"]), *where, row["line"], *measured))
    yield from _aligned(rows)


def _aligned(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
    for row in rows:
        cells = (each.ljust(width) for each, width in zip(row, widths, strict=True))
        yield f"    {'  '.join(cells).rstrip()}"


def _glow(shown: "Analysed") -> Iterator[str]:
    if not shown.bands:
        return
    from labharness.faces.report.line_texts import times_of_line

    band = shown.band_of(shown.best)
    if band is None or not band.stands_out:
        yield "  photoluminescence: no band stands out"
        return
    place = measured_text(band.position_nm, band.position_sigma_nm)
    width = measured_text(band.fwhm_nm, band.fwhm_sigma_nm)
    yield f"  photoluminescence at {place} nm ({band.energy_ev:.3f} eV), {width} nm wide"
    times = times_of_line(shown)
    if times is not None:
        yield (
            f"  photoluminescence {times.ratio:.3g} times as high as {times.line}, if both were "
            "taken alike; no evidence of layers without this microscope's value for one"
        )


def _class_name(layer_class: int) -> str:
    return "6 or more" if layer_class == SIX_OR_MORE else str(layer_class)
