"""A dialogue with a model: over the real wire, after a kill at any byte, and against liars."""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from commands import ROOT, edited_lab, say, start
from labharness.core.clock import pause
from labharness.faces.dialogue.asking import Dialogue
from labharness.faces.dialogue.tools import TOOLS, NotForAgent
from labharness.faces.model.scripted import BadScript, Scripted
from labharness.protocols.mcp_cp.errors import NotMcpCp
from labharness.work.dialogue.course import Bounds
from up_lab import Up, until

TASK = '{"task_id": "t-1"}'
SCRIPT = [
    {"text": "I look.", "calls": [{"name": "list_runs", "parameters": {}}]},
    {
        "text": "I submit.",
        "calls": [
            {"name": "submit_task", "parameters": {"task": {"n": 1}}},
            {"name": "get_task", "parameters": {"task_id": "t-1"}},
            {"name": "set", "parameters": {"value": 5}},
        ],
    },
    {"text": "Task ${submit_task.task_id}: ${get_task.status}.", "calls": []},
]


class Lab:
    """An agent at a lab in memory: what was submitted is a task once."""

    caller_id = "ana"

    def __init__(self, folder: Path) -> None:
        self.plan = SimpleNamespace(state_dir=folder)
        self.tasks: set[str] = set()
        self.told = {"task_id": "t-1", "status": "completed"}

    def call(self, name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        if name not in TOOLS:
            raise NotForAgent("agent.unknown_tool", name=name, known="")
        if name == "submit_task":
            self.tasks.add(json.dumps(arguments))
        return self.told

    def answer(
        self, name: str, arguments: Mapping[str, Any], thread_id: str = ""
    ) -> tuple[bool, dict[str, Any]]:
        try:
            return True, self.call(name, arguments)
        except NotForAgent as why:
            return False, self.refusal(why.code, str(why))

    def refusal(self, code: str, why: str) -> dict[str, str]:
        return {"code": code, "message": why}


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "script.json"
    path.write_text(json.dumps(SCRIPT), "utf-8")
    return path


def dialogue(folder: Path, model: Any, bounds: Bounds | None = None) -> tuple[Dialogue, Lab]:
    lab: Any = Lab(folder)
    return Dialogue(lab, model, "c-1", bounds or Bounds()), lab


class Counting:
    """A model that counts how often it is asked."""

    def __init__(self, model: Any) -> None:
        self.model, self.asked = model, 0

    def answer(self, briefing: Any) -> Any:
        self.asked += 1
        return self.model.answer(briefing)


@pytest.mark.promise(78)
def test_a_dialogue_that_is_killed_at_any_byte_goes_on_with_one_task_and_no_result_lost(
    tmp_path: Path, script: Path
) -> None:
    whole, lab = dialogue(tmp_path / "whole", Scripted(script))
    whole.say("grow")
    assert whole.go_on() == ""
    assert whole.messages[-1].content.text == "Task t-1: completed."
    kinds = [each.type for each in whole.messages]
    assert kinds.count("TOOL_CALL_RESPONSE") == 4
    data = (tmp_path / "whole" / "dialogues" / "c-1.jsonl").read_bytes()
    after_input = data.index(b"\n") + 1
    ends = [at + 1 for at, each in enumerate(data) if each == ord("\n")]
    for cut in {*range(after_input, len(data), 97), *ends, *(end - 1 for end in ends[1:])}:
        folder = tmp_path / f"cut-{cut}"
        (folder / "dialogues").mkdir(parents=True)
        (folder / "dialogues" / "c-1.jsonl").write_bytes(data[:cut])
        model = Counting(Scripted(script))
        again, lab = dialogue(folder, model)
        left = kinds[len(again.messages) :].count("MODEL_RESPONSE")
        lab.tasks |= {json.dumps({"task": {"n": 1}})} if b"submit_task" in data[:cut] else set()
        assert again.go_on() == ""
        assert [each.type for each in again.messages] == kinds, cut
        assert model.asked == left, cut
        assert len(lab.tasks) == 1, cut
        once_more, _ = dialogue(folder, model)
        assert once_more.messages == again.messages, cut


def test_one_call_of_a_tool_makes_the_four_messages_of_chapter_9(
    tmp_path: Path, script: Path
) -> None:
    script.write_text(json.dumps([SCRIPT[0], {"text": "Nothing runs.", "calls": []}]), "utf-8")
    talk, _ = dialogue(tmp_path, Scripted(script))
    talk.say("what runs?")
    assert talk.go_on() == ""
    lines = (tmp_path / "dialogues" / "c-1.jsonl").read_text("utf-8").splitlines()
    written = [*json.loads(lines[0])["messages"], *map(json.loads, lines[1:])]
    assert [(each["type"], each["sender"]["type"]) for each in written] == [
        ("USER_INPUT", "USER"),
        ("MODEL_RESPONSE", "MODEL"),
        ("TOOL_CALL_RESPONSE", "SYSTEM"),
        ("MODEL_RESPONSE", "MODEL"),
    ]
    first, last = written[1]["content"], written[3]["content"]
    assert (first["finishReason"], last["finishReason"]) == ("TOOL_CALLS", "STOP")
    (call,), (result,) = first["toolCalls"], written[2]["content"]["results"]
    assert (call["callId"], result["status"]) == (result["callId"], "SUCCESS")
    assert result["executionTime"] >= 0
    assert {each["contextId"] for each in written} == {"c-1"}
    assert len({each["messageId"] for each in written}) == 4
    for each in written:
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT[\d:]{8}\.\d{3}Z", each["timestamp"])


def test_a_damaged_dialogue_is_not_taken_up(tmp_path: Path, script: Path) -> None:
    whole, _ = dialogue(tmp_path, Scripted(script))
    whole.say("grow")
    path = tmp_path / "dialogues" / "c-1.jsonl"
    path.write_bytes(b"{}\n" + path.read_bytes())
    with pytest.raises(NotMcpCp, match="line 1"):
        dialogue(tmp_path, Scripted(script))


@pytest.mark.parametrize("context_id", ["../up", "a/b", "", "x" * 65, "-x"])
def test_the_id_of_a_dialogue_names_a_file_of_its_own_folder(
    tmp_path: Path, script: Path, context_id: str
) -> None:
    lab: Any = Lab(tmp_path)
    with pytest.raises(NotMcpCp, match="letters, digits"):
        Dialogue(lab, Scripted(script), context_id)


def test_a_dialogue_of_another_caller_or_of_too_many_bytes_is_not_taken_up(
    tmp_path: Path, script: Path
) -> None:
    talk, lab = dialogue(tmp_path, Scripted(script))
    talk.say("grow")
    lab.caller_id = "ben"
    with pytest.raises(NotMcpCp, match="another caller"):
        Dialogue(talk.agent, Scripted(script), "c-1")
    lab.caller_id = "ana"
    with (tmp_path / "dialogues" / "c-1.jsonl").open("ab") as file:
        file.write(b" " * 33_554_432)
    with pytest.raises(NotMcpCp, match="begin another"):
        Dialogue(talk.agent, Scripted(script), "c-1")


@pytest.mark.parametrize("text", ['{"a": 1}', "[1]", '[{"text": "x"}]', "no json"])
def test_a_file_that_is_no_list_of_answers_is_one_plain_error(tmp_path: Path, text: str) -> None:
    path = tmp_path / "s.json"
    path.write_text(text, "utf-8")
    with pytest.raises(BadScript, match="list of answers"):
        Scripted(path)


@pytest.fixture
def served() -> Iterator[Callable[[Any], Any]]:
    from contextlib import ExitStack

    from labharness.faces.model.openai_compatible import OpenAiCompatible  # 4 s
    from labharness.faces.testing.model_wire import model_at_port

    with ExitStack() as stack:

        def at(turns: Any) -> Any:
            url = stack.enter_context(model_at_port(turns))
            return OpenAiCompatible(url, "m", "none")

        yield at


def test_over_the_wire_all_calls_of_an_answer_are_carried_out_and_one_is_malformed(
    tmp_path: Path, served: Callable[[Any], Any]
) -> None:
    bodies: list[dict[str, Any]] = []

    def turns(body: dict[str, Any]) -> dict[str, Any]:
        bodies.append(body)
        if len(bodies) == 1:
            calls = [
                ("list_runs", "{}"),
                ("list_runs", "{not json"),
                ("list_runs", "{}{}"),
                ("get_task", '{"task_id": "t-1"}'),
            ]
            return {"text": "I look", "tools": calls}
        return {"text": "It is completed."}

    talk, _ = dialogue(tmp_path, served(turns))
    talk.say("what runs?")
    assert talk.go_on() == ""
    results = [
        each.content.results[0] for each in talk.messages if each.type == "TOOL_CALL_RESPONSE"
    ]
    assert len({each.call_id for each in results}) == len(results) == 4
    assert talk.messages[-1].content.text == "It is completed."
    assert talk.messages[-1].content.usage.total_tokens == 2
    assert {each["function"]["name"] for each in bodies[0]["tools"]} == set(TOOLS)
    roles = [each["role"] for each in bodies[1]["messages"]]
    assert roles == ["system", "user", "assistant", *["tool"] * 4]
    assert "t-1" in json.dumps(bodies[1])


@pytest.mark.promise(78)
def test_a_bound_is_met_between_two_calls_of_one_answer(
    tmp_path: Path, served: Callable[[Any], Any]
) -> None:
    talk, lab = dialogue(
        tmp_path,
        served(lambda body: {"tools": [("list_runs", "{}")] * 9}),
        Bounds(size_bytes=12_000),
    )
    lab.told["much"] = "x" * 4_000
    talk.say("read")
    assert "12000 bytes" in talk.go_on()
    results = [each.content.results[0] for each in talk.messages if each.type[0] == "T"]
    assert [each.status for each in results] == ["SUCCESS"] * 3 + ["ERROR"] * 6


@pytest.mark.parametrize(
    "turn",
    [
        {"status": 429},
        {"status": 500},
        {"status": 404},
        {"html": "<html>login</html>"},
        {"cut": '{"id": "x", "choi'},
        {"body": "[" * 100_000},
        {"body": '{"id": "x", "object": "chat.completion", "model": "m", "choices": "x"}'},
        {"text": "x", "usage": 10**30},
        {"text": "late"},
        {"text": "half an ans", "finish": "length"},
    ],
)
def test_a_model_that_fails_ends_in_one_sentence_and_the_dialogue_can_go_on(
    tmp_path: Path,
    served: Callable[[Any], Any],
    monkeypatch: pytest.MonkeyPatch,
    turn: dict[str, Any],
) -> None:
    turns, late = [turn] * 9, turn == {"text": "late"}

    def answers(body: dict[str, Any]) -> dict[str, Any]:
        pause(0.5 * late)
        return turns.pop(0)

    if late:
        monkeypatch.setattr("labharness.faces.model.openai_compatible.ANSWER_S_MAX", 0.2)

    talk, _ = dialogue(tmp_path, served(answers))
    talk.say("what runs?")
    assert talk.go_on() == ""
    last = talk.messages[-1].content
    assert last.finish_reason == ("LENGTH" if "finish" in turn else "ERROR")
    assert "\n" not in last.text
    assert "Traceback" not in last.text
    assert len(turns) >= 6, "it is not asked for ever"
    monkeypatch.undo()
    turns[:] = [{"text": "Nothing runs."}] * 2
    late = False
    talk.say("and now?")
    assert talk.go_on() == ""
    assert talk.messages[-1].content.text == "Nothing runs."


@pytest.mark.promise(78)
def test_a_model_that_never_stops_is_stopped(tmp_path: Path, served: Callable[[Any], Any]) -> None:
    talk, _ = dialogue(
        tmp_path, served(lambda body: {"tools": [("list_runs", "{}")] * 5}), Bounds(answers=4)
    )
    talk.say("loop")
    assert "4 answers" in talk.go_on()
    assert [each.type for each in talk.messages].count("MODEL_RESPONSE") == 4


def test_a_model_that_was_stopped_has_a_result_of_each_call_when_it_is_asked_again(
    tmp_path: Path, served: Callable[[Any], Any]
) -> None:
    bodies: list[dict[str, Any]] = []

    def turns(body: dict[str, Any]) -> dict[str, Any]:
        bodies.append(body)
        return {"tools": [("list_runs", "{}")] * 3} if len(bodies) == 1 else {"text": "Well."}

    talk, _ = dialogue(tmp_path, served(turns), Bounds(calls=2))
    talk.say("loop")
    assert "2 calls" in talk.go_on()
    talk.say("and now?")
    assert talk.go_on() == ""
    roles = [each["role"] for each in bodies[1]["messages"]]
    assert roles == ["system", "user", "assistant", "tool", "tool", "tool", "user"]


LIES = {
    "a number": ({"text": "The film is 0.98 sure."}, ("0.98",)),
    "a temperature": ({"text": "Done, verified at 751.5 degC."}, ("751.5",)),
    "no number": ({"text": "It is done."}, ()),
}


@pytest.mark.promise(78)
@pytest.mark.parametrize("case", LIES)
def test_what_a_liar_claims_is_shown_apart(
    tmp_path: Path, served: Callable[[Any], Any], case: str
) -> None:
    turn, claims = LIES[case]
    talk, _ = dialogue(tmp_path, served(lambda body: turn))
    talk.say("how sure?")
    talk.go_on()
    assert talk.claims == claims


@pytest.mark.thorough
@pytest.mark.timeout(300)
def test_a_sentence_becomes_a_growth_once_another_person_agrees(tmp_path: Path) -> None:
    lab = edited_lab(tmp_path, "[lab]\n", "[lab]\n")  # the standing approval is of another file
    up = Up(lab, tmp_path / "runs")
    words = "grow a monolayer of MoS2 and tell me how sure you are"
    who = ("--lab", lab, "--caller", "harness-alpha-001")
    try:
        asking = start("ask", words, *who, "--model", "scripted")
        until(lambda: "nothing waits" not in say("approvals", "list", "--lab", lab).out)
        request = say("approvals", "list", "--lab", lab).out.split()[0]
        signed = ("--name", "Ana", "--reason", "a simulated growth")
        assert say("approvals", "approve", request, "--lab", lab, *signed).code == 0
        out, err = asking.communicate(timeout=200)
    finally:
        say("down", "--lab", lab, "--stop")
        until(up.down)
    assert asking.returncode == 0, err
    (context_id, *_) = re.findall(r"[0-9a-f-]{36}", err)
    (task,) = json.loads(say("tasks", "list", "--lab", lab, "--json").out)["tasks"]
    assert context_id in json.dumps(task["relationships"]), err
    assert out.startswith("The growth is completed. Layers: 1, with a confidence of 0.")
    assert "no tool has returned" not in err


def test_without_a_model_or_words_it_says_what_to_do(tmp_path: Path) -> None:
    lab = ROOT / "tests" / "short_line.toml"
    who = ("--lab", lab, "--caller", "harness-alpha-001")
    assert "has no table [model]" in say("ask", "x", *who).err
    assert "--context" in say("ask", *who).err
    unknown = say("ask", *who, "--model", "scripted", "--context", "0")
    assert "there is no dialogue 0" in unknown.err
    assert unknown.code == 64


def test_a_question_of_the_model_is_shown_and_the_next_words_answer_it(tmp_path: Path) -> None:
    from labharness.faces.testing.model_wire import model_at_port

    def turns(body: dict[str, Any]) -> Mapping[str, Any]:
        heard = [each["content"] for each in body["messages"] if each["role"] == "user"]
        question = json.dumps({"question": "how\x1b[2J thick?"})
        return {"text": heard[-1]} if len(heard) > 1 else {"tools": [("ask_person", question)]}

    lab = ROOT / "envelopes" / "labharness_envelopes" / "labs" / "iv_bench" / "lab.toml"
    path, who = tmp_path / "lab.toml", ("--caller", "operator")
    with model_at_port(turns) as url:
        path.write_text(f'{lab.read_text("utf-8")}\n[model]\nurl = "{url}"\nname = "m"\n', "utf-8")
        asked = say("ask", "grow", "--lab", path, *who)
        assert asked.code == 0, asked.err
        assert "'how thick?'" in asked.out
        context_id = asked.out.split()[-1]
        answered = say("ask", "one layer", "--lab", path, *who, "--context", context_id)
    assert (answered.code, answered.out) == (0, "one layer\n")


def test_a_model_in_a_file_that_lacks_a_result_fails_in_words(tmp_path: Path, script: Path) -> None:
    script.write_text(json.dumps([{"text": "It is ${get_task.status}.", "calls": []}]), "utf-8")
    talk, _ = dialogue(tmp_path, Scripted(script))
    talk.say("grow")
    assert talk.go_on() == ""
    answer = talk.last_answer
    assert answer is not None
    assert (answer.finish_reason, answer.text.split()[-1]) == ("ERROR", "${get_task.status}")
