"""A sample that was not grown in the run is mapped by the line's microscope alone."""

import json
import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attempts import Attempts, body, going_on
from commands import say
from labharness.core.clock.loops import finish
from labharness.core.vocabulary.channels import owner_of
from labharness.core.vocabulary.texts import Text
from labharness.faces.testing.bench import Bench, Ran
from labharness.faces.testing.faults import simulated_of
from labharness.journal import reading
from labharness.lab import Lab, default_lab_path, read_lab
from labharness.lab.config.lab_facts import lab_facts_of, line_facts
from labharness.lab.config.lab_plan import LabPlan
from labharness.work.capability import CannotDo, Planned, form_of, needs_no_line, without_line
from labharness.work.capability.cvd import CAPABILITY as GROWTH
from labharness.work.capability.raman_characterization import CAPABILITY
from labharness.work.capability.raman_characterization.stored import RamanSettings
from labharness.work.desk.checkpoint import checkpoints
from rig import EXAMPLE, Injection, accepted, as_submit, cut

SHIPPED = read_lab(default_lab_path())
NAME = CAPABILITY.declaration.name
OPTICS = {"laser", "spectrometer", "stage"}


def with_samples(**samples: Mapping[str, Any]) -> LabPlan:
    """Return the shipped lab with these samples in its simulated plant."""
    plant = SHIPPED.file.plant
    assert plant is not None
    more = plant.model_copy(update={"samples": samples})
    return replace(SHIPPED, file=SHIPPED.file.model_copy(update={"plant": more}))


def task(sample_id: str, **more: Any) -> dict[str, Any]:
    body: dict[str, Any] = json.loads(EXAMPLE.read_text("utf-8"))
    body["payload"] = {
        "capability": NAME,
        "caller_id": "harness-alpha-001",
        "intent": "How many layers?",
        "inputs": {"measure": {"sample_id": sample_id}},
        **more,
    }
    return body


def mapped(folder: Path, lab_state: Path, **about: Any) -> Ran:
    plan = replace(with_samples(mine=about), state_dir=lab_state / "lab")
    return Bench(plan, folder, state=lab_state).run(task("mine"))


@pytest.mark.parametrize(
    ("about", "layers"),
    [({"layers": 1, "coverage": 0.8}, 1), ({"layers": 2, "strain_percent": 0.0}, 2)],
)
def test_the_layers_of_a_stated_sample_are_found(
    tmp_path: Path, lab_state: Path, about: Mapping[str, Any], layers: int
) -> None:
    ran = mapped(tmp_path, lab_state, **about)
    assert ran.type == "task_completed", ran.body
    outputs = ran.body["outputs"]
    assert outputs["layer_count"] == layers
    assert set(outputs) == set(CAPABILITY.declaration.output_schema["properties"])
    bare = outputs["film"]["of_area"]["bare"]
    assert abs(bare - (1 - about.get("coverage", 1.0))) < 0.25


@pytest.mark.promise(48)
@pytest.mark.parametrize("strain_percent", [-0.1, -0.2, -0.3])
def test_three_layers_under_a_strain_that_nobody_stated_are_not_called_two(
    tmp_path: Path, lab_state: Path, strain_percent: float
) -> None:
    ran = mapped(tmp_path, lab_state, layers=3, strain_percent=strain_percent)
    found = ran.body.get("outputs") or ran.body["partial_outputs"]
    assert found.get("layer_count", 3) == 3, ran.body
    assert 3 in found["raman_analysis"]["credible_set"]


def test_only_the_microscope_is_set_after_the_approval_of_a_task_of_r3(
    tmp_path: Path, lab_state: Path
) -> None:
    ran = mapped(tmp_path, lab_state, layers=1)
    assert ran.type == "task_completed", ran.body
    body = accepted(ran)
    assert body["risk_level"] == "R3"
    records = list(reading.read(ran.result.folder / "journal.sqlite"))
    kinds = [each.kind for each in records]
    assert kinds.index("approved") < kinds.index("intent")
    first = next(at for at, each in enumerate(records) if each.kind == "step")
    last = max(at for at, each in enumerate(records) if each.kind == "step")
    within = records[first:last]
    set_there = {owner_of(e.body["channel"]) for e in within if e.kind == "intent"}
    assert set_there == OPTICS
    opened = [each.body["action"] for each in records if each.kind == "opening"]
    assert opened == ["put_under_microscope"]
    assert ran.truth["laser_on"] is False
    made = {each.name for each in (ran.result.folder / "artifacts").iterdir()}
    assert "raw_spectrum.json" in made
    assert len(list(checkpoints(ran.result.folder / "journal.sqlite"))) == 1


