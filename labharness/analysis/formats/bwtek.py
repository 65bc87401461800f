"""B&W Tek exports of BWSpec and BWRam: a header of ``key;value``, then a table of many columns.

Written from 150 files of BWSpec 4.11 and BWRam 4.11 in public data sets (semicolons, decimal comma)
and one of BWSpec 4.04 quoted in public code (commas, points).
"""

import re

import numpy as np

from labharness.analysis.formats.recording import BadFile, Recording, left_out
from labharness.analysis.formats.table import entry_of, laser_of

NAME = "B&W Tek export"
MARK = "File Version;BW"
HEADER_LINES_MAX = 500
AXES = (("Raman Shift", "1/cm"), ("Wavelength", "nm"))
COUNTS = ("Dark Subtracted #1", "Raw data #1")
BAD_SHARE_MAX = 0.1


def parse_bwtek(text: str) -> Recording:
    """Read dark-subtracted counts against Raman shift, or the nearest columns to these.

    Pixels outside the calibrated range have a blank shift and are left out.

    Raises:
        BadFile: When the two columns are missing or empty.
    """
    lines = text.splitlines()
    above = enumerate(lines[:HEADER_LINES_MAX])
    start = next((n for n, line in above if re.match(r"Pixel[;,\t]", line)), None)
    if start is None:
        raise BadFile("spectra.no_pixel_heading", format=NAME)
    mark = lines[start][len("Pixel")]
    columns = [title.strip() for title in lines[start].split(mark)]
    axis, unit = next((each for each in AXES if each[0] in columns), ("", ""))
    counts = next((title for title in COUNTS if title in columns), "")
    if not axis or not counts:
        wanted = f"{AXES[0][0]} and {COUNTS[0]}"
        raise BadFile("spectra.columns_missing", format=NAME, wanted=wanted)
    axis_at, counts_at = columns.index(axis), columns.index(counts)
    rows: list[tuple[float, float]] = []
    bad: list[int] = []
    for number, line in enumerate(lines[start + 1 :], start + 2):
        parts = [part.strip() for part in line.split(mark)]
        if mark != ",":
            parts = [part.replace(",", ".") for part in parts]
        if not line.strip() or (len(parts) > axis_at and not parts[axis_at]):
            continue
        try:
            rows.append((float(parts[axis_at]), float(parts[counts_at])))
        except (ValueError, IndexError):
            bad.append(number)
    if not rows:
        raise BadFile("spectra.no_axis_value", format=NAME, axis=axis)
    if len(bad) > max(1, BAD_SHARE_MAX * len(rows)):
        raise BadFile("spectra.line", format=NAME, line=bad[0], found=lines[bad[0] - 1][:60])
    pairs = dict(entry_of(line, ";" if ";" in line else mark) for line in lines[:start])
    notes = [left_out("line", bad, wanted="numbers")] if bad else []
    if counts != COUNTS[0]:
        notes.append("the file has no dark-subtracted counts; the raw ones are read")
    table = np.array(rows)
    return Recording(
        NAME,
        table[:, 0],
        unit,
        table[:, 1],
        laser_nm=laser_of(pairs.get("laser_wavelength", "")),
        header=pairs,
        notes=tuple(notes),
    )
