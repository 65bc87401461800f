"""Published growths come out of the simulated plant within a factor of two; what acts on them."""

import itertools
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from labharness.lab import LabPlan
from labharness_simulators.plant.reactions import arrival_share, burnt, film_kept, growth_share
from literature import NINE, PAGE, PAPERS, PLAIN, Film, Growth, page, played
from rig import Ran, Run, approved_copy, submission

AGREE_MIN = 7
"""Of nine; all of them did on 2026-11-23."""


def changed(**how: float) -> Film:
    return played(replace(PLAIN, **how))  # type: ignore[arg-type]  # every field named is a number


def test_seven_of_nine_published_growths_come_out_within_a_factor_of_two() -> None:
    assert len(NINE) == 9
    assert sum(played(each).agrees(each) for each in NINE) >= AGREE_MIN


def test_three_of_four_papers_come_out_to_which_nothing_was_fitted() -> None:
    assert sum(played(each).agrees(each) for each in PAPERS) >= 3


def test_the_page_says_what_the_plant_grew() -> None:
    assert PAGE.read_text("utf-8") == page(), "python tests/literature.py writes it again"


@pytest.mark.parametrize(
    "wrong", [Film(0.32, 0.05, 35.0, 0.4), Film(0.72, 0.12, 35.0, 0.8), Film(0.72, 0.05, 80.0, 0.8)]
)
def test_a_film_that_is_off_by_more_than_a_factor_of_two_does_not_agree(wrong: Film) -> None:
    said = Growth("", "", 750, 10, first=(0.72, 0.72), second=(0.05, 0.05), edge_um=(35.0, 35.0))
    assert Film(0.5, 0.08, 60.0, 0.6).agrees(said)
    assert not wrong.agrees(said)


def test_the_hotter_the_more_until_it_is_thick() -> None:
    films = [changed(temperature_c=each) for each in (600.0, 650.0, 700.0, 750.0, 800.0, 900.0)]
    layers = [film.layers for film in films]
    assert layers == sorted(layers)
    assert layers[0] < 0.001
    assert layers[-1] > 2.5


def test_hydrogen_makes_domains_smaller_the_more_there_is() -> None:
    films = [changed(argon_sccm=50.0 - each, hydrogen_sccm=each) for each in (0.0, 1.0, 5.0, 10.0)]
    assert films[1].first == pytest.approx(films[0].first, rel=0.05), "2 % do little"
    assert films[2].first < 0.8 * films[0].first
    assert films[3].first < 0.5 * films[2].first
    assert films[3].edge_um < 0.6 * films[0].edge_um


def test_oxygen_acts_little_by_little() -> None:
    films = [changed(air_sccm=each).first for each in (0.0, 0.005, 0.02, 0.05, 0.1, 0.25, 1.0)]
    assert films == sorted(films, reverse=True)
    assert films[1] > 0.95 * films[0], "20 ppm"
    assert 0.2 < films[3] / films[0] < 0.8, "200 ppm"
    assert films[-1] < 1e-3, "0.4 %"
    for one, next_ in itertools.pairwise(films[:5]):
        assert next_ > 0.2 * one, "no step"


def test_too_little_sulfur_and_too_much_both_grow_less() -> None:
    least, less, usual, more = (
        changed(sulfur_c=each).first for each in (110.0, 150.0, 190.0, 250.0)
    )
    assert least < 0.01
    assert less < 0.7 * usual
    assert more < 0.7 * usual


def test_at_a_lower_pressure_more_arrives() -> None:
    sea, town, thin = (changed(ambient_torr=each).layers for each in (760.0, 626.0, 300.0))
    assert 1.05 * sea < town < 2 * sea
    assert thin > 1.5 * sea


def test_a_heavy_boat_grows_thicker_but_not_in_proportion() -> None:
    usual, heavy, heavier = (changed(moo3_mg=each).layers for each in (15.0, 60.0, 400.0))
    assert usual < heavy < heavier < 2 * heavy


