"""One bad row spoils no file, silicon calibrates only where it is silicon, and more never harms."""

from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from drawn_spectra import MATERIALS, SILICON, draw, recording
from labharness.analysis.assess import Assessment, assess

Array = NDArray[np.float64]
AXIS = np.arange(100.0, 700.0, 0.6)
MONOLAYER = ((384.3, 3.2, 1200.0), (403.9, 5.0, 1800.0), *SILICON)


def film(rows: int, seed: int = 1) -> Array:
    rng = np.random.default_rng(seed)
    return np.array([draw(AXIS, MONOLAYER, rng) for _ in range(rows)])


def saturated(row: Array, share: float = 0.4) -> Array:
    cut_off: Array = np.minimum(row, share * row.max())
    return cut_off


# ---- rows that are no spectra


def test_dead_rows_are_left_out_and_named() -> None:
    rows = film(40)
    rows[[3, *range(20, 39)]] = 0.0
    found = assess(recording(AXIS, rows))
    assert found.verdict is not None
    assert found.verdict.layer_count == 1
    assert "spectra 4, 21, 22, 23, 24 and 15 more of 40 left out: dead, without any noise" in (
        found.notes
    )
    assert [each for each, name in enumerate(found.materials) if name == "not judged"] == [
        3,
        *range(20, 39),
    ]
    assert len(found.spectra) == len(found.silicon) == len(found.fits) == 40
    assert found.named[3] is None


def test_a_row_of_a_constant_bias_is_dead_too() -> None:
    rows = film(3)
    rows[1] = 317.0
    assert assess(recording(AXIS, rows)).materials == ("MoS2", "not judged", "MoS2")


@pytest.mark.parametrize("level", [0.05, 0.4, 0.9])
def test_a_row_whose_brightest_line_is_cut_off_is_left_out(level: float) -> None:
    # Silicon of 11 cm⁻¹, so that its top is many pixels wide.
    wide = ((384.3, 3.2, 1200.0), (403.9, 5.0, 1800.0), (520.7, 11.0, 20_000.0))
    rng = np.random.default_rng(2)
    rows = np.array([draw(AXIS, wide, rng) for _ in range(3)])
    rows[1] = np.minimum(rows[1], level * rows[1].max())
    found = assess(recording(AXIS, rows))
    assert found.materials == ("MoS2", "not judged", "MoS2")
    assert "spectrum 2 of 3 left out: saturated" in found.notes


def test_a_camera_full_everywhere_is_left_out() -> None:
    rows = film(3)
    rows[2] = 65_535.0 - np.maximum(np.random.default_rng(1).normal(0, 9, AXIS.size), 0)
    assert assess(recording(AXIS, rows)).materials[2] == "not judged"


@pytest.mark.parametrize("fwhm_cm1", [60.0, 200.0, 900.0])
def test_a_broad_hill_is_not_saturation(fwhm_cm1: float) -> None:
    hill = (*MONOLAYER, (550.0, fwhm_cm1, 60_000.0))
    row = draw(AXIS, hill, np.random.default_rng(3))
    assert assess(recording(AXIS, row)).left_out == ("",)


def test_the_laser_itself_may_be_cut_off() -> None:
    axis = np.arange(-60.0, 700.0, 0.6)
    row = draw(axis, (*MONOLAYER, (0.0, 6.0, 1e6)), np.random.default_rng(3))
    found = assess(recording(axis, np.array([np.minimum(row, 60_000.0)] * 2)))
    assert found.left_out == ("", "")


def test_what_is_the_only_spectrum_is_judged_and_its_flat_top_told() -> None:
    found = assess(recording(AXIS, saturated(film(1)[0], 0.05)))
    assert found.left_out == ("",)
    assert any("the camera was saturated" in note for note in found.notes)


def test_a_file_without_any_noise_is_no_measurement() -> None:
    with pytest.raises(ValueError, match="carry no noise"):
        assess(recording(AXIS, np.zeros((4, AXIS.size))))


def test_a_spectrum_of_a_few_photons_has_noise() -> None:
    counts = np.random.default_rng(1).poisson(0.05, AXIS.size).astype(float)
    assert assess(recording(AXIS, counts)).material == "unknown"


def test_a_window_of_fewer_than_forty_pixels_is_a_spectrum() -> None:
    inside = (AXIS >= 510.5) & (AXIS <= 532.0)
    assert inside.sum() < 40
    found = assess(recording(AXIS[inside], film(1)[0][inside]))
    assert found.material == "silicon"


def test_what_many_rows_see_in_one_pixel_is_a_narrow_line_and_no_cosmic_ray() -> None:
    # Pixels of 1.6 cm⁻¹ under lines of 3.2: one spectrum alone cannot tell, a map can.
    axis = np.arange(100.0, 700.0, 1.6)
    rng = np.random.default_rng(3)
    lines = ((384.0, 3.2, 3000.0), (404.0, 3.6, 4000.0), *SILICON)
    rows = np.array([draw(axis, lines, rng) for _ in range(20)])
    found = assess(recording(axis, rows))
    assert set(found.materials) == {"MoS2"}
    assert not any(fit.cosmic_near_line for fit in found.fits if fit is not None)
    hot = rows.copy()
    hot[:, int(np.argmin(np.abs(axis - 393.0)))] += 30_000
    for before, after in zip(found.fits, assess(recording(axis, hot)).fits, strict=True):
        assert before is not None
        assert after is not None
        assert after.separation_cm1 == pytest.approx(before.separation_cm1, abs=0.05)


# ---- silicon as a ruler


