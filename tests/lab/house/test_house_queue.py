"""Two callers, five tasks of mixed priority, a trip between them, and a house that starts twice."""

import json
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest

from house_kept import Kept
from labharness.core.vocabulary.texts import Text
from labharness.journal import JournalDamaged, JournalFailed, SqliteJournal
from labharness.journal.chain import Record
from labharness.journal.reading import read
from labharness.lab.house.access import deliver
from labharness.lab.house.intake import ReceivedSubmission, Submitted
from labharness.lab.house.message_store import MessageStore
from labharness.lab.house.orders import TaskRefused
from labharness.protocols.hcp.codec import decode
from labharness.protocols.hcp.terms import Rejected
from labharness.work.task.commands import (
    CancelTask,
    PauseTask,
    ReportStatus,
    ResumeTask,
    RetryTask,
    TaskActor,
    TaskCommand,
)
from labharness.work.task.events import events_of
from labharness.work.task.facts import TaskFact
from labharness.work.task.following import read_up_to
from labharness.work.task.house import Draft, HouseJournal
from labharness.work.task.kept import read_history
from labharness.work.task.record import WITHOUT_LINE, RetryPolicy
from line_world import message
from tasks_alone import OLGA

LOST_S, RECORDS_MAX, QUEUED_MAX = 10.0, 256, 100  # as promised, not as imported

ORDER = ("urgent", "low", "normal", "high", "normal")


@pytest.fixture
def kept(tmp_path: Path) -> Kept:
    return Kept(tmp_path)


@pytest.mark.promise(61)
def test_each_task_has_its_events_in_order_and_none_is_lost_or_doubled(kept: Kept) -> None:
    names = [
        kept.house.submit(message(f"k{i}", priority, caller)).task_id
        for i, (priority, caller) in enumerate(zip(ORDER, ("ana", "ben") * 3, strict=False))
    ]
    began: list[str] = []
    for turn in range(200):
        kept.turn()
        if turn in (7, 30):
            kept.restart()
        if turn == 15:
            kept.world.latched = "furnace too hot"
        if turn == 25:
            waits = {task.status_reason for task in kept.house.tasks.by_id.values()}
            assert "furnace too hot" in waits
            kept.world.latched = ""
        for task in kept.house.tasks.by_id.values():
            if task.attempts and task.task_id not in began:
                began.append(task.task_id)
    assert began == [names[i] for i in (0, 3, 2, 4, 1)]  # by priority, then by age
    ended = {each: kept.status(each) for each in names}
    assert set(ended.values()) <= {"completed", "failed"}
    seen: dict[str, list[str]] = {}
    ids = []
    for fact_id, fact, before, after in read_history(kept.home / "house.sqlite"):
        for event in events_of(fact, before, after, fact_id):
            ids.append(event["eventId"])
            seen.setdefault(event["taskId"], []).append(event["type"])
    assert len(set(ids)) == len(ids)
    for name in names:
        own = [each for each in seen[name] if each not in ("task.progress", "task.updated")]
        own = [each for each in own if each not in ("task.dependency.updated", "task.waiting")]
        end = f"task.{ended[name]}"
        assert own[:3] == ["task.created", "task.accepted", "task.queued"]
        assert own.count("task.attempt.started") == 1
        assert own[-1] == end
        assert own.count(end) == 1


def test_what_a_run_wrote_while_no_house_read_it_is_followed_in_one_turn_and_in_pieces(
    kept: Kept,
) -> None:
    name = kept.house.submit(message("k")).task_id
    while kept.status(name) != "running":
        kept.turn()
    (run,) = kept.house.tasks.by_id[name].attempts
    written = kept.world.disk[run.run_id]
    for number in range(len(written) + 1, 3 * RECORDS_MAX + 10):
        progress = {"event_type": "progress", "data": {"stage": "grow", "message": str(number)}}
        written.append(Record(number, 0.0, "event", progress, ""))
    kept.restart()
    kept.house.step()
    task = kept.house.tasks.by_id[name]
    assert task.progress.current_step == str(len(written))
    assert read_up_to(task.attempts[0]) == len(written)
    places = [int(each.partition(".")[2]) for each, *_ in read_history(kept.home / "house.sqlite")]
    assert max(places) < 3 * RECORDS_MAX  # facts that are written together, of one piece


