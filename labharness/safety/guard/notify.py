"""ProgressReporter systemd: ready, and alive, from the loop that does the work and no other."""

import os
import re
import socket
from contextlib import suppress

__all__ = ["Notifier"]


class Notifier:
    """Speaks sd_notify; silent where nobody asked for it.

    Attributes:
        every_s: How often to say that the loop lives: half of what the unit's ``WatchdogSec``
            allows, ``inf`` without one.
    """

    def __init__(self) -> None:
        address = os.environ.get("NOTIFY_SOCKET", "")
        self._address = re.sub("^@", "\0", address)  # a name that is no path
        limit_us = os.environ.get("WATCHDOG_USEC", "")
        ours = os.environ.get("WATCHDOG_PID", "") in ("", str(os.getpid()))
        self.every_s = float("inf")
        if ours and limit_us.isdecimal() and int(limit_us):
            self.every_s = int(limit_us) / 2e6

    def say(self, text: str) -> None:
        """Send ``READY=1``, ``WATCHDOG=1`` or ``STOPPING=1``; never wait, never fail."""
        if self._address:
            with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
                sender.setblocking(False)
                sender.sendto(text.encode(), self._address)
