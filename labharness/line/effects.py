"""Checks of effects: a confirmed value that does nothing, a heater that stays on after a stop.

A read-back shows that a controller holds a value, not its effect. A setpoint is taken in
manual and nothing heats; a flow is taken behind a shut valve and nothing flows. After a procedure a
contact may be welded, an output stage broken through, a valve may leak. So once every value of it
is verified, what is switched off has to read dark within the time that its driver states, and no
temperature may rise once its lag is over. That takes minutes, and is told late.
"""

import asyncio
import math
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from labharness.core.vocabulary import Command
from labharness.core.vocabulary.channels import split_channel
from labharness.core.vocabulary.texts import Text
from labharness.instruments.driver import Cools, Dark, Off
from labharness.line.exchanges import NoReply
from labharness.line.instrument import Instrument
from labharness.safety.kernel import Step


@dataclass(eq=False)
class Idle:
    """Looks for states that keep a confirmed value from acting.

    The last poll is believed if it shows that the value acts. Any other state is measured again,
    because the poll may be older than the command before.

    Attributes:
        latest: Gives the last fresh reading of a channel; NaN where there is none.
        read: Measures a channel of the line now; raises ``NoReply``.
    """

    latest: Callable[[str], float]
    read: Callable[[str], Awaitable[float]]

    async def why(self, instrument: Instrument, channel: str, value: float) -> str:
        """Return why a confirmed value has no effect now; ``""`` where it may have one.

        Args:
            instrument: The instrument.
            channel: Its channel that was set.
            value: The value; 0 asks for nothing, so nothing is missing.
        """
        driven = [each for each in instrument.driver.off or () if channel in each.drives]
        if not driven or value == 0:
            return ""
        found = [
            otherwise
            for name, _, acts, otherwise in _needed(instrument, channel)
            if await self._hinders(name, acts)
        ]
        nothing = driven[0].adds.nothing
        return Text("command.no_effect", found=found, nothing=nothing) if found else ""

    async def _hinders(self, channel: str, acts: Callable[[float], bool]) -> bool:
        if acts(self.latest(channel)):
            return False
        try:
            return not acts(await self.read(channel))
        except (NoReply, LookupError):  # in no scan, or silent: its silence is told elsewhere
            return False


def _needed(
    instrument: Instrument, channel: str
) -> Iterator[tuple[str, str, Callable[[float], bool], str]]:
    """Return what shows whether a value acts: channel, the one that sets it, test and text."""
    acts, name = instrument.driver.channels[channel].acts_while, instrument.name
    if acts is not None:
        shown_by, set_by = f"{name}.{acts.channel}", f"{name}.{acts.setter}"
        yield shown_by, set_by, acts.values.__contains__, acts.otherwise
    for each in instrument.fed_by:
        if each.off is not None:
            otherwise = Text("command.off", channel=each.channel, value=each.off)
            yield each.channel, each.channel, _unlike(each.off), otherwise


def idle_steps(
    commands: Sequence[tuple[str, Command]],
    begins: Mapping[str, float],
    instruments: Mapping[str, Instrument],
    latest: Callable[[str], float],
    rests: Callable[[str], float],
) -> tuple[str, ...]:
    """Return texts for the steps of a plan whose confirmed values would have no effect.

    Args:
        commands: Every command of the plan, with its step.
        begins: The values that arming sets; any other channel is as it was read last.
        instruments: The instruments of the line.
        latest: Gives the last fresh reading of a channel; NaN where there is none.
        rests: Gives the highest value of a channel that needs no effect.
    """
    found: dict[str, str] = {}
    planned: dict[str, list[float]] = {}
    for _, command in commands:
        planned.setdefault(command.channel, []).append(command.value)
    for step, command in commands:
        owner, own = split_channel(command.channel)
        instrument = instruments.get(owner)
        driven = instrument and [each for each in instrument.driver.off or () if own in each.drives]
        if not instrument or not driven or command.value <= rests(command.channel):
            continue
        for name, setter, acts, otherwise in _needed(instrument, own):
            first = begins.get(setter, latest(name))
            if first == first and not any(map(acts, (first, *planned.get(setter, ())))):
                nothing, asked = driven[0].adds.nothing, command.text
                why = Text(
                    "plan.idle",
                    step=step,
                    asked=asked,
                    found=otherwise,
                    nothing=nothing,
                    channel=setter,
                )
                found.setdefault(command.channel, why)
    return tuple(found.values())


def _unlike(off: float) -> Callable[[float], bool]:
    return lambda found: found == found and found != off


NAN = math.nan
LOOK_S = 0.25  # pause between two looks at what still has to become dark
READ_S_MAX = 2.0  # for one look; a silent channel is looked at again

Read = Callable[[Sequence[str], float], Awaitable[Mapping[str, float]]]


