"""Names of exchanges, queues and topics, and the AMQP properties of a message (HCP layer 1)."""

from typing import Final

from labharness.protocols.hcp.codec import HcpMessage

__all__ = [
    "COMMANDS",
    "DEAD",
    "EVENTS",
    "command_queue",
    "dead_queue",
    "event_queue",
    "topic",
    "word",
]

COMMANDS: Final = "hcp.commands"
EVENTS: Final = "hcp.events"
DEAD: Final = "hcp.dead"

_SPECIAL: Final = "%.*#"
"""Characters with a meaning in a topic, and the one that escapes them (ruling 24)."""


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
    """Return the queue of what a callee could not read, with the reason."""
    return f"hcp.dead.{callee_id}"


def topic(caller_id: str, session_id: str, message: HcpMessage) -> str:
    """Return the topic of a message to a caller."""
    return f"{word(caller_id)}.{session_id}.{message.type}"
