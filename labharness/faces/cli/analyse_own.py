"""Recognise the files that ``labharness analyse`` wrote itself: only those may it replace."""

import os
from pathlib import Path

PEAKS = b"file,spectrum,x_um,y_um,material,line,stands_out,"
MARKS: dict[tuple[str, str], tuple[bytes, bytes]] = {
    ("--table", ".csv"): (PEAKS, b""),
    ("--table", ".parquet"): (b"PAR1", b"sigma_area_counts_cm1"),
    ("--save", ".csv"): (b"# read_from=", b""),
    ("--save", ".nxs"): (b"\x89HDF", b"labharness"),
    ("--save", ".h5"): (b"\x89HDF", b"labharness"),
    ("--report", ".html"): (b"<!doctype html>", b"labharness"),
    ("--plot", ".svg"): (b"<svg", b'id="labharness-analyse"'),
}
"""By option and ending: the first bytes of a file of this program, and bytes further on."""


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
