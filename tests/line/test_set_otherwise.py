"""A unit that was changed at an instrument's front panel: no reading of it is judged or told."""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from commands import say
from labharness.core.vocabulary import Cause
from labharness.lab import Lab, LabPlan
from labharness.lab.operate import idle_line
from labharness.lab.operate.idle_line import identify
from rig import SHORT_LINE, Injection, Run, lab_with

PANELS = [
    ("argon", "flow_unit", "SLPM", "argon.flow"),
    ("argon", "pressure_unit", "kPaA", "argon.flow"),
    ("hydrogen", "flow_unit", "SLPM", "hydrogen.flow"),
    ("gauge", "unit", "MBAR", "gauge.pressure"),
]
FOUND_S_MAX = 61.0  # each minute, and one poll


def turned(name: str, setting: str, value: str) -> Callable[[Lab], None]:
    """Turn a setting at the panel of an instrument."""

    def act(lab: Lab) -> None:
        assert lab.simulated is not None
        lab.simulated.faces[name].turn({setting: value})

    return act


@contextmanager
def turned_before(name: str, setting: str, value: str) -> Iterator[None]:
    """Every lab that is opened stands so."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(idle_line, "Lab", lab_with(turned(name, setting, value)))
        yield


@pytest.mark.promise(11)
@pytest.mark.parametrize(("name", "setting", "value", "channel"), PANELS)
def test_a_unit_that_is_not_the_rows_is_found_before_anything_is_read(
    short_plan: LabPlan, name: str, setting: str, value: str, channel: str
) -> None:
    with turned_before(name, setting, value):
        wrong = {why for who, _, why in identify(short_plan) if why and who == name}
        told = say("read", channel, "--lab", str(SHORT_LINE))
    assert wrong
    assert all(value in each for each in wrong)
    assert told.code != 0
    assert value in told.err
    assert channel not in told.out


@pytest.mark.promise(11)
def test_a_unit_that_is_changed_in_a_run_is_found_within_a_minute_and_ends_it(
    run_task: Run,
) -> None:
    at: dict[str, float] = {}

    def turn(lab: Lab) -> None:
        turned("argon", "pressure_unit", "kPaA")(lab)  # nothing else on the line looks at it
        at["s"] = lab.clock.now_s()

    ran = run_task(inject=(Injection("material_growth", 60.0, turn),))
    trip = ran.lab.line.memory.trip
    assert ran.type == "task_failed"
    assert trip is not None
    assert trip.cause is Cause.COMMUNICATION
    assert "pressure_unit: the instrument answered 'kPaA'; this driver reads 'PSIA'" in trip.detail
    assert trip.at_s - at["s"] <= FOUND_S_MAX
    assert math.isnan(ran.lab.line.latest("argon.flow"))
