"""The lookout answers in the order of law 2: bytes first, then whoever is told."""

from dataclasses import replace
from typing import cast

import pytest

from labharness.clock import VirtualLoop
from labharness.guard import Guard
from labharness.journal.forgetful import Forgetful
from labharness.kernel import Memory
from labharness.line import lookout as lookout_module
from labharness.line.lookout import Lookout
from labharness.vocabulary import Cause, Trip

TRIP = Trip(Cause.OVER_TEMPERATURE, "immediate_shutdown", "furnace.temperature", 990.0, 1.0, "hot")
WARNING = replace(TRIP, procedure="", detail="warm: furnace.temperature is 990 degC")


@pytest.mark.parametrize("found", [(WARNING, TRIP), (TRIP, WARNING)])
def test_a_trip_goes_before_the_warning_of_the_same_reading(
    found: tuple[Trip, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []
    loop = VirtualLoop()
    monkeypatch.setattr(lookout_module, "tick", lambda memory, now: found)
    lookout = Lookout(
        memory=cast("Memory", None),  # what the kernel finds is given above
        guard=cast("Guard", None),
        journal=Forgetful(),
        loop=loop,
        trip=lambda trip: done.append("bytes"),
        warn=lambda text: done.append("warned"),
        told=lambda trip: done.append("trip told" if trip.procedure else "warning told"),
    )
    lookout.tick()
    loop.close()
    assert done == ["bytes", "warned", "trip told", "warning told"]
