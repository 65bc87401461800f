"""A layer count is reported with a confidence that is true, or not at all."""

from dataclasses import replace
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labharness.analysis import (
    LAYER_CLASSES,
    LayerVerdict,
    PeakFit,
    Reference,
    SiliconFit,
    SpotEvidence,
    judge_layers,
)
from labharness.analysis.evidence import CVD_ROW, THICK_LAYERS

REFERENCE = Reference()
CLEAN = PeakFit(
    e_position_cm1=384.1,
    e_position_sigma_cm1=0.15,
    e_fwhm_cm1=3.2,
    e_fwhm_sigma_cm1=0.1,
    e_height_counts=1700.0,
    e_height_sigma_counts=30.0,
    a_position_cm1=404.0,
    a_position_sigma_cm1=0.13,
    a_fwhm_cm1=4.8,
    a_fwhm_sigma_cm1=0.1,
    a_height_counts=4400.0,
    a_height_sigma_counts=40.0,
    separation_cm1=19.9,
    separation_sigma_cm1=0.2,
    snr_e=60.0,
    snr_a=150.0,
    reduced_chi2=1.0,
    converged=True,
    cosmic_near_line=False,
    pixel_cm1=0.6,
)
SILICON = SiliconFit(
    position_cm1=520.7,
    position_sigma_cm1=0.01,
    fwhm_cm1=3.4,
    height_counts=4400.0 / 0.12,
    height_sigma_counts=100.0,
)


def spot(
    separation_cm1: float = 19.9,
    *,
    a1g_si: float | None = None,
    pl: float | None = None,
    **changes: Any,
) -> SpotEvidence:
    """One clean spot; without ``a1g_si`` there is no silicon line."""
    fit = replace(CLEAN, separation_cm1=separation_cm1, **changes)
    silicon = (
        None if a1g_si is None else replace(SILICON, height_counts=fit.a_height_counts / a1g_si)
    )
    return SpotEvidence(fit, silicon, pl)


def verdict(*spots: SpotEvidence) -> LayerVerdict:
    return judge_layers(spots, REFERENCE)


@pytest.mark.parametrize(
    ("separation_cm1", "posterior"),
    [(18.5, 0.87), (19.0, 0.92), (19.5, 0.94), (20.0, 0.91), (20.5, 0.78)],
)
def test_a_separation_alone_says_one_layer_with_the_published_confidence(
    separation_cm1: float, posterior: float
) -> None:
    answer = judge_layers([spot(separation_cm1)], REFERENCE, (CVD_ROW,))
    assert answer.layer_count == 1
    assert verdict(spot(separation_cm1)).layer_count == 1
    assert answer.posterior[1] == pytest.approx(posterior, abs=0.012)
    assert answer.confidence == answer.posterior[1]


@pytest.mark.parametrize("separation_cm1", [21.0, 21.5, 22.0, 22.5, 23.0, 23.5, 24.0, 24.5])
def test_a_separation_alone_cannot_tell_two_to_five_layers_apart(separation_cm1: float) -> None:
    answer = verdict(spot(separation_cm1))
    assert answer.layer_count is None
    assert "0.75 is needed" in answer.reasons[0]
    assert len(answer.credible_set) >= 2
    assert sum(answer.posterior[n] for n in answer.credible_set) >= 0.9


@pytest.mark.parametrize("separation_cm1", [25.5, 26.0])
def test_a_bulk_separation_says_six_or_more(separation_cm1: float) -> None:
    answer = judge_layers([spot(separation_cm1)], REFERENCE, (CVD_ROW,))
    assert answer.layer_count == 6
    assert "6 means six or more" in answer.notes


def test_strain_that_thick_films_may_have_takes_a_bulk_count_from_the_separation_alone() -> None:
    answer = verdict(spot(25.5))
    assert answer.layer_count is None
    assert {5, 6} <= set(answer.credible_set)
    assert verdict(spot(26.2, a1g_si=2.4)).layer_count == 6


@given(
    st.lists(st.floats(16.0, 28.0), min_size=1, max_size=40),
    st.floats(0.0, 0.8),
    st.floats(1.0, 14.0),
)
@settings(deadline=None, max_examples=60)
def test_separations_alone_never_say_one_layer_above_945_however_many_spots(
    separations_cm1: list[float], sigma_cm1: float, e_fwhm_cm1: float
) -> None:
    answer = verdict(
        *(spot(d, separation_sigma_cm1=sigma_cm1, e_fwhm_cm1=e_fwhm_cm1) for d in separations_cm1)
    )
    assert answer.posterior[1] <= 0.945
    assert answer.confidence <= 0.945 or answer.layer_count != 1


