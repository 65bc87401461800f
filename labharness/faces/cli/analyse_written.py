"""What ``labharness analyse`` writes: pictures, spectra, the table of peaks, the report."""

import argparse
import os
from collections.abc import Iterator, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from labharness.core.errors import LabError
from labharness.core.files.named import open_named
from labharness.core.vocabulary.extras import EXTRAS
from labharness.faces.cli.analyse_own import in_the_way
from labharness.faces.cli.analyse_said import headline
from labharness.faces.cli.show import write_whole

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
HDF5 = b"\x89HDF"


class CannotWrite(LabError, code="cannot_write"):
    """One plain line about a file that cannot be written."""


def may_write(chosen: argparse.Namespace) -> None:
    """Hold the names of what is to be written against what there is, before hours of work.

    Raises:
        CannotWrite: A name says no kind that is written, is a file that is read or another one that
            is written, or stands for a file of somebody else; or extras are not installed.
    """
    targets: list[Path] = []
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
        if any(os.path.abspath(target) == os.path.abspath(each) for each in targets):
            raise CannotWrite(f"{target} is named twice; each output takes a name of its own")
        targets.append(target)
        _must_be_ours(option, target, overwrite=chosen.overwrite)
    if chosen.plot:
        for each in chosen.files:
            _must_be_ours("--plot", _picture_of(Path(each)), overwrite=chosen.overwrite)
    _need_extras(chosen)


def _must_be_ours(option: str, target: Path, *, overwrite: bool) -> None:
    if not overwrite and in_the_way(option, target):
        raise CannotWrite(
            f"{target} is in the way: {option} did not write it; --overwrite replaces it"
        )


def _need_extras(chosen: argparse.Namespace) -> None:
    """Name all that is not installed and will be needed, in one line.

    Raises:
        CannotWrite: Something is not.
    """
    wanted: dict[str, str] = {}
    if chosen.table is not None and Path(chosen.table).suffix == ".parquet":
        wanted["pyarrow"] = "writing Parquet"
    if chosen.save is not None and Path(chosen.save).suffix != ".csv":
        wanted["h5py"] = "writing HDF5"
    if any(_is_hdf5(Path(each)) for each in [*chosen.files, *([chosen.pl] if chosen.pl else [])]):
        wanted.setdefault("h5py", "reading HDF5")
    missing = [module for module in wanted if not _is_there(module)]
    if missing:
        needs = " and ".join(f"{wanted[module]} needs {module}" for module in missing)
        extras = ",".join(dict.fromkeys(EXTRAS[module].name for module in missing))
        raise CannotWrite(f"{needs}: pip install 'labharness[{extras}]'")


def _is_hdf5(path: Path) -> bool:
    try:
        with open_named(path) as file:
            return file.read(len(HDF5)) == HDF5
    except OSError:  # said when it is read
        return False


def _is_there(module: str) -> bool:
    try:
        __import__(module)
    except ModuleNotFoundError:
        return False
    return True


def _picture_of(path: Path) -> Path:
    return path.with_name(f"{path.name}.svg")


def write_pictures(path: Path, shown: "Analysed", *, overwrite: bool) -> Iterator[Path]:
    """Draw the clearest spectrum beside its file, and maps where there are many spectra.

    Args:
        path: The file.
        shown: What it shows.
        overwrite: Whether a file of somebody else may be replaced.

    Raises:
        CannotWrite: Something else has the name, or the disk does not take them.
    """
    from labharness.faces.report.spectra_drawn import file_svg, map_svg

    count = len(shown.found.spectra)
    number = f", spectrum {shown.best + 1} of {count}" if count > 1 else ""
    said = headline(shown.found)
    target = _picture_of(path)
    _write(target, file_svg(shown, f"{path.name}{number}", said).encode())
    yield target
    if count > 1:
        target = path.with_name(f"{path.name}.map.svg")
        _must_be_ours("--plot", target, overwrite=overwrite)
        _write(target, map_svg(shown, f"{path.name}, {count} spectra", said).encode())
        yield target


def write_spectra(target: Path, path: Path, shown: "Analysed") -> Path:
    """Write the spectra of a file in an open format.

    Raises:
        CannotWrite: The disk does not take them.
    """
    from labharness.analysis.formats import NexusNotes, csv_text, nexus_bytes

    if target.suffix == ".csv":
        data = csv_text(shown.recording).encode()
    else:
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
    """Write the peaks of all files as one table; return its name and number of rows.

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
    from labharness.faces.report.spectra_page import FileShown, spectra_page

    page = spectra_page([FileShown(*each) for each in files], unread, program)
    _write(target, page.encode())
    return target


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
