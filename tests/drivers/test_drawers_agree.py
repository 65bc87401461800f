"""One word, four drawers: a kind has a driver, a simulator, an envelope and a test that agree."""

import asyncio
import inspect
import math
import re
import tomllib
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labharness.core.clock import Chance, Clock, VirtualLoop
from labharness.core.vocabulary import BadReply, DeviceFault
from labharness.faces.testing.bench import Bench, VirtualTime
from labharness.faces.testing.conformance import (
    check_driver,
    check_envelope,
    check_obedience,
    check_simulator,
    check_write,
)
from labharness.faces.testing.faults import simulated_of
from labharness.faces.testing.pairs import framed, write
from labharness.instruments.driver import Driver, Scan
from labharness.lab.config.kinds import driver_kinds, load_driver, load_simulator
from labharness.lab.wiring.simulated_lab import SimulatedLab
from rig import HERE, SETTINGS

ROOT = HERE.parent
KINDS = sorted(driver_kinds())
NOT_IN_THE_LAB = {"keithley_2400"}  # test_keithley_2400 holds it to the same checks on its bench


@cache
def driver_of(kind: str) -> Driver:
    return load_driver(kind)(**SETTINGS.get(kind, {}))


@cache
def envelope_of(kind: str) -> dict[str, Any]:
    path = ROOT / "envelopes" / "labharness_envelopes" / f"{kind}.toml"
    return tomllib.loads(path.read_text("utf-8"))


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
    assert {f"test_{kind}" for kind in KINDS} <= stems("tests/drivers", "test_*.py")


def test_the_readme_names_every_kind_or_none() -> None:
    text = (ROOT / "README.md").read_text("utf-8")
    named = {kind for kind in KINDS if f"`{kind}`" in text}
    assert named in (set(), set(KINDS))


@pytest.mark.parametrize("kind", KINDS)
def test_the_envelope_limits_exactly_what_can_be_set_in_the_same_unit(kind: str) -> None:
    assert envelope_of(kind)["kind"] == kind
    assert check_envelope(driver_of(kind), envelope_of(kind)) == ()


@pytest.mark.parametrize("kind", KINDS)
def test_a_simulator_takes_every_setting_of_its_driver(kind: str) -> None:
    simulator = load_simulator(kind)
    takes_all = any(
        each.kind is each.VAR_KEYWORD for each in inspect.signature(simulator).parameters.values()
    )
    assert takes_all or keywords_of(load_driver(kind)) <= keywords_of(simulator)


@pytest.mark.parametrize("kind", KINDS)
def test_a_driver_declares_all_it_does_once_and_writes_nothing_else(kind: str) -> None:
    assert check_driver(driver_of(kind)) == ()


@pytest.fixture
def sim_lab(simulated_lab: Bench) -> Iterator[tuple[SimulatedLab, VirtualLoop]]:
    """The instruments of the lab as they are switched on, and the loop whose time they keep."""
    loop = VirtualLoop()
    file = simulated_lab.plan.file
    yield SimulatedLab(file, Clock(loop), Chance(1), wire_time=False), loop
    loop.close()


def test_every_simulator_answers_its_driver_wholly_and_rightly_and_takes_what_can_be_set(
    simulated_lab: Bench, sim_lab: tuple[SimulatedLab, VirtualLoop]
) -> None:
    lab, loop = sim_lab

    def wait(seconds: float) -> None:
        loop.run_until_complete(asyncio.sleep(seconds))

    wait(1.0)
    found = {}
    for each in simulated_lab.plan.instruments:
        for channel, value in each.prepare:
            write(each.driver, lab.faces[each.name], channel, value)
            wait(each.driver.channels[channel].settle_s)
        found[each.name] = check_simulator(each.driver, lab.faces[each.name], wait=wait)
    assert found == dict.fromkeys(found, ())
    assert {each.kind for each in simulated_lab.plan.instruments} == set(KINDS) - NOT_IN_THE_LAB