def test_a_line_narrower_than_silicon_can_be_moves_no_axis() -> None:
    for fwhm_cm1, step_cm1 in ((1.0, 0.2), (2.1, 1.5)):
        axis = np.arange(300.0, 700.0, step_cm1)
        row = draw(axis, ((523.0, fwhm_cm1, 3000.0),), np.random.default_rng(1))
        found = assess(recording(axis, row))
        assert found.offset_cm1 == 0.0
        assert found.silicon == (None,)


@pytest.mark.parametrize(("of", "calibrates"), [(1, False), (10, False), (20, False), (21, True)])
def test_silicon_calibrates_where_most_spectra_show_it(of: int, calibrates: bool) -> None:
    rng = np.random.default_rng(6)
    bare = ((384.3, 3.2, 1200.0), (403.9, 5.0, 1800.0))
    rows = [draw(AXIS, bare, rng) for _ in range(40 - of)]
    rows += [draw(AXIS, MONOLAYER, rng, offset_cm1=-1.5) for _ in range(of)]
    found = assess(recording(AXIS, np.array(rows)))
    assert found.offset_cm1 == pytest.approx(1.5 if calibrates else 0.0, abs=0.05)


def test_rows_in_which_nothing_stands_out_say_nothing_against_silicon() -> None:
    rng = np.random.default_rng(6)
    rows = [draw(AXIS, MONOLAYER, rng), *(draw(AXIS, (), rng) for _ in range(9))]
    assert assess(recording(AXIS, np.array(rows))).silicon[0] is not None


def test_the_instrument_is_no_wider_than_the_narrowest_line() -> None:
    # A doped wafer: silicon 11 cm⁻¹ wide, E2g of the film 2.4.
    lines = ((384.3, 2.4, 4000.0), (403.9, 4.6, 6000.0), (520.0, 11.0, 20_000.0))
    found = assess(recording(AXIS, draw(AXIS, lines, np.random.default_rng(2))))
    (silicon,) = found.silicon
    assert silicon is not None
    assert silicon.instrument_fwhm_cm1 == pytest.approx(2.4, abs=0.2)
    assert silicon.is_wider_than_instrument
    assert found.verdict is not None
    assert found.verdict.layer_count == 1
    assert any("doped or strained silicon" in note for note in found.notes)


# ---- more is never worse


def worth(found: Assessment, material: str) -> int:
    """Return 0 for no name, 1 for the right one, 2 for the right count; less for a wrong one."""
    if found.material != material:
        return 0 if found.material in ("unknown", "silicon", "sapphire", "SiO2") else -1
    if found.verdict is None or found.verdict.layer_count is None:
        return 1
    return 2 if found.verdict.layer_count == 1 else -1


edges = st.lists(st.floats(100.0, 700.0), min_size=2, max_size=6)


def cut(axis: Array, bounds: list[float]) -> NDArray[np.bool_]:
    """Keep every second stretch between the bounds: windows with gaps."""
    inside = np.zeros(axis.size, dtype=bool)
    for low, high in list(pairwise(sorted(bounds)))[::2]:
        inside |= (axis >= low) & (axis <= high)
    return inside


@given(st.integers(0, 2**32 - 1), edges, edges)
@settings(deadline=None, max_examples=15)
def test_a_file_with_more_of_the_axis_is_never_worth_less(
    seed: int, first: list[float], second: list[float]
) -> None:
    row = film(1, seed)[0]
    less = cut(AXIS, [350.0, 450.0]) | cut(AXIS, first)
    more = less | cut(AXIS, second)
    of_less = worth(assess(recording(AXIS[less], row[less])), "MoS2")
    of_more = worth(assess(recording(AXIS[more], row[more])), "MoS2")
    assert of_more >= of_less >= 0
    assert worth(assess(recording(AXIS, row)), "MoS2") >= of_more


@given(st.sampled_from(sorted(MATERIALS)), st.integers(0, 2**32 - 1), st.data())
@settings(deadline=None, max_examples=15)
def test_a_wider_window_never_loses_a_name(what: str, seed: int, data: st.DataObject) -> None:
    axis = np.arange(100.0, 3200.0, 1.2)
    name, lines = MATERIALS[what]
    row = draw(axis, lines, np.random.default_rng(seed))
    low = data.draw(st.integers(0, 1200))
    high = data.draw(st.integers(low + 150, axis.size))
    part = assess(recording(axis[low:high], row[low:high]))
    whole = assess(recording(axis, row))
    if part.material == name:
        assert whole.material == name


@given(st.integers(0, 2**32 - 1), st.lists(st.sampled_from("dsbnc"), min_size=1, max_size=8))
@settings(deadline=None, max_examples=8)
def test_more_rows_never_take_a_count_away(seed: int, kinds: list[str]) -> None:
    rng = np.random.default_rng(seed)
    rows = film(3, seed)
    added: dict[str, Callable[[], Array]] = {
        "d": lambda: np.zeros(AXIS.size),
        "s": lambda: saturated(draw(AXIS, ((384.3, 3.2, 900.0), (520.7, 11.0, 2e4)), rng)),
        "b": lambda: draw(AXIS, SILICON, rng),
        "n": lambda: draw(AXIS, (), rng),
        "c": lambda: draw(AXIS, MONOLAYER, rng) + 40_000 * (np.arange(AXIS.size) == 500),
    }
    before = assess(recording(AXIS, rows))
    after = assess(recording(AXIS, np.vstack([rows, *(added[kind]() for kind in kinds)])))
    assert after.materials[:3] == before.materials == ("MoS2",) * 3
    assert worth(after, "MoS2") >= worth(before, "MoS2") == 2
