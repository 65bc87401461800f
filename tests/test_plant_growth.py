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


def grow(
    temperature_c: float,
    dwell_min: float = 10,
    moo3_mg: float = 15,
    sulfur_c: float = 200,
    flow_sccm: float = 50,
) -> Growth:
    """Ramp from 500 °C at 15 °C/min in 10 K stairs, dwell; the furnace itself is left out."""
    growth = Growth()
    stairs = [(40.0, float(stair_c)) for stair_c in range(500, round(temperature_c), 10)]
    for seconds, at_c in [*stairs, (dwell_min * 60, temperature_c)]:
        kelvin = at_c + 273.15
        metal_pa = delivered_metal_pa(crusted_moo3_pa(kelvin), moo3_mg, flow_sccm)
        sulfur_pa = delivered_sulfur_pa(sulfur_vapour_pa(sulfur_c + 273.15), 150.0, flow_sccm)
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


@pytest.mark.parametrize(
    ("temperature_c", "dwell_min", "moo3_mg", "first", "second", "edge_um"),
    [
        (650, 10, 15, 0.015, 0.0, 3.6),
        (700, 10, 15, 0.23, 0.0, 13.0),
        (750, 10, 15, 0.68, 0.021, None),
        (800, 10, 15, 0.97, 0.25, None),
        (850, 10, 15, 1.00, 0.87, None),
        (750, 5, 15, 0.33, 0.002, 21.0),
        (750, 30, 15, 1.00, 0.72, None),
        (750, 10, 5, 0.06, 0.0, 14.8),
        (750, 10, 60, 1.00, 0.985, None),
    ],
)
def test_the_calibration_points_come_back(
    temperature_c: float,
    dwell_min: float,
    moo3_mg: float,
    first: float,
    second: float,
    edge_um: float | None,
) -> None:
    growth = grow(temperature_c, dwell_min, moo3_mg)
    assert growth.coverage[0] == pytest.approx(first, abs=0.015)
    assert growth.coverage[1] == pytest.approx(second, abs=0.02)
    if edge_um is not None:
        assert growth.edge_um == pytest.approx(edge_um, rel=0.05)


def test_the_nuclei_at_750_degrees_are_two_thousand_a_square_millimetre() -> None:
    assert grow(750).nuclei_per_m2[0] == pytest.approx(2.1e9, rel=0.05)


def test_published_recipes_give_their_films() -> None:
    assert grow(600).coverage[0] < 0.001
    at_700 = grow(700).coverage
    assert 0.02 < at_700[0] < 0.3
    assert at_700[1] < 0.005
    assert 0.5 < grow(750).coverage[0] < 0.9
    assert grow(800).coverage[0] > 0.9
    assert sum(grow(900).coverage) == pytest.approx(3.5, abs=0.2)
    assert grow(750, sulfur_c=25).coverage[0] < 1e-6
    assert grow(750, sulfur_c=110).coverage[0] == pytest.approx(0.001, abs=0.001)
    assert sum(grow(750, flow_sccm=10).coverage) == pytest.approx(2.3, abs=0.1)
    assert grow(750, flow_sccm=200).coverage[0] == pytest.approx(0.06, abs=0.01)
    assert sum(grow(750, moo3_mg=200).coverage) > 5.9


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
