"""``labharness analyse``: materials, lines and layers from files of spectra."""

import argparse
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from labharness.analysis.analysed import Analysed, Wanted, analysed
from labharness.analysis.assess import FILM_ROWS, Assessment
from labharness.analysis.evidence import ROWS_BY_ORIGIN, Reference
from labharness.analysis.formats import BYTES_MAX, Recording, read_spectra
from labharness.analysis.layers import LayerVerdict
from labharness.analysis.line_table import MATERIAL_NAMES
from labharness.analysis.measured import PeakTable, with_sigmas
from labharness.analysis.photoluminescence import PlBand, pl_bands
from labharness.core.files.named import open_named
from labharness.core.vocabulary import share_text
from labharness.core.vocabulary.measured import measured_text
from labharness.core.vocabulary.texts import Text
from labharness.faces.cli import EXIT_COMPLETED, EXIT_FAILED, EXIT_USAGE
from labharness.faces.cli.analyse_written import (
    CannotWrite,
    may_write,
    write_pictures,
    write_report,
    write_spectra,
    write_table,
)
from labharness.faces.cli.show import (
    BadUse,
    aligned,
    complain,
    looking,
    one_line,
    say,
    say_each,
    warn,
)
from labharness.work.capability.raman_verdict import verdict_told

SIX_OR_MORE = 6
INDENT = "    "
UNKNOWN = "unknown"  # a material without known lines
HEADS = ("analyse.line", "analyse.position", "analyse.width", "analyse.height", "analyse.area")
SILICON = ("position_cm1", "position_sigma_cm1", "fwhm_cm1")
NO_VERDICT: Mapping[str, Any] = {
    **dict.fromkeys(("layer_count", "confidence", "claim")),
    "shares": {},
    **dict.fromkeys(("posterior", "credible_set", "peak_distance_cm1", "peak_distance_sigma_cm1")),
    "evidence": [],
}


def analyse(chosen: argparse.Namespace) -> int:
    """Judge each file; return 0 if each has a verdict, 1 if not, 64 if one is unreadable."""
    _check(chosen)
    may_write(chosen)
    worst = EXIT_COMPLETED
    entries: list[dict[str, Any]] = []
    done: list[Analysed] = []
    unread: list[str] = []
    for name in chosen.files:
        path = Path(name)
        try:
            shown = _analysed(path, chosen)
            if chosen.plot:
                for drawn in write_pictures(
                    path, shown, headline(shown.found), overwrite=chosen.overwrite
                ):
                    complain(one_line(Text("analyse.drawn", path=str(drawn))))
            if chosen.save:
                write_spectra(Path(chosen.save), path, shown)
                complain(one_line(Text("analyse.written", path=chosen.save)))
        except (BadUse, CannotWrite) as why:
            worst = EXIT_USAGE
            warn(str(why), why.code)
            unread.append(str(why))
            continue
        worst = max(worst, EXIT_FAILED if shown.found.reasons else EXIT_COMPLETED)
        if chosen.table or chosen.report:
            done.append(shown)
        if chosen.json:
            entries.append(_entry(shown))
        else:
            say_each(map(one_line, _lines(shown, chosen.baseline, every=chosen.peaks)))
    if chosen.json:
        say(_json_text(entries))
    _write_together(chosen, done, unread)
    return worst


def _check(chosen: argparse.Namespace) -> None:
    """Check the arguments before anything is read.

    Raises:
        BadUse: They cannot be honoured; the message says which can.
    """
    from labharness.core.vocabulary.spelling import did_you_mean

    if chosen.material is not None and chosen.material not in MATERIAL_NAMES:
        names, name = list(MATERIAL_NAMES), repr(chosen.material)
        near = did_you_mean(chosen.material, names)
        raise BadUse("analyse.no_material", name=name, hint=near, known=names)
    if chosen.pl is not None and len(chosen.files) > 1:
        raise BadUse("analyse.one_pl")


def _write_together(chosen: argparse.Namespace, done: list[Analysed], unread: list[str]) -> None:
    """Write the table and the page of all files, unless no file could be read."""
    if not done:
        return
    part = Text("analyse.of_files", read=len(done), files=len(chosen.files)) if unread else ""
    if chosen.table:
        rows = write_table(Path(chosen.table), done)
        complain(one_line(Text("analyse.table", path=chosen.table, rows=rows, part=part)))
    if chosen.report:
        shown = [(headline(each.found), each) for each in done]
        write_report(Path(chosen.report), shown, chosen.baseline, unread)
        complain(one_line(Text("analyse.report", path=chosen.report, part=part)))


