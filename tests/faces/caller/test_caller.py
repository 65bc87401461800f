"""The caller's library and its commands, at a real broker and real labs that fail between."""

import asyncio
import json
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pika
import pytest

from broker import NEEDS_BROKER, Broker, running
from commands import COMMAND, ROOT, Said, say
from labharness.core.clock import pause
from labharness.faces import caller as library
from labharness.faces.caller import AsyncCaller, Gap, SyncCaller
from labharness.protocols.hcp.codec import HcpMessage
from plain_caller import Told, history_faults
from requested import hot
from rig import EXAMPLE, IV, SHIPPED, SHORT_LINE
from serving import PACED, Service, approve, services
from up_lab import until

BENCH = "iv-bench-simulated"
CURVE = ROOT / "examples" / "iv-curve.json"
PAPER = ROOT / "examples" / "document-analysis.json"
ACCOUNT, CALLEE, LATE = "harness-alpha-001", "callee", "late"

pytestmark = [pytest.mark.thorough, pytest.mark.timeout(300), NEEDS_BROKER]


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    with running(tmp_path_factory.mktemp("mq") / "b", (ACCOUNT, CALLEE, LATE)) as made:
        yield made


@pytest.fixture
def serve(broker: Broker, tmp_path: Path) -> Iterator[Callable[..., Service]]:
    with services(broker.url(CALLEE), tmp_path / "runs") as begin:
        yield begin


Serve = Callable[..., Service]


class Commands:
    """The command line of one account with its file."""

    def __init__(self, broker: Broker, folder: Path, callee: str) -> None:
        self.file, self._callee = folder / "tasks.sqlite", callee
        self.env = {**os.environ, "LABHARNESS_BROKER": broker.url(ACCOUNT)}

    def words(self, *words: object) -> list[str]:
        return [str(each) for each in (*words, "--callee", self._callee, "--file", self.file)]

    def __call__(self, *words: object) -> Said:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("LABHARNESS_BROKER", self.env["LABHARNESS_BROKER"])
            return say(*self.words(*words))

    def start(self, *words: object) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            [*COMMAND, *self.words(*words)],
            env=self.env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )


@pytest.fixture
def command(broker: Broker, tmp_path: Path) -> Callable[[str], Commands]:
    return lambda callee: Commands(broker, tmp_path, callee)


Command = Callable[[str], Commands]


@pytest.fixture
def curve(tmp_path: Path) -> Path:
    return written(tmp_path / "curve.json", json.loads(CURVE.read_text()))


def written(path: Path, body: dict[str, Any]) -> Path:
    body["payload"]["caller_id"] = ACCOUNT
    path.write_text(json.dumps(body))
    return path


def as_told(each: HcpMessage) -> Told:
    body = each.payload.stated()
    return Told(
        message_id=each.message_id, session_id=each.session_id, type=each.type, payload=body
    )


def test_a_program_submits_hears_all_and_gets_the_same_result_again(
    serve: Serve, broker: Broker, tmp_path: Path
) -> None:
    serve(IV)
    payload = json.loads(CURVE.read_text())["payload"]
    payload.pop("caller_id")
    where = library.Broker(broker.url(ACCOUNT)), tmp_path / "tasks.sqlite"
    with SyncCaller(*where) as caller:
        task = caller.submit(BENCH, payload)
        heard = [each for each in caller.events(task) if isinstance(each, HcpMessage)]
        assert history_faults([as_told(each) for each in heard]) == []
        accepted, end = caller.answer(task), caller.result(task)
        assert (accepted.type, end.type) == ("task_accepted", "task_completed")
        assert end in heard
        with pytest.raises(library.KeyReused):
            caller.submit(BENCH, {**payload, "intent": "other"}, message_id=task)
        with pytest.raises(library.NotOurs):
            caller.submit(BENCH, {**payload, "caller_id": "mallory"})

    async def again() -> HcpMessage:
        async with AsyncCaller(*where) as caller:
            assert await caller.submit(BENCH, payload, message_id=task) == task
            assert [each async for each in caller.events(task)] == []  # all was read
            return await caller.result(task)

    assert asyncio.run(again()) == end
    with SyncCaller(where[0], tmp_path / "lost.sqlite") as caller:  # another day, without the file
        caller.submit(BENCH, payload, message_id=task)
        assert caller.result(task, 30.0) == end


