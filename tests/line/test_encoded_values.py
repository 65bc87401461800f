"""What is judged is what goes out on the wire: the value to the step of its encoding."""

import math
import re
import struct
from collections.abc import Mapping
from contextlib import suppress
from typing import cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernel_line import limit, parts
from labharness.core.vocabulary import Allowed, Command, Refused
from labharness.instruments.driver import Ascii, TableDriver
from labharness.instruments.driver.modbus import ModbusRow
from labharness.line.gate import Gate
from labharness.line.instrument import Instrument
from labharness.safety.kernel import Bound, Envelope, Interlock, Memory, Mode, Watch
from labharness_drivers.alicat_basis2 import AlicatBasis2
from labharness_drivers.alicat_mc import AlicatMc
from labharness_drivers.cobolt_laser import CoboltLaser
from labharness_drivers.eurotherm_2400 import Eurotherm2400
from labharness_drivers.keithley_2400 import Keithley2400
from labharness_drivers.prior_proscan import PriorProscan
from labharness_drivers.waveshare_relay import WaveshareRelay
from small_modbus import Oven

DRIVERS: tuple[TableDriver, ...] = (
    AlicatBasis2(full_scale_sccm=300.0),
    AlicatMc(unit="A", gas="Ar", full_scale_sccm=500.0, decimals=1),
    CoboltLaser(),
    Eurotherm2400(decimals=1, program=1),
    Eurotherm2400(decimals=0),
    Keithley2400(),
    Oven(),
    PriorProscan(steps_per_um=3.0),
    WaveshareRelay(),
)
FREE = 1e12  # above every value of these rows
ROWS = [
    pytest.param(driver, name, id=f"{type(driver).__name__}.{name}")
    for driver in DRIVERS
    for name, row in driver.channels.items()
    if row.settable and not isinstance(getattr(row, "sets", None), Mapping)
]


def gate_of(driver: TableDriver, channel: str, *, high: float, above: float) -> Gate:
    """The gate of one instrument, whose channel has this limit, and takes glass above that."""
    name = f"it.{channel}"
    glass = Interlock(
        name="only behind glass",
        guards=(name,),
        above=above,
        require=(Bound("it.glass", low=1.0),),
        source="test",
    )
    rows = parts()
    rows["limits"][name] = limit(name, driver.channels[channel].unit, -FREE, high)
    rows["interlocks"] += (glass,)
    rows["watches"]["it.glass"] = Watch(channel="it.glass", stale_s=5.0, procedure="")
    memory = Memory(Envelope(**rows))
    memory.mode = Mode.RUNNING
    it = Instrument(name="it", kind="it", driver=driver, port="p")
    return Gate(memory, {"it": it}, lambda: 0.0)


def on_the_wire(driver: TableDriver, channel: str, value: float) -> float:
    """Read the value out of the frame that sets it, as the instrument does."""
    (request,) = driver.write(channel, value)
    row, frame = driver.channels[channel], request.frame
    if isinstance(row, Ascii):
        found = re.findall(rb"[-+]?[0-9]+(?:[.][0-9]+)?", frame.split(b";")[0])
        return float(found[-1]) / row.per
    assert isinstance(row, ModbusRow)
    data = frame[4:6] if frame[1] == 6 else frame[7:-2]
    if row.low_first:
        data = data[2:] + data[:2]
    if row.real:
        return float(struct.unpack(">f", data)[0])
    raw = int.from_bytes(data, "big", signed=row.signed)
    return raw if row.step is None else round(raw * row.step, 6)


@pytest.mark.promise(9)
@settings(max_examples=40)
@given(data=st.data())
@pytest.mark.parametrize(("driver", "channel"), ROWS)
def test_no_value_passes_a_limit_or_an_interlock_by_the_step_of_its_encoding(
    driver: TableDriver, channel: str, data: st.DataObject
) -> None:
    sets = cast("ModbusRow | Ascii", driver.channels[channel]).sets
    low, high = (max(-3000.0, sets[0]), min(3000.0, sets[1]))
    asked = data.draw(st.floats(low, high), "asked")
    bound = data.draw(st.sampled_from([asked, math.nextafter(asked, math.inf)]), "bound")
    command = Command(f"it.{channel}", asked, driver.channels[channel].unit)
    for high, above in ((bound, FREE), (FREE, bound)):
        gate = gate_of(driver, channel, high=high, above=above)
        if isinstance(gate.judge(command), Allowed):
            with suppress(ValueError):  # a value that the driver refuses to write
                assert on_the_wire(driver, channel, asked) <= bound


@pytest.mark.promise(9)
def test_a_voltage_between_two_steps_is_judged_as_the_step_that_is_sent() -> None:
    keithley = Keithley2400()
    command = Command("it.voltage", 0.30006, "V")
    assert keithley.write("voltage", 0.30006)[0].frame.startswith(b":SOUR:VOLT 0.3001;")
    verdict = gate_of(keithley, "voltage", high=0.30006, above=FREE).judge(command)
    assert isinstance(verdict, Refused)
    assert verdict.rule == "limit"
    assert str(verdict.reason) == (
        "it.voltage: asked 0.30006 V, which goes out as 0.3001 V: "
        "it.voltage: asked 0.3001 V, allowed -1e+12 to 0.30006 V"
    )
    held_up = gate_of(keithley, "voltage", high=1.0, above=0.30006).judge(command)
    assert isinstance(held_up, Refused)
    assert held_up.rule == "only behind glass"
    assert isinstance(gate_of(keithley, "voltage", high=0.3001, above=FREE).judge(command), Allowed)


def test_until_it_is_confirmed_the_value_that_was_sent_counts() -> None:
    gate = gate_of(Keithley2400(), "voltage", high=1.0, above=FREE)
    command = Command("it.voltage", 0.30006, "V")
    gate.begin(command)
    track = gate.memory.track("it.voltage")
    assert track.possible()[1:] == (0.3001,)
    gate.conclude(command)
    assert track.possible()[1:] == ()
    assert track.told == 0.3001
