"""A layer count is reported with a confidence that is true, or not at all."""

from dataclasses import replace
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clean_spots import CLEAN, SILICON, spot
from labharness.analysis.evidence import CVD_ROW, EXFOLIATED_ROW, LAYER_CLASSES, Reference
from labharness.analysis.layers import LayerVerdict, SpotEvidence, judge_layers
from labharness.analysis.peaks import SiliconFit

REFERENCE = Reference()
CALIBRATED = Reference(
    a1g_si_uncertainty=0.02,
    a1g_si_source="a known monolayer",
    pl_raman_uncertainty=4.0,
    pl_raman_source="the same",
)


def verdict(*spots: SpotEvidence) -> LayerVerdict:
    return judge_layers(spots, REFERENCE)


@pytest.mark.parametrize(
    ("separation_cm1", "posterior"), [(18.5, 0.915), (19.0, 0.910), (19.5, 0.845), (19.8, 0.766)]
)
def test_a_separation_alone_says_one_layer_less_surely_where_a_twisted_bilayer_may_be(
    separation_cm1: float, posterior: float
) -> None:
    answer = judge_layers([spot(separation_cm1)], None)
    assert answer.layer_count == 1
    assert answer.posterior[1] == pytest.approx(posterior, abs=0.012)
    assert answer.confidence == answer.posterior[1]
    assert answer.claim is not None
    assert answer.claim.headline == "monolayer at the one place measured"


@pytest.mark.parametrize("separation_cm1", [20.4, 20.6, 20.8])
def test_what_may_be_a_twisted_bilayer_is_not_counted_by_its_separation(
    separation_cm1: float,
) -> None:
    answer = judge_layers([spot(separation_cm1)] * 9, None)
    assert answer.layer_count is None
    assert {1, 2} <= set(answer.credible_set)


@pytest.mark.parametrize("separation_cm1", [21.0, 21.5, 22.0, 22.5, 23.0, 23.5, 24.0, 24.5])
def test_a_separation_alone_cannot_tell_two_to_five_layers_apart(separation_cm1: float) -> None:
    answer = verdict(spot(separation_cm1))
    assert answer.layer_count is None
    assert "0.75 is needed" in answer.reasons[0]
    assert len(answer.credible_set) >= 2
    assert sum(answer.posterior[n] for n in answer.credible_set) >= 0.95


@pytest.mark.parametrize("separation_cm1", [25.5, 26.0])
def test_a_bulk_separation_says_six_or_more(separation_cm1: float) -> None:
    answer = judge_layers([spot(separation_cm1)], None, (EXFOLIATED_ROW,))
    assert answer.layer_count == 6
    assert judge_layers([spot(separation_cm1)], None, (CVD_ROW,)).layer_count is None
    assert "6 means six or more" in answer.notes


def test_strain_that_thick_films_may_have_takes_a_bulk_count_from_the_separation_alone() -> None:
    answer = verdict(spot(25.5))
    assert answer.layer_count is None
    assert {5, 6} <= set(answer.credible_set)
    assert judge_layers([spot(26.2, a1g_si=2.4)], CALIBRATED).layer_count == 6


@given(
    st.lists(st.floats(16.0, 28.0), min_size=1, max_size=8),
    st.floats(0.0, 0.8),
    st.floats(1.0, 14.0),
)
@settings(deadline=None, max_examples=60)
def test_separations_alone_never_say_one_layer_of_a_place_above_96(
    separations_cm1: list[float], sigma_cm1: float, e_fwhm_cm1: float
) -> None:
    for d in separations_cm1:
        one = spot(d, separation_sigma_cm1=sigma_cm1, e=replace(CLEAN.e, fwhm_cm1=e_fwhm_cm1))
        answer = judge_layers([one], None)
        assert answer.posterior.get(1, 0.0) <= 0.96
        assert answer.confidence <= 0.96 or answer.layer_count != 1


@pytest.mark.parametrize(
    ("separation_cm1", "a1g_si"), [(19.0, 0.1), (20.6, 0.2), (22.0, 0.3), (23.5, 0.6), (25.5, 1.5)]
)
@pytest.mark.parametrize("reference", [None, Reference()])
def test_measuring_the_same_again_says_nothing_new_of_what_all_spots_share(
    separation_cm1: float, a1g_si: float, reference: Reference | None
) -> None:
    """A film that is twice as strained is so at every spot."""
    one = spot(separation_cm1, a1g_si=a1g_si, pl=3.0)
    once, often = judge_layers([one], reference), judge_layers([one] * 30, reference)
    for name in LAYER_CLASSES:
        assert often.posterior[name] == pytest.approx(once.posterior[name], abs=0.12)


@given(st.permutations([18.9, 19.4, 20.2, 22.1, 22.3, 15.0]))
@settings(deadline=None, max_examples=20)
def test_the_order_of_the_spots_does_not_matter(separations_cm1: list[float]) -> None:
    spots = [spot(d, a1g_si=0.12 if d < 21 else 0.3) for d in separations_cm1]
    answer = judge_layers(spots, CALIBRATED)
    assert answer.claim is not None
    assert answer.claim.kind == "mixed"
    assert answer.layer_count == 1
    assert answer.confidence == pytest.approx(0.62, abs=0.05)
    assert answer.peak_distance_cm1 == 19.4
    assert answer.spots_of_class == 3
    expected = {18.9: 1, 19.4: 1, 20.2: 1, 22.1: 2, 22.3: 2, 15.0: None}
    assert answer.spot_classes == tuple(expected[d] for d in separations_cm1)
    assert any("3 of 5 judged spots are 1" in note for note in answer.notes)
    assert any("at 1 of 6 spots" in note for note in answer.notes)


