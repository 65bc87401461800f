"""Callers over TLS with a private authority: certificates on both sides; each refusal is plain."""

import asyncio
import json
import os
import ssl
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace

import pika
import pika.exceptions
import pytest

from broker import NEEDS_BROKER, PASSWORD, Broker, free_port
from certificates import Authority, Pair
from commands import COMMAND, say
from labharness.core.operations import operations
from labharness.faces.cli.brokers import broker_of
from labharness.faces.cli.parser import parse
from labharness.faces.service.amqp import AmqpFace
from labharness.work.task.record import Tasks
from plain_caller import PlainCaller, history_faults
from requested import CURVE
from rig import IV
from serving import Service

CALLEE, CALLER = "callee", "alpha"

pytestmark = [pytest.mark.thorough, pytest.mark.timeout(180), NEEDS_BROKER]


@dataclass(frozen=True, slots=True)
class Secured:
    """A broker that speaks TLS, and the certificates of all."""

    broker: Broker
    port: int
    ca: Path
    other_ca: Path
    pairs: dict[str, Pair]

    def url(self, account: str, query: str = "") -> str:
        who = account if query else f"{account}:{PASSWORD}"
        return f"amqps://{who}@127.0.0.1:{self.port}/%2Fhcp{query}"

    def options(self, account: str) -> tuple[str, ...]:
        pair = self.pairs[account]
        return ("--ca", str(self.ca), "--cert", str(pair.cert), "--key", str(pair.key))


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    folder = tmp_path_factory.mktemp("tls")
    authority, other = Authority(folder, "lab"), Authority(folder, "other")
    pairs = {name: authority.pair(name) for name in ("server", CALLEE, CALLER)}
    pairs["stranger"] = other.pair("stranger")
    made = Broker(folder / "b", (CALLEE, CALLER), plugins=("rabbitmq_auth_mechanism_ssl",))
    port = free_port()
    made.configure(
        f"listeners.ssl.1 = 127.0.0.1:{port}",
        f"ssl_options.cacertfile = {authority.file}",
        f"ssl_options.certfile = {pairs['server'].cert}",
        f"ssl_options.keyfile = {pairs['server'].key}",
        "ssl_options.verify = verify_peer",
        "ssl_options.fail_if_no_peer_cert = true",
        "ssl_cert_login_from = common_name",
        "auth_mechanisms.1 = EXTERNAL",
        "auth_mechanisms.2 = PLAIN",
    )
    made.start()
    yield Secured(made, port, authority.file, other.file, pairs)
    made.stop()


@pytest.mark.parametrize("query", ["", "?auth=external"])
def test_both_sides_log_in_with_a_certificate(secured: Secured, tmp_path: Path, query: str) -> None:
    """By password over TLS, and without a password: the certificate's name is the account."""
    service = Service(
        IV, secured.url(CALLEE, query), tmp_path / "runs", "fast", *secured.options(CALLEE)
    )
    try:
        tls = secured.pairs[CALLER].context(secured.ca)
        asks = PlainCaller(secured.url(CALLER), CALLER, "iv-bench-simulated", tls=tls)
        asks.submit({**CURVE, "caller_id": CALLER})
        assert asks.ended()["type"] == "task_completed"
        assert history_faults(asks.heard) == []
        asks.purge()
        asks.close()
    finally:
        service.down()


def options_of(what: str, secured: Secured) -> tuple[tuple[str, ...], str]:
    """The options and the address that are wrong in one way."""
    ours, strangers = secured.pairs[CALLEE], secured.pairs["stranger"]
    ca, other = ("--ca", str(secured.ca)), ("--ca", str(secured.other_ca))
    cert = ("--cert", str(ours.cert), "--key", str(ours.key))
    url, plain = secured.url(CALLEE), f":{secured.broker.port}/"
    return {
        "another authority": ((*other, *cert), url),
        "another host": ((*ca, *cert), url.replace("127.0.0.1", "localhost")),
        "another client": ((*ca, "--cert", str(strangers.cert), "--key", str(strangers.key)), url),
        "no client": (ca, url),
        "no TLS there": ((*ca, *cert), url.replace(f":{secured.port}/", plain)),
        "TLS there": ((), secured.broker.url(CALLEE).replace(plain, f":{secured.port}/")),
        "password": ((*ca, *cert), url.replace(PASSWORD, "guess")),
        "virtual host": ((*ca, *cert), url.replace("%2Fhcp", "nowhere")),
    }[what]


