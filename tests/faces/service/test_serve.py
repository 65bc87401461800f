"""A caller written from the specification alone, over a real broker, and what may fail between."""

import hashlib
import json
import os
import re
import signal
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from broker import NEEDS_BROKER, Broker, running
from commands import COMMAND, say
from labharness.core.clock import pause, steady_s
from labharness.journal.reading import read_after, verify_file
from labharness.protocols.hcp.schemas import KINDS, message_schema
from labharness.work.desk.folder import JOURNAL_NAME
from plain_caller import PlainCaller, Told, answer_in, closes, history_faults, is_end, leaks
from requested import CURVE, GROWTH, PAPER, hot
from rig import IV, SHIPPED, SHORT_LINE
from serving import PACED, Service, approve, services
from up_lab import until

CALLERS = ("harness-alpha-001", "mallory")
CALLEE = "callee"
SCHEMAS = {kind: message_schema(kind) for kind in KINDS}
QUEUE = 12
REVOKED_S = 1.0
"""World time (s) within which a token is revoked, from the answer to the operator on."""

PLACES = 4
"""The declared ``concurrent_limit`` of document analysis."""

pytestmark = [pytest.mark.thorough, pytest.mark.timeout(300), NEEDS_BROKER]


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    with running(tmp_path_factory.mktemp("mq") / "b", (*CALLERS, CALLEE)) as made:
        yield made


@pytest.fixture
def serve(broker: Broker, tmp_path: Path) -> Iterator[Callable[..., Service]]:
    with services(broker.url(CALLEE), tmp_path / "runs") as begin:
        yield begin


@pytest.fixture
def caller(broker: Broker) -> Iterator[Callable[..., PlainCaller]]:
    made: list[PlainCaller] = []

    def begin(callee: str, caller_id: str = CALLERS[0], **settings: Any) -> PlainCaller:
        made.append(PlainCaller(broker.url(caller_id), caller_id, callee, **settings))
        return made[-1]

    yield begin
    told = [leaks(each.heard, tuple({*CALLERS} - each.named)) for each in made]
    for each in made:
        each.purge()
        each.close()
    assert told == [[] for _ in made], "no pid, path, command, foreign caller or repeated token"


Serve = Callable[..., Service]
Call = Callable[..., PlainCaller]


def test_a_growth_is_answered_once_also_when_it_is_submitted_again_a_day_later(
    serve: Serve, caller: Call
) -> None:
    service = serve(SHORT_LINE)
    asks = caller("short-line")
    message_id = asks.submit(GROWTH)
    end = asks.ended()
    assert end["type"] == "task_completed", end.payload
    assert {"peak_distance", "layer_count", "confidence"} <= set(end.payload["outputs"])
    assert history_faults(asks.heard) == []
    accepted = answer_in(asks.heard, "task_accepted").payload
    assert accepted["risk_level"] == "R3"
    assert accepted["in_reply_to"] == message_id
    assert accepted["session_token"]
    assert set(accepted["constraints"]) == {"max_duration", "abort_timeout"}
    assert accepted["safety_envelope"]["parameters"]["temperature"]["hard_limit"] is True
    for told in asks.heard:
        Draft202012Validator(SCHEMAS[told["type"]]).validate(told)
    heard = list(asks.heard)
    for _ in range(2):
        asks.submit(GROWTH, message_id)
        asks.ended()
        answered = asks.heard[len(heard) :]
        assert [each["type"] for each in answered] == ["task_accepted", "task_completed"]
        assert all(each in heard for each in answered)
        del asks.heard[len(heard) :]
        service.end()
        service.start()
    assert len(list(service.runs.iterdir())) == 1


