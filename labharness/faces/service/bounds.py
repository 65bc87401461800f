"""The policies of a lab's broker: how much each kind of queue keeps, and for how long.

No policy makes a queue a quorum queue: `queue_kinds` has what does.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

from labharness.faces.service.rights import escaped
from labharness.protocols.hcp import wire

DAY_MS: Final = 86_400_000
MIB: Final = 1_048_576


PRIORITY: Final = 10
"""Of our policies; of several that match a queue, RabbitMQ takes the one with the highest."""


class QueuePolicy(NamedTuple):
    """What holds of all queues whose names begin alike.

    Attributes:
        begin: The beginning of the queues' names.
        definition: Its keys are RabbitMQ's.
        kind: The kind of queue for which it is meant, ``""`` for all.
        priority: Of several that match a queue, RabbitMQ takes the one with the highest.
    """

    begin: str
    definition: Mapping[str, int | str]
    kind: str = ""
    priority: int = PRIORITY

    @property
    def name(self) -> str:
        """The name of the policy."""
        return f"{self.begin}.{self.kind}" if self.kind else self.begin

    @property
    def pattern(self) -> str:
        """The regular expression of the queues' names."""
        return f"^{escaped(self.begin)}\\."


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

DELIVERIES_MAX: Final = 1_000_000
"""How often a quorum queue gives out one message before it drops it: some two months of a full
disk, with a try every 5 s. From RabbitMQ 4.0 on it is 20 where nothing is said."""

QUORUM_POLICIES: Final = tuple(
    QueuePolicy(
        each.begin,
        {**each.definition, "delivery-limit": DELIVERIES_MAX},
        kind="quorum",
        priority=PRIORITY + 1,
    )
    for each in POLICIES
)
"""The same bounds for quorum queues. RabbitMQ applies none of them to a classic queue, because that
knows no limit of deliveries; so the others stay in force there."""