@given(st.floats(18.0, 26.0), st.floats(0.05, 2.0), st.floats(0.01, 60.0), st.integers(2, 30))
@settings(deadline=None, max_examples=40)
def test_measuring_the_same_again_adds_no_confidence(
    separation_cm1: float, a1g_si: float, pl: float, times: int
) -> None:
    one = spot(separation_cm1, a1g_si=a1g_si, pl=pl, separation_sigma_cm1=0.0)
    once, often = verdict(one), verdict(*[one] * times)
    assert often.posterior == pytest.approx(once.posterior)
    assert often.layer_count == once.layer_count


@given(st.permutations([18.9, 19.4, 20.2, 22.1, 22.3, 15.0]))
@settings(deadline=None, max_examples=20)
def test_the_order_of_the_spots_does_not_matter(separations_cm1: list[float]) -> None:
    answer = verdict(*(spot(d) for d in separations_cm1))
    assert answer.layer_count == 1
    assert answer.peak_distance_cm1 == 19.4
    assert answer.spots_of_class == 3
    expected = {18.9: 1, 19.4: 1, 20.2: 1, 22.1: 2, 22.3: 2, 15.0: None}
    assert answer.spot_classes == tuple(expected[d] for d in separations_cm1)
    assert any("3 of 5 judged spots are 1" in note for note in answer.notes)
    assert any("at 1 of 6 spots" in note for note in answer.notes)


def test_a_clean_monolayer_reaches_95_percent_with_a_second_witness_and_not_without() -> None:
    assert verdict(spot()).confidence < 0.95
    assert verdict(spot(a1g_si=0.12)).confidence > 0.99
    assert verdict(spot(pl=20.0)).confidence > 0.99
    both = verdict(spot(a1g_si=0.12, pl=20.0))
    assert both.layer_count == 1
    assert both.confidence > 0.99
    assert [term.name for term in both.evidence] == [
        "A1g - E2g separation",
        "A1g/Si height ratio",
        "PL/Raman height ratio",
    ]
    assert all(term.systematic for term in both.evidence)
    assert all(tuple(term.log_likelihood) == LAYER_CLASSES for term in both.evidence)


def test_dark_and_thick_outweighs_a_separation_that_looks_like_one_layer() -> None:
    answer = verdict(spot(20.5, a1g_si=0.3, pl=0.5))
    assert answer.layer_count != 1
    assert answer.posterior[1] < 0.1


def test_no_photoluminescence_at_all_is_evidence_and_an_unmeasured_one_is_not() -> None:
    assert verdict(spot(pl=0.0)).posterior[1] < verdict(spot()).posterior[1]
    assert len(verdict(spot(pl=None)).evidence) == 1


@pytest.mark.parametrize("term", [{"a1g_si": 1e-6}, {"a1g_si": 1e6}, {"pl": 1e9}])
def test_an_absurd_ratio_is_an_outlier_and_decides_nothing(term: dict[str, float]) -> None:
    alone = verdict(spot())
    answer = verdict(spot(**term))
    assert answer.posterior[1] == pytest.approx(alone.posterior[1], abs=0.01)


def test_disordered_film_is_judged_by_three_tables_and_stays_undetermined() -> None:
    answer = verdict(spot(21.7, e_fwhm_cm1=5.7, separation_sigma_cm1=0.28))
    assert answer.layer_count is None
    assert answer.posterior[1] == pytest.approx(0.26, abs=0.02)
    assert answer.posterior[2] == pytest.approx(0.60, abs=0.02)
    assert any("disordered" in note for note in answer.notes)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"snr_e": 4.9}, "signal-to-noise"),
        ({"snr_a": 4.9}, "signal-to-noise"),
        ({"separation_sigma_cm1": 0.81}, "error of the separation"),
        ({"separation_sigma_cm1": float("nan")}, "error of the separation"),
        ({"separation_cm1": 16.9}, "outside 17–27.5"),
        ({"separation_cm1": 27.6}, "outside 17–27.5"),
        ({"e_fwhm_cm1": 0.4}, "narrower than 0.8 px"),
        ({"a_fwhm_cm1": 14.1}, "wider than 14"),
        ({"pixel_cm1": 3.1, "e_fwhm_cm1": 4.0}, "pixels wider than 3"),
        ({"cosmic_near_line": True}, "cosmic ray"),
        ({"converged": False}, "not converged"),
    ],
)
def test_a_spot_that_cannot_be_judged_says_why(changes: dict[str, Any], reason: str) -> None:
    bad = SpotEvidence(replace(CLEAN, **changes), None, None)
    answer = verdict(bad, bad)
    assert answer.layer_count is None
    assert answer.confidence == 0
    assert answer.credible_set == LAYER_CLASSES
    assert answer.peak_distance_cm1 is None
    assert any(reason in text and "2 of 2 spots" in text for text in answer.reasons)
    assert verdict(bad, spot()).layer_count == 1


