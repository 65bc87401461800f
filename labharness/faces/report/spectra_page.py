"""The report of ``analyse`` as one page: what each file shows, its lines, its maps."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from labharness.analysis.analysed import Analysed
from labharness.core.vocabulary import share_text
from labharness.core.vocabulary.measured import measured_text
from labharness.faces.report.document import document, section
from labharness.faces.report.html import Html, el, joined, table
from labharness.faces.report.line_texts import line_texts, times_of_line
from labharness.faces.report.spectra_drawn import fits_drawn, maps_drawn, pl_drawn, whole_drawn
from labharness.faces.report.words import both, plain, say

__all__ = ["FileShown", "spectra_page"]


@dataclass(frozen=True, slots=True)
class FileShown:
    """One file on the page.

    Attributes:
        headline: What it shows, in one sentence.
        shown: All of it.
        baseline: What is under the lines.
    """

    headline: str
    shown: Analysed
    baseline: str


def spectra_page(
    files: Sequence[FileShown], unread: Sequence[str], program: str, language: str = "en"
) -> str:
    """Return the whole page.

    Args:
        files: What was analysed.
        unread: A sentence on each file that could not be.
        program: Name and version of what made it.
        language: Which of ``LANGUAGES`` is shown first; the page holds all.
    """
    title = plain("spectra_title", language)
    if len(files) == 1:
        title = f"{title}: {files[0].shown.name}"
    return document(title, _sections(files, unread, program), language, pictures=True)


def _sections(files: Sequence[FileShown], unread: Sequence[str], program: str) -> Iterator[Html]:
    count = joined(" · ", say("spectra_of", count=len(files))) if len(files) != 1 else ""
    yield el("p", say("spectra_title"), count, class_="masthead")
    for each in files:
        yield el("section", *_file(each))
        yield Html("\n")
    if unread:
        listed = el("ul", *(el("li", each) for each in unread))
        yield section("spectra_unread", listed)
    yield el("footer", say("spectra_foot"), f" {program}")


def _file(each: FileShown) -> Iterator[Html]:
    shown = each.shown
    yield el(
        "div",
        el("h1", shown.name),
        el("div", each.headline, class_="big long"),
        class_="verdict",
    )
    yield el("dl", *_facts(each), class_="facts")
    yield el("h3", say("peaks"))
    yield _peaks(shown)
    count = len(shown.found.spectra)
    if count > 1:
        yield el("p", el("b", say("clearest", index=shown.best + 1, count=count)))
    yield el("figure", el("figcaption", say("whole"), class_="note"), whole_drawn(shown))
    fits = [el("figure", one) for one in fits_drawn(shown)]
    band = shown.band_of(shown.best)
    if band is not None:
        caption = el("figcaption", el("b", say("pl_band")))
        fits.append(el("figure", caption, pl_drawn(band), el("p", _pl_said(shown), class_="note")))
    if fits:
        yield el("div", *fits, class_="pair")
        yield el("p", say("spectra_fit_key"), class_="note")
    if count > 1:
        yield el("h3", say("maps"))
        drawn = [el("figure", one) for one in maps_drawn(shown)]
        yield el("div", *drawn, class_="trio")
        yield el("p", say("maps_key"), class_="note")


def _facts(each: FileShown) -> Iterator[Html]:
    shown, found = each.shown, each.shown.found
    axis = found.spectra[0].shift_cm1
    read = say(
        "read_as_text",
        format=shown.recording.format,
        count=len(found.spectra),
        points=axis.size,
        low=f"{axis[0]:.0f}",
        high=f"{axis[-1]:.0f}",
    )
    yield from _fact("read_as", read)
    if shown.recording.laser_nm is not None:
        yield from _fact("laser", f"{shown.recording.laser_nm:g} nm")
    if len(found.spectra) > 1:
        names = sorted(set(found.materials), key=found.materials.count, reverse=True)
        counted = [
            say("shows_in", material=each, count=found.materials.count(each)) for each in names
        ]
        yield from _fact("shows", _listed(counted))
    if shown.fitted:
        lines = say("lines_of_text", material=shown.material, baseline=each.baseline)
        yield from _fact("lines_of", lines)
    verdict = found.verdict
    if verdict is not None and verdict.evidence:
        shares = ", ".join(
            f"{'≥ 6' if name == max(verdict.posterior) else name}: {share_text(share, 2)}"
            for name, share in verdict.posterior.items()
        )
        yield from _fact("probability", shares)
    for reason in found.reasons:
        yield from _fact("no_count", both(reason))
    for note in (*found.notes, *shown.notes):
        yield from _fact("note", both(note))


def _fact(key: str, said: object) -> tuple[Html, Html]:
    return el("dt", say(key)), el("dd", said)


def _peaks(shown: Analysed) -> Html:
    lines = list(shown.lines())
    if not lines:
        return el("p", say("peaks_none"))
    many = len(shown.found.spectra) > 1
    heads: list[object] = [say("peak"), *([say("seen")] if many else [])]
    heads += [say(key) for key in ("position", "width", "height", "area")]
    rows = []
    for line in lines:
        cells = [el("td", line.name, class_="name")]
        if many:
            seen = say("of", count=int(line.stands_out.sum()), total=line.stands_out.size)
            cells.append(el("td", seen, class_="number"))
        cells += [el("td", text, class_="number") for text in line_texts(line).values()]
        rows.append(el("tr", *cells))
    key = say("peaks_many" if many else "peaks_one")
    return joined(table(heads, rows, class_="slim figures lines"), el("p", key, class_="note"))


def _pl_said(shown: Analysed) -> Html:
    band = shown.band_of(shown.best)
    if band is None or not band.stands_out:
        return say("pl_none")
    said = say(
        "pl_text",
        position=measured_text(band.position_nm, band.position_sigma_nm),
        energy=f"{band.energy_ev:.4f}",
        width=measured_text(band.fwhm_nm, band.fwhm_sigma_nm),
        height=measured_text(band.height_counts, band.height_sigma_counts),
    )
    times = times_of_line(shown)
    if times is None:
        return said
    compared = say("pl_ratio", ratio=f"{times.ratio:.3g}", line=times.line)
    return joined(said, " · ", compared)


def _listed(parts: Sequence[Html]) -> Html:
    return joined(*(joined(", " if at else "", each) for at, each in enumerate(parts)))
