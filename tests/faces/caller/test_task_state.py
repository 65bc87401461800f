"""A caller's knowledge of a task, whatever of its messages is lost, doubled or late."""

from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labharness.faces.caller import caller_file
from labharness.faces.caller.caller_file import CallerFile, KeyReused, UnknownTask
from labharness.faces.caller.task_state import (
    Gap,
    KnownSession,
    KnownTask,
    apply,
)
from labharness.protocols.hcp.codec import HcpMessage
from labharness.protocols.hcp.messages import PAYLOADS

NOW = "2026-01-01T00:00:00.000Z"
LONG = 40  # events of a session


def event(number: int, session: str = "s", event_type: str = "log", **data: object) -> HcpMessage:
    body = data or {"level": "info", "message": str(number)}
    reply = {"in_reply_to": "m"} if event_type == "session_created" else {}
    payload = {"event_type": event_type, "sequence": number, "data": body, **reply}
    read = PAYLOADS["event"].model_validate(payload)
    return HcpMessage(f"{session}-{number}", NOW, session, "event", read)


def answer(kind: str, session: str | None, name: str = "") -> HcpMessage:
    bodies: dict[str, dict[str, object]] = {
        "task_accepted": {
            "session_token": "token of " + str(session),
            "risk_level": "R3",
            "data_classification": "T1",
            "safety_envelope": {},
            "constraints": {"max_duration": "PT1H", "abort_timeout": "PT5M"},
            "in_reply_to": "m",
        },
        "task_rejected": {"reason_code": "forbidden", "reason_message": "no", "in_reply_to": "m"},
        "task_completed": {"outputs": {"layer_count": 1}},
        "task_failed": {"error_code": "timeout", "error_message": "late"},
    }
    read = PAYLOADS[kind].model_validate(bodies[kind])
    return HcpMessage(name or f"{session}-{kind}", NOW, session, kind, read)  # type: ignore[arg-type]  # each is a type


def told(session: str = "s") -> list[HcpMessage]:
    """Return a whole session, as a lab tells it."""
    opens = event(
        1, session, "session_created", state="PENDING", risk_level=None, session_token=None
    )
    runs = event(
        2, session, "state_changed", from_state="PENDING", to_state="RUNNING", reason="accepted"
    )
    logs = [event(number, session) for number in range(3, LONG)]
    return [opens, answer("task_accepted", session), runs, *logs, answer("task_completed", session)]


@st.composite
def hearings(draw: st.DrawFn) -> list[HcpMessage]:
    """Return what a queue may deliver of a session: some lost, some twice, some late."""
    whole = told()
    kept_ = draw(st.lists(st.sampled_from(whole), max_size=3 * LONG))
    return kept_ if draw(st.booleans()) else sorted(kept_, key=whole.index)


def listened(messages: list[HcpMessage]) -> tuple[KnownTask, list[HcpMessage], list[Gap]]:
    task, fresh, gaps = KnownTask("m", "lab"), [], []
    for each in messages:
        task, news = apply(task, each)
        if news.fresh:
            fresh.append(each)
        if news.gap is not None:
            gaps.append(news.gap)
    return task, fresh, gaps


@pytest.mark.promise(65)
@given(hearings())
def test_each_message_is_news_once_and_what_was_not_heard_is_in_the_gaps(
    messages: list[HcpMessage],
) -> None:
    task, fresh, gaps = listened(messages)
    assert sorted(each.message_id for each in fresh) == sorted({m.message_id for m in messages})
    heard = {m.payload.sequence for m in messages if hasattr(m.payload, "sequence")}
    session = task.session
    if session is None:
        assert not messages
        return
    missing = {n for first, last in session.missing for n in range(first, last + 1)}
    assert missing == set(range(1, session.newest + 1)) - heard
    assert session.newest == max(heard, default=0)
    warned = {n for gap in gaps for n in range(gap.first, gap.last + 1)}
    assert warned >= missing
    assert (task.end != "") == any(m.type == "task_completed" for m in messages)


@given(hearings(), hearings())
def test_hearing_all_once_more_changes_nothing(
    first: list[HcpMessage], again: list[HcpMessage]
) -> None:
    task, _, _ = listened(first)
    for each in [each for each in again if each in first]:
        assert apply(task, each)[0] == task
        assert not apply(task, each)[1].fresh


@given(st.integers(1, 2**53 - 1), st.integers(1, 2**53 - 1))
def test_a_jump_of_any_size_is_one_gap(first: int, second: int) -> None:
    task, _ = apply(KnownTask("m"), event(first))
    task, news = apply(task, event(second))
    if second > first + 1:
        assert news.gap == Gap("s", first + 1, second - 1)
    assert task.session is not None
    assert task.session.newest == max(first, second)
    assert len(task.session.missing) <= 2


def test_an_abort_and_a_rejection_are_ends_and_another_closing_is_not() -> None:
    task, _ = apply(
        KnownTask("m"), event(1, "s", "session_closed", final_state="ABORTED", reason="x")
    )
    assert task.end == "s-1"
    task, _ = apply(
        KnownTask("m"), event(1, "s", "session_closed", final_state="FAILED", reason="x")
    )
    assert task.end == ""
    task, _ = apply(task, answer("task_rejected", None))
    assert task.rejected
    assert task.end == "None-task_rejected"


def test_another_attempt_is_the_newest_session_and_has_no_end_yet() -> None:
    task, _, _ = listened([*told("s"), *told("t")[:5]])
    assert [each.session_id for each in task.sessions] == ["s", "t"]
    assert (task.sessions[0].end, task.end) == ("s-task_completed", "")
    assert task.session == KnownSession("t", "RUNNING", 4, (), "token of t", "R3")


