"""Confidential tasks over a real broker: over TLS alone, by reference, and nothing in clear."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from broker import NEEDS_BROKER
from canary import CANARY, found_in, traces
from commands import COMMAND, say
from confidential import (
    CALLEE_ID,
    CALLER,
    DWELL_S,
    GROWER,
    PAPER,
    confidential_furnace,
    confidential_growth,
    confidential_lab,
    confidential_line,
    confidential_task,
)
from documents import pdf
from plain_caller import PlainCaller, Told, answer_in, history_faults, is_end, leaks
from rig import task_submit
from secured import CALLEE, Secured, secured_broker
from serving import Service, approve
from up_lab import until

OPEN = {"target_material": "MoS2", "substrate": "SiO2/Si"}
LINE_CANARIES = (CANARY, str(DWELL_S))
OTHER = "Zeisig9025K"
"""A canary that a caller sends over the broker, which keeps it, although the lab does not."""

pytestmark = [pytest.mark.thorough, pytest.mark.timeout(240), NEEDS_BROKER]


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    with secured_broker(tmp_path_factory.mktemp("tls")) as made:
        yield made


class Place:
    """A lab with its documents, which stay where they are, in clear."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.docs = folder / "docs"
        self.docs.mkdir()
        (self.docs / "paper.md").write_text(PAPER, "utf-8")
        (self.docs / "broken.pdf").write_bytes(pdf([(CANARY, 10)])[:-400])
        self.lab = confidential_lab(folder / "lab", docs=self.docs)
        (folder / "tmp").mkdir()

    def uri(self, name: str) -> str:
        return (self.docs / name).as_uri()

    def found(self, *beside: Path) -> list[str]:
        kept = [self.folder / each for each in ("lab", "state", "runs", "tmp", "serve.log")]
        return found_in(*kept, *beside)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    made = Place(tmp_path)
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    return made


def fetched(service: Service, uri: str, caller: str = CALLER, **headers: str) -> tuple[int, bytes]:
    """The artifact of an address, as its caller gets it over HTTP."""
    session, _, name = uri.removeprefix("hcp://session-").split("/")
    return service.page(f"/artifacts/{session}/{name}", caller, **headers)


def asked_of(secured: Secured, *payloads: dict[str, Any]) -> tuple[PlainCaller, list[list[Told]]]:
    """Submit over TLS; return the caller, and what it has heard of each."""
    asks = secured.caller(CALLER, CALLEE_ID)
    heard = []
    for each in payloads:
        before = len(asks.heard)
        asks.submit(each)
        asks.ended()
        heard.append(asks.heard[before:])
    return asks, heard


@pytest.mark.promise(71)
def test_no_byte_of_a_confidential_task_is_kept_in_clear(secured: Secured, place: Place) -> None:
    """In the lab's folders and logs, in temporary files, and in the broker's own store."""
    options = ("--ca", str(secured.ca), "--http", "0")
    service = Service(place.lab, secured.url(CALLEE), place.folder / "runs", "fast", *options)
    try:
        asks, heard = asked_of(
            secured,
            *(
                confidential_task({"document_uri": place.uri("paper.md")}, each)
                for each in ("T3", "T4")
            ),
            confidential_task({"document_uri": place.uri("broken.pdf")}),
            confidential_task({"document": "a text of no secret"}),
            confidential_task({"document_uri": place.uri("paper.md")}, context={"why": "none"}),
        )
        ends = [next(told for told in reversed(each) if is_end(told))["type"] for each in heard]
        assert ends == ["task_completed", "task_completed", "task_failed", *["task_rejected"] * 2]
        assert [history_faults(each) for each in heard[:3]] == [[], [], []]
        assert leaks(asks.heard, ()) == []
        assert CANARY not in json.dumps(asks.heard)
        for each in heard[:3]:
            assert answer_in(each, "task_accepted").payload["data_classification"] in ("T3", "T4")
        for each in heard[3:]:
            rejected = answer_in(each, "task_rejected").payload
            assert rejected["reason_code"] == "forbidden"
            assert "references alone" in rejected["reason_message"]
        done = [answer_in(each, "task_completed").payload for each in heard[:2]]
        t3, t4 = (each["artifacts"][0] for each in done)
        status, body = fetched(service, t3["uri"])
        assert status == 200
        assert CANARY in json.loads(body)["findings"][0]["statement"]
        assert fetched(service, t3["uri"], Range="bytes=5-24") == (206, body[5:25])
        assert fetched(service, t4["uri"])[0] == 403
        run = place.folder / "runs" / t4["uri"].split("/")[2].removeprefix("session-")
        signed = ("--name", "Olga", "--reason", "agreed with its owner")
        assert say("journal", "grant", run, "--reader", CALLER, *signed).code == 0
        assert fetched(service, t4["uri"])[0] == 200
        access = say("journal", "access", run).out
        assert f"T4  {CALLER}  by http  {t4['uri']}" in access
        again = asks.submit(confidential_task({"document_uri": place.uri("paper.md")}), "again")
        asks.ended()
        before = len(asks.heard)
        asks.submit(confidential_task({"document_uri": place.uri("paper.md")}), again)
        asks.ended()
        assert all(each in asks.heard[:before] for each in asks.heard[before:])
        asks.submit(confidential_task({"document_uri": place.uri("broken.pdf")}), again)
        assert asks.ended()["type"] == "task_rejected"
        listed = say("tasks", "list", "--lab", place.lab)
        assert "confidential" in listed.out or listed.code == 0
        asks.purge()
        asks.close()
    finally:
        service.down()
    with secured.at_rest():
        assert place.found(secured.broker.home) == []


