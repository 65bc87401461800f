"""A failed run goes on from its checkpoint on the same sample; nothing is heated a second time."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from attempts import Attempts, body, going_on
from commands import ROOT, Said, say
from journal_rows import changed, records
from labharness.core.clock.loops import finish
from labharness.core.vocabulary import Cause
from labharness.core.vocabulary.texts import Text, coded
from labharness.core.vocabulary.trips import Trip
from labharness.journal import SqliteJournal
from labharness.journal.chain import canonical
from labharness.journal.reading import read, samples, verify_file
from labharness.lab import Lab, read_lab
from labharness.lab.config.lab_facts import lab_facts_of
from labharness.lab.wiring.operators import SimulatedOperator
from labharness.protocols.hcp.messages import Constraints, ResumeFrom, TaskSubmit
from labharness.protocols.hcp.terms import Rejected
from labharness.safety.guard import Latch
from labharness.work.desk.facts import LabFacts
from labharness.work.desk.resuming import NotResumable, Resumption, look_up, way_on
from labharness.work.plan import Instruction, InstructionSet, ResumePoint
from rig import EXAMPLE, LABS, SAFE_TABLE, SHORT_LINE, Injection, as_submit, cut, submission


def hottest_c(journal: Path) -> float:
    """Return the highest reading of the furnace, as the journal holds each of them."""
    columns: dict[str, list[str]] = {
        each.body["name"]: each.body["columns"]
        for each in read(journal)
        if each.kind == "stream" and each.body["name"].startswith("furnace")
    }
    found = [
        values[columns[name].index("temperature")]
        for name, _, values in samples(journal)
        if "temperature" in columns.get(name, ())
    ]
    return max(found)


@pytest.fixture(scope="module")
def failed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Attempts]:
    """A growth whose Raman map failed; its lab lives on, and its wires are joined again."""
    folder = tmp_path_factory.mktemp("failed")
    attempts = Attempts(replace(read_lab(SHORT_LINE), state_dir=folder / "state"), folder)
    fault = Injection("characterisation", 300.0, cut("spectrometer"))
    result = attempts.run("first", submission(), inject=(fault,))
    assert (result.message.type, body(result)["error_details"]) == (
        "task_failed",
        {
            "phase": "characterisation",
            "step": 66,
            "last_checkpoint": "ckpt-003",
            "recoverable": True,
        },
    )
    attempts.mend()
    yield attempts
    finish(attempts.loop)


def goes_on_to_its_answer(attempts: Attempts, first: str, name: str) -> None:
    """Go on with a run; nothing may be heated, and the answer must be that of its sample."""
    asked = going_on(submission(), attempts.folder / first)
    result = attempts.run(name, asked, earlier=first)
    found, journal = body(result), attempts.folder / name / "journal.sqlite"
    assert result.message.type == "task_completed", found
    assert found["outputs"]["layer_count"] == 1
    phases = [row["phase"] for row in found["outputs"]["growth_log"]]
    assert (phases[0], phases[-2:]) == ("loading", ["characterisation", "analysis"])
    assert asked[1].resume_from is not None
    assert found["execution_summary"]["resumed_from"] == asked[1].resume_from.model_dump()
    changes = [data for kind, data in attempts.events[name] if kind == "state_changed"]
    assert changes[0]["reason"] == "recovered_from_checkpoint"
    sent = {each.body["channel"] for each in attempts.records(name) if each.kind == "intent"}
    assert not {each for each in sent if each.endswith("_contactor")}
    assert not sent & {"furnace.setpoint", "sulfur.setpoint", "hydrogen.setpoint"}
    assert hottest_c(attempts.folder / first / "journal.sqlite") > 700.0
    assert hottest_c(journal) < 70.0
    assert verify_file(journal).ok


@pytest.mark.promise(60)
@pytest.mark.thorough
def test_the_measurement_goes_on_on_the_same_sample_without_a_second_growth(
    failed: Attempts,
) -> None:
    goes_on_to_its_answer(failed, "first", "on")


@pytest.mark.promise(60)
@pytest.mark.thorough
def test_a_sample_that_has_cooled_in_the_tube_is_flushed_taken_out_and_measured(
    tmp_path: Path,
) -> None:
    class NobodyMoves(SimulatedOperator):
        async def confirm(self, action: str, text: str, details: Mapping[str, object]) -> str:
            if action == "move_to_microscope":
                raise PermissionError("nobody is there")
            return await super().confirm(action, text, details)

    def prepare(lab: Lab) -> None:
        assert lab.simulated is not None
        lab.operator = NobodyMoves(lab.simulated, 5.0)

    attempts = Attempts(replace(read_lab(SHORT_LINE), state_dir=tmp_path / "state"), tmp_path)
    try:
        first = attempts.run("first", submission(), prepare=prepare)
        assert body(first)["error_details"]["last_checkpoint"] == "ckpt-002"
        goes_on_to_its_answer(attempts, "first", "on")
    finally:
        finish(attempts.loop)


@pytest.mark.promise(60)
@pytest.mark.thorough
@pytest.mark.parametrize(("into_heating_s", "heated"), [(0.0, False), (120.0, True)])
def test_an_annealing_is_taken_up_where_nothing_was_heated_and_nowhere_else(
    tmp_path: Path, into_heating_s: float, heated: bool
) -> None:
    plan = replace(read_lab(ANNEALING), state_dir=tmp_path / "state")
    attempts = Attempts(plan, tmp_path)
    submit = as_submit(ROOT / "examples" / "annealing.json")

    def stop(lab: Lab) -> None:
        assert attempts.task is not None
        attempts.task.abort("a test")

    try:
        attempts.run("first", submit, inject=(Injection("heating", into_heating_s, stop),))
        asked = going_on(submit, attempts.folder / "first")
        again = Injection("flush", 30.0, stop)  # which is carried out once more
        stops = () if heated else (again,)
        result = attempts.run("on", asked, earlier="first", inject=stops)
    finally:
        finish(attempts.loop)
    if heated:
        assert (result.message.type, body(result)["reason_code"]) == (
            "task_rejected",
            "safety_violation",
        )
        assert "heat is never resumed" in body(result)["reason_message"]
    else:
        assert body(result)["data"]["final_state"] == "ABORTED"


@pytest.mark.promise(60)
@pytest.mark.thorough
@pytest.mark.parametrize("when", ["before", "while arming"])
def test_a_line_that_was_changed_meanwhile_is_not_gone_on_with(failed: Attempts, when: str) -> None:
    faults = failed.sim_lab.plant.faults
    asked = going_on(submission(), failed.folder / "first")

    def opened(lab: Lab | None = None) -> None:
        faults.enclosure_open = True

    try:
        if when == "before":
            opened()
            result = failed.run("opened-before", asked, earlier="first")
            why = body(result)["reason_message"]
        else:
            late = Injection("arming", 0.0, opened)
            result = failed.run("opened-late", asked, earlier="first", inject=(late,))
            why = body(result)["error_message"]
    finally:
        faults.enclosure_open = False
    assert result.message.type == ("task_rejected" if when == "before" else "task_failed"), why
    assert "box.enclosure_shut is 0.0 and was 1.0" in why


@pytest.mark.promise(9)
@pytest.mark.thorough
def test_a_latched_line_goes_on_with_nothing_before_its_reset(failed: Attempts) -> None:
    asked = going_on(submission(), failed.folder / "first")
    latch = failed.plan.state_dir / "latch.json"
    Latch(latch).close(Trip(Cause.STOP_REQUEST, SAFE_TABLE, "test", None, 0.0, "a stop request"))
    try:
        result = failed.run("latched", asked, earlier="first")
    finally:
        latch.unlink()
    assert (result.message.type, body(result)["reason_code"]) == (
        "task_rejected",
        "resource_unavailable",
    )
    assert "latched" in body(result)["reason_message"]


# ---- the decision alone


def three_steps(last: str = "look") -> InstructionSet:
    """Load, heat and look; a later run may go on after the first one."""
    point = ResumePoint(description="loaded", holds={"furnace.temperature": (None, 60.0)})
    return InstructionSet(
        (
            Instruction(instruction_id="load", action="note", timeout_s=1.0, checkpoint=point),
            Instruction(
                instruction_id="heat", action="note", timeout_s=1.0, dependencies=("load",)
            ),
            Instruction(instruction_id=last, action="note", timeout_s=1.0, dependencies=("heat",)),
        )
    )


@dataclass
class Earlier:
    """The journal of a run that failed after its first step, and what a later one asks."""

    facts: LabFacts
    path: Path
    plan: InstructionSet = field(default_factory=three_steps)
    session_id: str = "session-1"
    checkpoint_id: str = "ckpt-001"
    caller_id: str = "harness-alpha-001"
    resumable: bool = True
    ended: str = "task_failed"
    after: tuple[tuple[str, float], ...] = ()
    again: bool = False

    def written(self) -> "Earlier":
        payload = submission()[1].stated()
        steps = [
            {"instruction": "load", "status": "COMPLETED", "started_s": 1.0, "ended_s": 9.0}
            | {"result": {"said": Text("advice.hold")}}
        ]
        made = {
            "checkpoint_id": "ckpt-001",
            "after": "load",
            "description": "loaded",
            "resumable": self.resumable,
            "plan_digest": three_steps().digest(),
            "lab_digest": self.facts.lab_digest,
            "envelope_digest": self.facts.envelope_digest,
            "readings": {"furnace.temperature": 25.0},
        }
        with SqliteJournal(self.path, run={"session_id": "session-1"}) as journal:
            journal.append("submitted", {"payload": payload}, 0.0)
            journal.append("planned", {"digest": three_steps().digest()}, 0.0)
            block = canonical({"steps": coded(steps)})
            journal.append_block("checkpoint", made, block, 10.0)
            if self.again:
                journal.append_block("checkpoint", {**made, "checkpoint_id": "ckpt-002"}, block, 11)
            for channel, value in self.after:
                journal.append("intent", {"channel": channel, "value": value, "unit": ""}, 11.0)
            journal.append("terminal", {"type": self.ended}, 12.0)
        return self

    def asked(self, **inputs: Any) -> TaskSubmit:
        point = ResumeFrom(session_id=self.session_id, checkpoint_id=self.checkpoint_id)
        change = {"resume_from": point, "caller_id": self.caller_id}
        return submission(**inputs)[1].model_copy(update=change)


@pytest.fixture(scope="module")
def facts() -> LabFacts:
    return replace(lab_facts_of(read_lab(SHORT_LINE)), begins_anew=False)


@pytest.mark.promise(60)
def test_a_run_that_failed_cold_can_be_gone_on_with(facts: LabFacts, tmp_path: Path) -> None:
    earlier = Earlier(facts, tmp_path / "journal.sqlite").written()
    found = look_up(earlier.asked(), earlier.path, earlier.plan, facts)
    assert isinstance(found, Resumption)
    assert found.remaining() == {"heat", "look"}
    (record,) = found.done(1000.0)
    assert (record.started_s, record.ended_s) == (991.0, 999.0)
    assert record.result is not None
    assert record.result["said"].code == "advice.hold"
    found.compare({"furnace.temperature": 60.0})
    with pytest.raises(NotResumable, match=r"furnace\.temperature is 61\.0 and was 25\.0"):
        found.compare({"furnace.temperature": 61.0})


@pytest.mark.promise(60)
def test_the_way_on_that_is_told_is_one_that_was_tried(facts: LabFacts, tmp_path: Path) -> None:
    earlier = Earlier(facts, tmp_path / "journal.sqlite").written()
    assert way_on(earlier.path, facts) == earlier.asked().resume_from
    assert way_on(earlier.path, replace(facts, begins_anew=True)) is None
    assert way_on(earlier.path, replace(facts, lab_digest="sha256:0")) is None
    heated = Earlier(facts, tmp_path / "heated.sqlite", after=(("furnace.setpoint", 300.0),))
    assert way_on(heated.written().path, facts) is None


ANNEALING = LABS / "annealing_furnace" / "lab.toml"
REFUSED: Mapping[str, tuple[dict[str, Any], str, str]] = {
    "session": ({"session_id": "session-2"}, "invalid_input", "not that of session session-2"),
    "checkpoint": ({"checkpoint_id": "ckpt-009"}, "invalid_input", "made: ckpt-001"),
    "superseded": ({"again": True}, "invalid_input", "came further, to checkpoint ckpt-002"),
    "caller": ({"caller_id": "somebody-else"}, "forbidden", "another caller"),
    "answered": ({"ended": "task_completed"}, "invalid_input", "has its answer"),
    "not at rest": ({"resumable": False}, "resource_unavailable", "not as a later run needs"),
    "plan": ({"plan": three_steps("see")}, "approval_expired", "The plan is not that"),
    "heated": ({"after": (("furnace.setpoint", 300.0),)}, "safety_violation", "never resumed"),
}


@pytest.mark.promise(60)
@pytest.mark.parametrize("name", REFUSED)
def test_what_does_not_belong_to_the_earlier_run_is_refused_with_its_reason(
    facts: LabFacts, tmp_path: Path, name: str
) -> None:
    changes, code, why = REFUSED[name]
    earlier = Earlier(facts, tmp_path / "journal.sqlite", **changes).written()
    found = look_up(earlier.asked(), earlier.path, earlier.plan, facts)
    assert isinstance(found, Rejected)
    assert (found.reason_code, why in found.reason_message) == (code, True), found


@pytest.mark.promise(60)
def test_other_inputs_another_lab_a_lower_class_and_a_run_that_nobody_knows_are_refused(
    facts: LabFacts, tmp_path: Path
) -> None:
    earlier = Earlier(facts, tmp_path / "journal.sqlite").written()
    other = replace(facts, lab_digest="sha256:0")
    lower = earlier.asked().model_copy(
        update={"constraints": Constraints(data_classification="T1")}
    )
    for asked, path, lab, code in (
        (earlier.asked(target_material="WS2"), earlier.path, facts, "resume.inputs"),
        (earlier.asked(), earlier.path, other, "resume.other"),
        (lower, earlier.path, facts, "resume.class"),
        (earlier.asked(), None, facts, "resume.unknown"),
        (earlier.asked(), tmp_path / "none.sqlite", facts, "resume.damaged"),
    ):
        found = look_up(asked, path, earlier.plan, lab)
        assert isinstance(found, Rejected)
        assert isinstance(found.reason_message, Text)
        assert found.reason_message.code == code


@pytest.mark.promise(60)
def test_a_damaged_journal_is_not_relied_on(facts: LabFacts, tmp_path: Path) -> None:
    earlier = Earlier(facts, tmp_path / "journal.sqlite").written()
    text = records(earlier.path)[2][1]
    changed(earlier.path, 3, data=text.replace(b"25.0", b"24.0"))
    found = look_up(earlier.asked(), earlier.path, earlier.plan, facts)
    assert isinstance(found, Rejected)
    assert found.reason_message.startswith("The journal of the earlier run cannot be relied on")


def test_the_command_says_why_it_cannot_go_on(facts: LabFacts, tmp_path: Path) -> None:
    def said() -> Said:
        return say("run", EXAMPLE, "--lab", SHORT_LINE, "--resume", tmp_path, "--out", "on")

    said().is_one_plain_error("no journal.sqlite")
    with SqliteJournal(tmp_path / "journal.sqlite", run={"session_id": "session-1"}):
        pass
    said().is_one_plain_error("no checkpoint from which a run may go on")
    (tmp_path / "journal.sqlite").unlink()
    Earlier(facts, tmp_path / "journal.sqlite").written()
    said().is_one_plain_error("serve it (labharness simulate) to keep it")
    assert not Path("on").exists()