def test_a_caller_that_is_killed_and_started_again_gets_all_of_its_result(
    serve: Serve, command: Command, broker: Broker
) -> None:
    serve(SHORT_LINE)
    asks = command("short-line")
    said = asks("submit", EXAMPLE, "--json")
    assert said.code == 0, said.err
    task = json.loads(said.out)
    assert task["fresh"]
    heard: list[Told] = []
    for kills in range(2):
        with asks.start("watch", task["message_id"], "--json") as process:
            assert process.stdout is not None
            heard.extend(Told(json.loads(process.stdout.readline())) for _ in range(3))
            if kills == 0:
                broker.stop()
                broker.start()
            process.kill()
            heard += [Told(json.loads(line)) for line in process.stdout]
    said = asks("watch", task["session_id"][:8], "--json")
    assert said.code == 0, said.err
    heard += [Told(json.loads(line)) for line in said.out.splitlines()]
    assert history_faults(heard) == []
    end = asks("result", task["message_id"])
    assert end.code == 0
    assert "completed: " in end.out
    assert "layer_count" in end.out


def test_two_commands_of_one_account_hear_side_by_side(
    serve: Serve, command: Command, curve: Path
) -> None:
    serve(IV)
    asks = command(BENCH)
    first = json.loads(asks("submit", curve, "--json").out)["message_id"]
    with asks.start("watch", first, "--json") as one:
        said = asks("submit", curve, "--wait", "--json")
        assert said.code == 0, said.err
        assert said.answer["type"] == "task_completed"
        out, err = one.communicate(timeout=60)
        assert one.returncode == 0, err
        assert history_faults([Told(json.loads(line)) for line in out.splitlines()]) == []


def test_a_growth_is_approved_by_a_person_and_aborted_by_command(
    serve: Serve, command: Command, tmp_path: Path
) -> None:
    serve(SHORT_LINE, PACED)
    asks = command("short-line")
    growth = written(tmp_path / "hot.json", hot())
    with asks.start("submit", growth, "--wait", "--key", "hot-1") as waits:
        until(lambda: "R4" in say("approvals", "list", "--lab", SHORT_LINE).out)
        approve(SHORT_LINE)
        assert waits.stderr is not None
        told: list[str] = []
        while "PENDING  RUNNING" not in (line := waits.stderr.readline()):
            assert line, told
            told.append(line)
        assert any("awaiting_approval" in line for line in told)
        said = asks("abort", "hot-1", "--reason", "seen enough", "--wait")
        assert said.code == 3, said.err
        assert "seen enough" in said.out
        out, err = waits.communicate(timeout=120)
    assert waits.returncode == 3, err
    assert "seen enough" in out
    said = asks("abort", "hot-1")
    assert said.code == 0
    assert "ended already" in said.out


def test_a_paper_is_analysed_by_command(serve: Serve, command: Command, tmp_path: Path) -> None:
    serve(SHIPPED)
    asks = command("cvd-mos2-simulated")
    paper = written(tmp_path / "paper.json", json.loads(PAPER.read_text()))
    said = asks("submit", paper, "--wait", "--json")
    assert said.code == 0, said.err
    finding = said.answer["payload"]["outputs"]["findings"][0]
    assert {"statement", "confidence", "source_section"} <= set(finding)


def test_what_was_lost_is_warned_of_and_read_as_a_gap(
    serve: Serve, broker: Broker, tmp_path: Path
) -> None:
    serve(IV)
    payload = json.loads(CURVE.read_text())["payload"]
    payload["caller_id"] = ACCOUNT
    where = library.Broker(broker.url(ACCOUNT)), tmp_path / "tasks.sqlite"
    warned: list[str] = []
    with SyncCaller(*where) as caller:
        task = caller.submit(BENCH, payload)
        session = caller.received(task).session
        assert session is not None
    taken_from(broker, f"hcp.evt.{ACCOUNT}")
    with SyncCaller(*where, warn=warned.append) as caller:
        assert caller.result(task).type == "task_completed"
        gaps = [each for each in caller.events(task) if isinstance(each, Gap)]
        missing = caller.task(task).sessions[0].missing
    assert len(gaps) <= 1  # the number after it may be that of the end
    assert [(each.first, each.last) for each in gaps] == list(missing)
    assert len(gaps) == sum("were not heard" in each for each in warned)


