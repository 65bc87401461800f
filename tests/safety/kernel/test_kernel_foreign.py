"""A read-back that shows what nobody here has set, as the kernel sees it."""

import math
from dataclasses import replace
from typing import Any

import pytest

from kernel_line import ENVELOPE, parts, see
from labharness.core.vocabulary import Cause, Command, Trip
from labharness.safety.kernel import (
    Bound,
    Envelope,
    EnvelopeInvalid,
    Memory,
    Mode,
    adopt,
    begin,
    conclude,
    expect,
)

ARGON = Command("argon.setpoint", 100.0, "sccm")
MAINS = Bound("box.exhaust", low=1.0)  # any reading that says what is at stake


def shown(**row: Any) -> Memory:
    """A line whose argon setpoint is confirmed at 100 sccm, seen twice."""
    limits = dict(ENVELOPE.limits)
    own = {"resolution": 0.5, **row}
    limits["argon.setpoint"] = replace(limits["argon.setpoint"], **own)
    memory = Memory(Envelope(**{**parts(), "limits": limits}))
    memory.mode = Mode.RUNNING
    begin(memory, ARGON)
    see(memory, 0.0, argon__setpoint=100.0)
    conclude(memory, ARGON)
    assert see(memory, 1.0, argon__setpoint=100.0) == ()
    return memory


def procedures(found: tuple[Trip, ...]) -> list[str]:
    assert {each.cause for each in found} <= {Cause.INTERLOCK_LOST}
    return [each.procedure for each in found]


def test_it_is_called_once_and_again_when_it_changes() -> None:
    memory = shown()
    assert procedures(see(memory, 2.0, argon__setpoint=200.0)) == [""]
    assert see(memory, 3.0, argon__setpoint=200.0) == ()
    assert procedures(see(memory, 4.0, argon__setpoint=300.0)) == [""]
    assert see(memory, 5.0, argon__setpoint=100.0) == ()
    (again,) = see(memory, 6.0, argon__setpoint=300.0)
    assert again.detail.startswith("argon.setpoint reads 300 sccm, and 100 was confirmed: ")
    assert again.value == 300.0


def test_within_its_resolution_it_is_what_was_set() -> None:
    memory = shown()
    assert see(memory, 2.0, argon__setpoint=100.5) == ()
    assert see(memory, 3.0, argon__setpoint=99.5) == ()
    assert procedures(see(memory, 4.0, argon__setpoint=99.4)) == [""]


def test_a_row_that_trips_trips_with_every_reading() -> None:
    memory = shown(on_foreign="shutdown")
    for now in (2.0, 3.0):
        assert procedures(see(memory, now, argon__setpoint=200.0)) == ["shutdown"]


def test_it_trips_while_something_is_at_stake_and_as_soon_as_it_is() -> None:
    memory = shown(on_foreign="shutdown", foreign_while=MAINS)
    see(memory, 1.0, box__exhaust=0.0)
    assert procedures(see(memory, 2.0, argon__setpoint=200.0)) == [""]
    assert see(memory, 3.0, argon__setpoint=200.0) == ()
    see(memory, 4.0, box__exhaust=1.0)
    assert procedures(see(memory, 4.0, argon__setpoint=200.0)) == ["shutdown"]


def test_what_may_be_at_stake_is() -> None:
    memory = shown(on_foreign="shutdown", foreign_while=MAINS)
    assert procedures(see(memory, 2.0, argon__setpoint=200.0)) == ["shutdown"], "never read"
    see(memory, 3.0, box__exhaust=0.0)
    assert procedures(see(memory, 99.0, argon__setpoint=200.0)) == ["shutdown"], "stale"


def test_a_row_may_be_about_the_value_itself() -> None:
    stake = Bound("argon.setpoint", low=150.0)
    memory = shown(on_foreign="shutdown", foreign_while=stake)
    assert procedures(see(memory, 2.0, argon__setpoint=50.0)) == [""]
    assert procedures(see(memory, 3.0, argon__setpoint=150.0)) == ["shutdown"]


