"""A person at another terminal confirms a manual step of a run, by name and once."""

import asyncio

import pytest

from labharness.faces.testing.bench import Bench, VirtualTime
from labharness.lab import LabPlan
from labharness.lab.wiring.operators import RemoteOperator
from labharness.work.desk import ByHand, Nobody

DONE = {"do": "confirm", "by": "Ann"}


@pytest.mark.promise(75)
def test_a_step_waits_for_a_person_and_is_confirmed_once(
    simulated_lab: Bench, virtual_time: VirtualTime, short_plan: LabPlan
) -> None:
    async def main() -> None:
        operator, told = RemoteOperator(), list[str]()
        async with simulated_lab.on(short_plan).running() as lab:
            lab.line.events.on_warning = told.append
            hands = ByHand(lab.line, Nobody(), operator.done)
            early = await hands.answer(DONE)
            assert (early["ok"], early["error"]) == (False, "no manual step waits for a person")
            step = asyncio.create_task(operator.confirm("load", "Load the boat.", {}))
            await asyncio.sleep(3600.0)
            assert not step.done()
            assert not (await hands.answer({"do": "confirm", "by": " "}))["ok"]
            said = await hands.answer(DONE)
            assert said == {"ok": True, "said": "Load the boat."}
            assert not (await hands.answer({**DONE, "by": "Ben"}))["ok"]
            assert await step == "Ann"
            assert any("Load the boat." in each and "Ann" in each for each in told)

    virtual_time.run(main())


def test_a_run_with_a_terminal_of_its_own_is_confirmed_there(
    simulated_lab: Bench, virtual_time: VirtualTime, short_plan: LabPlan
) -> None:
    async def main() -> None:
        async with simulated_lab.on(short_plan).running() as lab:
            said = await ByHand(lab.line, Nobody()).answer(DONE)
            assert "terminal of the run" in said["error"]

    virtual_time.run(main())
