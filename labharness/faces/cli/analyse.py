"""``labharness analyse``: materials, lines and layers from files of spectra."""

import argparse
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from labharness.core.vocabulary.texts import Text
from labharness.faces.cli import EXIT_COMPLETED, EXIT_FAILED, EXIT_USAGE
from labharness.faces.cli.analyse_entry import entry, json_text
from labharness.faces.cli.analyse_said import headline, lines_said
from labharness.faces.cli.analyse_written import (
    CannotWrite,
    may_write,
    write_pictures,
    write_report,
    write_spectra,
    write_table,
)
from labharness.faces.cli.recordings import file_bytes, recording_of
from labharness.faces.cli.show import BadUse, complain, one_line, say, warn

if TYPE_CHECKING:
    from labharness.analysis.analysed import Analysed
    from labharness.analysis.photoluminescence import PlBand


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
                for drawn in write_pictures(path, shown, overwrite=chosen.overwrite):
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
            entries.append(entry(shown))
        else:
            for line in lines_said(shown, chosen.baseline, every=chosen.peaks):
                say(one_line(line))
    if chosen.json:
        say(json_text(entries))
    _write_together(chosen, done, unread)
    return worst


def _check(chosen: argparse.Namespace) -> None:
    """Check the arguments before anything is read.

    Raises:
        BadUse: They cannot be honoured; the message says which can.
    """
    from labharness.analysis.line_table import MATERIAL_NAMES
    from labharness.core.vocabulary.spelling import did_you_mean

    if chosen.material is not None and chosen.material not in MATERIAL_NAMES:
        names = list(MATERIAL_NAMES)
        near = did_you_mean(chosen.material, names)
        name = repr(chosen.material)
        raise BadUse(Text("analyse.no_material", name=name, hint=near, known=names))
    if chosen.pl is not None and len(chosen.files) > 1:
        raise BadUse(Text("analyse.one_pl"))


def _write_together(chosen: argparse.Namespace, done: "list[Analysed]", unread: list[str]) -> None:
    """Write the table and the page of all files, unless no file could be read."""
    if not done:
        return
    part = Text("analyse.of_files", read=len(done), files=len(chosen.files)) if unread else ""
    if chosen.table:
        rows = write_table(Path(chosen.table), done)
        complain(one_line(Text("analyse.table", path=chosen.table, rows=rows, part=part)))
    if chosen.report:
        shown = [(headline(each.found), each, str(chosen.baseline)) for each in done]
        write_report(Path(chosen.report), shown, unread, f"labharness {version('labharness')}")
        complain(one_line(Text("analyse.report", path=chosen.report, part=part)))


def _analysed(path: Path, chosen: argparse.Namespace) -> "Analysed":
    from labharness.analysis.analysed import Wanted, analysed
    from labharness.analysis.assess import FILM_ROWS
    from labharness.analysis.evidence import ROWS_BY_ORIGIN, Reference
    from labharness.analysis.photoluminescence import pl_bands

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
        raise BadUse(Text("pair", what=str(read), why=str(why))) from None
