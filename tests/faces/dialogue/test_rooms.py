"""Dialogues as a server has them: what each client may, what it hears, and what it is refused."""

import asyncio
import json
from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta
from pathlib import Path
from threading import Event, Thread
from types import SimpleNamespace
from typing import Any

import pytest

from instruction_sets import CHAPTER_9_2
from labharness.core.clock import utc_text, wall_clock_utc
from labharness.faces.dialogue import asking, plugins, tools
from labharness.faces.dialogue.asking import Dialogue
from labharness.faces.dialogue.instructing import GROUP, Action
from labharness.faces.dialogue.server import _client
from labharness.faces.dialogue.tools import Agent, AgentTool
from labharness.protocols.mcp_cp import codec, context
from labharness.protocols.mcp_cp.codec import message_types
from labharness.protocols.mcp_cp.parts import Part
from labharness.work.dialogue.intents import PROMPTS
from labharness.work.plan.actions import ActionSchema
from labharness.work.plan.instructions import InstructionKind
from labharness.work.plan.step import RunningStep
from rig import IV
from talking import CONTEXT_ID, Program, Served
from up_lab import until

Serve = Callable[..., Program]
MODEL, CALL, SYSTEM = "MODEL_RESPONSE", "TOOL_CALL_RESPONSE", "SYSTEM_MESSAGE"
PICK = {"toolId": "pick", "version": "1.2", "permissionLevel": "USER_CONSENT"}
FIT = {"toolId": "fit", "version": "1.0"}


@pytest.fixture
def serve(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Serve]:
    """Serve a lab in memory, with the answers of its model, for a first client."""
    made: list[Program] = []

    def begin(*answers: Any) -> Program:
        made.append(Program(Served(tmp_path, monkeypatch, *answers)))
        return made[-1]

    yield begin
    for each in made:
        each.rooms.end()


def kinds(program: Program) -> list[str]:
    return [each["type"] for each in program.heard]


# ---- what other packages add


class Spectrum(Part, frozen=True):
    """A type of message that another package has, and answers."""

    peaks: tuple[float, ...]

    def answer(self, agent: Any) -> tuple[str, Part]:
        return "SPECTRUM", Spectrum((max(self.peaks),))


class Silent(Part, frozen=True):
    """One that is not answered."""


@pytest.fixture
def added(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., None]]:
    """Have packages offer values by name under a group; ``ImportError`` cannot be imported."""
    points: dict[str, list[Any]] = {}

    def load(what: object) -> object:
        if what is ImportError:
            raise ImportError
        return what

    def add(group: str, offered: Mapping[str, object]) -> None:
        points[group] = [
            SimpleNamespace(name=name.strip(), value=name, load=lambda what=what: load(what))
            for name, what in offered.items()
        ]

    for module in (codec, plugins):
        monkeypatch.setattr(module, "entry_points", lambda group: points.get(group, []))
    caches = (message_types, plugins.loaded, tools.known_tools)
    for each in caches:
        each.cache_clear()
    yield add
    for each in caches:
        each.cache_clear()


def test_a_type_of_another_package_is_answered_by_it(
    serve: Serve, added: Callable[..., None]
) -> None:
    added(codec.GROUP, {"SPECTRUM": Spectrum, "SILENT": Silent})
    ana = serve()
    ana.send("SPECTRUM", {"peaks": [383.5, 404.0]})
    assert ana.until("SPECTRUM")["content"] == {"peaks": [404.0]}
    assert [ana.send("SILENT", {})] == [ana.refused[1]]
    assert ana.refused[0] == "FORBIDDEN"
    assert ana.send("SPECTRUM", {"peaks": []}) == ana.refused[1], "it fails at this one"
    assert ana.refused[0] == "SYSTEM_ERROR"
    assert "max()" not in json.dumps(ana.heard)