class Line:
    """The short line, which takes confidential growths whose inputs stand in a file of the lab."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.inputs = folder / "inputs"
        self.inputs.mkdir()
        self.lab = confidential_line(folder / "lab", inputs=self.inputs).path
        (folder / "tmp").mkdir()

    def growth(self, name: str = "growth", data_class: str = "T3") -> dict[str, Any]:
        """A growth by reference: its inputs are the caller's and stay where they are."""
        whole = confidential_growth(data_class)
        file = self.inputs / f"{name}.json"
        file.write_text(json.dumps(whole["inputs"]), "utf-8")
        inputs = {"inputs_uri": file.as_uri()}
        bare = {name: each for name, each in whole.items() if name != "context"}
        return {**bare, "intent": "Grow what the file says", "inputs": inputs}

    def found(self, *beside: Path) -> list[str]:
        kept = [self.folder / each for each in ("lab", "state", "runs", "tmp", "serve.log")]
        return [name for each in LINE_CANARIES for name in found_in(*kept, *beside, canary=each)]


@pytest.fixture
def line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Line:
    made = Line(tmp_path)
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    return made


@pytest.mark.promise(71)
def test_no_byte_of_a_confidential_growth_is_kept_in_clear(secured: Secured, line: Line) -> None:
    """In house and line owner, their folders and logs, temporary files, and the broker's store."""
    runs = line.folder / "runs"
    options = ("--ca", str(secured.ca), "--http", "0")
    service = Service(line.lab, secured.url(CALLEE), runs, "fast", *options)
    plain = secured.broker.url(GROWER)
    try:
        asks = secured.caller(GROWER, "short-line")
        asks.submit(line.growth())
        completed = asks.ended()
        assert completed["type"] == "task_completed", completed
        assert history_faults(asks.heard) == []
        uris = {each["name"]: each["uri"] for each in completed.payload["artifacts"]}
        assert completed.payload["outputs"]["layer_count"] == f"{uris['results']}#/layer_count"
        status, body = fetched(service, uris["results"], GROWER)
        assert status == 200
        assert json.loads(body)["layer_count"] == 1
        for changes, says in (
            ({"inputs": OPEN}, "references alone: inputs inputs_uri"),
            ({"inputs": {"inputs_uri": (line.lab.parent / "x").as_uri()}}, "not below a folder"),
        ):
            asks.submit({**line.growth(), **changes})
            assert says in asks.ended().payload["reason_message"]
        told = json.dumps(asks.heard)
        assert not any(each in told for each in LINE_CANARIES)
        asks.purge()
        asks.close()
        listed = say("tasks", "list", "--lab", line.lab, "--json").out
        assert not any(each in listed for each in LINE_CANARIES)
        service.end()
        service.env["LABHARNESS_BROKER"] = plain
        service._options = ("--speed", "fast")
        service.start()
        asks = PlainCaller(plain, GROWER, "short-line")
        asks.submit(line.growth())
        rejected = asks.ended()
        assert rejected.payload["reason_code"] == "forbidden"
        assert "without TLS" in rejected.payload["reason_message"]
        asks.purge()
        asks.close()
    finally:
        service.down()
    with secured.at_rest():
        assert line.found(secured.broker.home) == []


TEMPERATURE_C, SOAK_S = 207.7319, 61.3917
FURNACE = "annealing-furnace-simulated"
T3 = {"data_classification": "T3"}
SIGNED = ("--name", "Olga", "--reason", "agreed with its owner")