def test_every_driver_tells_obedience_of_its_simulator_from_refusal(
    simulated_lab: Bench, virtual_time: VirtualTime
) -> None:
    async def found() -> list[str]:
        async with simulated_lab.running() as lab:
            faces = simulated_of(lab).faces
            return [
                f"{each.name}: {finding}"
                for each in simulated_lab.plan.instruments
                for channel, row in envelope_of(each.kind).get("limits", {}).items()
                for name in [
                    next((k for k, v in each.driver.renamed.items() if v == channel), channel)
                ]
                if name in each.driver.channels
                for value in (float(row["low"]), float(row["high"]))
                for finding in check_obedience(each.driver, faces[each.name], name, value)
            ]

    assert virtual_time.run(found()) == []


def values_of(scan: Scan, reply: bytes) -> tuple[float, ...]:
    """Return what a whole reply is read as: finite numbers, or the error that was expected."""
    assert scan.request.reply.take(reply, 0) == len(reply)
    values = scan.decode(reply)
    assert all(type(value) is float and math.isfinite(value) for value in values)
    return values


@pytest.mark.parametrize("kind", ["cobolt_laser", "keithley_2400", "mks_910", "prior_proscan"])
@given(body=st.binary(max_size=45))
@settings(deadline=None, max_examples=100)
def test_any_line_gives_floats_or_an_error(kind: str, body: bytes) -> None:
    for scan in driver_of(kind).scans():
        rule: Any = scan.request.reply
        with suppress(BadReply, DeviceFault):
            values_of(scan, rule.prefix + body.replace(rule.end, b"") + rule.end)


@pytest.mark.parametrize("kind", ["alicat_basis2", "eurotherm_2400"])
@given(data=st.binary(min_size=14, max_size=14))
@settings(deadline=None, max_examples=60)
def test_any_registers_give_numbers_and_another_gas_or_unit_a_fault(kind: str, data: bytes) -> None:
    for scan in driver_of(kind).scans():
        size = 2 * scan.request.frame[5]
        reply = framed((bytes([1, 3, size]) + data[:size]).hex())
        with suppress(*[DeviceFault] if scan.name in ("gas", "flow_unit") else []):
            assert len(values_of(scan, reply)) == len(scan.channels)


@pytest.mark.parametrize("kind", KINDS)
def test_no_kind_hides_that_it_was_never_on_hardware(kind: str) -> None:
    module = inspect.getmodule(load_driver(kind))
    text = inspect.getdoc(module) or ""
    assert "Source: " in text
    said = "Verified: simulator (and captured frames )?only; never on hardware."
    assert re.search(said, text)
    assert driver_of(kind).unverified.strip()


@pytest.mark.parametrize("kind", KINDS)
def test_every_simulator_says_what_it_does_not_simulate_and_so_does_the_reference(
    kind: str,
) -> None:
    said = inspect.getdoc(inspect.getmodule(load_simulator(kind))) or ""
    assert "Not simulated" in said
    text = (ROOT / "docs" / "reference" / "instruments.md").read_text("utf-8")
    section = text.partition(f"## {kind}\n")[2].partition("\n## ")[0]
    assert "Not simulated" in section


@pytest.mark.parametrize("kind", [kind for kind in KINDS if envelope_of(kind).get("limits")])
@given(data=st.data())
@settings(deadline=None, max_examples=30)
def test_no_frame_that_writes_is_among_those_that_read(kind: str, data: st.DataObject) -> None:
    driver = driver_of(kind)
    channel, row = data.draw(st.sampled_from(sorted(envelope_of(kind)["limits"].items())))
    low, high = float(row["low"]), float(row["high"])
    value = data.draw(
        st.sampled_from([low, high]) | st.floats(low, high) | st.floats(low, high).map(round)
    )
    assert check_write(driver, channel, value) == ()
