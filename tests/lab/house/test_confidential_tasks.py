"""What a house keeps of confidential tasks: nothing of their inputs in clear, and what it needs."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from canary import CANARY, found_in
from commands import say
from confidential import CALLER, PAPER, confidential_lab, confidential_task
from house_kept import DeskHouse
from labharness.core.clock import steady_s
from labharness.journal.encryption import KeyMissing
from labharness.lab.house.access import abort_session
from labharness.lab.house.intake import forget, read_submission
from labharness.lab.house.message_store import MessageStore, submit_file
from labharness.lab.house.orders import TaskRefused
from labharness.protocols.hcp.codec import HcpMessage, NotHcp
from labharness.work.admission.confidential import Way
from labharness.work.task.jobs import BadJob
from labharness.work.task.record import Task
from rig import task_submit


class Desk(DeskHouse):
    """A house of a lab that may have a key for confidential data."""

    def __init__(self, folder: Path, *, keyed: bool) -> None:
        super().__init__(folder, confidential_lab(folder / "lab", keyed=keyed), folder / "state")

    def submit(self, key: str, payload: dict[str, Any], way: Way = "local") -> str:
        data = json.dumps(task_submit(payload, key)).encode()
        return self.house.submit(data, via="amqp", way=way).task_id

    def ended(self, task_id: str) -> Task:
        def is_over() -> bool:
            self.house.step()
            return self.house.tasks.by_id[task_id].status in ("completed", "failed", "cancelled")

        self.until(is_over)
        return self.house.tasks.by_id[task_id]

    def answer(self, task_id: str) -> HcpMessage:
        with MessageStore(self.home) as kept:
            answer = kept.answer(task_id)
        assert answer is not None
        return answer

    def found(self) -> list[str]:
        self.desk.leave("over")
        self.journal.close()
        return found_in(self.folder)


INLINE = confidential_task({"document": PAPER}, intent=f"Find {CANARY}", context={"a": CANARY})


@pytest.fixture
def desk(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Desk]:
    made = Desk(tmp_path, keyed=getattr(request, "param", True))
    yield made
    made.desk.leave("over")
    made.journal.close()


@pytest.mark.promise(71)
def test_a_house_carries_a_confidential_task_out_and_keeps_none_of_it_in_clear(desk: Desk) -> None:
    bounds = {"data_classification": "T3", "priority": "high"}
    task_id = desk.submit("k", {**INLINE, "constraints": bounds})
    task = desk.ended(task_id)
    assert task.status == "completed"
    assert task.constraints == {"data_classification": "T3", "priority": "high"}
    assert task.priority == "high"
    _, kept = read_submission(submit_file(desk.home, task_id))
    assert CANARY in kept.model_dump()["intent"]
    results = next(
        each for each in task.attempts[0].output_offsets if each.endswith("results.json")
    )
    shown = say("artifact", results, "--runs", desk.folder / "runs", "--cat")
    assert CANARY in shown.out
    assert desk.found() == []


@pytest.mark.promise(71)
@pytest.mark.parametrize("desk", [True, False], indirect=True)
@pytest.mark.parametrize(
    "payload",
    [
        confidential_task({CANARY: 1}),
        confidential_task({"document_uri": f"file:///{CANARY}"}, intent=CANARY),
        confidential_task({"note": CANARY}, capability="iv-curve"),
        {**INLINE, "expected_output": {"required_fields": [CANARY]}},
    ],
)
def test_of_a_confidential_task_that_is_rejected_no_input_is_kept(
    desk: Desk, payload: dict[str, Any]
) -> None:
    task_id = desk.submit("k", payload)
    answer = desk.answer(task_id)
    assert answer.type == "task_rejected"
    assert desk.house.tasks.by_id[task_id].status == "failed"
    assert desk.found() == []


def test_one_key_is_one_confidential_task_and_no_other(desk: Desk) -> None:
    task_id = desk.submit("k", INLINE)
    assert desk.submit("k", INLINE) == task_id
    with pytest.raises(TaskRefused, match="key"):
        desk.submit("k", {**INLINE, "inputs": {"document": "another"}})
    with pytest.raises(TaskRefused, match="key"):
        desk.submit("k", {**INLINE, "constraints": {"data_classification": "T4"}})
    assert desk.found() == []


@pytest.mark.promise(71)
@pytest.mark.parametrize("way", ["tls", "plain"])
def test_over_a_broker_confidential_data_are_refused_that_are_no_reference(
    desk: Desk, way: Way
) -> None:
    task_id = desk.submit("k", confidential_task({"document": PAPER}), way)
    answer = desk.answer(task_id).payload.model_dump()
    assert answer["reason_code"] == "forbidden"
    words = {"tls": "references alone", "plain": "without TLS"}
    assert words[way] in answer["reason_message"]
    assert desk.found() == []


@pytest.mark.thorough
def test_the_reason_of_a_callers_abort_is_not_kept(desk: Desk) -> None:
    task_id = desk.submit("k", INLINE)
    session_id = desk.house.tasks.by_id[task_id].session_id
    files = MessageStore(desk.home)
    accepted = files.kept(session_id, "accepted")
    until_s = steady_s() + 10.0
    while not accepted and steady_s() < until_s:
        accepted = files.kept(session_id, "accepted")
    token = str(getattr(accepted[0].payload, "session_token", "")) if accepted else ""
    assert abort_session(desk.house, files, CALLER, session_id, token, CANARY) == "asked"
    desk.ended(task_id)
    assert desk.found() == []


def test_a_job_takes_no_confidential_task(desk: Desk) -> None:
    body = task_submit(INLINE)
    given: dict[str, Any] = {"every": "", "title": "", "seed": None}
    for data_class, name, values in (
        ("T3", "confidence_threshold", [0.1]),
        ("T2", "data_classification", ["T2", "T4"]),
    ):
        body["payload"] = {**INLINE, "constraints": {"data_classification": data_class}}
        vary: Any = {f"constraints.{name}": values}
        with pytest.raises(BadJob, match="not taken in a job"):
            desk.house.create_job(json.dumps(body).encode(), "olga", vary, **given)
    assert desk.found() == []


def test_a_submission_without_its_key_is_one_plain_error(desk: Desk) -> None:
    task_id = desk.submit("k", INLINE)
    desk.ended(task_id)
    (desk.lab.parent / "data.key").unlink()
    with pytest.raises(KeyMissing, match="cannot be had"):
        read_submission(submit_file(desk.home, task_id))
    with pytest.raises(TaskRefused, match=r"data\.key"):
        desk.submit("another", INLINE)
    assert desk.found() == []


def test_a_task_whose_key_is_gone_before_its_turn_has_failed(desk: Desk) -> None:
    key = desk.lab.parent / "data.key"
    many = [desk.submit(f"k{number}", INLINE) for number in range(5)]  # four at once
    key.rename(key.with_name("moved"))
    task = desk.ended(many[-1])
    assert (task.status, task.error_code) == ("failed", "key_missing")
    assert desk.found() == []


@pytest.mark.promise(73)
def test_with_a_removed_run_the_key_of_its_submission_goes(desk: Desk) -> None:
    task_id = desk.submit("k", INLINE)
    run_id = desk.ended(task_id).attempts[0].run_id
    path = submit_file(desk.home, task_id)
    forget(desk.home, desk.house.tasks, "another")
    read_submission(path)
    forget(desk.home, desk.house.tasks, run_id)
    with pytest.raises(NotHcp):
        read_submission(path)


@pytest.mark.promise(73)
def test_the_command_that_removes_a_run_destroys_the_key_of_its_submission(desk: Desk) -> None:
    task_id = desk.submit("k", INLINE)
    run_id = desk.ended(task_id).attempts[0].run_id
    desk.desk.leave("over")
    runs = desk.folder / "runs"
    os.utime(runs / run_id / "journal.sqlite", (0, 0))
    with desk.lab.open("a", encoding="utf-8") as file:
        file.write("\n[retention]\nT3 = 10\n")
    read_submission(submit_file(desk.home, task_id))
    words = ("--runs", runs, "--lab", desk.lab, "--name", "Ada", "--reason", "the rule")
    done = say("retention", "apply", *words, "--clock-checked")
    assert (done.code, "1 removed, 0 kept" in done.out) == (0, True), done
    assert not (runs / run_id).exists()
    with pytest.raises(NotHcp):
        read_submission(submit_file(desk.home, task_id))