def test_a_caller_sees_that_its_task_waits_for_a_person(serve: Serve, caller: Call) -> None:
    serve(SHORT_LINE, PACED)
    asks = caller("short-line")
    asks.submit(hot()["payload"])
    asks.until(lambda told: told.is_("session_created", state="PENDING"))
    until(lambda: "R4" in say("approvals", "list", "--lab", SHORT_LINE).out)
    asks.until(lambda told: told.is_("progress", stage="awaiting_approval"))
    approve(SHORT_LINE)
    accepted = asks.until(lambda told: told["type"] == "task_accepted").payload
    assert accepted["risk_level"] == "R4"
    asks.abort(asks.heard[0]["session_id"], accepted["session_token"])
    assert asks.ended().is_("session_closed", final_state="ABORTED")
    assert history_faults(asks.heard) == []


def test_a_document_is_analysed_beside_a_growth(serve: Serve, caller: Call) -> None:
    serve(SHIPPED, PACED)
    asks = caller("cvd-mos2-simulated")
    asks.submit(GROWTH)
    growth = asks.until(lambda told: told.is_("session_created"))["session_id"]
    asks.submit({**PAPER, "caller_id": asks.caller_id})
    done = asks.until(lambda told: told["type"] == "task_completed")
    asks.until(closes(done["session_id"]))
    finding = done.payload["outputs"]["findings"][0]
    assert {"statement", "confidence", "source_section"} <= set(finding)
    mine = [each for each in asks.heard if each["session_id"] != growth]
    assert history_faults(mine) == []
    assert answer_in(mine, "task_accepted").payload["risk_level"] == "R1"


def test_what_cannot_be_read_is_a_dead_letter_with_its_reason_and_stops_nobody(
    serve: Serve, caller: Call
) -> None:
    serve(IV)
    asks = caller("iv-bench-simulated")
    whole = json.dumps({"hcp_version": "1.0", "message_id": "a", "session_id": None})
    bad = {
        b"\xff\xfe": "is not JSON",
        b"[" * 100_000: "nested",
        b'{"a": 1, "a": 2}': "stands twice",
        whole.encode(): "type",
        whole.replace("1.0", "2.0").encode(): "hcp_version",
    }
    for data in bad:
        asks.send_bytes(data)
    asks.send("event", "s", {"event_type": "log", "sequence": 1, "data": {}}, "not-a-command")
    message_id = asks.submit({**CURVE, "caller_id": asks.caller_id, "intent": 7})
    rejected = asks.ended()
    assert rejected["type"] == "task_rejected"
    assert rejected["session_id"] is None
    assert rejected.payload["in_reply_to"] == message_id
    assert rejected.payload["reason_code"] == "invalid_input"
    assert "payload.intent" in rejected.payload["reason_message"]
    reasons = asks.dead_letters()
    assert len(reasons) == len(bad) + 1
    for reason, words in zip(reasons, bad.values(), strict=False):
        assert words in reason


def test_who_is_not_who_it_says_is_refused(serve: Serve, caller: Call) -> None:
    serve(IV)
    asks, other = caller("iv-bench-simulated"), caller("iv-bench-simulated", "mallory")
    other.submit({**CURVE, "caller_id": asks.caller_id})
    refused = other.ended().payload
    assert refused["reason_code"] == "unauthorized"
    payload = {**CURVE, "caller_id": asks.caller_id}
    other.send("task_submit", None, payload, "without-an-account", user_id=None)
    asks.submit({**CURVE, "caller_id": asks.caller_id})
    session = asks.until(lambda told: told.is_("session_created"))["session_id"]
    other.abort(session, None)
    end = asks.ended()
    assert end["type"] == "task_completed", end.payload
    unvouched, unknown = other.dead_letters()
    assert "no AMQP property user_id" in unvouched
    assert unknown == "this caller has no such session"
    assert all(each["session_id"] == session for each in asks.heard)


def states(journal: Path) -> list[str]:
    """Return the states that a session has come to, as its journal has them."""
    bodies = [each.body for each in read_after(journal, 0) if each.kind == "event"]
    return [each["data"].get("to_state", "") for each in bodies]