def tool(name: str, kind: Any = "read") -> AgentTool:
    def work(agent: Agent, **asked: Any) -> dict[str, Any]:
        return {"of": name, "for": agent.caller_id, **asked}

    return AgentTool(name, kind, f"Do {name}.", work, {"city": {"type": "string"}})


def test_tools_of_other_packages_are_offered_where_they_read_and_take_no_name(
    added: Callable[..., None], caplog: pytest.LogCaptureFixture
) -> None:
    kinds = {"set": "steer", "stop_all": "safe", "buy": "propose"}
    reads = {each: tool(each) for each in ("weather_api", "image_generator", "list_runs")}
    wrong = {"lost": ImportError, "no_tool": 1, "weather_api ": tool("x")}
    added(tools.GROUP, {**reads, **{name: tool(name, kinds[name]) for name in kinds}, **wrong})
    found = tools.known_tools()
    assert {*found} == {*tools.TOOLS, "weather_api", "image_generator"}
    assert found["list_runs"] is tools.TOOLS["list_runs"]
    assert all(name in caplog.text for name in ("lost", "no_tool", "weather_api"))
    agent, asked = Agent(IV, "operator"), {"city": "Xi'an"}
    for name in ("weather_api", "image_generator"):
        assert agent.answer(name, asked) == (True, {"of": name, "for": "operator", **asked})
        assert agent.answer(name, {"town": "x"})[1]["code"] == "not_for_agent"


# ---- sets of instructions

ACTIONS = ("QUERY_DATA", "PROCESS_DATA", "ANALYZE_TREND", "GENERATE_REPORT")
GIVES = dict(zip(ACTIONS, ("data", "processed_data", "analysis", "report"), strict=True))
WORDS = "First query the data, then analyse them, finally report."


@pytest.fixture
def got(added: Callable[..., None]) -> list[Mapping[str, Any]]:
    """The parameters that the actions of chapter 9 got; another package offers these."""
    found: list[Mapping[str, Any]] = []

    async def verb(step: RunningStep) -> Mapping[str, Any]:
        found.append(step.parameters)
        return {GIVES[step.instruction.action]: [step.instruction.instruction_id]}

    schema = ActionSchema(InstructionKind.ANALYSIS, {"type": "object"})
    added(GROUP, {name: Action(schema, verb) for name in GIVES})
    return found


@pytest.mark.promise(78)
def test_an_input_of_steps_becomes_a_set_that_is_carried_out_and_told(
    serve: Serve, got: list[Mapping[str, Any]]
) -> None:
    unknown = {**CHAPTER_9_2, "instructions": [{"instructionId": "i", "action": "LAUNCH"}]}
    ana = serve(json.dumps(unknown), json.dumps(CHAPTER_9_2), "The report.")
    ana.say(WORDS)
    assert ana.until(MODEL, 3)["content"]["text"] == "The report."
    assert kinds(ana) == [MODEL, SYSTEM, MODEL, "INSTRUCTION", SYSTEM, MODEL]
    assert ana.heard[3]["sender"]["type"] == "SYSTEM"
    refused, told = ana.of(SYSTEM)
    assert refused["content"]["data"] == {"code": "SET_REFUSED"}
    assert "LAUNCH" in refused["content"]["text"]
    assert told["content"]["data"] == {"code": "SET_ENDED"}
    assert [each["status"] for each in told["metadata"]["results"]] == ["COMPLETED"] * 4
    assert told["metadata"]["results"][-1]["result"] == {"report": ["inst_104"]}
    assert got[-1]["processedData"] == ["inst_102"]
    prompts = ana.rooms.model.prompts
    asks = [each.startswith(PROMPTS["INSTRUCTIONS"]) for each in prompts]
    assert asks == [True, True, False]
    assert all(name in prompts[0] for name in GIVES)
    digests = [each["metadata"]["promptDigest"] for each in ana.of(MODEL)]
    assert digests[0] == digests[1] != digests[2]


