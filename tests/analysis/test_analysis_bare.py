"""Narrow lines, cosmic rays and weak films: the name stays, and no film is denied unseen."""

import numpy as np
import pytest
from numpy.typing import NDArray

from drawn_spectra import GLASS, MATERIALS, SAPPHIRE, SILICON, Lines, draw, recording
from labharness.analysis.assess import assess

Array = NDArray[np.float64]

COARSE: dict[str, Lines] = {
    "MoS2": ((384.8, 3.0, 800), (403.6, 4.5, 1400), *SILICON),
    "WS2": ((351.0, 9.0, 1200), (356.5, 4.0, 600), (417.5, 5.0, 700), *SILICON),
    "MoSe2": ((240.8, 3.0, 1200), (287.2, 5.0, 120), *SILICON),
    "MoTe2": ((171.5, 3.2, 600), (235.0, 3.2, 1200), (289.5, 3.2, 700), *SILICON),
}
"""Films of one layer or two, as narrow as a spectrometer with good slits shows them."""

PARTS = np.arange(-0.4, 0.5, 0.2)


def binned(axis: Array, lines: Lines, seed: int, blur_pixels: float = 1.0) -> Array:
    """Draw lines as pixels see them: each the mean over its width, after a slit so wide."""
    pixel = axis[1] - axis[0]
    rng = np.random.default_rng(seed)
    clean = np.zeros(axis.size)
    slit = np.linspace(-blur_pixels, blur_pixels, 9)
    shape = np.exp(-4 * np.log(2) * (slit / blur_pixels) ** 2)
    for part in PARTS:
        for at, weight in zip(slit, shape / shape.sum(), strict=True):
            x = axis + (part + at) * pixel
            for position, fwhm, height in lines:
                clean += weight * height / (1 + (2 * (x - position) / fwhm) ** 2) / PARTS.size
    clean += 400.0
    counts: Array = rng.poisson(clean) + rng.normal(0, 6, axis.size)
    return counts


def coarse_axis(seed: int) -> Array:
    rng = np.random.default_rng([1, seed])
    pixel = float(rng.choice([1.1, 1.6, 2.0]))
    return np.arange(120.0, 700.0, pixel) + rng.uniform(0, pixel)


@pytest.mark.promise(50)
@pytest.mark.parametrize("film", COARSE)
def test_a_clean_film_of_narrow_lines_is_named_at_coarse_pixels(film: str) -> None:
    for seed in range(20):
        axis = coarse_axis(seed)
        assert assess(recording(axis, binned(axis, COARSE[film], seed))).material == film, seed


@pytest.mark.promise(50)
@pytest.mark.parametrize("film", COARSE)
def test_one_cosmic_ray_anywhere_does_not_take_the_name_of_a_film(film: str) -> None:
    for seed in range(20):
        axis = coarse_axis(seed)
        counts = binned(axis, COARSE[film], seed)
        rng = np.random.default_rng([2, seed])
        # Beside the lines, and a second pixel for three in ten.
        away = [at for at, _, height in COARSE[film] if height > 100]
        free = np.nonzero(np.abs(axis[:, None] - away).min(axis=1) > 12)[0][5:-5]
        struck = int(rng.choice(free))
        counts[struck] += rng.choice([1000.0, 8000.0, 60_000.0])
        if rng.random() < 0.3:
            counts[struck + 1] += 0.5 * (counts[struck] - 400)
        assert assess(recording(axis, counts)).material == film, seed


@pytest.mark.promise(50)
@pytest.mark.parametrize("beside_pixels", [-3, -2, 2, 3])
@pytest.mark.parametrize("film", ["MoS2", "MoSe2"])
def test_a_cosmic_ray_on_the_foot_of_a_line_does_not_take_the_name(
    film: str, beside_pixels: int
) -> None:
    for seed in range(6):
        axis = coarse_axis(seed)
        counts = binned(axis, COARSE[film], seed, blur_pixels=1.4)
        top = int(np.argmin(np.abs(axis - max(COARSE[film][:2], key=lambda line: line[2])[0])))
        counts[top + beside_pixels] += 20_000
        assert assess(recording(axis, counts)).material == film, seed


