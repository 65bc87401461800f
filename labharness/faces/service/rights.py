"""Who may do what on a lab's broker, and what it keeps: one table, and RabbitMQ's own words for it.

RabbitMQ asks three things of each account in a virtual host: which names it may configure (declare
and delete), write (publish to an exchange; be the destination of a binding) and read (take from a
queue; be the source of a binding). Of a topic exchange it also asks which topics
(https://www.rabbitmq.com/docs/3.13/access-control#authorisation). The shape of the definitions is
that of its management interface and of ``rabbitmqctl export_definitions``.
"""

import base64
import hashlib
import json
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple

from labharness.core.vocabulary.texts import Text
from labharness.protocols.hcp import wire

Operation = Literal["configure", "write", "read"]
OPERATIONS: Final[tuple[Operation, ...]] = ("configure", "write", "read")

LAB: Final = "lab"
CALLER: Final = "caller"

VHOST: Final = "/hcp"
"""The virtual host of HCP."""

SINGLE: Final = "x-single-active-consumer"
"""The argument of a queue from which one consumer takes at a time."""

SALT_BYTES: Final = 4

Row = Mapping[str, Any]
"""One of RabbitMQ's definitions."""

Definitions = Mapping[str, list[dict[str, Any]]]


class Right(NamedTuple):
    """What one kind of account may do with one exchange or queue.

    Attributes:
        kind: `LAB` or `CALLER`.
        resource: A name; ``{callee}`` and ``{caller}`` stand for the lab's and the account's own.
        operations: What it may do.
    """

    kind: str
    resource: str
    operations: tuple[Operation, ...]


TABLE: Final = (
    Right(LAB, wire.COMMANDS, ("configure", "read")),
    Right(LAB, wire.EVENTS, ("configure", "write")),
    Right(LAB, wire.DEAD, OPERATIONS),
    # to declare a queue, to bind it, and to take from it: to publish to it takes an exchange
    Right(LAB, wire.command_queue("{callee}"), OPERATIONS),
    Right(LAB, wire.dead_queue("{callee}"), OPERATIONS),
    Right(CALLER, wire.COMMANDS, ("write",)),
    Right(CALLER, wire.EVENTS, ("read",)),
    Right(CALLER, wire.event_queue("{caller}"), OPERATIONS),
)

DECLARING: Final = (
    Right(CALLER, wire.COMMANDS, ("configure",)),
    Right(CALLER, wire.EVENTS, ("configure",)),
)
"""Besides: callers may declare the exchanges as they are (ruling 45). In RabbitMQ that is also a
right to delete them; the lab then declares and binds them again."""

NO_NAME: Final = "^$"
"""Matches no exchange and no queue; the exchange without a name is ``amq.default`` here."""

EVERY_TOPIC: Final = ".*"
"""Of a lab: it answers also accounts that are no callers of it, if only to refuse them."""


@dataclass(frozen=True, slots=True)
class Parties:
    """A lab and its callers, as accounts of a broker.

    Attributes:
        callee_id: Id of the lab, which its queues have in their names.
        account: The lab's own account.
        callers: Ids of its callers, which are their accounts.
        callers_declare: Callers may declare the two exchanges of HCP too, and so delete them.
    """

    callee_id: str
    account: str
    callers: tuple[str, ...]
    callers_declare: bool = True

    @property
    def users(self) -> tuple[str, ...]:
        """All accounts, the lab's own first."""
        return (self.account, *self.callers)

    @property
    def queues(self) -> tuple[str, ...]:
        """The names of all queues."""
        own = (wire.command_queue(self.callee_id), wire.dead_queue(self.callee_id))
        return (*own, *(wire.event_queue(each) for each in self.callers))

    def names(self, user: str, operation: Operation) -> tuple[str, ...]:
        """Return the exchanges and queues with which an account may do something."""
        kind = LAB if user == self.account else CALLER
        table = (*TABLE, *DECLARING) if self.callers_declare else TABLE
        return tuple(
            row.resource.format(callee=self.callee_id, caller=user)
            for row in table
            if row.kind == kind and operation in row.operations
        )

    def permission(self, user: str) -> dict[str, str]:
        """Return what an account may do: a regular expression of names for each operation."""
        may: dict[str, str] = {each: pattern(self.names(user, each)) for each in OPERATIONS}
        return {"user": user, "vhost": VHOST, **may}

    def topics(self, user: str) -> dict[str, str]:
        """Return which events an account may publish, and which it may have."""
        named = {"user": user, "vhost": VHOST, "exchange": wire.EVENTS}
        if user == self.account:
            return {**named, "write": EVERY_TOPIC, "read": NO_NAME}
        return {**named, "write": NO_NAME, "read": rf"^{escaped(wire.word(user))}\."}


