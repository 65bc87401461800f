"""What each driver says on the wire, word for word: a byte that changes is a decision.

``PYTHONPATH=tests python tests/drivers/test_driver_tables.py`` writes the tables anew; read the
difference against the manual that the driver names before you keep it.
"""

import itertools
import json
import math
from collections.abc import Callable
from dataclasses import fields
from typing import Any

import pytest

from labharness.core.vocabulary import BadReply, DeviceFault, Request, Rtu, crc16_modbus
from labharness.instruments.driver import Channel, Driver, Identity, Query, Scan
from labharness.lab.config.kinds import driver_kinds, load_driver
from rig import HERE, SETTINGS

TABLES = HERE / "data" / "driver_tables"
VALUES = (-1.0, 0.0, 0.5, 1.0, 2.0, 25.26, 102.5, 850.0, 5000.0, 1e10)
WORDS: tuple[Callable[[int], int], ...] = (
    lambda at: at + 1,
    lambda at: 0,
    lambda at: 0xFFFF,
    lambda at: 0xA55A,
    lambda at: 0x4142,
)
MODELS = ("", "MC-100SCCM-D", "MCS-0.1SLPM-D", "MC-500SCCM-D", "MC", "910-11", "Eurotherm 2408")
FIRMWARES = ("", "5v11", "5v12", "4v13", "10v20.0-R24", "GP07R100", "soon")
EDGES: dict[str, list[tuple[dict[str, Any], ...]]] = {
    "alicat_basis2": [
        ({"full_scale_sccm": 319.6}, {"full_scale_sccm": 319.7}, {"full_scale_sccm": 0.0}),
        ({"decimals": 4, "full_scale_sccm": 1.0}, {"decimals": 5}),
        ({"decimals": 0}, {"decimals": -1}),
        ({"gas": 0}, {"gas": -1}, {"gas": 9}),
        ({"watchdog_ms": 0}, {"watchdog_ms": -1}),
        ({"watchdog_ms": 5000}, {"watchdog_ms": 5001}),
        ({"unit": 247}, {"unit": 248}),
        ({"unit": 1}, {"unit": 0}),
    ],
    "alicat_mc": [
        ({"full_scale_sccm": 0.01}, {"full_scale_sccm": 0.0}),
        ({}, {"unit": "a"}),
        ({"full_scale_sccm": 1e6}, {"full_scale_sccm": 1e6 + 1}),
        ({"decimals": 4}, {"decimals": 5}),
    ],
    "cobolt_laser": [({"max_power_w": 10}, {"max_power_w": 10.1}), ({}, {"max_power_w": 0})],
    "eurotherm_2400": [
        ({"decimals": 0}, {"decimals": 3}),
        ({"decimals": 2}, {"decimals": -1}),
        ({"program": 20}, {"program": 21}),
        ({"program": 0}, {"program": -1}),
        ({"unit": 247}, {"unit": 248}),
        ({"unit": 1}, {"unit": 0}),
    ],
    "horiba_icl": [
        ({"chip_width": 8192}, {"chip_width": 8193}),
        ({"chip_height": 8192}, {"chip_height": 8193}),
        ({"chip_width": 1}, {"chip_width": 0}),
        ({"chip_height": 1}, {"chip_height": 0}),
        ({"mono_index": 0}, {"mono_index": -1}),
        ({"ccd_index": 1}, {"ccd_index": 0.5}),
    ],
    "keithley_2400": [
        ({"max_voltage_v": 210.0}, {"max_voltage_v": 211.0}),
        ({}, {"max_current_a": 0.0}),
    ],
    "mks_910": [
        ({"address": 253}, {"address": 254}, {"address": 2.5}, {"address": "253"}),
        ({"address": 1}, {"address": 0}),
    ],
    "prior_proscan": [
        ({"steps_per_um": 0.001}, {"steps_per_um": 0.0009}, {"steps_per_um": math.nan}),
        ({"steps_per_um": 1000}, {"steps_per_um": 1000.1}),
    ],
    "waveshare_relay": [
        ({"unit": 1}, {"unit": 0}),
        ({}, {"relays": [f"relay_{n}" for n in range(9)]}, {"relays": ["argon", "argon"]}),
        ({}, {"relays": ["argon"], "inputs": ["argon"]}, {"relays": ["two words"]}),
        ({}, {"relays": "argon"}),
    ],
}
BEYOND: dict[str, list[tuple[str, float]]] = {  # as little as the tables do not show
    "alicat_basis2": [("setpoint", 100.001), ("setpoint", -0.001), ("watchdog_ms", 5001)],
    "alicat_mc": [("setpoint", 100.1), ("setpoint", -0.01)],
    "cobolt_laser": [("power", 0.1000001), ("power", -1e-6)],
    "eurotherm_2400": [("setpoint", 3276.8), ("output", 100.1), ("output", -0.1)],
    "horiba_icl": [("exposure", 2.0**31), ("exposure", 1.5), ("x_axis", 3), ("roi", 1025)],
    "keithley_2400": [("voltage", 210.1), ("voltage", -210.1), ("voltage", 4e-5)],
    "prior_proscan": [("x", 3e9)],
}


