"""Spectra of known films become the right answer, or none; never a wrong one with confidence."""

import random
from dataclasses import replace
from typing import Any

import pytest

from labharness.analysis.film import peak_height
from labharness.work.capability import Answer, NoAnswer
from labharness.work.capability.cvd.answer import compose
from labharness.work.capability.raman_verdict import judge, raman_shift, sees_film
from labharness.work.plan import Instruction, Status, StepRecord
from labharness_simulators.plant import Sample, Spectrometer
from labharness_simulators.plant.sample import draw_sample
from labharness_simulators.plant.spectrum import Light, RamanLine, light_of

LASER_MW, DARK, RAMAN_S, PL_S = 0.3, 300.0, 10.0, 1.0
CALIBRATED = {
    "a1g_si": {"value": 0.12, "uncertainty": 0.02, "date": "2025-01-15", "on": "a known monolayer"},
    "pl_raman": {"value": 20.0, "uncertainty": 5.0, "date": "2025-01-15", "on": "the same"},
}
NOMINAL = Sample("nominal", "SiO2/Si")


def looking_at(
    layers: int, sample: Sample, x_um: float, chance: random.Random, la_over_e: float = 0.0
) -> Spectrometer:
    def look(exposure_s: float) -> Light:
        light = light_of(sample, layers, x_um, 0.0, LASER_MW, exposure_s)
        if not la_over_e:
            return light
        la = RamanLine(227.0, 15.0, la_over_e * light.lines[3].height)  # 3 is E2g
        return replace(light, lines=(*light.lines, la))

    return Spectrometer(look, chance)


def measured(
    layers: int, sample: Sample = NOMINAL, spots: int = 3, la_over_e: float = 0.0
) -> dict[str, Any]:
    """Take spectra of some spots as the verbs do, and return what the analysis step would."""
    chance = random.Random(7)
    found, heights = [], []
    for spot in range(spots):
        place = (60.0 * spot, 0.0)
        camera = looking_at(layers, sample, place[0], chance, la_over_e)
        shift = raman_shift(532.0, camera.wavelengths_nm())
        counts = camera.exposure(RAMAN_S)
        row = {"x_um": place[0], "y_um": 0.0, "exposure_s": RAMAN_S}
        found.append({**row, "raman_shift": shift, "counts": counts})
        camera.centre_nm = 665.0
        camera.advance_to(100.0)
        glow = [value - DARK for value in camera.exposure(PL_S)]
        heights.append(peak_height(camera.wavelengths_nm(), glow) / PL_S)
    verdict = judge(found, heights, DARK, CALIBRATED)
    return {"verdict": verdict, "spots": found, "heights": heights}


def record(name: str, result: dict[str, Any]) -> StepRecord:
    what = Instruction(instruction_id=name, action=name, timeout_s=1.0, stage=name)
    return StepRecord(what, Status.COMPLETED, 0.0, 1.0, result)


def composed(
    analysis: dict[str, Any], threshold: float = 0.0, intent: str = ""
) -> Answer | NoAnswer:
    film = [{"x_um": spot["x_um"]} for spot in analysis["spots"]]
    survey = {"film": film, "places": 16, "dark_counts": DARK, "laser_nm": 532.0}
    return compose([record("survey", survey), record("analysis", analysis)], threshold, intent)


def test_a_monolayer_is_one_layer_with_photoluminescence_as_evidence() -> None:
    found = composed(measured(1, spots=9), 0.95)
    assert isinstance(found, Answer)
    assert found.outputs["layer_count"] == 1
    assert found.outputs["film"]["claim"] == "film"
    assert found.finding == "monolayer on at least 75 % of the film"
    names = [term["name"] for term in found.outputs["raman_analysis"]["evidence"]]
    assert any("PL" in name for name in names)
    assert found.outputs["raman_analysis"]["covered_fraction"] == 9 / 16


def test_the_surveyed_area_is_shared_out_to_the_last() -> None:
    found = composed(measured(1))
    assert isinstance(found, Answer)
    film = found.outputs["film"]
    assert film["of_area"]["bare"] == 13 / 16
    assert film["of_area"]["1"] == pytest.approx(3 / 16, abs=0.01)
    assert sum(film["of_area"].values()) == pytest.approx(1.0)
    assert film["bare"]["low"] < 13 / 16 < film["bare"]["high"]
    assert film["of_film"]["1"]["low"] < film["of_film"]["1"]["share"]


def test_no_film_is_no_film_and_comes_with_what_would_do() -> None:
    survey = {"film": [], "places": 49, "dark_counts": DARK, "laser_nm": 532.0}
    nothing = {"verdict": judge([], [], DARK, CALIBRATED), "spots": []}
    found = compose([record("survey", survey), record("analysis", nothing)], 0.95)
    assert isinstance(found, NoAnswer)
    assert found.reason == "no film at any of 49 surveyed places"
    assert found.partial_outputs["film"]["headline"] == "no film"
    assert found.partial_outputs["film"]["of_area"] == {"bare": 1.0, "not_judged": 0.0}
    assert found.partial_outputs["raman_analysis"]["posterior"] == {}
    assert [row["phase"] for row in found.partial_outputs["growth_log"]] == ["survey", "analysis"]
    assert "dwell_s" in found.suggestion


