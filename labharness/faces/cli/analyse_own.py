"""Over which files ``labharness analyse`` may write: those that it wrote itself."""

import os
from pathlib import Path

__all__ = ["in_the_way"]

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
"""By option and ending: how a file of this program begins, and what else it holds."""


def in_the_way(option: str, target: Path) -> bool:
    """Return whether a file is there that this option did not write; an empty one is nobody's."""
    if not os.path.isfile(target):
        return False  # nothing, or what cannot be written over anyway
    begins, holds = MARKS[option, target.suffix]
    try:
        data = target.read_bytes()
    except OSError:
        return True  # what may not be read may not be judged
    return bool(data) and not (data.startswith(begins) and holds in data)
