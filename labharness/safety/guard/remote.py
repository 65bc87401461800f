"""The harness's end of the guard process: the same interface to a line, over a socket.

Its picture of the guard (epoch, free ports, latch) is the last message of the guard plus the
requests of the harness that the guard has not taken yet. If that picture is wrong, the guard
refuses; it never permits by mistake.

One guard made of two: ports that the guard process holds, and ports that stay in this process.
Permits are voided on both sides. A trip goes to the guard process first: once its bytes are in the
socket, nothing in this process can delay them.
"""

import asyncio
import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import labharness.safety.guard.messages as messages
from labharness.core.clock import steady_s
from labharness.core.files.durable import write_durably
from labharness.core.files.named import open_named
from labharness.core.vocabulary import Cause, Request, Trip
from labharness.instruments.link import LinkLost, local
from labharness.safety.guard.armed import ARMED_FILE, Armed, arming_digest
from labharness.safety.guard.contract import Done, LatchView, Shell, Tells
from labharness.safety.guard.core import PERMIT_S_MAX, NotPermitted, Permit
from labharness.safety.guard.port import SafeFrame
from labharness.safety.guard.port_records import PortLatch
from labharness.safety.guard.remote_parts import Child, GuardedLink, SeenLatch, Stream
from labharness.safety.guard.shell import LoopGuard

BEAT_S = 0.1  # a fifth of the silence that a guard bears
OPEN_S_MAX = 10.0  # from nothing to a guard whose ports are open
LINK_S_MAX = 4.0  # for a guard to open one: a second till it may, one for a name, one to connect
KEPT_S = 1.0  # for a guard that systemd or a person keeps to come back, before one is started here
STARTS_MAX = 3
RETURN_S = 2.0  # between two tries to bring a lost one back
RETURNS_MAX = 10_000  # hours of trying: only its guard makes the line safe
AGAIN_S = 0.2
BRIEF_S = 1.0  # one that came back and was lost within this is given as long before the next try
LOOK_S = 0.01  # between two tries at its door
HANGS_S = 2.0  # beyond the end of an exchange: a guard that has not told of it stands still
ANSWER_S_MAX = 5.0  # for what takes the guard's disk
LEAVE_S_MAX = 2.0  # a guard that was asked to go is waited for this long