def test_a_set_of_a_client_is_carried_out_and_no_model_is_asked(
    serve: Serve, got: list[Mapping[str, Any]]
) -> None:
    ana = serve(json.dumps(CHAPTER_9_2))
    ana.send("INSTRUCTION", CHAPTER_9_2)
    assert ana.until(SYSTEM)["metadata"]["results"][3]["status"] == "COMPLETED"
    until(lambda: not ana.rooms._rooms[CONTEXT_ID].is_at_work)
    ana.say("what is this?")  # it names no step
    ana.until(MODEL)
    ana.rooms.close()
    assert (kinds(ana), len(got)) == ([SYSTEM, MODEL], 4)


@pytest.mark.promise(78)
def test_a_set_that_a_model_gave_before_a_kill_is_carried_out_when_its_client_comes_back(
    serve: Serve, got: list[Mapping[str, Any]]
) -> None:
    ana = serve(json.dumps(CHAPTER_9_2))
    ana.say(WORDS)
    ana.until(MODEL, 2)
    path = ana.rooms.path
    ana.rooms.close()
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:2]))
    again = serve("Done.")
    again.announce()
    assert again.until(MODEL, 2)["content"]["text"] == "Done."
    assert len(got) == 8


# ---- calls of a client, and tools of clients


def test_calls_of_a_client_have_a_result_each_and_no_model_is_asked(serve: Serve) -> None:
    ana = serve()
    ana.call("list_runs", "set", "get_task", executionMode="PARALLEL")
    ana.until(CALL, 3)
    ana.rooms.close()
    found = {each["callId"]: each["status"] for each in ana.results}
    assert found == {"call-0": "SUCCESS", "call-1": "ERROR", "call-2": "SUCCESS"}
    assert kinds(ana) == [CALL] * 3


def firsts(program: Program) -> list[bool]:
    """Return of each result whether it is a first answer alone."""
    return [each.get("result") == {"accepted": True} for each in program.results]


@pytest.mark.promise(78)
def test_an_async_call_is_accepted_first_and_has_its_result_later_and_after_a_kill(
    serve: Serve,
) -> None:
    ana, may_end = serve((["list_runs", "get_task"], "ASYNC"), ["explain"], "Later."), Event()
    ana.announce()
    ana.rooms.labs[0].work = lambda name: may_end.wait(20)
    ana.say("look")
    ana.until(MODEL, 2)  # it is asked before they have ended
    killed = ana.rooms.path.read_bytes().splitlines(keepends=True)
    may_end.set()
    assert ana.until(MODEL, 3)["content"]["text"] == "Later."
    ana.rooms.close()
    assert firsts(ana) == [True, True, False, False, False]
    assert len(ana.rooms.labs[0].called) == 3
    for lines in (3, 4, 5):  # between the first answers, after them, after the next of the model
        ana.rooms.path.write_bytes(b"".join(killed[:lines]))
        again = serve(*[["explain"], "Later."][lines == 5 :])
        again.announce()
        again.until(CALL, 5)
        again.rooms.close()
        assert firsts(again) == [True, True, False, False, False], lines
        assert len(again.rooms.labs[0].called) == 3, lines


@pytest.mark.promise(78)
@pytest.mark.parametrize(("mode", "count"), [("SYNC", 1), ("ASYNC", 2)])
def test_a_client_that_answers_as_an_acceptance_does_is_asked_once(
    serve: Serve, mode: str, count: int
) -> None:
    ana = serve()
    ana.announce(FIT)
    ana.call("fit", executionMode=mode)
    ana.answer(ana.until("TOOL_CALL_REQUEST"), {"accepted": True})
    ana.until(CALL, count)
    ana.rooms.close()
    assert (len(ana.of("TOOL_CALL_REQUEST")), firsts(ana)) == (1, [True] * count)


