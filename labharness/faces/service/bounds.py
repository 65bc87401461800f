"""The policies of a lab's broker: how much each kind of queue keeps, and for how long.

A policy cannot make a queue a quorum queue: its kind is an argument of its declaration, and a
caller that declares as HCP says names none. A virtual host whose default kind is ``quorum``
(RabbitMQ 3.11 or later) has them without an argument.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

from labharness.faces.service.rights import escaped
from labharness.protocols.hcp import wire

__all__ = ["POLICIES", "QueuePolicy"]

DAY_MS: Final = 86_400_000
MIB: Final = 1_048_576


class QueuePolicy(NamedTuple):
    """What holds of all queues whose names begin alike.

    Attributes:
        name: Of the policy: the beginning of the queues' names.
        definition: Its keys are RabbitMQ's.
    """

    name: str
    definition: Mapping[str, int | str]

    @property
    def pattern(self) -> str:
        """The regular expression of the queues' names."""
        return f"^{escaped(self.name)}\\."


PRIORITY: Final = 10
"""Of our policies; of several that match a queue, RabbitMQ takes the one with the highest."""

POLICIES: Final = (
    QueuePolicy(
        wire.command_queue("")[:-1],
        # No submission grows old here. A full queue refuses the next one, and loses none.
        {
            "max-length": 10_000,
            "max-length-bytes": 256 * MIB,
            "overflow": "reject-publish",
        },
    ),
    QueuePolicy(
        wire.event_queue("")[:-1],
        # A caller's own arguments count too, where they are stricter. HCP names the 24 hours.
        {
            "message-ttl": wire.EVENTS_S_MAX * 1_000,
            "max-length": wire.EVENTS_MAX,
            "max-length-bytes": 1024 * MIB,
            "overflow": "drop-head",
        },
    ),
    QueuePolicy(
        wire.dead_queue("")[:-1],
        {
            "message-ttl": 30 * DAY_MS,
            "max-length": wire.DEAD_MAX,
            "max-length-bytes": 256 * MIB,
            "overflow": "drop-head",
        },
    ),
)
