"""A person at another terminal confirms one manual step of a run, by name and once."""

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from labharness.core.vocabulary import Cause, Command, Trip
from labharness.lab import Lab
from labharness.lab.wiring.operators import RemoteOperator
from labharness.line import Tripped
from labharness.line.hindrances import stop_procedure
from labharness.work.desk.by_hand import ByHand, Nobody

DONE = {"do": "confirm", "by": "Ann", "step": "load"}


class Asks(Nobody):
    """A run whose plan has reached a manual step."""

    step = ""

    def about(self) -> Mapping[str, Any]:
        return {**super().about(), "asked_step": self.step}


class Scene:
    """A line, a run that asks, and what a person says to it."""

    def __init__(self, lab: Lab) -> None:
        self.line, self.run, self.operator = lab.line, Asks(), RemoteOperator()
        self.hands = ByHand(lab.line, self.run, self.operator.done)

    def ask(self, step: str) -> asyncio.Task[str]:
        self.run.step = step
        return asyncio.create_task(self.operator.confirm("load", f"Do {step}.", {}))

    def trip(self) -> None:
        now_s = self.line.clock.now_s()
        procedure = stop_procedure(self.line.memory, None, now_s)
        trip = Trip(Cause.STOP_REQUEST, procedure, "test", None, now_s, "smoke")
        self.line.trip_response.trip(trip)

    async def error(self, **said: str) -> str:
        answer = await self.hands.answer({**DONE, **said})
        return "" if answer["ok"] else answer["error"]


@pytest.mark.promise(75)
async def test_a_step_waits_for_a_person_and_is_confirmed_once(lab: Lab) -> None:
    scene = Scene(lab)
    assert "load is not the step that waits for a person: -" in await scene.error()
    step = scene.ask("load")
    await asyncio.sleep(3600.0)
    assert not step.done()
    assert "by" in await scene.error(by=" ")
    assert await scene.hands.answer(DONE) == {"ok": True, "said": "load"}
    assert await scene.error(by="Ben") == "no manual step waits for a person"
    assert await step == "Ann"


@pytest.mark.promise(75)
async def test_a_word_for_one_step_confirms_no_later_one(lab: Lab) -> None:
    scene = Scene(lab)
    first = scene.ask("load")
    await asyncio.sleep(1.0)
    assert not await scene.error()
    assert await first == "Ann"
    second = scene.ask("open_the_bottle")
    await asyncio.sleep(1.0)
    assert "load is not the step that waits" in await scene.error()
    await asyncio.sleep(1.0)
    assert not second.done()
    assert not await scene.error(step="open_the_bottle", by="Ben")
    assert await second == "Ben"


@pytest.mark.promise(75)
async def test_nothing_is_confirmed_on_a_line_that_is_held_or_has_tripped(lab: Lab) -> None:
    scene = Scene(lab)
    step = scene.ask("load")
    await asyncio.sleep(1.0)
    await scene.line.hold()
    assert "held" in await scene.error()
    scene.line.start()
    scene.trip()
    assert "smoke" in await scene.error()
    assert not step.done()
    step.cancel()


@pytest.mark.promise(75)
async def test_a_step_that_is_confirmed_as_the_line_trips_is_not_done(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene = Scene(lab)

    async def both() -> str:
        await asyncio.sleep(0.0)
        scene.trip()
        return "Ann"

    async def allowed(action: str) -> Command:
        return Command(f"operator.{action}", 0.0, "")

    monkeypatch.setattr(scene.line._writer, "open_by_hand", allowed)
    with pytest.raises(Tripped):
        await scene.line.by_hand("load", both)


async def test_a_run_with_an_operator_of_its_own_is_confirmed_there(lab: Lab) -> None:
    scene = Scene(lab)
    said = await ByHand(scene.line, Nobody()).answer(DONE)
    assert "the operator of this run confirms" in said["error"]
