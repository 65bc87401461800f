"""One word, four drawers: a kind has a driver, a simulator, an envelope and a test that agree."""

import inspect
import re
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labharness.driver import Driver, Scan
from labharness.lab.kinds import driver_kinds, load_driver, load_simulator

ROOT = Path(__file__).resolve().parent.parent
KINDS = sorted(driver_kinds())
SETTINGS: dict[str, dict[str, Any]] = {  # where a lab file must say more than the kind
    "alicat_mc": {"unit": "A", "gas": "Ar", "full_scale_sccm": 100.0},
}


@cache
def driver_of(kind: str) -> Driver:
    return load_driver(kind)(**SETTINGS.get(kind, {}))


@cache
def envelope_of(kind: str) -> dict[str, Any]:
    path = ROOT / "envelopes" / "labharness_envelopes" / f"{kind}.toml"
    return tomllib.loads(path.read_text("utf-8"))


def settable_of(kind: str) -> dict[str, str]:
    channels = driver_of(kind).channels
    return {name: each.unit for name, each in channels.items() if each.settable}


def reads_of(driver: Driver) -> frozenset[bytes]:
    scans, queries = driver.scans(), (*driver.queries(), driver.identify())
    requests = [*(each.request for each in scans), *(each.request for each in queries)]
    return frozenset(each.frame for each in requests)


def keywords_of(made: type) -> set[str]:
    parameters = inspect.signature(made).parameters.values()
    return {each.name for each in parameters if each.kind is each.KEYWORD_ONLY}


def test_every_kind_is_in_all_four_drawers() -> None:
    def stems(drawer: str, pattern: str) -> set[str]:
        return {path.stem for path in (ROOT / drawer).glob(pattern)}

    assert KINDS
    assert stems("drivers/labharness_drivers", "[!_]*.py") == set(KINDS)
    assert stems("simulators/labharness_simulators", "[!_]*.py") == set(KINDS)
    assert stems("envelopes/labharness_envelopes", "*.toml") == set(KINDS)
    assert {f"test_{kind}" for kind in KINDS} <= stems("tests", "test_*.py")


def test_the_readme_names_every_kind_or_none() -> None:
    text = (ROOT / "README.md").read_text("utf-8")
    named = {kind for kind in KINDS if f"`{kind}`" in text}
    assert named in (set(), set(KINDS))


@pytest.mark.parametrize("kind", KINDS)
def test_the_envelope_limits_exactly_what_can_be_set_in_the_same_unit(kind: str) -> None:
    limits = envelope_of(kind).get("limits", {})
    assert envelope_of(kind)["kind"] == kind
    assert {name: row["unit"] for name, row in limits.items()} == settable_of(kind)
    for name, row in limits.items():
        assert row["low"] <= row["high"], name
        assert row["source"].strip(), name


@pytest.mark.parametrize("kind", KINDS)
def test_a_simulator_takes_every_setting_of_its_driver(kind: str) -> None:
    simulator = load_simulator(kind)
    takes_all = any(
        each.kind is each.VAR_KEYWORD for each in inspect.signature(simulator).parameters.values()
    )
    assert takes_all or keywords_of(load_driver(kind)) <= keywords_of(simulator)


@pytest.mark.parametrize("kind", KINDS)
def test_every_channel_says_what_it_does_and_where_that_is_written(kind: str) -> None:
    channels = driver_of(kind).channels
    assert channels
    for name, channel in channels.items():
        verb = "Control" if channel.settable else "Measure"
        assert channel.doc.startswith(verb + " "), name
        assert channel.doc.endswith("."), name
        assert channel.source.strip(), name
        assert channel.readback is None or channel.readback in channels, name
        assert re.fullmatch(r"hold|unknown|safe\(\d+(\.\d+)?\)", channel.on_comm_loss), name


@pytest.mark.parametrize("kind", KINDS)
def test_no_kind_hides_that_it_was_never_on_hardware(kind: str) -> None:
    module = inspect.getmodule(load_driver(kind))
    text = inspect.getdoc(module) or ""
    assert "Source: " in text
    said = "Verified: simulator (and captured frames )?only; never on hardware."
    assert re.search(said, text)
    assert driver_of(kind).unverified.strip()


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_scanned_is_declared_once(kind: str) -> None:
    driver = driver_of(kind)
    scanned = [name for scan in driver.scans() for name in scan.channels]
    assert len(scanned) == len(set(scanned))
    assert set(scanned) <= set(driver.channels)
    for name, channel in driver.channels.items():
        assert name in scanned or channel.settable, f"{name} can be neither read nor set"
        assert channel.readback is None or channel.readback in scanned, name
    assert driver.scans() is driver.scans()
    assert all(isinstance(scan, Scan) for scan in driver.scans())


@pytest.mark.parametrize("kind", [kind for kind in KINDS if settable_of(kind)])
@given(data=st.data())
@settings(deadline=None, max_examples=30)
def test_no_frame_that_writes_is_among_those_that_read(kind: str, data: st.DataObject) -> None:
    driver = driver_of(kind)
    channel, row = data.draw(st.sampled_from(sorted(envelope_of(kind)["limits"].items())))
    low, high = float(row["low"]), float(row["high"])
    value = data.draw(
        st.sampled_from([low, high]) | st.floats(low, high) | st.floats(low, high).map(round)
    )
    try:
        requests = driver.write(channel, value)
    except ValueError:
        return  # refused: it does not fit the wire
    assert requests
    assert not reads_of(driver) & {each.frame for each in requests}
    assert driver.write(channel, value) == requests, "a driver is pure"


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_else_can_be_written(kind: str) -> None:
    driver = driver_of(kind)
    for channel in [*driver.channels.keys() - settable_of(kind).keys(), "no_such_channel", ""]:
        with pytest.raises(ValueError, match="cannot be set"):
            driver.write(channel, 0.0)
