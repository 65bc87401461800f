"""One guard made of two: ports that the guard process holds, and ports that stay in this process.

Permits are voided on both sides. A trip goes to the guard process first: once its bytes are in the
socket, nothing in this process can delay them.
"""

from collections.abc import Callable, Mapping, Sequence

from labharness.core.vocabulary import Request, Trip
from labharness.safety.guard.contract import Done, LatchView, Tells
from labharness.safety.guard.core import Permit
from labharness.safety.guard.port import SafeFrame
from labharness.safety.guard.remote import RemoteGuard
from labharness.safety.guard.shell import LoopGuard


class SplitGuard(Tells):
    """A guard for a line whose ports are of both kinds.

    Args:
        remote: The guard process; it owns the latch.
        near: The guard on the loop, with the latch as ``remote`` sees it.
        procedures: All frames, of both guards.
    """

    def __init__(
        self,
        remote: RemoteGuard,
        near: LoopGuard,
        procedures: Mapping[str, tuple[SafeFrame, ...]],
    ) -> None:
        super().__init__()
        self.remote = remote
        self.near = near
        self.procedures = procedures
        self.latch: LatchView = remote.latch
        near.latch = remote.latch
        self.heartbeat_s = remote.heartbeat_s
        for each in (remote, near):
            each.on_safe_frame = lambda frame, error: self.on_safe_frame(frame, error)
        remote.on_trip = self._tripped
        remote.on_offline_log = lambda entries: self.on_offline_log(entries)
        remote.on_link_lost = lambda port, why: self.on_link_lost(port, why)

    def when_free(self, port: str, start: Callable[[], None], *, patient: bool = False) -> None:
        """Call ``start`` as soon as the port is free."""
        self._of(port).when_free(port, start, patient=patient)

    def leave(self, port: str, start: Callable[[], None]) -> None:
        """Leave the queue of a port."""
        self._of(port).leave(port, start)

    def release(self, port: str) -> None:
        """Return the port."""
        self._of(port).release(port)

    def ready(self, port: str) -> bool:
        """Return whether an exchange may begin."""
        return self._of(port).ready(port)

    def permit(self, port: str, request: Request) -> Permit:
        """Make a permit where the port is."""
        return self._of(port).permit(port, request)

    def exchange(self, port: str, request: Request, permit: Permit | None, done: Done) -> None:
        """Send one frame where the port is."""
        self._of(port).exchange(port, request, permit, done)

    def doubt(self, port: str) -> None:
        """Take a port for out of step where it is."""
        self._of(port).doubt(port)

    def trip(self, trip: Trip) -> None:
        """Run a procedure on both sides, the guard process first."""
        self.remote.trip(trip)
        self.near.trip(trip)

    def repeat(self, frames: Sequence[SafeFrame]) -> None:
        """Send frames of a procedure where their ports are."""
        far = [frame for frame in frames if self._of(frame.port) is self.remote]
        near = [frame for frame in frames if self._of(frame.port) is self.near]
        if far:
            self.remote.repeat(far)
        if near:
            self.near.repeat(near)

    def new_epoch(self) -> None:
        """Void every permit on both sides."""
        self.remote.new_epoch()
        self.near.new_epoch()

    async def arm(self) -> None:
        """Arm both sides, this one only where the guard process is."""
        await self.remote.arm()
        await self.near.arm()

    def disarm(self) -> None:
        """Disarm both sides."""
        self.remote.disarm()
        self.near.disarm()

    def heartbeat(self, procedure: str) -> None:
        """Report that the control loop lives."""
        self.remote.heartbeat(procedure)

    async def reset(self) -> None:
        """Open the latch where it is, and then here."""
        await self.remote.reset()
        self.near.core.reset()

    def close(self) -> None:
        """Close the links of this process, and take leave of the guard process."""
        self.near.close()
        self.remote.close()

    def _of(self, port: str) -> "RemoteGuard | LoopGuard":
        return self.near if port in self.near.core.ports else self.remote

    def _tripped(self, trip: Trip) -> None:
        """Void what this side has permitted, whatever the line makes of the trip."""
        self.near.new_epoch()
        self.near.core.latched = True
        self.on_trip(trip)
