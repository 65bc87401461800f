"""A task follows the journal of its run: each record makes its commands once."""

from typing import Any

import pytest

from labharness.core.vocabulary.texts import Text
from labharness.journal.chain import Record
from labharness.work.task.commands import ReportStatus, RetryTask
from labharness.work.task.following import _request, followed, found_again, read_up_to
from labharness.work.task.record import PersonRequest, RetryPolicy, Task
from labharness.work.task.snapshot import last_error, task_of
from line_world import script
from tasks_alone import OLGA, RUNTIME, TasksAlone

Body = tuple[str, dict[str, Any]]


def records(bodies: list[Body], first: int = 1) -> list[Record]:
    return [Record(first + i, 0.0, kind, body, "") for i, (kind, body) in enumerate(bodies)]


def state(before: str, to: str) -> Body:
    data = {"from_state": before, "to_state": to, "reason": "why"}
    return "event", {"event_type": "state_changed", "data": data}


def said(stage: str, message: str) -> Body:
    data = {"stage": stage, "percent": 0, "message": message}
    return "event", {"event_type": "progress", "data": data}


def follow(alone: TasksAlone, bodies: list[Body]) -> None:
    """Follow new records, and see that the control plane refuses none of what they say."""
    task = alone["t"]
    run = task.current
    assert run is not None
    for command in followed(task, run, records(bodies, read_up_to(run) + 1)):
        assert not alone(command, RUNTIME), command


def logged(**details: object) -> Body:
    data = {"level": "info", "message": "load it", "details": details}
    return "event", {"event_type": "log", "data": data}


def asked(step: str) -> Body:
    return logged(required_action=f"confirm:{step}", about={"sample": "S1"})


ASKED, DONE = asked("load"), logged(confirmed_by="Ann")
HELD, GOES_ON = state("RUNNING", "PAUSED"), state("PAUSED", "RUNNING")


@pytest.fixture
def alone() -> TasksAlone:
    found = TasksAlone()
    found.running(retry=RetryPolicy(2))
    return found


@pytest.mark.parametrize(
    ("bodies", "status", "native"),
    [
        ([state("RUNNING", "PAUSED")], "paused", "held"),
        ([state("RUNNING", "PAUSED"), state("PAUSED", "RUNNING")], "running", ""),
        ([state("RUNNING", "ABORTING")], "cancelling", ""),
        ([said("awaiting_approval", Text("approval.looking"))], "running", ""),
        ([said("awaiting_approval", Text("approval.waiting"))], "waiting_permission", ""),
        ([ASKED], "waiting_input", ""),
        ([ASKED, DONE], "running", ""),
        ([ASKED, HELD], "paused", "held"),
        ([ASKED, HELD, GOES_ON], "waiting_input", ""),
        ([ASKED, HELD, GOES_ON, DONE], "running", ""),
        ([ASKED, DONE, HELD, GOES_ON], "running", ""),
        ([ASKED, DONE, asked("transfer")], "waiting_input", ""),
        ([ASKED, state("RUNNING", "ABORTING"), DONE], "cancelling", ""),
    ],
)
def test_the_status_is_the_one_that_the_session_has(
    alone: TasksAlone, bodies: list[Body], status: str, native: str
) -> None:
    follow(alone, bodies)
    run = alone["t"].current
    assert run is not None
    assert (alone["t"].status, run.native_status) == (status, native)


@pytest.mark.promise(75)
def test_a_task_waits_for_a_manual_step_until_a_person_has_confirmed_it(alone: TasksAlone) -> None:
    for bodies in ([ASKED], [HELD], [GOES_ON]):
        follow(alone, bodies)
    assert waits(alone["t"]) == ("waiting_input", "load: load it; sample = S1", "confirm:load")
    assert not alone(ReportStatus(task_id="t", to="lost", reason="line_owner_silent"), RUNTIME)
    for command in found_again(alone["t"]):
        assert not alone(command, RUNTIME)
    assert waits(alone["t"]) == ("waiting_input", "load: load it; sample = S1", "confirm:load")
    follow(alone, [DONE])
    assert waits(alone["t"])[::2] == ("running", "")
    assert alone["t"].request is None


def waits(task: Task) -> tuple[str, str, str]:
    return task.status, task.status_reason, task.required_action


@pytest.mark.parametrize(
    ("end", "status", "error"),
    [
        ("task_completed", "completed", ""),
        ("task_failed", "failed", "safety_violation"),
        ("task_rejected", "failed", "risk_too_high"),
        ("event", "cancelled", ""),
    ],
)
def test_the_end_of_a_run_is_the_end_of_its_task(end: str, status: str, error: str) -> None:
    alone = TasksAlone()
    alone.running()
    follow(
        alone,
        [each for each in script(end) if each[1].get("data", {}).get("to_state") != "RUNNING"],
    )
    assert (alone["t"].status, alone["t"].error_code) == (status, error)
    assert alone["t"].current is None