@pytest.mark.promise(78)
def test_a_tool_of_a_client_is_forwarded_to_it_alone_and_its_result_told_to_the_model(
    serve: Serve,
) -> None:
    ana = serve(["pick"], ["fit"], "Seven.")
    other = Program(ana.rooms)
    other.announce(FIT)
    ana.announce(PICK, {"toolId": "list_runs", "version": "1.0"})
    ana.say("pick one")
    asked = ana.until("TOOL_CALL_REQUEST")
    (call,) = asked["content"]["calls"]
    assert (call["name"], call["runtime"], call["timeoutClient"]) == ("pick", "FRONTEND", 7.0)
    assert "pick" in call["userPrompt"]
    assert len(call) == 6, "with its id and parameters; no more than it needs"
    info = {"deviceType": "desktop", "capabilities": ["x"]}
    ana.answer(asked, {"n": 7}, clientInfo=info)
    asked = other.until("TOOL_CALL_REQUEST")
    assert "userPrompt" not in asked["content"]["calls"][0]
    denied = {"code": "PERMISSION_DENIED", "message": "no"}
    other.answer(asked, None, status="ERROR", error=denied)
    assert ana.until(MODEL, 3)["content"]["text"] == "Seven."
    for each in (ana, other):
        assert len(each.of("TOOL_CALL_REQUEST")) == 1
        assert (each.results[0]["result"], each.results[0]["clientInfo"]) == ({"n": 7}, info)
        assert each.results[1]["error"] == denied
    assert [{*each} for each in ana.rooms.model.tools] == [{"pick", "fit"}] * 3
    assert ana.rooms.labs[0].called == []


def test_what_a_client_works_on_stays_there_and_its_result_goes_to_the_lab(serve: Serve) -> None:
    ana = serve()
    ana.announce(FIT)
    takes = {"task_id": "${results.a.result.n}"}
    back = {"callId": "b", "name": "get_task", "parameters": takes}
    front = {"callId": "a", "name": "fit", "parameters": {"file": "hers.csv"}}
    asked = {"calls": [back, front], "executionMode": "FRONTEND_FIRST"}
    ana.send("TOOL_CALL_REQUEST", asked)
    ana.answer(ana.until("TOOL_CALL_REQUEST"), {"n": 7})
    ana.until(CALL, 2)
    assert ana.rooms.labs[0].called == [("get_task", {"task_id": 7})]


def test_a_result_is_taken_once_from_the_client_that_was_asked_as_long_as_it_is_there(
    serve: Serve,
) -> None:
    ana = serve()
    other = Program(ana.rooms)
    other.announce(PICK)
    ana.call("pick", "pick", "pick")
    forged = other.until("TOOL_CALL_REQUEST", 2)  # the first is that of ana
    ana.answer(forged, "forged")
    assert ana.refused[0] == "FORBIDDEN"
    other.answer(forged)
    other.answer(forged, "late")
    assert other.refused[0] == "FORBIDDEN"
    other.until("TOOL_CALL_REQUEST", 3)
    ana.rooms.leave(other.client)
    ana.until(CALL, 3)
    assert ana.results[0]["result"] == 7
    assert [each["error"]["code"] for each in ana.results[1:]] == ["NOT_AVAILABLE"] * 2


def test_whoever_asks_is_told_which_tools_the_clients_have(serve: Serve) -> None:
    ana = serve()
    ana.announce(PICK)
    other = Program(ana.rooms)
    versions = [{"toolId": "pick", "minVersion": each} for each in ("1.1", "2.0")]
    other.send("TOOL_AVAILABILITY_REQUEST", {"tools": [*versions, {"toolId": "camera"}]})
    ana.rooms.leave(ana.client)
    other.send("TOOL_AVAILABILITY_REQUEST", {"tools": versions})
    found, later = (e["content"]["availableTools"] for e in other.of("TOOL_AVAILABILITY_RESPONSE"))
    said = [each.get("version", each.get("reason")) for each in found]
    assert said == ["1.2", "VERSION_TOO_LOW", "NOT_SUPPORTED"]
    assert [each["available"] for each in later] == [False, False]


# ---- several clients, and what each may


