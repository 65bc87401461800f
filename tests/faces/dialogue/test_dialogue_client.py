"""A client against a real server: what travels, tools that are not there, and a whole growth."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from commands import ROOT, edited_lab, say, start
from labharness.faces.dialogue.client import DialogueClient, DialogueRefused, at_lab
from labharness.faces.dialogue.front_tools import FrontTools
from labharness.faces.dialogue.server import ADDRESS_FILE
from labharness.lab import read_address
from labharness.protocols.mcp_cp.messages import McpMessage, ToolCallRequest
from labharness.protocols.mcp_cp.tools import ToolCall, ToolResult
from rig import HERE
from up_lab import Up, until

SHORT = ROOT / "tests" / "short_line.toml"
ALPHA = "harness-alpha-001"
SPECTRUM = HERE / "data" / "raman" / "raman_fitting_mit" / "Si_spectrum01.txt"


class Wired:
    """A client whose messages are kept as they travel, and a user who answers."""

    def __init__(self) -> None:
        self.answers, self.wire = list[str](), list[bytes]()
        self.tools = FrontTools(lambda question: self.answers.pop(0), lambda line: None)

    def keep(self, client: DialogueClient) -> None:
        send = client.send

        def kept(data: bytes) -> None:
            self.wire.append(data)
            send(data)

        client.send = kept


def results(told: Iterator[McpMessage]) -> dict[str, ToolResult]:
    return {
        result.call_id: result
        for each in told
        if each.type == "TOOL_CALL_RESPONSE"
        for result in each.content.results
    }


def codes(told: Iterator[McpMessage]) -> list[str]:
    return [each.error.code if each.error else "" for each in results(told).values()]


@pytest.fixture(scope="module")
def wired() -> Wired:
    return Wired()


@pytest.fixture(scope="module")
def client(wired: Wired) -> Iterator[DialogueClient]:
    with at_lab(SHORT, ALPHA, wired.tools, "--model", "scripted") as client:
        wired.keep(client)
        yield client


def front(call_id: str, name: str, **more: Any) -> ToolCall:
    return ToolCall(call_id, name, more.pop("parameters", {}), runtime="FRONTEND", **more)


@pytest.mark.promise(77)
def test_a_chain_of_front_tools_carries_no_path_and_no_data_to_the_server(
    client: DialogueClient, wired: Wired
) -> None:
    wired.answers += [str(SPECTRUM), "yes"]
    wired.wire.clear()
    fit = {"file": "${results.pick.result.digest}"}
    chain = (front("pick", "file_picker"), front("fit", "local_fit", parameters=fit))
    found = results(client.say(ToolCallRequest(chain)))
    assert found["pick"].result["name"] == SPECTRUM.name
    assert any(519 < each["place"] < 523 for each in found["fit"].result["peaks"])
    assert wired.answers == []
    wire = b"\n".join(wired.wire).decode()
    assert wire.count('"TOOL_CALL_RESPONSE"') == 2
    lines = [each.strip() for each in SPECTRUM.read_text("latin-1").splitlines()]
    secrets = [str(SPECTRUM.parent), *(each for each in lines if len(each) > 8)]
    assert [each for each in secrets if each in wire] == []


def test_a_call_of_each_fallback_where_no_program_has_the_tool(client: DialogueClient) -> None:
    ours = ToolCall("ours", "list_runs", {})
    for fallback, told in (
        ("SKIP", ["NOT_AVAILABLE", ""]),
        ("ABORT", ["NOT_AVAILABLE", "ABORTED"]),
        (None, ["NOT_AVAILABLE", ""]),
    ):
        strange = front("strange", "highlight_element", fallback_behavior=fallback)
        assert codes(client.say(ToolCallRequest((strange, ours)))) == told
    alternative = front("other", "list_runs", fallback_behavior="USE_ALTERNATIVE")
    assert codes(client.say(ToolCallRequest((alternative, ours)))) == ["", ""]


def test_a_refused_consent_ends_the_call_and_not_the_dialogue(
    client: DialogueClient, wired: Wired
) -> None:
    wired.answers += ["", "yes"]
    ask = front("ask", "confirm", parameters={"question": "Warm?"})
    assert codes(client.say(ToolCallRequest((ask,)))) == ["PERMISSION_DENIED"]
    again = results(client.say(ToolCallRequest((ask,))))
    assert again["ask"].result == {"answer": True}


@pytest.mark.thorough
def test_a_client_takes_a_context_up_again_and_one_whom_the_lab_does_not_know_is_not_let_in(
    wired: Wired,
) -> None:
    options = ("--model", "scripted")
    with at_lab(SHORT, ALPHA, wired.tools, *options) as first:
        told = [*first.say(ToolCallRequest((ToolCall("ours", "list_runs", {}),)))]
    with at_lab(SHORT, ALPHA, wired.tools, *options, context_id=first.context_id) as again:
        assert again.messages == [first.messages[0], *told]
        assert [*again.go_on()] == []
        assert codes(again.say(ToolCallRequest((front("x", "none"),)))) == ["NOT_AVAILABLE"]
    with pytest.raises(DialogueRefused, match="has ended"), at_lab(SHORT, "nobody", wired.tools):
        pass


def test_the_same_client_speaks_over_a_websocket(wired: Wired) -> None:
    from websockets.sync.client import connect

    serving = start("mcp-cp", "--lab", SHORT, "--websocket", "0", "--model", "scripted")
    place = read_address(SHORT).state_dir / ADDRESS_FILE
    try:
        until(place.exists)
        url = f"{json.loads(place.read_text('utf-8'))['address']}?caller={ALPHA}"
        with connect(url) as socket:
            received = (str(each).encode() for each in socket)
            client = DialogueClient(
                ALPHA, lambda data: socket.send(data.decode()), received, wired.tools
            )
            client.join()
            wired.answers.append("no")
            ask = front("ask", "confirm", parameters={"question": "Warm?"})
            assert results(client.say(ToolCallRequest((ask,))))["ask"].result == {"answer": False}
    finally:
        serving.terminate()
        serving.communicate()


TASK = json.loads((ROOT / "labharness/faces/model/growth.json").read_text("utf-8"))[1]["calls"][0]


@pytest.mark.promise(77)
@pytest.mark.thorough
@pytest.mark.timeout(400)
def test_a_growth_from_sentence_to_answer_where_yes_to_the_model_approves_nothing(
    tmp_path: Path, wired: Wired
) -> None:
    from labharness.faces.testing.model_wire import model_at_port

    turns: list[dict[str, Any]] = [
        {"text": "I submit.", "tools": [("submit_task", json.dumps(TASK["parameters"]))]},
        {"text": "I ask.", "tools": [("confirm", '{"question": "Approve the task?"}')]},
    ]

    def turn(body: dict[str, Any]) -> dict[str, Any]:
        if turns:
            return turns.pop(0)
        last = json.loads(body["messages"][-1]["content"])
        status = last.get("value", last).get("status", "")
        if status == "completed":
            return {"text": "The growth is completed."}
        asked = {"task_id": submitted[0], "wait_s": 40}
        return {"text": "I wait.", "tools": [("get_task", json.dumps(asked))]}

    submitted = list[str]()
    with model_at_port(turn) as url:
        lab = edited_lab(tmp_path, "[lab]\n", f'[model]\nurl = "{url}"\nname = "m"\n\n[lab]\n')
        up, listed = Up(lab, tmp_path / "runs"), ("approvals", "list", "--lab", lab)
        wired.answers.append("yes")
        try:
            with at_lab(lab, ALPHA, wired.tools) as client:
                answer = ""
                for each in client.say("grow a monolayer of MoS2"):
                    if each.type == "MODEL_RESPONSE":
                        answer = each.content.text
                    if each.type != "TOOL_CALL_RESPONSE":
                        continue
                    (result,) = each.content.results
                    assert result.error is None, result
                    if not submitted:
                        submitted.append(result.result["value"]["task_id"])
                    elif result.result == {"answer": True}:
                        assert wired.answers == []
                        until(lambda: "nothing waits" not in say(*listed).out)
                        request = say(*listed).out.split()[0]
                        assert not up.is_(submitted[0], "completed", "running")
                        signed = ("--name", "Ana", "--reason", "a simulated growth")
                        done = say("approvals", "approve", request, "--lab", lab, *signed)
                        assert done.code == 0, done.err
                assert answer == "The growth is completed."
        finally:
            say("down", "--lab", lab, "--stop")
            until(up.down)
