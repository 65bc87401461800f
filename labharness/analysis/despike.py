"""Remove cosmic rays from spectra; they are narrower than Raman lines."""

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import ArrayLike

from labharness.analysis.arrays import Array, Mask

SPIKE_WIDTH_MAX_PIXELS = 2
"""A cosmic ray lights one pixel, or two if it crosses a border (30 % of them)."""

SPIKE_SIGMA = 8.0
"""A spike is this many standard deviations above both outer neighbours."""

NEIGHBOUR_EXCESS_MAX = {1: 0.20, 2: 0.065}
"""Largest share of a lone spike's excess in its two neighbours, in the mean, by its width in
pixels. A line of FWHM >= 1.5 px, the least on coarse pixels, has more at any position of its
top."""

NEIGHBOUR_SIGMA = 0.9
"""Noise allowed in their mean: half of the spikes are found at 10 sigma, and 99 of 100 at 20."""

OVER_LINE_MIN = 1.5
"""On a line, or beside one, a spike is this many times as high as the Lorentz line through its four
neighbours. A double or lopsided line is less than 1.3 times so."""

BACKGROUND_HALF_WIDTH_PIXELS = 8
"""The local background is the median over this many pixels to either side."""

QUIET = 0.25
"""Quantile of them that a lone spike is compared with: on coarse pixels two lines of a film and
their feet fill half of them."""

NOISE_FLOOR_COUNTS = 4.0
"""Read noise of a cooled camera (4–8 electrons): the noise is never taken as lower."""


def despike(counts: ArrayLike) -> tuple[Array, Mask]:
    """Replace cosmic rays by the line between their neighbours, and mark their pixels.

    Rules on the first difference (Whitaker and Hayes 2018, 10.1016/j.chemolab.2018.06.009) flag the
    slopes of Raman lines when a pixel is 1 cm⁻¹ or more. This one looks for widths below those of
    any line that the spectrometer resolves.

    Args:
        counts: One spectrum, or one spectrum per row.

    Returns:
        The cleaned counts, and a mask of the replaced pixels, both in the shape of ``counts``.

    Raises:
        ValueError: When ``counts`` is not one or two-dimensional, is shorter than the background
            window, or holds NaN or infinity.
    """
    given = np.asarray(counts, dtype=np.float64)
    window = 2 * BACKGROUND_HALF_WIDTH_PIXELS + 1
    if given.ndim not in (1, 2) or given.shape[-1] < window:
        raise ValueError(
            f"despike needs one or many spectra of at least {window} px, got shape {given.shape}"
        )
    if not np.isfinite(given).all():
        raise ValueError("despike needs finite counts")
    rows = np.atleast_2d(given)
    usual = np.median(rows, axis=1)
    slope = np.diff(rows, axis=1)
    spread = np.median(np.abs(slope - np.median(slope, axis=1, keepdims=True)), axis=1)
    # 1.4826 turns a median deviation into a sigma; a difference of two pixels has sqrt(2) of it.
    noise = np.maximum(1.4826 / np.sqrt(2) * spread, NOISE_FLOOR_COUNTS)

    # Past the ends the last pixel repeats, so that a spike there has one real neighbour.
    edge = BACKGROUND_HALF_WIDTH_PIXELS
    padded = np.pad(rows, ((0, 0), (edge, edge)), mode="edge")
    surroundings = sliding_window_view(padded, window, axis=1)
    flagged = np.zeros(rows.shape, dtype=bool)
    for width in range(1, SPIKE_WIDTH_MAX_PIXELS + 1):
        run = rows[:, 1:-width]
        for further in range(1, width):
            run = np.minimum(run, rows[:, 1 + further : rows.shape[1] - width + further])
        left, right = rows[:, : -width - 1], rows[:, width + 1 :]
        stands = run - np.maximum(left, right)
        # The background is slow, so it is taken only at pixels that already stand out.
        row, start = np.nonzero(stands > SPIKE_SIGMA * noise[:, None])
        if row.size == 0:
            continue
        low, high = left[row, start], right[row, start]
        background = np.minimum(
            np.median(surroundings[row, start + 1], axis=1), np.minimum(low, high)
        )
        # The noise is that of the usual pixel; a brighter one has the shot noise of its own counts,
        # also on top of a line that is wider than the window.
        brighter = np.maximum(np.maximum(low, high) - usual[row], 0.0)
        sigma = np.sqrt(noise[row] ** 2 + brighter)
        top = run[row, start] - background
        last = rows.shape[1] - 1
        farther = (
            rows[row, np.maximum(start - 1, 0)],
            rows[row, np.minimum(start + width + 2, last)],
        )
        near = [(side - background) / top for side in (low, high)]
        # A pixel farther off that rises again is another feature, for example another cosmic ray.
        far = [
            np.minimum((side - background) / top, beside)
            for side, beside in zip(farther, near, strict=True)
        ]
        carried, wings = (near[0] + near[1]) / 2, (far[0] + far[1]) / 2
        most = NEIGHBOUR_EXCESS_MAX[width]
        quiet = np.minimum(np.quantile(surroundings[row, start + 1], QUIET, axis=1), background)
        shared = ((low + high) / 2 - quiet) / (run[row, start] - quiet)
        alone = shared < most + NEIGHBOUR_SIGMA * sigma / top
        beyond = OVER_LINE_MIN * _lorentz_top(carried, wings, width) < 1
        for inner, outer in zip(near, far, strict=True):
            # As steep on one side as a line may be, and another line on the other side.
            beyond &= (inner < most) | np.isfinite(_lorentz_top(inner, outer, width))
        spike = (stands[row, start] > SPIKE_SIGMA * sigma) & (alone | beyond)
        for offset in range(width):
            flagged[row[spike], start[spike] + 1 + offset] = True

    clean = rows.copy()
    for index in np.nonzero(flagged.any(axis=1))[0]:
        bad = flagged[index]
        clean[index, bad] = np.interp(np.nonzero(bad)[0], np.nonzero(~bad)[0], rows[index, ~bad])
    return clean.reshape(given.shape), flagged.reshape(given.shape)


def _lorentz_top(near: Array, far: Array, width: int) -> Array:
    """Return the height of a Lorentz line between neighbours of these heights over the background.

    The inverse of such a line is a parabola. If the farther neighbours are too low for one, the
    line is steeper, and its height has no limit.
    """
    inner, outer = (((width + 1) / 2 + step) ** 2 for step in (0, 1))
    below = outer * far - inner * near
    unlimited = np.full(near.shape, np.inf)
    top: Array = np.divide(near * far * (outer - inner), below, out=unlimited, where=below > 0)
    return top
