"""Quorum queues on a real RabbitMQ: who makes them, and that they hold what other queues hold."""

import json
import re
import urllib.request
from base64 import b64encode
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pika
import pika.exceptions
import pytest

from broker import ADMINISTRATOR, NEEDS_BROKER, PASSWORD, Broker
from commands import Said, say
from confidential import CALLEE_ID, CALLER, PAPER, confidential_lab, confidential_task
from labharness.core.clock import pause
from labharness.faces.service.rights import policies
from labharness.protocols.hcp import wire
from plain_caller import PlainCaller, history_faults
from serving import Service
from up_lab import until

COMMANDS, EVENTS = wire.command_queue(CALLEE_ID), wire.event_queue(CALLER)
HOST = "vhosts/%2Fhcp"
SINCE = (3, 11, 17)
REDELIVERIES = 25
"""More than the 20 after which a quorum queue drops a message where nothing is said."""

pytestmark = [pytest.mark.thorough, pytest.mark.timeout(180), NEEDS_BROKER]


def answered(broker: Broker, method: str, path: str, body: object = None) -> Any:
    """Ask the management interface."""
    secret = b64encode(f"{ADMINISTRATOR}:{PASSWORD}".encode()).decode()
    request = urllib.request.Request(
        f"http://127.0.0.1:{broker.management_port}/api/{path}",
        method=method,
        data=None if body is None else json.dumps(body).encode(),
        headers={"Authorization": f"Basic {secret}", "Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.loads(answer.read() or b"null")


def kinds(broker: Broker) -> dict[str, str]:
    found = answered(broker, "GET", "queues?columns=name,type")
    return {each["name"]: each["type"] for each in found}


def is_up(broker: Broker, *nodes: str) -> bool:
    """Return whether each node of a cluster has the virtual host: it takes them some seconds."""
    states = answered(broker, "GET", HOST).get("cluster_state", {})
    return all(states.get(each) == "running" for each in nodes)


Command = Callable[..., Said]


def commands_of(broker: Broker, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Command:
    """Return what says a command about this broker and the lab in a folder."""
    url = f"http://{ADMINISTRATOR}:{PASSWORD}@127.0.0.1:{broker.management_port}"
    monkeypatch.setenv("LABHARNESS_MANAGEMENT", url)
    lab = confidential_lab(folder / "lab")
    secrets = folder / "passwords.toml"
    secrets.touch(0o600)
    secrets.write_text(f'{CALLEE_ID} = "{PASSWORD}"\n{CALLER} = "{PASSWORD}"\n', "utf-8")

    def of(verb: str, *options: str) -> Said:
        more = ("--passwords", secrets) if verb == "setup" else ()
        return say("broker", verb, "--lab", lab, *more, *options)

    return of


@pytest.fixture(scope="module")
def one(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    made = Broker(tmp_path_factory.mktemp("mq") / "b", (), managed=True)
    made.start()
    yield made
    made.kill()


@pytest.fixture
def alone(one: Broker) -> Broker:
    """A broker that is no cluster, without the virtual host of HCP."""
    if any(each["name"] == "/hcp" for each in answered(one, "GET", "vhosts")):
        answered(one, "DELETE", HOST)
    return one


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[tuple[Broker, Broker]]:
    first = Broker(tmp_path / "m1", (), managed=True)
    first.start()
    second = Broker(tmp_path / "m2", (), managed=True, joins=first)
    try:
        second.start()
        yield first, second
    finally:
        second.kill()
        first.kill()


def test_in_a_cluster_setup_makes_every_queue_a_quorum_queue_and_a_task_goes_over_them(
    cluster: tuple[Broker, Broker], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = cluster
    command = commands_of(first, tmp_path, monkeypatch)
    until(lambda: command("setup").code == 0)  # one that was just formed may leave a request alone
    until(lambda: is_up(first, first.node, second.node))
    service = Service(
        tmp_path / "lab" / "lab.toml", first.url(CALLEE_ID), tmp_path / "runs", "fast"
    )
    try:
        asks = PlainCaller(second.url(CALLER), CALLER, CALLEE_ID, declares=False)
        asks.submit(confidential_task({"document": PAPER}, "T1"))
        assert asks.ended()["type"] == "task_completed"
        assert history_faults(asks.heard) == []
        asks.close()
    finally:
        service.down()
    assert kinds(first) == dict.fromkeys((COMMANDS, EVENTS, wire.dead_queue(CALLEE_ID)), "quorum")
    both = sorted((first.node, second.node))
    for each in answered(first, "GET", "queues?columns=name,members"):
        assert sorted(each["members"]) == both, each
    assert command("check").code == 0


def on(broker: Broker, account: str) -> "pika.adapters.blocking_connection.BlockingChannel":
    channel = pika.BlockingConnection(pika.URLParameters(broker.url(account))).channel()
    channel.confirm_delivery()
    return channel


def refusals(channel: Any, exchange: str, key: str, count: int) -> int:
    """Publish messages; return how many were refused by the confirm."""
    refused = 0
    for number in range(count):
        try:
            channel.basic_publish(exchange, key, b"%d" % number, mandatory=True)
        except pika.exceptions.NackError:
            refused += 1
    return refused


def test_the_bounds_of_queues_hold_of_quorum_queues_too(
    alone: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With lower numbers in the policies that setup has written; their keys are the same."""
    assert commands_of(alone, tmp_path, monkeypatch)("setup", "--quorum").code == 0
    for each in policies(quorum=True)[3:]:
        row = answered(alone, "GET", f"policies/%2Fhcp/{each['name']}")
        assert row["definition"] == each["definition"]
        row["definition"] |= {"max-length": 5}
        if each["name"] == "hcp.evt.quorum":
            row["definition"]["message-ttl"] = 1_500
        answered(alone, "PUT", f"policies/%2Fhcp/{each['name']}", row)
    caller, lab = on(alone, CALLER), on(alone, CALLEE_ID)
    lab.queue_bind(COMMANDS, "hcp.commands", CALLEE_ID)
    refused = refusals(caller, "hcp.commands", CALLEE_ID, 20)
    assert 10 <= refused <= 15, "a quorum queue takes a few more than it is told"
    arguments = {"x-message-ttl": 86_400_000, "x-max-length": 10_000, "x-overflow": "drop-head"}
    caller.queue_declare(EVENTS, durable=True, arguments=arguments)
    caller.queue_bind(EVENTS, "hcp.events", f"{CALLER}.#")
    assert refusals(lab, "hcp.events", f"{CALLER}.s.event", 20) == 0
    _, _, oldest = caller.basic_get(EVENTS, auto_ack=True)
    assert oldest == b"15", "the oldest have gone"
    until(lambda: caller.basic_get(EVENTS, auto_ack=True)[0] is None)
    assert refusals(lab, "hcp.events", f"{CALLER}.s.event", 3) == 0
    pause(2.5)
    assert caller.queue_declare(EVENTS, passive=True).method.message_count == 0, "24 h, made short"
    assert refusals(lab, "hcp.events", f"{CALLER}.s.event", 1) == 0
    for _ in range(REDELIVERIES):
        method, _, _ = caller.basic_get(EVENTS)
        assert method is not None, "a message that is given back is kept"
        caller.basic_nack(method.delivery_tag, requeue=True)
    for each in (caller, lab):
        each.connection.close()


def test_a_limit_of_deliveries_counts_for_quorum_queues_and_no_policy_of_ours_is_lost_by_it(
    alone: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """RabbitMQ takes none of a policy for a queue that does not know one of its keys."""
    assert commands_of(alone, tmp_path, monkeypatch)("setup", "--quorum").code == 0
    row = answered(alone, "GET", "policies/%2Fhcp/hcp.evt.quorum")
    row["definition"]["delivery-limit"] = 3
    answered(alone, "PUT", "policies/%2Fhcp/hcp.evt.quorum", row)
    row = answered(alone, "GET", "policies/%2Fhcp/hcp.evt")
    row["definition"]["max-length"] = 2
    answered(alone, "PUT", "policies/%2Fhcp/hcp.evt", row)
    for kind, count in (("quorum", 4), ("classic", 12)):
        caller, lab = on(alone, CALLER), on(alone, CALLEE_ID)
        caller.queue_declare(EVENTS, durable=True, arguments={"x-queue-type": kind})
        caller.queue_bind(EVENTS, "hcp.events", f"{CALLER}.#")
        assert refusals(lab, "hcp.events", f"{CALLER}.s.event", 3) == 0
        there = caller.queue_declare(EVENTS, passive=True).method.message_count
        assert there == {"quorum": 3, "classic": 2}[kind], "each kind has its own policy"
        for _ in range(there - 1):
            caller.basic_get(EVENTS, auto_ack=True)
        given = 0
        while given < 12 and (method := caller.basic_get(EVENTS)[0]) is not None:
            given += 1
            caller.basic_nack(method.delivery_tag, requeue=True)
            pause(0.05)
        assert given == count
        caller.queue_delete(EVENTS)
        for each in (caller, lab):
            each.connection.close()


def test_of_two_houses_of_one_lab_one_takes_from_a_quorum_queue_and_the_other_follows_it(
    alone: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A quorum queue knows no exclusive consumer; on another machine no lock of a house helps."""
    assert commands_of(alone, tmp_path, monkeypatch)("setup", "--quorum").code == 0
    url = alone.url(CALLEE_ID)
    here = Service(tmp_path / "lab" / "lab.toml", url, tmp_path / "runs", "fast")
    elsewhere = tmp_path / "elsewhere"
    there = Service(confidential_lab(elsewhere / "lab"), url, elsewhere / "runs", "fast")
    asks = PlainCaller(alone.url(CALLER), CALLER, CALLEE_ID, declares=False)
    task = confidential_task({"document": PAPER}, "T1")
    try:
        for _ in range(4):
            asks.submit(task)
            assert asks.ended()["type"] == "task_completed"
        assert len(list(here.runs.iterdir())) == 4
        assert not list(there.runs.iterdir())
        here.kill()
        asks.submit(task)
        assert asks.ended()["type"] == "task_completed"
        assert len(list(there.runs.iterdir())) == 1
        asks.close()
    finally:
        here.down()
        there.down()


def test_queues_of_another_kind_are_named_and_kept_with_their_messages(
    alone: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = commands_of(alone, tmp_path, monkeypatch)
    assert command("setup").code == 0
    assert kinds(alone) == {}
    caller, lab = on(alone, CALLER), on(alone, CALLEE_ID)
    for channel, name in ((lab, COMMANDS), (caller, EVENTS)):
        channel.queue_declare(name, durable=True)
    lab.queue_bind(COMMANDS, "hcp.commands", CALLEE_ID)
    assert refusals(caller, "hcp.commands", CALLEE_ID, 2) == 0
    for verb in ("check", "setup"):
        said = command(verb, "--quorum")
        assert said.code == 1
        for name in (COMMANDS, EVENTS):
            assert f"queue {name} is classic, and should be quorum" in said.out
        assert "setup does not change it" in said.out
    assert kinds(alone) == {COMMANDS: "classic", EVENTS: "classic"}
    assert lab.queue_declare(COMMANDS, passive=True).method.message_count == 2
    for each in (caller, lab):
        each.connection.close()


def test_a_lab_is_served_where_its_queue_could_not_be_declared_any_more(
    alone: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So it is where somebody has changed the default by hand while there were classic queues."""
    command = commands_of(alone, tmp_path, monkeypatch)
    assert command("setup", "--quorum").code == 0
    with_quorum, lab = on(alone, CALLEE_ID), on(alone, CALLEE_ID)
    with_quorum.queue_delete(COMMANDS)
    lab.queue_declare(COMMANDS, durable=True, arguments={"x-queue-type": "classic"})
    with pytest.raises(pika.exceptions.ChannelClosedByBroker, match="inequivalent arg"):
        lab.queue_declare(COMMANDS, durable=True)
    for each in (with_quorum, lab):
        each.connection.close()
    assert f"queue {COMMANDS} is classic, and should be quorum" in command("check").out
    url, runs = alone.url(CALLEE_ID), tmp_path / "runs"
    service = Service(tmp_path / "lab" / "lab.toml", url, runs, "fast")
    try:
        asks = PlainCaller(alone.url(CALLER), CALLER, CALLEE_ID, declares=False)
        asks.submit(confidential_task({"document": PAPER}, "T1"))
        assert asks.ended()["type"] == "task_completed"
        asks.close()
    finally:
        service.down()


def test_a_default_that_this_rabbitmq_cannot_change_is_said_with_the_version_that_can(
    alone: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = commands_of(alone, tmp_path, monkeypatch)
    assert command("setup").code == 0
    version = answered(alone, "GET", "overview")["rabbitmq_version"]
    said = command("setup", "--quorum")
    if tuple(map(int, re.findall(r"\d+", version)[:3])) >= SINCE:
        assert said.code == 0
        return
    assert said.code == 1
    assert said.out.endswith("1 finding\n")
    assert f"RabbitMQ {version} does not change it in a virtual host that is there" in said.out
    assert "RabbitMQ 3.11.17 or later does" in said.out
    assert kinds(alone) == {COMMANDS: "quorum"}, "the lab's own queue states its kind"
    answered(alone, "DELETE", HOST)
    assert command("setup", "--quorum").code == 0
    assert command("check").code == 0


def test_a_virtual_host_keeps_what_others_have_said_of_it(
    alone: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answered(alone, "PUT", HOST, {"description": "of two labs", "tags": "one,two"})
    command = commands_of(alone, tmp_path, monkeypatch)
    for options in ((), ("--quorum",)):
        command("setup", *options)
        found = answered(alone, "GET", HOST)
        assert (found["description"], found["tags"]) == ("of two labs", ["one", "two"])
