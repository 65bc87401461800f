"""What is not zero is never written as zero: there it means off, or that no limit holds."""

from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from labharness.driver import Driver
from labharness.lab.kinds import driver_kinds, load_driver
from labharness_drivers.eurotherm_2400 import Eurotherm2400

COARSE: dict[str, list[dict[str, Any]]] = {  # settings beside those that a kind has by itself
    "alicat_mc": [
        {"unit": "A", "gas": "Ar", "full_scale_sccm": 100.0, "decimals": each} for each in range(5)
    ],
    "alicat_basis2": [{"decimals": each} for each in (0, 2)],
    "eurotherm_2400": [{"decimals": each, "program": 1} for each in range(3)],
    "prior_proscan": [{"steps_per_um": each} for each in (0.01, 1.0, 25.0)],
}
DRIVERS = [
    pytest.param(load_driver(kind)(**more), id=f"{kind} {more}")
    for kind in sorted(driver_kinds())
    for more in COARSE.get(kind, [{}])
]


def frames(driver: Driver, channel: str, value: float) -> tuple[bytes, ...]:
    """Give the bytes of a command; none where it is refused."""
    try:
        return tuple(request.frame for request in driver.write(channel, value))
    except ValueError:
        return ()


@pytest.mark.parametrize("driver", DRIVERS)
@given(size=st.floats(1e-9, 2.0), sign=st.sampled_from([1, -1]), power=st.integers(-6, 0))
@example(size=0.4, sign=1, power=0)
@example(size=0.5, sign=1, power=0)
@example(size=0.5, sign=1, power=-6)
@settings(deadline=None, max_examples=60)
def test_what_is_not_zero_is_never_written_as_zero(
    driver: Driver, size: float, sign: int, power: int
) -> None:
    value = sign * size * 10.0**power
    for name, channel in driver.channels.items():
        if channel.settable and (written := frames(driver, name, value)):
            assert written != frames(driver, name, 0.0), f"{name} = {value}"


def test_the_refusal_names_the_step_and_what_can_be_written() -> None:
    coarse = Eurotherm2400(decimals=0)
    with pytest.raises(ValueError, match=r"asked 0\.4, which would be written as 0") as said:
        coarse.write("setpoint_rate", 0.4)
    assert str(said.value).endswith("it takes steps of 1, so 0 or 1")
    with pytest.raises(ValueError, match="so 0 or -1"):
        coarse.write("setpoint", -0.4)


def test_a_value_between_two_other_steps_goes_to_the_nearer_one() -> None:
    coarse = Eurotherm2400(decimals=0)
    assert frames(coarse, "setpoint", 735.4) == frames(coarse, "setpoint", 735.0)
    assert frames(coarse, "setpoint", -0.0) == frames(coarse, "setpoint", 0.0) != ()
