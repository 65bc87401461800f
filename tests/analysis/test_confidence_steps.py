"""A count is no surer than the steps between classes are: each class has room of its own."""

from random import Random

import pytest

from clean_spots import spot
from films_drawn import MANY, kept, mixed_claims
from labharness.analysis import census
from labharness.analysis.evidence import LAYER_CLASSES, Reference
from labharness.analysis.layers import SpotEvidence, judge_layers
from plants_drawn import PLANTS

SIGNIFICANCE = 0.01
SURE = 0.95
COMPRESSED = next(plant for plant in PLANTS if plant.name == "steps compressed")


@pytest.mark.promise(48)
@pytest.mark.thorough  # 90 films
def test_films_whose_steps_are_shorter_than_the_tables_are_not_surely_miscounted() -> None:
    made = mixed_claims(COMPRESSED, "uncalibrated", 60)
    made += mixed_claims(COMPRESSED, "uncalibrated", 30, spots=MANY)
    assert len([each for each in made if each.said and each.confidence >= SURE]) >= 3
    assert [each for each in kept(made) if each.p_value < SIGNIFICANCE] == []


def mixed(step_cm1: float, low: int, high: int) -> list[SpotEvidence]:
    """Some spots stand higher by a step, and are half as bright again."""
    chance = Random(9)
    rows = [(22.9, 0.5)] * low + [(22.9 + step_cm1, 0.73)] * high
    return [spot(at + chance.gauss(0, 0.1), a1g_si=ratio) for at, ratio in rows]


@pytest.mark.promise(48)
def test_a_step_is_not_read_off_the_table_as_if_every_film_knew_it() -> None:
    """Two and three layers stand 1.3 apart by the table, three and four 0.8: both may be so."""
    found = judge_layers(mixed(1.3, 20, 20), Reference())
    assert found.confidence < 0.6
    assert found.posterior[4] > 0.1


@pytest.mark.promise(48)
@pytest.mark.thorough  # thousands of hypotheses
@pytest.mark.parametrize(("step_cm1", "low", "high"), [(0.8, 20, 4), (1.8, 12, 12)])
@pytest.mark.parametrize("shift_cm1", [0.0, 1.7])
def test_what_is_dropped_and_merged_changes_no_answer(
    step_cm1: float, low: int, high: int, shift_cm1: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second class of a film comes late, and tells most of which classes the two are."""
    spots = [
        spot(each.fit.separation_cm1 + shift_cm1, a1g_si=0.5 if index < low else 0.73, pl=0.1)
        for index, each in enumerate(mixed(step_cm1, low, high))
    ]
    found = judge_layers(spots, Reference())
    monkeypatch.setattr(census, "SETTLED", len(spots) + 1)
    monkeypatch.setattr(census, "BEAM_BEFORE", 4000)
    monkeypatch.setattr(census, "PRUNED_LN", 30.0)
    whole = judge_layers(spots, Reference())
    for name in LAYER_CLASSES:
        assert found.posterior[name] == pytest.approx(whole.posterior[name], abs=0.03)
