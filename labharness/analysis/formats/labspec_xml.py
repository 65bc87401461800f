"""Horiba LabSpec 6 XML (``LSX_Data``): axes in ``LSX_Tree``, rows of spectra in ``LSX_Matrix``.

Names are 32-bit numbers, the same in all eight files of a LabRAM HR Evolution in a public
repository (spectra in cm⁻¹, nm, eV and absolute cm⁻¹, a line scan, maps, one of them rotated).
"""

from xml.etree.ElementTree import Element

import numpy as np

from labharness.analysis.arrays import Array
from labharness.analysis.formats.labspec import UNITS
from labharness.analysis.formats.recording import BadFile, Recording, left_out
from labharness.analysis.formats.table import laser_of
from labharness.analysis.formats.xml_text import numbers_in, root_of
from labharness.analysis.spectrum import NM_TO_CM1

NAME = "LabSpec XML"
MARK = "<LSX_Data"
AXES, TYPE, UNIT, VALUES = "0x7B697861", "0x6D707974", "0x7C696E75", "0x7D6CD4DB"
KEY, SHOWN, EXACT = "0x6D6D616E", "0x7D6C61DB", "0x8736F70"
"""A setting has a name, the text in the window ("633 ") and mostly the exact number (632.817)."""

PLACES = {"X": "x_um", "Y": "y_um", "Z": "z_um", "XA": "x_um", "YA": "y_um", "Time": "time_s"}
"""A rotated map has its own axes XA and YA, turned by an angle that the file states."""


def parse_labspec_xml(text: str) -> Recording:
    """Read a spectrum, a line or a map.

    Raises:
        BadFile: When the XML is broken, the axis is missing or has an unknown unit, or no row fits
            it.
    """
    root = root_of(NAME, text)
    tree = root.find("LSX_Tree")
    matrix = root.find("LSX_Matrix")
    if tree is None or matrix is None:
        raise BadFile(
            "spectra.lacks", format=NAME, what="LSX_Tree" if tree is None else "LSX_Matrix"
        )
    axes = [each for node in tree.iter("LSX") if node.get("ID") == AXES for each in node]
    spectral = next((axis for axis in axes if _text(axis, TYPE).startswith("Spectr")), None)
    values = None if spectral is None else numbers_in(_text(spectral, VALUES))
    if spectral is None or values is None or values.size < 2:
        raise BadFile("spectra.no_spectr", format=NAME)
    wave, unit = _in_known_unit(values, _text(spectral, UNIT))
    header, laser_nm = _settings(tree)
    rows = [numbers_in(row.text) for row in matrix.iter("LSX_Row")]
    kept = [n for n, row in enumerate(rows) if row is not None and row.size == wave.size]
    gone = [n + 1 for n in range(len(rows)) if n not in set(kept)]
    if not kept or len(gone) > max(1, len(kept)):
        raise BadFile(
            "spectra.rows_odd", format=NAME, gone=len(gone), rows=len(rows), points=wave.size
        )
    places = _places([axis for axis in axes if axis is not spectral], len(rows))
    return Recording(
        NAME,
        wave,
        unit,
        np.stack([row for n in kept if (row := rows[n]) is not None]),
        laser_nm=laser_nm,
        places={name: column[kept] for name, column in places.items()},
        header=header,
        notes=(left_out("spectrum", gone, wanted=f"{wave.size} numbers"),) if gone else (),
    )


def _in_known_unit(values: Array, unit: str) -> tuple[Array, str]:
    if unit in UNITS:
        return values, UNITS[unit]
    if unit == "1/cm abs" and (values > 0).all():
        return NM_TO_CM1 / values, "nm"
    raise BadFile("spectra.labspec_units", format=NAME, unit=unit[:30])


def _places(axes: list[Element], spectra: int) -> dict[str, Array]:
    """Spread the axes of a map over its rows; the first axis varies fastest."""
    named = [
        (_text(axis, TYPE), column)
        for axis in axes
        if (column := numbers_in(_text(axis, VALUES))) is not None and column.size
    ]
    if not named or np.prod([float(column.size) for _, column in named]) != spectra:
        return {}
    found = {}
    repeat = 1
    for name, column in named:
        spread = np.repeat(column, repeat)
        found[PLACES.get(name, name or "place")] = np.tile(spread, spectra // spread.size)
        repeat *= column.size
    return found


def _settings(tree: Element) -> tuple[dict[str, str], float | None]:
    """Return the settings as shown in the window, and the exact wavelength of the laser."""
    header: dict[str, str] = {}
    laser_nm = None
    for node in tree.iter("LSX"):
        key = _text(node, KEY)
        if not key:
            continue
        header.setdefault(key, _text(node, SHOWN))
        if key == "Laser (nm)":
            laser_nm = laser_of(_text(node, EXACT)) or laser_of(_text(node, SHOWN))
    return header, laser_nm


def _text(node: Element, identity: str) -> str:
    """Return the text of the child with this number, or ``""``."""
    return next(((child.text or "").strip() for child in node if child.get("ID") == identity), "")
