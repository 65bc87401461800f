"""A step is verified by what is read within one step of its encoding, and no further."""

from collections.abc import Mapping, Sequence

import pytest

from labharness.faces.testing.bench import Bench, VirtualTime
from labharness.lab import LabPlan
from rig import SAFE_TABLE


@pytest.mark.promise(12)
@pytest.mark.parametrize(
    ("off_steps", "holds"), [(0.9, True), (-0.9, True), (2.0, False), (-2.0, False), (9.0, False)]
)
def test_a_step_is_verified_within_its_resolution_and_not_beyond(
    short_plan: LabPlan,
    simulated_lab: Bench,
    virtual_time: VirtualTime,
    off_steps: float,
    holds: bool,
) -> None:
    async def play() -> tuple[str, ...]:
        async with simulated_lab.on(short_plan).opened() as lab:
            driver = lab.line.instruments["argon"].driver
            resolution = driver.channels["setpoint"].resolution
            assert resolution > 0
            read = lab.line.trip_response.read

            async def skewed(channels: Sequence[str], within_s: float) -> Mapping[str, float]:
                seen = dict(await read(channels, within_s))
                if "argon.setpoint" in seen:
                    seen["argon.setpoint"] += off_steps * resolution
                return seen

            lab.line.trip_response.read = skewed
            verification = await lab.line.trip_response.make_safe(SAFE_TABLE)
            return verification.unverified()

    others = virtual_time.run(play())
    assert [each.partition(":")[0] for each in others] == (
        [] if holds else ["argon.setpoint = 100"]
    )
