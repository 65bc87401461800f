"""Of films whose strain nobody knows a claim is as sure as it says, whatever their origin."""

from dataclasses import replace

import pytest

from clean_spots import spot
from films_drawn import FILMS, kept, origin_claims
from labharness.analysis.evidence import CVD_ROWS, ROWS_BY_ORIGIN, Reference
from labharness.analysis.layers import judge_layers

SIGNIFICANCE = 0.01


def refuted(p_values: list[float]) -> list[float]:
    """Return the p-values that Holm's procedure refutes at 1 % together."""
    left, out = len(p_values), []
    for value in sorted(p_values):
        if value * left >= SIGNIFICANCE:
            break
        out.append(value)
        left -= 1
    return out


@pytest.mark.thorough
@pytest.mark.promise(48)
def test_no_bin_of_any_origin_is_refuted() -> None:
    bins = {
        origin: kept(origin_claims(rows, seed))
        for seed, (origin, rows) in enumerate(sorted(ROWS_BY_ORIGIN.items()))
    }
    assert refuted([each.p_value for found in bins.values() for each in found]) == [], bins
    assert all(sum(each.claims for each in found) > FILMS / 5 for found in bins.values())


@pytest.mark.thorough
def test_the_test_would_see_the_strain_of_our_own_furnace_taken_for_everybodys() -> None:
    assert refuted([each.p_value for each in kept(origin_claims(CVD_ROWS, 0))])


@pytest.mark.promise(48)
def test_silicon_wider_than_the_instrument_says_nothing_of_brightness() -> None:
    usual = spot(19.9, a1g_si=0.4, pl=None)
    assert usual.silicon is not None
    doped = replace(usual, silicon=replace(usual.silicon, fwhm_cm1=11.0, narrowest_fwhm_cm1=3.0))
    known = Reference.stated(0.12, "a known monolayer")
    terms = [len(judge_layers([each] * 9, known).evidence) for each in (usual, doped)]
    assert terms == [2, 1]
    told = judge_layers([doped] * 9, known).notes
    assert "note.silicon_unused" in [note.code for note in told]