class RemoteGuard(Shell):
    """A guard in a process of its own.

    Args:
        armed: The arming; written to its file when the line is opened.
        state_dir: State directory of the lab.
        command: Starts a guard for this lab if none runs.
        near: The latch of ports that stay in this process.
    """

    heartbeat_s = BEAT_S

    def __init__(
        self,
        armed: Armed,
        state_dir: Path,
        command: Sequence[str],
        near: PortLatch | None = None,
    ) -> None:
        ports = [port.name for port in armed.ports]
        super().__init__(ports)
        self.procedures = armed.procedures
        self.latch: LatchView = SeenLatch(state_dir / "latch.json", near)
        self._armed = armed
        self._text = armed.text()
        self._state_dir = state_dir
        self._loop = asyncio.get_running_loop()
        self._child = Child(command, state_dir / "guard.log")
        self._places = messages.places(armed.procedures)
        self._proof_s = {port.name: port.proof_s for port in armed.ports}
        self._free = dict.fromkeys(ports, False)
        self._shut: dict[str, str] = {}  # links that the guard could not open, and why
        self._busy_since = dict.fromkeys(ports, 0)  # number of the message that took the port
        self._asked: dict[str, tuple[int, Done, float] | None] = dict.fromkeys(ports)
        self._heartbeat_s = 0.0  # counted in heartbeats: the machine may stand still with both ends
        self._transport: asyncio.Transport | None = None
        self._opening = asyncio.Lock()
        self._welcome: asyncio.Future[str] | None = None
        self._answer: asyncio.Future[str] | None = None  # to the last request
        self._returning: asyncio.Task[None] | None = None
        self._trip: Trip | None = None  # the last, and so the gravest, that this end asked for
        self._lost = "the guard process was not reached yet"
        self._met_s = 0.0  # when it let us in
        self._kept = False  # by systemd or a person, who get time to bring it back
        self._closed = False
        self._key = b""
        self._told = 0  # messages sent to this guard
        self._epoch = 0  # as last said
        self._moves_ahead = 0  # of the epoch, asked and not yet taken
        self._moves_told = 0
        self._number = 0  # of permits
        self._is_armed = False
        self._is_latched = self.latch.trip is not None

    # ---- opening and closing

    def link(self, port: str) -> GuardedLink:
        """Return the link of one port, to open and to name."""
        kinds = {each.name: each.link for each in self._armed.ports}
        return GuardedLink(self, port, kinds[port])

    async def open(self) -> None:
        """Reach a guard that holds this arming; start one where none runs.

        The arming is written where no guard answers, and where the one that lets this harness in
        has another: it is not changed under a line that somebody else has armed.

        Raises:
            LinkLost: No guard could be reached; says why.
        """
        async with self._opening:  # many links are opened at once, and it has one door
            if self._transport is None:
                await self._open()

    async def open_port(self, port: str) -> None:
        """Reach a guard, and wait while it is opening one link.

        Raises:
            LinkLost: No guard could be reached, or this link does not open; the others may.
        """
        await self.open()
        until_s = self._loop.time() + LINK_S_MAX
        while self._shut.get(port) == "" and not self._lost:
            if self._loop.time() >= until_s:
                break
            await asyncio.sleep(LOOK_S)
        if self._lost or port in self._shut:
            raise LinkLost(self._lost or self._shut[port] or f"not open within {LINK_S_MAX:g} s")

    async def _open(self) -> None:
        reached = False
        try:
            async with asyncio.timeout(OPEN_S_MAX):
                await self._reach()
            reached = True
        except TimeoutError:
            why = self._child.complaint() or "it does not answer"
            raise LinkLost(f"guard process of {self._state_dir}: {why}") from None
        except OSError as why:
            if isinstance(why, LinkLost):
                raise
            raise LinkLost(f"guard process of {self._state_dir}: {why}") from None
        finally:
            if not reached and self._transport is not None:
                transport, self._transport = self._transport, None
                transport.abort()

    def _write_arming(self) -> None:
        path = self._state_dir / ARMED_FILE
        with suppress(OSError), open_named(path) as file:  # anything but a file is replaced by one
            if file.read() == self._text.encode():
                return
        write_durably(path, self._text)

    async def _reach(self) -> None:
        path = self._state_dir / local.GUARD
        starts = 0
        not_before_s = self._loop.time() + (KEPT_S if self._kept else 0.0)
        while True:  # open() bounds it in time
            self._welcome = self._loop.create_future()
            try:
                await local.reach(path, lambda: Stream(self), self._loop)
            except (FileNotFoundError, ConnectionRefusedError):
                if not self._child.running() and self._loop.time() >= not_before_s:
                    if starts == STARTS_MAX:
                        raise LinkLost(self._child.complaint() or "it does not stay") from None
                    await asyncio.sleep(AGAIN_S * starts)  # another's may just be beginning
                    starts += 1
                    self._write_arming()
                    self._child.start()
            else:
                said = await self._welcome
                if not said:
                    self._kept = not self._child.running()
                    return
                if said == "other_files":
                    self._write_arming()  # it makes place for one that reads it
                    self._tell(messages.ask("bye", retire=True))
                if said == "busy":
                    raise LinkLost("another harness is at the guard process of this lab")
            await asyncio.sleep(LOOK_S)

    def close(self) -> None:
        """Take leave; a guard that was started for this run ends."""
        self._closed = True
        self._lost = self._lost or "the guard is closed"
        if self._returning is not None:
            self._returning.cancel()
        transport, self._transport = self._transport, None
        if transport is not None:
            transport.write(messages.line_of(messages.ask("bye", retire=False)))
            transport.close()
        self._child.leave(LEAVE_S_MAX)

    # ---- ports

    def ready(self, port: str) -> bool:
        """Return whether an exchange may begin; without a guard it may, and fails at once."""
        return (self._free[port] or bool(self._lost)) and not self._closed

    def permit(self, port: str, request: Request) -> Permit:
        """Make a permit for a frame that the kernel has just allowed."""
        if self._lost or self._is_latched or not self._is_armed:
            why = self._lost or ("latched" if self._is_latched else "not armed")
            raise NotPermitted(f"no permit for port {port}: {why}")
        self._number += 1
        expires_us = math.floor((steady_s() + PERMIT_S_MAX) * 1e6)
        epoch = self._epoch + self._moves_ahead
        return Permit(self._number, port, request.frame, epoch, expires_us / 1e6)

    def exchange(self, port: str, request: Request, permit: Permit | None, done: Done) -> None:
        """Send one frame now; ``done(reply, error)`` is called once, later."""
        if self._closed:
            raise NotPermitted(f"port {port} is closed")
        if self._lost:
            self._loop.call_soon(done, None, self._lost)
            return
        number = self._told + 1
        rest: dict[str, object] = {"permit": None, "frame": request.frame.hex()}
        if permit is not None:
            sealed = {
                "number": permit.number,
                "epoch": permit.epoch,
                "expires_us": round(permit.expires_s * 1e6),
                "seal": messages.seal(self._key, permit, request),
            }
            rest = {
                "permit": messages.write_fields(messages.PERMIT, sealed),
                "request": messages.write_request(request),
            }
        self._take(port, number)
        takes_s = request.timeout_s + request.settle_s + self._proof_s[port]
        due_s = self._heartbeat_s + takes_s + HANGS_S
        self._asked[port] = (number, done, due_s)
        self._tell(messages.ask("send", port=port, number=number) | rest)

    def doubt(self, port: str) -> None:
        """Take a port for out of step: its last reply cannot be read."""
        self._take(port, self._told + 1)
        self._tell(messages.ask("doubt", port=port))

    def _take(self, port: str, number: int) -> None:
        """Count a port as taken until the guard has heard so many messages and says otherwise."""
        self._free[port] = False
        self._busy_since[port] = number

    # ---- making safe

    def trip(self, trip: Trip) -> None:
        """Have a procedure run: one write to the socket, before anything else."""
        self._moves(messages.ask("trip") | {"trip": messages.write_trip(trip)})
        self._trip = trip
        for frame in self.procedures[trip.procedure]:
            self._take(frame.port, self._told)
        self._is_latched = True
        self.latch.close(trip)

    def repeat(self, frames: Sequence[SafeFrame]) -> None:
        """Have single frames of a procedure sent, again or without a trip."""
        for frame in frames:
            self._take(frame.port, self._told + 1)
        self._tell(messages.ask("repeat", frames=[self._places[frame] for frame in frames]))

    def new_epoch(self) -> None:
        """Void every permit."""
        self._moves(messages.ask("epoch"))

    async def arm(self) -> None:
        """Let permits be made.

        Raises:
            NotPermitted: The line is latched, there is no guard, or it does not arm.
        """
        if self._is_latched or self._lost:
            why = self._lost or "the line is latched: it takes a reset by a named person"
            raise NotPermitted(why)
        error = "it was given up"
        try:
            error = await self._ask(messages.ask("arm", lost=self._armed.lost))
        finally:
            if error:  # one that answers too late is not left armed
                self.disarm()
        if error:
            raise NotPermitted(error)

    def disarm(self) -> None:
        """Make the line read-only again."""
        self._moves(messages.ask("disarm"))
        self._is_armed = False

    def heartbeat(self, procedure: str) -> None:
        """Report that the control loop lives, and name the procedure to run if it dies.

        A guard of ours that stands still is ended: the next one begins with the safe table.
        """
        self._tell(messages.ask("heartbeat", made_s=steady_s(), lost=procedure))
        if self._answer is None:  # while it waits for its disk, it may
            self._heartbeat_s += BEAT_S
        if any(
            asked is not None and asked[2] < self._heartbeat_s for asked in self._asked.values()
        ):
            self._child.end()

    async def reset(self) -> None:
        """Open the latch.

        Raises:
            OSError: The guard cannot, or does not answer.
        """
        error = await self._ask(messages.ask("reset"))
        if error:
            raise OSError(error)
        self._trip = None
        self.latch.open()

    async def _ask(self, message: messages.Line) -> str:
        """Ask for an action on the guard's disk; return the hindrance, ``""`` for none."""
        self._answer = self._loop.create_future()
        self._moves(message)
        try:
            async with asyncio.timeout(ANSWER_S_MAX):
                return self._lost or await self._answer
        except TimeoutError:
            return f"the guard does not answer within {ANSWER_S_MAX:g} s"
        finally:
            self._answer = None

    def _moves(self, message: messages.Line) -> None:
        """Send a request that moves the epoch, and count with the new one from now on."""
        if not self._lost:
            self._tell(message)
            self._moves_told += 1
            self._moves_ahead += 1

    # ---- the socket

    def _tell(self, message: messages.Line) -> None:
        if self._transport is not None:
            self._told += 1
            self._transport.write(messages.line_of(message))

    def connected(self, transport: asyncio.Transport) -> None:
        """Take over a connection; nothing is said before the welcome."""
        self._transport = transport
        self._told = self._moves_told = self._moves_ahead = 0
        self._busy_since = dict.fromkeys(self._busy_since, 0)

    def heard(self, message: object) -> None:
        """Take one message of the guard."""
        fields = messages.Fields(message, "message of the guard")
        what = fields.text("say")
        if what == "busy":
            _settle(self._welcome, "busy")
            return
        if what == "welcome":
            digest = fields.text("digest")
            if digest != arming_digest(self._text):
                _settle(self._welcome, "other_files")
                return
            self._take_welcome(
                **messages.read_fields(messages.SAYS["welcome"], fields, digest=digest)
            )
        self._take_standing(messages.read_fields(messages.STANDING, fields))
        kinds = {} if what == "welcome" else messages.SAYS.get(what, {})
        said = messages.read_fields(kinds, fields)
        if what == "ended":
            self._take_end(**said)
        elif what == "safe":
            name, place = said["frame"]
            self.on_safe_frame(self.procedures[name][place], said["error"])
        elif what == "tripped":
            trip = replace(said["trip"], at_s=self._loop.time())
            self.latch.close(trip)  # the guard knows the machine's time, and no lab time
            self.on_trip(trip)
        elif what == "lost":
            self.on_link_lost(said["port"], said["why"])
        elif what in ("armed", "reset"):
            _settle(self._answer, said["error"])
        for port in self._free:
            self._offer(port)

    def _take_welcome(
        self, *, digest: str, key: bytes, permits: int, trip: Trip | None, log: list[object]
    ) -> None:
        self._met_s = self._loop.time()
        self._key = key
        self._number = permits
        self._lost = ""
        self.latch.trip = trip
        if self._trip is not None:  # it came while none was reached, or before one was lost
            self.trip(self._trip)
        if self.on_offline_log([e if isinstance(e, dict) else {"what": str(e)} for e in log]):
            self._tell(messages.ask("imported"))
        _settle(self._welcome, "")

    def _take_standing(self, told: Mapping[str, Any]) -> None:
        """Take the fields `STANDING` of a message."""
        self._epoch = told["epoch"]
        self._moves_ahead = self._moves_told - told["moves"]
        ahead = self._is_latched and self._moves_ahead > 0
        self._is_latched = told["latched"] or ahead
        if not self._moves_ahead:
            self._is_armed = told["armed"]
        self.latch.write_error = told["write_error"]
        self._shut = told["shut"]
        for port in self._free:
            self._free[port] = port in told["free"] and told["heard"] >= self._busy_since[port]

    def _take_end(self, port: str, number: int, reply: bytes | None, error: str) -> None:
        asked = self._asked[port]
        if asked is None or asked[0] != number:
            return
        self._asked[port] = None
        asked[1](reply, error)

    def parted(self, transport: asyncio.Transport) -> None:
        """Take the end of a connection; do nothing if it was given up already."""
        if transport is not self._transport:
            return
        self._transport = None
        _settle(self._welcome, "retired")
        if self._lost:  # it never let us in
            return
        self._lost = "the guard process is gone; nothing can be written until it is back"
        self._is_armed = False
        _settle(self._answer, self._lost)
        for port, asked in self._asked.items():
            self._asked[port] = None
            if asked is not None:
                self._loop.call_soon(asked[1], None, self._lost)
        now_s = self._loop.time()
        again = self._returning is not None and now_s - self._met_s < BRIEF_S
        returning = self._return(BRIEF_S if again else 0.0)
        self._returning = self._loop.create_task(returning, name="guard returns")
        self.on_trip(Trip(Cause.COMMUNICATION, self._armed.lost, "guard", None, now_s, self._lost))
        for port in self._free:
            self._offer(port)

    async def _return(self, wait_s: float) -> None:
        """Reach the guard that comes back, or start one; it begins by making safe."""
        await asyncio.sleep(wait_s)
        for _ in range(RETURNS_MAX):
            with suppress(LinkLost):
                await self.open()
                return
            await asyncio.sleep(RETURN_S)


def _settle(waiting: "asyncio.Future[str] | None", said: str) -> None:
    if waiting is not None and not waiting.done():
        waiting.set_result(said)


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

    def at(self, port: str) -> "RemoteGuard | LoopGuard":
        """Return the guard that a port is with."""
        return self.near if port in self.near.core.ports else self.remote

    def trip(self, trip: Trip) -> None:
        """Run a procedure on both sides, the guard process first."""
        self.remote.trip(trip)
        self.near.trip(trip)

    def repeat(self, frames: Sequence[SafeFrame]) -> None:
        """Send frames of a procedure where their ports are."""
        far = [frame for frame in frames if self.at(frame.port) is self.remote]
        near = [frame for frame in frames if self.at(frame.port) is self.near]
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

    def _tripped(self, trip: Trip) -> None:
        """Void what this side has permitted, whatever the line makes of the trip."""
        self.near.new_epoch()
        self.near.core.latched = True
        self.on_trip(trip)
