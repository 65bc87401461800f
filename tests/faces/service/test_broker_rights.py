"""``labharness broker`` on a real RabbitMQ: every account tries every operation on everything."""

import json
import os
import re
import shlex
import subprocess
from collections.abc import Callable, Iterator
from itertools import product
from operator import methodcaller
from pathlib import Path

import pika
import pika.exceptions
import pytest
from pika.channel import Channel

from broker import ADMINISTRATOR, NEEDS_BROKER, PASSWORD, Broker, running
from commands import Said, edited_lab, say
from labharness.faces.service.rights import OPERATIONS, Parties
from labharness.protocols.hcp import wire
from plain_caller import PlainCaller
from rig import EXAMPLE
from serving import Service
from up_lab import until

CALLERS = ("alpha", "alpha-2")
LABS = ("one-lab", "other-lab")
ENTRY = '[callers.{}]\ncapabilities = ["{}"]\nrisk_max = "R1"\ndata_class_max = "T2"\n'

pytestmark = [pytest.mark.thorough, pytest.mark.timeout(180), NEEDS_BROKER]


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    with running(tmp_path_factory.mktemp("mq") / "b", (), managed=True) as made:
        yield made


def lab_of(folder: Path, name: str, *callers: str) -> Path:
    """A lab with callers of its own."""
    folder.mkdir()
    entries = (ENTRY.format(each, "cvd-material-synthesis") for each in callers)
    (folder / "callers.toml").write_text("".join(entries), "utf-8")
    lab = edited_lab(folder, "callers = ", 'callers = "callers.toml" # ')
    lab.write_text(re.sub(r'(?m)^id = ".*"', f'id = "{name}"', lab.read_text("utf-8"), count=1))
    return lab


Command = Callable[..., Said]


@pytest.fixture
def command(broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Said]:
    """Say a command about the broker of a lab with these callers."""
    url = f"http://{ADMINISTRATOR}:{PASSWORD}@127.0.0.1:{broker.management_port}"
    monkeypatch.setenv("LABHARNESS_MANAGEMENT", url)
    secrets = tmp_path / "passwords.toml"
    monkeypatch.chdir(tmp_path)

    def of(verb: str, name: str, *options: str, callers: tuple[str, ...] = CALLERS) -> Said:
        lab = tmp_path / name / "lab.toml"
        if not lab.exists():
            lab_of(tmp_path / name, name, *callers)
        rows = (f'"{each}" = "{PASSWORD}"\n' for each in (name, *callers))
        secrets.touch(0o600)
        secrets.write_text("".join(rows), "utf-8")
        more = ("--passwords", str(secrets)) if verb == "setup" else ()
        return say("broker", verb, "--lab", lab, *more, *options)

    return of


class Tries:
    """One account that tries operations."""

    def __init__(self, broker: Broker, user: str) -> None:
        self._connection = pika.BlockingConnection(pika.URLParameters(broker.url(user)))

    def refusal(self, do: Callable[[Channel], object]) -> str:
        """Return the broker's words if it refuses an operation, else ``""``."""
        channel = self._connection.channel()
        channel.confirm_delivery()
        try:
            do(channel)
        except pika.exceptions.ChannelClosedByBroker as why:
            return str(why.reply_text)
        except pika.exceptions.UnroutableError:
            pass
        else:
            channel.close()
        return ""

    def may(self, operation: str, name: str, own: str) -> bool:
        """Return whether an operation on an exchange or a queue is allowed; it is tried.

        Args:
            operation: One of RabbitMQ's three.
            name: Of the exchange or queue.
            own: A queue that this account may bind.
        """
        said = self.refusal(lambda channel: self._try(channel, operation, name, own))
        return not re.search(rf"access to (?:exchange|queue) '{re.escape(name)}'", said)

    def _try(self, channel: Channel, operation: str, name: str, own: str) -> object:
        is_queue = re.match(r"hcp\.(cmd|evt|dead)\.", name)
        if operation == "configure":
            if is_queue:
                return channel.queue_declare(name, durable=True)
            return channel.exchange_declare(name, KINDS.get(name, "direct"), durable=True)
        if operation == "write":
            if is_queue:
                return channel.queue_bind(name, "hcp.events", "nothing")
            return channel.basic_publish(name, "nothing", b"x", mandatory=True)
        if is_queue:
            return channel.basic_get(name)
        return channel.queue_bind(own, name, "nothing")

    def count(self, queue: str) -> int:
        """Return how many messages a queue has."""
        channel = self._connection.channel()
        found = channel.queue_declare(queue, passive=True).method.message_count
        channel.close()
        return int(found)

    def close(self) -> None:
        self._connection.close()


