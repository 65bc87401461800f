"""Runs the reader of documents as a process behind limits, and says how it failed."""

import asyncio
import json
import os
import signal
import sys
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final

from labharness.core.vocabulary.extras import EXTRAS, all_to_install
from labharness.core.vocabulary.texts import CodedError
from labharness.work.capability.document_analysis.settings import DocumentSettings

READER: Final = "labharness.work.capability.document_analysis.reading"
ANSWER_BYTES_MAX: Final = 2 * 1_024 * 1_024
"""Most bytes of an answer: a hundred findings of 600 characters have a tenth of it."""

PASSED_ON = ("LANG", "LC_ALL", "PATH", "PYTHONHOME", "PYTHONPATH", "SYSTEMROOT", "VIRTUAL_ENV")
"""The environment of the reader: no secret of the house is in it."""

REASONS: Final = (
    *("document.damaged", "document.encrypted", "document.media_type", "document.no_text"),
    *("document.not_text", "document.not_utf8", "document.too_deep", "document.too_long"),
)
"""The texts of the words by which the reader says why a document cannot be read."""


class DocumentUnreadable(CodedError, ValueError, code="document_unreadable"):
    """The document cannot be read within the limits; the message says why."""


class ReaderLost(CodedError, RuntimeError, code="reader_lost"):
    """The reader ended without an answer, and not by a limit."""


async def read_apart(data: bytes, media_type: str, limits: DocumentSettings) -> Mapping[str, Any]:
    """Return what the reader found in a document, within its limits.

    Raises:
        DocumentUnreadable: It cannot be read, or not within the limits.
        ReaderLost: The reader was killed or crashed, or it cannot be started.
    """
    stated = limits.model_dump_json(include={"memory_mb", "cpu_s", "wall_s"})
    try:
        reader = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", READER, stated, media_type),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            env={name: os.environ[name] for name in PASSED_ON if name in os.environ},
            start_new_session=True,
        )
    except (OSError, NotImplementedError) as why:
        raise ReaderLost("document.no_reader", why=str(why)) from None
    try:
        async with asyncio.timeout(limits.wall_s):
            out = await _conversation(reader, data)
            code = await reader.wait()
    except TimeoutError:
        raise DocumentUnreadable("document.wall", most_s=limits.wall_s) from None
    finally:
        await _ended(reader)
    return _answer(out, code, limits)


async def _conversation(reader: asyncio.subprocess.Process, data: bytes) -> bytes:
    """Pass the document on, and take the answer meanwhile, so that neither pipe is full."""
    if reader.stdin is None or reader.stdout is None:
        raise ReaderLost("document.no_reader", why="pipe")
    giving = asyncio.ensure_future(_give(reader.stdin, data))
    out = b""
    try:
        while chunk := await reader.stdout.read(65_536):
            out += chunk
            if len(out) > ANSWER_BYTES_MAX:
                raise DocumentUnreadable("document.answer", most=ANSWER_BYTES_MAX)
        return out
    finally:
        giving.cancel()
        await asyncio.gather(giving, return_exceptions=True)


async def _give(stdin: asyncio.StreamWriter, data: bytes) -> None:
    with suppress(BrokenPipeError, ConnectionResetError):  # it has ended; its exit code says why
        stdin.write(data)
        await stdin.drain()
        stdin.close()


async def _ended(reader: asyncio.subprocess.Process) -> None:
    """Kill the reader and all that it started, if it still runs."""
    if reader.returncode is None:
        with suppress(ProcessLookupError):
            os.killpg(reader.pid, signal.SIGKILL)
    # asyncio waits for the end of the pipes too, and a full one stands still until it is read
    while reader.stdout is not None and await reader.stdout.read(65_536):
        pass
    await asyncio.shield(reader.wait())


def _answer(out: bytes, code: int, limits: DocumentSettings) -> Mapping[str, Any]:
    if code == -signal.SIGXCPU:
        raise DocumentUnreadable("document.cpu", most_s=limits.cpu_s)
    if code == -signal.SIGALRM:
        raise DocumentUnreadable("document.wall", most_s=limits.wall_s)
    try:
        found = json.loads(out) if code == 0 else None
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise ReaderLost("document.lost", code=code)
    if found.get("lacking") in EXTRAS:
        raise ReaderLost(all_to_install((found["lacking"],)))
    why = found.get("unreadable")
    if why == "memory":
        raise DocumentUnreadable("document.memory", most_mb=limits.memory_bytes // 1_000_000)
    if why is not None:
        told = f"document.{why}"
        raise DocumentUnreadable(told if told in REASONS else REASONS[0])
    return found