@pytest.mark.promise(68)
def test_an_operator_who_cancels_a_task_revokes_its_token_within_a_second(
    serve: Serve, caller: Call
) -> None:
    service = serve(SHORT_LINE, PACED)
    asks = caller("short-line")
    asks.submit(GROWTH)
    token = asks.until(lambda told: told["type"] == "task_accepted").payload["session_token"]
    session = asks.heard[0]["session_id"]
    journal = service.runs / session / JOURNAL_NAME
    asks.until(lambda told: told.is_("state_changed", to_state="RUNNING"))
    (task,) = json.loads(say("tasks", "list", "--lab", SHORT_LINE, "--json").out)["tasks"]
    cancel = ("tasks", "cancel", task["taskId"], "--lab", SHORT_LINE, "--reason", "enough")
    assert say(*cancel).code == 0
    end_s = steady_s() + REVOKED_S
    while "ABORTING" not in states(journal):  # the token ends with that state's beginning
        assert steady_s() < end_s
        pause(0.02)
    asks.until(lambda told: told.is_("state_changed", to_state="ABORTING"))
    heard = len(asks.heard)
    asks.abort(session, token)  # it asks for what is under way
    end = asks.ended()
    assert end.is_("session_closed", final_state="ABORTED")
    assert history_faults(asks.heard) == []
    assert not any(each.is_("state_changed", to_state="RUNNING") for each in asks.heard[heard:])


def test_an_abort_needs_the_token_of_its_session_and_ends_it(serve: Serve, caller: Call) -> None:
    serve(SHORT_LINE, PACED)
    asks = caller("short-line")
    asks.submit(GROWTH)
    token = asks.until(lambda told: told["type"] == "task_accepted").payload["session_token"]
    session = asks.heard[0]["session_id"]
    asks.until(lambda told: told.is_("state_changed", to_state="RUNNING"))
    asks.abort(session, "not-the-token")
    asks.until(lambda told: told.is_("warning", code="token_refused"))
    asks.abort(session, token)
    begun_s = steady_s()
    asks.ended()
    assert steady_s() - begun_s < 300  # PT5M, as announced
    assert history_faults(asks.heard) == []
    asks.abort(session, token)
    closed = asks.until(lambda told: told.is_("warning", code="session_already_closed"))
    assert closed.payload["sequence"] > max(
        each.payload["sequence"] for each in asks.heard[:-1] if each["type"] == "event"
    )


def test_a_task_that_waits_behind_another_may_be_aborted_without_a_token(
    serve: Serve, caller: Call
) -> None:
    serve(SHORT_LINE, PACED)
    asks = caller("short-line")
    asks.submit(GROWTH)
    first = asks.until(lambda told: told.is_("session_created"))["session_id"]
    asks.submit(GROWTH)
    waits = asks.until(lambda told: told.is_("session_created") and told["session_id"] != first)
    asks.abort(waits["session_id"], None, "changed my mind")
    rejected = asks.until(lambda told: told["type"] == "task_rejected").payload
    assert (rejected["reason_code"], rejected["reason_message"]) == ("aborted", "changed my mind")
    asks.until(closes(waits["session_id"]))
    mine = [each for each in asks.heard if each["session_id"] in (waits["session_id"], None)]
    assert history_faults(mine) == []