def test_doubt_is_met_by_more_spots_up_to_a_bound_and_its_evidence_is_kept(
    tmp_path: Path, lab_state: Path
) -> None:
    plan = replace(with_samples(mine={"layers": 1}), state_dir=lab_state / "lab")
    asked = task("mine", constraints={"confidence_threshold": 1.0})
    ran = Bench(plan, tmp_path, state=lab_state).run(asked)
    assert (ran.type, ran.body["error_code"]) == ("task_failed", "execution_error")
    assert "is below the threshold 1 after 15 spots" in ran.body["error_message"]
    assert ran.body["partial_outputs"]["raman_analysis"]["posterior"]["1"] > 0.9
    assert ran.truth["laser_on"] is False


def test_a_bare_sample_has_no_film_and_its_spectra_are_kept(
    tmp_path: Path, lab_state: Path
) -> None:
    ran = mapped(tmp_path, lab_state, layers=0)
    assert (ran.type, ran.body["error_code"]) == ("task_failed", "execution_error")
    assert "no film at any of 49" in ran.body["error_message"]


def test_a_sample_that_is_not_there_fails_the_task_and_names_those_that_are(
    tmp_path: Path, lab_state: Path
) -> None:
    plan = replace(with_samples(mine={"layers": 1}), state_dir=lab_state / "lab")
    ran = Bench(plan, tmp_path, state=lab_state).run(task("other"))
    assert (ran.type, ran.body["error_code"]) == ("task_failed", "execution_error")
    assert "there is no sample 'other'; the lab file states mine" in ran.body["error_message"]


def test_a_disordered_film_is_told_from_a_perfect_one(tmp_path: Path, lab_state: Path) -> None:
    def disorder(ran: Ran) -> float:
        partial = ran.body.get("partial_outputs") or ran.body["outputs"]
        spots = [each["la_over_e"] for each in partial["raman_analysis"]["spots"]]
        return max((each for each in spots if each is not None), default=0.0)

    perfect = mapped(tmp_path / "a", lab_state, layers=1, disorder=0.0)
    broken = mapped(tmp_path / "b", lab_state, layers=1, disorder=20.0)
    assert disorder(broken) > disorder(perfect)


@pytest.mark.parametrize("sample", ["mine", "other"])
def test_the_report_of_a_map_shows_its_film_or_that_there_is_none(
    tmp_path: Path, lab_state: Path, sample: str
) -> None:
    plan = replace(with_samples(mine={"layers": 1}), state_dir=lab_state / "lab")
    ran = Bench(plan, tmp_path, state=lab_state).run(task(sample))
    page = tmp_path / "report.html"
    assert say("report", ran.result.folder, "--out", page).code == 0
    text = page.read_text("utf-8")
    assert ("Map of the layer count" in text) is (sample == "mine")
    assert "CVD" not in text.partition("Conditions")[2].partition("Traces")[0]


@pytest.mark.promise(60)
def test_a_map_that_failed_goes_on_with_the_sample_that_lies_there(tmp_path: Path) -> None:
    plan = replace(with_samples(mine={"layers": 1}), state_dir=tmp_path / "state")
    attempts = Attempts(plan, tmp_path)
    submit = as_submit(task("mine"))
    fault = Injection("characterisation", 60.0, cut("spectrometer"))
    try:
        first = attempts.run("first", submit, inject=(fault,))
        assert first.message.type == "task_failed"
        assert body(first)["error_details"]["last_checkpoint"] == "ckpt-001"
        assert body(first)["partial_outputs"]["spectra"]["survey"] > 0
        attempts.mend()
        asked = going_on(submit, attempts.folder / "first")
        on = attempts.run("on", asked, earlier="first")
        assert on.message.type == "task_completed", body(on)
        assert body(on)["outputs"]["layer_count"] == 1
        assert not [each for each in attempts.records("on") if each.kind == "opening"]
    finally:
        finish(attempts.loop)


def test_a_map_that_is_aborted_leaves_the_laser_off(tmp_path: Path) -> None:
    plan = replace(with_samples(mine={"layers": 1}), state_dir=tmp_path / "state")
    attempts = Attempts(plan, tmp_path)

    def stop(lab: Lab) -> None:
        assert simulated_of(lab).plant.truth()["laser_on"] is True
        assert attempts.task is not None
        attempts.task.abort("enough")

    try:
        fault = Injection("characterisation", 61.5, stop)
        ended = attempts.run("first", as_submit(task("mine")), inject=(fault,))
        assert ended.message.type == "event"
        assert body(ended)["data"]["final_state"] == "ABORTED"
        assert attempts.sim_lab.plant.truth()["laser_on"] is False
    finally:
        finish(attempts.loop)


def planned(capability: Any, inputs: Mapping[str, Any], lab: LabPlan = SHIPPED) -> Any:
    name = capability.declaration.name
    return capability.plan(
        inputs, {"confidence_threshold": 0.9}, lab_facts_of(lab).line_facts[name]
    )