# ---- the file


Opened = Callable[[], closing[CallerFile]]


@pytest.fixture
def opened(tmp_path: Path) -> Opened:
    return lambda: closing(CallerFile(tmp_path / "folder" / "caller.sqlite"))


def submission(message_id: str = "m", intent: str = "grow") -> HcpMessage:
    body = {"capability": "c", "caller_id": "a", "intent": intent, "inputs": {}}
    read = PAYLOADS["task_submit"].model_validate(body)
    return HcpMessage(message_id, NOW, None, "task_submit", read)


@pytest.mark.promise(65)
@settings(max_examples=30, deadline=None)
@given(hearings(), st.lists(st.integers(0, 9), max_size=6))
def test_a_reader_that_is_killed_and_started_again_reads_each_message_in_its_order_once(
    tmp_path_factory: pytest.TempPathFactory, messages: list[HcpMessage], kills: list[int]
) -> None:
    path = tmp_path_factory.mktemp("f") / "caller.sqlite"
    read: list[object] = []
    file = CallerFile(path)
    file.submit("lab", submission())
    file.heard(told()[0])  # the session is known from here on
    for at, each in enumerate(messages):
        file.heard(each)
        if at % 10 in kills:
            for position, one in file.after("m", file.position("m")):
                read.append(one)
                file.read("m", position)
            file._database.close()  # as a kill leaves it
            file = CallerFile(path)
    while unread := file.after("m", file.position("m")):
        for position, one in unread:
            read.append(one)
            file.read("m", position)
    _, fresh, gaps = listened([told()[0], *messages])
    assert [each for each in read if isinstance(each, HcpMessage)] == fresh
    assert [each for each in read if isinstance(each, Gap)] == gaps
    assert file.task("m").end == listened([told()[0], *messages])[0].end
    file.close()


def test_an_id_is_one_submission_and_other_content_under_it_is_refused(
    opened: Opened,
) -> None:
    with opened() as file:
        assert file.submit("lab", submission())
        assert not file.submit("lab", submission())
        with pytest.raises(KeyReused):
            file.submit("lab", submission(intent="burn"))
        with pytest.raises(KeyReused):
            file.submit("elsewhere", submission())
    with opened() as file:
        assert [task.message_id for task, _ in file.unended()] == ["m"]
        file.withdraw("m")
        assert list(file.unended()) == []
        with pytest.raises(UnknownTask):
            file.task("m")


def test_a_rejected_task_that_is_submitted_again_waits_for_an_answer_anew(
    opened: Opened,
) -> None:
    with opened() as file:
        file.submit("lab", submission())
        file.heard(answer("task_rejected", None))
        assert file.task("m").end
        assert not file.submit("lab", submission())
        assert file.task("m").end == ""
        file.heard(answer("task_rejected", None))
        assert file.task("m").end


def test_a_task_of_another_program_is_adopted_and_a_stranger_is_not(
    opened: Opened,
) -> None:
    with opened() as file:
        assert file.heard(event(4, "unknown")) is None
        assert file.heard(answer("task_accepted", "s")) is not None
        assert file.heard(event(1)) is not None
        assert file.named("s").message_id == "m"
        assert list(file.unended()) == []
        file.submit("lab", submission())
        assert [task.callee_id for task, _ in file.unended()] == ["lab"]


def test_one_program_of_a_file_hears_for_all_until_it_ends(
    opened: Opened,
) -> None:
    with opened() as other:
        with opened() as file:
            assert file.hear()
            assert file.hear()
            assert not other.hear()
            before = other.version()
            file.submit("lab", submission())
            assert other.version() != before
            assert other.task("m") == KnownTask("m", "lab")
        assert other.hear()


def test_a_lock_that_cannot_be_used_is_named_and_not_taken_for_another_program(
    opened: Opened,
) -> None:
    with opened() as file:
        lock = file.path.with_name(f"{file.path.name}.lock")
        lock.write_text("something else, and more than a header of SQLite " * 4)
        with pytest.raises(caller_file.CallerFileFailed, match=str(lock)):
            file.hear()


def test_the_file_is_bounded_and_what_was_dropped_unread_is_a_gap(
    opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(caller_file, "EVENTS_KEPT_MAX", 20)
    monkeypatch.setattr(caller_file, "PRUNED_EVERY", 10)
    monkeypatch.setattr(caller_file, "TASKS_MAX", 2)
    with opened() as file:
        file.submit("lab", submission())
        for each in told():
            file.heard(each)
        rows = [each for _, each in file.after("m", file.position("m"))]
        numbers = [
            each.payload.sequence  # type: ignore[attr-defined]  # of events
            for each in rows
            if isinstance(each, HcpMessage) and each.type == "event"
        ]
        assert 20 <= len(numbers) <= 20 + 10
        gaps = [each for each in rows if isinstance(each, Gap)]
        dropped = [number for gap in gaps for number in range(gap.first, gap.last + 1)]
        assert dropped + numbers == list(range(1, LONG))
        assert file.message(file.task("m").end).type == "task_completed"
        for name in "xyz":
            file.submit("lab", submission(name))
        assert [each.message_id for each in file.tasks()] == ["x", "y", "z"]  # none has ended


def test_a_file_that_is_none_of_a_caller_is_named(tmp_path: Path) -> None:
    path = tmp_path / "caller.sqlite"
    path.write_text("something else, and more than a header of SQLite " * 4)
    with pytest.raises(caller_file.CallerFileFailed, match=str(path)):
        CallerFile(path)