def test_a_whole_queue_is_accepted_at_once_and_a_killed_house_begins_it_later(
    serve: Serve, caller: Call
) -> None:
    service = serve(SHIPPED, PACED)
    asks = caller("cvd-mos2-simulated")
    long = {**PAPER, "caller_id": asks.caller_id}
    long["inputs"] = {
        **PAPER["inputs"],
        "document": "The film reaches 5 nm at 700 K. " * 20_000,
    }
    sent = [asks.submit(long) for _ in range(QUEUE)]
    asks.until(lambda _: len(accepted_in(asks.heard)) == QUEUE)
    accepted = accepted_in(asks.heard)
    assert [each.payload["in_reply_to"] for each in accepted] == sent
    ended = [each for each in asks.heard if each["type"] in ("task_completed", "task_failed")]
    assert len(ended) < QUEUE, "all was read before the house could be killed"
    asks.abort(accepted[-1]["session_id"], None)
    asks.until(lambda told: told.is_("session_closed", final_state="ABORTED"))
    service.kill()
    service.start()
    sessions = {each["session_id"] for each in accepted}
    asks.until(lambda _: all(any(map(closes(each), asks.heard)) for each in sessions))
    for session in sessions:
        assert history_faults([each for each in asks.heard if each["session_id"] == session]) == []
    assert accepted_in(asks.heard) == accepted
    once = {each["message_id"]: each for each in asks.heard}  # what was sent may come again
    ends = Counter(each["type"] for each in once.values() if is_end(each))
    assert ends["event"] == 1
    assert ends["task_failed"] <= PLACES, "no more than were at work when the house died"
    assert ends["task_completed"] >= QUEUE - PLACES - 1


def accepted_in(heard: list[Told]) -> list[Told]:
    """Return each acceptance once, in its order."""
    found = {each["message_id"]: each for each in heard if each["type"] == "task_accepted"}
    return list(found.values())


def test_nothing_is_lost_when_broker_caller_and_house_go_away_in_a_run(
    serve: Serve, caller: Call, broker: Broker
) -> None:
    service = serve(SHORT_LINE, PACED)
    owner = service.owner()
    asks = caller("short-line")
    asks.submit(GROWTH)
    asks.until(lambda told: told.is_("state_changed", to_state="RUNNING"))
    asks.forget()
    broker.stop()
    pause(2.0)
    service.kill()
    broker.start()
    service.start()
    asks.connect()
    asks.until(lambda told: told.is_("progress"))
    service.kill()
    service.start()
    session = asks.heard[0]["session_id"]
    asks.abort(session, answer_in(asks.heard, "task_accepted").payload["session_token"])
    assert asks.ended().is_("session_closed", final_state="ABORTED")
    assert history_faults(asks.heard) == []
    assert service.owner() == owner
    assert len(list(service.runs.iterdir())) == 1


def test_a_caller_whose_queue_comes_late_hears_all_from_the_beginning(
    serve: Serve, caller: Call
) -> None:
    serve(IV)
    asks = caller("iv-bench-simulated", "mallory", listens=False)
    asks.submit({**CURVE, "caller_id": "mallory"})
    pause(3.0)
    asks.listen()
    asks.ended()
    assert history_faults(asks.heard) == []


