"""Envelopes that are none: what contradicts itself, names what is not there, or limits nothing."""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from kernel_line import BACKFILL, ENVELOPE, LEAK_CHECK, SHUTDOWN, STUCK, limit, parts
from labharness.safety.kernel import Bound, Envelope, EnvelopeInvalid, LeakTight, PurgedOf, Step

STRAY = Step(channel="no.such", value=0.0, unit="")


def interlock(**fields: Any) -> dict[str, Any]:
    return {"interlocks": (replace(ENVELOPE.interlocks[0], **fields),)}


def trip_row(**fields: Any) -> dict[str, Any]:
    return {"trips": (replace(ENVELOPE.trips[0], **fields),)}


def doubt(**fields: Any) -> dict[str, Any]:
    return {"plausible": (replace(STUCK, **fields),)}


def watch(**fields: Any) -> dict[str, Any]:
    channel = "box.exhaust"
    return {"watches": {**ENVELOPE.watches, channel: replace(ENVELOPE.watches[channel], **fields)}}


def purging(**fields: Any) -> dict[str, Any]:
    return {"purge": replace(ENVELOPE.purge, **fields)}


def filling(**fields: Any) -> dict[str, Any]:
    return purging(backfill=replace(BACKFILL, **fields))


def checking(**fields: Any) -> dict[str, Any]:
    return purging(leak_check=replace(LEAK_CHECK, **fields))


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda: interlock(guards=("no.such",)), "guards 'no.such'"),
        (lambda: interlock(guards=()), "guards nothing"),
        (lambda: interlock(require=(Bound("no.such", low=1.0),)), "relies on 'no.such'"),
        (lambda: interlock(forbid=(Bound("no.such", low=1.0),)), "relies on 'no.such'"),
        (lambda: interlock(during=Bound("no.such", low=1.0)), "relies on 'no.such'"),
        (lambda: interlock(require=(PurgedOf("neon", 5.0),)), "asks 'neon'"),
        (lambda: interlock(require=(PurgedOf("air", 0.0),)), "volumes is 0.0"),
        (lambda: interlock(require=(PurgedOf("air", math.nan),)), "volumes is nan"),
        (lambda: interlock(require=(LeakTight("hydrogen"),)), "leak check since 'hydrogen'"),
        (lambda: interlock(on_loss="no such"), "runs 'no such'"),
        (lambda: interlock(above=math.nan), "above nan"),
        (lambda: interlock(above=math.inf), "below -inf"),
        (lambda: interlock(upto=0.0), "upto 0.0"),
        (lambda: interlock(upto=math.nan), "upto nan"),
        (lambda: trip_row(channel="no.such"), "watches 'no.such'"),
        (lambda: trip_row(procedure="no such"), "runs 'no such'"),
        (lambda: trip_row(low=math.nan), "is empty"),
        (lambda: trip_row(low=1050.0), "is empty"),
        (lambda: doubt(channel="no.such"), "watches 'no.such'"),
        (lambda: doubt(agrees_with="no.such"), "relies on 'no.such'"),
        (lambda: doubt(during=(Bound("no.such", low=1.0),)), "relies on 'no.such'"),
        (lambda: doubt(expects=Bound("no.such", low=1.0)), "relies on 'no.such'"),
        (lambda: doubt(procedure="no such"), "runs 'no such'"),
        (lambda: doubt(found_s=0.0), "found_s is 0.0"),
        (lambda: doubt(found_s=math.nan), "found_s is nan"),
        (lambda: watch(stale_s=0.0), "stale_s is 0.0"),
        (lambda: watch(stale_s=math.inf), "stale_s is inf"),
        (lambda: watch(stale_s=math.nan), "stale_s is nan"),
        (lambda: watch(procedure="no such"), "runs 'no such'"),
        (lambda: purging(volume_cm3=0.0), "volume_cm3 is 0.0"),
        (lambda: purging(volume_cm3=-1.0), "volume_cm3 is -1.0"),
        (lambda: purging(inert={"no.such": "argon.setpoint"}), "counts 'no.such'"),
        (lambda: purging(inert={"argon.flow": "no.such"}), "counts 'no.such'"),
        (
            lambda: purging(
                present={**ENVELOPE.purge.present, "neon": (Bound("no.such", low=1.0),)}
            ),
            "seen by 'no.such'",
        ),
        (lambda: filling(channel="no.such"), "pressure is seen by 'no.such'"),
        (lambda: filling(low=0.0), "low is 0.0"),
        (lambda: filling(unmeasured_max=0.0), "unmeasured_max is 0.0"),
        (lambda: filling(cycles=1), "1 backfills do not dilute by 1000"),
        (lambda: filling(cycles=0, dilution_min=0.0), "cycles is 0"),
        (lambda: filling(high=5.0, dilution_min=0.0), "do not dilute"),
        (lambda: filling(high=math.nan), "do not dilute"),
        (lambda: checking(channel="no.such"), "pressure is seen by 'no.such'"),
        (lambda: checking(isolated=(Bound("no.such", high=0.0),)), "relies on 'no.such'"),
        (lambda: purging(outside="hydrogen"), "asks for a leak check since 'air'"),
        (lambda: purging(leak_check=None), "asks for a leak check since 'air'"),
        (lambda: {**purging(outside="neon"), "interlocks": ()}, "is 'neon'"),
        (lambda: checking(over_s=0.0), "over_s is 0.0"),
        (
            lambda: {"procedures": {"shutdown": replace(SHUTDOWN, steps=(STRAY,))}},
            "sets 'no.such'",
        ),
        (
            lambda: {"procedures": {"shutdown": replace(SHUTDOWN, instead="no such")}},
            "gives way to 'no such'",
        ),
        (
            lambda: {"procedures": {"shutdown": replace(SHUTDOWN, unless=Bound("no.such", 1.0))}},
            "no.such",
        ),
        (
            lambda: {"procedures": {"shutdown": replace(SHUTDOWN, when=(Bound("no.such", 1.0),))}},
            "asks 'no.such'",
        ),
    ],
)
def test_an_envelope_that_contradicts_itself_is_refused(
    change: Callable[[], dict[str, Any]], says: str
) -> None:
    with pytest.raises(EnvelopeInvalid) as refused:
        Envelope(**{**parts(), **change()})
    assert says in str(refused.value)


