"""The log of requests for approval, which only grows: the state of each request.

A request is open while its last entry in this log says that it was asked for. So files that come
back from a backup count for nothing, nor do any once the log is gone. Each line holds the digest of
the line before it: one that is changed, put in or taken out is seen. It cannot see that a whole
state directory is put back as it was: the journals of the runs do (`used_agreements`).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from labharness.core.errors import LabError
from labharness.core.files.chained import BrokenChain, append_chained, read_chained
from labharness.core.vocabulary.digests import digest_of
from labharness.core.vocabulary.texts import Text

ASKED: Final = "asked"
"""The state of a request that is still open."""


class BadLog(LabError, ValueError, code="bad_approval_log"):
    """The log cannot be read, or is not as it was written; the message says where."""


@dataclass(frozen=True, slots=True)
class Entry:
    """The last entry of a request in the log.

    Attributes:
        became: `ASKED`, or the way it was closed.
        at: When, UTC.
        request: Digest of the request; ``""`` for a closed one.
        ticket: Digest of the line that opened it, which no other line has; ``""`` for a closed one.
    """

    became: str
    at: str
    request: str = ""
    ticket: str = ""


class ApprovalLog:
    """The log of one lab's requests. It has one writer at a time: who owns the line.

    Args:
        path: The file; it need not be there.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self) -> dict[str, Entry]:
        """Return the last entry of each request, by its id.

        Raises:
            BadLog: It cannot be read, or a line is not the one that was written.
        """
        entries: dict[str, Entry] = {}
        try:
            for body, line in read_chained(self.path):
                entries[str(body.get("id"))] = _entry(body, line)
        except BrokenChain as why:
            text = Text("approval_log.broken", path=str(self.path), number=why.number)
            raise BadLog(text) from None
        except OSError as why:
            text = Text("file.unreadable", path=str(self.path), why=why.strerror or str(why))
            raise BadLog(text) from None
        return entries

    def append(self, body: Mapping[str, Any]) -> None:
        """Add a line; it outlives a power cut from when this returns.

        Raises:
            OSError: The disk does not take it.
        """
        append_chained(self.path, body)


def _entry(body: Mapping[str, Any], line: bytes) -> Entry:
    became, at = str(body.get("became")), str(body.get("at"))
    if became != ASKED:
        return Entry(became, at)
    return Entry(became, at, str(body.get("request")), digest_of(line))