@pytest.mark.parametrize(
    ("silicon", "reason"),
    [
        (replace(SILICON, position_cm1=527.6), "silicon more than 5"),
        (replace(SILICON, fwhm_cm1=11.0), "instrument wider than 7"),
    ],
)
def test_an_instrument_that_cannot_tell_is_not_asked(silicon: SiliconFit, reason: str) -> None:
    answer = verdict(SpotEvidence(CLEAN, silicon, None))
    assert answer.layer_count is None
    assert any(reason in text for text in answer.reasons)


def test_no_spot_is_no_verdict() -> None:
    assert verdict().reasons == ("no spot was measured",)


@pytest.mark.parametrize(
    ("changes", "quality"),
    [
        ({"snr_e": 10.0}, 1.0),
        ({"snr_e": 7.5}, 0.7),
        ({"snr_e": 5.0}, 0.5),
        ({"reduced_chi2": 2.0}, 0.9),
    ],
)
def test_weak_or_badly_fitting_lines_lower_the_confidence(
    changes: dict[str, float], quality: float
) -> None:
    answer = verdict(spot(19.5, **changes))
    assert answer.quality == pytest.approx(quality)
    assert answer.confidence == pytest.approx(quality * answer.posterior[1])


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_ratio_that_is_no_number_is_refused(value: float) -> None:
    with pytest.raises(ValueError, match="finite"):
        SpotEvidence(CLEAN, None, value)
    with pytest.raises(ValueError, match="a1g_si_monolayer"):
        Reference(a1g_si_monolayer=value)


def claims(chance: Random, samples: int, *, heavy_tails: bool) -> list[tuple[float, bool]]:
    """Draw films from the tables; return each reported confidence and whether it was right."""
    made: list[tuple[float, bool]] = []
    for _ in range(samples):
        truth = chance.choice(LAYER_CLASSES)
        layers = chance.choice(THICK_LAYERS) if truth == LAYER_CLASSES[-1] else truth
        spread = chance.gauss(0, 1)
        if heavy_tails:  # Student-t of 5 degrees of freedom.
            spread /= (sum(chance.gauss(0, 1) ** 2 for _ in range(5)) / 5) ** 0.5
        width = (CVD_ROW.tau_cm1[truth - 1] ** 2 + 0.15**2) ** 0.5
        separation = CVD_ROW.centre_cm1[truth - 1] + spread * width
        if heavy_tails and chance.random() < 0.03:
            separation = chance.uniform(17.0, 27.5)
        a1g_si = 0.12 * layers**1.3 * chance.lognormvariate(0, 0.35)
        pl = 20.0 * chance.lognormvariate(0, 0.8)
        if truth > 1:
            pl /= 32.0 * chance.lognormvariate(0, 1.15)
        answer = verdict(spot(separation + chance.gauss(0, 0.2), a1g_si=a1g_si, pl=pl))
        if answer.layer_count is not None:
            made.append((answer.confidence, answer.layer_count == truth))
    return made


BANDS = ((0.75, 0.9), (0.9, 0.99), (0.99, 1.01))


def stated_and_right(
    made: list[tuple[float, bool]], low: float, high: float
) -> tuple[float, float]:
    band = [claim for claim in made if low <= claim[0] < high]
    assert len(band) > 150
    return (
        sum(confidence for confidence, _ in band) / len(band),
        sum(right for _, right in band) / len(band),
    )


def test_stated_confidence_is_right_as_often_as_it_says() -> None:
    made = claims(Random(7), 4000, heavy_tails=True)
    for low, high in BANDS:
        stated, right = stated_and_right(made, low, high)
        assert right == pytest.approx(stated, abs=0.05)


def test_samples_better_behaved_than_assumed_are_never_claimed_too_surely() -> None:
    made = claims(Random(8), 3000, heavy_tails=False)
    for low, high in BANDS:
        stated, right = stated_and_right(made, low, high)
        assert right > stated - 0.02
