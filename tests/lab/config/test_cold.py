"""Below what a line is cold: each temperature that it watches, in its own unit."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from labharness.core.files.tables import read_table
from labharness.core.vocabulary.units import TEMPERATURES, incomparable, temperature_in
from labharness.faces.testing.conformance import check_driver
from labharness.instruments.driver import Channel
from labharness.lab.config import consistency
from labharness.lab.config.envelopes import LineFile
from line_alone import Toy, toy

UNITS = tuple(TEMPERATURES)


def line_of(*channels: str, cold: str = "") -> LineFile:
    rows = "".join(f'[[watch]]\nchannel = "stage.{each}"\nstale_s = 5\n' for each in channels)
    rest = "limit = []\n[procedures.safe]\nwire_s_max = 1\nverify_s_max = 1\nsteps = []\n"
    return read_table(
        LineFile, f'line = "stage"\ndescription = "one"\n{rest}{cold}\n{rows}', "a test"
    )


def stage(**units: str) -> Toy:
    read = {
        name: Channel(unit=unit, doc="Measure it.", source="test") for name, unit in units.items()
    }
    return Toy(read)


@pytest.mark.promise(62)
@given(st.sampled_from(UNITS), st.sampled_from(UNITS), st.floats(-200, 2000))
def test_each_temperature_is_compared_in_its_own_unit(
    unit: str, stated: str, reading_c: float
) -> None:
    """One room is as cold in kelvin as in degC."""
    below = round(temperature_in(stated, 60.0), 6)
    row = f'[cold]\nbelow = {below}\nunit = "{stated}"\nsource = "a test"'
    cold = consistency.cold(
        line_of("temperature", cold=row), [toy("stage", stage(temperature=unit))]
    )
    reading = temperature_in(unit, reading_c)
    if abs(reading_c - 60) > 1e-3:
        assert (reading < cold["stage.temperature"]) == (reading_c < 60)


def test_without_a_row_a_line_is_cold_below_60_degc_whatever_its_instruments_read_in() -> None:
    kinds = stage(temperature="K", plate="degF", gas_flow="sccm", working_setpoint="degC")
    line = line_of("temperature", "plate", "gas_flow", "working_setpoint")
    cold = consistency.cold(line, [toy("stage", kinds)])
    assert cold == {"stage.temperature": pytest.approx(333.15), "stage.plate": pytest.approx(140)}


@pytest.mark.parametrize("unit", ["celsius", "kelvin", "mK", "°C", "C", "", "eV"])
def test_a_temperature_that_no_line_can_compare_is_refused_by_conformance_and_by_lab_check(
    unit: str,
) -> None:
    driver = stage(temperature=unit)
    assert any("temperature" in each and "degC, K, degF" in each for each in check_driver(driver))
    assert incomparable("temperature", unit)
    for comparable in UNITS:
        assert not incomparable("temperature", comparable)
        found = check_driver(stage(temperature=comparable))
        assert not any("compare" in each for each in found)


def test_a_unit_of_other_things_is_no_temperature() -> None:
    assert [each for each in ("C", "F", "V", "degC/min", "") if incomparable("charge", each)] == []
