"""Who may do what on a lab's broker: one table, and the permissions of RabbitMQ that follow.

RabbitMQ asks three things of each account in a virtual host: which names it may configure (declare
and delete), write (publish to an exchange; be the destination of a binding) and read (take from a
queue; be the source of a binding). Of a topic exchange it also asks which topics
(https://www.rabbitmq.com/docs/3.13/access-control#authorisation).
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

from labharness.protocols.hcp import wire

Operation = Literal["configure", "write", "read"]
OPERATIONS: Final[tuple[Operation, ...]] = ("configure", "write", "read")

LAB: Final = "lab"
CALLER: Final = "caller"


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


OWN_QUEUE: Final[tuple[Operation, ...]] = OPERATIONS
"""To declare a queue, to bind it, and to take from it. To publish to it takes an exchange."""

TABLE: Final = (
    Right(LAB, wire.COMMANDS, ("configure", "read")),
    Right(LAB, wire.EVENTS, ("configure", "write")),
    Right(LAB, wire.DEAD, OPERATIONS),
    Right(LAB, wire.command_queue("{callee}"), OWN_QUEUE),
    Right(LAB, wire.dead_queue("{callee}"), OWN_QUEUE),
    Right(CALLER, wire.COMMANDS, ("write",)),
    Right(CALLER, wire.EVENTS, ("read",)),
    Right(CALLER, wire.event_queue("{caller}"), OWN_QUEUE),
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
class Permission:
    """What an account may do, as one regular expression of names for each operation."""

    user: str
    configure: str
    write: str
    read: str


@dataclass(frozen=True, slots=True)
class TopicPermission:
    """The topics of one exchange that an account may publish, and bind."""

    user: str
    exchange: str
    write: str
    read: str


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
    def exchanges(self) -> dict[str, str]:
        """Name and type of each exchange."""
        return wire.EXCHANGES

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

    def permission(self, user: str) -> Permission:
        """Return what an account may do."""
        configure, write, read = (pattern(self.names(user, each)) for each in OPERATIONS)
        return Permission(user, configure, write, read)

    def topics(self, user: str) -> TopicPermission:
        """Return which events an account may publish, and which it may have."""
        if user == self.account:
            return TopicPermission(user, wire.EVENTS, EVERY_TOPIC, NO_NAME)
        own = rf"^{escaped(wire.word(user))}\."
        return TopicPermission(user, wire.EVENTS, NO_NAME, own)


def pattern(names: Iterable[str]) -> str:
    """Return the regular expression of RabbitMQ that matches these names and no other."""
    found = [escaped(each) for each in names]
    if not found:
        return NO_NAME
    return f"^{found[0]}$" if len(found) == 1 else f"^({'|'.join(found)})$"


def escaped(name: str) -> str:
    """Escape what has a meaning in a regular expression; a dash has none outside brackets."""
    return re.escape(name).replace(r"\-", "-")
