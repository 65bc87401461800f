"""Growth in the simulated line: the calibration points, the window, and the film left behind."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labharness_simulators.plant import Film, Growth
from labharness_simulators.plant.sources import (
    crusted_moo3_pa,
    delivered_metal_pa,
    delivered_sulfur_pa,
    moo3_vapour_pa,
    sulfur_vapour_pa,
)


def grow(temperature_c: float, dwell_min: float = 10) -> Growth:
    """Ramp from 500 °C at 15 °C/min in 10 K stairs, dwell; the furnace itself is left out."""
    growth = Growth()
    sulfur_pa = delivered_sulfur_pa(sulfur_vapour_pa(200.0 + 273.15), 150.0, 50.0)
    stairs = [(40.0, float(stair_c)) for stair_c in range(500, round(temperature_c), 10)]
    for seconds, at_c in [*stairs, (dwell_min * 60, temperature_c)]:
        kelvin = at_c + 273.15
        metal_pa = delivered_metal_pa(crusted_moo3_pa(kelvin, sulfur_pa), 15.0, 50.0)
        for _ in range(round(seconds)):
            growth.advance(1.0, kelvin, metal_pa, sulfur_pa)
    return growth


@pytest.mark.parametrize(
    ("temperature_c", "pressure_pa"), [(600, 2.4), (650, 19), (700, 126), (750, 680), (800, 3140)]
)
def test_moo3_has_its_vapour_pressure(temperature_c: float, pressure_pa: float) -> None:
    assert moo3_vapour_pa(temperature_c + 273.15) == pytest.approx(pressure_pa, rel=0.03)


def test_sulfur_boils_at_444_6_degrees_and_gives_312_pa_at_200() -> None:
    assert sulfur_vapour_pa(444.6 + 273.15) == pytest.approx(101_325, rel=0.01)
    assert sulfur_vapour_pa(473.15) == pytest.approx(312, rel=0.01)
    assert sulfur_vapour_pa(290.0) == 0


def test_nothing_is_delivered_without_powder_or_without_flow() -> None:
    assert delivered_metal_pa(10.0, 0.0, 50.0) == 0
    assert delivered_metal_pa(10.0, 15.0, 0.0) == 0
    assert delivered_sulfur_pa(300.0, 0.0, 50.0) == 0
    assert delivered_sulfur_pa(300.0, 150.0, 0.0) == 0


def test_delivery_is_continuous_where_transport_dies_away() -> None:
    for deliver in (delivered_metal_pa, delivered_sulfur_pa):
        assert deliver(10.0, 15.0, 4.9999) == pytest.approx(deliver(10.0, 15.0, 5.0), rel=1e-3)


@settings(deadline=None, max_examples=20)
@given(
    history=st.lists(
        st.tuples(st.floats(723, 1273), st.floats(0, 0.3), st.floats(0, 30)), max_size=8
    )
)
def test_no_layer_covers_more_than_the_one_below(history: list[tuple[float, float, float]]) -> None:
    growth = Growth()
    for kelvin, metal_pa, sulfur_pa in history:
        for _ in range(200):
            growth.advance(1.0, kelvin, metal_pa, sulfur_pa)
        coverage = growth.coverage
        assert list(coverage) == sorted(coverage, reverse=True)
        assert 0 <= coverage[-1] <= coverage[0] <= 1


def test_heat_without_sulfur_takes_the_film_away_and_sulfur_protects_it() -> None:
    bare, kept = grow(800), grow(800)
    for _ in range(3600):
        bare.advance(1.0, 1223.15, 0.0, 0.0)
        kept.advance(1.0, 1223.15, 0.0, 20.0)
    assert bare.extended_area[0] < 0.96 * kept.extended_area[0]


def film_of(growth: Growth, seed: int = 7) -> Film:
    return Film(growth.nuclei_per_m2, growth.extended_area, seed)


def grid(film: Film) -> list[int]:
    places = [-490 + 20 * step for step in range(50)]
    return [film.layers_at(float(x), float(y)) for x in places for y in places]


@pytest.mark.parametrize("temperature_c", [650, 700, 750, 800, 850])
def test_a_film_covers_what_its_moments_say(temperature_c: float) -> None:
    growth = grow(temperature_c)
    layers = grid(film_of(growth))
    for wanted in (1, 2):
        share = sum(count >= wanted for count in layers) / len(layers)
        assert share == pytest.approx(growth.coverage[wanted - 1], abs=0.07)


def test_a_film_is_its_seed() -> None:
    growth = grow(700)
    assert grid(film_of(growth, 1)) == grid(film_of(growth, 1))
    assert grid(film_of(growth, 1)) != grid(film_of(growth, 2))


def test_a_film_ends_at_the_edge_of_its_square_millimetre() -> None:
    film = film_of(grow(900))
    assert film.layers_at(500.0, 0.0) >= 1
    assert film.layers_at(501.0, 0.0) == 0


def test_no_nuclei_make_a_bare_film() -> None:
    assert set(grid(film_of(Growth()))) == {0}


def test_a_burn_takes_one_spot_only() -> None:
    film = film_of(grow(900))
    before = film.layers_at(10.0, 10.0), film.layers_at(13.0, 10.0)
    film.burn(10.0, 10.0)
    assert before[0] > 0
    assert film.layers_at(10.5, 10.0) == 0
    assert film.layers_at(13.0, 10.0) == before[1]