def denied(axis: Array, counts: Array) -> str:
    """Return what is said of films on a substrate."""
    found = assess(recording(axis, counts))
    assert found.verdict is None
    return found.reasons[-1]


WHOLE = np.arange(100.0, 3000.0, 1.5)
GRATING = np.arange(120.0, 700.0, 0.8)


@pytest.mark.parametrize(
    ("substrate", "lines"), [("silicon", SILICON), ("sapphire", SAPPHIRE), ("SiO2", GLASS)]
)
def test_a_clean_substrate_is_said_to_bear_no_film_that_would_have_been_seen(
    substrate: str, lines: Lines
) -> None:
    bright = tuple((at, fwhm, 5 * height) for at, fwhm, height in lines)
    said = denied(WHOLE, draw(WHOLE, bright, np.random.default_rng(1)))
    assert said.startswith(f"it shows {substrate} and no film of MoS2, WS2, MoSe2, WSe2, MoTe2,")
    assert "graphene" in said.split(";")[0]
    assert said.endswith("thin hBN would not have been seen")


@pytest.mark.promise(50)
def test_a_film_whose_lines_lie_outside_the_axis_is_not_denied() -> None:
    bright = tuple((at, fwhm, 5 * height) for at, fwhm, height in SILICON)
    said = denied(GRATING, draw(GRATING, bright, np.random.default_rng(1)))
    assert "no film of MoS2, WS2, MoSe2, WSe2 or MoTe2;" in said
    assert "graphene, graphite or thin hBN would not have been seen" in said
    cut = GRATING[GRATING > 480]
    said = denied(cut, draw(cut, bright, np.random.default_rng(1)))
    assert "no film" not in said
    assert "cannot be told" in said


@pytest.mark.promise(50)
def test_in_noise_that_would_hide_a_film_none_is_denied() -> None:
    faint = tuple((at, fwhm, height / 40) for at, fwhm, height in SILICON)
    for seed in range(5):
        said = denied(GRATING, draw(GRATING, faint, np.random.default_rng(seed)))
        assert "it shows silicon" in said
        assert "no film" not in said


@pytest.mark.promise(50)
@pytest.mark.parametrize(
    ("what", "share"),
    [
        ("MoS2 on silicon", 0.06),
        ("one layer of MoSe2", 0.05),
        ("few layers of MoTe2", 0.05),
    ],
)
def test_a_film_too_weak_for_a_name_is_not_denied(what: str, share: float) -> None:
    name, lines = MATERIALS[what]
    silicon = ((at, fwhm, height / 4) for at, fwhm, height in SILICON)
    weak = (*((at, fwhm, share * height) for at, fwhm, height in lines[:-3]), *silicon)
    unnamed = 0
    for seed in range(10):
        counts = draw(GRATING, weak, np.random.default_rng(seed))
        found = assess(recording(GRATING, counts))
        assert found.material in (name, "silicon")
        if found.material == "silicon":
            unnamed += 1
            assert name not in found.reasons[-1].partition("no film of")[2].partition(";")[0]
    assert unnamed  # else it was not weak, and nothing was asked


def test_where_a_cosmic_ray_hit_a_line_may_have_been() -> None:
    bright = tuple((at, fwhm, 5 * height) for at, fwhm, height in SILICON)
    counts = draw(GRATING, bright, np.random.default_rng(1))
    counts[int(np.argmin(np.abs(GRATING - 404)))] += 9000
    said = denied(GRATING, counts)
    assert "no film of WS2, MoSe2, WSe2 or MoTe2; MoS2," in said


def test_of_a_map_the_spectra_in_which_something_stands_are_told() -> None:
    rng = np.random.default_rng(3)
    crumb = (*SILICON, (235.0, 4.0, 300.0))
    rows = [draw(GRATING, crumb if row < 2 else SILICON, rng) for row in range(9)]
    said = denied(GRATING, np.array(rows))
    assert "in 2 of 9 spectra something weak stands near 235 cm⁻¹" in said
