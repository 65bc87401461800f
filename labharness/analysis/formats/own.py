"""Read the artifact ``raw_spectrum.json`` of a run of this program."""

import json

import numpy as np

from labharness.analysis.formats.recording import BadFile, Recording

NAME = "labharness raw spectra"
PLACES = ("x_um", "y_um")


def parse_own(text: str) -> Recording:
    """Read the Raman spectra of a run, without the counts of the dark camera.

    Raises:
        BadFile: When it is other JSON, or its spectra do not share one axis.
    """
    try:
        found = json.loads(text)
        spots = found["raman"]
        axis = np.array(spots[0]["raman_shift"], dtype=np.float64)
        if any(spot["raman_shift"] != spots[0]["raman_shift"] for spot in spots):
            raise BadFile("spectra.axes", format=NAME)
        dark, laser_nm = float(found["dark_counts"]), float(found["laser_nm"])
        counts = np.array([spot["counts"] for spot in spots], dtype=np.float64) - dark
        places = {name: np.array([float(spot[name]) for spot in spots]) for name in PLACES}
    except BadFile:
        raise
    except (ValueError, LookupError, TypeError, RecursionError):
        raise BadFile("spectra.json", format=NAME) from None
    return Recording(NAME, axis, "1/cm", counts, laser_nm=laser_nm, places=places)
