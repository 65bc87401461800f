"""The published-recipe table, as the whole harness reports it through its instruments.

Sources of the rows: the growth windows of powder MoS2 on SiO2/Si (van der Zande 2013,
10.1038/nmat3633; Najmaei 2013, 10.1038/nmat3673; Wang 2014, 10.1021/cm5025662). The short line's
dwell is its own; what is held here is the kind of film, not its numbers. The two ends of the table
are grown every day, what lies between in the long proofs.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from labharness.lab import LabPlan
from rig import Ran, approved_copy, submission

Run = Callable[..., Ran]


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