def made(kind: str, **more: Any) -> Driver:
    return load_driver(kind)(**{**SETTINGS.get(kind, {}), **more})


def said(request: Request) -> list[object]:
    """Write a request in a form that a person can hold against a manual."""
    frame = request.frame
    text = frame.decode("ascii") if frame.isascii() and b"\0" not in frame else frame.hex(" ")
    times = [request.timeout_s, request.settle_s]
    return [text, repr(request.reply), *times, repr(request.obeyed), repr(request.transaction)]


def written(driver: Driver, channel: str, value: float) -> object:
    try:
        shown = driver.shown(channel, value)
        frames = [said(each) for each in driver.write(channel, value)]
    except (ValueError, OverflowError) as why:
        return f"refused: {why}"
    return {"frames": frames, "shown": None if shown is None else said(shown)}


def decoded(scan: Scan | Query) -> list[object]:
    """Return what replies of Modbus RTU are read as: words that count, and words that are alike."""
    rule = scan.request.reply
    found: list[object] = []
    if not isinstance(rule, Rtu) or not rule.byte_count:
        return found
    for word in WORDS:
        data = b"".join(word(at).to_bytes(2, "big") for at in range(rule.byte_count))
        body = bytes([rule.unit, rule.function, rule.byte_count]) + data[: rule.byte_count]
        try:
            read = scan.decode(body + crc16_modbus(body).to_bytes(2, "little"))
            found.append(read if isinstance(read, tuple) else repr(read))
        except (BadReply, DeviceFault) as why:
            found.append(f"refused: {why}")
    return found


def stated(channel: Channel) -> dict[str, str]:
    """Return what a driver states of a channel beyond what holds for any; not its words."""
    values = {each.name: (getattr(channel, each.name), each.default) for each in fields(Channel)}
    return {
        name: repr(value)
        for name, (value, usual) in values.items()
        if value != usual and name not in ("doc", "source")
    }


def table(kind: str) -> str:
    """Write all that a driver says of itself and on the wire."""
    driver = made(kind)
    body: dict[str, Any] = {
        "baud": driver.baud,
        "protocol": driver.protocol.value,
        "write_grammar": list(map(repr, driver.write_grammar)),
        "off": repr(driver.off),
        "identify": [*said(driver.identify().request), *decoded(driver.identify())],
        "expects": [
            f"{model} {firmware}"
            for model in MODELS
            for firmware in FIRMWARES
            if not driver.expects(Identity(model, firmware))
        ],
        "channels": {name: stated(each) for name, each in driver.channels.items()},
        "scans": {
            each.name: [*said(each.request), each.period_s, list(each.channels), *decoded(each)]
            for each in driver.scans()
        },
        "queries": {each.name: said(each.request) for each in driver.queries()},
        "writes": {
            name: {f"{value:g}": written(driver, name, value) for value in VALUES}
            for name, each in driver.channels.items()
            if each.settable
        },
    }
    lines = [f"{name}: {_compact(each)}" for name, each in body.items() if type(each) is not dict]
    for part, rows in body.items():
        for name, each in rows.items() if isinstance(rows, dict) else ():
            inner = each.items() if part == "writes" else [("", each)]
            lines += [
                f"{part} {name} {what}".rstrip() + f": {_compact(one)}" for what, one in inner
            ]
    return "\n".join(lines) + "\n"


def _compact(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


@pytest.mark.parametrize("kind", sorted(driver_kinds()))
def test_a_driver_says_what_was_held_against_its_manual(kind: str) -> None:
    path = TABLES / f"{kind}.txt"
    if not path.exists():
        pytest.skip("a driver of somebody else's keeps its tables with it")
    assert table(kind) == path.read_text("utf-8")


@pytest.mark.parametrize("kind", sorted(EDGES))
def test_a_setting_is_taken_at_its_bounds_and_refused_beyond(kind: str) -> None:
    for good, *bad in EDGES[kind]:
        made(kind, **good)
        for each in bad:
            with pytest.raises(ValueError, match=r"\b(not|fit|relays)\b"):
                made(kind, **each)


@pytest.mark.parametrize("kind", sorted(driver_kinds()))
def test_a_command_beyond_its_range_or_of_no_number_is_refused_before_a_frame(kind: str) -> None:
    driver = made(kind)
    settable = [name for name, each in driver.channels.items() if each.settable]
    nowhere = itertools.product(settable, (math.nan, math.inf, -math.inf))
    for channel, value in (*BEYOND.get(kind, ()), *nowhere):
        with pytest.raises(ValueError, match=rf"^{channel}( in \w+)?: asked|^{value} does not fit"):
            driver.write(channel, value)


if __name__ == "__main__":
    TABLES.mkdir(exist_ok=True)
    for each in sorted(driver_kinds()):
        (TABLES / f"{each}.txt").write_text(table(each), encoding="utf-8")
