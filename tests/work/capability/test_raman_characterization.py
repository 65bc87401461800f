"""Stored spectra are judged as those of a growth are, and bad ones are refused by their number."""

import json
import random
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from labharness.journal import SqliteJournal
from labharness.journal.access_log import accesses
from labharness.journal.artifacts import Artifacts
from labharness.lab import read_lab
from labharness.lab.wiring.tasks import TaskRun, lab_facts_without_line
from labharness.work.capability.raman_characterization.stored import spectrum_fault
from labharness.work.capability.raman_verdict import raman_shift
from labharness_simulators.plant import Sample, Spectrometer
from labharness_simulators.plant.spectrum import Light, light_of
from rig import HERE, SHIPPED, as_submit

DARK, EXPOSURE_S, LASER_MW = 300.0, 10.0, 0.3
CALLER = "harness-local-01"
EARLIER = "0a1b-earlier"


def light_at(sample: Sample, layers: int, x_um: float, exposure_s: float) -> Light:
    return light_of(sample, layers, x_um, 0.0, LASER_MW, exposure_s)


def spectra(layers: int, count: int = 3) -> list[dict[str, Any]]:
    """Return spectra of places with so many layers, as the simulated microscope takes them."""
    found, chance = [], random.Random(7)
    sample = Sample("unstrained", "SiO2/Si", strain_percent=0.0)
    for number in range(count):
        x_um = 60.0 * number
        camera = Spectrometer(partial(light_at, sample, layers, x_um), chance)
        shift = raman_shift(532.0, camera.wavelengths_nm())
        counts = camera.exposure(EXPOSURE_S)
        place = {"x_um": x_um, "y_um": 0.0, "exposure_s": EXPOSURE_S}
        found.append({**place, "raman_shift": list(shift), "intensity": list(counts)})
    return found


def ended(folder: Path, inputs: Mapping[str, Any], **constraints: Any) -> tuple[str, Any]:
    body = json.loads((HERE.parent / "examples" / "document-analysis.json").read_text("utf-8"))
    body["payload"] |= {
        "capability": "raman-characterization",
        "intent": "How many layers?",
        "inputs": dict(inputs),
        "constraints": constraints,
    }
    body["payload"].pop("expected_output", None)
    plan = replace(read_lab(SHIPPED), state_dir=folder / "state")
    run = TaskRun(
        plan,
        *as_submit(body),
        without_line=lab_facts_without_line(plan),
        out=folder / "runs" / "now",
        tell=lambda kind, data: None,
    )
    message = run.execute().message
    return message.type, message.payload.model_dump(exclude_unset=True)


@pytest.mark.promise(48)
def test_the_layers_of_a_known_film_are_found(tmp_path: Path) -> None:
    count = 3
    kind, body = ended(tmp_path, {"spectra": spectra(1, count), "dark_counts": DARK})
    assert kind == "task_completed", body
    outputs = body["outputs"]
    assert outputs["layer_count"] == 1
    assert outputs["film"]["of_area"]["bare"] == 0
    assert outputs["raman_analysis"]["places_surveyed"] == count
    assert body["execution_summary"]["steps_executed"] == 2


@pytest.mark.promise(48)
def test_this_labs_intensities_do_not_count_for_spectra_of_another_microscope(
    tmp_path: Path,
) -> None:
    three = spectra(3, 9)
    ours = earlier_run(tmp_path / "2", CALLER, taken=three)
    for inputs, terms in (({"spectra_uri": ours}, 2), ({"spectra": three, "dark_counts": DARK}, 1)):
        _, body = ended(tmp_path / str(terms), inputs)
        found = body.get("partial_outputs", body.get("outputs"))["raman_analysis"]
        assert len(found["evidence"]) == terms, found["evidence"]


def test_an_origin_that_is_not_known_is_refused_with_the_known_ones(tmp_path: Path) -> None:
    kind, body = ended(tmp_path, {"spectra": spectra(1), "origin": "sputtered"})
    assert kind == "task_rejected"
    assert "exfoliated" in json.dumps(body), body


@pytest.mark.promise(48)
def test_bare_places_count_and_a_bare_sample_is_no_film(tmp_path: Path) -> None:
    both = [*spectra(1), *spectra(0, 1)]
    kind, body = ended(tmp_path / "a", {"spectra": both, "dark_counts": DARK})
    assert kind == "task_completed", body
    assert body["outputs"]["film"]["of_area"]["bare"] == 0.25
    kind, body = ended(tmp_path / "b", {"spectra": spectra(0), "dark_counts": DARK})
    assert (kind, body["error_code"]) == ("task_failed", "execution_error")
    assert "no film at any of 3" in body["error_message"]
    assert body["partial_outputs"]["film"]["of_area"]["bare"] == 1.0


@pytest.mark.promise(48)
@pytest.mark.parametrize(("layers", "threshold"), [(1, 1.0), (3, 0.0)])
def test_a_film_that_leaves_doubt_is_no_answer(
    tmp_path: Path, layers: int, threshold: float
) -> None:
    inputs = {"spectra": spectra(layers), "dark_counts": DARK}
    kind, body = ended(tmp_path, inputs, confidence_threshold=threshold)
    assert (kind, body["error_code"]) == ("task_failed", "execution_error")
    assert body["partial_outputs"]["raman_analysis"]["credible_set"]


