"""A port where another instrument answers is named before a byte of the safe state leaves."""

import pytest

from labharness.faces.testing.faults import simulated_of
from labharness.lab import Lab, LabPlan
from labharness.lab.operate import idle_line
from labharness.lab.operate.idle_line import make_safe
from rig import lab_with


def test_swapped_ports_are_named_before_the_safe_state_leaves(
    short_plan: LabPlan, monkeypatch: pytest.MonkeyPatch
) -> None:
    labs: list[Lab] = []

    def swapped(lab: Lab) -> None:
        one, other = (simulated_of(lab).buses[each] for each in ("heat", "hydrogen"))
        one.faces, other.faces = other.faces, one.faces
        labs.append(lab)

    monkeypatch.setattr(idle_line, "Lab", lab_with(swapped))
    told: list[str] = []

    def were_set() -> list[bytes]:
        assert labs[0].simulated is not None
        record = labs[0].simulated.buses["heat"].record
        assert record is not None
        return [frame for frame in record.frames if frame[1] in (6, 16)]

    def tell(text: str) -> None:
        assert not were_set()
        told.append(text)

    done = make_safe(short_plan, "Ben", "a smell", tell)
    assert done["unverified"]
    (furnace,) = [text for text in told if "furnace (eurotherm_2400)" in text]
    assert furnace.startswith("port heat: another instrument answers, or it answers otherwise: ")
    assert were_set()  # nothing refuses a procedure


def test_where_all_answer_as_they_should_nothing_is_named(short_plan: LabPlan) -> None:
    told: list[str] = []
    done = make_safe(short_plan, "Ben", "a smell", told.append)
    assert (done["unverified"], told) == ([], [])
