"""Output files of ``labharness analyse``: pictures, spectra, the table of peaks, the report.

It replaces without being told to only files that it wrote itself.
"""

import argparse
import os
from collections.abc import Iterator, Sequence
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

from labharness.analysis.analysed import Analysed
from labharness.analysis.formats import NexusNotes, csv_text, nexus_bytes
from labharness.analysis.measured import PeakTable, parquet_bytes
from labharness.core.files.named import open_named
from labharness.core.vocabulary.extras import EXTRAS
from labharness.core.vocabulary.texts import CodedError, Text
from labharness.faces.cli.show import looking, write_whole

HDF5 = b"\x89HDF"
PEAKS = b"file,spectrum,x_um,y_um,material,line,stands_out,"
MARKS: dict[tuple[str, str], tuple[bytes, bytes]] = {
    ("--table", ".csv"): (PEAKS, b""),
    ("--table", ".parquet"): (b"PAR1", b"sigma_area_counts_cm1"),
    ("--save", ".csv"): (b"# read_from=", b""),
    ("--save", ".nxs"): (HDF5, b"labharness"),
    ("--save", ".h5"): (HDF5, b"labharness"),
    ("--report", ".html"): (b"<!doctype html>", b"labharness"),
    ("--plot", ".svg"): (b"<svg", b'id="labharness-analyse"'),
}
"""By option and ending: the first bytes of a file of this program, and bytes further on."""


class CannotWrite(CodedError, code="cannot_write", usage=True):
    """An output file cannot be written; the message says why."""


def may_write(chosen: argparse.Namespace) -> None:
    """Check the names of the output files, before hours of work.

    Raises:
        CannotWrite: A name has an unknown ending, is that of an input file or of another output, or
            belongs to a file that analyse did not write; or extras are not installed.
    """
    targets: list[Path] = []
    inputs = [Path(each) for each in (*chosen.files, *([chosen.pl] if chosen.pl else ()))]
    for option in ("--save", "--table", "--report"):
        name = getattr(chosen, option.removeprefix("--"))
        if name is None:
            continue
        target, endings = Path(name), [ending for own, ending in MARKS if own == option]
        if option == "--save" and (len(chosen.files) > 1 or target.suffix not in endings):
            raise CannotWrite("analyse.save_takes", endings=endings)
        if target.suffix not in endings:
            raise CannotWrite("analyse.takes", option=option, endings=endings)
        if os.path.exists(target) and any(
            os.path.exists(each) and os.path.samefile(target, each) for each in inputs
        ):
            raise CannotWrite("analyse.is_read", path=name)
        if any(os.path.abspath(target) == os.path.abspath(each) for each in targets):
            raise CannotWrite("analyse.named_twice", path=name)
        targets.append(target)
        _must_be_ours(option, target, overwrite=chosen.overwrite)
    if chosen.plot:
        for each in chosen.files:
            _must_be_ours("--plot", _picture_of(Path(each)), overwrite=chosen.overwrite)
    _need_extras(chosen, inputs)


def in_the_way(option: str, target: Path) -> bool:
    """Return whether a file is there that this option did not write; an empty one is ignored."""
    if not os.path.isfile(target):
        return False  # missing, or not to be written over anyway
    begins, holds = MARKS[option, target.suffix]
    try:
        data = target.read_bytes()
    except OSError:
        return True  # unreadable, thus unknown
    return bool(data) and not (data.startswith(begins) and holds in data)


def _must_be_ours(option: str, target: Path, *, overwrite: bool) -> None:
    if not overwrite and in_the_way(option, target):
        raise CannotWrite("analyse.in_the_way", path=str(target), option=option)


def _need_extras(chosen: argparse.Namespace, inputs: Sequence[Path]) -> None:
    """Name all modules that are needed and not installed, in one line.

    Raises:
        CannotWrite: There is one.
    """
    wanted: dict[str, str] = {}
    if chosen.table is not None and Path(chosen.table).suffix == ".parquet":
        wanted["pyarrow"] = "analyse.writing_parquet"
    if chosen.save is not None and Path(chosen.save).suffix != ".csv":
        wanted["h5py"] = "analyse.writing_hdf5"
    if any(_is_hdf5(each) for each in inputs):
        wanted.setdefault("h5py", "analyse.reading_hdf5")
    missing = [module for module in wanted if find_spec(module) is None]
    if missing:
        needs = [Text("analyse.needs", use=Text(wanted[each]), module=each) for each in missing]
        extras = ",".join(dict.fromkeys(EXTRAS[module].name for module in missing))
        command = f"pip install 'labharness[{extras}]'"
        raise CannotWrite("analyse.install", needs=needs, command=command)


def _is_hdf5(path: Path) -> bool:
    try:
        with open_named(path) as file:
            return file.read(len(HDF5)) == HDF5
    except OSError:  # reading it then says so
        return False


def _picture_of(path: Path) -> Path:
    return path.with_name(f"{path.name}.svg")


def write_pictures(path: Path, shown: Analysed, said: str, *, overwrite: bool) -> Iterator[Path]:
    """Draw the clearest spectrum beside its file, and maps where there are many spectra.

    Args:
        path: The file.
        shown: Its analysis.
        said: Its headline.
        overwrite: Also replace files that analyse did not write.

    Raises:
        CannotWrite: Another file has the name, or the disk does not take them.
    """
    from labharness.faces.report.spectra_drawn import file_svg, map_svg

    count = len(shown.found.spectra)
    number = f", spectrum {shown.best + 1} of {count}" if count > 1 else ""
    target = _picture_of(path)
    _write(target, file_svg(shown, f"{path.name}{number}", said).encode())
    yield target
    if count > 1:
        target = path.with_name(f"{path.name}.map.svg")
        _must_be_ours("--plot", target, overwrite=overwrite)
        _write(target, map_svg(shown, f"{path.name}, {count} spectra", said).encode())
        yield target


def write_spectra(target: Path, path: Path, shown: Analysed) -> None:
    """Write the spectra of a file in an open format.

    Raises:
        CannotWrite: The disk does not take them.
    """
    if target.suffix == ".csv":
        data = csv_text(shown.recording).encode()
    else:
        calibrated = any(line is not None for line in shown.found.silicon)
        notes = NexusNotes(
            program=_program(),
            sample=path.name,
            offset_cm1=shown.found.offset_cm1 if calibrated else None,
        )
        data = nexus_bytes(shown.recording, notes)
    _write(target, data)


def write_table(target: Path, files: Sequence[Analysed]) -> int:
    """Write the peaks of all files as one table; return its number of rows.

    Raises:
        CannotWrite: The disk does not take it.
    """
    table = PeakTable()
    for each in files:
        each.add_to(table)
    is_csv = target.suffix == ".csv"
    _write(target, table.csv_text().encode() if is_csv else parquet_bytes(table))
    return len(table)


def write_report(
    target: Path, files: Sequence[tuple[str, Analysed]], baseline: str, unread: Sequence[str]
) -> None:
    """Write one page about all files: for each its headline and the findings over a baseline.

    Raises:
        CannotWrite: The disk does not take it.
    """
    from labharness.faces.report.spectra_page import spectra_page

    _write(target, spectra_page(files, baseline, unread, _program()).encode())


def _program() -> str:
    return f"labharness {version('labharness')}"


def _write(target: Path, data: bytes) -> None:
    with looking(target, CannotWrite):
        write_whole(target, data)