@pytest.mark.parametrize(
    ("what", "words"),
    [
        ("another authority", "its certificate is not trusted here: self-signed certificate"),
        ("another host", "its certificate is not trusted here: Hostname mismatch"),
        ("another client", "--cert and --key"),
        ("no client", "--cert and --key"),
        ("no TLS there", "does not speak TLS"),
        ("TLS there", "reset by peer"),
        ("password", "refuses this account, or its password"),
        ("virtual host", "no virtual host of this name"),
    ],
)
def test_each_refusal_is_one_plain_line(
    secured: Secured, what: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    options, url = options_of(what, secured)
    monkeypatch.setenv("LABHARNESS_BROKER", url)
    lines = asyncio.run(lines_of(options))
    assert len(lines) == 2
    for line in lines:
        assert line.startswith("the broker is away (")
        assert words in line
        assert PASSWORD not in line
        assert "\n" not in line


async def lines_of(options: tuple[str, ...]) -> list[str]:
    """The first two lines that the service says of a broker; it is at its second try then."""
    chosen = parse(operations(), ["serve", *options])
    lines: list[str] = []
    twice = asyncio.Event()

    def tell(line: str) -> None:
        lines.append(line)
        if len(lines) == 2:
            twice.set()

    face = AmqpFace(broker_of(chosen), tell)
    with TemporaryDirectory() as home:
        tasks = Tasks()
        house = SimpleNamespace(
            home=Path(home), runs=None, lab_id="lab", left_behind=None, tasks=lambda: tasks
        )
        serving = asyncio.ensure_future(face(house))  # type: ignore[arg-type]  # never reached
        async with asyncio.timeout(30):
            await twice.wait()
        serving.cancel()
    return lines


def test_a_wrong_authority_keeps_the_house_up_and_prints_no_traceback(
    secured: Secured, tmp_path: Path
) -> None:
    options, url = options_of("another authority", secured)
    process = subprocess.Popen(
        [*COMMAND, "serve", "--lab", str(IV), "--runs", str(tmp_path / "runs"), *options],
        env={**os.environ, "LABHARNESS_BROKER": url},
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    said = process.stderr.readline()
    assert json.loads(say("status", "--lab", IV, "--json").out)["house"]
    process.terminate()
    said += process.communicate(timeout=60)[1]
    say("down", "--lab", IV, "--stop")
    assert all("the broker is away (" in line for line in said.splitlines()), said


def test_a_certificate_that_cannot_be_used_is_one_plain_error(
    secured: Secured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LABHARNESS_BROKER", secured.url(CALLEE))
    pair = secured.pairs[CALLEE]
    say("serve", "--lab", IV, "--ca", pair.key).is_one_plain_error(str(pair.key))
    other = secured.pairs[CALLER]
    said = say("serve", "--lab", IV, "--ca", secured.ca, "--cert", pair.cert, "--key", other.key)
    said.is_one_plain_error(str(pair.cert))
    said = say("serve", "--lab", IV, "--ca", secured.ca.parent / "none.pem")
    said.is_one_plain_error("none.pem")


def test_the_broker_takes_no_connection_without_a_certificate(secured: Secured) -> None:
    """A control: the tests above would prove nothing on a broker that asks for none."""
    where = pika.URLParameters(secured.url(CALLER))
    where.ssl_options = pika.SSLOptions(ssl.create_default_context(cafile=secured.ca), "127.0.0.1")
    with pytest.raises((pika.exceptions.AMQPConnectionError, ssl.SSLError)):
        pika.BlockingConnection(where)