def test_a_second_callee_stands_by_and_takes_over(serve: Serve, caller: Call) -> None:
    first = serve(IV)
    with subprocess.Popen(
        [*COMMAND, "serve", "--lab", str(IV), "--runs", str(first.runs)],
        env=first.env,
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as second:
        assert second.stderr is not None
        assert "takes over" in second.stderr.readline()
        asks = caller("iv-bench-simulated")
        asks.submit({**CURVE, "caller_id": asks.caller_id})
        asks.until(lambda told: told["type"] == "task_accepted")
        first.kill()
        assert "connected" in second.stderr.readline()
        assert asks.ended()["type"] == "task_completed"
        assert history_faults(asks.heard) == []
        second.terminate()
        second.communicate(timeout=60)


def test_a_caller_whose_line_owner_dies_is_answered_with_its_last_checkpoint(
    serve: Serve, caller: Call
) -> None:
    service = serve(SHORT_LINE, PACED)
    asks = caller("short-line")
    asks.submit(GROWTH)
    asks.until(lambda told: told.is_("state_changed", to_state="RUNNING"))
    os.kill(service.owner(), signal.SIGKILL)
    failed = asks.ended()
    assert failed["type"] == "task_failed"
    assert history_faults(asks.heard) == []
    points = [each.payload["data"] for each in asks.heard if each.is_("checkpoint_created")]
    details = failed.payload["error_details"]
    assert details["last_checkpoint"] == (points[-1]["checkpoint_id"] if points else None)
    assert details["recoverable"] is False  # its simulated plant begins anew: nothing to go on with
    assert "resume_from" not in failed.payload["suggestion"]
    assert "partial_growth_log" in [each["name"] for each in failed.payload["artifacts"]]
    assert "growth_log" in failed.payload["partial_outputs"]
    assert failed.payload["execution_summary"]["checkpoints_created"] == len(points)
    reset = say("reset", "--lab", SHORT_LINE, "--name", "Olga", "--reason", "looked at it")
    assert reset.code == 0, reset.err
    for run in service.runs.iterdir():
        assert verify_file(run / "journal.sqlite").ok


def artifact_of_its_own_run_alone(service: Service, completed: Told, caller_id: str) -> None:
    """Fetch an artifact by its address in an answer, as its caller and as others."""
    artifact = next(a for a in completed.payload["artifacts"] if a["name"] == "iv_curve")
    session, _, name = artifact["uri"].removeprefix("hcp://session-").split("/")
    path = f"/artifacts/{session}/{name}"
    status, content = service.page(path, caller_id)
    digest = hashlib.sha256(content).hexdigest()
    assert (status, f"sha256:{digest}") == (200, artifact["checksum"])
    assert service.page(path, caller_id, Range="bytes=0-6") == (206, content[:7])
    assert service.page(path, caller_id, "wrong")[0] == 401
    assert service.page(path, "mallory")[0] == 404
    assert service.page(path)[0] == 401


def test_card_health_and_numbers_of_a_service_are_those_of_what_it_does(
    serve: Serve, caller: Call, broker: Broker
) -> None:
    service = serve(IV, "fast", "--http", "0")
    asks = caller("iv-bench-simulated")
    asks.submit({**CURVE, "caller_id": asks.caller_id})
    completed = asks.ended()
    artifact_of_its_own_run_alone(service, completed, asks.caller_id)
    asks.submit({**CURVE, "caller_id": asks.caller_id, "intent": 7})
    asks.ended()
    asks.send_bytes(b"no JSON")
    until(lambda: b"dead_lettered_total 1.0\n" in service.page("/metrics")[1])
    until(lambda: b'tasks{status="completed"} 1.0\n' in service.page("/metrics")[1])
    text = service.page("/metrics")[1].decode()
    assert 'labharness_messages_taken_total{kind="submission"} 1.0\n' in text
    assert "labharness_messages_rejected_total 1.0\n" in text
    assert "labharness_messages_dead_lettered_total 1.0\n" in text
    assert "labharness_outbox_waiting 0.0\n" in text
    assert 'labharness_tasks{status="completed"} 1.0\n' in text
    sent = dict(re.findall(r'sent_total\{type="(\w+)"\} (\d+)', text))
    assert sent == {
        kind: str(n) for kind, n in Counter(each["type"] for each in asks.heard).items()
    }
    card = json.loads(service.page("/.well-known/agent-card.json")[1])
    assert card["supportedInterfaces"][0]["url"] == broker.url("x").replace("x:secret@", "")
    assert "secret" not in json.dumps(card)
    assert service.page("/healthz")[0] == 200
    os.kill(service.owner(), signal.SIGKILL)
    assert service.page("/healthz")[0] == 503
    until(lambda: service.page("/healthz")[0] == 200)  # it is started again, and was not armed
    asks.forget()
    broker.stop()
    until(lambda: service.page("/healthz")[0] == 503)
    assert b"labharness_broker_connected 0.0\n" in service.page("/metrics")[1]
    broker.start()
    until(lambda: service.page("/healthz")[0] == 200)
    asks.connect()
