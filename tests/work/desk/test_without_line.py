"""A task that needs no line is screened, recorded and answered like any other, without a line."""

import json
from collections.abc import Mapping
from dataclasses import replace
from errno import ENOSPC
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from confidential import PAPER, confidential_lab, confidential_task
from labharness.core.files.named import is_there
from labharness.journal.artifacts import Artifacts
from labharness.journal.reading import read, verify_file
from labharness.lab import read_lab
from labharness.lab.wiring.tasks import TaskRun, lab_facts_without_line
from labharness.protocols.hcp.codec import decode, encode, submission_of
from labharness.work.capability import document_analysis
from labharness.work.capability.document_analysis import supervised
from labharness.work.capability.document_analysis.source import NotFetched
from labharness.work.desk.admitting import Admitting
from labharness.work.desk.closing import unfit
from rig import HERE, SHIPPED, as_submit

EXAMPLE = HERE.parent / "examples" / "document-analysis.json"
FOUND: Mapping[str, Any] = {"findings": [], "growth": None, "sections": 1}
SLOW = "import time; time.sleep(50)"


def run_of(folder: Path, **changes: Any) -> TaskRun:
    """Return a run of the example, with other values of its payload."""
    body = json.loads(EXAMPLE.read_text("utf-8"))
    body["payload"] |= changes
    plan = replace(read_lab(SHIPPED), state_dir=folder / "state")
    told: list[str] = []
    return TaskRun(
        plan,
        *as_submit(body),
        without_line=lab_facts_without_line(plan),
        out=folder / "run",
        tell=lambda kind, data: told.append(kind),
    )


def kinds(run: TaskRun) -> list[str]:
    return [each.kind for each in read(run.folder / "journal.sqlite")]


def events(run: TaskRun) -> list[Mapping[str, Any]]:
    records = read(run.folder / "journal.sqlite")
    return [each.body for each in records if each.kind == "event"]


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    async def found(*given: object) -> Mapping[str, Any]:
        return FOUND

    monkeypatch.setattr(document_analysis, "read_apart", found)


@pytest.fixture
def stalled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "stands_in.py").write_text(SLOW)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setattr(supervised, "READER", "stands_in")


@pytest.mark.thorough
def test_the_example_is_answered_with_findings_and_a_task_that_can_be_sent(tmp_path: Path) -> None:
    run = run_of(tmp_path)
    payload = run.execute().message.payload.model_dump()
    found = {each["statement"]: each for each in payload["outputs"]["findings"]}
    coverage = next(each for said, each in found.items() if "coverage of 85 %" in said)
    assert coverage["source_section"] == "Results, Section 3.2"
    proposed = decode(json.dumps(payload["outputs"]["proposed_task"]).encode())
    assert proposed.type == "task_submit"
    assert json.loads(encode(proposed))["payload"]["caller_id"] == "harness-local-01"
    assert payload["execution_summary"]["steps_executed"] == 2


@pytest.mark.usefixtures("quick")
@pytest.mark.promise(64)
def test_its_journal_has_the_records_of_any_run_in_their_order(tmp_path: Path) -> None:
    run = run_of(tmp_path)
    result = run.execute()
    assert result.message.type == "task_completed"
    assert [each for each in kinds(run) if each not in ("event", "step")] == [
        "submitted",
        "planned",
        "task_accepted",
        "terminal",
    ]
    assert [each["sequence"] for each in events(run)] == list(range(1, len(events(run)) + 1))
    states = [each["data"]["to_state"] for each in events(run) if "to_state" in each["data"]]
    assert states == ["RUNNING", "COMPLETED"]
    assert verify_file(run.folder / "journal.sqlite").ok
    answer = decode((run.folder / "answer.json").read_bytes())
    assert answer.message_id == result.message.message_id


@pytest.mark.usefixtures("quick")
def test_it_takes_no_lock_of_a_line_and_arms_nothing(tmp_path: Path) -> None:
    run_of(tmp_path).execute()
    left = {each.name for each in (tmp_path / "state").iterdir()}
    assert not left & {"line.lock", "armed.json", "latch.json", "owner.json"}


