"""XML of spectrometers: read as a whole, without entities, with a plain error if it is broken."""

from xml.etree import ElementTree

import numpy as np

from labharness.analysis.arrays import Array
from labharness.analysis.formats.recording import BadFile


def root_of(format_name: str, text: str) -> ElementTree.Element:
    """Return the root element.

    Spectrometers declare no entities. A file that does could grow without limit and is refused.

    Raises:
        BadFile: When the XML is broken or ends too early.
    """
    if "<!DOCTYPE" in text or "<!ENTITY" in text:
        raise BadFile("spectra.xml_entities", format=format_name)
    try:
        return ElementTree.fromstring(text)
    except ElementTree.ParseError as why:
        line = getattr(why, "position", (0, 0))[0]
        raise BadFile("spectra.xml_line", format=format_name, line=line) from None
    except ValueError:  # a null character, a lone surrogate
        raise BadFile("spectra.xml_characters", format=format_name) from None


def numbers_in(text: str | None, mark: str | None = None) -> Array | None:
    """Return the numbers of an element, or None if one is not a number.

    Args:
        text: Text of the element.
        mark: Separator of the numbers; blanks if None. A comma is a decimal point.
    """
    cells = (text or "").replace(",", ".").split(mark)
    try:
        return np.array([float(cell) for cell in cells if cell.strip()])
    except ValueError:
        return None
