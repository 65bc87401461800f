"""``labharness analyse``: what can honestly be said of anyone's spectra."""

import argparse
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from labharness.core.files.named import open_named
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
from labharness.faces.cli.show import complain, one_line, say

if TYPE_CHECKING:
    from labharness.analysis.analysed import Analysed
    from labharness.analysis.formats import Recording
    from labharness.analysis.photoluminescence import PlBand

__all__ = ["analyse"]


class _Unreadable(Exception):
    """One plain line about a file that cannot be read."""


def analyse(chosen: argparse.Namespace) -> int:
    """Judge each file; give 0 if every one has a verdict, 1 if not, 64 if one is unreadable."""
    try:
        _check(chosen)
        may_write(chosen)
    except (CannotWrite, ValueError) as why:
        return _refused(str(why))
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
                    complain(f"drawn: {one_line(str(drawn))}")
            if chosen.save:
                complain(f"written: {one_line(str(write_spectra(Path(chosen.save), path, shown)))}")
        except (_Unreadable, CannotWrite) as why:
            worst = _refused(str(why))
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
    try:
        _write_together(chosen, done, unread)
    except CannotWrite as why:
        return _refused(str(why))
    return worst


def _check(chosen: argparse.Namespace) -> None:
    """Hold what was asked against what there is, before anything is read.

    Raises:
        ValueError: It cannot be; the message says what can.
    """
    from labharness.analysis.line_table import MATERIAL_NAMES
    from labharness.core.vocabulary.spelling import meant

    if chosen.material is not None and chosen.material not in MATERIAL_NAMES:
        names = list(MATERIAL_NAMES)
        near = meant(chosen.material, names)
        raise ValueError(
            f"--material: no lines of {chosen.material!r} here{near}; there are {', '.join(names)}"
        )
    if chosen.pl is not None and len(chosen.files) > 1:
        raise ValueError("--pl takes one FILE: it is the photoluminescence of that film")


def _refused(why: str) -> int:
    complain(one_line(f"labharness analyse: {why}"))
    return EXIT_USAGE


def _write_together(chosen: argparse.Namespace, done: "list[Analysed]", unread: list[str]) -> None:
    """Write what is one for all files; nothing where none of them could be read."""
    if not done:
        return
    of = "" if not unread else f", {len(done)} of {len(chosen.files)} files"
    if chosen.table:
        target, rows = write_table(Path(chosen.table), done)
        complain(f"written: {one_line(str(target))} ({rows} rows{of})")
    if chosen.report:
        shown = [(headline(each.found), each, str(chosen.baseline)) for each in done]
        program = f"labharness {version('labharness')}"
        target = write_report(Path(chosen.report), shown, unread, program)
        complain(f"written: {one_line(str(target))}{of}")


def _analysed(path: Path, chosen: argparse.Namespace) -> "Analysed":
    from labharness.analysis.analysed import Wanted, analysed
    from labharness.analysis.assess import FILM_ROWS
    from labharness.analysis.evidence import Reference
    from labharness.analysis.photoluminescence import pl_bands

    reference = None
    if chosen.a1g_si is not None:
        reference = Reference.stated(chosen.a1g_si, "--a1g-si")
    wanted = Wanted(chosen.material, tuple(chosen.window), chosen.baseline)
    recording = _read(path)
    light = None if chosen.pl is None else _read(Path(chosen.pl))
    try:
        if chosen.laser_nm is not None:
            recording = recording.with_laser(chosen.laser_nm)
        bands: tuple[PlBand, ...] = ()
        if light is not None:
            try:
                bands = pl_bands(light, recording.laser_nm)
            except ValueError as why:
                raise _Unreadable(f"{chosen.pl}: {why}") from None
        rows = FILM_ROWS[chosen.film]
        return analysed(str(path), recording, wanted, rows=rows, reference=reference, bands=bands)
    except ValueError as why:  # BadFile is one; so is a spectrum of ten points
        raise _Unreadable(f"{path}: {why}") from None


def _read(path: Path) -> "Recording":
    from labharness.analysis.formats import BYTES_MAX, read_spectra

    try:
        with open_named(path) as file:
            data = file.read(BYTES_MAX + 1)
    except OSError as why:
        raise _Unreadable(f"{path}: {why.strerror}") from None
    try:
        return read_spectra(data)
    except ValueError as why:
        raise _Unreadable(f"{path}: {why}") from None
