"""WITec ASCII export: ``[Header]``, then ``[Data]`` in columns, the axis often in nm."""

from labharness.analysis.formats.recording import BadFile, Recording
from labharness.analysis.formats.table import entry_of, table_of

NAME = "WITec ASCII"
UNITS = {"nm": "nm", "1/cm": "1/cm", "rel. 1/cm": "1/cm", "cm-1": "1/cm", "eV": "eV"}


def parse_witec(text: str) -> Recording:
    """Read one or many spectra on a common axis.

    A wavelength axis is not converted: the file seldom names its laser, and a laser wrong by 0.1 nm
    moves everything by 4 cm⁻¹.

    Raises:
        BadFile: When ``[Data]`` is missing, or the axis has another unit.
    """
    lines = text.splitlines()
    marks = [line.strip() for line in lines]
    if "[Data]" not in marks:
        raise BadFile("spectra.no_data", format=NAME)
    start = marks.index("[Data]")
    header = dict(entry_of(line) for line in lines[:start] if "=" in line)
    unit = header.get("XAxisUnit", "")
    if unit not in UNITS:
        raise BadFile("spectra.witec_unit", format=NAME, unit=unit, known=", ".join(UNITS))
    first = start + 1
    # Two headings, names and units, come before the table.
    while first < len(lines) and not lines[first].strip()[:1].lstrip("-").isdigit():
        first += 1
    table = table_of(NAME, lines[first:], first + 1, header)
    values = table.values
    if values.shape[1] < 2:
        raise BadFile("spectra.one_column", format=NAME)
    return table.recording(values[:, 0], UNITS[unit], values[:, 1:].T)
