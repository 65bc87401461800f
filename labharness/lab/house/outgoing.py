"""The messages of a task that no journal holds, as files of the lab.

A message that goes to a caller is kept before it is sent, so that a house that starts again sends
the same one. The run's journal keeps events and answers. Kept here are the message that opens a
session (it is sent on receipt, before there is a run), the one that carries the token (no journal
has it), and what ends a session whose run has died.
"""

from pathlib import Path
from typing import Final, Literal

from labharness.core.files.durable import write_durably
from labharness.core.files.named import open_named
from labharness.protocols.hcp.codec import MESSAGE_BYTES_MAX, HcpMessage, decode, encode

__all__ = ["MESSAGES_MAX", "OutgoingFiles", "Part", "answer_file", "submit_file"]

Part = Literal["created", "accepted", "after"]
"""The message that opens a session, the one with its token, those behind its journal's end."""

MESSAGES_MAX: Final = 16
"""Most messages of one part."""


class OutgoingFiles:
    """The files of one lab, one a session and part; only its account may read them.

    Args:
        home: The lab's state directory.
    """

    def __init__(self, home: Path) -> None:
        self._folder = home / "outgoing"

    def keep(self, session_id: str, part: Part, *messages: HcpMessage) -> None:
        """Keep the messages of a part; they are on the disk before this returns.

        Raises:
            OSError: The disk does not take them.
        """
        self._folder.mkdir(mode=0o700, exist_ok=True)
        lines = b"".join(encode(each) + b"\n" for each in messages[:MESSAGES_MAX])
        write_durably(self._path(session_id, part), lines)

    def kept(self, session_id: str, part: Part) -> tuple[HcpMessage, ...]:
        """Return the messages of a part, in their order; none where there is no such file."""
        path = self._path(session_id, part)
        if not path.exists():
            return ()
        with open_named(path) as file:
            text = file.read(MESSAGES_MAX * (MESSAGE_BYTES_MAX + 1))
        return tuple(decode(each) for each in text.splitlines())

    def _path(self, session_id: str, part: Part) -> Path:
        return self._folder / f"{session_id}.{part}.jsonl"


def submit_file(home: Path, task_id: str) -> Path:
    """Return the file of a task's ``task_submit`` message, in the lab's state directory."""
    return home / "tasks" / f"{task_id}.json"


def answer_file(home: Path, task_id: str) -> Path:
    """Return the file of the answer to a task that was rejected before it had a run."""
    return home / "tasks" / f"{task_id}.answer.json"
