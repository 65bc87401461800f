"""Operators of the manual steps of a run: a simulated person, or one at a terminal."""

import asyncio
import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from threading import Thread

from labharness.core.vocabulary.texts import CodedError, Text, words_of
from labharness.instruments.link import LinkLost
from labharness.lab.wiring.simulated_lab import SimulatedLab

STEP_S_MAX = 3_600.0  # a manual step in a served lab


class NothingAsked(CodedError, LookupError, code="nothing_asked"):
    """No manual step waits for a person."""


@dataclass(frozen=True, slots=True)
class SimulatedOperator:
    """A simulated person: comes after a delay, does the step in the simulated lab, confirms it.

    Attributes:
        sim_lab: Where the plant stands.
        delay_s: Time until somebody comes.
    """

    sim_lab: SimulatedLab
    delay_s: float

    async def confirm(self, action: str, text: str, details: Mapping[str, object]) -> str:
        """Do the step and confirm it.

        Raises:
            LinkLost: The simulated lab has not what the step takes.
        """
        await asyncio.sleep(self.delay_s)
        try:
            takes_s = self.sim_lab.operate(action, details)
        except ValueError as why:
            raise LinkLost(Text("operator.cannot", action=action, why=str(why))) from None
        await asyncio.sleep(takes_s)
        self.sim_lab.finish(action)
        return "simulated operator"


@dataclass(frozen=True, slots=True)
class ServedOperator:
    """A simulated person in a lab that another process serves, reached by its control port.

    Attributes:
        control: Address (``host:port``) of the control port.
        delay_s: Time until somebody comes.
    """

    control: str
    delay_s: float

    async def confirm(self, action: str, text: str, details: Mapping[str, object]) -> str:
        """Do the step and confirm it.

        Raises:
            LinkLost: The simulated lab does not answer, or refuses the step.
        """
        await asyncio.sleep(self.delay_s)
        host, _, port = self.control.rpartition(":")
        request = {"ask": "operate", "action": action, "details": dict(details)}
        try:
            async with asyncio.timeout(STEP_S_MAX):
                reader, writer = await asyncio.open_connection(host, int(port))
                try:
                    writer.write(json.dumps(request).encode() + b"\n")
                    answer = json.loads(await reader.readline())
                finally:
                    writer.close()
        except (OSError, ValueError) as why:
            reason = str(why) or Text("operator.timeout")
        else:
            if "error" not in answer:
                return "simulated operator"
            reason = words_of(answer, "error")
        raise LinkLost(Text("operator.served", control=self.control, why=reason))


@dataclass(frozen=True, slots=True)
class TerminalOperator:
    """A person at the terminal: is asked, and confirms with a name.

    Attributes:
        ask: Shows a text and returns the line that was typed; it may block, and is called in a
            thread. Raises ``EOFError`` or ``OSError`` where the terminal is gone.
    """

    ask: Callable[[str], str]

    async def confirm(self, action: str, text: str, details: Mapping[str, object]) -> str:
        """Wait until a person types a name.

        Raises:
            LinkLost: The terminal has gone, or there never was one.
        """
        what = ", ".join(f"{name} = {value}" for name, value in details.items())
        said, of = map(_printable, (text, what))  # a caller wrote them, who moves no cursor
        prompt = f"{said}\n  {of}\n  When it is done, type your name: "
        loop = asyncio.get_running_loop()
        while True:  # a person may take any time; the run's max_duration bounds it
            typed: asyncio.Future[str | None] = loop.create_future()
            # a daemon, a thread that reads a terminal cannot be woken, and exit must not wait
            Thread(target=_ask, args=(self.ask, prompt, loop, typed), daemon=True).start()
            name = await typed
            if name is None:
                raise LinkLost(Text("operator.gone", action=action))
            if name.strip():
                return name.strip()


class RemoteOperator:
    """A person at any terminal of the lab: is asked by the task's status, and confirms by name."""

    def __init__(self) -> None:
        self._asked: asyncio.Future[str] | None = None

    async def confirm(self, action: str, text: str, details: Mapping[str, object]) -> str:
        """Wait until a person confirms the step; the plan bounds how long."""
        answer: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._asked = answer
        try:
            return await answer
        finally:
            self._asked = None

    def done(self, by: str) -> None:
        """Take a person's word that the step is done.

        Raises:
            NothingAsked: No step waits for it.
        """
        if self._asked is None or self._asked.done():
            raise NothingAsked("operator.not_asked")
        self._asked.set_result(by)


def _ask(
    ask: Callable[[str], str],
    prompt: str,
    loop: asyncio.AbstractEventLoop,
    typed: "asyncio.Future[str | None]",
) -> None:
    try:
        text = ask(prompt)
    except (EOFError, OSError):
        text = None
    with suppress(RuntimeError):  # the run is over and its loop closed
        loop.call_soon_threadsafe(_answer, typed, text)


def _printable(text: str) -> str:
    return "".join(each if each.isprintable() else "\N{REPLACEMENT CHARACTER}" for each in text)


def _answer(typed: "asyncio.Future[str | None]", text: str | None) -> None:
    if not typed.done():
        typed.set_result(text)