def taken_from(broker: Broker, queue: str) -> None:
    """Take all messages of a run away once no more come, as a day does."""
    with pika.BlockingConnection(pika.URLParameters(broker.url(ACCOUNT))) as connection:
        channel = connection.channel()
        counts = [0]
        while len(counts) < 10 or not counts[-10] or counts[-1] != counts[-10]:
            counts.append(channel.queue_declare(queue, passive=True).method.message_count)
            pause(0.1)
        channel.queue_purge(queue)


def test_each_thing_that_is_not_there_is_one_plain_error(
    broker: Broker, command: Command, curve: Path, tmp_path: Path
) -> None:
    asks = command("nowhere")
    plain(asks("submit", curve), 1, "no_callee", "no lab nowhere is served at 127.0.0.1")
    asks.env["LABHARNESS_BROKER"] = broker.url(ACCOUNT).replace("secret", "wrong")
    plain(asks("submit", curve), 1, "broker_refused", "refuses the account harness-alpha-001")
    asks.env["LABHARNESS_BROKER"] = broker.url("nobody")
    plain(asks("submit", curve), 1, "broker_refused", "refuses the account nobody")
    asks.env["LABHARNESS_BROKER"] = broker.url(ACCOUNT).replace("%2Fhcp", "elsewhere")
    plain(asks("submit", curve), 1, "broker_refused", "elsewhere")
    asks.env["LABHARNESS_BROKER"] = "amqp://a:b@127.0.0.1:9/%2Fhcp"
    plain(asks("submit", curve, "--within", "3"), 1, "broker_away", "127.0.0.1:9/%2Fhcp")
    asks.env["LABHARNESS_BROKER"] = broker.url(LATE)
    plain(asks("submit", curve), 1, "other_caller", "late", ACCOUNT)
    asks = command("silent")
    with pika.BlockingConnection(pika.URLParameters(broker.url(ACCOUNT))) as connection:
        channel = connection.channel()
        channel.queue_declare("hcp.cmd.silent", durable=True)
        channel.queue_bind("hcp.cmd.silent", "hcp.commands", "silent")
        said = asks("submit", curve, "--within", "2", "--key", "k-1")
        plain(said, 1, "no_answer", "nothing was heard of k-1 within 2 s")
        with SyncCaller(
            library.Broker(broker.url(ACCOUNT)), tmp_path / "another.sqlite"
        ) as other:  # it hears the queue by another file
            other.connected()
            pause(1.0)
            said = asks("result", "k-1", "--within", "3")
            plain(said, 1, "queue_taken", f"hcp.evt.{ACCOUNT}")
        plain(asks("result", "k-2"), 1, "unknown_task", "k-2")
    plain(asks("submit", curve, "--seed", "1"), 64, "bad_use", "--seed")
    plain(asks("watch"), 64, "bad_use", "one task")
    plain(say("submit", curve, "--broker", address_of(tmp_path, broker)), 64, "bad_use", "--callee")
    said = asks("submit", curve, "--broker", broker.url(ACCOUNT))
    plain(said, 64, "bad_use", "LABHARNESS_BROKER")
    assert "secret" not in said.err
    address = address_of(tmp_path, broker)
    address.chmod(0o644)
    plain(asks("submit", curve, "--broker", address), 64, "bad_use", "chmod 600")
    address.chmod(0o600)
    plain(asks("result", "k-2", "--broker", address), 1, "unknown_task", "k-2")


def address_of(folder: Path, broker: Broker) -> Path:
    """Return a file with the address of the broker, which only its owner may read."""
    path = folder / "address"
    path.write_text(broker.url(ACCOUNT) + "\n")
    path.chmod(0o600)
    return path


def plain(said: Said, code: int, error: str, *words: str) -> None:
    assert said.code == code, said
    assert said.out == ""
    assert said.err.count("\n") == 1, said.err
    assert f"[{error}]" in said.err
    for word in words:
        assert word in said.err