@pytest.mark.parametrize("more", [0, 1])
def test_a_run_that_ends_with_a_full_piece_of_records_ends_its_task(kept: Kept, more: int) -> None:
    name = kept.house.submit(message("k")).task_id
    while kept.status(name) != "running":
        kept.turn()
    (run,) = kept.house.tasks.by_id[name].attempts
    written = kept.world.disk[run.run_id]
    progress = {"event_type": "progress", "data": {"stage": "grow", "message": "on"}}
    while len(written) - read_up_to(run) < RECORDS_MAX - 1 + more:
        written.append(Record(len(written) + 1, 0.0, "event", progress, ""))
    late = {"error_code": "timeout", "error_message": "nothing was heard"}
    end = {"type": "task_failed", "payload": late}
    written.append(Record(len(written) + 1, 0.0, "terminal", end, ""))
    kept.house.step()
    assert kept.status(name) == "timed_out"


@pytest.mark.promise(61)
def test_the_same_key_is_one_task_and_another_content_of_it_is_refused(kept: Kept) -> None:
    first = kept.house.submit(message("k"))
    kept.restart()
    again = kept.house.submit(message("k"))
    assert (first.task_id, first.fresh) == (again.task_id, not again.fresh)
    with pytest.raises(TaskRefused, match="key"):
        kept.house.submit(message("k", "urgent"))
    assert kept.house.submit(message("k", caller="ben")).fresh


OTHERWISE: tuple[dict[str, Any], ...] = (
    {"inputs": {"n": 2}},
    {"inputs": {"n": 1, "m": None}},
    {"intent": "other"},
    {"constraints": {"priority": "low"}},
    {"expected_output": {"format": "f"}},
    {"expected_output": {"schema": {"type": "object"}}},
    {"context": {"purpose": "other"}},
    {"resume_from": {"session_id": "s", "checkpoint_id": "c"}},
    {"capability_version": "1.x"},
)


@pytest.mark.promise(61)
@pytest.mark.parametrize("rejected", [None, Rejected("invalid_input", "no")])
def test_no_part_of_a_submission_may_differ_under_its_key(
    kept: Kept, rejected: Rejected | None
) -> None:
    kept.rejected = rejected
    whole = json.loads(message("k"))
    whole["payload"]["inputs"] = {"n": 1}
    first = kept.house.submit(json.dumps(whole).encode())
    for change in OTHERWISE:
        other = {**whole, "payload": {**whole["payload"], **change}}
        with pytest.raises(TaskRefused, match="key"):
            kept.house.submit(json.dumps(other).encode())
    later = {**whole, "timestamp": "2031-01-01T00:00:00Z"}
    again = kept.house.submit(json.dumps(later, indent=1).encode())
    assert (again.task_id, again.fresh) == (first.task_id, False)


def asked_for(key: str, caller: str = "ana") -> ReceivedSubmission:
    data = message(key, caller=caller)
    return ReceivedSubmission(data, decode(data), via="amqp")


def test_the_delivery_of_an_answer_is_queued_until_it_has_arrived(kept: Kept) -> None:
    kept.house.submit_all([asked_for("k")])
    (task,) = kept.house.tasks.by_id.values()
    local = kept.house.submit(message("local")).task_id
    for _ in range(60):
        kept.turn()
    kept.restart()
    told = [kept.house.tasks.by_id[each].delivery for each in (task.task_id, local)]
    assert told == ["queued", "not_applicable"]
    deliver(kept.house, task.session_id)
    assert kept.house.tasks.by_id[task.task_id].delivery == "delivered"
    facts = sum(1 for _ in read_history(kept.home / "house.sqlite"))
    deliver(kept.house, task.session_id)
    deliver(kept.house, "unknown")
    assert kept.house.tasks.by_id[task.task_id].delivery == "delivered"
    assert facts == sum(1 for _ in read_history(kept.home / "house.sqlite"))


