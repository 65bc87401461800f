"""A lab's part of RabbitMQ's definitions: what it should be, and where a broker differs from it.

The shape is RabbitMQ's own, of its management interface and of ``rabbitmqctl export_definitions``.
"""

import base64
import hashlib
import json
import re
import shlex
from collections.abc import Iterator, Mapping
from typing import Any, Final

from labharness.core.vocabulary.texts import Text
from labharness.faces.service.bounds import POLICIES, PRIORITY, QUORUM_POLICIES, QueuePolicy
from labharness.faces.service.rights import OPERATIONS, Parties
from labharness.protocols.hcp import wire

VHOST: Final = "/hcp"
"""The virtual host of HCP."""

SINGLE: Final = "x-single-active-consumer"
"""The argument of a queue from which one consumer takes at a time."""

HASHING: Final = "rabbit_password_hashing_sha256"
SALT_BYTES: Final = 4

Definitions = Mapping[str, Any]


def definitions(
    parties: Parties, hashes: Mapping[str, str], *, quorum: bool = False
) -> dict[str, list[dict[str, Any]]]:
    """Return all that a broker is to be told.

    Args:
        parties: The lab and its callers.
        hashes: The hash of each account's password. An account without one is not written.
        quorum: Its queues are quorum queues.
    """
    return {
        "users": [
            {"name": user, "password_hash": hashes[user], "hashing_algorithm": HASHING, "tags": ""}
            for user in parties.users
            if user in hashes
        ],
        "vhosts": [{"name": VHOST}],
        "permissions": [_permission(parties, user) for user in parties.users],
        "topic_permissions": [_topics(parties, user) for user in parties.users],
        "policies": [_policy(each) for each in _policies(quorum=quorum)],
        "exchanges": [_exchange(name, kind) for name, kind in parties.exchanges.items()],
        **({"queues": [_command_queue(parties)]} if quorum else {}),
    }


def hashed(password: str, salt: bytes) -> str:
    """Return the hash of a password, so that the password itself is not sent.

    Args:
        password: The password.
        salt: Four random bytes (https://www.rabbitmq.com/docs/passwords).
    """
    digest = hashlib.sha256(salt + password.encode()).digest()
    return base64.b64encode(salt + digest).decode("ascii")


def names_of_users(found: Definitions) -> dict[str, str]:
    """Return the password hash of each account of a broker."""
    return {each["name"]: str(each.get("password_hash", "")) for each in found["users"]}


def _permission(parties: Parties, user: str) -> dict[str, Any]:
    found = parties.permission(user)
    return {
        "user": user,
        "vhost": VHOST,
        "configure": found.configure,
        "write": found.write,
        "read": found.read,
    }


def _topics(parties: Parties, user: str) -> dict[str, Any]:
    found = parties.topics(user)
    return {
        "user": user,
        "vhost": VHOST,
        "exchange": found.exchange,
        "write": found.write,
        "read": found.read,
    }


def _policies(*, quorum: bool) -> tuple[QueuePolicy, ...]:
    return (*POLICIES, *QUORUM_POLICIES) if quorum else POLICIES


def _policy(policy: QueuePolicy) -> dict[str, Any]:
    return {
        "vhost": VHOST,
        "name": policy.name,
        "pattern": policy.pattern,
        "apply-to": "queues",
        "priority": policy.priority,
        "definition": dict(policy.definition),
    }


def _exchange(name: str, kind: str) -> dict[str, Any]:
    kinds = {"durable": True, "auto_delete": False, "internal": False, "arguments": {}}
    return {"name": name, "vhost": VHOST, "type": kind, **kinds}


def _command_queue(parties: Parties) -> dict[str, Any]:
    """Return the lab's own queue as a quorum queue, which knows no exclusive consumer."""
    kinds = {"durable": True, "auto_delete": False}
    arguments = {"x-queue-type": "quorum", SINGLE: True}
    name = wire.command_queue(parties.callee_id)
    return {"name": name, "vhost": VHOST, **kinds, "arguments": arguments}


# ---- the same for a broker without the management interface


def control_lines(parties: Parties, *, quorum: bool = False) -> Iterator[str]:
    """Return the lines of ``rabbitmqctl`` that do the same; it asks for each password itself.

    It declares no exchange and no queue; the lab does, when it connects.

    Args:
        parties: The lab and its callers.
        quorum: The broker's queues are quorum queues.
    """
    yield _line("add_vhost", VHOST, *(("--default-queue-type", "quorum") if quorum else ()))
    for user in parties.users:
        yield _line("add_user", user)
        yield _line("set_user_tags", user)
        found = parties.permission(user)
        yield _line(
            "set_permissions", "-p", VHOST, user, *(getattr(found, one) for one in OPERATIONS)
        )
        topics = parties.topics(user)
        yield _line(
            *("set_topic_permissions", "-p", VHOST, user, topics.exchange),
            *(topics.write, topics.read),
        )
    for each in _policies(quorum=quorum):
        yield _line(
            *("set_policy", "-p", VHOST, "--priority", str(each.priority), "--apply-to", "queues"),
            *(each.name, each.pattern, json.dumps(each.definition, separators=(",", ":"))),
        )


def _line(*words: str) -> str:
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
    for kind, keys in _COMPARED.items():
        have = {_key(each, keys): each for each in found[kind] if _here(each)}
        for row in wanted[kind]:
            yield from _differs(kind, row, have.get(_key(row, keys)), _key(row, keys))
    yield from _shadowed(parties, found)
    yield from _strangers(parties, found)


_COMPARED: Final = {
    "vhosts": ("name",),
    "users": ("name",),
    "permissions": ("user",),
    "topic_permissions": ("user", "exchange"),
    "policies": ("name",),
    "exchanges": ("name",),
}
"""What is compared, and what names one of it."""

KIND_CODES: Final = {
    "exchanges": "broker.exchanges",
    "permissions": "broker.permissions",
    "policies": "broker.policies",
    "topic_permissions": "broker.topic_permissions",
    "users": "broker.users",
    "vhosts": "broker.vhosts",
}
_NOT_COMPARED: Final = ("password_hash", "hashing_algorithm")


def _here(row: Definitions) -> bool:
    """Return whether it belongs to the virtual host; an account belongs to none."""
    return bool(row.get("vhost", VHOST) == VHOST)


def _key(row: Definitions, names: tuple[str, ...]) -> str:
    return " ".join(str(row[each]) for each in names)


def _differs(kind: str, wanted: Definitions, have: Definitions | None, key: str) -> Iterator[Text]:
    if have is None:
        yield Text("broker.missing", kind=Text(KIND_CODES[kind]), name=key)
        return
    for name, value in wanted.items():
        if name in _NOT_COMPARED:
            continue
        is_ = _plain(have.get(name))
        if is_ != _plain(value):
            yield Text(
                "broker.differs",
                kind=Text(KIND_CODES[kind]),
                name=key,
                field=name,
                value=is_,
                wanted=_plain(value),
            )


def _plain(value: object) -> str:
    """Return a value as text; no tags are a list here and a text there."""
    if value in ([], "", None):
        return "-"
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True)


def _shadowed(parties: Parties, found: Definitions) -> Iterator[Text]:
    """Name the policies that stand before ours: RabbitMQ applies only one to a queue."""
    ours = {each.name for each in _policies(quorum=True)}
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