def terminal(kind: str, **payload: Any) -> Body:
    return "terminal", {"type": kind, "payload": payload}


@pytest.mark.parametrize(
    ("end", "status"),
    [
        (terminal("task_failed", error_code="timeout", error_message="why"), "timed_out"),
        (terminal("task_failed", error_code="execution_error", error_message="why"), "failed"),
        (terminal("task_rejected", reason_code="forbidden", reason_message="why"), "failed"),
    ],
)
def test_the_end_is_kept_with_its_reason_in_words(
    alone: TasksAlone, end: Body, status: str
) -> None:
    follow(alone, [end])
    task = alone["t"]
    code = next(value for name, value in end[1]["payload"].items() if name.endswith("_code"))
    assert task.status == status
    assert last_error(task) == {"code": code, "message": "why"}
    assert task_of(alone.tasks, task)["attempts"][-1]["completionSummary"] == "why"
    assert task.attempts[-1].status == "failed"
    assert not alone(RetryTask(task_id="t", run_id="r2", worker="line", reason="again"), OLGA)
    assert last_error(alone["t"]) == {"code": code}  # the reason of the retry is not its reason


@pytest.mark.parametrize(
    "end",
    [
        terminal("task_rejected", reason_code="aborted", reason_message="why"),
        terminal("event", data={"final_state": "ABORTED", "reason": "why"}),
    ],
)
def test_an_aborted_run_cancels_its_task_with_its_reason(alone: TasksAlone, end: Body) -> None:
    follow(alone, [end])
    assert (alone["t"].status, alone["t"].status_reason) == ("cancelled", "why")


@pytest.mark.parametrize(
    ("event", "open_"),
    [
        (state("RUNNING", "COMPLETED"), False),
        (state("RUNNING", "PAUSED"), True),
        (state("PAUSED", "RUNNING"), True),
        (logged(confirmed_by="ann"), False),
        (logged(of="another"), True),
        (said("ramp", "hotter"), True),
    ],
)
def test_a_request_is_open_until_it_is_answered_and_a_hold_is_no_answer(
    event: Body, open_: bool
) -> None:
    request = PersonRequest("waiting_input", "load it", "confirm:load")
    assert _request(request, event[1]) == (request if open_ else None)


def test_the_finding_of_a_run_is_the_summary_of_its_attempt(alone: TasksAlone) -> None:
    finding, outputs = {"finding": "one layer"}, {"raman": 1}
    follow(alone, [terminal("task_completed", outputs=outputs, execution_summary=finding)])
    assert alone["t"].status == "completed"
    assert task_of(alone.tasks, alone["t"])["attempts"][-1]["completionSummary"] == "one layer"


def test_it_goes_on_behind_the_last_record_it_has_followed(alone: TasksAlone) -> None:
    follow(alone, [("step", {"instruction": "heat", "status": "RUNNING"})])
    follow(alone, [("step", {"instruction": "heat", "status": "COMPLETED"})])
    run = alone["t"].current
    assert run is not None
    assert [each.status for each in run.steps] == ["RUNNING", "COMPLETED"]
    assert read_up_to(run) == 2


def test_what_an_attempt_has_done_is_counted_and_its_journal_is_evidence(alone: TasksAlone) -> None:
    plan: dict[str, Any] = {"instructions": {"instructions": [{}, {}, {}]}}
    begun, done = ({"instruction": "heat", "status": each} for each in ("RUNNING", "COMPLETED"))
    follow(alone, [("planned", plan), ("step", begun)])
    follow(alone, [("step", done), ("queried", {}), ("queried", {}), ("checkpoint", {})])
    count = {"steps": 3, "steps_completed": 1, "results": 2, "checkpoints": 1}
    assert alone["t"].progress.counters == count
    assert task_of(alone.tasks, alone["t"])["progress"]["percent"] == 33
    run = alone["t"].current
    assert run is not None
    assert task_of(alone.tasks, alone["t"])["evidenceRefs"] == [f"journal:{run.run_id}"]
    follow(alone, [terminal("task_failed", error_code="cold")])
    assert not alone(RetryTask(task_id="t", run_id="r2", worker="line", reason="again"), OLGA)
    follow(alone, [("step", begun)])
    assert alone["t"].progress.counters == dict.fromkeys(count, 0)


def test_a_checkpoint_is_one_of_its_attempt(alone: TasksAlone) -> None:
    data = {"checkpoint_id": "c1"}
    follow(alone, [("event", {"event_type": "checkpoint_created", "data": data})])
    run = alone["t"].current
    assert run is not None
    assert run.checkpoint_refs == ("c1",)


def test_a_lost_run_that_writes_again_is_found(alone: TasksAlone) -> None:
    assert not alone(ReportStatus(task_id="t", to="lost"))
    follow(alone, script("task_completed")[2:])
    assert alone["t"].status == "completed"
