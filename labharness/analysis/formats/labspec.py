"""Horiba LabSpec text: a header of ``#Key=<tab>value``, then one spectrum or a map."""

from collections.abc import Sequence

import numpy as np

from labharness.analysis.formats.recording import BadFile, Recording
from labharness.analysis.formats.tables import number_of, table_of

__all__ = ["parse_labspec"]

NAME = "LabSpec text"
UNITS = {"1/cm": "1/cm", "cm-1": "1/cm", "cm⁻¹": "1/cm", "nm": "nm"}
PLACES = {"X": "x_um", "Y": "y_um", "Z": "z_um", "Time": "time_s"}


def parse_labspec(text: str) -> Recording:
    """Read LabSpec 5 and 6 text exports.

    A single spectrum is two columns. A map has the axis in its first row, after one tab for each
    column of places, and then one row a spectrum.

    Raises:
        BadFile: When the rows do not fit together or the axis has a unit that is no spectrum's.
    """
    lines = text.splitlines()
    count = next((n for n, line in enumerate(lines) if not line.startswith("#")), len(lines))
    header = dict(_entry(line) for line in lines[:count])
    body = lines[count:]
    spectral = next((k[9:-1] for k, v in header.items() if v.startswith("Spectr")), None)
    stated = header.get(f"AxisUnit[{spectral}]", "1/cm")
    if stated not in UNITS:
        raise BadFile(f"{NAME}: the axis is in {stated!r}, not in 1/cm or nm")
    laser_nm = number_of(header.get("Laser (nm)", ""))
    if body and body[0].startswith("\t"):
        return _map(body, header, UNITS[stated], laser_nm, count + 1)
    table = table_of(NAME, body, count + 1)
    if table.shape[1] != 2:
        raise BadFile(f"{NAME}: {table.shape[1]} columns where a single spectrum has two")
    return Recording(
        NAME, table[:, 0], UNITS[stated], table[:, 1], laser_nm=laser_nm, header=header
    )


def _entry(line: str) -> tuple[str, str]:
    key, _, value = line[1:].partition("=")
    return key.strip(), value.strip()


def _map(
    body: Sequence[str],
    header: dict[str, str],
    unit: str,
    laser_nm: float | None,
    first_line: int,
) -> Recording:
    columns = len(body[0]) - len(body[0].lstrip("\t"))
    axis = table_of(NAME, body[:1], first_line)[0]
    table = table_of(NAME, body[1:], first_line + 1)
    if table.shape[1] != columns + axis.size:
        raise BadFile(
            f"{NAME}: rows of {table.shape[1]} numbers under an axis of {axis.size} points "
            f"and {columns} columns of places"
        )
    places = {}
    for index in range(columns):
        # Axis 0 is the intensity and 1 the spectrum; a row begins with the slowest of the rest.
        kind = header.get(f"AxisType[{columns + 1 - index}]", f"column_{index + 1}")
        places[PLACES.get(kind, kind)] = table[:, index]
    counts = np.ascontiguousarray(table[:, columns:])
    return Recording(
        f"{NAME} (map)", axis, unit, counts, laser_nm=laser_nm, places=places, header=header
    )
