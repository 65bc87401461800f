"""The area of a line is its integral, and its error is the one that repeated fits show."""

import math

import numpy as np
import pytest

from labharness.analysis.lines import area_sigma, line_area


def pseudo_voigt(x: np.ndarray, height: float, fwhm: float, mixing: float) -> np.ndarray:
    reach = x / (fwhm / 2)
    lorentz, gauss = 1 / (1 + reach**2), np.exp(-math.log(2) * reach**2)
    shape: np.ndarray = height * (mixing * lorentz + (1 - mixing) * gauss)
    return shape


@pytest.mark.parametrize("mixing", [0.0, 0.35, 1.0])
def test_the_area_is_the_integral_of_the_line(mixing: float) -> None:
    angle = (np.arange(200_000) + 0.5) / 200_000 * math.pi - math.pi / 2  # to infinity
    x = np.tan(angle)
    total = (pseudo_voigt(x, 812.0, 4.2, mixing) / np.cos(angle) ** 2).mean() * math.pi
    assert float(line_area(812.0, 4.2, mixing)) == pytest.approx(total, rel=1e-5)


def test_a_lorentz_line_has_half_pi_times_height_times_width() -> None:
    assert float(line_area(100.0, 2.0)) == pytest.approx(100 * math.pi)


@pytest.mark.parametrize("size", [2, 3])
def test_the_error_is_the_scatter_of_areas_drawn_from_the_covariance(size: int) -> None:
    middle = np.array([500.0, 4.0, 0.6])
    spread = np.array([[100.0, -0.6, 0.05], [-0.6, 0.01, -2e-4], [0.05, -2e-4, 4e-4]])
    covariance = spread[:size, :size]
    drawn = np.random.default_rng(5).multivariate_normal(middle[:size], covariance, 100_000)
    mixing = drawn[:, 2] if size == 3 else middle[2]
    scatter = line_area(drawn[:, 0], drawn[:, 1], mixing).std()
    (sigma,) = area_sigma([500.0], [4.0], covariance[None], 0.6)
    assert sigma == pytest.approx(scatter, rel=0.02)


def test_height_and_width_that_make_up_for_each_other_leave_a_smaller_error() -> None:
    apart = np.array([[[100.0, 0.0], [0.0, 0.01]]])
    against = np.array([[[100.0, -0.8], [-0.8, 0.01]]])
    both = [float(area_sigma([500.0], [4.0], each)[0]) for each in (against, apart)]
    assert both[0] < 0.5 * both[1]


def test_a_covariance_of_another_shape_is_refused() -> None:
    with pytest.raises(ValueError, match=r"2 lines has the shape 2x2x2 or 2x3x3, got 1x2x2"):
        area_sigma([1.0, 2.0], [1.0, 1.0], np.zeros((1, 2, 2)))
