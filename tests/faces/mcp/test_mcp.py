"""A lab offered over MCP: what an honest agent gets done, and what a hostile one does not."""

import json
import math
import os
import shutil
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from commands import ROOT, say
from labharness.core.errors import LabError
from labharness.core.operations import operations
from labharness.faces.dialogue.tools import TOOLS, Agent, NotForAgent, plain
from labharness.lab import read_lab
from labharness.lab.house.intake import RUNTIME, must
from labharness.lab.house.orders import WORKER
from labharness.work.task.commands import (
    CancelTask,
    CreateTask,
    ReportStatus,
    StartTask,
    TaskActor,
    TaskCommand,
)
from labharness.work.task.house import HouseJournal
from labharness.work.task.kept import HOUSE_JOURNAL, read_tasks
from rig import ANNEALING_LAB, IV
from up_lab import Up, until

PAYLOAD = json.loads((ROOT / "examples" / "iv-curve.json").read_text("utf-8"))["payload"]
TASK = {name: value for name, value in PAYLOAD.items() if name != "caller_id"}
HERS = "11111111-1111-4111-8111-111111111111"
ANSWER_BYTES_MAX, POINTS_MAX = 65_536, 200  # as promised, not as imported


@pytest.fixture
def lab(tmp_path: Path) -> Path:
    """The bench of IV curves, whose file lets a model have data of class T2."""
    folder = tmp_path / "lab"
    shutil.copytree(IV.parent, folder)
    path = folder / IV.name
    text = path.read_text("utf-8")
    path.write_text(text.replace("[lab]\n", '[lab]\nmodel_class = "T2"\n', 1), "utf-8")
    return path


@pytest.fixture
def of_ana(lab: Path) -> Path:
    """The journal of its house, with a task of another caller."""
    return keep(lab, "ana", CreateTask(task_id=HERS, objective="hers", key="k"))


def keep(lab: Path, caller_id: str, *commands: TaskCommand) -> Path:
    """Have the journal of a lab's house hold what a caller has asked for; return its path."""
    home = read_lab(lab).state_dir
    home.mkdir(parents=True, exist_ok=True)
    with HouseJournal(home / HOUSE_JOURNAL) as house:
        for each in commands:
            of_house = isinstance(each, ReportStatus | StartTask)
            actor = RUNTIME if of_house else TaskActor(caller_id, "caller")
            must(house.give(each, actor, 1.0))
    return home / HOUSE_JOURNAL


def connected(lab: Path, mode: Any) -> Any:
    """Return the SDK's client of an agent of the operator; it takes two seconds to import."""
    from mcp.client.client import Client

    from labharness.faces.mcp.server import server_of

    return Client(server_of(Agent(lab, "operator")), mode=mode)


def calls(lab: Path, *asked: tuple[str, dict[str, Any]], mode: Any = "auto") -> list[Any]:
    """Return the answers to calls of an agent of the operator, in memory."""

    async def main() -> list[Any]:
        async with connected(lab, mode) as client:
            return [await client.call_tool(*each) for each in asked]

    return anyio.run(main)


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_both_eras_are_told_of_the_lab_and_of_tools_that_steer_nothing(
    lab: Path, mode: Any
) -> None:
    async def main() -> tuple[Any, Any, Any]:
        async with connected(lab, mode) as client:
            tools = await client.list_tools()
            card = await client.read_resource("lab://card")
            return tools.tools, card.contents[0], await client.call_tool("describe_lab", {})

    tools, card, told = anyio.run(main)
    assert [each.name for each in tools] == [
        name for name, row in TOOLS.items() if row.kind != "ask"
    ]
    assert all(each.input_schema["additionalProperties"] is False for each in tools)
    assert {TOOLS[each.name].kind for each in tools} == {"read", "propose", "safe"}
    steering = {name for name, row in operations().items() if row.kind == "steer"}
    assert not steering & set(TOOLS)
    assert not told.is_error
    body = told.structured_content
    assert json.loads(told.content[0].text) == json.loads(card.text) == body
    (offered,) = body["capabilities"]
    assert offered["capability"]["name"] == "iv-curve"
    assert body["safety_envelope"] == json.loads(json.dumps(read_lab(lab).safety_envelope))