def test_a_change_is_told_to_the_others_alone_and_of_two_the_later_stands(serve: Serve) -> None:
    ana = serve()
    other, late = Program(ana.rooms), Program(ana.rooms)
    ana.announce()
    other.announce()
    topic = {"operation": "UPDATE_STATE", "path": "currentTopic", "value": "MoS2"}
    base = {"metadata": {"contextVersion": 0}}
    ana.send("CONTEXT_UPDATE", topic, **base)
    assert other.of("CONTEXT_UPDATE")[0]["content"] == topic
    early = utc_text(wall_clock_utc() - timedelta(hours=1))
    other.send("CONTEXT_UPDATE", topic | {"value": "WS2"}, timestamp=early, **base)
    assert other.of(SYSTEM)[-1]["content"]["action"] == "WARNING"
    other.send("CONTEXT_UPDATE", topic | {"path": "customState.a"}, **base)
    assert len(ana.of("CONTEXT_UPDATE")) == 1, "what was superseded is told to nobody else"
    late.announce()
    shown = late.of(SYSTEM)[0]["metadata"]["context"]
    assert shown["state"] == {"currentTopic": "MoS2", "customState": {"a": "MoS2"}}
    assert (shown["metadata"]["contextVersion"], shown["metadata"]["userId"]) == (2, "ana")


def test_a_call_belongs_to_its_own_dialogue_of_those_that_one_agent_has(serve: Serve) -> None:
    ana = serve(["list_runs"], "Done.", ["list_runs"], "Done.")
    ana.announce()
    ana.announce(contextId="c-2")
    for count, context_id in ((2, "c-1"), (4, "c-2")):
        ana.say("look", contextId=context_id)
        ana.until(MODEL, count)
    (agent,) = ana.rooms.labs
    assert agent.threads == ["c-1", "c-2"]


def test_a_context_belongs_to_one_process_at_a_time(serve: Serve) -> None:
    ana, other = serve("Done."), serve()
    ana.say("look")
    ana.until(MODEL)
    assert ("RATE_LIMITED", other.say("look")) == other.refused
    ana.rooms.end()
    other.announce()
    assert kinds(other)[-2:] == ["USER_INPUT", MODEL]


def test_who_joins_is_told_what_was_said_unless_it_knows(serve: Serve) -> None:
    ana = serve("Nothing.")
    sent = ana.say("what runs?")
    ana.until(MODEL)
    other, again = Program(ana.rooms), Program(ana.rooms)
    other.announce()
    assert [each["messageId"] for each in other.heard[1:]] == [sent, ana.heard[0]["messageId"]]
    again.announce(metadata={"contextVersion": 2})
    assert len(again.heard) == 1
    ana.say("and now?", messageId=sent)
    assert ana.refused == ("VALIDATION_ERROR", sent)


INFO = {"action": "INFO", "text": "t"}
HEAD = {"messageId": "m", "contextId": CONTEXT_ID, "timestamp": "2026-01-01T00:00:00Z"}
ADDED = {**HEAD, "type": SYSTEM, "sender": {"id": "ana", "type": "USER"}, "content": INFO}


@pytest.mark.promise(78)
def test_what_a_client_may_not_say_is_refused_by_name_and_logged(serve: Serve) -> None:
    ana = serve()
    ana.announce()
    assert ("FORBIDDEN", ana.send(SYSTEM, INFO)) == ana.refused
    fault = ana.of("ERROR_RESPONSE")[0]["content"]
    assert (fault["source"], fault["recoverable"]) == ("客户端", False)
    assert not ana.rooms.path.exists(), "it is in no history"
    log = (ana.rooms.path.parent / "access.jsonl").read_text("utf-8")
    assert f"refused FORBIDDEN {fault['details']['traceId']}" in log
    assert f"context {CONTEXT_ID}" in log


