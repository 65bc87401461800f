"""A guard process started by the harness: spawned, never forked, in a session of its own.

A fork would share the descriptors of the ports, and with them their locks. The session keeps a
Ctrl-C at the terminal from reaching the guard, whose work begins when the harness dies of it.
"""

import os
import signal
from collections.abc import Sequence
from pathlib import Path

from labharness.core.clock import steady_s
from labharness.core.clock.process import pause
from labharness.core.files.named import open_named, open_own

__all__ = ["Child"]

LOOK_S = 0.005
COMPLAINT_BYTES_MAX = 2000


class Child:
    """At most one living guard of ours.

    Args:
        command: Program and arguments.
        log: Where its output goes.
    """

    def __init__(self, command: Sequence[str], log: Path) -> None:
        self._command = list(command)
        self._log = log
        self.pid: int | None = None
        self._started = False

    def start(self) -> None:
        """Start it; raises ``OSError``."""
        self._started = True
        log = self._opened_log()
        try:
            self.pid = os.posix_spawn(
                self._command[0],
                self._command,
                os.environ,
                file_actions=[
                    (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                    (os.POSIX_SPAWN_DUP2, log, 1),
                    (os.POSIX_SPAWN_DUP2, log, 2),
                ],
                setsid=True,
            )
        finally:
            os.close(log)

    def _opened_log(self) -> int:
        """Open its log; a log that does not open keeps no guard from beginning."""
        try:
            return open_own(self._log, os.O_WRONLY | os.O_TRUNC, 0o600)
        except OSError:
            return os.open(os.devnull, os.O_WRONLY)

    def running(self) -> bool:
        """Return whether it lives, and bury it if not."""
        if self.pid is None:
            return False
        try:
            found, _ = os.waitpid(self.pid, os.WNOHANG)
        except ChildProcessError:  # somebody else buried it
            found = self.pid
        if found:
            self.pid = None
        return self.pid is not None

    def end(self) -> None:
        """End it at once, where it is still ours to end."""
        if self.running() and self.pid is not None:
            os.kill(self.pid, signal.SIGKILL)

    def complaint(self) -> str:
        """Return the last line that it said before it ended, if it said any."""
        if not self._started:  # what stands there is of an earlier run
            return ""
        try:
            with open_named(self._log) as file:
                said = file.read()[-COMPLAINT_BYTES_MAX:]
        except OSError:
            return ""
        lines = said.decode("utf-8", errors="replace").strip().splitlines()
        return lines[-1] if lines else ""

    def leave(self, within_s: float) -> None:
        """Wait until it has ended, so long at most; one with work left goes on by itself."""
        until_s = steady_s() + within_s
        while self.running() and steady_s() < until_s:
            pause(LOOK_S)
