"""A spectrum of the Raman Open Database: CIF with a loop of shift and intensity."""

import re

from labharness.analysis.formats.recording import BadFile, Recording
from labharness.analysis.formats.table import laser_of, table_of

NAME = "ROD CIF"
SHIFT, INTENSITY = "_raman_spectrum.raman_shift", "_raman_spectrum.intensity"
LASER = "_raman_measurement_device.excitation_laser_wavelength"
ENTRY = re.compile(r"(_\S+)\s+(.+)")


def parse_rod(text: str) -> Recording:
    """Read the first spectrum and the one-line entries.

    Raises:
        BadFile: When the loop is missing or has more than one spectrum.
    """
    lines = text.splitlines()
    tags = [line.strip() for line in lines]
    if SHIFT not in tags or INTENSITY not in tags:
        raise BadFile("spectra.no_loop", format=NAME, shift=SHIFT, intensity=INTENSITY)
    first = tags.index(SHIFT)
    while first > 0 and tags[first - 1].startswith("_"):
        first -= 1
    end = next((n for n in range(first, len(tags)) if not tags[n].startswith("_")), len(tags))
    columns = tags[first:end]
    stop = next(
        (n for n in range(end, len(tags)) if re.match(r"_|loop_|data_|#", tags[n])), len(tags)
    )
    header = {m[1]: m[2].strip(" '") for line in tags if (m := ENTRY.fullmatch(line))}
    table = table_of(NAME, lines[end:stop], end + 1, header)
    values = table.values
    if values.shape[1] != len(columns):
        raise BadFile("spectra.row_names", format=NAME, found=values.shape[1], named=len(columns))
    axis, rows = values[:, columns.index(SHIFT)], values[:, columns.index(INTENSITY)]
    return table.recording(axis, "1/cm", rows, laser_nm=laser_of(header.get(LASER, "")))
