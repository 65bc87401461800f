"""Horiba LabSpec text: a header of ``#Key=<tab>value``, then one spectrum or a map.

The separator is a tab, in some exports a comma or semicolon.
"""

import re

from labharness.analysis.formats.maps import numbers_columns, parse_grid
from labharness.analysis.formats.recording import BadFile, Recording
from labharness.analysis.formats.table import entry_of, table_of
from labharness.analysis.formats.windows import split_runs

NAME = "LabSpec text"
UNITS = {"1/cm": "1/cm", "cm-1": "1/cm", "cm⁻¹": "1/cm", "nm": "nm", "eV": "eV"}
PLACES = {"X": "x_um", "Y": "y_um", "Z": "z_um", "Time": "time_s"}
HEAD_CHARACTERS = 100_000
HEADER = re.compile(r"#[^=\n]{1,80}=[\t,;]")
MAP_ROW = re.compile(r"[\t,;]+\s*[-+\d.]")
"""The axis of a map: its first cells, above the places, are empty."""


def is_labspec(text: str) -> bool:
    """Recognise the format by its first line."""
    if HEADER.match(text.lstrip()):
        return True
    return bool(MAP_ROW.match(text)) and not numbers_columns(text[:HEAD_CHARACTERS].splitlines())


def parse_labspec(text: str) -> Recording:
    """Read LabSpec 5 and 6 text exports.

    A single spectrum has two columns. A map has the axis in its first row, after one empty cell per
    column of places, and then one row per spectrum.

    Raises:
        BadFile: When the rows do not fit together, or the axis is not in 1/cm, nm or eV.
    """
    lines = text.splitlines()
    count = next((n for n, line in enumerate(lines) if not line.startswith("#")), len(lines))
    header = dict(entry_of(line[1:], around=" \t,;") for line in lines[:count])
    body = lines[count:]
    spectral = next((k[9:-1] for k, v in header.items() if v.startswith("Spectr")), None)
    stated = header.get(f"AxisUnit[{spectral}]", "")
    if stated and stated not in UNITS:
        raise BadFile("spectra.axis_unit", format=NAME, unit=stated)
    if body and MAP_ROW.match(body[0]):
        columns = len(body[0]) - len(body[0].lstrip(body[0][0]))
        # Axis 0 is the intensity and 1 the spectrum; a row begins with the slowest of the others.
        kinds = [header.get(f"AxisType[{columns + 1 - n}]", "") for n in range(columns)]
        return parse_grid(
            body,
            name=f"{NAME} (map)",
            unit=UNITS.get(stated, ""),
            header=header,
            titles=[PLACES.get(kind, kind) for kind in kinds],
            first_line=count + 1,
        )
    table = table_of(NAME, body, count + 1, header)
    if table.values.shape[1] != 2:
        raise BadFile("spectra.columns_single", format=NAME, columns=table.values.shape[1])
    axis, counts = table.values.T
    axis, rows, notes = split_runs(NAME, axis, counts)
    unit = UNITS.get(stated, "1/cm")
    return table.recording(axis, unit, rows, stated=bool(stated), notes=notes)
