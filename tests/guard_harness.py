"""A harness to be killed: a real control loop that energises one port over and over.

Run as a process of its own: ``guard_harness.py STATE_DIR [rude]``. SIGUSR1 makes it spin for ever.
A rude one goes on with the permits of the epoch it began in, whatever the guard has told it.
"""

import asyncio
import signal
import sys
from pathlib import Path

from labharness.core.clock import PacedLoop, run
from labharness.core.vocabulary import Request, Until
from labharness.line.exchanges import Exchanges, NoReply
from labharness.line.poll import Poller
from labharness.safety.guard import Permit
from labharness.safety.guard.armed import ARMED_FILE, read_armed
from labharness.safety.guard.remote import RemoteGuard

ON = Request(b"heat on\r", Until(b"\r"), 0.3)


class RudeGuard(RemoteGuard):
    """Forgets what it was told."""

    def permit(self, port: str, request: Request) -> Permit:
        """Make a permit of the first epoch."""
        self._is_latched, self._is_armed = False, True
        self._first = getattr(self, "_first", self._epoch + self._moves_ahead)
        self._epoch, self._moves_ahead = self._first, 0
        return super().permit(port, request)


def spin(*_: object) -> None:
    """Block the loop."""
    while True:
        pass


async def main(state_dir: Path, *, rude: bool) -> None:
    """Arm, heartbeat, and energise until killed."""
    loop = asyncio.get_running_loop()
    armed = read_armed((state_dir / ARMED_FILE).read_text("utf-8"))
    guard = (RudeGuard if rude else RemoteGuard)(armed, state_dir, ("/bin/false",))
    await guard.open()
    poller = Poller(
        loop, guard, [], 1.0, lambda *_: None, lambda: None, lambda: guard.heartbeat("stop")
    )
    await guard.arm()
    poller.start()
    exchanges = Exchanges(guard, loop)
    first = True
    while True:
        try:
            async with exchanges.lease("heat") as lease:
                await lease.settle()
                await lease.send(ON, command=True)
        except NoReply:
            await asyncio.sleep(0.01)
            continue
        if first:
            first = False
            sys.stdout.write("energised\n")
            sys.stdout.flush()


if __name__ == "__main__":
    signal.signal(signal.SIGUSR1, spin)
    run(main(Path(sys.argv[1]), rude="rude" in sys.argv), PacedLoop(1.0))