KINDS = {"hcp.events": "topic"}


@pytest.fixture
def tries(broker: Broker) -> Iterator[Callable[[str], Tries]]:
    made: list[Tries] = []

    def of(user: str) -> Tries:
        made.append(Tries(broker, user))
        return made[-1]

    yield of
    for each in made:
        each.close()


@pytest.mark.parametrize("passive", [(), ("--callers-passive",)])
@pytest.mark.promise(67)
def test_each_account_may_do_what_the_table_says_and_nothing_else(
    command: Command, tries: Callable[[str], Tries], passive: tuple[str, ...]
) -> None:
    for name in LABS:
        said = command("setup", name, *passive)
        assert said.code == 0, said
        said = command("check", name, *passive)
        assert said.code == 0, said
    labs = [Parties(name, name, CALLERS, not passive) for name in LABS]
    by_user = {each.account: each for each in labs} | dict.fromkeys(CALLERS, labs[0])
    # every queue is there, made by its own account
    accounts = {user: tries(user) for user in by_user}
    for user, of in by_user.items():
        for queue in of.queues:
            if queue in of.names(user, "configure"):
                assert accounts[user].may("configure", queue, queue)
    resources = sorted({*labs[0].queues, *labs[1].queues, *wire.EXCHANGES})
    found, wanted = {}, {}
    for (user, of), operation, name in product(by_user.items(), OPERATIONS, resources):
        own = of.queues[0] if user == of.account else f"hcp.evt.{user}"
        found[user, operation, name] = accounts[user].may(operation, name, own)
        wanted[user, operation, name] = name in of.names(user, operation)
    assert found == wanted
    assert len(found) == 4 * 3 * 9


@pytest.mark.promise(67)
def test_what_no_table_holds_is_refused_too(
    command: Command, tries: Callable[[str], Tries], broker: Broker
) -> None:
    assert command("setup", "one-lab", "--callers-passive").code == 0
    alpha, lab = tries("alpha"), tries("one-lab")
    assert alpha.may("configure", "hcp.evt.alpha", "")
    refused: dict[str, tuple[Tries, Callable[[Channel], object]]] = {
        "another's events": (
            alpha,
            lambda on: on.queue_bind("hcp.evt.alpha", "hcp.events", "alpha-2.#"),
        ),
        "all events": (alpha, lambda on: on.queue_bind("hcp.evt.alpha", "hcp.events", "#")),
        "each caller's ends": (
            alpha,
            lambda on: on.queue_bind("hcp.evt.alpha", "hcp.events", "*.*.task_completed"),
        ),
        "a queue by its name": (
            alpha,
            lambda on: on.basic_publish("", "hcp.cmd.one-lab", b"x", mandatory=True),
        ),
        "the lab too": (
            lab,
            lambda on: on.basic_publish("", "hcp.evt.alpha", b"x", mandatory=True),
        ),
        "a queue without a name": (alpha, lambda on: on.queue_declare("")),
        "an exchange of its own": (alpha, lambda on: on.exchange_declare("hcp.evt.alpha-x")),
        "to delete one": (alpha, lambda on: on.exchange_delete("hcp.commands")),
        "to purge another's queue": (alpha, lambda on: on.queue_purge("hcp.evt.alpha-2")),
    }
    said = {what: who.refusal(do).partition(" ")[0] for what, (who, do) in refused.items()}
    assert said == dict.fromkeys(refused, "ACCESS_REFUSED")
    assert not alpha.refusal(lambda on: on.queue_bind("hcp.evt.alpha", "hcp.events", "alpha.#"))
    assert not alpha.refusal(lambda on: on.exchange_declare("hcp.events", passive=True))
    named = pika.BasicProperties(user_id="alpha-2")
    assert "user_id" in alpha.refusal(
        lambda on: on.basic_publish("hcp.commands", "one-lab", b"x", named)
    )


def test_a_broker_whose_administrator_has_made_the_virtual_host_is_as_it_should_be(
    command: Command, broker: Broker
) -> None:
    assert command("setup", "one-lab").code == 0
    control(broker, f"set_permissions -p /hcp {ADMINISTRATOR} .* .* .*")  # as its image does
    assert command("setup", "one-lab").code == 0
    control(broker, f"clear_permissions -p /hcp {ADMINISTRATOR}")


