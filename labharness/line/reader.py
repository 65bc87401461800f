"""Reading a line on demand: channels, and what an instrument tells that is no number."""

import asyncio
from collections.abc import Callable, Mapping, Sequence

from labharness.core.vocabulary import BadReply, DeviceFault
from labharness.line.exchanges import Exchanges, NoReply
from labharness.line.parts import BoundScan, Instrument, channel_of, query_of
from labharness.safety.kernel import Memory

__all__ = ["READ_TRIES", "Reader"]

READ_TRIES = 2


class Reader:
    """Asks instruments now, beside the polls.

    Attributes:
        polled: Every channel that the line polls, in the order of its scans.

    Args:
        memory: Where readings are folded in.
        instruments: Whose channels are read.
        scans: By channel, the scan that has it.
        exchanges: The way to the ports.
        loop: Whose time it keeps.
        take: Takes the values of a scan into memory and journal.
        note: Records a fact if it can; it must not raise.
    """

    def __init__(
        self,
        *,
        memory: Memory,
        instruments: Mapping[str, Instrument],
        scans: Mapping[str, BoundScan],
        exchanges: Exchanges,
        loop: asyncio.AbstractEventLoop,
        take: Callable[[BoundScan, tuple[float, ...]], None],
        note: Callable[[str, Mapping[str, object]], None],
    ) -> None:
        self._memory = memory
        self._instruments = instruments
        self._scan_of = scans
        self.polled = tuple(channel for channel, scan in scans.items() if scan.ticks)
        self._exchanges = exchanges
        self._loop = loop
        self._take = take
        self._note = note

    async def read(self, channel: str, *, patient: bool = False) -> float:
        """Measure one channel now, or after everybody else who wants its port.

        Raises:
            NoReply: The instrument does not answer in form.
            LookupError: There is no such channel.
        """
        scan = self._scan_of.get(channel)
        if scan is None:
            channel_of(self._instruments, channel)
            raise LookupError(f"{channel} is in no scan, so it cannot be read")
        only = scan.scan.only_while
        if only is not None:
            await self.read(f"{scan.instrument}.{only.channel}", patient=patient)
            if not scan.answers:
                raise NoReply(f"{channel}: {only.otherwise}")
        why = ""
        for _ in range(READ_TRIES):
            try:
                reply = await self._exchanges.ask(scan.port, scan.scan.request, patient=patient)
                self._take(scan, scan.scan.decode(reply))
            except (BadReply, DeviceFault, NoReply) as error:
                why = str(error)
                continue
            return self._memory.tracks[channel].value
        raise NoReply(f"{channel}: {why}")

    async def read_all(self, channels: Sequence[str], within_s: float) -> dict[str, float]:
        """Measure channels now, ports side by side and each scan once; give those that answered.

        Args:
            channels: What to measure.
            within_s: Longest wait; who has not answered by then is left out.
        """
        asked: dict[BoundScan, str] = {}
        for channel in channels:
            asked.setdefault(self._scan_of[channel], channel)
        looks = {scan: self._loop.create_task(self.read(name)) for scan, name in asked.items()}
        if looks:
            await asyncio.wait(looks.values(), timeout=within_s)
        answered = set()
        for scan, look in looks.items():
            if not look.done():
                look.cancel()
            elif look.exception() is None:
                answered.add(scan)
            elif not isinstance(look.exception(), NoReply):
                self._note("look_failed", {"scan": scan.scan.name, "error": repr(look.exception())})
        return {
            channel: self._memory.tracks[channel].value
            for channel in channels
            if self._scan_of[channel] in answered
        }

    async def query(self, instrument: str, name: str) -> object:
        """Ask an instrument for something that is no number (its identity, a spectrum).

        Raises:
            NoReply: The instrument does not answer in form.
            LookupError: There is no such query.
        """
        owner = self._instruments[instrument]
        query = query_of(owner, name)
        why = ""
        for tried in range(READ_TRIES):
            try:
                # a late answer to the first try would pass for that to the second: ask once more
                for _ in range(1 + tried):
                    reply = await self._exchanges.ask(owner.port, query.request)
                return query.decode(reply)
            except (BadReply, DeviceFault, NoReply) as error:
                why = str(error)
        raise NoReply(f"{instrument} ({owner.kind}): {why}")
