"""The names of HCP layer 1: exchanges, queues and topics, and the bounds of each side."""

from typing import Final

from labharness.protocols.hcp.codec import HcpMessage, MessageType
from labharness.protocols.hcp.terms import RiskLevel

COMMANDS: Final = "hcp.commands"
EVENTS: Final = "hcp.events"
DEAD: Final = "hcp.dead"

EXCHANGES: Final = {COMMANDS: "direct", EVENTS: "topic", DEAD: "direct"}
"""The kind of each exchange; all are durable. That of dead letters is ours alone."""

TO_CALLEE: Final[tuple[MessageType, ...]] = ("task_submit", "abort")
"""The types of message that a caller sends; a callee sends all others."""

EVENTS_S_MAX: Final = 86_400
"""Time (s) that a message waits for its caller; the specification names 24 h."""

EVENTS_MAX: Final = 1_000_000
"""Most messages that wait for one caller; the oldest goes first. The specification names none."""

DEAD_MAX: Final = 10_000
"""Most dead letters that are kept for one callee; the oldest goes first."""

BACK_OFF_S: Final = (1.0, 60.0)
"""Shortest and longest wait (s) before another try, as the specification names them."""

_SPECIAL: Final = "%.*#"
"""Characters with a meaning in a topic, and the one that escapes them (ruling 24)."""


class BackOff:
    """The wait before the next try; it doubles from try to try."""

    def __init__(self) -> None:
        self._wait_s = 0.0

    def longer(self) -> float:
        """Return the next wait (s)."""
        self._wait_s = min(max(2 * self._wait_s, BACK_OFF_S[0]), BACK_OFF_S[1])
        return self._wait_s


def word(name: str) -> str:
    """Return an id as one word of a topic; an id without special characters stays as it is."""
    return "".join(f"%{ord(each):02X}" if each in _SPECIAL else each for each in name)


def command_queue(callee_id: str) -> str:
    """Return the queue from which a callee takes submissions and aborts."""
    return f"hcp.cmd.{callee_id}"


def event_queue(caller_id: str) -> str:
    """Return the queue from which a caller takes what its sessions tell."""
    return f"hcp.evt.{caller_id}"


def dead_queue(callee_id: str) -> str:
    """Return the queue of the messages that a callee could not read, each with the reason."""
    return f"hcp.dead.{callee_id}"


def topic(caller_id: str, session_id: str, message: HcpMessage) -> str:
    """Return the topic of a message to a caller."""
    return f"{word(caller_id)}.{session_id}.{message.type}"


def pattern(caller_id: str) -> str:
    """Return the pattern of all topics of a caller."""
    return f"{word(caller_id)}.#"


def prefetch(highest: RiskLevel | None) -> int:
    """Return how many deliveries a caller takes at once, by its riskiest session (layer 2)."""
    return 1 if highest in ("R4", "R5") else 10
