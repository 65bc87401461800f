"""A measured line, and photoluminescence beside one, as people read them."""

from typing import Final, NamedTuple

import numpy as np

from labharness.analysis.analysed import Analysed
from labharness.analysis.line_table import ratio_of
from labharness.analysis.measured import MeasuredLine
from labharness.core.vocabulary.measured import measured_text

MAD_TO_SIGMA: Final = 1.4826
"""A median deviation times this is the standard deviation of normal scatter."""


class Times(NamedTuple):
    """The height of photoluminescence, as a multiple of a line of the same film."""

    ratio: float
    line: str


def line_texts(line: MeasuredLine) -> dict[str, str]:
    """Write position, width, height and area: each with its error, or median and scatter of many.

    A dash where the line stands out nowhere.
    """
    columns = {
        "position": (line.position_cm1, line.position_sigma_cm1),
        "width": (line.fwhm_cm1, line.fwhm_sigma_cm1),
        "height": (line.height_counts, line.height_sigma_counts),
        "area": (line.area_counts_cm1, line.area_sigma_counts_cm1),
    }
    seen = line.stands_out
    if not seen.any():
        return dict.fromkeys(columns, "–")
    if seen.size == 1:
        return {
            name: measured_text(float(values[0]), float(sigma[0]))
            for name, (values, sigma) in columns.items()
        }
    found = {}
    for name, (values, _) in columns.items():
        middle = float(np.median(values[seen]))
        scatter = MAD_TO_SIGMA * float(np.median(np.abs(values[seen] - middle)))
        found[name] = measured_text(middle, scatter)
    return found


def times_of_line(shown: Analysed) -> Times | None:
    """Compare the band of the clearest spectrum with the line its field compares it with."""
    band, ratio = shown.band_of(shown.best), ratio_of(shown.material)
    line = None if ratio is None else shown.line(ratio[0])
    if band is None or not band.stands_out or line is None or not line.stands_out[shown.best]:
        return None
    return Times(band.height_counts / float(line.height_counts[shown.best]), line.name)
