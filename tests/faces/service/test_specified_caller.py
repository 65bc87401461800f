"""A caller written from the texts of HCP alone meets a served lab, and looks at every field.

What it meets is what outsiders have met: an abort without a reason, the same id with other content,
a context of any form, a stranger, work by hand in its run, a line owner that is killed.
"""

import json
import os
import re
import signal
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from getpass import getuser
from pathlib import Path
from typing import Any

import pytest

from broker import NEEDS_BROKER, Broker, running
from commands import say
from plain_caller import PlainCaller, Told, closes
from requested import GROWTH, PAPER, hot
from rig import SHIPPED, SHORT_LINE
from serving import PACED, Service, approve, services
from specified_caller import examined
from up_lab import until

KNOWN, STRANGER, LAB = "harness-alpha-001", "mallory", "lab-account"
OTHERS = ("harness-local-01", "operator", STRANGER, LAB)
SIMULATED = "cvd-mos2-simulated"

pytestmark = [pytest.mark.thorough, pytest.mark.timeout(400), NEEDS_BROKER]


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    with running(tmp_path_factory.mktemp("mq") / "b", (KNOWN, STRANGER, LAB)) as made:
        yield made


@pytest.fixture
def serve(broker: Broker, tmp_path: Path) -> Iterator[Callable[..., Service]]:
    with services(broker.url(LAB), tmp_path / "runs") as begin:
        yield begin


@pytest.fixture
def caller(broker: Broker) -> Iterator[Callable[..., PlainCaller]]:
    made: list[tuple[PlainCaller, datetime]] = []

    def begin(callee: str, caller_id: str = KNOWN) -> PlainCaller:
        begun = datetime.now(UTC)
        made.append((PlainCaller(broker.url(caller_id), caller_id, callee), begun))
        return made[-1][0]

    yield begin
    faults = []
    for each, begun in made:
        foreign = {*OTHERS, KNOWN} - {each.caller_id} - each.named
        accounts = () if getuser() in ("root", "lab") and not each.heard else (f"({getuser()})",)
        faults += examined(each.heard, (*foreign - {"operator"}, *accounts), begun)
        each.purge()
        each.close()
    assert faults == [], "\n".join(faults[:9])


Serve = Callable[..., Service]
Call = Callable[..., PlainCaller]


def asked(asks: PlainCaller, payload: dict[str, Any], message_id: str | None = None) -> Told:
    """Submit; return the answer: accepted or rejected."""
    sent = asks.submit(payload, message_id)
    answers = ("task_accepted", "task_rejected")
    return asks.until(lambda t: t["type"] in answers and t.payload["in_reply_to"] == sent)


def test_what_is_refused_says_so_plainly_and_names_nobody_else(serve: Serve, caller: Call) -> None:
    serve(SHIPPED, PACED)
    asks, stranger = caller(SIMULATED), caller(SIMULATED, STRANGER)
    refused = asked(stranger, {**GROWTH, "caller_id": STRANGER}).payload
    assert refused["reason_code"] == "unauthorized"
    assert refused["suggestion"]

    mine = {**PAPER, "caller_id": KNOWN}
    first = asks.submit(mine)
    end = asks.ended()
    assert end["type"] == "task_completed", end
    others: tuple[dict[str, Any], ...] = (
        {"inputs": {**PAPER["inputs"], "document": "5 nm at 700 K."}},
        {"expected_output": {}},
        {"intent": "something else"},
        {"context": "new"},
    )
    for other in others:
        told = asked(asks, {**mine, **other}, first)
        assert told["type"] == "task_rejected", other
        assert told.payload["reason_code"] == "invalid_input"
        assert "message_id" in told.payload["reason_message"]
    told = asked(asks, mine, first)
    assert told["type"] == "task_accepted"
    assert asks.ended()["message_id"] == end["message_id"]

    for context in (2**60, "why we ask", [1, {"a": None}], 0.5, True, {"code": "x", "with": {}}):
        told = asked(asks, {**mine, "context": context})
        assert told["type"] == "task_accepted", (context, told)
        assert asks.ended()["type"] == "task_completed", context
    told = asked(asks, {**mine, "context": "x" * 65_535})
    assert told.payload["reason_code"] == "invalid_input"
    assert "context" in told.payload["reason_message"]

    late = asked(asks, {**mine, "constraints": {**PAPER["constraints"], "max_duration": "P9D"}})
    for each in re.findall(r"P[0-9DTHMS]+", late.payload["suggestion"]):
        again = {**mine, "constraints": {**PAPER["constraints"], "max_duration": each}}
        assert asked(asks, again)["type"] == "task_accepted", each
        asks.ended()

    inputs = {
        "document_uri": "https://example.com/papers/paper-123.pdf",
        "analysis_type": "key_findings_extraction",
    }
    away = asked(asks, {**mine, "inputs": inputs})  # the example of layer 4 as it stands
    assert away.payload.get("reason_code") != "forbidden", away
    until(lambda: undelivered(SHIPPED) == [])