@pytest.mark.usefixtures("quick")
def test_it_is_accepted_at_r1_and_its_token_is_in_no_file(tmp_path: Path) -> None:
    run = run_of(tmp_path)
    run.execute()
    accepted = next(
        r.body for r in read(run.folder / "journal.sqlite") if r.kind == "task_accepted"
    )
    assert (accepted["risk_level"], accepted["session_token"]) == ("R1", None)


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"caller_id": "nobody"}, "unauthorized"),
        ({"inputs": {}}, "invalid_input"),
        ({"inputs": {"document": "x", "pages": 3}}, "invalid_input"),
        ({"inputs": {"document_uri": "file:///etc/passwd"}}, "forbidden"),
        ({"constraints": {"data_classification": "T3"}}, "forbidden"),
        ({"capability_version": "2.x"}, "invalid_input"),
        ({"resume_from": {"session_id": "a", "checkpoint_id": "b"}}, "invalid_input"),
    ],
)
@pytest.mark.promise(64)
def test_what_may_not_be_asked_is_rejected_with_its_reason_and_a_terminal_fact(
    changes: dict[str, Any], code: str, tmp_path: Path
) -> None:
    run = run_of(tmp_path, **changes)
    message = run.execute().message
    assert (message.type, message.payload.model_dump()["reason_code"]) == ("task_rejected", code)
    assert kinds(run)[-1] == "terminal"
    assert "task_accepted" not in kinds(run)


@pytest.mark.usefixtures("stalled")
def test_an_abort_ends_it_at_once(tmp_path: Path) -> None:
    run = run_of(tmp_path)
    thread = Thread(target=run.execute)
    run_told = run.tell

    def tell(kind: str, data: Mapping[str, Any]) -> None:
        run_told(kind, data)
        if kind == "task_accepted":
            run.abort("enough")

    run.tell = tell
    thread.start()
    thread.join(20)
    assert not thread.is_alive()
    states = [each["data"]["to_state"] for each in events(run) if "to_state" in each["data"]]
    assert states == ["RUNNING", "ABORTING", "ABORTED"]
    assert kinds(run)[-1] == "terminal"


@pytest.mark.usefixtures("stalled")
def test_a_task_that_takes_too_long_fails_with_timeout(tmp_path: Path) -> None:
    message = run_of(tmp_path, constraints={"max_duration": "PT1S"}).execute().message
    assert message.type == "task_failed"
    assert message.payload.model_dump()["error_code"] == "timeout"


@pytest.mark.parametrize(
    ("script", "code"),
    [
        ('import sys; sys.stdout.write(\'{"unreadable": "damaged"}\')', "input_error"),
        ("raise SystemExit(3)", "execution_error"),
    ],
)
def test_a_document_and_a_reader_that_fail_have_different_codes(
    script: str, code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "stands_in.py").write_text(script)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setattr(supervised, "READER", "stands_in")
    run = run_of(tmp_path)
    payload = run.execute().message.payload.model_dump()
    assert payload["error_code"] == code
    assert payload["error_details"]["phase"] == "analysis"
    assert is_there(run.folder / "answer.json")