@pytest.mark.promise(78)
def test_a_caller_takes_part_in_its_own_contexts_alone(serve: Serve) -> None:
    ana = serve()
    ana.announce()
    ben, eve = Program(ana.rooms, "ben"), Program(ana.rooms, "eve")
    assert ("FORBIDDEN", ben.say("what runs?")) == ben.refused
    assert ("AUTH_FAILED", eve.say("t", contextId="c-9")) == eve.refused
    ben.announce(FIT)
    assert [kinds(each) for each in (ben, eve)] == [["ERROR_RESPONSE"] * 2, ["ERROR_RESPONSE"]]
    sent = {"sender": {"id": "ben", "type": "USER"}}
    ana.announce(FIT, **sent)
    assert (ana.refused[0], ana.client.tools()) == ("FORBIDDEN", {})


@pytest.mark.promise(78)
def test_a_stop_waits_for_no_turn_and_for_no_call(serve: Serve) -> None:
    ana, may_end = serve(["list_runs"], "Done."), Event()
    ana.announce()
    ana.rooms.labs[0].work = lambda name: name == "list_runs" and may_end.wait(20)
    ana.say("look")
    ana.until(MODEL)
    assert ("RATE_LIMITED", ana.say("and now?")) == ana.refused
    stop = {"callId": "s", "name": "request_stop", "parameters": {}, "requiredAfter": ["nowhere"]}
    ana.send("TOOL_CALL_REQUEST", {"calls": [stop], "timeout": 0.001})
    ana.until(CALL)
    assert (ana.results[0]["status"], may_end.is_set()) == ("SUCCESS", False)
    may_end.set()
    assert ana.until(MODEL, 2)["content"]["text"] == "Done."


def test_a_dialogue_that_breaks_off_says_so_and_the_next_input_is_taken(serve: Serve) -> None:
    ana = serve(RuntimeError("/srv/somebody/x"), "Nothing.")
    ana.say("what runs?")
    assert ana.until("ERROR_RESPONSE")["content"]["errorCode"] == "SYSTEM_ERROR"
    assert "somebody" not in json.dumps(ana.heard)
    until(lambda: not ana.rooms._rooms[CONTEXT_ID].is_at_work)
    ana.say("and now?")
    assert ana.until(MODEL)["content"]["text"] == "Nothing."


def test_clients_of_two_versions_share_a_context(serve: Serve) -> None:
    old = serve()
    new = Program(old.rooms)
    old.announce()
    content = {"text": "t", "mood": "new"}
    new.send("USER_INPUT", content, metadata={"protocolVersion": "1.9"}, novel=1)
    heard = old.until("USER_INPUT")
    assert (heard["content"], "novel" in heard) == ({"text": "t"}, False)
    assert heard["metadata"]["unknownFields"] == {"$.novel": 1, "$.content.mood": "new"}
    assert new.until(MODEL) == old.until(MODEL)


# ---- the file of a context


@pytest.mark.promise(78)
def test_a_file_that_would_outgrow_its_bound_is_written_anew_and_nothing_is_lost(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asking, "FILE_BYTES_MAX", 8_000)
    monkeypatch.setattr(context, "CHANGES_MAX", 5)
    ana, counts = serve(), []
    update = {"operation": "UPDATE_STATE", "path": "currentTopic"}
    for number in range(60):
        ana.send("CONTEXT_UPDATE", {**update, "value": str(number)})
        assert ana.rooms.path.stat().st_size <= 8_000
        talk = ana.rooms._rooms[CONTEXT_ID].dialogue
        assert Dialogue(talk.agent, talk.model, CONTEXT_ID).context == talk.context
        counts.append(ana.rooms.path.read_bytes().count(b"\n"))
    assert counts.count(1) > 1, "it was written anew"
    assert counts[1] > 1, "and grew between"