@pytest.mark.promise(77)
@pytest.mark.parametrize(("name", "arguments"), [("describe_lab", {}), ("list_runs", {})])
def test_a_caller_that_the_lab_does_not_know_is_told_nothing(
    name: str, arguments: dict[str, Any]
) -> None:
    with pytest.raises(NotForAgent, match="nobody"):
        Agent(ANNEALING_LAB, "nobody").call(name, arguments)
    assert not set(Agent(ANNEALING_LAB, "operator").call(name, arguments)) & {"outcome", "code"}


def test_a_caller_that_the_lab_does_not_know_is_refused_before_an_agent_connects() -> None:
    said = say("mcp", "--caller", "nobody", "--lab", ANNEALING_LAB)
    assert said.code == 1
    assert said.err == "labharness mcp: caller 'nobody' is not authenticated [not_for_agent]\n"


HOSTILE: dict[str, tuple[str, dict[str, Any], str]] = {
    **{
        name: (name, {"channel": "smu.level", "value": 5.0, "unit": "V"}, "there is no tool")
        for name in (
            "set",
            "Set",
            "set_setpoint",
            "ramp",
            "approve",
            "ack",
            "reset",
            "arm",
            "shell",
        )
    },
    "a further argument": ("get_task", {"task_id": HERS, "as": "ana"}, "'as' is not an input"),
    "a name that nobody sees": ("a\x1b[2J\u202e\U000e0061\nb", {}, "no tool a b, and"),
    "no argument": ("get_task", {}, "task_id"),
    "a number for a name": ("get_task", {"task_id": 5}, "task_id"),
    "another's task": ("get_task", {"task_id": HERS}, "has no task"),
    "another's run": ("get_run", {"task_id": HERS}, "has no task"),
    "another's trend": ("trend", {"task_id": HERS, "channels": ["smu.level"]}, "has no task"),
    "another's end": ("request_stop", {"task_id": HERS, "reason": "x"}, "has no task"),
    "another's name": ("submit_task", {"task": {**TASK, "caller_id": "ana"}}, "names the caller"),
    "a type for its name": ("submit_task", {"task": {**TASK, "caller_id": None}}, "names the"),
    "confidential data": (
        "submit_task",
        {"task": {**TASK, "constraints": {"data_classification": "T3"}}},
        "is of class T3",
    ),
    "a class that is not known": (
        "check_plan",
        {"task": {**TASK, "constraints": {"data_classification": "t1"}}},
        "is of class t1",
    ),
    "no inputs": ("submit_task", {"task": {"capability": "iv-curve", "intent": "x"}}, "inputs"),
    "a path for a channel": ("read_channels", {"channels": ["../../lab.toml"]}, "no instrument"),
    "no house": ("submit_task", {"task": TASK}, "no house"),
}


@pytest.mark.promise(77)
@pytest.mark.parametrize("case", HOSTILE)
def test_a_hostile_call_is_refused_in_one_sentence_and_changes_nothing(
    lab: Path, of_ana: Path, case: str
) -> None:
    def state() -> object:
        files = {path: path.read_bytes() for path in lab.parent.iterdir()}
        return files, read_tasks(of_ana), sorted(of_ana.parent.iterdir())

    name, arguments, says = HOSTILE[case]
    before = state()
    (found,) = calls(lab, (name, arguments))
    assert found.is_error
    said = found.structured_content
    assert said["outcome"] == "refused"
    assert says in said["message"]
    assert "Traceback" not in said["message"]
    assert "\n" not in said["message"]
    assert str(lab.parent) not in said["message"]
    assert str(of_ana.parent) not in said["message"]
    assert plain(said) == said
    assert state() == before