def test_what_an_instrument_takes_by_itself_is_nobody_elses() -> None:
    memory = shown(own=(0.0,), on_foreign="shutdown")
    assert see(memory, 2.0, argon__setpoint=0.0) == ()
    assert procedures(see(memory, 3.0, argon__setpoint=1.0)) == ["shutdown"]


def test_while_a_command_is_in_doubt_nobody_knows() -> None:
    memory = shown(on_foreign="shutdown")
    begin(memory, replace(ARGON, value=200.0))
    for value in (100.0, 150.0, 200.0, 300.0):
        assert see(memory, 2.0, argon__setpoint=value) == ()
    conclude(memory, replace(ARGON, value=300.0))
    assert see(memory, 3.0, argon__setpoint=300.0) == ()
    assert procedures(see(memory, 4.0, argon__setpoint=200.0)) == ["shutdown"]


def test_a_later_confirmed_command_ends_it() -> None:
    memory = shown()
    see(memory, 2.0, argon__setpoint=200.0)
    track = memory.tracks["argon.setpoint"]
    assert track.foreign()
    again = replace(ARGON, value=250.0)
    begin(memory, again)
    see(memory, 3.0, argon__setpoint=250.0)
    conclude(memory, again)
    assert not track.foreign()


def test_nothing_is_expected_of_what_was_forgotten_until_it_is_adopted() -> None:
    memory = shown(on_foreign="shutdown")
    expect(memory, "argon.setpoint", math.nan)
    assert see(memory, 2.0, argon__setpoint=200.0) == ()
    adopt(memory, ["argon.setpoint"])
    assert procedures(see(memory, 3.0, argon__setpoint=100.0)) == ["shutdown"]


def test_what_is_known_or_in_doubt_is_not_adopted() -> None:
    memory = shown()
    see(memory, 2.0, argon__setpoint=200.0)
    adopt(memory, ["argon.setpoint"])
    assert memory.tracks["argon.setpoint"].told == 100.0
    expect(memory, "argon.setpoint", math.nan)
    begin(memory, ARGON)
    adopt(memory, ["argon.setpoint"])
    assert math.isnan(memory.tracks["argon.setpoint"].told)


def test_a_channel_without_such_a_row_is_never_called() -> None:
    memory = Memory(ENVELOPE)
    memory.mode = Mode.RUNNING
    conclude(memory, ARGON)
    assert see(memory, 1.0, argon__setpoint=400.0) == ()
    assert not memory.tracks["argon.setpoint"].foreign()


def test_a_row_that_says_nothing_of_its_read_back_leaves_anothers_as_it_is() -> None:
    limits = dict(ENVELOPE.limits)
    limits["argon.setpoint"] = replace(limits["argon.setpoint"], resolution=0.5)
    limits["argon.also"] = replace(
        limits["argon.setpoint"],
        channel="argon.also",
        readback="argon.setpoint",
        resolution=math.inf,
    )
    memory = Memory(Envelope(**{**parts(), "limits": limits}))
    memory.mode = Mode.RUNNING
    conclude(memory, ARGON)
    assert procedures(see(memory, 1.0, argon__setpoint=400.0)) == [""]


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ({"on_foreign": "vent"}, "limit argon.setpoint runs 'vent'"),
        (
            {"on_foreign": "shutdown", "foreign_while": Bound("box.x", 1.0)},
            "limit argon.setpoint relies on 'box.x'",
        ),
    ],
)
def test_what_it_names_must_be_there(row: dict[str, Any], words: str) -> None:
    with pytest.raises(EnvelopeInvalid, match=words):
        shown(**row)


def test_what_trips_must_be_listened_to() -> None:
    limits = dict(ENVELOPE.limits)
    limits["oven.off"] = replace(limits["oven.off"], on_foreign="shutdown")
    with pytest.raises(EnvelopeInvalid, match=r"limit oven\.off relies on 'oven\.off'"):
        Envelope(**{**parts(), "limits": limits})