def test_a_mixed_film_is_answered_with_its_shares_and_misses_the_word_monolayer() -> None:
    both = measured(1, spots=3), measured(2, spots=2)
    spots = [spot for each in both for spot in each["spots"]]
    heights = [height for each in both for height in each["heights"]]
    analysis = {"verdict": judge(spots, heights, DARK, CALIBRATED), "spots": spots}
    found = composed(analysis, intent="Synthesize monolayer MoS2")
    assert isinstance(found, Answer)
    assert found.finding.startswith("mixed: 60 % one layer, ")
    assert found.finding.endswith(" % two")
    assert found.outputs["layer_count"] == 1
    assert found.outputs["confidence"] < 0.75
    assert found.outputs["intent"]["met"] is False
    assert found.outputs["intent"]["said"] in found.warnings
    asked = composed(analysis, 0.95)
    assert isinstance(asked, NoAnswer)
    assert found.finding in asked.reason
    assert "partial_outputs.film" in asked.suggestion


def test_a_thick_film_is_six_or_more_and_says_so() -> None:
    found = composed(measured(10, spots=9))
    assert isinstance(found, Answer)
    assert found.outputs["layer_count"] == 6
    assert "layer_count 6: 6 or more" in found.warnings


def test_disorder_that_only_la_m_shows_is_measured_and_said() -> None:
    crystal, disordered = measured(1, spots=1), measured(1, spots=1, la_over_e=0.6)
    for row in disordered["verdict"]["spots"]:
        # E is narrower than LA(M), so the instrument lowers it more
        assert row["la_over_e"] == pytest.approx(0.6, abs=0.06 + 3 * row["la_over_e_sigma"])
        assert 0 < row["la_over_e_sigma"] < 0.1
        assert row["e2g_fwhm_cm1"] < 4.5
    said = [
        any("disordered" in note for note in one["verdict"]["notes"])
        for one in (crystal, disordered)
    ]
    assert said == [False, True]
    assert disordered["verdict"]["confidence"] < crystal["verdict"]["confidence"]


@pytest.mark.parametrize("layers", [2, 3, 4, 5])
def test_what_is_in_between_is_never_called_a_monolayer(layers: int) -> None:
    found = composed(measured(layers))
    if isinstance(found, NoAnswer):
        assert found.reason.startswith("the layer count is undetermined after 3 spots: ")
        assert found.partial_outputs["raman_analysis"]["credible_set"]
    else:
        assert found.outputs["layer_count"] in (layers - 1, layers, layers + 1)
        assert found.outputs["layer_count"] != 1


@pytest.mark.parametrize("seed", range(6))
def test_samples_that_scatter_are_not_called_what_they_are_not(seed: int) -> None:
    sample = draw_sample(random.Random(seed), "s", "SiO2/Si")
    found = composed(measured(1, sample), 0.95)
    if isinstance(found, Answer):
        assert found.outputs["layer_count"] == 1


def test_bare_substrate_is_seen_as_no_film_and_a_monolayer_as_film() -> None:
    for layers in (0, 1):
        camera = looking_at(layers, NOMINAL, 0.0, random.Random(1))
        shift = raman_shift(532.0, camera.wavelengths_nm())
        height = sees_film(shift, [value - DARK for value in camera.exposure(1.0)])
        assert (height is not None) is (layers == 1)


def test_a_doped_wafer_is_no_wider_than_the_films_lines() -> None:
    """Silicon of 11 cm-1 would say that the instrument is too wide for any count."""
    chance = random.Random(3)

    def look(exposure_s: float) -> Light:
        light = light_of(NOMINAL, 1, 0.0, 0.0, LASER_MW, exposure_s)
        return replace(light, lines=(replace(light.lines[0], width_cm1=11.0), *light.lines[1:]))

    spots = []
    for x_um in (0.0, 60.0, 120.0):
        camera = Spectrometer(look, chance)
        shift = raman_shift(532.0, camera.wavelengths_nm())
        row = {"x_um": x_um, "y_um": 0.0, "exposure_s": RAMAN_S, "raman_shift": shift}
        spots.append({**row, "counts": camera.exposure(RAMAN_S)})
    verdict = judge(spots, [], DARK, CALIBRATED)
    assert verdict["reasons"] == []
    assert verdict["layer_count"] == 1


def test_a_run_without_analysis_has_no_answer() -> None:
    assert isinstance(compose([record("load", {})], 0.0), NoAnswer)
