"""A lab that is up, asked over MCP-CP: a growth, one run for many requests, kills and stops."""

import json
import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from commands import edited_lab, example, say
from labharness.core.clock import steady_s
from mcp_cp_client import McpCpClient, Told, is_end, kinds
from mcp_cp_served import McpCpServer, Script, model_in
from up_lab import Up, until

CALLER = "harness-alpha-001"
STOP_S_MAX = 2.0
"""Longest time (s) from a stop request to its answer, which says that the task is cancelled."""

pytestmark = [pytest.mark.thorough, pytest.mark.timeout(400)]


THREE = "submit, look and tell the weather"


def growth(intent: str) -> dict[str, Any]:
    constraints = {"max_duration": "PT72H", "data_classification": "T1"}
    return {**example()["payload"], "intent": intent, "constraints": constraints}


@pytest.fixture(scope="module")
def script() -> Script:
    made = Script()
    task = growth("killed")
    made.turns = {
        THREE: (
            {
                "text": "I do.",
                "tools": [
                    ("submit_task", json.dumps({"task": task})),
                    ("list_runs", "{}"),
                    ("weather_api", '{"city": "killed"}'),
                ],
            },
            {"text": "Done."},
        ),
        "wait": (made.held,),
    }
    return made


@pytest.fixture(scope="module")
def state() -> Iterator[Path]:
    """Return a folder whose name leaves room for the path of a socket."""
    with TemporaryDirectory(
        prefix="labharness-", dir=os.environ.get("PYTEST_DEBUG_TEMPROOT")
    ) as made:
        yield Path(made)


@pytest.fixture(scope="module")
def up(state: Path, script: Script, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    """Return the short line, up; its standing approval is of another file."""
    folder = tmp_path_factory.mktemp("lab")
    lab = edited_lab(folder, "[lab]\n", f'[lab]\nstate_dir = "{state}"\n')
    with model_in(lab, script):
        made = Up(lab, folder / "runs")
        yield made
        say("down", "--lab", lab, "--stop")
        until(made.down)


def tasks_of(up: Up, intent: str) -> list[dict[str, Any]]:
    listed = json.loads(say("tasks", "list", "--lab", up.lab, "--json").out)["tasks"]
    return [each for each in listed if intent in json.dumps(each)]


def values(told: Told) -> list[Any]:
    return [each["result"]["value"] for each in told["content"]["results"]]


def submitted(client: McpCpClient, times: int, task: dict[str, Any]) -> set[str]:
    """Submit a task several times at once; return the ids of what the lab has kept."""
    client.call("submit_task", "PARALLEL", times, task=task)
    ids: set[str] = set()
    for _ in range(times):
        ids |= {each["task_id"] for each in values(client.of("TOOL_CALL_RESPONSE"))}
    return ids


@pytest.mark.promise(77)
def test_a_client_has_a_growth_done_from_a_sentence_to_its_report_and_once(
    up: Up, state: Path
) -> None:
    with (
        McpCpServer(up.lab, state, "--model", "scripted") as server,
        server.client("growth", CALLER) as client,
        server.client("more", CALLER) as more,
    ):
        client.join()
        more.join()
        client.say("grow a monolayer of MoS2 and tell me how sure you are")
        seen = client.until(lambda told: calls(told, "submit_task"), 200.0)
        (call,) = seen[-1]["content"]["toolCalls"]
        (kept,) = values(client.of("TOOL_CALL_RESPONSE"))
        task = call["parameters"]["task"]
        assert submitted(more, 50, task) == {kept["task_id"]}, "before the decision"
        until(lambda: "nothing waits" not in say("approvals", "list", "--lab", up.lab).out)
        request = say("approvals", "list", "--lab", up.lab).out.split()[0]
        more.call("submit_task", "PARALLEL", 50, task=task)  # during it
        signed = ("--name", "Ana", "--reason", "a simulated growth")
        assert say("approvals", "approve", request, "--lab", up.lab, *signed).code == 0
        for _ in range(50):
            assert values(more.of("TOOL_CALL_RESPONSE"))[0]["task_id"] == kept["task_id"]
        last = client.turn(200.0)[-1]["content"]
        assert submitted(more, 50, task) == {kept["task_id"]}, "after it"
    assert last["finishReason"] == "STOP"
    assert last["text"].startswith("The growth is completed. Layers: 1, with a confidence of 0.")
    (found,) = tasks_of(up, "Grow a monolayer")
    assert len(found["attempts"]) == 1
    assert len(list(up.runs.iterdir())) == 1


def calls(told: Told, name: str) -> bool:
    asked = told["content"].get("toolCalls", ())
    return told["type"] == "MODEL_RESPONSE" and any(each["name"] == name for each in asked)


KINDS = ["USER_INPUT", "MODEL_RESPONSE", *["TOOL_CALL_RESPONSE"] * 3, "MODEL_RESPONSE"]


@pytest.mark.promise(78)
def test_a_server_that_is_killed_after_any_message_goes_on_with_one_task_and_no_result_lost(
    up: Up, state: Path, script: Script
) -> None:
    with McpCpServer(up.lab, state) as server:
        for at in range(len(KINDS)):
            before, whole = script.asked(THREE), len(script.bodies)
            name = f"killed-{at}"
            with server.client(name, CALLER) as client:
                client.join()
                client.say(THREE)
                had = [client.hear() for _ in range(at)] if at else []
                if not at:
                    script.until_asked(whole + 1)
                server.kill()
            server.start()
            with server.client(name, CALLER) as client:
                seen = client.join()["messages"]
                while not is_end(seen[-1]):
                    seen.append(client.hear())
            assert [each["type"] for each in seen] == KINDS, at
            assert seen[1 : 1 + len(had)] == had, "none is lost, and none has become another"
            assert 2 <= script.asked(THREE) - before <= 3, at
            results = [each["content"]["results"][0] for each in seen[2:5]]
            assert {each["status"] for each in results} == {"SUCCESS"}
    (task,) = tasks_of(up, "killed")
    assert task["status"] == "waiting_permission"


@pytest.mark.promise(77)
def test_a_stop_request_is_answered_at_once_and_cancels_the_task(
    up: Up, state: Path, script: Script
) -> None:
    with McpCpServer(up.lab, state) as server, server.client("stop", CALLER) as client:
        client.join()
        for turns in (1, 17):  # a model is slow, and then a turn waits too
            (task_id,) = submitted(client, 1, growth(f"stopped beside {turns}"))
            script.go.clear()
            asked = len(script.bodies)
            for number in range(turns):
                client.context_id = f"stop-{turns}-{number}"
                client.say("wait")
            script.until_asked(asked + 1)
            began_s = steady_s()
            client.call("request_stop", task_id=task_id, reason="smoke")
            told = client.of("TOOL_CALL_RESPONSE")
            assert steady_s() - began_s <= STOP_S_MAX
            assert kinds([told]) == [("TOOL_CALL_RESPONSE", "SYSTEM")]
            assert told["content"]["results"][0]["status"] == "SUCCESS", told
            until(partial(up.is_, task_id, "cancelled"), 10.0)
            assert sum(map(is_end, client.heard)) == (turns > 1)
            script.go.set()
            for _ in range(turns):
                client.turn()
            client.context_id = "stop"
        script.go.clear()
        client.say("wait")
        until(lambda: script.asked("wait") == 19)
    assert not script.go.is_set(), "it has ended at once, and the turn goes on later"
