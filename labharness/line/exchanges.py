"""Asking an instrument now: one exchange on its port, and reading on demand beside the polls."""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from labharness.core.errors import LabError
from labharness.core.vocabulary import BadReply, DeviceFault, Request
from labharness.core.vocabulary.requests import disobeyed
from labharness.core.vocabulary.texts import Text
from labharness.instruments.driver import Identity, Query
from labharness.line.instrument import BoundScan, Instrument, channel_of, query_of, spoilt
from labharness.safety.guard import Guard, NotPermitted, Shell
from labharness.safety.kernel import Memory

T = TypeVar("T")
READ_TRIES = 2

LOG = logging.getLogger(__name__)


class NoReply(LabError, ConnectionError, code="no_reply"):
    """An instrument did not answer, or not in form."""


@dataclass(eq=False)
class Exchanges:
    """The guard's callbacks as awaitables, for commands and reads on demand.

    Attributes:
        guard: The only way to the ports.
        loop: The event loop.
    """

    guard: Guard
    loop: asyncio.AbstractEventLoop

    def lease(self, port: str, *, patient: bool = False) -> "PortLease":
        """Return a lease: its user has the port for the length of an ``async with``."""
        return PortLease(self.guard.at(port), self.loop, port, patient=patient)

    async def ask(
        self,
        port: str,
        request: Request,
        decode: Callable[[bytes], T],
        *,
        before: tuple[Request, ...] = (),
        patient: bool = False,
        times: int = 1,
    ) -> T:
        """Send a read, await its reply and decode it.

        Args:
            port: The port.
            request: The read.
            decode: Function from its reply to what it says.
            before: Requests that go ahead of it, with nothing between.
            patient: Whether all other users of the port come first.
            times: How often it is sent; the last reply counts. Twice after a try that failed: a
                late answer to that one would pass for the answer to this one.

        Raises:
            NoReply: None came, or not in form.
            BadReply: It cannot be decoded.
            DeviceFault: One before it was refused.
        """
        async with self.lease(port, patient=patient) as lease:
            for _ in range(times):
                await lease.settle()
                for each in before:
                    if why := disobeyed(each, await lease.send(each)):
                        raise DeviceFault(why)
                reply = await lease.send(request)
            try:
                return decode(reply)
            except BadReply:
                if reply == request.frame:  # its form may be that of a reply
                    raise BadReply(Text("reply.own")) from None
                raise

    async def query(self, port: str, query: Query) -> object:
        """Ask for something and decode the reply; try once more if there is none.

        Raises:
            NoReply: No reply came, or not in form.
        """
        why = ""
        for tried in range(READ_TRIES):
            try:
                return await self.ask(
                    port, query.request, query.decode, before=query.before, times=1 + tried
                )
            except (BadReply, DeviceFault, NoReply) as error:
                why = str(error)
        raise NoReply(why)


@dataclass(eq=False)
class PortLease:
    """A port that is ours until the end of the block, whatever ends it."""

    guard: Shell
    loop: asyncio.AbstractEventLoop
    port: str
    patient: bool

    def __post_init__(self) -> None:
        self._owned = False

    async def __aenter__(self) -> "PortLease":
        await self._take()
        return self

    async def __aexit__(self, kind: object, why: object, trace: object) -> None:
        if isinstance(why, ValueError):  # of whatever question it is the answer
            self.guard.doubt(self.port)
        self._release()

    async def settle(self) -> None:
        """Wait until the port may send again; others may have it in between."""
        if not self.guard.ready(self.port):
            self._release()
            await self._take()

    async def send(self, request: Request, *, command: bool = False) -> bytes:
        """Send one frame now and await its reply.

        Args:
            request: The frame.
            command: Take a permit for it, because the kernel has just allowed it.

        Raises:
            NoReply: The guard refused, or no reply came, or not in form.
        """
        ended: asyncio.Future[tuple[bytes | None, str]] = self.loop.create_future()

        def done(reply: bytes | None, error: str) -> None:
            LOG.debug("%s < %r %s", self.port, reply, error)
            if not ended.done():
                ended.set_result((reply, error))

        try:
            permit = self.guard.permit(self.port, request) if command else None
            LOG.debug("%s > %r%s", self.port, request.frame, " by permit" if permit else "")
            self.guard.exchange(self.port, request, permit, done)
        except NotPermitted as why:
            LOG.debug("%s: refused by the guard: %s", self.port, why)
            raise NoReply(str(why)) from None
        reply, error = await ended
        if reply is None:
            raise NoReply(error)
        return reply

    async def _take(self) -> None:
        given: asyncio.Future[None] = self.loop.create_future()

        def give() -> None:
            if given.cancelled():  # its user has gone: the next one may have the port
                self.guard.release(self.port)
            else:
                self._owned = True
                given.set_result(None)

        self.guard.when_free(self.port, give, patient=self.patient)
        try:
            await given
        except asyncio.CancelledError:
            self.guard.leave(self.port, give)
            self._release()  # it may have been given in the same turn
            raise

    def _release(self) -> None:
        if self._owned:
            self._owned = False
            self.guard.release(self.port)