def undelivered(lab: Path) -> list[Any]:
    tasks = json.loads(say("tasks", "list", "--lab", lab, "--json").out)["tasks"]
    return [each for each in tasks if each["deliveryState"]["status"] != "delivered"]


def test_a_run_that_is_held_and_aborted_without_a_reason_is_told_in_words(
    serve: Serve, caller: Call
) -> None:
    serve(SHIPPED, PACED)
    asks = caller(SIMULATED)
    accepted = asked(asks, GROWTH)
    asks.until(lambda told: told.is_("state_changed", to_state="RUNNING"))
    why = ("--reason", "door open, see /srv/lab/notes.txt")
    until(lambda: say("hold", "--lab", SHIPPED, *why).code == 0)  # its plan begins now
    paused = asks.until(lambda told: told.is_("state_changed", to_state="PAUSED"))
    assert "door open" in paused.payload["data"]["reason"]
    assert say("resume", "--lab", SHIPPED).code == 0
    asks.until(lambda told: told.is_("state_changed", to_state="RUNNING"))
    token = accepted.payload["session_token"]
    payload = {"caller_id": KNOWN, "session_token": token}
    asks.send("abort", accepted["session_id"], payload, "an-abort-without-a-reason")
    closed = asks.ended()
    assert closed.is_("session_closed", final_state="ABORTED")
    assert closed.payload["data"]["reason"] == "aborted by its caller"


def test_a_growth_is_told_by_the_clock_on_the_wall_and_waits_for_a_person(
    serve: Serve, caller: Call
) -> None:
    serve(SHORT_LINE, "fast")
    asks = caller("short-line")
    asks.submit(GROWTH)
    end = asks.ended()
    assert end["type"] == "task_completed", end
    asks.submit(hot()["payload"])
    asks.until(lambda told: told.is_("progress", stage="awaiting_approval"))
    waited: list[Told] = []
    try:  # nobody has denied it
        waited.append(asks.until(lambda told: told["type"] == "task_rejected", 5.0))
    except AssertionError:
        approve(SHORT_LINE)
        assert asks.ended()["type"] in ("task_completed", "task_failed")
    assert waited == []


def test_a_killed_line_owner_leaves_an_answer_with_what_there_was(
    serve: Serve, caller: Call
) -> None:
    service = serve(SHORT_LINE, PACED)
    asks = caller("short-line")
    accepted = asked(asks, GROWTH)
    asks.until(lambda told: told.is_("state_changed", to_state="RUNNING"))
    asks.until(lambda told: told.is_("progress"))
    os.kill(service.owner(), signal.SIGKILL)
    failed = asks.ended()
    assert failed["type"] == "task_failed"
    assert any(map(closes(accepted["session_id"]), asks.heard))
    asks.submit(GROWTH)  # its line is latched
    told = asks.ended()
    assert told.payload.get("reason_code") == "resource_unavailable", told
