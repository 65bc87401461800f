"""Means and lowest values near each pixel are those of scipy.ndimage."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.ndimage import minimum_filter1d, uniform_filter1d

from labharness.analysis.arrays import Array
from labharness.analysis.near import lowest_near, mean_of_three

SPECTRA = arrays(
    np.float64,
    st.tuples(st.integers(1, 3), st.integers(1, 40)),
    elements=st.floats(-1e6, 1e6),
)


@given(SPECTRA)
def test_the_mean_of_three_pixels_is_a_uniform_filter(counts: Array) -> None:
    expected = uniform_filter1d(counts, 3, axis=1, mode="nearest")
    np.testing.assert_allclose(mean_of_three(counts), expected, rtol=1e-9, atol=1e-9 * 1e6)


@given(SPECTRA, st.integers(0, 60))
def test_the_lowest_value_near_a_pixel_is_a_minimum_filter(counts: Array, reach: int) -> None:
    expected = minimum_filter1d(counts, 2 * reach + 1, axis=1, mode="nearest")
    np.testing.assert_array_equal(lowest_near(counts, reach), expected)
