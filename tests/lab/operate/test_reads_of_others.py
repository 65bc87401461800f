"""Reads of other terminals: few wait at once, all after the line's own, and none for nobody."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from labharness.core.clock import PacedLoop
from labharness.core.clock import run as run_on
from labharness.lab import Lab
from labharness.lab.wiring.control import CLIENTS_MAX, ControlSocket
from labharness.safety.guard import PortBusy
from labharness.work.desk.by_hand import READS_MAX, ByHand, Nobody
from platforms import unix

READ = {"do": "read", "channel": "furnace.temperature"}
FLOOD = 300
FLOOD_S = 60.0


async def flooded(hands: ByHand, for_s: float) -> list[Mapping[str, Any]]:
    """Ask again and again, hundreds at once, for so long; return all answers."""
    loop = asyncio.get_running_loop()
    end_s = loop.time() + for_s
    answers: list[Mapping[str, Any]] = []

    async def ask() -> None:
        answers.append(await hands.answer(READ))

    asked = []
    while loop.time() < end_s:
        asked += [loop.create_task(ask()) for _ in range(FLOOD)]
        await asyncio.sleep(1.0)
    await asyncio.gather(*asked)
    return answers


@pytest.mark.parametrize("silent", [False, True], ids=["answering", "one of the bus silent"])
async def test_a_flood_of_reads_trips_no_line_and_fails_no_poll(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, silent: bool
) -> None:
    hands = ByHand(lab.line, Nobody())
    lost: list[Any] = []
    lab.clock.loop.set_exception_handler(lambda loop, context: lost.append(context))
    if silent:
        monkeypatch.setattr(lab.line, "read", never_heard(lab))
    answers = await flooded(hands, FLOOD_S)
    assert lab.line.memory.trip is None, lab.line.memory.trip
    assert lost == []
    said = {each.get("error", "") for each in answers}
    assert any("too many ask at once" in each for each in said)
    assert not any("internal" in each for each in said)
    assert silent or "" in said, "some are answered"


def never_heard(lab: Lab) -> Any:
    """Read what nobody answers: each exchange takes all of its time."""
    line = lab.line
    scan = line._reader.scans[READ["channel"]]

    async def read(channel: str, *, patient: bool = False) -> float:
        async with line._reader.exchanges.lease(scan.port, patient=patient):
            await asyncio.sleep(0.5)
        return 0.0

    return read


async def test_no_more_reads_wait_at_once_than_are_counted(lab: Lab) -> None:
    hands = ByHand(lab.line, Nobody())
    answers = await asyncio.gather(*(hands.answer(READ) for _ in range(READS_MAX + 5)))
    assert [each["ok"] for each in answers].count(False) == 5
    assert (await hands.answer(READ))["ok"], "and another is answered as soon as they are"


async def test_a_port_that_too_many_want_is_told_of_plainly(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def busy(channel: str, *, patient: bool = False) -> float:
        raise PortBusy("256 users wait for port heat already")

    hands = ByHand(lab.line, Nobody())
    monkeypatch.setattr(lab.line, "read", busy)
    said = await hands.answer(READ)
    assert said == {"ok": False, "error": "256 users wait for port heat already"}


async def test_who_asks_no_more_stands_in_no_queue(lab: Lab) -> None:
    hands = ByHand(lab.line, Nobody())
    guard = lab.guard
    for _ in range(FLOOD):
        asked = [asyncio.ensure_future(hands.answer(READ)) for _ in range(READS_MAX)]
        await asyncio.sleep(0)
        for each in asked:
            each.cancel()
        await asyncio.wait(asked)
    assert sum(len(each) for each in guard._patient.values()) == 0
    assert (await hands.answer(READ))["ok"]


# ---- at the door


class Door:
    """A control socket whose answers come when a test lets them."""

    def __init__(self, folder: Path) -> None:
        self.path = str(folder / "control.sock")
        self.asked: list[str] = []
        self.done: list[str] = []
        self.given_up: list[str] = []
        self.go = asyncio.Event()
        self.served = ControlSocket(folder, self._answer, 1.0)

    async def _answer(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        word = str(asked["do"])
        self.asked.append(word)
        try:
            await self.go.wait()
        except asyncio.CancelledError:
            self.given_up.append(word)
            raise
        self.done.append(word)
        return {"ok": True}

    async def ask(self, word: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        reader, writer = await asyncio.open_unix_connection(self.path)
        writer.write(json.dumps({"do": word}).encode() + b"\n")
        await writer.drain()
        return reader, writer


def at_the_door(folder: Path, work: Callable[[Door], Awaitable[None]]) -> None:
    async def main() -> None:
        door = Door(folder)
        async with asyncio.timeout(20.0):
            await work(door)

    run_on(main(), PacedLoop(1.0))


async def settled() -> None:
    await asyncio.sleep(0.2)


@unix
def test_a_question_ends_with_who_asked_it_and_a_wish_does_not(tmp_path: Path) -> None:
    async def work(door: Door) -> None:
        async with door.served:
            for word in ("read", "safe", "set"):
                _, writer = await door.ask(word)
                await settled()
                writer.close()
            await settled()
            assert door.given_up == ["read"]
            door.go.set()
            await settled()
            assert door.done == ["safe", "set"]

    at_the_door(tmp_path, work)


@unix
def test_of_a_flood_at_the_door_no_more_are_asked_on_than_there_are_doors(tmp_path: Path) -> None:
    async def work(door: Door) -> None:
        async with door.served:
            asked = [await door.ask("read") for _ in range(10 * CLIENTS_MAX)]
            await settled()
            assert len(door.asked) - len(door.given_up) <= CLIENTS_MAX
            door.go.set()
            await settled()
            assert 0 < len(door.done) <= CLIENTS_MAX
            for _, writer in asked:
                writer.close()

    at_the_door(tmp_path, work)


@unix
def test_who_ends_the_owner_by_making_safe_is_still_answered(tmp_path: Path) -> None:
    async def work(door: Door) -> None:
        async with door.served:
            reader, writer = await door.ask("safe")
            await settled()
            asyncio.get_running_loop().call_later(0.2, door.go.set)
        assert json.loads(await reader.readline()) == {"ok": True}
        writer.close()

    at_the_door(tmp_path, work)