def pattern(names: Iterable[str]) -> str:
    """Return the regular expression of RabbitMQ that matches these names and no other."""
    found = [escaped(each) for each in names]
    if not found:
        return NO_NAME
    return f"^{found[0]}$" if len(found) == 1 else f"^({'|'.join(found)})$"


def escaped(name: str) -> str:
    """Escape what has a meaning in a regular expression; a dash has none outside brackets."""
    return re.escape(name).replace(r"\-", "-")


# ---- how much each kind of queue keeps, and for how long

DAY_MS: Final = 86_400_000
MIB: Final = 1_048_576

BOUNDS: Final[Mapping[str, Mapping[str, int | str]]] = {
    # No submission grows old here. A full queue refuses the next one, and loses none.
    wire.command_queue("")[:-1]: {
        "max-length": 10_000,
        "max-length-bytes": 256 * MIB,
        "overflow": "reject-publish",
    },
    # A caller's own arguments count too, where they are stricter. HCP names the 24 hours.
    wire.event_queue("")[:-1]: {
        "message-ttl": wire.EVENTS_S_MAX * 1_000,
        "max-length": wire.EVENTS_MAX,
        "max-length-bytes": 1024 * MIB,
        "overflow": "drop-head",
    },
    wire.dead_queue("")[:-1]: {
        "message-ttl": 30 * DAY_MS,
        "max-length": wire.DEAD_MAX,
        "max-length-bytes": 256 * MIB,
        "overflow": "drop-head",
    },
}
"""Bounds of all queues whose names begin alike. No policy makes a queue a quorum queue:
`queue_kinds` has what does."""

PRIORITY: Final = 10
"""Of our policies; of several that match a queue, RabbitMQ takes the one with the highest."""

DELIVERIES_MAX: Final = 1_000_000
"""How often a quorum queue gives out one message before it drops it: some two months of a full
disk, with a try every 5 s. From RabbitMQ 4.0 on it is 20 where nothing is said."""


def policies(*, quorum: bool) -> list[dict[str, Any]]:
    """Return the policies of a broker.

    Quorum queues have the same bounds in policies of their own. RabbitMQ applies none of these to a
    classic queue, because that knows no limit of deliveries; so the others stay in force there.
    """
    found = [_policy(begin, begin, PRIORITY, bounds) for begin, bounds in BOUNDS.items()]
    for begin, bounds in BOUNDS.items() if quorum else ():
        limited = {**bounds, "delivery-limit": DELIVERIES_MAX}
        found.append(_policy(f"{begin}.quorum", begin, PRIORITY + 1, limited))
    return found


def _policy(name: str, begin: str, priority: int, bounds: Row) -> dict[str, Any]:
    of = {"vhost": VHOST, "name": name, "pattern": rf"^{escaped(begin)}\.", "apply-to": "queues"}
    return {**of, "priority": priority, "definition": dict(bounds)}


# ---- what a broker is told


def definitions(
    parties: Parties, hashes: Mapping[str, str], *, quorum: bool = False
) -> dict[str, list[dict[str, Any]]]:
    """Return all that a broker is to be told.

    Args:
        parties: The lab and its callers.
        hashes: The hash of each account's password. An account without one is not written.
        quorum: Its queues are quorum queues. Then the lab's own is told too: a quorum queue knows
            no exclusive consumer, so that it needs an argument.
    """
    hashing = {"hashing_algorithm": "rabbit_password_hashing_sha256", "tags": ""}
    stays = {"vhost": VHOST, "durable": True, "auto_delete": False}
    of_exchange = {**stays, "internal": False, "arguments": {}}
    arguments = {"x-queue-type": "quorum", SINGLE: True}
    own_queue = {**stays, "name": wire.command_queue(parties.callee_id), "arguments": arguments}
    return {
        "users": [
            {"name": user, "password_hash": hashes[user], **hashing}
            for user in parties.users
            if user in hashes
        ],
        "vhosts": [{"name": VHOST}],
        "permissions": [*map(parties.permission, parties.users)],
        "topic_permissions": [*map(parties.topics, parties.users)],
        "policies": policies(quorum=quorum),
        "exchanges": [
            {**of_exchange, "name": name, "type": kind} for name, kind in wire.EXCHANGES.items()
        ],
        **({"queues": [own_queue]} if quorum else {}),
    }


def hashed(password: str, salt: bytes) -> str:
    """Return the hash of a password, so that the password itself is not sent.

    Args:
        password: The password.
        salt: Four random bytes (https://www.rabbitmq.com/docs/passwords).
    """
    digest = hashlib.sha256(salt + password.encode()).digest()
    return base64.b64encode(salt + digest).decode("ascii")