@pytest.mark.promise(78)
def test_the_address_of_a_client_is_in_no_file_and_is_told_to_nobody(serve: Serve) -> None:
    ana = serve()
    other, late = Program(ana.rooms), Program(ana.rooms)
    other.announce()
    address = {"clientInfo": {"device": "d", "ipAddress": "10.0.0.9"}}
    ana.say("t", metadata=address)
    ana.until(MODEL)
    update = {"operation": "UPDATE_STATE", "path": "customState.client", "value": address}
    ana.send("CONTEXT_UPDATE", update)
    added = {**ADDED, "type": "USER_INPUT", "content": {"text": "t"}, "metadata": address}
    ana.send("CONTEXT_UPDATE", {"operation": "ADD_MESSAGE", "message": added})
    other.until("CONTEXT_UPDATE", 2)
    late.announce()
    written = b"".join(each.read_bytes() for each in ana.rooms.path.parent.iterdir()).decode()
    assert "10.0.0.9" not in f"{other.heard} {late.heard} {written}"
    assert "clientInfo" in written


def test_a_history_with_a_result_of_ours_is_written_anew(serve: Serve) -> None:
    ana = serve()
    ana.call("list_runs", timeout=1e-9)
    assert ana.until(CALL)["content"]["results"][0]["status"] == "TIMEOUT"
    before = {"beforeTimestamp": "2020-01-01T00:00:00.000Z"}
    ana.rooms.path.unlink()
    ana.send("CONTEXT_UPDATE", {"operation": "CLEAR_HISTORY", "filter": before})
    assert not ana.of("ERROR_RESPONSE")
    assert ana.rooms.path.read_text("utf-8").count("the call took longer") == 1


def test_a_refusal_that_cannot_be_logged_is_told_all_the_same(serve: Serve) -> None:
    ana = serve()
    ana.rooms.path.parent.rmdir()
    ana.rooms.path.parent.write_text("no folder")
    ana.rooms.take(ana.client, b"{")
    assert ana.refused[0] == "PARSING_ERROR"


def test_what_comes_as_a_client_joins_stands_behind_the_history(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    ana = serve("One.", "Two.")
    ana.say("first")
    ana.until(MODEL)
    late, heard = Program(ana.rooms), Program._hear

    def hear(self: Program, message: Any) -> None:
        heard(self, message)
        if self is late and len(self.heard) == 1:
            asker = Thread(target=ana.say, args=("second",))
            asker.start()
            asker.join(0.3)

    monkeypatch.setattr(Program, "_hear", hear)
    late.client.send = late._hear
    late.announce()
    late.until(MODEL, 2)
    said = [each["content"]["text"] for each in late.heard if each["type"] != SYSTEM]
    assert said == ["first", "One.", "second", "Two."]


def test_a_client_that_has_ended_its_input_is_not_waited_for(serve: Serve) -> None:
    ana = serve()
    ana.announce(FIT)
    ana.call("fit", timeout=604800)
    ana.until("TOOL_CALL_REQUEST")
    ana.rooms.leave(ana.client, hears=True)
    assert ana.until(CALL)["content"]["results"][0]["error"]["code"] == "NOT_AVAILABLE"


def test_a_message_that_is_too_large_for_a_client_is_told_and_ends_nothing(serve: Serve) -> None:
    rooms = serve().rooms
    sent, all_sent = list[dict[str, Any]](), asyncio.Event()
    large = {**FIT, "capabilities": [f"{at:0100}" for at in range(64)]}

    async def send(data: bytes) -> None:
        sent.append(json.loads(data))
        if len(sent) == 3:
            all_sent.set()

    async def talk() -> None:
        async with _client(rooms, "ana", send) as client:
            ana = Program(rooms)
            ana.client = client
            ana.announce(large)
            asked = [{"toolId": "fit", "minVersion": "1"}] * 256
            ana.send("TOOL_AVAILABILITY_REQUEST", {"tools": asked})
            ana.send("TOOL_AVAILABILITY_REQUEST", {"tools": asked[:1]})
            async with asyncio.timeout(10):
                await all_sent.wait()

    asyncio.run(talk())
    assert {*(each["type"] for each in sent)} == {
        SYSTEM,
        "ERROR_RESPONSE",
        "TOOL_AVAILABILITY_RESPONSE",
    }