def test_an_answer_that_arrives_before_its_run_is_followed_stays_delivered(kept: Kept) -> None:
    kept.house.submit_all([asked_for("k")])
    (task,) = kept.house.tasks.by_id.values()
    deliver(kept.house, task.session_id)
    for _ in range(60):
        kept.turn()
    found = kept.house.tasks.by_id[task.task_id]
    assert found.attempts[-1].ended_at_s is not None
    assert found.delivery == "delivered"


@pytest.mark.promise(61)
def test_submissions_that_come_together_are_one_record_and_each_is_what_it_is_alone(
    kept: Kept,
) -> None:
    kept.house.submit(message("known", "low"))
    first, twice, reused, other, strange = kept.house.submit_all(
        [
            asked_for("k"),
            asked_for("k"),
            asked_for("known"),  # with another content
            asked_for("k", "ben"),
            replace(asked_for("k2"), before=("nobody",)),
        ]
    )
    assert isinstance(first, Submitted)
    assert first.fresh
    assert isinstance(twice, Submitted)
    assert (twice.task_id, twice.fresh) == (first.task_id, False)
    assert "key" in str(reused)
    assert isinstance(other, Submitted)
    assert "nobody" in str(strange)
    tasks = {name: task.status for name, task in kept.house.tasks.by_id.items()}
    kept.restart()
    assert {name: task.status for name, task in kept.house.tasks.by_id.items()} == tasks
    assert tasks[first.task_id] == tasks[other.task_id] == "queued"
    assert len(list(read(kept.home / "house.sqlite"))) == 2, "one of the first, one of all others"
    with MessageStore(kept.home) as messages:
        assert messages.submission(first.task_id) == asked_for("k").data
        assert messages.submission(other.task_id) == asked_for("k", "ben").data