def control_lines(parties: Parties, *, quorum: bool = False) -> Iterator[str]:
    """Return the lines of ``rabbitmqctl`` that do the same; it asks for each password itself.

    It declares no exchange and no queue; the lab does, when it connects.

    Args:
        parties: The lab and its callers.
        quorum: The broker's queues are quorum queues.
    """
    yield control("add_vhost", VHOST, *(("--default-queue-type", "quorum") if quorum else ()))
    here = ("-p", VHOST)
    for user in parties.users:
        may, topics = parties.permission(user), parties.topics(user)
        yield control("add_user", user)
        yield control("set_user_tags", user)
        yield control("set_permissions", *here, user, *(may[each] for each in OPERATIONS))
        told = (topics[each] for each in ("exchange", "write", "read"))
        yield control("set_topic_permissions", *here, user, *told)
    for row in policies(quorum=quorum):
        bounds = json.dumps(row["definition"], separators=(",", ":"))
        kinds = ("--priority", str(row["priority"]), "--apply-to", "queues")
        yield control("set_policy", *here, *kinds, row["name"], row["pattern"], bounds)


def control(*words: str) -> str:
    """Return a line of ``rabbitmqctl``."""
    return shlex.join(("rabbitmqctl", *words))


# ---- what a broker has


def differences(parties: Parties, found: Definitions, *, quorum: bool = False) -> Iterator[Text]:
    """Return each difference between what a broker has and what it should have.

    Queues are not compared here: `queue_kinds` does that.

    Args:
        parties: The lab and its callers.
        found: The broker's definitions.
        quorum: Its queues are quorum queues.
    """
    wanted = definitions(parties, dict.fromkeys(parties.users, ""), quorum=quorum)
    for kind, (code, *names) in _COMPARED.items():
        have = {_key(each, names): each for each in found[kind] if _here(each)}
        for row in wanted[kind]:
            key, told = _key(row, names), Text(code)
            if key not in have:
                yield Text("broker.missing", kind=told, name=key)
                continue
            for field, value in row.items():
                is_, should = _plain(have[key].get(field)), _plain(value)
                if field not in _NOT_COMPARED and is_ != should:
                    yield Text(
                        "broker.differs",
                        kind=told,
                        name=key,
                        field=field,
                        value=is_,
                        wanted=should,
                    )
    yield from _shadowed(parties, found)
    yield from _strangers(parties, found)


_COMPARED: Final = {
    "vhosts": ("broker.vhosts", "name"),
    "users": ("broker.users", "name"),
    "permissions": ("broker.permissions", "user"),
    "topic_permissions": ("broker.topic_permissions", "user", "exchange"),
    "policies": ("broker.policies", "name"),
    "exchanges": ("broker.exchanges", "name"),
}
"""What is compared, the code of its name, and the fields that name one of it."""

_NOT_COMPARED: Final = ("password_hash", "hashing_algorithm")


def _here(row: Row) -> bool:
    """Return whether it belongs to the virtual host; an account belongs to none."""
    return bool(row.get("vhost", VHOST) == VHOST)


def _key(row: Row, names: Iterable[str]) -> str:
    return " ".join(str(row[each]) for each in names)


def _plain(value: object) -> str:
    """Return a value as text; no tags are a list here and a text there."""
    if value in ([], "", None):
        return "-"
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True)


def _shadowed(parties: Parties, found: Definitions) -> Iterator[Text]:
    """Name the policies that stand before ours: RabbitMQ applies only one to a queue."""
    ours = {each["name"] for each in policies(quorum=True)}
    for row in found["policies"]:
        other = _here(row) and row["name"] not in ours and row["apply-to"] != "exchanges"
        if other and row["priority"] >= PRIORITY and _matching(row["pattern"], parties.queues):
            yield Text("broker.policy_before", name=row["name"], pattern=row["pattern"])


def _strangers(parties: Parties, found: Definitions) -> Iterator[Text]:
    """Name the accounts that are none of ours and reach a queue of ours.

    An administrator may give itself any right, so one that it has says nothing.
    """
    known = {*parties.users}
    known |= {each["name"] for each in found["users"] if "administrator" in each["tags"]}
    for row in found["permissions"]:
        if not _here(row) or row["user"] in known:
            continue
        for each in OPERATIONS:
            if reached := _matching(row[each], parties.queues):
                yield Text("broker.stranger", name=row["user"], may=each, what=reached)


def _matching(pattern: str, names: tuple[str, ...]) -> list[str]:
    """Return the names that a pattern of RabbitMQ matches; one that cannot be read matches all."""
    try:
        return [each for each in names if re.search(pattern, each)]
    except re.error:
        return list(names)