def earlier_run(
    folder: Path,
    caller_id: str,
    dark_counts: Any = DARK,
    taken: list[dict[str, Any]] | None = None,
    **beside: Any,
) -> str:
    """Make the folder of a run with its spectra; return their address."""
    run = folder / "runs" / EARLIER
    run.mkdir(parents=True)
    (run / "submit.json").write_text(json.dumps({"payload": {"caller_id": caller_id}}), "utf-8")
    with SqliteJournal(run / "journal.sqlite") as journal:
        journal.append("event", {}, 0.0)
    kept = [{**each, "counts": each["intensity"], **beside} for each in taken or spectra(1)]
    content = json.dumps({"raman": kept, "dark_counts": dark_counts}).encode()
    made = Artifacts(run / "artifacts", EARLIER)
    return made.put("raw_spectrum", "raw_spectrum.json", "application/json", content).uri


@pytest.mark.promise(48, 70)
def test_spectra_of_an_earlier_run_are_judged_and_their_read_is_logged(tmp_path: Path) -> None:
    kind, body = ended(tmp_path, {"spectra_uri": earlier_run(tmp_path, CALLER)})
    assert (kind, body["outputs"]["layer_count"]) == ("task_completed", 1)
    (read,) = accesses(tmp_path / "runs" / EARLIER)
    assert (read.reader, read.via) == (CALLER, "raman-characterization")
    _, same = ended(tmp_path / "stated", {"spectra": spectra(1), "dark_counts": DARK})
    spots = [each["outputs"]["raman_analysis"]["spots"] for each in (body, same)]
    assert spots[0] == spots[1], "they have the dark counts of their run"


def test_another_callers_spectra_are_not_there(tmp_path: Path) -> None:
    kind, body = ended(tmp_path, {"spectra_uri": earlier_run(tmp_path, "somebody-else")})
    assert (kind, body["error_code"]) == ("task_failed", "input_error")
    assert "no such artifact of a run of yours" in body["error_message"]
    assert list(accesses(tmp_path / "runs" / EARLIER)) == []


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ({"x_um": "left"}, "spectrum 0: a value is not a finite number"),
        ({"exposure_s": 0}, "spectrum 0: exposure_s must be above 0"),
        ({"exposure_s": None}, "spectrum 0: a value is not a finite number"),
        ({"y_um": 10**400}, "spectrum 0: a value is not a finite number"),
        ({"dark_counts": "many"}, "there are no spectra"),
        ({"dark_counts": [1.0]}, "there are no spectra"),
    ],
)
def test_an_artifact_that_holds_anything_else_is_an_input_error(
    tmp_path: Path, content: dict[str, Any], says: str
) -> None:
    kind, body = ended(tmp_path, {"spectra_uri": earlier_run(tmp_path, CALLER, **content)})
    assert (kind, body["error_code"]) == ("task_failed", "input_error"), body
    assert says in body["error_message"]


RAMP = [float(each) for each in range(10)]


def one(axis: list[float], counts: list[Any]) -> dict[str, Any]:
    return {"spectra": [{"raman_shift": axis, "intensity": counts}]}


@pytest.mark.parametrize(
    ("inputs", "says"),
    [
        ({}, "one of spectra, spectra_uri and measure"),
        ({"spectra": [], "spectra_uri": "hcp://x"}, "spectra"),
        (one(RAMP, RAMP[:-1]), "spectrum 0: raman_shift has 10 values and intensity 9"),
        (one(RAMP[::-1], RAMP), "spectrum 0: raman_shift does not ascend"),
        ({"spectra": [{"raman_shift": RAMP}]}, "intensity"),
        (one(RAMP, ["a"] * 10), "intensity"),
    ],
)
def test_bad_spectra_are_refused_before_anything_runs(
    tmp_path: Path, inputs: dict[str, Any], says: str
) -> None:
    kind, body = ended(tmp_path, inputs)
    assert (kind, body["reason_code"]) == ("task_rejected", "invalid_input"), body
    assert says in body["reason_message"]


def test_an_axis_without_the_lines_is_an_input_error(tmp_path: Path) -> None:
    axis = [1000.0 + each for each in range(100)]
    kind, body = ended(tmp_path, one(axis, axis))
    assert (kind, body["error_code"]) == ("task_failed", "input_error"), body


NUMBERS = st.lists(st.floats(allow_nan=True) | st.integers() | st.none() | st.text(), max_size=6)


@given(axis=NUMBERS, counts=NUMBERS)
def test_what_is_not_refused_is_two_ascending_lists_of_numbers(
    axis: list[Any], counts: list[Any]
) -> None:
    if not spectrum_fault([{"raman_shift": axis, "intensity": counts}]):
        assert len(axis) == len(counts)
        assert axis == sorted(set(axis))
        assert all(abs(value) < float("inf") for value in (*axis, *counts))