def test_a_clean_monolayer_reaches_95_percent_on_a_calibrated_microscope_alone() -> None:
    def sure(one: SpotEvidence, reference: Reference | None) -> float:
        return judge_layers([one], reference).confidence

    assert sure(spot(a1g_si=0.12), None) == sure(spot(), None) < 0.85
    assert sure(spot(a1g_si=0.12), Reference()) < 0.9
    assert sure(spot(a1g_si=0.12), CALIBRATED) > 0.93
    both = judge_layers([spot(a1g_si=0.12, pl=20.0)], CALIBRATED)
    assert both.layer_count == 1
    assert both.confidence > 0.99
    assert [term.name for term in both.evidence] == [
        "A1g - E2g separation",
        "A1g/Si height ratio",
        "PL/Raman height ratio",
    ]
    assert all(term.systematic for term in both.evidence)
    assert all(tuple(term.log_likelihood) == LAYER_CLASSES for term in both.evidence)
    assert "a known monolayer" in both.evidence[1].systematic
    uncalibrated = verdict(spot(a1g_si=0.12, pl=20.0)).evidence
    assert "not calibrated on this microscope" in uncalibrated[1].systematic
    assert "not calibrated on this microscope" in uncalibrated[2].systematic


@pytest.mark.parametrize("oxide", [0.5, 2.0, 3.0])
def test_another_oxide_and_a_quenched_film_take_the_count_from_an_uncalibrated_microscope(
    oxide: float,
) -> None:
    """They stated 0.98 before, and were right in 0.27."""
    twisted = verdict(spot(20.6, a1g_si=0.3 * oxide, pl=0.02))
    assert twisted.confidence < 0.9
    dark = verdict(spot(20.0, a1g_si=0.12 * oxide, pl=20.0 / 30))
    assert dark.confidence < 0.85


def test_nine_spots_are_a_film_and_two_are_only_most_of_it() -> None:
    one = spot(a1g_si=0.12, pl=20.0)
    nine, two = judge_layers([one] * 9, CALIBRATED), judge_layers([one] * 2, CALIBRATED)
    assert nine.claim is not None
    assert two.claim is not None
    assert nine.claim.headline == "monolayer on at least 75 % of the film"
    assert 0.95 < nine.confidence < 0.99
    assert two.claim.headline == "monolayer on most of the film"
    assert nine.shares[1].low > two.shares[1].low


def test_the_stronger_claim_is_made_only_where_it_is_as_sure_as_the_caller_asks() -> None:
    spots = [spot(a1g_si=0.12, pl=20.0)] * 8 + [spot(22.1, a1g_si=0.3, pl=0.6)]
    usual = judge_layers(spots, CALIBRATED)
    strict = judge_layers(spots, CALIBRATED, level=0.95)
    assert usual.claim is not None
    assert strict.claim is not None
    assert usual.claim.kind == "film"
    assert usual.confidence == pytest.approx(0.83, abs=0.03)
    assert strict.claim.headline == "mixed: 89 % one layer, 10 % two"
    assert strict.confidence > 0.95
    assert usual.layer_count == strict.layer_count == 1


def test_sixty_spots_are_judged_without_a_long_pause() -> None:
    chance = Random(3)
    spots = [
        spot(chance.gauss(*at), a1g_si=ratio * chance.lognormvariate(0, 0.05), pl=pl)
        for at, ratio, pl in [((19.9, 0.1), 0.12, 20.0)] * 40 + [((22.0, 0.1), 0.3, 0.6)] * 20
    ]
    answer = verdict(*spots)
    assert answer.claim is not None
    assert answer.claim.headline == "mixed: 67 % one layer, 33 % two"
    many = verdict(*spots * 4)
    assert many.shares[1].mean == pytest.approx(2 / 3, abs=0.01)
    assert many.shares[1].high - many.shares[1].low < answer.shares[1].high - answer.shares[1].low


def test_dark_and_thick_outweighs_a_separation_that_looks_like_one_layer() -> None:
    answer = judge_layers([spot(20.5, a1g_si=0.3, pl=0.5)], CALIBRATED)
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
    answer = verdict(spot(21.7, e=replace(CLEAN.e, fwhm_cm1=5.7), separation_sigma_cm1=0.28))
    assert answer.layer_count is None
    assert answer.posterior[1] == pytest.approx(0.29, abs=0.03)
    assert answer.posterior[2] == pytest.approx(0.54, abs=0.03)
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
        ({"e": replace(CLEAN.e, fwhm_cm1=0.4)}, "narrower than 0.8 px"),
        ({"a": replace(CLEAN.a, fwhm_cm1=14.1)}, "wider than 14"),
        ({"pixel_cm1": 3.1, "e": replace(CLEAN.e, fwhm_cm1=4.0)}, "pixels wider than 3"),
        ({"cosmic_near_line": True}, "cosmic ray"),
        ({"converged": False}, "not converged"),
    ],
)
def test_a_spot_that_cannot_be_judged_says_why(changes: dict[str, Any], reason: str) -> None:
    bad = SpotEvidence(replace(CLEAN, **changes), None, None)
    answer = verdict(bad, bad)
    assert answer.layer_count is None
    assert answer.confidence == 0
    assert answer.posterior == {}
    assert answer.claim is None
    assert answer.peak_distance_cm1 is None
    assert any(reason in text and "2 of 2 spots" in text for text in answer.reasons)
    assert verdict(bad, spot(19.5)).layer_count == 1


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
        ({"reduced_chi2": 40.0, "separation_sigma_cm1": 0.02}, 1.0),
    ],
)
def test_weak_lines_lower_the_confidence_and_bright_ones_that_fit_badly_do_not(
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