@pytest.mark.parametrize(
    ("fault", "code"),
    [
        (NotFetched("the server is away"), "resource_unavailable"),
        (ZeroDivisionError("ours"), "internal_error"),
    ],
)
def test_a_document_that_is_away_and_an_error_of_ours_have_codes_of_their_own(
    fault: Exception, code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(*given: object) -> None:
        raise fault

    monkeypatch.setattr(document_analysis, "document_of", failing)
    message = run_of(tmp_path).execute().message
    assert message.type == "task_failed"
    assert message.payload.model_dump()["error_code"] == code


def test_outputs_that_are_not_those_asked_for_fail_with_what_was_found(
    quick: None, tmp_path: Path
) -> None:
    wanted = {"schema": {"properties": {"findings": {"minItems": 1}}}}
    payload = run_of(tmp_path, expected_output=wanted).execute().message.payload.model_dump()
    assert payload["error_code"] == "execution_error"
    assert payload["partial_outputs"]["findings"] == []


@pytest.mark.parametrize("found", [(), ("findings",), ("findings", "count"), ("count", "kind")])
def test_an_answer_without_a_required_field_is_unfit_and_says_which(found: tuple[str, ...]) -> None:
    _, payload = as_submit(json.loads(EXAMPLE.read_text("utf-8")))
    required = ("findings", "count")
    asked = replace(submission_of(payload), required_fields=required, output_schema=None)
    said = unfit(asked, dict.fromkeys(found, 1))
    lacking = [each for each in asked.required_fields if each not in found]
    assert [each for each in asked.required_fields if each in str(said)] == lacking


@pytest.mark.usefixtures("quick")
def test_a_name_of_a_higher_minor_version_is_warned_of_and_the_task_runs(tmp_path: Path) -> None:
    body = json.loads(EXAMPLE.read_text("utf-8"))
    body["payload"] |= {"x_mood": "calm"}
    body["payload"]["inputs"] |= {"x_depth": 2}
    for version, kind in (("1.0", "task_rejected"), ("1.7", "task_completed")):
        plan = replace(read_lab(SHIPPED), state_dir=tmp_path / version / "state")
        submit = as_submit({**body, "hcp_version": version})
        run = TaskRun(
            plan,
            *submit,
            without_line=lab_facts_without_line(plan),
            out=tmp_path / version / "run",
        )
        message = run.execute().message
        assert message.type == kind, message.payload
        codes = [each["data"].get("code") for each in events(run)]
        assert codes.count("name_ignored") == (2 if version == "1.7" else 0)
    told = [each["data"]["message"] for each in events(run) if "name_ignored" in str(each)]
    assert "payload.x_mood" in told[0]
    assert "inputs.x_depth" in told[1]
    kept = [each.body for each in read(run.folder / "journal.sqlite") if each.kind == "submitted"]
    assert kept[0]["payload"]["x_mood"] == "calm"


@pytest.mark.usefixtures("quick")
def test_a_closed_schema_gets_the_outputs_that_it_names_and_an_artifact_has_all(
    tmp_path: Path,
) -> None:
    closed = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "$id": "https://caller.example/findings.json",
        "type": "object",
        "properties": {"findings": {"type": "array"}},
        "additionalProperties": False,
    }
    whole = run_of(tmp_path / "open", expected_output={}).execute().message.payload.model_dump()
    run = run_of(tmp_path / "closed", expected_output={"schema": closed})
    payload = run.execute().message.payload.model_dump()
    assert set(payload["outputs"]) == {"findings"} < set(whole["outputs"])
    (kept,) = [each for each in payload["artifacts"] if each["name"] == "all_outputs"]
    stored = (run.folder / "artifacts" / kept["uri"].rpartition("/")[2]).read_text("utf-8")
    assert json.loads(stored) == whole["outputs"]
    assert "all_outputs" not in [each["name"] for each in whole["artifacts"]]


def test_an_error_of_ours_before_it_is_accepted_rejects_it_and_is_logged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def failing(*given: object) -> None:
        raise ZeroDivisionError("ours")

    monkeypatch.setattr(Admitting, "weigh", failing)
    message = run_of(tmp_path).execute().message
    assert message.type == "task_rejected"
    payload = message.payload.model_dump()
    assert payload["reason_code"] == "resource_unavailable"
    assert "ZeroDivisionError" in payload["reason_message"]
    assert any(each.exc_info and each.exc_info[0] is ZeroDivisionError for each in caplog.records)


@pytest.mark.usefixtures("quick")
def test_where_the_disk_takes_no_result_of_a_confidential_task_nothing_is_referred_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*given: object) -> None:
        raise OSError(ENOSPC, "no space is left")

    monkeypatch.setattr(Artifacts, "put", full)
    wanted = {"schema": {"properties": {"findings": {"minItems": 1}}}}
    asked = confidential_task({"document": PAPER}, expected_output=wanted)
    body = {**json.loads(EXAMPLE.read_text("utf-8")), "payload": asked}
    plan = read_lab(confidential_lab(tmp_path / "lab"))
    told: list[Any] = []
    run = TaskRun(
        plan,
        *as_submit(body),
        without_line=lab_facts_without_line(plan),
        out=tmp_path / "run",
        tell=lambda kind, data: told.append((kind, dict(data))),
    )
    message = run.execute().message
    assert message.type == "task_failed"
    assert message.payload.model_dump()["partial_outputs"] == {}
    lost = [data for kind, data in told if kind == "warning" and data["code"] == "artifact_lost"]
    assert len(lost) == 3, "of the reason, the outputs, and the remarks"
