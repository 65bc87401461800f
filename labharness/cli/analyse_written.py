"""What ``labharness analyse`` writes: pictures, spectra, the table of peaks, the report."""

import argparse
import os
from collections.abc import Iterator, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from labharness.cli.analyse_said import headline
from labharness.cli.show import write_whole
from labharness.vocabulary.extras import EXTRAS

if TYPE_CHECKING:
    from labharness.analysis.analysed import Analysed

__all__ = [
    "CannotWrite",
    "may_write",
    "write_pictures",
    "write_report",
    "write_spectra",
    "write_table",
]

SAVED_AS = (".csv", ".nxs", ".h5")
TABLE_AS = (".csv", ".parquet")
REPORT_AS = (".html",)


class CannotWrite(Exception):
    """One plain line about a file that cannot be written."""


def may_write(chosen: argparse.Namespace) -> None:
    """Hold the names of what is to be written against what there is, before hours of work.

    Raises:
        CannotWrite: A name says no kind that is written, is a file that is read, or lacks an extra.
    """
    for option, name, endings in (
        ("--save", chosen.save, SAVED_AS),
        ("--table", chosen.table, TABLE_AS),
        ("--report", chosen.report, REPORT_AS),
    ):
        if name is None:
            continue
        target = Path(name)
        if option == "--save" and len(chosen.files) > 1:
            raise CannotWrite(f"--save takes one FILE and a name ending in {', '.join(endings)}")
        if target.suffix not in endings:
            one = "one FILE and " if option == "--save" else ""
            raise CannotWrite(f"{option} takes {one}a name ending in {', '.join(endings)}")
        for each in [*chosen.files, *([chosen.pl] if chosen.pl else [])]:
            if _is_same(target, Path(each)):
                raise CannotWrite(f"{target} is the file that is read; name another one to save to")
    if chosen.table is not None and Path(chosen.table).suffix == ".parquet":
        _needs("pyarrow", "writing Parquet")
    if chosen.report is not None:
        from labharness.cli.report import is_another

        target = Path(chosen.report)
        if os.path.isfile(target) and is_another(target):
            raise CannotWrite(f"{target} is in the way: it is no report")


def write_pictures(path: Path, shown: "Analysed") -> Iterator[Path]:
    """Draw the clearest spectrum beside its file, and maps where there are many spectra.

    Raises:
        CannotWrite: The disk does not take them.
    """
    from labharness.desk.report.spectra_drawn import file_svg, map_svg

    count = len(shown.found.spectra)
    number = f", spectrum {shown.best + 1} of {count}" if count > 1 else ""
    said = headline(shown.found)
    target = path.with_name(f"{path.name}.svg")
    _write(target, file_svg(shown, f"{path.name}{number}", said).encode())
    yield target
    if count > 1:
        target = path.with_name(f"{path.name}.map.svg")
        _write(target, map_svg(shown, f"{path.name}, {count} spectra", said).encode())
        yield target


def write_spectra(target: Path, path: Path, shown: "Analysed") -> Path:
    """Write the spectra of a file in an open format.

    Raises:
        CannotWrite: A library is missing, or the disk does not take them.
    """
    from labharness.analysis.formats import NexusNotes, csv_text, nexus_bytes

    if target.suffix == ".csv":
        data = csv_text(shown.recording).encode()
    else:
        _needs("h5py", "writing HDF5")
        calibrated = any(line is not None for line in shown.found.silicon)
        notes = NexusNotes(
            program=f"labharness {version('labharness')}",
            sample=path.name,
            offset_cm1=shown.found.offset_cm1 if calibrated else None,
        )
        data = nexus_bytes(shown.recording, notes)
    _write(target, data)
    return target


def write_table(target: Path, files: Sequence["Analysed"]) -> tuple[Path, int]:
    """Write the peaks of all files as one table; give its name and number of rows.

    Raises:
        CannotWrite: The disk does not take it.
    """
    from labharness.analysis.table import PeakTable, parquet_bytes

    table = PeakTable()
    for each in files:
        each.add_to(table)
    is_csv = target.suffix == ".csv"
    _write(target, table.csv_text().encode() if is_csv else parquet_bytes(table))
    return target, len(table)


def write_report(
    target: Path,
    files: Sequence[tuple[str, "Analysed", str]],
    unread: Sequence[str],
    program: str,
) -> Path:
    """Write one page of all files: of each its headline, what was found, and its baseline.

    Raises:
        CannotWrite: The disk does not take it.
    """
    from labharness.desk.report.spectra_page import FileShown, spectra_page

    page = spectra_page([FileShown(*each) for each in files], unread, program)
    _write(target, page.encode())
    return target


def _needs(module: str, what_for: str) -> None:
    try:
        __import__(module)
    except ModuleNotFoundError:
        raise CannotWrite(f"{what_for} needs {module}: {EXTRAS[module].command}") from None


def _is_same(target: Path, other: Path) -> bool:
    try:
        return target.samefile(other)
    except OSError:  # one of them is not there
        return False


def _write(target: Path, data: bytes) -> None:
    try:
        write_whole(target, data)
    except OSError as why:
        raise CannotWrite(f"{target}: {why.strerror}") from None
