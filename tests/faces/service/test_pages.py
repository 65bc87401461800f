"""The pages of a service: agent card, health and numbers, on loopback alone and bounded."""

import http.client
import json
import re
import socket
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from commands import say
from labharness.core.vocabulary.texts import Text
from labharness.faces.service import application
from labharness.faces.service.application import local_socket
from labharness.faces.service.card import CARD_PATH, EXTENSION, agent_card
from labharness.faces.service.counts import LINE_STATES, Counts
from labharness.faces.service.pages import exposed, pages_of
from labharness.lab import default_lab_path, read_lab
from labharness.lab.config.lab_facts import lab_facts_of
from labharness.work.task.record import Tasks
from served_pages import with_pages


def got(port: int, path: str, method: str = "GET", **headers: str) -> tuple[int, str, bytes]:
    asking = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    asking.request(method, path, headers=headers)
    answer = asking.getresponse()
    content = answer.read()
    asking.close()
    return answer.status, answer.getheader("Content-Type") or "", content


def card() -> dict[str, Any]:
    plan = read_lab(default_lab_path())
    facts = lab_facts_of(plan)
    return agent_card(
        lab_id=plan.file.lab.id,
        title=plan.file.lab.title,
        version="0.1.0",
        address="amqps://broker.example/%2Fhcp",
        declarations=[each.declaration for each in facts.capabilities.values()],
        safety_envelope=facts.safety_envelope,
    )


def no_tasks() -> Tasks:
    return Tasks()


def test_the_card_has_the_fields_that_a2a_requires_and_the_declarations_whole() -> None:
    found = json.loads(json.dumps(card()))
    texts = ("name", "description", "version")
    assert all(isinstance(found[each], str) and found[each] for each in texts)
    for each in found["supportedInterfaces"]:
        assert each.keys() == {"url", "protocolBinding", "protocolVersion"}
    assert {"streaming", "pushNotifications", "extensions"} == found["capabilities"].keys()
    assert found["defaultInputModes"] == found["defaultOutputModes"] == ["application/json"]
    (extension,) = found["capabilities"]["extensions"]
    assert extension["uri"] == EXTENSION
    assert extension["required"] is True
    offered = {each["capability"]["name"]: each for each in extension["params"]["declarations"]}
    assert {"cvd-material-synthesis", "document-analysis"} <= set(offered)
    shown = say("capabilities", "show", "document-analysis").out
    assert offered["document-analysis"] == json.loads(shown)
    assert extension["params"]["safety_envelope"]["parameters"]["temperature"]["hard_limit"]
    assert {each["id"] for each in found["skills"]} == set(offered)
    for skill in found["skills"]:
        assert skill.keys() == {"id", "name", "description", "tags"}
        assert all(isinstance(tag, str) for tag in skill["tags"])
        assert skill["tags"]


SAMPLE = re.compile(r'(?P<name>[a-z_]+)(?:\{[a-z]+="[^"\\\n]*"\})? (?P<value>[0-9.e+]+)')


@given(
    st.dictionaries(st.sampled_from(["submission", "abort"]), st.integers(0, 10**9)),
    st.integers(0, 10**9),
    st.dictionaries(st.sampled_from(["queued", "running"]), st.integers(0, 10**9)),
    st.sampled_from(LINE_STATES),
)
def test_the_numbers_are_text_that_prometheus_reads(
    taken: dict[str, int], dead: int, tasks: dict[str, int], line: str
) -> None:
    counts = Counts(connected=True, dead=dead)
    counts.taken.update(taken)
    text = exposed(counts, tasks, 3, line).decode()
    assert text.endswith("\n")
    kinds, samples = {}, {}
    for row in text.splitlines():
        if row.startswith("# TYPE "):
            _, _, name, kind = row.split(" ")
            assert name not in kinds
            kinds[name] = kind
        elif not row.startswith("# HELP "):
            sample = SAMPLE.fullmatch(row)
            assert sample, row
            assert sample["name"] in kinds
            assert row.partition(" ")[0] not in samples
            samples[row.rpartition(" ")[0]] = float(sample["value"])
    assert all(name.endswith("_total") == (kind == "counter") for name, kind in kinds.items())
    assert samples["labharness_messages_dead_lettered_total"] == dead
    assert samples["labharness_broker_connected"] == 1
    for name, value in taken.items():
        assert samples[f'labharness_messages_taken_total{{kind="{name}"}}'] == value
    states = {each: samples[f'labharness_line_state{{state="{each}"}}'] for each in LINE_STATES}
    assert states == {each: int(each == line) for each in LINE_STATES}


