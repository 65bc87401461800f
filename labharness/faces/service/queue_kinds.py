"""Quorum queues: where a lab's broker is to have them, and what it has instead.

A queue's kind is an argument of its declaration, and a caller that declares as HCP says names none.
What decides is then the virtual host's default queue type
(https://www.rabbitmq.com/docs/vhosts#default-queue-type). It changes no queue that is there, and a
declaration of such a queue that names no kind is refused from then on (406).
"""

import re
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from labharness.core.vocabulary.texts import Text
from labharness.faces.service.rights import BOUNDS, SINGLE, VHOST, Parties, Row, control
from labharness.protocols.hcp import wire

QUORUM: Final = "quorum"
CLASSIC: Final = "classic"
UNSAID: Final = ("", "undefined", None)
"""What stands for a default that nobody has set; it is `CLASSIC` then."""

CHANGES_SINCE: Final = (3, 11, 17)
"""The first RabbitMQ that changes the default of a virtual host that is there, also over HTTP
(https://github.com/rabbitmq/rabbitmq-server/pull/8342)."""


class QueueSeen(NamedTuple):
    """A queue that a broker has.

    Attributes:
        name: Its name.
        kind: RabbitMQ's word.
        single: One consumer takes from it at a time, and the next one after that.
    """

    name: str
    kind: str
    single: bool = False


class Kinds(NamedTuple):
    """What a broker says of the kinds of queues.

    Attributes:
        nodes: How many there are; more than one is a cluster.
        version: Of RabbitMQ.
        default: The default queue type of HCP's virtual host; ``""`` if there is no such host.
        queues: Those of HCP in it.
    """

    nodes: int
    version: str
    default: str
    queues: tuple[QueueSeen, ...]

    @property
    def others(self) -> tuple[QueueSeen, ...]:
        """The queues of HCP that are of another kind."""
        return tuple(each for each in self.queues if each.kind != QUORUM)

    def has_quorum(self, *, asked: bool) -> bool:
        """Return whether they are to be quorum queues; ``asked`` by a person, they always are."""
        return asked or self.nodes > 1 or self.default == QUORUM

    def may_change(self, *, asked: bool) -> bool:
        """Return whether the default is to be changed, and nobody is refused by it."""
        is_right = self.default in ("", QUORUM)
        return self.has_quorum(asked=asked) and not is_right and not self.others


def seen(version: str, nodes: Iterable[Row], hosts: Iterable[Row], queues: Iterable[Row]) -> Kinds:
    """Return what the answers of a management interface say.

    Args:
        version: Of RabbitMQ.
        nodes: ``/api/nodes``.
        hosts: ``/api/vhosts``.
        queues: ``/api/queues``.
    """
    begins = tuple(f"{each}." for each in BOUNDS)
    defaults = [each.get("default_queue_type") for each in hosts if each["name"] == VHOST]
    default = "".join(CLASSIC if each in UNSAID else str(each) for each in defaults)
    found = []
    for each in queues:
        if each["vhost"] == VHOST and each["name"].startswith(begins):
            single = (each.get("arguments") or {}).get(SINGLE) is True
            found.append(QueueSeen(each["name"], each.get("type", CLASSIC), single))
    return Kinds(len(list(nodes)), version, default, tuple(found))


def kind_differences(parties: Parties, kinds: Kinds, *, asked: bool) -> Iterator[Text]:
    """Return each difference between the kinds that a broker has and those that it should have.

    Args:
        parties: The lab and its callers.
        kinds: What the broker has.
        asked: A person wants quorum queues.
    """
    if not kinds.has_quorum(asked=asked):
        return
    if kinds.default not in ("", QUORUM):
        yield _default_differs(kinds)
    for each in kinds.others:
        line = control("delete_queue", "--vhost", VHOST, "--if-empty", "--if-unused", each.name)
        yield Text("broker.queue_kind", name=each.name, value=each.kind, line=line)
    commands = wire.command_queue(parties.callee_id)
    own = next((each for each in kinds.queues if each.name == commands), None)
    if own is None:
        yield Text("broker.missing", kind=Text("broker.queues"), name=commands)
    elif own.kind == QUORUM and not own.single:
        line = control("delete_queue", "--vhost", VHOST, commands)  # takes no conditions here
        yield Text("broker.queue_shared", name=commands, line=line)


def _default_differs(kinds: Kinds) -> Text:
    """Return what is to be done about a default that is none of quorum queues."""
    is_ = kinds.default
    if kinds.others:
        return Text("broker.default_waits", name=VHOST, value=is_)
    line = control("update_vhost_metadata", VHOST, "--default-queue-type", QUORUM)
    version = kinds.version
    numbers = re.findall(r"\d+", version.partition("-")[0])  # 4.1.0-rc.1 is 4, 1, 0
    if tuple(map(int, numbers)) < CHANGES_SINCE:
        since = ".".join(map(str, CHANGES_SINCE))
        return Text(
            "broker.default_fixed", name=VHOST, value=is_, line=line, version=version, since=since
        )
    return Text("broker.default_kind", name=VHOST, value=is_, line=line)
