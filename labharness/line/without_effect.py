"""Whether a value that was confirmed does anything: a read-back shows the value, not its effect.

A setpoint is taken in manual and nothing heats; a flow is taken behind a shut valve and nothing
flows. Which channel has to hold which value is the driver's row, and which relay stands before an
instrument is the line's: no name of either is known here.
"""

from collections.abc import Awaitable, Callable, Iterator

from labharness.line.exchanges import NoReply
from labharness.line.parts import Instrument

__all__ = ["Idle"]


class Idle:
    """Looks for what keeps a confirmed value from acting.

    The last poll is believed where it says that the value acts. What it says else is measured
    again, because it may be older than the command before.

    Args:
        latest: Gives the last fresh reading of a channel; NaN where there is none.
        read: Measures a channel of the line now; raises ``NoReply``.
    """

    def __init__(
        self, latest: Callable[[str], float], read: Callable[[str], Awaitable[float]]
    ) -> None:
        self._latest = latest
        self._read = read

    async def why(self, instrument: Instrument, channel: str, value: float) -> str:
        """Return why a confirmed value has no effect now; ``""`` where it may have one.

        Args:
            instrument: Whose channel was set.
            channel: Its name there.
            value: What it was set to; 0 asks for nothing, so nothing is missing.
        """
        driven = [each for each in instrument.driver.off or () if channel in each.drives]
        if not driven or value == 0:
            return ""
        found = [
            otherwise
            for name, acts, otherwise in _needed(instrument, channel)
            if await self._hinders(name, acts)
        ]
        return f"{' and '.join(found)}, so {driven[0].adds.nothing}" if found else ""

    async def _hinders(self, channel: str, acts: Callable[[float], bool]) -> bool:
        if acts(self._latest(channel)):
            return False
        try:
            return not acts(await self._read(channel))
        except (NoReply, LookupError):  # in no scan, or silent: its silence is told elsewhere
            return False


def _needed(
    instrument: Instrument, channel: str
) -> Iterator[tuple[str, Callable[[float], bool], str]]:
    """Return the channels that say whether a value acts, when it does, and the words where not."""
    acts = instrument.driver.channels[channel].acts_while
    if acts is not None:
        yield f"{instrument.name}.{acts.channel}", acts.values.__contains__, acts.otherwise
    for each in instrument.fed_by:
        if each.off is not None:
            yield each.channel, _unlike(each.off), f"{each.channel} is off ({each.off:g})"


def _unlike(off: float) -> Callable[[float], bool]:
    return lambda found: found == found and found != off