def _analysed(path: Path, chosen: argparse.Namespace) -> Analysed:
    reference = None
    if chosen.a1g_si is not None:
        reference = Reference.stated(chosen.a1g_si, "--a1g-si")
    wanted = Wanted(chosen.material, tuple(chosen.window), chosen.baseline)
    recording = recording_of(path, file_bytes(path), chosen.laser_nm)
    bands: tuple[PlBand, ...] = ()
    read = path
    try:
        if chosen.pl is not None:
            read = Path(chosen.pl)
            bands = pl_bands(recording_of(read, file_bytes(read)), recording.laser_nm)
        read, rows = path, (FILM_ROWS if reference is None else ROWS_BY_ORIGIN)[chosen.film]
        return analysed(str(path), recording, wanted, rows=rows, reference=reference, bands=bands)
    except ValueError as why:  # such as a spectrum of ten points
        raise BadUse("pair", what=str(read), why=str(why)) from None


# ---- what people read


def headline(found: Assessment) -> str:
    """Return in one sentence what a file shows."""
    verdict = found.verdict
    if verdict is None:
        return Text("analyse.no_count", material=found.material)
    claim = verdict.claim
    if verdict.layer_count is None:
        if claim is not None and claim.kind == "mixed":
            return Text("analyse.mos2", material="MoS2", what=claim.headline)
        if not verdict.credible_set:
            return Text("analyse.no_count", material=found.material)
        return Text("analyse.undetermined", layers=list(map(_class_name, verdict.credible_set)))
    if claim is not None and claim.kind != "place":
        what = claim.headline
    else:
        code = "analyse.one_layer" if verdict.layer_count == 1 else "analyse.layers"
        what = Text(code, layers=_class_name(verdict.layer_count))
    return Text("analyse.sure", what=what, confidence=share_text(verdict.confidence, 2))


def _lines(shown: Analysed, baseline: str, *, every: bool) -> Iterator[str]:
    """Return all that was found in a file, line by line.

    Args:
        shown: The file.
        baseline: The baseline under the measured lines.
        every: Show the lines of each spectrum, not of all together.
    """
    found = shown.found
    count = len(found.spectra)
    axis = found.spectra[0].shift_cm1
    yield Text("pair", what=shown.name, why=headline(found))
    yield Text(
        "analyse.read" if count > 1 else "analyse.read_one",
        format=shown.recording.format,
        count=count,
        points=axis.size,
        low=float(axis[0]),
        high=float(axis[-1]),
    )
    if count > 1:
        materials = Counter(found.materials).most_common()
        shows = [Text("analyse.in", material=name, count=number) for name, number in materials]
        yield Text("analyse.shows", materials=shows)
    if found.probability:
        yield Text("analyse.named", material=found.material, probability=found.probability)
    lines = [line for line in found.silicon if line is not None]
    if lines:
        position = median(line.position_cm1 for line in lines)
        fwhm = median(line.fwhm_cm1 for line in lines)
        yield Text("analyse.silicon", position=position, width=fwhm)
    verdict = found.verdict
    if verdict is not None:
        distance, sigma = verdict.peak_distance_cm1, verdict.peak_distance_sigma_cm1
        if distance is not None:
            yield Text("analyse.distance", value=distance, sigma=sigma)
        posterior = [
            Text("pair", what=_class_name(name), why=f"{p:.2f}")
            for name, p in verdict.posterior.items()
        ]
        yield Text("analyse.posterior", rows=posterior)
        for term in verdict.evidence:
            measured = f"{term.measured:.3g} {term.unit}"
            error = term.systematic
            yield Text("analyse.evidence", name=term.name, measured=measured, error=error)
    for reason in found.reasons:
        yield Text("analyse.doubt", why=reason)
    yield from _peaks(shown, baseline, every=every)
    yield from _glow(shown)
    for note in (*found.notes, *shown.notes):
        yield Text("analyse.note", note=note)


def _peaks(shown: Analysed, baseline: str, *, every: bool) -> Iterator[str]:
    lines = list(shown.lines())
    if not lines:
        yield Text("analyse.no_lines")
        return
    under = "" if baseline == "straight" else Text("analyse.background", kind=baseline)
    many = len(shown.found.spectra) > 1
    known = shown.material != UNKNOWN
    whose = Text("analyse.lines_of", material=shown.material) if known else Text("analyse.lines")
    if many and every:
        yield Text("analyse.each", lines=whose, under=under)
        yield from aligned(_each(shown), INDENT)
        return
    from labharness.faces.report.line_texts import line_texts

    yield Text("analyse.all" if many else "analyse.one", lines=whose, under=under)
    heads = [*HEADS, "analyse.stands_out"] if many else HEADS
    rows: list[Sequence[str]] = [[Text(head) for head in heads]]
    for line in lines:
        seen = Text("analyse.seen", seen=int(line.stands_out.sum()), spectra=line.stands_out.size)
        rows.append((line.name, *line_texts(line).values(), *([seen] if many else [])))
    yield from aligned(rows, INDENT)


