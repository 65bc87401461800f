"""The report of ``analyse`` as one page: findings, lines and maps of each file."""

from collections.abc import Iterator, Mapping, Sequence

from labharness.analysis.analysed import Analysed
from labharness.analysis.measured import MeasuredLine
from labharness.analysis.photoluminescence import PlBand
from labharness.core.texts import ENGLISH
from labharness.core.vocabulary import share_text
from labharness.core.vocabulary.measured import measured_text
from labharness.faces.report.document import document
from labharness.faces.report.line_texts import line_texts, times_of_line
from labharness.faces.report.markup import Html, joined
from labharness.faces.report.spectra_drawn import fits_drawn, maps_drawn, pl_drawn, whole_drawn
from labharness.faces.report.words import both, plain, say


def spectra_page(
    files: Sequence[tuple[str, Analysed]], baseline: str, unread: Sequence[str], program: str
) -> str:
    """Return the whole page.

    Args:
        files: The analysed files, each with the finding in one sentence.
        baseline: The background under the lines.
        unread: A sentence on each file that could not be analysed.
        program: Name and version of the program that made the page.
    """
    title = plain("spectra_title")
    if len(files) == 1:
        title = f"{title}: {files[0][1].name}"
    shown = [_file(*each, baseline) for each in files]
    values = {"files": shown, "unread": unread, "program": program}
    return document("spectra.html.j2", title, ENGLISH, pictures=True, **values)


def _file(headline: str, shown: Analysed, baseline: str) -> Mapping[str, object]:
    count = len(shown.found.spectra)
    band = shown.band_of(shown.best)
    return {
        "name": shown.name,
        "headline": headline,
        "facts": list(_facts(shown, baseline)),
        "lines": [(line.name, _cells(line, count)) for line in shown.lines()],
        "count": count,
        "clearest": shown.best + 1,
        "whole": whole_drawn(shown),
        "fits": fits_drawn(shown),
        "pl": None if band is None else {"drawing": pl_drawn(band), "said": _pl_said(shown, band)},
        "maps": maps_drawn(shown) if count > 1 else [],
    }


def _cells(line: MeasuredLine, spectra: int) -> list[object]:
    texts = line_texts(line).values()
    if spectra == 1:
        return [*texts]
    return [say("of", count=int(line.stands_out.sum()), total=line.stands_out.size), *texts]


def _facts(shown: Analysed, baseline: str) -> Iterator[tuple[str, object]]:
    found = shown.found
    axis = found.spectra[0].shift_cm1
    low, high, count = f"{axis[0]:.0f}", f"{axis[-1]:.0f}", len(found.spectra)
    kind = shown.recording.format
    read = say("read_as_text", format=kind, count=count, points=axis.size, low=low, high=high)
    yield "read_as", read
    if shown.recording.laser_nm is not None:
        yield "laser", f"{shown.recording.laser_nm:g} nm"
    if len(found.spectra) > 1:
        names = sorted(set(found.materials), key=found.materials.count, reverse=True)
        counted = [say("shows_in", material=one, count=found.materials.count(one)) for one in names]
        yield "shows", joined(*counted, between=", ")
    if found.probability:
        yield "name_probability", f"{found.material}: {found.probability:.2f}"
    if shown.fitted:
        lines = say("lines_of_text", material=shown.material, baseline=baseline)
        yield "lines_of", lines
    verdict = found.verdict
    if verdict is not None and verdict.evidence:
        shares = verdict.posterior.items()
        last = max(verdict.posterior)
        said = (f"{'≥ 6' if name == last else name}: {share_text(x, 2)}" for name, x in shares)
        yield "probability", ", ".join(said)
    for reason in found.reasons:
        yield "no_count", both(reason)
    for note in (*found.notes, *shown.notes):
        yield "note", both(note)


def _pl_said(shown: Analysed, band: PlBand) -> Html:
    if not band.stands_out:
        return say("pl_none")
    measured = {
        "position": measured_text(band.position_nm, band.position_sigma_nm),
        "width": measured_text(band.fwhm_nm, band.fwhm_sigma_nm),
        "height": measured_text(band.height_counts, band.height_sigma_counts),
    }
    said = say("pl_text", energy=f"{band.energy_ev:.4f}", **measured)
    times = times_of_line(shown)
    if times is None:
        return said
    compared = say("pl_ratio", ratio=f"{times.ratio:.3g}", line=times.line)
    return joined(said, compared, between=" · ")
