"""Quorum queues: where a lab's broker is to have them, and what it has instead.

A queue's kind is an argument of its declaration, and a caller that declares as HCP says names none.
What decides is then the virtual host's default queue type
(https://www.rabbitmq.com/docs/vhosts#default-queue-type). It changes no queue that is there, and a
declaration of such a queue that names no kind is refused from then on (406).
"""

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from labharness.core.vocabulary.texts import Text
from labharness.faces.service.bounds import POLICIES
from labharness.faces.service.definitions import SINGLE, VHOST
from labharness.faces.service.rights import Parties
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


Row = Mapping[str, Any]


def seen(version: str, nodes: Iterable[Row], hosts: Iterable[Row], queues: Iterable[Row]) -> Kinds:
    """Return what the answers of a management interface say.

    Args:
        version: Of RabbitMQ.
        nodes: ``/api/nodes``.
        hosts: ``/api/vhosts``.
        queues: ``/api/queues``.
    """
    begins = tuple(f"{each.begin}." for each in POLICIES)
    defaults = [each.get("default_queue_type") for each in hosts if each["name"] == VHOST]
    return Kinds(
        nodes=len(list(nodes)),
        version=version,
        default="".join(CLASSIC if each in UNSAID else str(each) for each in defaults),
        queues=tuple(
            QueueSeen(
                each["name"],
                each.get("type", CLASSIC),
                (each.get("arguments") or {}).get(SINGLE) is True,
            )
            for each in queues
            if each["vhost"] == VHOST and each["name"].startswith(begins)
        ),
    )


def has_quorum(kinds: Kinds, *, asked: bool) -> bool:
    """Return whether a broker's queues are to be quorum queues.

    Args:
        kinds: What it has.
        asked: A person wants them.
    """
    return asked or kinds.nodes > 1 or kinds.default == QUORUM


def may_change(kinds: Kinds, *, asked: bool) -> bool:
    """Return whether the default is to be changed, and nobody is refused by it.

    Args:
        kinds: What the broker has.
        asked: A person wants quorum queues.
    """
    is_right = kinds.default in ("", QUORUM)
    return has_quorum(kinds, asked=asked) and not is_right and not kinds.others


def kind_differences(parties: Parties, kinds: Kinds, *, asked: bool) -> Iterator[Text]:
    """Return each difference between the kinds that a broker has and those that it should have.

    Args:
        parties: The lab and its callers.
        kinds: What the broker has.
        asked: A person wants quorum queues.
    """
    if not has_quorum(kinds, asked=asked):
        return
    if kinds.default not in ("", QUORUM):
        yield _default_differs(kinds)
    for each in kinds.others:
        line = _control("delete_queue", "--vhost", VHOST, "--if-empty", "--if-unused", each.name)
        yield Text("broker.queue_kind", name=each.name, value=each.kind, line=line)
    commands = wire.command_queue(parties.callee_id)
    of_commands = [each for each in kinds.queues if each.name == commands]
    if not of_commands:
        yield Text("broker.missing", kind=Text("broker.queues"), name=commands)
    if any(each.kind == QUORUM and not each.single for each in of_commands):
        line = _control("delete_queue", "--vhost", VHOST, commands)  # takes no conditions here
        yield Text("broker.queue_shared", name=commands, line=line)


def _default_differs(kinds: Kinds) -> Text:
    """Return what is to be done about a default that is none of quorum queues."""
    is_now = kinds.default
    if kinds.others:
        return Text("broker.default_waits", name=VHOST, value=is_now)
    line = _control("update_vhost_metadata", VHOST, "--default-queue-type", QUORUM)
    if _number(kinds.version) < CHANGES_SINCE:
        since = ".".join(map(str, CHANGES_SINCE))
        return Text(
            "broker.default_fixed",
            name=VHOST,
            value=is_now,
            version=kinds.version,
            since=since,
            line=line,
        )
    return Text("broker.default_kind", name=VHOST, value=is_now, line=line)


def _number(version: str) -> tuple[int, ...]:
    """Return a version as numbers: ``4.1.0-rc.1`` is 4, 1, 0."""
    found = re.match(r"\d+(?:\.\d+)*", version)
    return tuple(map(int, found[0].split("."))) if found else ()


def _control(*words: str) -> str:
    return shlex.join(("rabbitmqctl", *words))
