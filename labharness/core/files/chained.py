"""Logs of JSON lines that only grow: each line holds the digest of the line before it.

A line that is changed, put in or taken out is seen. It cannot be seen that lines at the end are
gone, or that the whole file is as it was some time ago.
"""

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from labharness.core.clock import pause
from labharness.core.errors import LabError
from labharness.core.files.durable import append_durably, sync_folder
from labharness.core.files.named import hold_alone, open_own
from labharness.core.vocabulary.digests import digest_of
from labharness.core.vocabulary.texts import Text

AFTER = "after"  # the key of the digest
LOOK_S = 0.01
LOOKS = 500  # 5 s, for another process that appends

ChainedLine = tuple[Mapping[str, Any], bytes]
"""The body of a line, and its bytes."""


class BrokenChain(LabError, ValueError, code="broken_chain"):
    """A line is not the one that was written; the message says which.

    Attributes:
        number: Of the line, from 1.
    """

    def __init__(self, path: Path, number: int) -> None:
        super().__init__(Text("chained.broken", path=str(path), number=number))
        self.number = number


def read_chained(path: Path) -> Iterator[ChainedLine]:
    """Return the lines of a log, the oldest first; of a log that is not there, none.

    A power cut may leave half a line, which says nothing; the next one answers for it. Lines before
    the first one with a digest are left out.

    Raises:
        BrokenChain: A line is not the one that was written.
        OSError: It cannot be read.
    """
    before, chained = b"", False
    for number, line in enumerate(_lines(path), 1):
        body = _body(line)
        if body is not None and (chained or AFTER in body):
            if body.get(AFTER) != digest_of(before):
                raise BrokenChain(path, number)
            chained = True
            yield body, line
        before = line


def append_chained(path: Path, body: Mapping[str, Any]) -> None:
    """Add a line; it outlives a power cut from when this returns. Several processes may.

    Raises:
        OSError: The disk does not take it, or another process appends for longer than 5 s.
    """
    with os.fdopen(open_own(path, os.O_RDWR), "rb") as file, _locked(file):
        lines = [line for line in file.read().split(b"\n") if line]
        line = {**body, AFTER: digest_of(lines[-1] if lines else b"")}
        append_durably(path, json.dumps(line, ensure_ascii=False))
        if not lines:
            sync_folder(path.parent)


def _lines(path: Path) -> list[bytes]:
    try:
        return [line for line in path.read_bytes().split(b"\n") if line]
    except FileNotFoundError:
        return []


def _body(line: bytes) -> dict[str, Any] | None:
    try:
        body = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return body if isinstance(body, dict) else {}


@contextmanager
def _locked(file: IO[bytes]) -> Iterator[None]:
    """Hold the one right to append; the system gives it back when the file is closed."""
    for _ in range(LOOKS):
        with suppress(OSError):
            hold_alone(file.fileno())
            break
        pause(LOOK_S)
    else:
        raise TimeoutError(Text("chained.busy", within_s=LOOKS * LOOK_S))
    yield