@pytest.mark.promise(77)
def test_an_agent_sees_the_tasks_of_its_own_caller_alone(lab: Path, of_ana: Path) -> None:
    assert Agent(lab, "operator").call("list_runs", {}) == {"count": 0, "tasks": []}
    assert Agent(lab, "ana").call("list_runs", {})["count"] == 1


@pytest.mark.promise(77)
def test_a_task_above_the_class_of_the_model_is_not_in_a_list(lab: Path) -> None:
    classes = {"T1": "T1", "T2": "T2", "T3": "T3", "T4": "T4", "": "T2", "t1": "no class"}
    commands = [
        CreateTask(
            task_id=f"{number}",
            objective="x",
            title=f"of {found}",
            key=f"{number}",
            constraints={"data_classification": each} if each else {},
        )
        for number, (each, found) in enumerate(classes.items())
    ]
    keep(lab, "operator", *commands)
    told = Agent(lab, "operator").call("list_runs", {})
    assert sorted(each["title"] for each in told["tasks"]) == ["of T1", "of T2", "of T2"]
    assert told["count"] == 3


@pytest.mark.promise(77)
@pytest.mark.parametrize(("found", "told"), [("T3", False), ("T2", True)])
def test_readings_of_a_run_above_the_class_of_the_model_are_not_told(
    lab: Path, found: str, told: bool
) -> None:
    secret = {"data_classification": found}
    create = CreateTask(task_id="1", objective="x", key="k", constraints=secret)
    start = StartTask(task_id="1", run_id="r", worker=WORKER)
    keep(lab, "ana", create, ReportStatus(task_id="1", to="accepted"), start)
    (answer,) = calls(lab, ("read_channels", {"channels": ["smu.voltage"]}))
    assert answer.is_error is not told
    assert told or "a run at work is of class T3" in answer.structured_content["message"]


def test_long_reasons_do_not_keep_a_list_back(lab: Path) -> None:
    commands: list[TaskCommand] = []
    for number in range(50):
        commands.append(CreateTask(task_id=f"{number}", objective="x", key=f"{number}"))
        commands.append(CancelTask(task_id=f"{number}", reason="\N{GRINNING FACE}" * 500))
    keep(lab, "operator", *commands)
    assert Agent(lab, "operator").call("list_runs", {})["count"] == 50


@pytest.mark.promise(77)
@pytest.mark.parametrize("text", ["no lab file", None])
def test_a_stop_request_waits_for_no_lab_file_and_no_class_of_data(
    lab: Path, text: str | None
) -> None:
    secret = {"data_classification": "T3"}
    keep(lab, "operator", CreateTask(task_id="1", objective="x", key="k", constraints=secret))
    agent = Agent(lab, "operator")
    if text is None:
        lab.unlink()
    else:
        lab.write_text(text, "utf-8")
    with pytest.raises(LabError, match="no house answers"):  # so it was asked
        agent.call("request_stop", {"task_id": "1", "reason": "smoke"})


@pytest.mark.parametrize(
    "text",
    [
        "a\x1b[31mb\x1b[0m",
        *(f"a{each}b" for each in "\u202e\u200b\0\ufeff\xad\u3164\ufe0f\U000e0061\ud800"),
    ],
)
def test_what_no_person_sees_is_not_told_to_a_model(text: str) -> None:
    assert plain({text: [text, 1, None]}) == {"ab": ["ab", 1, None]}


def test_a_number_that_json_does_not_have_is_told_as_none() -> None:
    assert plain([math.nan, math.inf, -math.inf, 1.5]) == [None, None, None, 1.5]


def test_a_lack_of_the_extra_is_told_in_one_line(
    lab: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, "labharness.faces.mcp.server", raising=False)
    for lacking in ("anyio", "mcp", "mcp_types"):
        monkeypatch.setitem(sys.modules, lacking, None)
    told = say("mcp", "--lab", lab, "--caller", "operator")
    assert told.code == 64
    assert "pip install 'labharness[agent]'" in told.err


