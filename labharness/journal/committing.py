"""A thread that commits a journal's queue, so that no loop waits for a disk."""

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from threading import Lock, Thread
from typing import Final

from labharness.core.clock import steady_s
from labharness.journal.layout import JournalFailed

LOG = logging.getLogger(__name__)

COMMIT_S_MAX: Final = 5.0
"""Longest real time (s) of one commit, and of a wait for one: a disk that takes longer counts as
failed. It is also the bound for the thread's end."""


class CommitThread:
    """Commits when it is asked to, once for all who asked meanwhile, and tells those who wait.

    All but the commits themselves is of the one loop that appends.

    Args:
        commit: Makes all that is queued durable, or raises.
        durable_seq: Returns the newest record that is durable.
        speed: Lab seconds per real second, which the loop counts in.
    """

    def __init__(
        self, commit: Callable[[], None], durable_seq: Callable[[], int], speed: float
    ) -> None:
        self._commit = commit
        self._durable_seq = durable_seq
        self._wait_lab_s = COMMIT_S_MAX * speed
        self._idle = Lock()  # held until a commit is asked for; the thread waits for it
        self._idle.acquire()
        self._ended = False
        self._began_s: float | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._waiting: list[tuple[int, asyncio.Future[None]]] = []
        self._thread = Thread(target=self._live, name="journal", daemon=True)
        self._thread.start()

    def ask(self) -> None:
        """Have what is queued committed; return at once."""
        # Where two threads ask at one moment, the second one finds it free already.
        if self._idle.locked():
            with suppress(RuntimeError):
                self._idle.release()

    @property
    def late(self) -> bool:
        """Return whether a commit is under way for longer than `COMMIT_S_MAX`."""
        began_s = self._began_s
        return began_s is not None and steady_s() - began_s > COMMIT_S_MAX

    async def durable(self, seq: int) -> None:
        """Return when a record is durable.

        Raises:
            JournalFailed: A commit failed meanwhile, or takes longer than `COMMIT_S_MAX`.
        """
        self._loop = loop = asyncio.get_running_loop()
        told: asyncio.Future[None] = loop.create_future()
        waiter = (seq, told)
        self._waiting.append(waiter)
        self.ask()
        too_long = loop.call_later(self._wait_lab_s, _give_up, waiter)
        try:
            await told
        finally:
            too_long.cancel()
            self._waiting.remove(waiter)

    def end(self) -> bool:
        """Commit once more, and return whether the thread ended within `COMMIT_S_MAX`."""
        self._ended = True
        self.ask()
        self._thread.join(COMMIT_S_MAX)
        return not self._thread.is_alive()

    def _live(self) -> None:
        while not self._ended:
            self._idle.acquire()
            self._began_s = steady_s()
            failure = self._failure_of_commit()
            self._began_s = None
            if self._loop is not None:
                with suppress(RuntimeError):  # the loop is closed
                    self._loop.call_soon_threadsafe(self._tell, failure)

    def _failure_of_commit(self) -> str | None:
        try:
            self._commit()
        except JournalFailed as why:
            return str(why)
        except Exception as why:
            LOG.exception("a commit of the journal failed")
            return repr(why)
        return None

    def _tell(self, failure: str | None) -> None:
        durable_seq = self._durable_seq()
        for seq, told in self._waiting:
            if told.done():
                continue
            if seq <= durable_seq:
                told.set_result(None)
            elif failure is not None:
                told.set_exception(JournalFailed(failure))


def _give_up(waiter: tuple[int, asyncio.Future[None]]) -> None:
    seq, told = waiter
    if not told.done():
        told.set_exception(
            JournalFailed(f"record {seq} is not on the disk after {COMMIT_S_MAX:g} s")
        )