@pytest.mark.promise(61)
def test_one_that_fails_takes_none_of_the_others_with_it(
    kept: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    def draft_ends(draft: Draft, command: TaskCommand, actor: TaskActor) -> tuple[TaskFact, ...]:
        made = give(draft, command, actor)
        if isinstance(command, ReportStatus) and "bad" in repr(draft.facts):
            raise ZeroDivisionError  # a fault of ours, in the middle of its facts
        return made

    give = Draft.give
    with monkeypatch.context() as faulty:
        faulty.setattr(Draft, "give", draft_ends)
        good, bad, better = kept.house.submit_all([asked_for(key) for key in ("k", "bad", "l")])
    assert isinstance(bad, ZeroDivisionError)
    kept.restart()
    assert isinstance(good, Submitted)
    assert isinstance(better, Submitted)
    assert set(kept.house.tasks.by_id) == {good.task_id, better.task_id}


@pytest.mark.promise(61)
def test_no_task_is_without_its_submission(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(self: MessageStore, *receipts: object, pending: object) -> None:
        raise JournalFailed("the disk is full")

    with monkeypatch.context() as dying:
        dying.setattr(MessageStore, "receive", full)
        with pytest.raises(JournalFailed, match="full"):
            kept.house.submit_all([asked_for("k")])
    kept.restart()
    assert not kept.house.tasks.by_id


def test_what_the_journal_did_not_take_comes_from_beside_the_submissions(
    kept: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(self: HouseJournal, draft: object, record: object) -> None:
        raise JournalFailed("the disk is full")

    with monkeypatch.context() as dying:
        dying.setattr(HouseJournal, "append_pending", full)
        with pytest.raises(JournalFailed, match="full"):
            kept.house.submit_all([asked_for("k"), asked_for("l")])
    kept.restart()
    assert len(kept.house.tasks.by_id) == 2
    (again,) = kept.house.submit_all([asked_for("k")])
    assert isinstance(again, Submitted)
    assert not again.fresh, "its caller was told nothing, and sends it again"


def test_a_disk_that_does_not_take_the_records_kept_ahead_loses_none_of_them(
    kept: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(self: SqliteJournal) -> None:
        raise JournalFailed("the disk is full")

    kept.house.submit_all([asked_for("k")])
    with monkeypatch.context() as dying:
        dying.setattr(SqliteJournal, "commit", full)
        with pytest.raises(JournalFailed, match="full"):
            kept.house.step()
    kept.journal._journal._database.close()  # it dies, and takes along what was not written
    kept.open()
    assert len(kept.house.tasks.by_id) == 1


def test_a_rejected_task_has_ended_as_soon_as_it_is_one(kept: Kept) -> None:
    kept.rejected = Rejected("safety_violation", "too hot")
    name = kept.house.submit(message("k")).task_id
    kept.restart()
    assert kept.status(name) == "failed"
    kept.turn()
    assert not kept.world.ends


def test_the_queue_is_bounded(kept: Kept) -> None:
    for number in range(QUEUED_MAX):
        kept.house.submit(message(f"k{number}"))
    with pytest.raises(TaskRefused, match=f"{QUEUED_MAX} tasks wait"):
        kept.house.submit(message("one more"))


def test_a_task_that_can_never_run_is_answered_at_once_and_alike(kept: Kept) -> None:
    kept.rejected = Rejected("safety_violation", "too hot")
    first = kept.house.submit(message("k"))
    kept.rejected = None
    kept.restart()
    again = kept.house.submit(message("k"))
    assert first.rejected
    assert again.rejected
    assert again.task_id == first.task_id
    kept.turn()
    task = kept.house.tasks.by_id[first.task_id]
    assert (task.status, task.error_code, task.attempts) == ("failed", "safety_violation", ())
    with MessageStore(kept.home) as messages:
        answer = messages.answer(first.task_id)
    assert answer is not None
    assert answer.type == "task_rejected"
    assert not kept.world.ends


@pytest.mark.promise(61)
def test_a_silent_owner_makes_doubt_and_a_dead_one_a_failure(kept: Kept) -> None:
    name = kept.house.submit(message("k")).task_id
    while not any(kept.world.disk.values()):
        kept.turn()
    kept.world.up = False
    kept.turn()
    assert kept.status(name) != "lost"
    kept.now_s += LOST_S + 1
    kept.house.step()
    assert kept.status(name) == "lost"
    kept.world.up = True  # it was only silent
    kept.turn()
    assert kept.status(name) not in ("lost", "failed")
    kept.world.die()
    kept.world.rise()
    kept.house.step()
    assert kept.status(name) == "failed"
    assert kept.house.tasks.by_id[name].error_code == "worker_lost"
    assert kept.house.tasks.by_id[name].attempts[-1].status == "unknown"


def test_a_retry_is_a_new_attempt_that_waits_for_its_line(kept: Kept) -> None:
    name = kept.house.submit(message("k")).task_id
    while not any(kept.world.disk.values()):
        kept.turn()
    kept.world.die()
    kept.world.rise()
    kept.turn()
    assert kept.status(name) == "failed"
    retry = RetryTask(task_id=name, run_id="second", worker="line", reason="a new boat")
    kept.house.give(retry, OLGA)
    kept.turn()
    assert "second" not in kept.world.ends  # the line is latched
    kept.world.latched = ""
    for _ in range(30):
        kept.turn()
    assert [each.ordinal for each in kept.house.tasks.by_id[name].attempts] == [1, 2]
    assert kept.world.heated["second"] <= 1
    assert kept.status(name) in ("completed", "failed")


@pytest.mark.promise(61)
@pytest.mark.parametrize("away", ["busy", "latched", "gone"])
def test_a_task_that_is_cancelled_before_its_order_was_taken_is_never_ordered(
    kept: Kept, monkeypatch: pytest.MonkeyPatch, away: str
) -> None:
    def busy(order: object) -> None:
        raise TaskRefused("the line has another run")

    name = kept.house.submit(message("k")).task_id
    with monkeypatch.context() as refusing:
        refusing.setattr(kept.world, "begin", busy)
        kept.house.step()
    assert kept.house.tasks.by_id[name].current is not None
    kept.world.latched = "tripped" if away == "latched" else ""
    kept.world.up = away != "gone"
    kept.house.step() if away == "gone" else None
    kept.house.give(CancelTask(task_id=name, reason="asked"), OLGA)
    kept.world.rise()
    kept.world.latched = ""
    for _ in range(3):
        kept.turn()
    assert (kept.status(name), kept.world.orders) == ("cancelled", [])
    assert not kept.house.tasks.leases


@pytest.mark.promise(61)
def test_a_retry_may_go_on_from_the_last_checkpoint_of_the_task(kept: Kept) -> None:
    name = kept.house.submit(message("k")).task_id
    while not any(kept.world.disk.values()):
        kept.turn()
    first = kept.world.orders[0].run_id
    made = {"event_type": "checkpoint_created", "data": {"checkpoint_id": "c1"}}
    kept.world.disk[first].append(Record(len(kept.world.disk[first]) + 1, 0.0, "event", made, ""))
    with pytest.raises(TaskRefused, match="no checkpoint"):
        kept.house.retry(name, "second", "too early", "olga", resume=True)
    kept.turn()
    with pytest.raises(TaskRefused, match="ended"):
        kept.house.retry(name, "second", "too early", "olga", resume=True)
    kept.world.die()
    kept.world.rise()
    kept.world.latched = ""
    kept.turn()
    kept.house.retry(name, "second", "the map failed", "olga", resume=True)
    kept.restart()
    kept.turn()
    again = kept.world.orders[-1]
    assert again.run_id == "second"
    assert again.resume_from == {"session_id": first, "checkpoint_id": "c1"}


def test_a_caller_may_not_pause_and_an_ended_task_is_not_paused(kept: Kept) -> None:
    name = kept.house.submit(message("k")).task_id
    with pytest.raises(TaskRefused, match="role"):
        kept.house.give(PauseTask(task_id=name), TaskActor("ana", "caller"))
    kept.house.give(PauseTask(task_id=name), OLGA)
    for _ in range(5):
        kept.turn()
    assert kept.status(name) == "paused"
    assert not kept.world.ends


@pytest.mark.promise(75)
def test_a_run_is_asked_in_the_name_of_the_person_who_asks(kept: Kept) -> None:
    name = kept.house.submit(message("k")).task_id
    with pytest.raises(TaskRefused, match="not at work"):
        kept.house.confirm(name, "load", "ann")
    while kept.status(name) != "running":
        kept.turn()
    assert kept.house.confirm(name, "load", "ann") == "load"
    kept.house.give(PauseTask(task_id=name), OLGA)
    assert kept.status(name) == "running", "it follows what the line does"
    kept.house.give(ResumeTask(task_id=name), OLGA)
    assert kept.world.asked == [("confirm load", "ann"), ("hold", "olga"), ("resume", "olga")]


def logged(**details: str) -> tuple[str, dict[str, Any]]:
    data = {"level": "info", "message": "do it", "details": details}
    return "event", {"event_type": "log", "data": data}


@pytest.mark.promise(75)
def test_persons_are_called_for_each_manual_step_and_again_by_a_new_house(kept: Kept) -> None:
    def step(action: str) -> tuple[str, dict[str, Any]]:
        return logged(required_action=f"confirm:{action}")

    def called() -> list[str]:
        kept.now_s += 1.0
        kept.house.step()
        told = [each.rpartition("(")[2] for each in kept.told]
        kept.told.clear()
        return told

    kept.world.speed = 1.0
    name = kept.house.submit(message("k")).task_id
    while kept.status(name) != "running":
        kept.turn()
    kept.world.write(step("load"))
    assert called() == ["confirm:load)"]
    assert called() == []
    kept.world.write(logged(confirmed_by="Ann"), step("transfer"))
    assert called() == ["confirm:transfer)"]
    kept.restart()
    kept.world.up = False
    assert called() == []
    kept.world.up = True
    assert called() == ["confirm:transfer)"]
    assert kept.status(name) == "waiting_input"
    kept.world.write(logged(confirmed_by="Ann"))
    assert called() == []
    assert kept.status(name) == "running"


@pytest.mark.promise(61)
def test_a_run_whose_journal_cannot_be_read_fails_alone(
    kept: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept.world.random = Random(3)
    bad = kept.house.submit(message("bad", "urgent")).task_id
    others = [kept.house.submit(message(f"k{number}")).task_id for number in range(3)]
    kept.turn()
    run = kept.house.tasks.by_id[bad].attempts[0]
    readable = kept.world.records

    def records(run_id: str, after: int) -> list[Record]:
        if run_id == run.run_id:
            raise JournalDamaged("record 7 does not fit its hash")
        return readable(run_id, after)

    monkeypatch.setattr(kept.world, "records", records)
    unread_s = kept.now_s
    seen = {kept.status(bad)}
    while kept.status(bad) != "failed":
        kept.turn()
        seen.add(kept.status(bad))
        assert kept.now_s < unread_s + 200
    assert "unknown" in seen  # its worker has ended, and its journal does not say how
    assert kept.house.tasks.by_id[bad].error_code == "journal_damaged"
    assert kept.now_s > unread_s + LOST_S
    for _ in range(100):
        kept.turn()
    assert all(kept.status(each) in ("completed", "failed") for each in others)
    assert len(kept.world.orders) == 4


@pytest.mark.promise(75)
@pytest.mark.parametrize("came", ["before", "after"])
def test_a_task_that_waits_while_no_line_owner_takes_it_says_so(kept: Kept, came: str) -> None:
    """Whatever else is at work: the one that leaves, and then nobody, will never take it."""
    first = kept.house.submit(message("k1")).task_id
    kept.turn()
    assert kept.house.tasks.by_id[first].attempts
    waits = kept.house.submit(message("k2")).task_id if came == "before" else ""
    kept.world.leaving = True
    kept.turn()
    waits = waits or kept.house.submit(message("k2")).task_id
    kept.turn()

    def reason() -> str:
        return kept.house.tasks.by_id[waits].status_reason

    assert "was told to leave after run" in reason()
    while kept.world.status().run_id:  # type: ignore[union-attr]  # it is up until its run has ended
        kept.turn()
        assert len(kept.house.tasks.by_id[waits].attempts) == 0, "it takes no further run"
    kept.world.up = False
    for _ in range(15):
        kept.turn()
    assert reason() == "no line owner is up: labharness up starts one"
    kept.world.up, kept.world.leaving = True, False
    for _ in range(200):
        kept.turn()
    assert kept.status(waits) in ("completed", "failed")


@pytest.mark.parametrize("without", [True, False])
def test_a_task_is_known_to_need_no_line_only_where_it_needs_none(
    kept: Kept, *, without: bool
) -> None:
    kept.journal.close()
    retries = RetryPolicy(2, inactivity_timeout_s=60.0)
    kept.open(needs_no_line=lambda payload: without, retries=retries)
    made = kept.house.submit(message("k")).task_id
    task = kept.house.tasks.by_id[made]
    assert task.profile.get(WITHOUT_LINE) is (True if without else None)
    bound_s = None if without else 60.0
    assert task.retry == replace(retries, inactivity_timeout_s=bound_s), "its silence is no harm"


def test_nothing_is_done_to_a_task_that_is_not_there_and_none_ended_twice(kept: Kept) -> None:
    gone = [
        RetryTask(task_id="gone", run_id="r", worker="line", reason="again"),
        PauseTask(task_id="gone", reason="lunch"),
        CancelTask(task_id="gone", reason="enough"),
    ]
    for command in gone:
        with pytest.raises(TaskRefused, match=r"gone|no such task"):
            kept.house.give(command, OLGA)
    for resume in (True, False):
        with pytest.raises(TaskRefused, match=r"gone|no such task"):
            kept.house.retry("gone", "r", "again", "olga", resume=resume)
    with pytest.raises(TaskRefused, match=r"gone|no such task"):
        kept.house.confirm("gone", "load", "olga")
    name = kept.house.submit(message("k")).task_id
    with pytest.raises(TaskRefused) as refused:
        kept.house.retry(name, "r", "again", "olga", resume=False)
    assert refused.value.args[0] == Text("house.not_ended", status="queued")