def _each(shown: Analysed) -> list[Sequence[str]]:
    table = _peak_table(shown)
    places = [name for name in ("x_um", "y_um") if any(v is not None for v in table.columns[name])]
    axes = (name.replace("_um", " / µm") for name in places)
    rows: list[Sequence[str]] = [(Text("analyse.spectrum"), *axes, *map(Text, HEADS))]
    for row in table.rows():
        where = (f"{row[name]:.6g}" for name in places)
        measured: tuple[str, ...] = ("–",) * 4
        if row["stands_out"]:
            names = ("position_cm1", "fwhm_cm1", "height_counts", "area_counts_cm1")
            measured = tuple(measured_text(row[name], row[f"sigma_{name}"]) for name in names)
        rows.append((str(row["spectrum"]), *where, row["line"], *measured))
    return rows


def _glow(shown: Analysed) -> Iterator[str]:
    if not shown.bands:
        return
    from labharness.faces.report.line_texts import times_of_line

    band = shown.band_of(shown.best)
    if band is None or not band.stands_out:
        yield Text("analyse.no_band")
        return
    yield Text(
        "analyse.band",
        place=measured_text(band.position_nm, band.position_sigma_nm),
        energy=band.energy_ev,
        width=measured_text(band.fwhm_nm, band.fwhm_sigma_nm),
    )
    times = times_of_line(shown)
    if times is not None:
        yield Text("analyse.times", ratio=times.ratio, line=times.line)


def _class_name(layer_class: int) -> str:
    return Text("layers.six") if layer_class == SIX_OR_MORE else str(layer_class)


# ---- what programs read


def _json_text(value: object) -> str:
    """Return JSON in which a character that steers a terminal is written by its number."""
    text = json.dumps(value, ensure_ascii=False, indent=2)
    return "\n".join(map(_plain, text.split("\n")))


def _plain(line: str) -> str:
    if line.isprintable():
        return line
    return "".join(each if each.isprintable() else json.dumps(each)[1:-1] for each in line)


def _entry(shown: Analysed) -> dict[str, Any]:
    """Return all that was found."""
    found = shown.found
    verdict = found.verdict
    return {
        "file": shown.name,
        "format": shown.recording.format,
        "spectra": len(found.spectra),
        "laser_nm": shown.recording.laser_nm,
        "material": found.material,
        "materials": list(found.materials),
        "material_probability": found.probability or None,
        "beside": list(found.beside),
        "unexplained": [
            {"position_cm1": line.position_cm1, "fwhm_cm1": line.fwhm_cm1}
            for line in found.open_lines
        ],
        **NO_VERDICT,
        **({} if verdict is None else _of_verdict(verdict, counts=not found.reasons)),
        "reasons": list(found.reasons),
        "notes": [*found.notes, *shown.notes],
        "silicon": [
            None if line is None else {name: getattr(line, name) for name in SILICON}
            for line in found.silicon
        ],
        "axis_moved_by_cm1": found.offset_cm1,
        "peaks": [
            {name: row[name] for name in row if name != "file"} for row in _peak_table(shown).rows()
        ],
        "photoluminescence": [_band(each) for each in shown.bands],
    }


def _of_verdict(verdict: LayerVerdict, *, counts: bool) -> dict[str, Any]:
    told = verdict_told(verdict)
    named = {name: told[name] for name in NO_VERDICT}
    return named if counts else {**named, "layer_count": None, "confidence": None}


def _peak_table(shown: Analysed) -> PeakTable:
    table = PeakTable()
    shown.add_to(table)
    return table


def _band(band: PlBand) -> dict[str, Any]:
    found = {"stands_out": "stands_out"}
    if band.stands_out:
        found |= {**with_sigmas("position_nm"), "energy_ev": "energy_ev"}
        found |= with_sigmas("fwhm_nm", "height_counts", "area_counts_nm")
    return {name: getattr(band, attribute) for name, attribute in found.items()}


def file_bytes(path: Path) -> bytes:
    """Return the content of a file, up to a byte more than any reader takes.

    Raises:
        BadUse: It cannot be read.
    """
    with looking(path, BadUse), open_named(path) as file:
        return file.read(BYTES_MAX + 1)


def recording_of(path: Path, data: bytes, laser_nm: float | None = None) -> Recording:
    """Return the spectra in the content of a file.

    Args:
        path: The name of the file.
        data: Its content.
        laser_nm: Laser wavelength, if the file states none.

    Raises:
        BadUse: It holds no spectra, or they do not fit to that laser.
    """
    try:
        recording = read_spectra(data)
        return recording if laser_nm is None else recording.with_laser(laser_nm)
    except ValueError as why:  # BadFile is one
        raise BadUse("pair", what=str(path), why=str(why)) from None
