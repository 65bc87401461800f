"""The area of a line is its integral, and its error is the one that repeated fits show."""

import math

import numpy as np
import pytest

from labharness.analysis.lines import area_sigma, line_area

HEIGHT, FWHM = np.array([500.0]), np.array([4.0])


def test_the_area_is_the_integral_of_the_line() -> None:
    angle = (np.arange(200_000) + 0.5) / 200_000 * math.pi - math.pi / 2  # to infinity
    line = HEIGHT / (1 + (np.tan(angle) / (FWHM / 2)) ** 2)
    total = (line / np.cos(angle) ** 2).mean() * math.pi
    assert line_area(HEIGHT, FWHM) == pytest.approx(total, rel=1e-5)


def test_the_error_is_the_scatter_of_areas_drawn_from_the_covariance() -> None:
    covariance = np.array([[100.0, -0.6], [-0.6, 0.01]])
    middle = np.array([*HEIGHT, *FWHM])
    drawn = np.random.default_rng(5).multivariate_normal(middle, covariance, 100_000)
    scatter = line_area(drawn[:, 0], drawn[:, 1]).std()
    assert area_sigma(HEIGHT, FWHM, covariance[None]) == pytest.approx(scatter, rel=0.02)
    apart = area_sigma(HEIGHT, FWHM, np.diag(np.diag(covariance))[None])
    assert scatter < 0.8 * apart, "height and width make up for each other"