def test_a_growth_and_a_task_on_a_sample_look_at_it_by_the_same_steps() -> None:
    grown = planned(GROWTH, {"target_material": "MoS2", "substrate": "SiO2/Si"})
    alone = planned(CAPABILITY, {"measure": {"sample_id": "mine"}})
    assert isinstance(grown, Planned)
    assert isinstance(alone, Planned)

    def looked(plan: Planned) -> list[Any]:
        steps = plan.instructions.instructions
        names = [each.instruction_id for each in steps]
        first, *rest = steps[names.index("laser_power") :]
        analysis = next(each for each in rest if each.instruction_id == "analysis")
        origins.append(analysis.parameters.pop("origin", None))  # type: ignore[attr-defined]  # a dict
        return [replace(first, dependencies=()), *rest]

    origins: list[str | None] = []
    assert looked(grown) == looked(alone)
    assert origins == [None, "unknown"], "nobody says how the sample was made"
    assert {"survey", "raman_map", "analysis"} <= {e.instruction_id for e in looked(alone)}


INPUTS = st.dictionaries(
    st.sampled_from(["measure", "spectra", "spectra_uri", "dark_counts", "other"]),
    st.none() | st.text(max_size=3) | st.lists(st.integers(), max_size=2),
)


@pytest.mark.promise(44)
@given(INPUTS)
def test_whatever_asks_for_the_microscope_is_of_the_form_with_physical_resources(
    inputs: dict[str, Any],
) -> None:
    form = form_of(CAPABILITY, inputs)
    physical = form.declaration.safety.involves_physical_resources
    assert physical is ("measure" in inputs)
    assert needs_no_line(form) is not physical
    assert form.declaration.name == NAME
    assert without_line(CAPABILITY) is form_of(CAPABILITY, {})


@pytest.mark.parametrize("also", ["spectra", "spectra_uri", "dark_counts"])
def test_a_task_brings_spectra_or_names_a_sample_and_not_both(also: str) -> None:
    found = planned(CAPABILITY, {"measure": {"sample_id": "mine"}, also: []})
    assert isinstance(found, CannotDo)
    assert (found.reason_code, found.message) == ("invalid_input", Text("spectra.one_of"))


def test_a_lab_that_states_no_laser_judges_stored_spectra_alone() -> None:
    facts = replace(lab_facts_of(SHIPPED).line_facts[NAME], settings=RamanSettings())
    found = CAPABILITY.plan({"measure": {"sample_id": "mine"}}, {}, facts)
    assert isinstance(found, CannotDo)
    why = Text("spectra.no_microscope")
    assert (found.reason_code, found.message) == ("resource_unavailable", why)
    assert list(CAPABILITY.misfits(facts)) == []


@pytest.mark.parametrize("lost", ["stage.x", "laser.power", "operator.put_under_microscope"])
def test_a_line_without_a_part_of_its_microscope_is_a_fault_of_the_lab_file(lost: str) -> None:
    facts = lab_facts_of(SHIPPED).line_facts[NAME]
    assert list(CAPABILITY.misfits(facts)) == []
    less = replace(facts, limits={k: v for k, v in facts.limits.items() if k != lost})
    (why,) = CAPABILITY.misfits(less)
    assert lost in why
    with pytest.raises(ValueError, match=lost.replace(".", r"\.")):
        CAPABILITY.plan({"measure": {"sample_id": "mine"}}, {}, less)


@pytest.mark.parametrize(
    ("about", "says"),
    [
        ({"layers": 7}, "layers is 7; allowed a whole number from 0 to 6"),
        ({"layers": 1.5}, "layers is 1.5; allowed a whole number"),
        ({"coverage": 1.1}, "coverage is 1.1; allowed a number from 0.0 to 1.0"),
        ({"material": "WS2"}, "material is 'WS2'; this plant knows 'MoS2'"),
        ({"strain": 0.1}, "unknown 'strain'; known: material, substrate, layers"),
    ],
)
def test_a_sample_that_cannot_be_is_refused_with_what_can(
    about: Mapping[str, Any], says: str, tmp_path: Path
) -> None:
    rows = "\n".join(f"{name} = {json.dumps(value)}" for name, value in about.items())
    path = shutil.copytree(default_lab_path().parent, tmp_path / "lab") / "lab.toml"
    path.write_text(f"{path.read_text('utf-8')}\n[plant.samples.mine]\n{rows}\n", "utf-8")
    with pytest.raises(Exception, match=says.replace("'", ".").replace(".", r".")):
        read_lab(path)


def test_the_view_of_a_line_names_every_channel_of_a_map() -> None:
    facts = line_facts(SHIPPED, {NAME: RamanSettings(laser_nm=532.0)})[NAME]
    assert list(CAPABILITY.misfits(facts)) == []
