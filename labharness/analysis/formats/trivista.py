"""Princeton TriVista as XML (``.tvf`` of VistaControl): an axis in ``xDim``, spectra in ``Frame``.

Written from nine files of one instrument in a public repository, all with an axis in nanometres; no
file with another unit was seen. The binary ``.tvb`` is not read.
"""

from xml.etree.ElementTree import Element

import numpy as np

from labharness.analysis.arrays import Array
from labharness.analysis.formats.recording import BadFile, Recording, left_out
from labharness.analysis.formats.table import laser_of
from labharness.analysis.formats.windows import on_one_axis
from labharness.analysis.formats.xml_text import numbers_in, root_of

NAME = "TriVista"
MARK = "<XmlMain"
SHIFT_MARKS = ("raman", "relative", "1/cm", "cm-1")
PLACES = ("x_um", "y_um", "z_um")


def parse_trivista(text: str) -> Recording:
    """Read all frames of the first document that has frames.

    Raises:
        BadFile: When the XML is broken, axis or frames are missing, or the unit is unknown.
    """
    root = root_of(NAME, text)
    documents = [each for each in root.iter("Document") if each.find("Data/Frame") is not None]
    if not documents:
        raise BadFile("spectra.no_frame", format=NAME)
    notes: tuple[str, ...] = ()
    if len(documents) > 1:
        notes = (f"of {len(documents)} documents the first is read",)
    document = documents[0]
    calibration = document.find("xDim/Calibration")
    if calibration is None:
        raise BadFile("spectra.no_calibration", format=NAME)
    axis = _values(calibration.get("ValueArray", ""))
    unit = _unit(calibration.get("Unit", ""))
    laser = laser_of(calibration.get("LaserWave", ""))
    frames = list(document.iter("Frame"))
    rows: list[Array] = []
    frame_of: list[int] = []
    gone = []
    for index, frame in enumerate(frames):
        counts = numbers_in(frame.text, ";")
        if counts is None or counts.size == 0 or counts.size % axis.size:
            gone.append(index + 1)
            continue
        # a camera of many lines has one spectrum per line
        for row in counts.reshape(-1, axis.size):
            rows.append(row)
            frame_of.append(index)
    if not rows or len(gone) > max(1, len(frames) - len(gone)):
        raise BadFile(
            "spectra.frames_odd", format=NAME, gone=len(gone), frames=len(frames), points=axis.size
        )
    if gone:
        notes = (*notes, left_out("spectrum", gone, wanted=f"{axis.size} numbers"))
    axis, stacked, _ = on_one_axis(NAME, [(axis, np.stack(rows))])
    return Recording(
        NAME,
        axis,
        unit,
        stacked,
        laser_nm=laser,
        places=_places([frames[index] for index in frame_of]),
        header={key: value for key, value in document.items() if not key.endswith("Serialized")},
        notes=notes,
    )


def _values(text: str) -> Array:
    """Unpack ``count|value|value``."""
    numbers = numbers_in(text, "|")
    if numbers is None or numbers.size < 3 or numbers[0] != numbers.size - 1:
        raise BadFile("spectra.value_array", format=NAME)
    return numbers[1:]


def _unit(stated: str) -> str:
    plain = stated.lower()
    if plain.startswith("nano") or plain == "nm":
        return "nm"
    if any(mark in plain for mark in SHIFT_MARKS):
        return "1/cm"
    raise BadFile("spectra.trivista_units", format=NAME, unit=stated[:30])


def _places(frames: list[Element]) -> dict[str, Array]:
    """Return x, y and z of a map; the frames of a series have none."""
    found = [numbers_in(frame.get("ValuePosition"), ";") for frame in frames]
    known = [place for place in found if place is not None and place.size == len(PLACES)]
    if len(known) != len(found):
        return {}
    return dict(zip(PLACES, np.stack(known).T, strict=True))
