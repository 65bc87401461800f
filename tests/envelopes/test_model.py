"""The exhaustive search: no hazard can be reached through what the shipped envelope allows."""

from dataclasses import replace

import pytest

from labharness.core.vocabulary import Cause
from labharness.lab import default_lab_path, read_lab
from labharness.safety.kernel import Envelope
from model import OPTICS, TUBE, Found, Model, search

SHIPPED = read_lab(default_lab_path()).envelope

REDUNDANT = {  # rows without which nothing is reached, and what stands behind them
    "less heat under vacuum": "what is set to heat is vented, and a vent opens at 740 Torr",
    "a tube under vacuum stays below its limit": "as above: a hot tube is vented",
    "no sulfur heat on a broken sensor": "a broken sensor trips by itself, whatever is asked",
    "no heat on a broken sensor": "a broken sensor trips by itself, whatever is asked",
    "no hydrogen into a tube open to the pump": "hydrogen takes an open vent, the pump a shut one",
    "the vent shuts only on a gauge that reads the atmosphere": "here no gauge lies",
    "nitrogen only into a vented tube": "here nitrogen comes by its bypass alone",
    "the nitrogen bypass opens only into a vented tube": "here no gauge lies",
    "the vent shuts only on argon that its gauge would show": "here no gauge lies",
    "setpoint only with exhaust and lid": "mains come before the setpoint, and ask for the same",
    "furnace stays on its controller while it has mains": "a heater in manual trips by itself",
    "sulfur stays on its controller while it has mains": "a heater in manual trips by itself",
    "a hot furnace is heated only purged": "its setpoint asks for the same, and drives it here",
    "hot sulfur is heated only purged": "its setpoint asks for the same, and drives it here",
    "argon stays up until hydrogen is flushed out": "argon is 0 or 100 sccm here",
    "no more hydrogen over molten sulfur than its exhaust dilutes": "hydrogen is 0 or 10 sccm here",
    "sulfur melts under no more hydrogen than its exhaust dilutes": "hydrogen is 0 or 10 sccm here",
    "the pump stops only shut off from the tube": "here no pump lets anything back",
    "inert flow stays over hot sulfur and hydrogen": "no command may take it from their own rules",
    "the enclosure is opened only with the laser off": "the laser's own rule keeps it shut",
}
ALWAYS_SAFE = {
    ("box.furnace_contactor", 0.0),
    ("box.sulfur_contactor", 0.0),
    ("box.hydrogen_valve", 0.0),
    ("hydrogen.setpoint", 0.0),
    ("laser.emission", 0.0),
}
UNSAFE = [  # what looks safe by itself, and is not: law 2
    ("argon.setpoint", 0.0, "hydrogen is not swept out"),
    ("box.argon_valve", 0.0, "hydrogen is not swept out"),
    ("box.vent", 0.0, "a closed tube is heated"),
    ("box.vent", 1.0, "the bubbler's oil is sucked back"),
]


NEEDED = [row.name for row in SHIPPED.interlocks if row.name not in REDUNDANT]


def without(name: str) -> Envelope:
    """The shipped envelope with one interlock row dropped."""
    rows = tuple(row for row in SHIPPED.interlocks if row.name != name)
    assert len(rows) == len(SHIPPED.interlocks) - 1
    return replace(SHIPPED, interlocks=rows)


def found(envelope: Envelope) -> Found | None:
    """The first hazard of the laser, or else of the tube."""
    return search(Model(envelope, OPTICS))[1] or search(Model(envelope))[1]


@pytest.mark.promise(10)
def test_no_hazard_of_the_tube_is_reachable() -> None:
    states, hazard = search(Model(SHIPPED))
    assert hazard is None
    assert states > 2_500, "the model has lost its moves"


@pytest.mark.promise(15)
@pytest.mark.parametrize("over", [Cause.EMERGENCY_STOP_LOOP, Cause.GAS_LEAK])
def test_a_cause_that_overrules_too_much_pressure_bursts_the_tube(
    over: Cause, monkeypatch: pytest.MonkeyPatch
) -> None:
    order = [over, *(cause for cause in Cause if cause is not over)]

    def overrules(cause: Cause, in_force: Cause | None) -> bool:
        return in_force is None or order.index(cause) < order.index(in_force)

    monkeypatch.setattr(Cause, "overrules", overrules)
    _, hazard = search(Model(SHIPPED))
    assert hazard is not None
    assert hazard.hazard == "the tube bursts"


def test_no_hazard_of_the_laser_is_reachable() -> None:
    states, hazard = search(Model(SHIPPED, OPTICS))
    assert hazard is None
    assert states > 4


def test_the_list_of_redundant_rows_names_rows() -> None:
    assert {row.name for row in SHIPPED.interlocks} >= set(REDUNDANT)


@pytest.mark.promise(10)
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.thorough] * (at % 6 > 0))
        for at, name in enumerate(NEEDED)
    ],
)
def test_an_interlock_dropped_opens_the_way_to_a_hazard(name: str) -> None:
    said = "no hazard appears without this row: list it in REDUNDANT with what stands behind it"
    assert found(without(name)) is not None, said


@pytest.mark.soak
@pytest.mark.parametrize("name", REDUNDANT)
def test_a_redundant_row_is_one(name: str) -> None:
    assert found(without(name)) is None, "take it off the list"


@pytest.mark.soak
def test_all_redundant_rows_dropped_together_leave_the_tube_safe_or_say_how() -> None:
    rows = tuple(row for row in SHIPPED.interlocks if row.name not in REDUNDANT)
    assert search(Model(replace(SHIPPED, interlocks=rows)))[1] is None


def test_what_is_marked_always_safe_is_what_was_searched() -> None:
    marks = {
        (limit.channel, value) for limit in SHIPPED.limits.values() for value in limit.always_safe
    }
    assert marks == ALWAYS_SAFE, "a new mark takes a field in the model first"
    for channel, value in marks:
        assert value in {**TUBE, **OPTICS}[channel][1]


@pytest.mark.parametrize(
    ("channel", "value", "hazard"),
    [pytest.param(*each, marks=pytest.mark.thorough) for each in UNSAFE],
)
def test_a_mark_that_cannot_be_proven_is_found(channel: str, value: float, hazard: str) -> None:
    limit = replace(SHIPPED.limits[channel], always_safe=(value,))
    marked = replace(SHIPPED, limits={**SHIPPED.limits, channel: limit})
    _, reached = search(Model(marked))
    assert reached is not None
    assert reached.hazard == hazard
    assert reached.way[-1] == f"{channel} = {value:g}"
