"""A meter of inert gas is believed up to what its controller was told, and no further."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernel_line import STALE_S, running, see
from labharness.core.vocabulary import Command
from labharness.safety.kernel import Memory, begin, conclude


def count(told: float, flow: float = 600.0, seconds: int = 10) -> Memory:
    memory = running()
    for second in range(seconds + 1):
        see(memory, float(second), argon__flow=flow, argon__setpoint=told)
    return memory


@pytest.mark.parametrize(
    ("told", "flow", "sccm"),
    [
        (0.0, 400.0, 0.0),
        (math.nan, 400.0, 0.0),
        (100.0, 400.0, 100.0),
        (400.0, 403.0, 400.0),
        (400.0, 397.0, 397.0),
        (400.0, -400.0, 0.0),
        (-5.0, 400.0, 0.0),
    ],
)
def test_inert_gas_counts_up_to_the_setpoint_that_is_read_back(
    told: float, flow: float, sccm: float
) -> None:
    memory = count(told, flow)
    assert memory.proofs.purged.passed_cm3["air"] == pytest.approx(sccm / 60 * 9), (
        "the first poll is one end"
    )
    assert memory.proofs.purged.filled_cm3 == memory.proofs.purged.passed_cm3["air"]


def test_inert_gas_counts_for_nothing_while_its_setpoint_is_in_doubt() -> None:
    memory = count(300.0)
    known = memory.proofs.purged.passed_cm3["air"]
    begin(memory, Command("argon.setpoint", 0.0, "sccm"))
    for second in range(11, 20):
        see(memory, float(second), argon__flow=600.0, argon__setpoint=300.0)
    assert memory.proofs.purged.passed_cm3["air"] == known
    conclude(memory, Command("argon.setpoint", 0.0, "sccm"))
    see(memory, 20.0, argon__flow=600.0, argon__setpoint=300.0)
    assert memory.proofs.purged.passed_cm3["air"] == known, "one end of this interval was in doubt"
    see(memory, 21.0, argon__flow=600.0, argon__setpoint=300.0)
    assert memory.proofs.purged.passed_cm3["air"] == pytest.approx(known + 5.0)


def test_inert_gas_counts_for_nothing_while_its_setpoint_is_not_heard() -> None:
    memory = count(300.0)
    for second in range(11, 40):
        see(memory, float(second), argon__flow=600.0)
    heard_s = 9 + STALE_S
    assert memory.proofs.purged.passed_cm3["air"] == pytest.approx(300.0 / 60 * heard_s)


@given(
    polls=st.lists(
        st.tuples(st.floats(0.1, 8.0), st.floats(0.0, 500.0), st.floats(-50.0, 1000.0)),
        max_size=30,
    ),
)
@settings(deadline=None, max_examples=60)
def test_no_meter_proves_more_than_its_controller_was_told_to_give(
    polls: list[tuple[float, float, float]],
) -> None:
    memory, now, given_cm3, last = running(), 0.0, 0.0, 0.0
    for wait_s, told, flow in polls:
        now += wait_s
        see(memory, now, argon__setpoint=told, argon__flow=flow)
        given_cm3 += min(last, told) / 60 * wait_s
        last = told
        assert memory.proofs.purged.passed_cm3["air"] <= given_cm3 + 1e-6