def test_the_envelope_these_are_made_from_is_sound() -> None:
    assert Envelope(**{**parts(), **interlock(), **trip_row(), **doubt(), **watch()}).line == "test"
    purges: tuple[dict[str, Any], ...] = (purging(), filling(), checking())
    assert all(Envelope(**{**parts(), **each}).purge == ENVELOPE.purge for each in purges)


@pytest.mark.parametrize(
    ("low", "high", "cycles", "dilution"), [(70.0, 700.0, 3, 1000.0), (10.0, 15.0, 1, 0.5)]
)
def test_backfills_that_dilute_just_enough_are_a_proof(
    low: float, high: float, cycles: int, dilution: float
) -> None:
    fields = {"low": low, "high": high, "cycles": cycles, "dilution_min": dilution}
    fill = Envelope(**{**parts(), **filling(**fields)}).purge.backfill
    assert fill is not None
    assert fill.cycles == cycles


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"low": 2.0, "high": 1.0}, "empty or endless"),
        ({"low": math.nan}, "empty or endless"),
        ({"high": math.nan}, "empty or endless"),
        ({"low": -math.inf}, "empty or endless"),
        ({"high": math.inf}, "empty or endless"),
        ({"step_max": 0.0}, "not positive"),
        ({"step_max": math.nan}, "not positive"),
        ({"always_safe": (0.0, 1.5)}, "always_safe"),
        ({"always_safe": (math.nan,)}, "always_safe"),
    ],
)
def test_a_limit_that_limits_nothing_is_refused(fields: dict[str, Any], says: str) -> None:
    with pytest.raises(EnvelopeInvalid, match=says):
        limit("a.b", "", **{"low": 0.0, "high": 1.0, **fields})


@pytest.mark.parametrize(
    ("low", "high"),
    [
        (-math.inf, math.inf),
        (math.inf, math.inf),
        (1.0, 0.5),
        (math.nan, 1.0),
        (1.0, math.nan),
        (math.inf, 1.0),
    ],
)
def test_a_bound_that_bounds_nothing_is_refused(low: float, high: float) -> None:
    with pytest.raises(EnvelopeInvalid, match="bounds nothing"):
        Bound("a.b", low, high)


def test_a_limit_may_be_one_value_and_a_step_is_needed_unless_it_says_otherwise() -> None:
    assert limit("a.b", "", 1.0, 1.0).high == 1.0
    assert not STRAY.optional


def test_a_bound_may_be_a_point_and_may_be_about_zero() -> None:
    assert Bound("a.b", 1.0, 1.0).holds(1.0)
    assert Bound("a.b", -5.0, 5.0).holds(5.0)


def test_rows_of_an_envelope_say_themselves() -> None:
    assert str(Bound("a.b", low=1.5)) == "a.b at least 1.5"
    assert str(Bound("a.b", high=1.5)) == "a.b at most 1.5"
    assert str(Bound("a.b", 1.0, 2.0)) == "a.b from 1 to 2"
    assert str(PurgedOf("hydrogen", 5.0)) == "tube purged of hydrogen by 5 volumes"
    purged = "tube purged of air by 5 volumes, from which oxygen is inferred"
    assert str(PurgedOf("air", 5.0)) == purged
    assert str(LeakTight("air")) == "tube leak-checked since it was open to air"
