"""The guard as a service: watch its socket and folder, report to systemd.

Without its socket or folder a guard cannot be reached: no program can stop the line, and the next
one finds neither its owner nor its latch. The loop that does the work tells systemd that the guard
is ready and that it lives.
"""

import os
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from threading import Thread

from labharness.instruments.link.local import notify

LOOK_S = 1.0
"""Time between two looks; a loss is noticed within two of them."""


class DoorPaths:
    """The files at some paths when this was made.

    Args:
        paths: A socket, and the folder that it lies in.
    """

    def __init__(self, paths: Sequence[Path]) -> None:
        self._stood = {path: _which(path) for path in paths}

    def lost(self) -> str:
        """Return which of them has gone, in one sentence; ``""`` for none."""
        for path, which in self._stood.items():
            now = _which(path)
            if now != which:
                return f"{path} was {'removed' if now is None else 'replaced'} under its owner"
        return ""


class BackgroundWork:
    """Work that may hang, in a thread: one piece at a time, each some time after the one before.

    Args:
        apart_s: Shortest time between the beginnings of two pieces.
    """

    def __init__(self, apart_s: float) -> None:
        self._apart_s = apart_s
        self._next_s = 0.0
        self._thread: Thread | None = None

    @property
    def busy(self) -> bool:
        """Whether one is under way."""
        return self._thread is not None and self._thread.is_alive()

    def begin(self, now: float, work: Callable[..., None], *args: object) -> None:
        """Begin one if it is time for it and none is under way; waits for nothing."""
        if now < self._next_s or self.busy:
            return
        self._next_s = now + self._apart_s
        self._thread = Thread(target=work, args=args, daemon=True)
        with suppress(RuntimeError):  # no more threads: the next time has some
            self._thread.start()

    def wait(self, within_s: float | None = None) -> None:
        """Wait until none is under way."""
        if self._thread is not None and self.busy:
            self._thread.join(within_s)


class Door(BackgroundWork):
    """Looks at paths in a thread: a network share that hangs does not block the guard.

    Args:
        paths: The paths.

    Attributes:
        lost: The path that has gone, in one sentence; ``""`` for none.
    """

    def __init__(self, paths: Sequence[Path]) -> None:
        super().__init__(LOOK_S)
        self.lost = ""
        self._places = DoorPaths(paths)

    def look(self, now: float) -> None:
        """Begin a look if one is due; waits for nothing."""
        if not self.lost:
            self.begin(now, self._look)

    def _look(self) -> None:
        self.lost = self._places.lost()


def _which(path: Path) -> tuple[int, int] | None:
    try:
        found = os.lstat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


class Notifier:
    """Speaks sd_notify; silent without ``NOTIFY_SOCKET``.

    Attributes:
        every_s: Period of the reports that the loop lives: half of the unit's ``WatchdogSec``,
            ``inf`` without one.
    """

    def __init__(self) -> None:
        address = os.environ.get("NOTIFY_SOCKET", "")
        self._address = re.sub("^@", "\0", address)  # a name without a path
        limit_us = os.environ.get("WATCHDOG_USEC", "")
        ours = os.environ.get("WATCHDOG_PID", "") in ("", str(os.getpid()))
        self.every_s = float("inf")
        if ours and limit_us.isdecimal() and int(limit_us):
            self.every_s = int(limit_us) / 2e6

    def say(self, text: str) -> None:
        """Send ``READY=1``, ``WATCHDOG=1`` or ``STOPPING=1``; never wait, never fail."""
        if self._address:
            notify(self._address, text)