def test_each_page_is_served_and_health_says_what_is_not_well() -> None:
    counts, state = Counts(), ["idle"]
    pages = pages_of(card(), counts, no_tasks, lambda: state[0])

    def ask(port: int) -> list[Any]:
        answers = [got(port, CARD_PATH), got(port, "/healthz"), got(port, "/metrics?x=1")]
        counts.connected = True
        answers.append(got(port, "/healthz"))
        state[0] = "latched"
        return [*answers, got(port, "/healthz"), got(port, "/healthz", "HEAD")]

    found, away, metrics, well, latched, head = with_pages(pages, ask)
    assert (found[0], json.loads(found[2])) == (200, json.loads(json.dumps(card())))
    assert (away[0], json.loads(away[2])["broker_connected"]) == (503, False)
    assert (metrics[0], metrics[1]) == (200, "text/plain; version=0.0.4; charset=utf-8")
    assert json.loads(well[2]) == {"healthy": True, "broker_connected": True, "line": "idle"}
    assert (well[0], latched[0]) == (200, 503)
    assert (head[0], head[2]) == (503, b"")


async def empty(_: Request) -> Response:
    return PlainTextResponse("here\n")


HERE = [Route("/here", empty)]


def test_other_paths_methods_and_names_are_refused() -> None:
    def ask(port: int) -> list[int]:
        return [
            got(port, "/")[0],
            got(port, "/here", "POST")[0],
            got(port, "/here", Host="evil.example")[0],
            got(port, "/here", Host=f"evil.example:{port}")[0],
            got(port, "/here", Host=f"localhost:{port}")[0],
            got(port, "/here", Host="localhost")[0],
        ]

    assert with_pages(HERE, ask) == [404, 405, 421, 421, 200, 200]


@pytest.mark.thorough
@settings(max_examples=60, deadline=None)
@given(st.lists(st.binary(max_size=200), min_size=1, max_size=8))
def test_no_bytes_stop_the_pages(requests: list[bytes]) -> None:
    def ask(port: int) -> int:
        for each in requests:
            with socket.create_connection(("127.0.0.1", port), 5) as talk, suppress(OSError):
                talk.sendall(each + b"\r\n\r\n")
                talk.recv(100)
        return got(port, "/here")[0]

    assert with_pages(HERE, ask) == 200


def test_slow_large_and_many_requests_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(application, "ANSWER_S_MAX", 0.5)
    monkeypatch.setattr(application, "CONNECTIONS_MAX", 4)

    def ask(port: int) -> tuple[bytes, int, int]:
        with socket.create_connection(("127.0.0.1", port), 5) as talk:
            with suppress(OSError):
                talk.sendall(b"GET /here HTTP/1.1\r\nA: " + b"a" * application.HEAD_BYTES_MAX * 2)
            with suppress(ConnectionError):
                assert talk.recv(100).startswith(b"HTTP/1.1 400")
        silent = [socket.create_connection(("127.0.0.1", port), 5) for _ in range(4)]
        refused = got(port, "/here")[0]
        ended = [each.recv(100) for each in silent]  # each is closed within the bound
        for each in silent:
            each.close()
        return b"".join(ended), refused, got(port, "/here")[0]

    assert with_pages(HERE, ask) == (b"", 503, 200)


def test_a_port_that_is_taken_is_one_plain_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LABHARNESS_BROKER", "amqp://a:b@127.0.0.1:9/%2Fhcp")
    with local_socket(0) as taken:
        port = taken.getsockname()[1]
        said = say("serve", "--http", port)
        said.is_one_plain_error(f"--http {port}", "[bad_use]")
    say("serve", "--http", "70000").is_one_plain_error(
        Text("value.port", word="'70000'", most=65_535)
    )