class Furnace:
    """A furnace whose two callers may submit restricted data; one of them does."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.runs = folder, folder / "runs"
        self.asked = folder / "inputs" / "anneal.json"
        self.asked.parent.mkdir()
        asked = {"temperature_c": TEMPERATURE_C, "duration_s": SOAK_S}
        self.asked.write_text(json.dumps(asked), "utf-8")
        self.lab = confidential_furnace(folder / "lab", self.asked.parent, CALLER)
        (folder / "tmp").mkdir()

    def task(self, caller: str = GROWER, **changes: Any) -> dict[str, Any]:
        asked = {"inputs_uri": self.asked.as_uri()}
        named = {"capability": "annealing", "caller_id": caller, "intent": "Anneal as it says"}
        return {**confidential_task(asked, "T4"), **named, **changes}

    def agreed(self) -> None:
        """A person reads what waits for an approval, and agrees; the request is readable."""
        (request,) = say("approvals", "list", "--lab", self.lab).out.splitlines()
        assert "R3" in request
        assert GROWER in request
        assert str(TEMPERATURE_C) not in request
        shown = say("approvals", "show", request.split()[0], "--lab", self.lab)
        assert str(TEMPERATURE_C) in shown.out, "who agrees must know to what"
        approve(self.lab)


@pytest.fixture
def furnace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Furnace:
    made = Furnace(tmp_path)
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    return made


def access(run: Path) -> list[str]:
    """What the log of a run says of who has read it, without the times."""
    said = say("journal", "access", run)
    assert said.code == 0, said
    return [line.partition("  ")[2] for line in said.out.splitlines()]


@pytest.mark.promise(71)
def test_a_restricted_task_of_a_line_is_had_by_its_owner_alone_once_a_person_has_approved_it(
    secured: Secured, furnace: Furnace
) -> None:
    """From submission to artifact: its run is approved by a person, and so is each reader of it."""
    options = ("--ca", str(secured.ca), "--http", "0")
    service = Service(furnace.lab, secured.url(CALLEE), furnace.runs, "fast", *options)
    try:
        asks, other = (secured.caller(each, FURNACE) for each in (GROWER, CALLER))
        asks.submit(furnace.task())
        until(lambda: GROWER in say("approvals", "list", "--lab", furnace.lab).out)
        furnace.agreed()
        (waited,) = furnace.runs.iterdir()
        seen = access(waited)
        assert [each.partition("  by ")[2] for each in seen] == ["labharness approvals  request"]
        completed = asks.ended()
        heard = asks.heard
        assert completed["type"] == "task_completed", completed
        assert history_faults(heard) == []
        assert leaks(heard, (CALLER,)) == []
        accepted = answer_in(heard, "task_accepted").payload
        assert (accepted["data_classification"], accepted["risk_level"]) == ("T4", "R3")
        uris = {each["name"]: each["uri"] for each in completed.payload["artifacts"]}
        for name, value in completed.payload["outputs"].items():
            assert value == f"{uris['results']}#/{name}"

        run = furnace.runs / str(completed["session_id"])
        uri = uris["results"]
        told = f"T4  {GROWER}  by amqp  task_completed"
        until(lambda: access(run) == [*seen, told])
        assert [fetched(service, each, GROWER)[0] for each in uris.values()] == [403] * len(uris)
        assert fetched(service, uri, GROWER, Range="bytes=0-9")[0] == 403
        assert fetched(service, uri, CALLER)[0] == 404
        for words in (
            ("artifact", uri, "--runs", run, "--cat"),
            ("journal", "show", run),
            ("journal", "export", run),
            ("report", run, "--out", furnace.folder / "tmp" / "report.html"),
            ("history", "--runs", furnace.runs),
        ):
            said = say(*words)
            assert said.code != 0, words
            assert "nobody has approved" in said.err, said
            assert str(TEMPERATURE_C) not in said.out + said.err
        assert access(run) == [*seen, told], "who was refused has read nothing"

        own = ("--name", GROWER, "--reason", "mine")
        assert say("journal", "grant", run, "--reader", GROWER, *own).code != 0
        assert fetched(service, uri, GROWER)[0] == 403
        for reader in (CALLER, GROWER):
            assert say("journal", "grant", run, "--reader", reader, *SIGNED).code == 0
        assert fetched(service, uri, CALLER)[0] == 404, "a caller's artifacts are its own"
        bodies = {name: fetched(service, each, GROWER) for name, each in uris.items()}
        assert {status for status, _ in bodies.values()} == {200}
        results = json.loads(bodies["results"][1])
        assert results["dwell_mean_c"] == pytest.approx(TEMPERATURE_C, abs=5.0)
        assert results["dwell_reached"] is True
        approved, read = access(run)[:2], access(run)[2:]
        assert all("Olga" in each and "agreed with its owner" in each for each in approved)
        assert read == [*seen, told, *(f"T4  {GROWER}  by http  {each}" for each in uris.values())]

        for caller, lower in ((other, {}), (asks, {"constraints": T3})):
            asked = {"inputs": {"inputs_uri": uri}, **lower}
            caller.submit(furnace.task(caller.caller_id, **asked))
            rejected = caller.ended()
            assert rejected.payload["reason_code"] == "forbidden"
            assert "no artifact at inputs_uri" in rejected.payload["reason_message"]
        assert len(access(run)) == len(approved) + len(read)
        said_of_it = [
            json.dumps([*asks.heard, *other.heard]),
            say("tasks", "list", "--lab", furnace.lab, "--json").out,
            say("approvals", "list", "--lab", furnace.lab).out,
        ]
        row = max(bodies["curve"][1].decode().splitlines()[1:], key=len)
        canaries = (str(TEMPERATURE_C), str(SOAK_S), row)
        assert not any(each in text for each in canaries for text in said_of_it)
        for caller in (asks, other):
            caller.purge()
            caller.close()
    finally:
        service.down()
    assert say("journal", "verify", run).code == 0
    plain = furnace.folder / "plain"
    plain.mkdir()
    (plain / "curve.csv").write_bytes(bodies["curve"][1])
    with secured.at_rest():
        kept = [furnace.folder / each for each in ("lab", "runs", "tmp", "serve.log")]
        for each in canaries:
            assert found_in(plain, furnace.asked, canary=each), "the search finds it in clear"
            assert found_in(*kept, secured.broker.home, canary=each) == []


@pytest.mark.promise(71)
def test_a_lab_without_tls_refuses_confidential_tasks_and_tells_nothing_of_them(
    secured: Secured, place: Place
) -> None:
    runs = place.folder / "runs"
    service = Service(place.lab, secured.broker.url(CALLEE), runs, "fast")
    task = confidential_task({"document_uri": place.uri("paper.md")})
    try:
        asks = PlainCaller(secured.broker.url(CALLER), CALLER, CALLEE_ID)
        for inputs in (task["inputs"], {"document": OTHER}):
            asks.submit({**task, "inputs": inputs})
            rejected = asks.ended()
            assert rejected.payload["reason_code"] == "forbidden"
            assert "without TLS" in rejected.payload["reason_message"]
            assert "amqps" in rejected.payload["suggestion"]
        asks.purge()
        asks.close()
    finally:
        service.down()
    assert list(runs.iterdir()) == []
    kept = [place.folder / each for each in ("lab", "state", "tmp", "serve.log")]
    assert [found_in(*kept, canary=each) for each in (CANARY, OTHER)] == [[], []]


@pytest.mark.promise(71)
def test_what_was_taken_over_tls_is_not_told_without_it(secured: Secured, place: Place) -> None:
    runs = place.folder / "runs"
    service = Service(place.lab, secured.url(CALLEE), runs, "fast", "--ca", str(secured.ca))
    try:
        asks = secured.caller(CALLER, CALLEE_ID)
        sent = asks.submit(confidential_task({"document_uri": place.uri("paper.md")}))
        asks.ended()
        asks.close()
        service.end()
        service.env["LABHARNESS_BROKER"] = secured.broker.url(CALLEE)
        service._options = ("--speed", "fast")
        service.start()
        asks = PlainCaller(secured.broker.url(CALLER), CALLER, CALLEE_ID)
        asks.submit(confidential_task({"document_uri": place.uri("paper.md")}), sent)
        rejected = asks.ended()
        assert rejected.payload["reason_code"] == "forbidden"
        assert "no TLS" in rejected.payload["reason_message"]
        until(lambda: service.process.poll() is None)
        asks.purge()
        asks.close()
    finally:
        service.down()


@pytest.mark.promise(71)
def test_over_pipes_a_task_may_hold_its_data_and_its_answer_holds_none(place: Place) -> None:
    """Within the machine nothing keeps what passes; the lab's own folders stay as clean."""
    inline = confidential_task({"document": PAPER}, intent=f"Find {CANARY}", context={"a": CANARY})
    bad = {**inline, "inputs": {CANARY: 1}}
    lines = "".join(
        f"{json.dumps(task_submit(payload, name))}\n"
        for name, payload in (("good", inline), ("bad", bad))
    )
    words = ("serve", "--stdio", "--lab", place.lab, "--runs", place.folder / "runs")
    try:
        with (place.folder / "serve.log").open("a") as said:
            done = subprocess.run(
                [*COMMAND, *map(str, words), "--speed", "fast"],
                input=lines,
                stdout=subprocess.PIPE,
                stderr=said,
                text=True,
                timeout=90,
            )
    finally:
        say("down", "--lab", place.lab, "--stop")
    assert done.returncode == 0
    heard = [json.loads(each) for each in done.stdout.splitlines()]
    ends = [each["type"] for each in heard if each["type"].startswith("task_")]
    assert sorted(ends) == ["task_accepted", "task_completed", "task_rejected"]
    assert not traces(done.stdout.encode())
    assert place.found() == []