def test_a_difference_is_named_and_written_right_again(command: Command, broker: Broker) -> None:
    assert command("setup", "one-lab").code == 0
    control(broker, "set_permissions -p /hcp alpha .* .* .*")
    control(broker, "set_user_tags alpha impersonator")
    said = command("check", "one-lab")
    assert said.code == 1
    assert 'account alpha: tags is ["impersonator"], and should be -' in said.out
    assert said.out.count("rights of alpha: ") == 3
    assert said.out.endswith("4 findings\n")
    assert command("setup", "one-lab").code == 0
    said = command("check", "one-lab")
    assert said.out == "the broker is as it should be for one-lab, alpha, alpha-2\n"


def control(broker: Broker, line: str, answer: str = "") -> None:
    """Run one line of ``rabbitmqctl`` on the broker."""
    words = shlex.split(line.removeprefix("rabbitmqctl "))
    subprocess.run(
        ["/usr/lib/rabbitmq/bin/rabbitmqctl", "-n", broker.node, *words],
        env={**os.environ, "HOME": str(broker.home)},
        input=answer,
        text=True,
        check=True,
        capture_output=True,
        timeout=60,
    )


@pytest.mark.soak
def test_the_lines_of_rabbitmqctl_do_the_same(command: Command, tmp_path: Path) -> None:
    bare = Broker(tmp_path / "bare", (), managed=True)
    bare.start()
    try:
        for line in command("setup", "one-lab", "--print").out.splitlines():
            control(bare, line, f"{PASSWORD}\n")
        url = f"http://{ADMINISTRATOR}@127.0.0.1:{bare.management_port}"
        os.environ["LABHARNESS_MANAGEMENT"] = url.replace("@", f":{PASSWORD}@")
        said = command("check", "one-lab")
        assert [line.split()[0] for line in said.out.splitlines()[:-1]] == ["exchange"] * 3, said
        Tries(bare, "alpha").close()
    finally:
        bare.stop()


EXCHANGES = ("hcp.events", "hcp.commands")


def there(exchange: str) -> Callable[[Channel], object]:
    return lambda on: on.exchange_declare(exchange, passive=True)


def test_these_rights_are_enough_for_both_sides(
    command: Command, broker: Broker, tmp_path: Path
) -> None:
    lab = lab_of(tmp_path / "served-lab", "served-lab", "served-caller")
    assert command("setup", "served-lab", callers=("served-caller",)).code == 0
    service = Service(lab, broker.url("served-lab"), tmp_path / "runs", "fast")
    try:
        url = broker.url("served-caller")
        caller = PlainCaller(url, "served-caller", "served-lab")
        other = Tries(broker, "served-caller")  # what one deletes is there again for all
        assert not any(other.refusal(methodcaller("exchange_delete", each)) for each in EXCHANGES)
        other.close()
        caller.close()
        lab_side = Tries(broker, "served-lab")
        until(lambda: not any(lab_side.refusal(there(each)) for each in EXCHANGES))
        lab_side.close()
        caller = PlainCaller(url, "served-caller", "served-lab")
        payload = json.loads(EXAMPLE.read_text("utf-8"))["payload"]
        caller.submit({**payload, "caller_id": "served-caller"})
        rejected = caller.ended()
        assert rejected.payload["reason_code"] == "risk_too_high", rejected
        caller.send_bytes(b"no JSON")
        letters = Tries(broker, "served-lab")
        until(lambda: letters.count("hcp.dead.served-lab") == 1)
        letters.close()
        caller.close()
    finally:
        service.down()
    assert command("check", "served-lab", callers=("served-caller",)).code == 0


def test_passwords_come_from_a_file_that_only_its_owner_reads(
    command: Command, tmp_path: Path
) -> None:
    assert command("setup", "one-lab").code == 0
    secrets = tmp_path / "passwords.toml"
    secrets.chmod(0o640)
    command("setup", "one-lab").is_one_plain_error("passwords.toml", "chmod 600")
    secrets.chmod(0o600)
    other = tmp_path / "other.toml"
    other.touch(0o600)
    for text in ('mallory = "x"', "alpha = 7", 'alpha = ""'):
        other.write_text(text, "utf-8")
        said = command("setup", "one-lab", "--passwords", str(other))
        said.is_one_plain_error("other.toml", text.split()[0], "one-lab")


def test_who_is_no_administrator_is_refused_in_one_line(
    command: Command, broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert command("setup", "one-lab").code == 0
    for account, password in (("alpha", PASSWORD), (ADMINISTRATOR, "guess")):
        url = f"http://{account}:{password}@127.0.0.1:{broker.management_port}"
        monkeypatch.setenv("LABHARNESS_MANAGEMENT", url)
        said = command("check", "one-lab")
        assert said.code == 1
        assert said.err.count("\n") == 1
        assert "tag administrator" in said.err
        assert password not in said.err.replace("password", "")
