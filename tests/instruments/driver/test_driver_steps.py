"""What is not zero is never written as zero: there it means off, or that no limit holds."""

from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from labharness.instruments.driver import Driver
from labharness.instruments.driver.modbus import Holding
from labharness.lab.config.kinds import driver_kinds, load_driver
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
    """Return the bytes of a command; none where it is refused."""
    try:
        return tuple(request.frame for request in driver.write(channel, value))
    except ValueError:
        return ()


@pytest.mark.promise(9)
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


NEAREST = [  # a kind, its settings, a channel, what is asked and its nearest step
    ("eurotherm_2400", {"decimals": 0}, "setpoint", 735.6, 736.0),
    ("eurotherm_2400", {"decimals": 1}, "setpoint", 735.38, 735.4),
    ("eurotherm_2400", {"decimals": 1}, "output", 12.38, 12.4),
    ("alicat_mc", {"unit": "A", "gas": "Ar", "full_scale_sccm": 500}, "setpoint", 19.996, 20.0),
    ("alicat_mc", {"unit": "A", "gas": "Ar", "full_scale_sccm": 500}, "setpoint", 99.9, 99.9),
    ("alicat_basis2", {}, "setpoint", 4.9996, 5.0),
    ("cobolt_laser", {}, "power", 0.0004999, 0.0005),
    ("prior_proscan", {"steps_per_um": 25.0}, "x", 0.999, 1.0),
    ("prior_proscan", {"steps_per_um": 25.0}, "y", -0.999, -1.0),
]


@pytest.mark.promise(9)
@pytest.mark.parametrize(("kind", "more", "channel", "asked", "near"), NEAREST)
def test_no_value_is_cut_off_at_the_step_below(
    kind: str, more: dict[str, Any], channel: str, asked: float, near: float
) -> None:
    driver = load_driver(kind)(**more)
    assert frames(driver, channel, asked) == frames(driver, channel, near) != ()


@pytest.mark.promise(9)
@pytest.mark.parametrize("scale", [1.0, 0.1, 0.01, 0.001])
@given(whole=st.integers(1, 30000), part=st.floats(-0.49, 0.49), size=st.sampled_from([1, 2]))
@example(whole=736, part=-0.4, size=1)
@settings(deadline=None)
def test_what_a_register_carries_is_the_nearest_step(
    scale: float, whole: int, part: float, size: int
) -> None:
    register = Holding(5, step=scale, signed=True, size=size, doc="Control it.")
    for sign in (1, -1):
        words = register.encode(sign * (whole + part) * scale)
        assert register.decode(words, 5) == pytest.approx(sign * whole * scale)
