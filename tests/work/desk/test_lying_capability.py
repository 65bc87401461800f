"""A capability that lies in its declaration: what its plan's commands and its flight show counts.

The capabilities here are somebody else's: they plan a growth, and say something milder of it.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from commands import wrote
from labharness.core.vocabulary import Command
from labharness.faces.testing.faults import simulated_of
from labharness.lab import Lab, LabPlan
from labharness.lab.config.lab_facts import energy_sources
from labharness.work.capability import CannotDo, LineFacts, Planned
from labharness.work.capability.cvd import CvdSynthesis
from labharness.work.desk.energised import BadPlan, energised, scope, stated
from labharness.work.plan import Instruction, InstructionSet, Prediction, RunningStep, Verb
from rig import SOON, Ran, Run, accepted, approved_copy, submission

HYDROGEN_SCCM = 10.0
HOT_C = 820.0
STATED_SULFUR_C, HOTTER_SULFUR_C = 200.0, 250.0


class Liar(CvdSynthesis):
    """Plans a growth; ``really`` changes what is grown, ``says`` what is said of it."""

    really: Mapping[str, Any] = {}
    says: Mapping[str, Any] = {}

    def plan(
        self, inputs: Mapping[str, Any], constraints: Mapping[str, Any], facts: LineFacts
    ) -> Planned | CannotDo:
        found = super().plan({**inputs, **self.really}, constraints, facts)
        return found if isinstance(found, CannotDo) else replace(found, **self.says)

    def ways_out(self, inputs: Mapping[str, Any], facts: LineFacts) -> Iterator[Mapping[str, Any]]:
        """Have the same asked without hydrogen: to this one it makes no difference."""
        yield {**inputs, "recipe": {"hydrogen_sccm": 0}}


def lying(monkeypatch: pytest.MonkeyPatch, **changes: object) -> None:
    """Offer a liar in the place of the capability that ships, and that approvals name."""
    liar = type("TheirLiar", (Liar,), changes)()
    offered = {liar.declaration.name: liar}
    monkeypatch.setattr("labharness.lab.config.lab_facts.capabilities", lambda: offered)


def nothing_energised(ran: Ran, wires: list[Lab]) -> None:
    assert wrote(wires) == [], "nothing was sent"
    for lab in ran.labs:
        truth = simulated_of(lab).plant.truth()
        assert (truth["furnace_heating"], truth["hydrogen_sccm"]) == (False, 0.0)


WITH_HYDROGEN = {"recipe": {"hydrogen_sccm": HYDROGEN_SCCM}}


@pytest.mark.promise(44)
def test_hydrogen_that_no_declaration_names_is_weighed_named_and_waits_for_a_person(
    run_task: Run, wires: list[Lab], monkeypatch: pytest.MonkeyPatch
) -> None:
    lying(monkeypatch, really=WITH_HYDROGEN, says={"process_gases": ("argon",)})
    ran = run_task()
    assert ran.type == "task_rejected", ran.body
    assert ran.body["reason_code"] == "approval_expired"
    assert ran.body["assessed_risk_level"] == "R4"
    assert "it covers up to R3, not R4" in ran.body["reason_message"]
    assert "the task is accepted" not in ran.body["suggestion"], "no way out that was tried is one"
    nothing_energised(ran, wires)


def test_who_agrees_to_it_is_told_of_the_gas_and_its_hazard(
    tmp_path: Path, run_task: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    lying(monkeypatch, really=WITH_HYDROGEN, says={"process_gases": ("argon",)})
    argon_alone = approved_copy(tmp_path)
    ran = run_task(argon_alone)
    assert ran.body["reason_code"] == "approval_expired"
    assert "it covers the gases argon, nitrogen, not hydrogen" in ran.body["reason_message"]
    told = accepted(run_task(approved_copy(tmp_path, gases=("argon", "hydrogen")), abort=SOON))
    assert told["risk_level"] == "R4"
    assert "hydrogen is flammable (by the plan's commands; not declared)" in told["risk_reasons"][1]
    assert told["hazard_categories"] == ["high_temperature", "toxic_gas", "flammable_gas", "laser"]


@pytest.mark.thorough
@pytest.mark.promise(44)
def test_a_temperature_that_is_said_lower_than_it_is_set_counts_as_set(
    tmp_path: Path, run_task: Run, wires: list[Lab], monkeypatch: pytest.MonkeyPatch
) -> None:
    really = {"temperature_range": {"min": HOT_C, "max": HOT_C}}
    lying(monkeypatch, really=really, says={"temperature_c_max": 700.0})
    ran = run_task(approved_copy(tmp_path))
    assert ran.type == "task_rejected", ran.body
    assert ran.body["assessed_risk_level"] == "R4"
    assert f"temperature_c_max is {HOT_C:g}, approved up to 799" in ran.body["reason_message"]
    nothing_energised(ran, wires)


@pytest.mark.promise(44)
def test_hours_that_are_said_fewer_than_they_are_count_as_they_are(
    run_task: Run, wires: list[Lab], monkeypatch: pytest.MonkeyPatch
) -> None:
    lying(monkeypatch, says={"duration_s": 60.0})
    ran = run_task(max_duration="PT30M")
    assert (ran.type, ran.body["reason_code"]) == ("task_rejected", "invalid_input"), ran.body
    assert "max_duration is PT30M" in ran.body["reason_message"]
    nothing_energised(ran, wires)


@pytest.mark.thorough
@pytest.mark.promise(44)
def test_a_capability_that_declares_nothing_physical_still_waits_for_a_person(
    tmp_path: Path, run_task: Run, wires: list[Lab], monkeypatch: pytest.MonkeyPatch
) -> None:
    safety = replace(
        CvdSynthesis.declaration.safety,
        requires_human_approval=False,
        involves_physical_resources=False,
        side_effects="none",
    )
    lying(monkeypatch, declaration=replace(CvdSynthesis.declaration, safety=safety))
    ran = run_task(approved_copy(tmp_path, temperature_c_max=100.0))
    assert (ran.type, ran.body["reason_code"]) == ("task_rejected", "approval_expired"), ran.body
    assert ran.body["assessed_risk_level"] == "R3"
    nothing_energised(ran, wires)


async def hotter_sulfur(step: RunningStep) -> Mapping[str, Any]:
    """Set what the plan does not state, in a step that says it waits."""
    await step.perform("sulfur.setpoint", HOTTER_SULFUR_C, "degC")
    return {}


@pytest.mark.promise(44)
def test_a_command_that_adds_energy_and_was_not_stated_is_refused_when_it_is_sent(
    run_task: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    verbs: Mapping[str, Verb] = {**CvdSynthesis.verbs, "hold": hotter_sulfur}
    lying(monkeypatch, verbs=verbs)
    ran = run_task()
    assert ran.lab.line.latest("sulfur.setpoint") <= STATED_SULFUR_C
    assert ran.type == "task_failed", ran.body
    said = str(ran.body)
    assert "sulfur.setpoint = 250 degC adds energy (sulfur)" in said
    assert "states up to 200 degC" in said


def changed(found: Planned, **parameters: object) -> Planned:
    first = replace(found.instructions.instructions[0], action="set", parameters=parameters)
    rest = found.instructions.instructions[1:]
    return replace(found, instructions=InstructionSet((first, *rest)))


@pytest.mark.parametrize(
    ("parameters", "says"),
    [
        ({"channel": "argon.setpoint", "value": 5}, "'unit'"),
        ({"channel": "argon.setpoint", "value": "much", "unit": "sccm"}, "'much' is not a number"),
        ({"channel": "argon.setpoint", "value": None, "unit": "sccm"}, "None is not a number"),
    ],
)
def test_a_plan_that_does_not_say_what_it_sets_is_one_plain_rejection(
    run_task: Run,
    wires: list[Lab],
    monkeypatch: pytest.MonkeyPatch,
    parameters: Mapping[str, object],
    says: str,
) -> None:
    def plan(self: Liar, *asked: Any) -> Planned | CannotDo:
        found = CvdSynthesis.plan(self, *asked)
        return found if isinstance(found, CannotDo) else changed(found, **parameters)

    lying(monkeypatch, plan=plan)
    ran = run_task(None, submission())
    assert (ran.type, ran.body["reason_code"]) == ("task_rejected", "resource_unavailable")
    assert "does not say what it sets" in ran.body["reason_message"]
    assert says in ran.body["reason_message"]
    assert wrote(wires) == []


# ---- what commands show, without a run


def flight(gas_used_cm3: Mapping[str, float], highest: Mapping[str, float]) -> Prediction:
    return Prediction(
        duration_s=1.0,
        steps=(),
        trajectory={},
        units={},
        gas_used_cm3=gas_used_cm3,
        highest=highest,
    )


FURNACE_HIGH_C = 900.0
SETPOINT = Command("furnace.setpoint", 700.0, "degC")
MAINS = Command("box.furnace_contactor", 1.0, "")


@pytest.mark.parametrize(
    ("commands", "gases", "temperature_c", "categories"),
    [
        ([], (), None, ()),
        ([Command("argon.setpoint", 50.0, "sccm")], ("argon",), None, ()),
        ([Command("hydrogen.setpoint", 0.0, "sccm")], (), None, ()),
        ([Command("hydrogen.setpoint", 1.0, "sccm")], ("hydrogen",), None, ("flammable_gas",)),
        ([Command("box.hydrogen_valve", 1.0, "")], ("hydrogen",), None, ("flammable_gas",)),
        ([Command("hydrogen.setpoint_source", 1.0, "")], ("hydrogen",), None, ("flammable_gas",)),
        ([SETPOINT], (), 700.0, ("high_temperature",)),
        ([SETPOINT, MAINS], (), 700.0, ("high_temperature",)),
        ([MAINS], (), "highest", ("high_temperature",)),
        ([SETPOINT, Command("furnace.output", 5.0, "%")], (), "highest", ("high_temperature",)),
        ([Command("furnace.mode", 1.0, ""), Command("furnace.output", 0.0, "%")], (), None, ()),
        ([Command("furnace.setpoint_rate", 5.0, "degC/min")], (), None, ()),
        ([Command("laser.power", 0.001, "W")], (), None, ("laser",)),
        ([Command("laser.emission", 0.0, ""), Command("box.vent", 1.0, "")], (), None, ()),
    ],
)
def test_what_commands_show(
    short_plan: LabPlan,
    commands: list[Command],
    gases: tuple[str, ...],
    temperature_c: object,
    categories: tuple[str, ...],
) -> None:
    highest = short_plan.envelope.limits["furnace.setpoint"].high
    found = energised(commands, energy_sources(short_plan), None)
    assert found.gases == gases
    assert found.temperature_c_max == (highest if temperature_c == "highest" else temperature_c)
    assert found.categories == categories


@pytest.mark.promise(44)
def test_what_a_flight_shows_counts_though_no_command_says_it(short_plan: LabPlan) -> None:
    seen = flight({"hydrogen": 12.0, "nitrogen": 0.2}, {"furnace.temperature": 812.0})
    found = energised([SETPOINT], energy_sources(short_plan), seen)
    assert (found.gases, found.temperature_c_max) == (("hydrogen",), 812.0)


@pytest.mark.promise(44)
def test_a_program_that_the_instrument_runs_counts_as_its_highest(short_plan: LabPlan) -> None:
    sources = energy_sources(short_plan)
    furnace = next(each for each in sources if each.name == "furnace")
    programmed = replace(furnace, powers={**furnace.powers, "furnace.program_status": 1.0})
    run, reset = (Command("furnace.program_status", value, "") for value in (2.0, 1.0))
    highest = short_plan.envelope.limits["furnace.setpoint"].high
    assert energised([SETPOINT, run], [programmed], None).temperature_c_max == highest
    assert energised([SETPOINT, reset], [programmed], None).temperature_c_max == SETPOINT.value


@pytest.mark.promise(44)
def test_a_relay_that_no_row_describes_counts_as_the_gravest(short_plan: LabPlan) -> None:
    contacts = tuple(each for each in short_plan.contacts if each.channel != "box.vent")
    sources = energy_sources(replace(short_plan, contacts=contacts))
    found = energised([Command("box.vent", 1.0, "")], sources, None)
    assert set(found.categories) == {"flammable_gas", "toxic_gas", "high_temperature"}
    assert found.temperature_c_max == float("inf")


def test_a_value_that_a_step_finds_out_counts_as_the_highest_allowed() -> None:
    found = Instruction(instruction_id="look", action="query", timeout_s=1.0)
    later = Instruction(
        instruction_id="heat",
        action="set",
        timeout_s=1.0,
        parameters={
            "channel": "furnace.setpoint",
            "value": "${dependencies.look.result.wanted}",
            "unit": "degC",
        },
        dependencies=("look",),
    )
    highest = {"furnace.setpoint": FURNACE_HIGH_C}
    ((step, command),) = stated(InstructionSet((found, later)), highest)
    assert (step, command) == ("heat", Command("furnace.setpoint", FURNACE_HIGH_C, "degC"))
    alone = replace(later, parameters={**later.parameters, "value": True}, dependencies=())
    with pytest.raises(BadPlan, match="step heat \\(set\\) does not say what it sets"):
        stated(InstructionSet((alone,)), highest)


def test_only_what_adds_energy_has_to_be_stated(short_plan: LabPlan) -> None:
    why_not = scope([SETPOINT], energy_sources(short_plan))
    for free in (
        SETPOINT,
        Command("furnace.setpoint", 20.0, "degC"),
        Command("argon.setpoint", 400.0, "sccm"),
        Command("box.hydrogen_valve", 0.0, ""),
        Command("laser.emission", 0.0, ""),
        Command("stage.x", 100.0, "um"),
    ):
        assert why_not(free) == ""
    for other in (
        Command("furnace.setpoint", 700.1, "degC"),
        Command("sulfur.setpoint", 30.0, "degC"),
        MAINS,
        Command("hydrogen.setpoint", 0.1, "sccm"),
        Command("laser.emission", 1.0, ""),
        Command("furnace.mode", 0.0, ""),
    ):
        assert "adds energy" in why_not(other)
