"""While spectra are judged the loop goes on."""

import asyncio
import time
from typing import Any, cast

import pytest

from labharness.work.capability import raman_verbs as raman
from labharness.work.plan import Instruction, RunningStep

LONG_S, BEAT_S = 0.4, 0.01


def judging() -> RunningStep:
    """The step of a growth that judges, with nothing to measure any more."""
    asked = {
        "survey": {"film": [], "dark_counts": 300.0},
        "spots": [],
        "pl_heights_per_s": [],
        "reference": {},
        "threshold": 0.95,
        "spots_max": 9,
    }
    what = Instruction(instruction_id="analysis", action="analyse", timeout_s=60.0, stage="looking")
    return RunningStep(what, cast("Any", None), asked, 60.0)


def slow(*_asked: object) -> dict[str, Any]:
    end_s = time.monotonic() + LONG_S  # a computation: it holds the interpreter as a fit does
    while time.monotonic() < end_s:
        pass
    return {"layer_count": 1, "confidence": 0.99}


@pytest.mark.promise(48)
def test_the_loop_goes_on_while_spectra_are_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(raman, "judge", slow)
    heartbeats: list[float] = []

    async def heartbeat() -> None:
        while True:
            heartbeats.append(time.monotonic())
            await asyncio.sleep(BEAT_S)

    async def main() -> None:
        beating = asyncio.create_task(heartbeat())
        await raman.analyse(judging())
        beating.cancel()

    asyncio.run(main())
    assert len(heartbeats) > 5