@given(st.recursive(st.text() | st.integers() | st.none(), lambda each: st.lists(each)))
def test_a_text_of_letters_is_told_as_it_is(value: object) -> None:
    once = plain(value)
    assert plain(once) == once


@pytest.mark.promise(77)
@pytest.mark.timeout(120)
def test_an_agent_over_stdio_has_a_task_done_once_and_reads_its_result(
    lab: Path, tmp_path: Path
) -> None:
    up = Up(lab, tmp_path / "runs")
    from mcp.client.client import Client
    from mcp.client.stdio import StdioServerParameters, stdio_client

    command = StdioServerParameters(
        command=sys.executable,
        args=["-m", "labharness", "mcp", "--lab", str(lab), "--caller", "operator"],
        env=dict(os.environ),
    )

    async def main() -> tuple[set[str], Any, Any, Any, Any]:
        async with Client(stdio_client(command)) as agent:

            async def call(name: str, **given: object) -> Any:
                found = await agent.call_tool(name, given)
                assert not found.is_error, found
                return found.structured_content

            assert (await call("submit_task", task=TASK))["outcome"] == "kept"
            checked = await call("check_plan", task=TASK)
            assert checked["outcome"] == "accepted"
            ids = {(await call("submit_task", task=TASK))["task_id"] for _ in range(20)}
            (task_id,) = ids
            assert (await call("get_task", task_id=task_id, wait_s=50))["status"] == "completed"
            ids.add((await call("submit_task", task=TASK))["task_id"])
            refused = await call("submit_task", task={**TASK, "inputs": {}})
            assert refused["outcome"] == "rejected"
            assert "start_v" in refused["reason"]
            run = await call("get_run", task_id=task_id)
            uri = run["answer"]["artifacts"][0]["uri"]
            again = await call("check_plan", task={**TASK, "inputs": {"inputs_uri": uri}})
            assert again["reason_code"] == "invalid_input", "of its own run, and no inputs"
            trend = await call("trend", task_id=task_id, channels=list(run["ranges"])[:1])
            missing = await agent.call_tool("trend", {"task_id": task_id, "channels": ["smu.no"]})
            assert f"it has {next(iter(run['ranges']))}" in missing.structured_content["message"]
            task = await call("get_task", task_id=task_id)
            return ids, run, trend, task, await call("list_runs")

    try:
        ids, run, trend, task, listed = anyio.run(main)
    finally:
        say("down", "--lab", lab, "--stop")
        until(up.down)
    assert len(ids) == 1
    assert listed["count"] == 2
    assert run["record_holds"] is True
    assert run["answer"]["outputs"]["ideality"] > 1
    (points,) = [each["points"] for each in trend.values()]
    assert 0 < len(points) <= POINTS_MAX
    folder = up.runs / task["attempts"][0]["runId"]
    read = [each.split()[-1] for each in say("journal", "access", folder).out.splitlines()]
    assert read == ["answer", run["answer"]["artifacts"][0]["uri"], "readings", "readings"]


@pytest.mark.parametrize(
    ("row", "url", "allowed"),
    [
        ("", "https://models.example/v1", "T1"),
        ("", "http://127.0.0.1:11434/v1", "T2"),
        ("", "http://127.0.0.1.models.example/v1", "T1"),
        ('model_class = "T1"\n', "http://localhost/v1", "T1"),
    ],
)
def test_a_model_on_this_machine_may_have_what_the_file_leaves_open(
    lab: Path, row: str, url: str, allowed: str
) -> None:
    text = lab.read_text("utf-8").replace('model_class = "T2"\n', row, 1)
    lab.write_text(f'{text}\n[model]\nurl = "{url}"\nname = "m"\n', "utf-8")
    model = read_lab(lab).file.model
    assert model is not None
    near = Agent(lab, "operator", model.on_loopback)
    assert near.describe_lab()["model_class"] == allowed
    assert Agent(lab, "operator").describe_lab()["model_class"] == "T1"