def test_a_slow_gas_makes_larger_and_fewer_triangles_and_a_fast_one_sparse_ones() -> None:
    slow, usual, fast = (changed(argon_sccm=each) for each in (10.0, 50.0, 200.0))
    assert slow.layers > usual.layers > fast.layers
    assert slow.edge_um > usual.edge_um > fast.edge_um


def test_sulfur_and_oxygen_burn_in_the_ratio_of_their_reaction() -> None:
    sulfur_pa, oxygen_pa = burnt(10.0, 40.0)
    assert (10.0 - sulfur_pa) * 8 == pytest.approx(40.0 - oxygen_pa)
    assert burnt(0.0, 40.0) == (0.0, 40.0)
    assert burnt(10.0, 0.0) == (10.0, 0.0)
    assert burnt(10.0, 1.0)[1] < 0.02
    assert burnt(1e-6, 40.0)[1] == pytest.approx(40.0, rel=1e-6)


def test_shares_are_one_where_nothing_acts() -> None:
    assert growth_share(0.0) == film_kept(0.0, 60.0) == arrival_share(101_325.0) == 1.0
    assert growth_share(15_199.0) == pytest.approx(0.5, rel=1e-3)


@pytest.fixture
def hot_plan(tmp_path: Path) -> LabPlan:
    return approved_copy(tmp_path, temperature_c_max=949.0)


def grow(run_task: Run, plan: LabPlan, temperature_c: float, **recipe: Any) -> Ran:
    bounds = {"min": temperature_c, "max": temperature_c, "unit": "celsius"}
    return run_task(plan, submission(temperature_range=bounds, recipe=recipe), seed=3)


@pytest.mark.thorough
def test_nothing_grows_at_600_degrees(hot_plan: LabPlan, run_task: Run) -> None:
    ran = grow(run_task, hot_plan, 600)
    assert ran.body["error_code"] == "execution_error"
    assert "film" in ran.body["error_message"]
    assert ran.truth["coverage"][0] < 0.01


@pytest.mark.soak
def test_isolated_monolayers_grow_at_700_degrees(hot_plan: LabPlan, run_task: Run) -> None:
    ran = grow(run_task, hot_plan, 700)
    assert ran.body["outputs"]["layer_count"] == 1
    assert 0.02 < ran.truth["coverage"][0] < 0.6
    assert ran.truth["coverage"][1] < 0.02


@pytest.mark.soak
def test_a_film_with_few_bilayers_grows_at_780_degrees(hot_plan: LabPlan, run_task: Run) -> None:
    ran = grow(run_task, hot_plan, 780)
    assert ran.body["outputs"]["layer_count"] == 1
    assert ran.truth["coverage"][0] > 0.6
    assert 0.0 < ran.truth["coverage"][1] < 0.5


@pytest.mark.soak
def test_multilayers_at_900_degrees_are_not_called_a_monolayer(
    hot_plan: LabPlan, run_task: Run
) -> None:
    ran = grow(run_task, hot_plan, 900)
    assert ran.truth["mean_layers"] > 2
    assert ran.body.get("outputs", {}).get("layer_count") != 1


@pytest.mark.soak
def test_nothing_grows_with_the_sulfur_cold(hot_plan: LabPlan, run_task: Run) -> None:
    # 25 mg leave 1 % of triangles, of which a survey of 49 places may meet one
    ran = grow(run_task, hot_plan, 750, sulfur_temperature_c=116, moo3_mass_mg=5)
    assert "no film" in ran.body["error_message"]
    assert ran.truth["coverage"][0] < 0.002


@pytest.mark.soak
def test_too_much_oxide_grows_thick(hot_plan: LabPlan, run_task: Run) -> None:
    ran = grow(run_task, hot_plan, 750, moo3_mass_mg=200)
    assert ran.truth["mean_layers"] > 1.5
