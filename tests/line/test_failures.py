"""What breaks on our side: the line is made safe all the same, and the answer says what it was."""

import asyncio
from collections.abc import Mapping
from pathlib import Path

import pytest

from labharness.journal import JournalFailed
from labharness.journal.reading import read
from labharness.lab import Lab, LabPlan
from labharness.safety.guard import Latch
from rig import Injection, Run, approved_copy, deafen_argon, heat_is_off

DWELL = "material_growth"


@pytest.mark.thorough
def test_a_decoder_that_breaks_ends_the_run_safe_and_is_called_ours(run_task: Run) -> None:
    def break_decoder(lab: Lab) -> None:
        def raises(*args: object) -> None:
            raise KeyError("planted")

        lab.line._poller._chains[0].take = raises

    ran = run_task(inject=(Injection(DWELL, 60.0, break_decoder),))
    assert ran.type == "task_failed"
    assert ran.body["error_code"] == "internal_error"
    assert "planted" in ran.body["error_message"]
    assert heat_is_off(ran)
    kinds = [record.kind for record in read(ran.result.folder / "journal.sqlite")]
    assert "make_safe" in kinds


@pytest.mark.thorough
def test_a_verb_that_breaks_ends_the_run_safe(
    short_plan: LabPlan, run_task: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def raises(step: object) -> Mapping[str, object]:
        raise ZeroDivisionError("planted")

    from labharness.work.capability import cvd

    verbs = {**cvd.CvdSynthesis.verbs, "hold": raises}
    monkeypatch.setattr(cvd.CvdSynthesis, "verbs", verbs)
    ran = run_task(short_plan)
    assert ran.body["error_code"] == "internal_error"
    assert "ZeroDivisionError" in ran.body["error_message"]
    assert heat_is_off(ran)
    assert not (short_plan.state_dir / "latch.json").exists()


@pytest.mark.promise(20)
def test_a_journal_that_is_lost_trips_the_line(short_plan: LabPlan, run_task: Run) -> None:
    def fill_disk(lab: Lab) -> None:
        def full(*args: object, **options: object) -> int:
            raise JournalFailed("no space left on device")

        journal = lab.line.journal
        for name in ("append", "sample", "commit", "flush"):
            setattr(journal, name, full)

    ran = run_task(short_plan, inject=(Injection(DWELL, 60.0, fill_disk),))
    assert ran.type == "task_failed"
    assert ran.body["execution_summary"]["risk_events"][0]["code"] == "journal_lost"
    assert ran.lab.line.trip_response.verifications[0].complete
    assert heat_is_off(ran)
    assert (short_plan.state_dir / "latch.json").exists()


def test_an_intent_that_cannot_be_recorded_trips_the_line_and_is_no_internal_error(
    short_plan: LabPlan, run_task: Run
) -> None:
    def fill_disk(lab: Lab) -> None:
        def full() -> None:
            raise JournalFailed("no space left on device")

        lab.line.journal.commit = full  # type: ignore[method-assign]  # a disk that is full

    ran = run_task(short_plan, inject=(Injection("leak_check", 0.1, fill_disk),))
    assert ran.body["error_code"] == "safety_violation"
    assert ran.body["execution_summary"]["risk_events"][0]["code"] == "journal_lost"
    assert ran.lab.line.trip_response.verifications[0].complete
    assert (short_plan.state_dir / "latch.json").exists()


@pytest.mark.thorough
def test_an_operator_who_never_comes_ends_the_task_at_its_max_duration(run_task: Run) -> None:
    class Nobody:
        async def confirm(self, action: str, text: str, details: Mapping[str, object]) -> str:
            await asyncio.sleep(1e6)
            return ""

    def go_home(lab: Lab) -> None:
        lab.operator = Nobody()

    ran = run_task(prepare=go_home, max_duration="PT85M")
    assert ran.body["error_code"] in ("timeout", "execution_error")
    assert ran.body["error_details"]["phase"] == "loading"
    assert heat_is_off(ran)


@pytest.mark.thorough
def test_a_stop_request_during_the_ramp_closes_the_session_aborted(
    short_plan: LabPlan, run_task: Run
) -> None:
    ran = run_task(short_plan, abort=("ramp", 60.0))
    assert ran.type == "event"
    assert ran.body["event_type"] == "session_closed"
    assert ran.body["data"] == {"final_state": "ABORTED", "reason": "stop request (test)"}
    assert heat_is_off(ran)
    records = list(read(ran.result.folder / "journal.sqlite"))
    (verified,) = [record for record in records if record.kind == "verified"][1:]
    assert verified.body["complete"]
    assert not (short_plan.state_dir / "latch.json").exists()
    assert run_task(short_plan, abort=("purge", 1.0)).body["event_type"] == "session_closed"


@pytest.mark.promise(12)
def test_a_stopped_line_that_nothing_verifies_latches_and_keeps_out_the_next_run(
    short_plan: LabPlan, run_task: Run
) -> None:
    deaf = Injection("ramp", 30.0, deafen_argon)
    ran = run_task(short_plan, inject=(deaf,), abort=("ramp", 31.0))
    assert ran.body["data"]["final_state"] == "ABORTED"
    (warning,) = ran.body["data"]["warnings"]
    assert "argon.setpoint = 100: mismatch (reads 50)" in warning
    assert heat_is_off(ran)
    trip = Latch(short_plan.state_dir / "latch.json").trip
    assert trip is not None
    assert trip.detail.startswith("not verified by abort: argon.setpoint")
    again = run_task(short_plan)
    assert again.body["reason_code"] == "resource_unavailable"


@pytest.mark.thorough
def test_a_good_end_that_nothing_verifies_is_no_good_end(
    short_plan: LabPlan, run_task: Run
) -> None:
    ran = run_task(short_plan, inject=(Injection("analysis", 0.0, deafen_argon),))
    assert ran.type == "task_failed"
    assert "not verified by abort: argon.setpoint" in ran.body["error_message"]
    assert Latch(short_plan.state_dir / "latch.json").trip is not None


def test_an_admission_that_breaks_is_answered_and_sends_nothing(
    run_task: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    from labharness.work.capability import cvd

    def raises(*args: object) -> None:
        raise RuntimeError("planted")

    monkeypatch.setattr(cvd.CvdSynthesis, "plan", raises)
    ran = run_task()
    assert ran.body["reason_code"] == "resource_unavailable"
    assert "planted" in ran.body["reason_message"]
    assert ran.lab.guard.core.log == []


def test_a_wrong_growth_table_is_named(run_task: Run, tmp_path: Path) -> None:
    plan = approved_copy(tmp_path, edit=lambda text: text.replace("dwell_s = 900", "dwel_s = 900"))
    ran = run_task(plan)
    assert ran.body["reason_code"] == "resource_unavailable"
    assert "dwel_s" in ran.body["reason_message"]