@dataclass(frozen=True, slots=True)
class _Source:
    """A source of heat, gas or light that is off after a procedure, or has to be.

    Attributes:
        owner: The instrument that adds it.
        off: The driver's row.
        steps: The texts of the steps that switch it off.
        relay: Whether a relay before it is among them.
    """

    owner: Instrument
    off: Off
    steps: tuple[str, ...]
    relay: bool

    @property
    def though(self) -> str:
        """Name the steps that were verified."""
        if not self.steps:
            return Text("effect.none_off")
        code = "effect.though.one" if len(self.steps) == 1 else "effect.though"
        return Text(code, steps=self.steps)


@dataclass(eq=False)
class Effects:
    """Checks the effects of the steps of a procedure.

    Attributes:
        instruments: The line's.
        read: Measures channels now, each for so long at most; those that answer are in its result.
        now_s: Lab time.
    """

    instruments: Mapping[str, Instrument]
    read: Read
    now_s: Callable[[], float]

    async def dark(self, steps: Sequence[Step]) -> tuple[str, ...]:
        """Wait until all sources read off after the steps; return texts for those that do not."""
        since_s = self.now_s()
        left = [
            (each, each.off.dark)
            for each in _off_after(steps, self.instruments)
            if each.off.dark is not None and not (each.relay and each.off.dark.before_relay)
        ]
        said: list[str] = []
        while left:
            names = [f"{each.owner.name}.{dark.channel}" for each, dark in left]
            seen = await self._seen(names)
            late: list[tuple[_Source, Dark]] = []
            for name, (each, dark) in zip(names, left, strict=True):
                value = seen.get(name)
                if value is not None and value <= dark.at_most:
                    continue
                if self.now_s() - since_s < dark.within_s:
                    late.append((each, dark))
                else:
                    said.append(_lit(each, name, value))
            left = late
            if left:
                await asyncio.sleep(LOOK_S)
        return tuple(said)

    async def hot(self, steps: Sequence[Step]) -> tuple[str, ...]:
        """Return the temperatures behind the steps at which a rise would be dangerous."""
        rows = self._rows(steps)
        seen = await self._seen(tuple(rows))
        return tuple(name for name, row in rows.items() if not seen.get(name, NAN) <= row.above)

    async def cooling(self, steps: Sequence[Step]) -> tuple[str, ...]:
        """Wait for each temperature's lag, and longer; return the texts of those that rise."""
        hot = await self.hot(steps)
        rows = self._rows(steps).items()
        said = await asyncio.gather(*(self._watched(name, row, name in hot) for name, row in rows))
        return tuple(filter(None, said))

    async def _watched(self, name: str, row: Cools, hot: bool) -> str:
        await asyncio.sleep(row.lag_s)
        before = (await self._seen((name,))).get(name, NAN)
        await asyncio.sleep(row.over_s)
        after = (await self._seen((name,))).get(name, NAN)
        return warmer(name, row, before, after, hot=hot)

    async def _seen(self, names: Sequence[str]) -> Mapping[str, float]:
        try:
            return await self.read(names, READ_S_MAX) if names else {}
        except LookupError:  # a driver's row names what no scan reads
            return {}

    def _rows(self, steps: Sequence[Step]) -> dict[str, Cools]:
        return {
            f"{each.owner.name}.{row.channel}": row
            for each in _off_after(steps, self.instruments)
            for row in each.owner.cools
        }


def warmer(name: str, row: Cools, before: float, after: float, *, hot: bool = True) -> str:
    """Return the text that a temperature rises, or is not known; ``""`` if it does not rise.

    Args:
        name: The temperature.
        row: Its expected course once nothing heats.
        before: Its value after its lag; NaN if it was not read.
        after: Its value at the end; NaN if it was not read.
        hot: Whether it was hot at first: the silence of a cold one is reported elsewhere.
    """
    if before != before or after != after:
        return Text("effect.unread", channel=name) if hot else ""
    if after - before <= row.rise_max or after <= row.above:
        return ""
    within_s, unit = row.over_s, row.unit
    return Text(
        "effect.rises", channel=name, before=before, after=after, unit=unit, within_s=within_s
    )


def _off_after(steps: Sequence[Step], instruments: Mapping[str, Instrument]) -> Iterator[_Source]:
    last = {each.channel: each.value for each in steps if not each.optional}
    for owner in instruments.values():
        relays = [
            Text("step.to", channel=each.channel, value=each.off)
            for each in owner.fed_by
            if each.off is not None and last.get(each.channel) == each.off
        ]
        for off in owner.driver.off or ():
            own = [(f"{owner.name}.{channel}", value) for channel, value in off.steps]
            all_off = all(last.get(channel) == value for channel, value in own)
            said = [
                Text("step.to", channel=channel, value=value) for channel, value in own if all_off
            ]
            if said or relays or not off.inert:  # whatever its steps: none may end with it on
                yield _Source(owner, off, (*said, *relays), bool(relays))


def _lit(source: _Source, name: str, value: float | None) -> str:
    doing = source.off.adds.doing
    if value is None:
        return Text("effect.unknown", channel=name, source=source.owner.name, doing=doing)
    unit = source.owner.driver.channels[name.partition(".")[2]].unit
    return Text(
        "effect.still", channel=name, value=value, unit=unit, though=source.though, doing=doing
    )
