"""The end of an arming: each instrument is prepared, and then everything polled is read once more.

A command is judged by the last readings. One that is older than ``prepare`` shows a mode or a
watchdog that is not so any more, and a sound command would be refused, or an unsound one allowed.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence

from labharness.core.vocabulary import Command, Ending, Outcome
from labharness.line.parts import Instrument, prepare_commands
from labharness.safety.kernel import Memory, adopt

__all__ = ["FULL_POLL_S_MAX", "prepare"]

FULL_POLL_S_MAX = 5.0
"""Lab time (s) for reading everything once: ``lab check`` allows a poll of 1 s on each port, twice
where replies are lost, beside the poll that is under way."""


async def prepare(
    *,
    instruments: Iterable[Instrument],
    memory: Memory,
    polled: Sequence[str],
    perform: Callable[[Command], Awaitable[Outcome]],
    read_all: Callable[[Sequence[str], float], Awaitable[Mapping[str, float]]],
) -> str:
    """Set what the lab file's ``prepare`` says, in order, and read every polled channel after it.

    Args:
        instruments: Those of the line.
        memory: The kernel's: what is read here counts as what is set, where nobody has set it.
        polled: Every channel that the line polls.
        perform: Carries out one command.
        read_all: Measures channels now, each for so long at most; gives those that answered.

    Returns:
        What keeps the line from being armed; ``""`` for nothing.
    """
    for instrument in instruments:
        for command in prepare_commands(instrument, memory.envelope):
            outcome = await perform(command)
            if outcome.ending is not Ending.CONFIRMED:
                what = f"{command.channel} = {command.value:g}"
                return f"prepare {what} {outcome.ending}: {outcome.detail}"
    answered = await read_all(polled, FULL_POLL_S_MAX)
    silent = [each for each in polled if each in memory.envelope.watches and each not in answered]
    adopt(memory, answered)
    if not silent:
        return ""
    return f"not read within {FULL_POLL_S_MAX:g} s of prepare: {', '.join(silent)}"