@dataclass(eq=False, kw_only=True)
class Reader:
    """Asks instruments now, beside the polls.

    Attributes:
        memory: The kernel's memory, which gets the readings.
        instruments: The instruments of the line.
        scans: By channel, the scan that has it.
        exchanges: The way to the ports.
        loop: The event loop.
        take: Takes the values of a scan into memory and journal; returns why they do not count.
        note: Records a fact if it can; it must not raise.
        record: Records a fact, or raises ``JournalFailed``.
        polled: Every channel that the line polls, in the order of its scans.
        identities: The identity of each instrument that was asked.
    """

    memory: Memory
    instruments: Mapping[str, Instrument]
    scans: Mapping[str, BoundScan]
    exchanges: Exchanges
    loop: asyncio.AbstractEventLoop
    take: Callable[[BoundScan, tuple[float, ...]], str]
    note: Callable[[str, Mapping[str, object]], None]
    record: Callable[[str, Mapping[str, object]], object]

    def __post_init__(self) -> None:
        self.identities: dict[str, Identity] = {}
        self.polled = tuple(channel for channel, scan in self.scans.items() if scan.ticks)

    async def read(self, channel: str, *, patient: bool = False) -> float:
        """Measure one channel now, or after all other users of its port.

        Raises:
            NoReply: The instrument does not answer in form, or shows that its reading is spoilt.
            LookupError: There is no such channel.
        """
        value = await self._measure(channel, patient=patient)
        owner, _, spec = channel_of(self.instruments, channel)
        if spec.sound_while is not None:
            await self._measure(f"{owner.name}.{spec.sound_while.channel}", patient=patient)
        if why := spoilt(self.instruments, self.memory, channel):
            raise NoReply(
                Text("reading.spoilt", channel=channel, why=why, value=value, unit=spec.unit)
            )
        return value

    async def _measure(self, channel: str, *, patient: bool) -> float:
        """Return what an instrument shows, sound or not."""
        scan = self.scans.get(channel)
        if scan is None:
            channel_of(self.instruments, channel)
            raise LookupError(Text("read.no_scan", channel=channel))
        only = scan.scan.only_while
        if only is not None:
            await self._measure(f"{scan.instrument}.{only.channel}", patient=patient)
            if not scan.answers:
                raise NoReply(Text("pair", what=channel, why=only.otherwise))
        why = ""
        for tried in range(READ_TRIES):
            try:
                each = scan.scan
                values = await self.exchanges.ask(
                    scan.port,
                    each.request,
                    each.decode,
                    before=each.before,
                    patient=patient,
                    times=1 + tried,
                )
                wrong = self.take(scan, values)
            except (BadReply, DeviceFault, NoReply) as error:
                why = str(error)
                continue
            if wrong:
                raise NoReply(Text("pair", what=channel, why=wrong))
            return self.memory.tracks[channel].value
        raise NoReply(Text("pair", what=channel, why=str(why)))

    async def read_all(self, channels: Sequence[str], within_s: float) -> dict[str, float]:
        """Measure channels now, ports side by side and each scan once; return those that answered.

        Args:
            channels: The channels.
            within_s: Longest wait; a channel that has not answered by then is left out.
        """
        asked: dict[BoundScan, str] = {}
        for channel in channels:
            asked.setdefault(self.scans[channel], channel)
        looks = {
            scan: self.loop.create_task(self._measure(name, patient=False))
            for scan, name in asked.items()
        }
        if looks:
            await asyncio.wait(looks.values(), timeout=within_s)
        answered = set()
        for scan, look in looks.items():
            if not look.done():
                look.cancel()
            elif look.exception() is None:
                answered.add(scan)
            elif not isinstance(look.exception(), NoReply):
                self.note("look_failed", {"scan": scan.scan.name, "error": repr(look.exception())})
        return {
            channel: self.memory.tracks[channel].value
            for channel in channels
            if self.scans[channel] in answered
        }

    async def query(self, instrument: str, name: str) -> object:
        """Ask an instrument for something other than a number (its identity, a spectrum).

        Raises:
            NoReply: The instrument does not answer in form.
            LookupError: There is no such query.
        """
        owner = self.instruments[instrument]
        query = query_of(owner, name)
        try:
            return await self.exchanges.query(owner.port, query)
        except NoReply as why:
            wrong = Text("instrument.wrong", instrument=instrument, kind=owner.kind, why=str(why))
            raise NoReply(wrong) from None

    async def identify(self, name: str) -> Identity:
        """Ask one instrument for its identity.

        Raises:
            NoReply: It is silent, or answers as another.
        """
        instrument = self.instruments[name]
        identity = await self.query(name, "identity")
        wrong: str = Text("instrument.no_name")
        if isinstance(identity, Identity):
            wrong = instrument.wrong_in(identity)
            if not wrong:
                self.identities[name] = identity
                said = {"model": identity.model, "firmware": identity.firmware}
                self.record("identified", {"instrument": name, **said})
                return identity
        raise NoReply(Text("instrument.wrong", instrument=name, kind=instrument.kind, why=wrong))

    async def prove(self, name: str) -> tuple[str, ...]:
        """Read the settings of an instrument that the lab file states; return each difference."""
        instrument = self.instruments[name]
        wrong = []
        for scan in instrument.driver.polled():
            polled_s = (instrument.polls or {}).get(scan.name, scan.period_s)
            if scan.name in instrument.driver.proves and polled_s is not None:
                try:
                    query = Query(scan.name, scan.request, scan.decode, scan.before)
                    await self.exchanges.query(instrument.port, query)
                except NoReply as why:
                    wrong.append(str(why))
        return tuple(wrong)

    async def meet(self, name: str) -> Identity:
        """Ask one instrument for its identity and its settings.

        Raises:
            NoReply: It is silent, answers as another, or is set otherwise than the lab file says.
        """
        identity = await self.identify(name)
        if wrong := await self.prove(name):
            why, kind = "; ".join(wrong), self.instruments[name].kind
            raise NoReply(Text("instrument.wrong", instrument=name, kind=kind, why=why))
        return identity
