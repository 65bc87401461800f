"""Explain found lines: by a material of the table, or by the instrument and the air."""

import numpy as np

from labharness.analysis.arrays import Array, Mask
from labharness.analysis.found_lines import FoundLines
from labharness.analysis.material_table import Material
from labharness.analysis.spectrum import NM_TO_CM1

AIR_CM1 = (1556.0, 2330.7)
"""Oxygen and nitrogen of the air in the beam: Fenner 1973, 10.1364/JOSA.63.000073."""

AIR_FWHM_MAX_CM1 = 16.0

ROTATION_CM1 = 165.0
"""Where nitrogen shows, narrow lines below this shift are those of its rotation."""

RAY_SHARE = 0.5
"""A line of less than this share of silicon's width is a cosmic ray that a program smoothed."""

LASER_FOOT_CM1 = 90.0
EDGE_CM1, EDGE_REACH_CM1, EDGE_FWHM_CM1 = 320.0, 60.0, 18.0
"""Below this shift is light of the laser; where the axis begins within it, a broad hill so near to
its beginning is the edge of the filter."""

LAMP_NM = (
    *(435.83, 546.07, 576.96, 579.07, 611.6),  # mercury and its phosphor: light of the room
    *(476.49, 488.90, 496.51, 501.72, 514.18, 520.83, 528.69),  # argon of an ion laser
    *(633.44, 638.30, 640.22, 650.65, 659.90, 667.83, 692.95, 703.24),  # neon of a He-Ne laser
)
"""Lines of lamps and of gas lasers in air: NIST Atomic Spectra Database."""

LAMP_REACH_CM1, LAMP_FWHM_CM1 = 2.0, 6.0

SLACK_PIXELS, SLACK_WIDTHS = 1.0, 0.3
"""A found line's place is rough; so far outside a window it may still belong to it."""

ALSO_ROOM = 1.5
"""A further line of a material may exceed its usual share by this factor."""


def by_instrument(
    lines: FoundLines, axis: Array, silicon_fwhm_cm1: Array, laser_nm: float | None
) -> Mask:
    """Return which lines are not of the sample: filter, air, lamps, cosmic rays that are left.

    Args:
        lines: The lines.
        axis: Shift of each pixel.
        silicon_fwhm_cm1: Width of silicon in each row; 0 without.
        laser_nm: It places the lines of lamps.
    """
    at, fwhm = lines.position_cm1, lines.fwhm_cm1
    pixel = float(np.median(np.diff(axis)))
    found = np.abs(at) < LASER_FOOT_CM1
    found |= fwhm < RAY_SHARE * silicon_fwhm_cm1[:, None]
    near_start = (at < EDGE_CM1) & (at - axis[0] < EDGE_REACH_CM1)
    found |= near_start & (fwhm > EDGE_FWHM_CM1)
    for place in AIR_CM1:
        reach = np.maximum(4.0, SLACK_WIDTHS * fwhm)
        found |= (np.abs(at - place) < reach) & (fwhm < AIR_FWHM_MAX_CM1)
    if laser_nm is not None:
        for place in NM_TO_CM1 / laser_nm - NM_TO_CM1 / np.array(LAMP_NM):
            narrow = fwhm < max(LAMP_FWHM_CM1, 3 * pixel)
            found |= (np.abs(at - place) < max(LAMP_REACH_CM1, pixel)) & narrow
    nitrogen = (found & (np.abs(at - AIR_CM1[1]) < AIR_FWHM_MAX_CM1)).any(axis=1, keepdims=True)
    found |= nitrogen & (at < ROTATION_CM1) & (fwhm < LAMP_FWHM_CM1)
    return found


def within(lines: FoundLines, low_cm1: float, high_cm1: float, pixel_cm1: float) -> Mask:
    """Return which lines lie in a window."""
    slack = SLACK_PIXELS * pixel_cm1 + SLACK_WIDTHS * np.nan_to_num(lines.fwhm_cm1)
    inside: Mask = (lines.position_cm1 >= low_cm1 - slack) & (
        lines.position_cm1 <= high_cm1 + slack
    )
    return inside


def by_material(material: Material, lines: FoundLines, own: Array, pixel_cm1: float) -> Mask:
    """Return which lines a material explains whose highest line has these heights (rows).

    In the windows that name it lines may have any height, elsewhere at most their usual share.
    """
    found = np.zeros(lines.position_cm1.shape, dtype=bool)
    forms = (group for form in material.forms for group in form.groups)
    for window in (each for group in (*forms, *material.besides) for each in group.windows):
        found |= within(lines, window.low_cm1, window.high_cm1, pixel_cm1)
    for low, high, most, least in material.also:
        weak = lines.height_counts <= ALSO_ROOM * most * own[:, None]
        found |= within(lines, low, high, pixel_cm1) & weak & (lines.fwhm_cm1 >= least)
    return found
